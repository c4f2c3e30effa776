"""Results of members that have finished a fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robustnmf.arrays import (
    Array,
    Block,
    arange_like,
    as_float64,
    at_least,
    energy_rounding,
    eps,
    namespace,
    smallest,
)
from robustnmf.engine import OUT_OF_RANGE, Engine, in_parts
from robustnmf.loop.iteration import record
from robustnmf.loop.passes import BlockState, Statistics
from robustnmf.loop.problem import Problem
from robustnmf.loop.state import Fitted, State


def finish(
    engine: Engine, problem: Problem, state: State, n_iter: int, tol: float, solve_codes: bool
) -> dict[int, Fitted]:
    """Build the results of finished members, with the best codes for their basis or the last.

    Importances belong to the last pass of the fit: the final codes can fit a sample exactly that
    had no more weight than others when the basis was learned.
    """
    weighting = state.weighting
    converged = [member.has_converged(tol) for member in state.members]
    importances = _importances(engine, problem, state)
    state = _enlarge_tiny_components(engine, problem, state)
    for member in state.members:
        member.momentum = 0.0
    if solve_codes:
        data_pass = problem.make_pass(engine, weighting, state.basis, state.basis)

        def visit(block: Block, local: BlockState) -> tuple[BlockState, Statistics]:
            codes, cache = data_pass.encode(block, weighting)
            after = data_pass.row_values(block, codes, cache, weighting)
            before = data_pass.row_values(block, *data_pass.evaluate(block, local.codes), weighting)
            # If the loss is not convex in the codes, encoding can find a worse minimum. A row
            # that is fitted to rounding can also lose some of its last digits, which matter if
            # weights are unbounded.
            least = energy_rounding(codes) * block.row_sizes(problem.loss.degree)
            rounding = max(1e-6, eps(codes) ** 0.5)  # of an energy, relative to it
            worse = after > (1 + rounding) * namespace(before).maximum(before, least)
            codes = namespace(codes).where(worse[:, :, None], local.codes, codes)
            codes, cache = data_pass.evaluate(block, codes)
            return data_pass.measure(block, replace(local, codes=codes), weighting, cache)

        block_states, statistics = engine.map_blocks(visit, state.block_states)
        state = replace(state, block_states=block_states)
        record(problem, state, statistics)
    collected = {"codes": "codes", "penalised_energies": "energies"}
    if problem.has_penalty:
        collected["energies"] = "losses"
    if problem.structure.mixes_samples:
        collected["mixing"] = "mixing"
    arrays = {n: engine.collect(state.block_states, name) for n, name in collected.items()}
    arrays |= {"basis": state.basis, "importances": importances}
    _assert_finite(
        arrays["codes"], state.basis, arrays.get("energies", arrays["penalised_energies"])
    )
    # Copied from the device for all members at once; members are views of these arrays.
    arrays = {name: engine.result(array) for name, array in arrays.items()}
    arrays.setdefault("energies", arrays["penalised_energies"])
    return {
        member.index: Fitted(
            **{name: array[j, ...] for name, array in arrays.items()},
            weighting=member.weighting,
            history=member.values,
            shifted_objective=member.shifted_objectives[-1],
            n_iter=n_iter,
            converged=converged[j],
            basis_penalty_value=member.basis_penalty_value,
        )
        for j, member in enumerate(state.members)
    }


def _importances(engine: Engine, problem: Problem, state: State) -> Array:
    """Compute importances (members, samples); with weights of entries, from their row means."""
    if not state.weighting.per_entry:
        energies = engine.collect(state.block_states, "energies")
        sizes = engine.row_sizes(problem.loss.degree) if state.weighting.uses_row_sizes else None
        return state.weighting.importances(energies, engine.row_weight, sizes)
    weights = engine.collect(state.block_states, "row_weights")
    return weights / namespace(weights).sum(weights, axis=-1, keepdims=True)


def _enlarge_tiny_components(engine: Engine, problem: Problem, state: State) -> State:
    """Scale components that are only rounding errors by a power of two, and divide their codes.

    If there are more components than X needs, steps cancel and leave some components as small as
    rounding errors; their codes would be very large. The product remains the same. Penalties and
    fixed components determine the sizes, so nothing is scaled with these.
    """
    basis, xp = state.basis, namespace(state.basis)
    if problem.structure.mixes_samples or problem.has_penalty or any(problem.basis_penalty):
        return state
    sizes = as_float64(xp.max(basis, axis=2))  # (members, k)
    least = smallest(basis) ** 0.5
    ratio = xp.max(sizes, axis=1, keepdims=True) / at_least(sizes, least)
    is_tiny = (sizes > least) & (ratio > eps(basis) ** -0.5)
    if problem.fixed is not None:
        is_tiny = is_tiny & (arange_like(basis.shape[1], basis) >= problem.fixed.shape[0])
    if not bool(xp.any(is_tiny)):
        return state
    factors = xp.where(is_tiny, 2.0 ** xp.round(xp.log2(ratio)), xp.ones_like(ratio))
    factors = xp.astype(factors, basis.dtype)

    def visit(block: Block, local: BlockState) -> tuple[BlockState, None]:
        return replace(local, codes=local.codes / factors[:, None, :]), None

    block_states = engine.map_blocks(visit, state.block_states, data=False)[0]
    return replace(state, block_states=block_states, basis=basis * factors[:, :, None])


def _assert_finite(*arrays: Array) -> None:
    """Raise ``FloatingPointError`` if an array contains NaN or infinite numbers."""
    for array in arrays:
        xp = namespace(array)
        parts = in_parts(array) if isinstance(array, np.ndarray) and array.ndim > 2 else [array]
        if not all(bool(xp.all(xp.isfinite(part))) for part in parts):
            raise FloatingPointError(OUT_OF_RANGE)
