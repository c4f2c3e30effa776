"""Automatic parameters, which follow the energies until these rest; how objectives are read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from robustnmf.arrays import Array, namespace, on_device_of, to_numpy
from robustnmf.passes import BlockState
from robustnmf.state import ObjectiveValue, Problem, State
from robustnmf.weightings import Batch, EnergyHistogram, ObjectiveSums, WarmupWeights


def objectives(
    problem: Problem, weighting: Batch, objective_sums: ObjectiveSums, basis: Array
) -> Array:
    """The objective of every member (members, 3), as a reading has it."""
    paid = problem.basis_penalty_value(weighting, objective_sums, basis)
    found = [
        weighting.value_of(objective_sums) + paid[0],
        weighting.shifted_value_of(objective_sums) + paid[1],
        paid[1],
    ]
    return namespace(basis).concat(found, axis=1)


def objective_values(
    problem: Problem, weighting: Batch, objective_sums: ObjectiveSums, basis: Array
) -> list[ObjectiveValue]:
    """The same, brought home in one trip from the device."""
    return [
        ObjectiveValue(*row)
        for row in to_numpy(objectives(problem, weighting, objective_sums, basis)).tolist()
    ]


def energies_only(engine: Any, problem: Problem, state: State) -> State:
    """Measure the start, for weightings that need energies before they can weigh."""
    if not any(member.requested_weighting.has_auto for member in state.members):
        return state
    data_pass = problem.make_pass(engine, state.weighting, state.basis, state.basis)

    def visit(block: Any, local: BlockState) -> tuple[BlockState, None]:
        codes, cache = data_pass.evaluate(block, local.codes)
        energies = data_pass.penalised(block, codes, data_pass.energies(block, codes, cache))
        return replace(local, energies=energies), None

    return replace(state, block_states=engine.map_blocks(visit, state.block_states)[0])


def update_auto_parameters(
    engine: Any, problem: Problem, state: State, *, warmup_passes: int, freeze: bool
) -> State:
    """Let automatic parameters follow the energies of the last pass."""
    settling = [j for j, member in enumerate(state.members) if member.requested_weighting.has_auto]
    if not settling:
        return state
    histograms = _histograms(engine, problem, state, settling)
    for j, histogram in zip(settling, histograms, strict=True):
        state.members[j].update_auto_parameters(
            histogram, warmup_passes=warmup_passes, freeze=freeze
        )
    state = state.reweighted()
    if not problem.extrapolates or state.weighting.per_entry:
        return state
    _reevaluate(engine, problem, state)
    xp = namespace(state.basis)
    still = on_device_of(state.basis, [t.momentum == 0 for t in state.members])
    return replace(
        state, basis=xp.where(still[:, None, None], state.basis_before_extrapolation, state.basis)
    )


def end_warmup(engine: Any, problem: Problem, state: State) -> State:
    """The state of a fit that is stopped early, with weightings in place of gates."""
    in_warmup = [
        j for j, member in enumerate(state.members) if isinstance(member.weighting, WarmupWeights)
    ]
    if not in_warmup:
        return state
    histograms = _histograms(engine, problem, state, in_warmup)
    for j, histogram in zip(in_warmup, histograms, strict=True):
        state.members[j].weighting = state.members[j].requested_weighting.resolve_auto(histogram)
    state = state.reweighted()
    _reevaluate(engine, problem, state)
    for j in in_warmup:
        state.members[j].restart_history()
    return state


def _reevaluate(engine: Any, problem: Problem, state: State) -> None:
    """The objective of members where they stand, under weightings that still change."""
    weighting = state.weighting

    def visit(block: Any, local: BlockState) -> tuple[None, ObjectiveSums]:
        sizes = block.row_sizes(problem.loss.degree) if weighting.uses_row_sizes else None
        return None, weighting.weigh(local.energies, block.row_weight, sizes).objective_sums

    objective_sums = engine.sums(visit, state.block_states, data=False)
    read = objective_values(problem, weighting, objective_sums, state.previous)
    for member, found in zip(state.members, read, strict=True):
        if member.requested_weighting.has_auto:
            member.objective = found


def _histograms(
    engine: Any, problem: Problem, state: State, members: list[int]
) -> list[EnergyHistogram]:
    """How the energies of some members are spread."""
    index = on_device_of(state.basis, members)

    def energies(local: BlockState) -> Array:
        return namespace(local.energies).take(local.energies, index, axis=0)

    return engine.histograms(state.block_states, problem.loss.degree, energies)
