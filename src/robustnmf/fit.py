r"""The only loop: passes, basis update, stopping, result.

A pass moves the codes, measures the energies and gathers the sums from which the basis
is updated. The first pass measures without moving, so that pass t ends with
the factors the paper's algorithms have after t iterations (order Q, W, H).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Event
from typing import Any

import numpy as np

from robustnmf.arrays import (
    Array,
    energy_rounding,
    floored,
    namespace,
    on_device_of,
    repeat_on_device,
    to_device_of,
    to_numpy,
)
from robustnmf.auto_parameters import (
    end_warmup,
    energies_only,
    objective_values,
    objectives,
    update_auto_parameters,
)
from robustnmf.checkpoint import Checkpoint
from robustnmf.engine import in_parts
from robustnmf.passes import BlockState, Statistics
from robustnmf.state import (
    WARMUP_PASSES,
    Fitted,
    MemberProgress,
    ObjectiveValue,
    Problem,
    Start,
    State,
)
from robustnmf.weightings import Batch, Uniform, Weighting

WORTH_RECORDING = 5
"""Passes ahead from which on a device records one and plays it, rather than be told of each."""

LEAST_CODE = 1e-6
"""Codes of a start, as a share of their sample: multiplicative updates cannot leave zero."""

Callback = Callable[[int, State], bool]
"""Told after every pass; whether the fit is to stop where it is."""


def fit(
    engine: Any,
    problem: Problem,
    weightings: Sequence[Weighting],
    start: Start,
    *,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
    checkpoint: Checkpoint | None = None,
) -> list[Fitted]:
    """Fit every member of a batch.

    A member is done when the last ``WINDOW`` passes have each lowered its objective by no
    more than ``tol`` of itself, on average, and then leaves the batch. It ends on the best
    codes for its basis, the ones that encoding the same rows again gives. ``tol=0`` asks
    for exactly ``max_iter`` iterations and nothing else.

    The objective is the weighting's phi. Where it has automatic parameters, the first
    ``GATED`` passes hear the majority of the samples alone. Then the parameters are read off
    the energies after each pass until their median changes by less than ``REST`` over
    ``WINDOW`` passes, or half of the iterations are spent; from then on phi is fixed, and
    the history starts there.

    With a checkpoint the fit goes on where it was interrupted, if it was.
    """
    with engine.thread_pool():
        shares = engine.member_slices(len(weightings))
        if len(shares) == 1 or callback is not None or checkpoint is not None:
            return _fit(engine, problem, weightings, start, max_iter, tol, callback, checkpoint)

        # Members know nothing of each other: a thread for some, rather than for some rows.
        halted = Event()

        def part(members: slice) -> list[Fitted]:
            return _fit(
                engine.single_threaded(), problem, weightings[members], start.part(members),
                max_iter, tol,
                lambda iteration, state: halted.is_set(),
            )  # fmt: skip

        try:
            return [member for share in engine.threads.each(part, shares) for member in share]
        except BaseException:
            halted.set()  # the others need not go on
            raise


def _fit(
    engine: Any,
    problem: Problem,
    weightings: Sequence[Weighting],
    start: Start,
    max_iter: int,
    tol: float,
    callback: Callback | None,
    checkpoint: Checkpoint | None = None,
) -> list[Fitted]:
    # Penalties are in proportion to all samples, and would be too much for some of them.
    warmup_passes = 0 if problem.has_penalty else min(WARMUP_PASSES, max_iter // 4)
    resumed = None if checkpoint is None else checkpoint.resumed(engine, len(weightings), max_iter)
    if resumed is None:
        state = _begun(engine, problem, weightings, start)
        state = update_auto_parameters(
            engine, problem, state, warmup_passes=warmup_passes, freeze=max_iter == 0
        )
        resumed = 0, state, {}
    first, state, results = resumed
    del resumed  # states that nobody holds take their codes with them
    watched = tol > 0 or callback is not None or checkpoint is not None
    iteration = first
    while True:
        if checkpoint is not None:
            checkpoint.offer(engine, iteration, state, results)
        last = iteration == max_iter
        before = state
        state, statistics = _pass(
            engine, problem, state, update_codes=iteration > 0, gather=not last
        )
        back = _recorded(problem, state, statistics)
        if any(back):
            state = state.restored(engine, back, before)
        if callback is not None and callback(iteration, state):
            last = True
            state = end_warmup(engine, problem, state)
        del before
        done = [j for j, t in enumerate(state.members) if last or t.has_converged(tol)]
        if done:
            leaving = state.keep(engine, done)
            converged = [member.has_converged(tol) for member in leaving.members]
            results |= _finish(engine, problem, leaving, iteration, converged, tol)
            del leaving
            stay = [j for j in range(len(state.members)) if j not in done]
            if not stay:
                break
            state = state.keep(engine, stay)
            statistics = statistics.keep(on_device_of(state.basis, stay))
            back = [back[j] for j in stay]
        state = _stepped(engine, problem, state, statistics, back)
        freeze = 2 * (iteration + 1) >= max_iter
        state = update_auto_parameters(
            engine, problem, state, warmup_passes=warmup_passes, freeze=freeze
        )
        iteration += 1
        if not watched and engine.on_one_device and problem.needs_no_host_decisions(state.members):
            state, iteration = _unwatched(engine, problem, state, iteration, max_iter)
            watched = True  # what is left, or all of it where that did not work out
    return [results[i] for i in range(len(weightings))]


def _begun(engine: Any, problem: Problem, weightings: Sequence[Weighting], start: Start) -> State:
    """Before the first pass, with energies where weightings need them."""
    members = [MemberProgress(i, w, w) for i, w in enumerate(weightings)]
    block_states = engine.begin(start.codes, start.mixing)
    for part in (start.codes, start.mixing or []):
        part.clear()  # used up: they would stay in memory beside those that are computed
    return energies_only(
        engine, problem, State.at(members, block_states, problem.hold(start.basis))
    )


def encode(
    engine: Any, problem: Problem, weighting: Weighting, basis: Array
) -> tuple[Array, Array]:
    """Best codes (n, k) for a basis (k, m) that stays, and their energies (n,)."""
    batch = Batch([weighting], basis)
    data_pass = problem.make_pass(engine, batch, basis[None, ...], basis[None, ...])

    def visit(block: Any, local: None) -> tuple[BlockState, None]:
        codes, cache = data_pass.encode(block, batch)
        return BlockState(codes, energies=data_pass.energies(block, codes, cache)), None

    with engine.thread_pool():
        block_states, _ = engine.map_blocks(visit)
    return engine.collect(block_states, "codes")[0, ...], engine.collect(block_states, "energies")[
        0, ...
    ]


def encoded_start(engine: Any, problem: Problem, basis: Array) -> Start:
    """Start at bases (members, k, m) with the best codes for them."""
    batch = Batch([Uniform()] * basis.shape[0], basis)
    data_pass = problem.make_pass(engine, batch, basis, basis)
    least = least_codes(problem, basis)

    def visit(block: Any, _: None) -> tuple[Array, None]:
        codes, _ = data_pass.encode(block, batch)
        sizes = namespace(codes).astype(block.sq_norms**0.5, codes.dtype)
        return namespace(codes).maximum(codes, sizes[None, :, None] * least), None

    with engine.thread_pool():
        return Start(engine.map_blocks(visit)[0], basis)


def least_codes(problem: Problem, basis: Array) -> Array:
    """Return the least codes (members, 1, k) of a start for samples of norm one.

    Their product with the basis is a small share of the sample. Zero, where the solver can leave
    zero.
    """
    xp = namespace(basis)
    if not problem.solver.keeps_zeros:
        return xp.zeros_like(basis[:, None, :, 0])
    norms = xp.sqrt(xp.sum(basis**2, axis=2))
    return (LEAST_CODE / (basis.shape[1] * floored(norms)))[:, None, :]


def objective(engine: Any, problem: Problem, weighting: Weighting, basis: Array) -> float:
    """Objective of the best codes for a basis (k, m) that stays."""
    batch = Batch([weighting], basis)
    data_pass = problem.make_pass(engine, batch, basis[None, ...], basis[None, ...])

    def visit(block: Any, local: None) -> tuple[BlockState, Statistics]:
        codes, cache = data_pass.encode(block, batch)
        return data_pass.measure(block, BlockState(codes), batch, cache)

    with engine.thread_pool():
        _, statistics = engine.map_blocks(visit)
    paid, _ = problem.basis_penalty_value(batch, statistics.objective_sums, basis[None, ...])
    return float((batch.value_of(statistics.objective_sums) + paid)[0, 0])


def _pass(
    engine: Any, problem: Problem, state: State, *, update_codes: bool, gather: bool
) -> tuple[State, Statistics]:
    """Visit all blocks once; the last pass of a fit gathers no sums."""
    weighting = state.weighting
    data_pass = problem.make_pass(engine, weighting, state.basis, state.previous)
    momentum = state.momentum if problem.solver.extrapolates_codes else None

    def visit(block: Any, local: BlockState) -> tuple[BlockState, Statistics]:
        here, batch, start = (
            data_pass.to_device_of(block),
            weighting.to_device_of(block.row_weight),
            local.codes,
        )
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

    visit.anywhere = True  # type: ignore[attr-defined]
    block_states, statistics = engine.map_blocks(visit, state.block_states)
    return replace(state, block_states=block_states), statistics


def _recorded(problem: Problem, state: State, statistics: Statistics) -> list[bool]:
    """Note the objective of every member; which of them must go back."""
    found = objective_values(problem, state.weighting, statistics.objective_sums, state.basis)
    return [
        member.record(objective) for member, objective in zip(state.members, found, strict=True)
    ]


def _unwatched(
    engine: Any, problem: Problem, state: State, iteration: int, max_iter: int
) -> tuple[State, int]:
    """All passes but the last, of members that nothing happens to on the way.

    Where a device had to be asked for something after all, the state is as it was.
    """
    if max_iter - iteration < WORTH_RECORDING:
        return state, iteration
    names = [
        name for name in ("codes", "mixing") if getattr(state.block_states[0], name) is not None
    ]
    back = [False] * len(state.members)

    def step(arrays: Sequence[Array]) -> tuple[Sequence[Array], Array]:
        now = _handed(state, names, arrays)
        now, statistics = _pass(engine, problem, now, update_codes=True, gather=True)
        note = objectives(problem, now.weighting, statistics.objective_sums, now.basis)
        return _carried(_stepped(engine, problem, now, statistics, back), names), note

    found = repeat_on_device(step, _carried(state, names), max_iter - iteration)
    if found is None:
        return state, iteration
    arrays, notes = found
    by_member = to_numpy(namespace(notes).permute_dims(notes, (1, 2, 0))).tolist()
    for member, (values, shifted_objectives, paid) in zip(state.members, by_member, strict=True):
        member.values += values
        member.shifted_objectives += shifted_objectives
        member.objective = ObjectiveValue(values[-1], shifted_objectives[-1], paid[-1])
    return _handed(state, names, arrays), max_iter


def _carried(state: State, names: list[str]) -> list[Array]:
    """The arrays that one pass hands to the next."""
    local = [getattr(local, name) for local in state.block_states for name in names]
    return [state.basis, state.previous, *local]


def _handed(state: State, names: list[str], arrays: Sequence[Array]) -> State:
    """The state with the arrays that one pass has handed to the next."""
    basis, previous, *rest = arrays
    fields = zip(*(iter(rest),) * len(names), strict=True)
    block_states = [
        replace(local, **dict(zip(names, new, strict=True)))
        for local, new in zip(state.block_states, fields, strict=True)
    ]
    return replace(
        state,
        block_states=block_states,
        basis=basis,
        previous=previous,
        basis_before_extrapolation=basis,
    )


def _stepped(
    engine: Any, problem: Problem, state: State, statistics: Statistics, back: list[bool]
) -> State:
    """The state with the basis of the next pass.

    A solver that extrapolates lets it run on, ``C' = C + b (C - C_before)`` with b growing from
    zero towards one. A member that has risen for it goes on from where it had not run on.
    """
    block_states, basis = problem.basis_step(
        engine, state.block_states, state.basis, state.weighting, statistics
    )
    if not problem.extrapolates:
        return replace(
            state,
            block_states=block_states,
            basis=basis,
            previous=state.basis,
            basis_before_extrapolation=basis,
        )
    xp = namespace(basis)
    if any(back):
        basis = xp.where(
            on_device_of(basis, back)[:, None, None], state.basis_before_extrapolation, basis
        )
    for member in state.members:
        member.update_momentum()
    extrapolated = problem.solver.extrapolate(
        basis, state.basis_before_extrapolation, state.momentum
    )
    return replace(
        state, basis=extrapolated, previous=state.basis, basis_before_extrapolation=basis
    )


def _finish(
    engine: Any, problem: Problem, state: State, n_iter: int, converged: list[bool], tol: float
) -> dict[int, Fitted]:
    """What finished members have become, with the best codes for their basis.

    Importances are those the basis was learned with: the last word on the codes may fit a
    sample exactly that had no more say than others.
    """
    weighting = state.weighting
    importances = _importances(engine, problem, state)
    for member in state.members:
        member.momentum = 0.0
    if tol > 0:
        data_pass = problem.make_pass(engine, weighting, state.basis, state.basis)

        def visit(block: Any, local: BlockState) -> tuple[BlockState, Statistics]:
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
        _recorded(problem, state, statistics)
    codes = engine.collect(state.block_states, "codes")
    penalised_energies = engine.collect(state.block_states, "energies")
    energies = (
        engine.collect(state.block_states, "losses") if problem.has_penalty else penalised_energies
    )
    mixes = problem.structure.mixes_samples
    mixing = engine.collect(state.block_states, "mixing") if mixes else None
    _assert_finite(codes, state.basis, energies)
    # All members in one trip: after that they are parts of one array.
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


def _importances(engine: Any, problem: Problem, state: State) -> Array:
    """Importance of every sample; where weights belong to entries, their share by row."""
    if not state.weighting.per_entry:
        energies = engine.collect(state.block_states, "energies")
        sizes = engine.row_sizes(problem.loss.degree) if state.weighting.uses_row_sizes else None
        return state.weighting.importances(energies, engine.row_weight, sizes)
    weights = engine.collect(state.block_states, "row_weights")
    return weights / namespace(weights).sum(weights, axis=-1, keepdims=True)


def _assert_finite(*arrays: Array) -> None:
    for array in arrays:
        xp = namespace(array)
        parts = in_parts(array) if isinstance(array, np.ndarray) and array.ndim > 2 else [array]
        if not all(bool(xp.all(xp.isfinite(part))) for part in parts):
            raise FloatingPointError(
                "the factorisation left the range of its floating-point numbers. Give X as "
                "float64, or scale its features to comparable sizes."
            )
