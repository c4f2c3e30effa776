"""Where a fit starts: the rank, the starts of all members, or the one the user gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from robustnmf._warn import warn
from robustnmf.arrays import Array, Block, namespace, on_device_of
from robustnmf.encoding import encoded_start
from robustnmf.engine import Engine
from robustnmf.estimators._aliases import init_of
from robustnmf.estimators._input import check_factor
from robustnmf.estimators.auto_rank import default_rank
from robustnmf.inits import DETERMINISTIC, FROM_SVD, INITS
from robustnmf.problem import Problem
from robustnmf.screening import fit_good_entries
from robustnmf.solvers import Solver
from robustnmf.state import Start


def rank_of(
    shape: tuple[int, int], n_components: int | str | None, init: str, W: Any, H: Any
) -> int | None:
    """Return the number of components, if X can have so many; None if X is to choose it."""
    if init != "custom" and (W is not None or H is not None):
        warn(
            f"W and H are a start for init='custom', but init={init!r}: they are ignored. "
            "Set init='custom', or leave them out.",
            RuntimeWarning,
        )
        W = None
    if n_components is not None and n_components != "auto":
        rank = int(n_components)
    elif len(shape_of_codes := W.shape if hasattr(W, "shape") else np.shape(W)) == 2:
        rank = int(shape_of_codes[1])
    elif n_components is None or init == "custom":  # a start that is missing is refused later
        rank = default_rank(shape)
    else:
        return None
    if init == "nndsvd" and rank > min(shape):
        raise ValueError(
            f"n_components={rank} is too large for init={init!r}: X with "
            f"n_samples={shape[0]}, n_features={shape[1]} has at most {min(shape)} singular "
            "vectors, and the other components would stay zero. Lower n_components or use "
            "init='nndsvda', which starts them at random."
        )
    return rank


def starts_of(model: Any) -> int:
    """How many different starts an estimator can have."""
    init = init_of(model)
    return 1 if init == "custom" or init in DETERMINISTIC else model.n_init


def seeds_of(model: Any, solver: Solver) -> np.ndarray:
    """Draw a seed for every start, and warn of starts that are not what they seem."""
    if starts_of(model) < model.n_init:
        warn(
            f"init={init_of(model)!r} gives the same start every time, so one of the "
            f"{model.n_init} starts is run. Use init='random' for several.",
            RuntimeWarning,
        )
    if init_of(model) == "nndsvd" and solver.keeps_zeros:
        warn(
            "init='nndsvd' holds zeros, which multiplicative updates can never change. "
            "init='nndsvda' starts from the same SVD without them.",
            UserWarning,
        )
    return check_random_state(model.random_state).randint(2**31 - 1, size=starts_of(model))


def start_of(
    model: Any,
    engine: Engine,
    problem: Problem,
    rank: int,
    W: Any = None,
    H: Any = None,
    reference: Array | None = None,
) -> tuple[Start, float]:
    """Start of every member, and the factor by which its codes are smaller than W.

    For ``reference`` see ``starts_from``.
    """
    seeds = seeds_of(model, problem.solver)
    init = init_of(model)
    if init == "custom":
        return _custom_start(engine, problem, rank, W, H)
    return starts_from(init, engine, problem, rank, seeds.tolist(), reference), 1.0


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
    """The start of the user, with factors of one size.

    Factors of very different sizes would leave the range of float32 in their Gram matrices.
    They are balanced by a power of two, which multiplicative updates carry along exactly.
    """
    n, m = engine.shape
    mixes = problem.structure.mixes_samples
    codes = check_factor(W, (n, rank), "W", "the codes", engine.like)
    what, width = ("the mixing", n) if mixes else ("the basis", m)
    other = check_factor(H, (rank, width), "H", what, engine.like)
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
