r"""The fit loop: passes, basis update, stopping, result.

A pass updates the codes, computes the energies and gathers the sums from which the basis
is updated. The first pass does not update the codes, so that pass t ends with
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
"""Number of passes left from which on capturing one as a CUDA graph is worth it."""

LEAST_CODE = 1e-6
"""Codes of a start, as a share of their sample: multiplicative updates cannot leave zero."""

Callback = Callable[[int, State], bool]
"""Called with iteration and state after every pass; returns whether the fit is to stop."""


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

    A member has converged when the last ``WINDOW`` passes have each lowered its objective by at
    most ``tol`` of itself, on average, and then leaves the batch. Its final codes are the best
    ones for its basis, those that ``encode`` returns for the same rows. ``tol=0`` runs exactly
    ``max_iter`` iterations and nothing else.

    The objective is the phi of the weighting. Where it has automatic parameters, only the majority
    of the samples has weight in the first ``WARMUP_PASSES`` passes. Then the parameters are read
    off the energies after each pass until their median changes by less than ``REST`` over
    ``WINDOW`` passes, or half of the iterations are spent; from then on phi is fixed, and
    the history starts there.

    With a checkpoint, an interrupted fit is continued.
    """
    with engine.thread_pool():
        slices = engine.member_slices(len(weightings))
        if len(slices) == 1 or callback is not None or checkpoint is not None:
            return _fit(engine, problem, weightings, start, max_iter, tol, callback, checkpoint)

        # Members are independent: here each thread fits some members, on all rows.
        stopped = Event()

        def part(members: slice) -> list[Fitted]:
            return _fit(
                engine.single_threaded(), problem, weightings[members], start.part(members),
                max_iter, tol,
                lambda iteration, state: stopped.is_set(),
            )  # fmt: skip

        try:
            return [member for fitted in engine.threads.each(part, slices) for member in fitted]
        except BaseException:
            stopped.set()  # the other threads need not continue
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
    # Penalties are in proportion to all samples, and too large where only some have weight.
    warmup_passes = 0 if problem.has_penalty else min(WARMUP_PASSES, max_iter // 4)
    resumed = None if checkpoint is None else checkpoint.resumed(engine, len(weightings), max_iter)
    if resumed is None:
        state = _first_state(engine, problem, weightings, start)
        state = update_auto_parameters(
            engine, problem, state, warmup_passes=warmup_passes, freeze=max_iter == 0
        )
        resumed = 0, state, {}
    first, state, results = resumed
    del resumed  # no references to old states, whose codes would stay in memory
    host_decides = tol > 0 or callback is not None or checkpoint is not None
    iteration = first
    while True:
        if checkpoint is not None:
            checkpoint.offer(engine, iteration, state, results)
        last = iteration == max_iter
        before = state
        state, statistics = _pass(
            engine, problem, state, update_codes=iteration > 0, gather=not last
        )
        undone = _record(problem, state, statistics)
        if any(undone):
            state = state.restored(engine, undone, before)
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
            remaining = [j for j in range(len(state.members)) if j not in done]
            if not remaining:
                break
            state = state.keep(engine, remaining)
            statistics = statistics.keep(on_device_of(state.basis, remaining))
            undone = [undone[j] for j in remaining]
        state = _update_basis(engine, problem, state, statistics, undone)
        freeze = 2 * (iteration + 1) >= max_iter
        state = update_auto_parameters(
            engine, problem, state, warmup_passes=warmup_passes, freeze=freeze
        )
        iteration += 1
        can_capture = engine.on_one_device and problem.needs_no_host_decisions(state.members)
        if not host_decides and can_capture:
            state, iteration = _run_captured(engine, problem, state, iteration, max_iter)
            host_decides = True  # the last pass, or all passes where capturing failed
    return [results[i] for i in range(len(weightings))]


def _first_state(
    engine: Any, problem: Problem, weightings: Sequence[Weighting], start: Start
) -> State:
    """Build the state before the first pass, with energies where weightings need them."""
    members = [MemberProgress(i, w, w) for i, w in enumerate(weightings)]
    block_states = engine.begin(start.codes, start.mixing)
    for part in (start.codes, start.mixing or []):
        part.clear()  # they would stay in memory besides the updated ones
    return energies_only(
        engine, problem, State.at(members, block_states, problem.hold(start.basis))
    )


def encode(
    engine: Any, problem: Problem, weighting: Weighting, basis: Array
) -> tuple[Array, Array]:
    """Compute the best codes (n, k) for a fixed basis (k, m), and their energies (n,)."""
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
    """Build a start from bases (members, k, m) and the best codes for them."""
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
    """Compute the objective of the best codes for a fixed basis (k, m)."""
    batch = Batch([weighting], basis)
    data_pass = problem.make_pass(engine, batch, basis[None, ...], basis[None, ...])

    def visit(block: Any, local: None) -> tuple[BlockState, Statistics]:
        codes, cache = data_pass.encode(block, batch)
        return data_pass.measure(block, BlockState(codes), batch, cache)

    with engine.thread_pool():
        _, statistics = engine.map_blocks(visit)
    penalty, _ = problem.basis_penalty_value(batch, statistics.objective_sums, basis[None, ...])
    return float((batch.value_of(statistics.objective_sums) + penalty)[0, 0])


def _pass(
    engine: Any, problem: Problem, state: State, *, update_codes: bool, gather: bool
) -> tuple[State, Statistics]:
    """Run one pass over all blocks; return the new state and the sums (none in the last pass)."""
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

    block_states, statistics = engine.map_blocks(visit, state.block_states, on_device=True)
    return replace(state, block_states=block_states), statistics


def _record(problem: Problem, state: State, statistics: Statistics) -> list[bool]:
    """Record the objective of every member; return whose pass must be undone."""
    values = objective_values(problem, state.weighting, statistics.objective_sums, state.basis)
    return [
        member.record(objective) for member, objective in zip(state.members, values, strict=True)
    ]


def _run_captured(
    engine: Any, problem: Problem, state: State, iteration: int, max_iter: int
) -> tuple[State, int]:
    """Run all but the last pass as one captured graph; return state and iteration after them.

    Only for members that cannot converge, retune or roll back in between. Where capturing
    failed, state and iteration are unchanged.
    """
    if max_iter - iteration < WORTH_RECORDING:
        return state, iteration
    names = [
        name for name in ("codes", "mixing") if getattr(state.block_states[0], name) is not None
    ]
    undone = [False] * len(state.members)

    def step(arrays: Sequence[Array]) -> tuple[Sequence[Array], Array]:
        now = _with_arrays(state, names, arrays)
        now, statistics = _pass(engine, problem, now, update_codes=True, gather=True)
        record = objectives(problem, now.weighting, statistics.objective_sums, now.basis)
        return _arrays_of(_update_basis(engine, problem, now, statistics, undone), names), record

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
    """Return the arrays of a state that a pass changes; ``names`` are those of block states."""
    local = [getattr(local, name) for local in state.block_states for name in names]
    return [state.basis, state.previous, *local]


def _with_arrays(state: State, names: list[str], arrays: Sequence[Array]) -> State:
    """Return the state with the arrays that ``_arrays_of`` returns replaced by others."""
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


def _update_basis(
    engine: Any, problem: Problem, state: State, statistics: Statistics, undone: list[bool]
) -> State:
    """Return the state with the basis of the next pass.

    A solver that extrapolates sets ``C' = C + b (C - C_before)`` with b growing from
    zero towards one. A member whose pass was undone continues from its basis before extrapolation.
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
    if any(undone):
        basis = xp.where(
            on_device_of(basis, undone)[:, None, None], state.basis_before_extrapolation, basis
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
        _record(problem, state, statistics)
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


def _importances(engine: Any, problem: Problem, state: State) -> Array:
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
            raise FloatingPointError(
                "the factorisation left the range of its floating-point numbers. Give X as "
                "float64, or scale its features to comparable sizes."
            )
