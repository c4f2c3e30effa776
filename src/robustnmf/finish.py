"""Results of the members that leave a fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robustnmf.arrays import Array, Block, energy_rounding, namespace
from robustnmf.engine import Engine, in_parts
from robustnmf.exceptions import OUT_OF_RANGE
from robustnmf.iteration import record
from robustnmf.passes import BlockState, Statistics
from robustnmf.problem import Problem
from robustnmf.state import Fitted, State


def finish(
    engine: Engine, problem: Problem, state: State, n_iter: int, converged: list[bool], tol: float
) -> dict[int, Fitted]:
    """Build the results of finished members, with the best codes for their basis.

    Importances are those the basis was learned with: the final codes may fit a sample exactly
    that had no more weight than others.
    """
    weighting = state.weighting
    importances = _importances(engine, problem, state)
    for member in state.members:
        member.momentum = 0.0
    if tol > 0:
        data_pass = problem.make_pass(engine, weighting, state.basis, state.basis)

        def visit(block: Block, local: BlockState) -> tuple[BlockState, Statistics]:
            codes, cache = data_pass.encode(block, weighting)
            after = data_pass.row_values(block, codes, cache, weighting)
            before = data_pass.row_values(block, *data_pass.evaluate(block, local.codes), weighting)
            # Where the loss is not convex in the codes, encoding may end in a worse minimum. A row
            # fitted to rounding may also lose some of its last digits, on which an objective of
            # weights without bounds depends.
            least = energy_rounding(codes) * block.row_sizes(problem.loss.degree)
            worse = after > (1 + 1e-6) * namespace(before).maximum(before, least)
            codes = namespace(codes).where(worse[:, :, None], local.codes, codes)
            codes, cache = data_pass.evaluate(block, codes)
            return data_pass.measure(block, replace(local, codes=codes), weighting, cache)

        block_states, statistics = engine.map_blocks(visit, state.block_states)
        state = replace(state, block_states=block_states)
        record(problem, state, statistics)
    codes = engine.collect(state.block_states, "codes")
    penalised_energies = engine.collect(state.block_states, "energies")
    energies = (
        engine.collect(state.block_states, "losses") if problem.has_penalty else penalised_energies
    )
    mixes = problem.structure.mixes_samples
    mixing = engine.collect(state.block_states, "mixing") if mixes else None
    _assert_finite(codes, state.basis, energies)
    # Copied from the device for all members at once; members are views of these arrays.
    codes, basis, importances, penalised_energies = map(
        engine.result, (codes, state.basis, importances, penalised_energies)
    )
    energies = engine.result(energies) if problem.has_penalty else penalised_energies
    mixing = None if mixing is None else engine.result(mixing)
    return {
        member.index: Fitted(
            codes[j, ...],
            basis[j, ...],
            energies[j, ...],
            importances[j, ...],
            member.weighting,
            member.values,
            member.shifted_objectives[-1],
            n_iter,
            converged[j],
            penalised_energies[j, ...],
            member.basis_penalty_value,
            None if mixing is None else mixing[j, ...],
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


def _assert_finite(*arrays: Array) -> None:
    """Raise ``FloatingPointError`` where an array holds NaN or infinite numbers."""
    for array in arrays:
        xp = namespace(array)
        parts = in_parts(array) if isinstance(array, np.ndarray) and array.ndim > 2 else [array]
        if not all(bool(xp.all(xp.isfinite(part))) for part in parts):
            raise FloatingPointError(OUT_OF_RANGE)
