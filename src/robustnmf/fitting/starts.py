"""Where a fit starts: the number of components, a screening, and the starts of all members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state

from robustnmf.arrays import Array, Block, host_dtype, namespace, on_device_of
from robustnmf.engine import Engine
from robustnmf.exceptions import warn
from robustnmf.fitting.settings import FitSettings, on_host
from robustnmf.inits import FROM_SVD, INITS
from robustnmf.loop.encoding import encoded_start
from robustnmf.loop.problem import Problem
from robustnmf.loop.state import Start
from robustnmf.losses import Loss, ReweightedLoss
from robustnmf.screening import Screening, fit_good_entries, screen, screen_entries
from robustnmf.solvers import Solver
from robustnmf.structures import Free
from robustnmf.weightings import Trimmed

DEFAULT_RANK = 10
FEATURES_PER_COMPONENT = 3
"""Most components of the rule of thumb, and how many features there are for each."""


def default_rank(shape: tuple[int, int]) -> int:
    """Return the number of components for ``n_components=None`` and X of a shape.

    With as many components as features, outliers would have components of their own.
    """
    samples, features = shape
    return max(1, min(DEFAULT_RANK, features // FEATURES_PER_COMPONENT, samples))


def rank_of(settings: FitSettings, shape: tuple[int, int], W: Any, H: Any) -> int:
    """Return the number of components, if X of a shape can have so many.

    A custom start fixes it, if no number is given.
    """
    given, init = settings.n_components, settings.init
    if init != "custom" and (W is not None or H is not None):
        warn(
            f"W and H are a start for init='custom', but init={init!r}: they are ignored. "
            "Set init='custom', or leave them out.",
            RuntimeWarning,
        )
        W = None
    if given is not None and given != "auto":
        rank = int(given)
    elif len(shape_of_codes := W.shape if hasattr(W, "shape") else np.shape(W)) == 2:
        rank = int(shape_of_codes[1])
    else:  # a custom start that is missing is refused later
        rank = default_rank(shape)
    if init == "nndsvd" and rank > min(shape):
        raise ValueError(
            f"n_components={rank} is too large for init={init!r}: X with "
            f"n_samples={shape[0]}, n_features={shape[1]} has at most {min(shape)} singular "
            "vectors, and the other components would stay zero. Lower n_components or use "
            "init='nndsvda', which starts them at random."
        )
    return rank


def draw_seeds(settings: FitSettings, solver: Solver) -> list[int]:
    """Draw a seed for every start, and warn of starts that are not what they seem."""
    count = settings.n_starts
    if count < settings.n_init:
        warn(
            f"init={settings.init!r} gives the same start every time, so one of the "
            f"{settings.n_init} starts is run. Use init='random' for several.",
            RuntimeWarning,
        )
    if settings.init == "nndsvd" and solver.keeps_zeros:
        warn(
            "init='nndsvd' holds zeros, which multiplicative updates can never change. "
            "init='nndsvda' starts from the same SVD without them.",
            UserWarning,
        )
    return check_random_state(settings.random_state).randint(2**31 - 1, size=count).tolist()


@dataclass(frozen=True)
class Beginning:
    """The start of every member, in the units of the engine, and what was found out on the way.

    ``loss`` is that of the fit with cutoffs that were automatic, ``balance`` the factor by which
    codes are smaller than those of a custom start, ``screening`` the result of the screening of
    the samples, and ``reference`` the basis (components, features) of a screening of the entries.
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

    ``screened`` allows a screening of samples and entries, for weightings and losses that need
    one. Of the samples only if nothing but X matters.
    """
    is_custom, is_free = settings.init == "custom", type(problem.structure) is Free
    reference = row_cutoffs = None
    if isinstance(problem.loss, ReweightedLoss) and (
        problem.loss.has_auto or (screened and not is_custom)
    ):
        entries = screen_entries(engine, problem.loss, rank, seed=0)
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
    if may_screen and is_plain and settings.parts.weighting.needs_screening:
        screening = screen(engine, problem, rank, settings.init, seeds)
        if screening is not None:
            return Beginning(problem.loss, screening.start, screening=screening)
    start = starts_from(settings.init, engine, problem, rank, seeds, reference)
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

    Under losses that ignore bad entries, these are fitted first without the entries that a
    ``reference`` basis (components, features) shows to be bad.
    """
    if reference is not None:
        if init == "robust" and problem.fixed is None and rank == reference.shape[0]:
            bases = reference[None, ...]
        else:
            bases = fit_good_entries(engine, problem, reference, rank, init, seeds)
        return encoded_start(engine, problem, bases)
    whole = engine.filled() if init in FROM_SVD else engine
    xp = namespace(engine.like)

    def together(block: Block, members: tuple[Array | None, Array]) -> tuple[Array, None]:
        before, codes = members
        codes = codes[None, ...]
        return codes if before is None else xp.concat([before, codes]), None

    codes: list[Any] = [None] * len(engine.blocks)
    bases = []
    for seed in seeds:  # one after the other: all of them at once would be held twice
        new, basis = INITS[init](whole, rank, int(seed))
        codes = engine.map_blocks(together, list(zip(codes, new, strict=True)), data=False)[0]
        bases.append(basis)
    basis = xp.stack(bases)
    return Start(*problem.structure.start(engine, codes, basis))


def _custom_start(
    engine: Engine, problem: Problem, rank: int, W: Any, H: Any
) -> tuple[Start, float]:
    """The start of the user, and the factor by which its codes are smaller than W.

    Factors of very different sizes would leave the range of float32 in their Gram matrices.
    They are balanced by a power of two, which multiplicative updates carry along exactly.
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
                "Replace them by small positive numbers where they are not meant to stay.",
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


def check_fixed(settings: FitSettings, rank: int, engine: Engine) -> Array | None:
    """Return components that are given in the units of an engine; refuse those X cannot have."""
    structure, fixed = settings.parts.structure, settings.fixed_components
    if fixed is None:
        return None
    if structure.mixes_samples:
        raise ValueError(
            f"fixed_components and {structure!r} exclude each other: its components are "
            "mixtures of samples and cannot be given. Use structure='free'."
        )
    fixed, features = _nonnegative(fixed, "fixed_components", engine), engine.shape[1]
    if fixed.shape[1] != features or len(fixed) > rank:
        raise ValueError(
            f"fixed_components has shape {fixed.shape}, but needs at most n_components={rank} "
            f"rows and as many columns as X has features, {features}."
        )
    return on_device_of(engine.like, fixed / engine.scale)


def _check_factor(
    factor: Any, shape: tuple[int, int], name: str, what: str, engine: Engine
) -> np.ndarray:
    """Return a factor of a custom start: right shape, finite, nonnegative, not all zero."""
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
        raise ValueError(f"{name} is zero throughout; a start needs something to go on.")
    return factor


def _nonnegative(values: Any, name: str, engine: Engine) -> np.ndarray:
    """Return a table on the host, in the precision of an engine, if it is finite and >= 0."""
    table = check_array(on_host(values), dtype=host_dtype(engine.like), input_name=name)
    if table.min() < 0:
        count = int(np.count_nonzero(table < 0))
        row, column = np.argwhere(table < 0)[0]
        raise ValueError(
            f"{name} holds {count} negative value{'s' if count > 1 else ''}, first at "
            f"[{row}, {column}] = {table[row, column]:.6g}; factors are nonnegative. Replace by "
            "zeros, or by small positive numbers."
        )
    return table
