"""The start of a fit: the number of components, the screening, and the starts of all members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import _get_feature_names

from robustnmf.arrays import Array, Block, host_dtype, namespace, on_device_of
from robustnmf.engine import Engine
from robustnmf.exceptions import warn
from robustnmf.fitting.settings import FitSettings, on_host
from robustnmf.inits import FROM_SVD, INITS
from robustnmf.inits.plain import random_members
from robustnmf.loop.encoding import encoded_start
from robustnmf.loop.problem import Problem
from robustnmf.loop.state import Start
from robustnmf.losses import Loss, ReweightedLoss
from robustnmf.screening import Screening, fit_good_entries, screen, screen_entries
from robustnmf.solvers import Solver
from robustnmf.sources import Source
from robustnmf.structures import Free
from robustnmf.weightings import Trimmed

DEFAULT_RANK = 10
FEATURES_PER_COMPONENT = 3
"""Default number of components: at most ten, and at least three features for each."""


def default_rank(shape: tuple[int, int]) -> int:
    """Return the number of components for ``n_components=None`` and the shape of X.

    With as many components as features, outliers would get components of their own.
    """
    samples, features = shape
    return max(1, min(DEFAULT_RANK, features // FEATURES_PER_COMPONENT, samples))


def rank_of(settings: FitSettings, shape: tuple[int, int], W: Any, H: Any) -> int:
    """Return the number of components, of a custom start if none is given, after checking it."""
    given, init = settings.n_components, settings.init
    if init != "custom" and (W is not None or H is not None):
        warn(
            f"W and H are ignored, because they are only used with init='custom' and init is "
            f"{init!r}. Set init='custom', or leave them out.",
            RuntimeWarning,
        )
        W = None
    if given is not None and given != "auto":
        rank = int(given)
    elif len(shape_of_codes := W.shape if hasattr(W, "shape") else np.shape(W)) == 2:
        rank = int(shape_of_codes[1])
    else:  # a missing custom start raises an error later
        rank = default_rank(shape)
    if init == "nndsvd" and rank > min(shape):
        raise ValueError(
            f"n_components={rank} is too large for init={init!r}: X with "
            f"n_samples={shape[0]}, n_features={shape[1]} has at most {min(shape)} singular "
            "vectors, and the other components would stay zero. Decrease n_components, or use "
            "init='nndsvda', which starts them at random."
        )
    return rank


def draw_seeds(settings: FitSettings, solver: Solver) -> list[int]:
    """Draw a seed for every start, and warn of equal starts and of zeros that cannot change."""
    count = settings.n_starts
    if count < settings.n_init:
        warn(
            f"init={settings.start_name!r} always gives the same start, so only one of the "
            f"{settings.n_init} starts is run. Use init='random' for several starts.",
            RuntimeWarning,
        )
    if settings.init == "nndsvd" and solver.keeps_zeros:
        warn(
            "init='nndsvd' contains zeros, which multiplicative updates can never change. Use "
            "init='nndsvda', which replaces the zeros.",
            UserWarning,
        )
    return check_random_state(settings.random_state).randint(2**31 - 1, size=count).tolist()


@dataclass(frozen=True)
class Beginning:
    """The start of every member, in the units of the engine, and the results of the screening.

    ``loss`` has its automatic cutoffs resolved, ``balance`` is the factor by which codes are
    smaller than the W of a custom start, ``screening`` the result of the screening of the samples,
    and ``reference`` the basis (components, features) from the screening of the entries.
    """

    loss: Loss
    start: Start
    balance: float = 1.0
    screening: Screening | None = None
    reference: Array | None = None


def begin(
    settings: FitSettings,
    engine: Engine,
    problem: Problem,
    rank: int,
    W: Any,
    H: Any,
    screened: bool,
) -> Beginning:
    """Compute the starts of a fit: given by the user, from a screening, or from X.

    ``screened`` allows a screening of samples and entries for weightings and losses that need it.
    Samples are only screened without custom starts, fixed components, penalties and constraints.
    """
    is_custom, is_free = settings.init == "custom", type(problem.structure) is Free
    reference = row_cutoffs = None
    if isinstance(problem.loss, ReweightedLoss) and (
        problem.loss.has_auto or (screened and not is_custom)
    ):
        entries = screen_entries(engine, problem.loss, rank)
        problem = replace(problem, loss=entries.loss)
        if entries.basis is not None and is_free and not is_custom:
            reference = on_device_of(engine.like, entries.basis, engine.like.dtype)
            row_cutoffs = Trimmed(entries.row_cutoff)
    seeds = draw_seeds(settings, problem.solver)
    if is_custom:
        start, balance = _custom_start(engine, problem, rank, W, H)
        return Beginning(problem.loss, start, balance)
    may_screen = screened and problem.fixed is None
    is_plain = is_free and reference is None and not settings.has_penalty
    if may_screen and is_plain and settings.spec.weighting.needs_screening:
        screening = screen(engine, problem, rank, settings.start_name, seeds)
        if screening is not None:
            return Beginning(problem.loss, screening.start, screening=screening)
    start = starts_from(settings.start_name, engine, problem, rank, seeds, reference)
    screening = None
    if may_screen and row_cutoffs is not None:
        screening = Screening(start, row_cutoffs, 0.0, entries.sample)
    return Beginning(problem.loss, start, screening=screening, reference=reference)


def starts_from(
    init: str,
    engine: Engine,
    problem: Problem,
    rank: int,
    seeds: Sequence[int],
    reference: Array | None = None,
) -> Start:
    """Compute the start of a member for every seed.

    For losses that ignore bad entries, the starts are fitted without the entries that are bad
    according to a ``reference`` basis (components, features).
    """
    if reference is not None:
        if init == "robust" and problem.fixed is None and rank == reference.shape[0]:
            bases = reference[None, ...]
        else:
            bases = fit_good_entries(engine, problem, reference, rank, init, seeds)
        return encoded_start(engine, problem, bases)
    if init == "random":
        return Start(*problem.structure.start(engine, *random_members(engine, rank, seeds)))
    whole = engine.filled() if init in FROM_SVD else engine
    xp = namespace(engine.like)

    def together(block: Block, members: tuple[Array | None, Array]) -> tuple[Array, None]:
        before, codes = members
        codes = codes[None, ...]
        return codes if before is None else xp.concat([before, codes]), None

    codes: list[Any] = [None] * len(engine.blocks)
    bases = []
    for seed in seeds:  # one at a time to save memory
        new, basis = INITS[init](whole, rank, int(seed))
        codes = engine.map_blocks(together, list(zip(codes, new, strict=True)), data=False)[0]
        bases.append(basis)
    basis = xp.stack(bases)
    return Start(*problem.structure.start(engine, codes, basis))


def _custom_start(
    engine: Engine, problem: Problem, rank: int, W: Any, H: Any
) -> tuple[Start, float]:
    """Return the start of the user, and the factor by which its codes are smaller than W.

    Gram matrices of factors of very different sizes can exceed the range of float32. The factors
    are therefore balanced by a power of two, which does not change multiplicative updates.
    """
    n, m = engine.shape
    mixes = problem.structure.mixes_samples
    codes = _check_factor(W, (n, rank), "W", "the codes", engine)
    what, width = ("the mixing", n) if mixes else ("the basis", m)
    other = _check_factor(H, (rank, width), "H", what, engine)
    for name, factor in (("W", codes), ("H", other)):
        zeros = int((factor == 0).sum())
        if zeros and problem.solver.keeps_zeros:
            warn(
                f"{name} holds {zeros} zeros, which multiplicative updates can never change. "
                "Replace them by small positive numbers unless they should stay zero.",
                UserWarning,
            )
    other = other if mixes else other / engine.scale
    exponent = np.log2(codes.mean(dtype=np.float64) / other.mean(dtype=np.float64)) / 2
    balance = 2.0 ** round(exponent) if abs(exponent) > 10 else 1.0
    factors = (codes / balance)[None], (other * balance)[None]
    codes, other = (on_device_of(engine.like, factor) for factor in factors)
    blocks = engine.split(codes, axis=1)
    if not mixes:
        return Start(blocks, other), balance
    mixing = engine.split(namespace(other).matrix_transpose(other), axis=1)
    return Start(blocks, problem.structure.mixed(engine, mixing), mixing), balance


def check_names(source: Source, table: Any, name: str) -> None:
    """Raise an error if the columns of a table are named, but not as the features of X."""
    names, expected = (_get_feature_names(t) for t in (table, source.header))
    if names is None or expected is None or np.array_equal(names, expected):
        return
    raise ValueError(
        f"the columns of {name} are not the features of X in the same order (first names: "
        f"{', '.join(names[:3])}; of X: {', '.join(expected[:3])}). Give {name}[X.columns]."
    )


def check_fixed(settings: FitSettings, rank: int, engine: Engine) -> Array | None:
    """Validate ``fixed_components`` and return them in the units of the engine."""
    structure, fixed = settings.spec.structure, settings.fixed_components
    if fixed is None:
        return None
    if structure.mixes_samples:
        raise ValueError(
            f"fixed_components cannot be combined with {structure!r}, whose components are "
            "mixtures of samples. Use structure='free'."
        )
    fixed, features = _nonnegative(fixed, "fixed_components", engine), engine.shape[1]
    if fixed.shape[1] != features or len(fixed) > rank:
        raise ValueError(
            f"fixed_components has shape {fixed.shape}, but must have at most n_components={rank} "
            f"rows and one column for each of the {features} features of X."
        )
    return on_device_of(engine.like, fixed / engine.scale)


def _check_factor(
    factor: Any, shape: tuple[int, int], name: str, what: str, engine: Engine
) -> np.ndarray:
    """Validate a factor of a custom start: right shape, finite, nonnegative, not all zero."""
    if factor is None:
        raise ValueError(
            f"init='custom' needs both W (codes) and H (basis); {name} is missing. "
            f"Pass {name} with shape {shape} to fit, or choose another init."
        )
    factor = _nonnegative(factor, name, engine)
    if factor.shape != shape:
        raise ValueError(
            f"{name} has shape {factor.shape}, but {what} must have shape {shape} "
            "for this X and n_components."
        )
    if not factor.any():
        raise ValueError(f"{name} is all zero, but a start needs positive values.")
    return factor


def _nonnegative(values: Any, name: str, engine: Engine) -> np.ndarray:
    """Return a table on the host in the precision of an engine; refuse negative and NaN values."""
    table = check_array(on_host(values), dtype=host_dtype(engine.like), input_name=name)
    if table.min() < 0:
        count = int(np.count_nonzero(table < 0))
        row, column = np.argwhere(table < 0)[0]
        raise ValueError(
            f"{name} holds {count} negative value{'s' if count > 1 else ''}, first at "
            f"[{row}, {column}] = {table[row, column]:.6g}, but factors must be nonnegative. "
            "Replace negative values by zeros or small positive numbers."
        )
    return table
