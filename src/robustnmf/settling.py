"""Automatic parameters, which follow the energies until these rest; how objectives are read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from robustnmf.arrays import Array, namespace, on_device_of, to_numpy
from robustnmf.passes import Local
from robustnmf.state import Problem, Reading, State
from robustnmf.weightings import Batch, Gate, Profile, Tally


def objectives(problem: Problem, weighting: Batch, tally: Tally, basis: Array) -> Array:
    """The objective of every member (members, 3), as a reading has it."""
    paid = problem.basis_paid(weighting, tally, basis)
    found = [weighting.value_of(tally) + paid[0], weighting.level_of(tally) + paid[1], paid[1]]
    return namespace(basis).concat(found, axis=1)


def readings(problem: Problem, weighting: Batch, tally: Tally, basis: Array) -> list[Reading]:
    """The same, brought home in one trip from the device."""
    return [
        Reading(*row) for row in to_numpy(objectives(problem, weighting, tally, basis)).tolist()
    ]


def energies_only(engine: Any, problem: Problem, state: State) -> State:
    """Measure the start, for weightings that need energies before they can weigh."""
    if not any(track.asked.settles for track in state.tracks):
        return state
    look = problem.look(engine, state.weighting, state.basis, state.basis)

    def visit(block: Any, local: Local) -> tuple[Local, None]:
        codes, seen = look.stay(block, local.codes)
        energies = look.penalised(block, codes, look.energies(block, codes, seen))
        return replace(local, energies=energies), None

    return replace(state, locals=engine.sweep(visit, state.locals)[0])


def follow(engine: Any, problem: Problem, state: State, *, gated: int, freeze: bool) -> State:
    """Let automatic parameters follow the energies of the last pass."""
    settling = [j for j, track in enumerate(state.tracks) if track.asked.settles]
    if not settling:
        return state
    profiles = _profiles(engine, problem, state, settling)
    for j, profile in zip(settling, profiles, strict=True):
        state.tracks[j].follow(profile, gated=gated, freeze=freeze)
    state = state.reweighted()
    if not problem.extrapolates or state.weighting.per_entry:
        return state
    _read_again(engine, problem, state)
    xp = namespace(state.basis)
    still = on_device_of(state.basis, [t.ahead == 0 for t in state.tracks])
    return replace(state, basis=xp.where(still[:, None, None], state.reached, state.basis))


def opened(engine: Any, problem: Problem, state: State) -> State:
    """The state of a fit that is stopped early, with weightings in place of gates."""
    gated = [j for j, track in enumerate(state.tracks) if isinstance(track.weighting, Gate)]
    if not gated:
        return state
    profiles = _profiles(engine, problem, state, gated)
    for j, profile in zip(gated, profiles, strict=True):
        state.tracks[j].weighting = state.tracks[j].asked.settle(profile)
    state = state.reweighted()
    _read_again(engine, problem, state)
    for j in gated:
        state.tracks[j].note()
    return state


def _read_again(engine: Any, problem: Problem, state: State) -> None:
    """The objective of members where they stand, under weightings that still change."""
    weighting = state.weighting

    def visit(block: Any, local: Local) -> tuple[None, Tally]:
        sizes = block.sizes(problem.loss.degree) if weighting.relative else None
        return None, weighting.weigh(local.energies, block.mass, sizes).tally

    tally = engine.sums(visit, state.locals, data=False)
    read = readings(problem, weighting, tally, state.previous)
    for track, found in zip(state.tracks, read, strict=True):
        if track.asked.settles:
            track.reading = found


def _profiles(engine: Any, problem: Problem, state: State, members: list[int]) -> list[Profile]:
    """How the energies of some members are spread."""
    index = on_device_of(state.basis, members)

    def energies(local: Local) -> Array:
        return namespace(local.energies).take(local.energies, index, axis=0)

    return engine.profiles(state.locals, problem.loss.degree, energies)
