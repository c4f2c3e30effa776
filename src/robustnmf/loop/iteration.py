"""One iteration of the fit loop (pass, record, basis update), and many iterations as one graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from robustnmf.arrays import (
    Array,
    Block,
    namespace,
    on_device_of,
    repeat_on_device,
    to_device_of,
    to_numpy,
)
from robustnmf.engine import Engine
from robustnmf.loop.auto_parameters import objective_values, objectives
from robustnmf.loop.passes import BlockState, Statistics
from robustnmf.loop.problem import Problem
from robustnmf.loop.state import ObjectiveValue, State

WORTH_RECORDING = 5
"""Least number of remaining passes for which a CUDA graph is captured."""


def run_pass(
    engine: Engine, problem: Problem, state: State, *, update_codes: bool, gather: bool
) -> tuple[State, Statistics]:
    """Run one pass over all blocks; return the new state and the sums (none in the last pass)."""
    weighting = state.weighting
    data_pass = problem.make_pass(engine, weighting, state.basis, state.previous)
    momentum = state.momentum if problem.solver.extrapolates_codes else None

    def visit(block: Block, local: BlockState) -> tuple[BlockState, Statistics]:
        here, batch = data_pass.to_device_of(block), weighting.to_device_of(block.row_weight)
        start = local.codes
        finish = here.gather if gather else here.measure
        if not update_codes:
            codes, cache = here.evaluate(block, start)
            local = replace(local, before=None if momentum is None else start)
            return finish(block, local, batch, cache)
        if momentum is not None:
            start = problem.solver.extrapolate(start, local.before, to_device_of(start, momentum))
            local = replace(local, before=local.codes)
        codes, cache = here.update_codes(block, start, batch)
        return finish(block, replace(local, codes=codes), batch, cache)

    block_states, statistics = engine.map_blocks(visit, state.block_states, on_device=True)
    return replace(state, block_states=block_states), statistics


def record(problem: Problem, state: State, statistics: Statistics) -> list[bool]:
    """Record the objective of every member; return for each whether its pass must be undone."""
    values = objective_values(problem, state.weighting, statistics.objective_sums, state.basis)
    return [
        member.record(objective) for member, objective in zip(state.members, values, strict=True)
    ]


def update_basis(
    engine: Engine, problem: Problem, state: State, statistics: Statistics, undone: list[bool]
) -> State:
    """Return the state with the basis of the next pass.

    A solver that extrapolates sets ``C' = C + b (C - C_before)``, and b grows from zero
    towards one. A member whose pass was undone continues from its basis before extrapolation.
    """
    block_states, basis = problem.basis_step(
        engine, state.block_states, state.basis, state.weighting, statistics
    )
    if any(undone):
        restored = on_device_of(basis, undone)[:, None, None]
        basis = namespace(basis).where(restored, state.basis_before_extrapolation, basis)
    extrapolated = basis
    if problem.extrapolates:
        for member in state.members:
            member.update_momentum()
        if any(member.momentum for member in state.members):
            extrapolated = problem.solver.extrapolate(
                basis, state.basis_before_extrapolation, state.momentum
            )
    return replace(
        state,
        block_states=block_states,
        basis=extrapolated,
        previous=state.basis,
        basis_before_extrapolation=basis,
    )


def run_captured(
    engine: Engine, problem: Problem, state: State, iteration: int, max_iter: int
) -> tuple[State, int]:
    """Run all but the last pass as one captured graph; return state and iteration after them.

    Only for members that cannot converge, retune or roll back in between. If capturing
    fails, state and iteration are unchanged.
    """
    if max_iter - iteration < WORTH_RECORDING:
        return state, iteration
    names = [n for n in ("codes", "mixing") if getattr(state.block_states[0], n) is not None]
    undone = [False] * len(state.members)

    def step(arrays: Sequence[Array]) -> tuple[Sequence[Array], Array]:
        now = _with_arrays(state, names, arrays)
        now, statistics = run_pass(engine, problem, now, update_codes=True, gather=True)
        record = objectives(problem, now.weighting, statistics.objective_sums, now.basis)
        return _arrays_of(update_basis(engine, problem, now, statistics, undone), names), record

    result = repeat_on_device(step, _arrays_of(state, names), max_iter - iteration)
    if result is None:
        return state, iteration
    arrays, records = result
    by_member = to_numpy(namespace(records).permute_dims(records, (1, 2, 0))).tolist()
    for member, (values, shifted, penalties) in zip(state.members, by_member, strict=True):
        member.values += values
        member.shifted_objectives += shifted
        member.objective = ObjectiveValue(values[-1], shifted[-1], penalties[-1])
    return _with_arrays(state, names, arrays), max_iter


def _arrays_of(state: State, names: list[str]) -> list[Array]:
    """Return the arrays of a state that a pass changes; ``names`` are fields of block states."""
    local = [getattr(local, name) for local in state.block_states for name in names]
    return [state.basis, state.previous, *local]


def _with_arrays(state: State, names: list[str], arrays: Sequence[Array]) -> State:
    """Return the state with the arrays of ``_arrays_of`` replaced by others."""
    basis, previous, *rest = arrays
    block_states = []
    for at, local in enumerate(state.block_states):
        own = rest[at * len(names) : (at + 1) * len(names)]
        block_states.append(replace(local, **dict(zip(names, own, strict=True))))
    return replace(
        state,
        block_states=block_states,
        basis=basis,
        previous=previous,
        basis_before_extrapolation=basis,
    )
