"""Automatic parameters of weightings, updated from the energies until the energies are stable."""

from __future__ import annotations

from dataclasses import replace

from robustnmf.arrays import Array, Block, namespace, on_device_of, to_numpy
from robustnmf.engine import Engine
from robustnmf.loop.passes import BlockState
from robustnmf.loop.problem import Problem
from robustnmf.loop.state import ObjectiveValue, State
from robustnmf.weightings import Batch, EnergyHistogram, ObjectiveSums, WarmupWeights


def objectives(
    problem: Problem, weighting: Batch, objective_sums: ObjectiveSums, basis: Array
) -> Array:
    """Compute the fields of ``ObjectiveValue`` for every member (members, 3)."""
    penalty, shifted_penalty = problem.basis_penalty_value(weighting, objective_sums, basis)
    columns = [
        weighting.value_of(objective_sums) + penalty,
        weighting.shifted_value_of(objective_sums) + shifted_penalty,
        shifted_penalty,
    ]
    return namespace(basis).concat(columns, axis=1)


def objective_values(
    problem: Problem, weighting: Batch, objective_sums: ObjectiveSums, basis: Array
) -> list[ObjectiveValue]:
    """Compute the objective of every member, with one copy from the device."""
    return [
        ObjectiveValue(*row)
        for row in to_numpy(objectives(problem, weighting, objective_sums, basis)).tolist()
    ]


def energies_only(engine: Engine, problem: Problem, state: State) -> State:
    """Add the energies of the start to a state, if weightings have automatic parameters."""
    if not any(member.requested_weighting.has_auto for member in state.members):
        return state
    data_pass = problem.make_pass(engine, state.weighting, state.basis, state.basis)

    def visit(block: Block, local: BlockState) -> tuple[BlockState, None]:
        codes, cache = data_pass.evaluate(block, local.codes)
        energies = data_pass.penalised(block, codes, data_pass.energies(block, codes, cache))
        return replace(local, energies=energies), None

    return replace(state, block_states=engine.map_blocks(visit, state.block_states)[0])


def update_auto_parameters(
    engine: Engine, problem: Problem, state: State, *, warmup_passes: int, freeze: bool
) -> State:
    """Update automatic parameters from the energies of the last pass."""
    automatic = [j for j, member in enumerate(state.members) if member.requested_weighting.has_auto]
    if not automatic:
        return state
    histograms = _histograms(engine, problem, state, automatic)
    for j, histogram in zip(automatic, histograms, strict=True):
        state.members[j].update_auto_parameters(
            histogram, warmup_passes=warmup_passes, freeze=freeze
        )
    state = state.reweighted()
    if not problem.extrapolates or state.weighting.per_entry:
        return state
    if all(isinstance(state.members[j].weighting, WarmupWeights) for j in automatic):
        return state  # the objective of the warm-up is not used
    _reevaluate(engine, problem, state)
    xp = namespace(state.basis)
    no_momentum = on_device_of(state.basis, [member.momentum == 0 for member in state.members])
    basis = xp.where(no_momentum[:, None, None], state.basis_before_extrapolation, state.basis)
    return replace(state, basis=basis)


def end_warmup(engine: Engine, problem: Problem, state: State) -> State:
    """Replace warm-up weights by the requested weightings, if a fit is stopped early."""
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


def _reevaluate(engine: Engine, problem: Problem, state: State) -> None:
    """Recompute the objectives of members whose weightings have changed, from their energies."""
    weighting = state.weighting

    def visit(block: Block, local: BlockState) -> tuple[None, ObjectiveSums]:
        sizes = block.row_sizes(problem.loss.degree) if weighting.uses_row_sizes else None
        return None, weighting.weigh(local.energies, block.row_weight, sizes).objective_sums

    objective_sums = engine.sums(visit, state.block_states, data=False)
    values = objective_values(problem, weighting, objective_sums, state.previous)
    for member, objective in zip(state.members, values, strict=True):
        if member.requested_weighting.has_auto:
            member.objective = objective


def _histograms(
    engine: Engine, problem: Problem, state: State, members: list[int]
) -> list[EnergyHistogram]:
    """Compute the histograms of the energies of the members with these indices."""
    index = on_device_of(state.basis, members)

    def energies(local: BlockState) -> Array:
        return namespace(local.energies).take(local.energies, index, axis=0)

    return engine.histograms(state.block_states, problem.loss.degree, energies)
