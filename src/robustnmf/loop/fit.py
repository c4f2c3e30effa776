r"""The fit loop: passes, basis update, stopping, result.

A pass updates the codes, computes the energies and gathers the sums from which the basis
is updated. The first pass does not update the codes, so that the factors after pass t are
those of the paper's algorithms after t iterations (order Q, W, H).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event

from robustnmf.arrays import on_device_of
from robustnmf.engine import Engine
from robustnmf.loop.auto_parameters import end_warmup, energies_only, update_auto_parameters
from robustnmf.loop.checkpoint import Checkpoint
from robustnmf.loop.finish import finish
from robustnmf.loop.iteration import record, run_captured, run_pass, update_basis
from robustnmf.loop.passes import Statistics
from robustnmf.loop.problem import Problem
from robustnmf.loop.state import WARMUP_PASSES, Fitted, MemberProgress, Start, State
from robustnmf.weightings import Weighting

DIVERGENCE_COST = 10.0
"""Time of a pass for other losses, relative to the squared error: 12 ms instead of 1 ms for 700 x
765 entries and ten components."""

Callback = Callable[[int, State], bool]
"""Called with iteration and state after every pass; returns whether the fit must stop."""


def fit(
    engine: Engine,
    problem: Problem,
    weightings: Sequence[Weighting],
    start: Start,
    *,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
    checkpoint: Checkpoint | None = None,
    solve_codes: bool = True,
) -> list[Fitted]:
    """Fit every member of a batch.

    A member has converged and leaves the batch if each of the last ``WINDOW`` passes has lowered
    its objective by at most ``tol`` times the objective, on average. Its final codes are the best
    codes for its basis, which ``encode`` also returns for the same rows; with
    ``solve_codes=False`` they are those of the last pass. ``tol=0`` runs exactly ``max_iter``
    iterations and nothing else.

    The objective is the phi of the weighting. If the weighting has automatic parameters, only the
    majority of the samples has weight in the first ``WARMUP_PASSES`` passes. Then the parameters
    are estimated from the energies after each pass until the median energy changes by less than
    ``REST`` over ``WINDOW`` passes, or half of the iterations are done. Then phi is fixed, and
    the history starts.

    With a checkpoint, an interrupted fit is resumed.
    """
    with engine.thread_pool():
        cost = 1.0 if problem.loss.quadratic else DIVERGENCE_COST
        slices = engine.member_slices(len(weightings), start.basis.shape[1], cost)
        if len(slices) == 1 or callback is not None or checkpoint is not None:
            return _fit(
                engine, problem, weightings, start, max_iter, tol, solve_codes, callback, checkpoint
            )

        # Members are independent: each thread fits some members on all rows.
        stopped = Event()

        def part(members: slice) -> list[Fitted]:
            return _fit(
                engine.single_threaded(), problem, weightings[members], start.part(members),
                max_iter, tol, solve_codes,
                lambda iteration, state: stopped.is_set(),
            )  # fmt: skip

        try:
            return [member for fitted in engine.threads.each(part, slices) for member in fitted]
        except BaseException:
            stopped.set()  # the other threads need not continue
            raise


def _fit(
    engine: Engine,
    problem: Problem,
    weightings: Sequence[Weighting],
    start: Start,
    max_iter: int,
    tol: float,
    solve_codes: bool,
    callback: Callback | None,
    checkpoint: Checkpoint | None = None,
) -> list[Fitted]:
    # Penalties are proportional to all samples, and too large if only some of them have weight.
    warmup_passes = 0 if problem.has_penalty else min(WARMUP_PASSES, max_iter // 4)
    # Every state has its own codes, so only one state may be referenced while a pass runs.
    iteration, state, results = _begin(
        engine, problem, weightings, start, max_iter, warmup_passes, checkpoint
    )
    can_capture = engine.on_one_device and tol <= 0 and callback is None and checkpoint is None
    while True:
        if checkpoint is not None:
            checkpoint.offer(engine, iteration, state, results)
        last = iteration == max_iter
        state, statistics, undone = _run_and_record(engine, problem, state, iteration, last)
        if callback is not None and callback(iteration, state):
            last = True
            state = end_warmup(engine, problem, state)
        done = [j for j, member in enumerate(state.members) if last or member.has_converged(tol)]
        if done:
            ended = state.keep(engine, done)
            results |= finish(engine, problem, ended, iteration, tol, solve_codes and tol > 0)
            remaining = [j for j in range(len(state.members)) if j not in done]
            if not remaining:
                return [results[i] for i in range(len(weightings))]
            state = state.keep(engine, remaining)
            statistics = statistics.keep(on_device_of(state.basis, remaining))
            undone = [undone[j] for j in remaining]
        state = update_basis(engine, problem, state, statistics, undone)
        iteration += 1
        state = update_auto_parameters(
            engine, problem, state, warmup_passes=warmup_passes, freeze=2 * iteration >= max_iter
        )
        if can_capture and problem.needs_no_host_decisions(
            [member.requested_weighting for member in state.members]
        ):
            state, iteration = run_captured(engine, problem, state, iteration, max_iter)
            can_capture = False  # the last pass remains, or all passes if capturing failed


def _begin(
    engine: Engine,
    problem: Problem,
    weightings: Sequence[Weighting],
    start: Start,
    max_iter: int,
    warmup_passes: int,
    checkpoint: Checkpoint | None,
) -> tuple[int, State, dict[int, Fitted]]:
    """Return the next pass, the state before it and finished members, from a checkpoint if any."""
    if checkpoint is not None:
        resumed = checkpoint.resumed(engine, len(weightings), max_iter)
        if resumed is not None:
            return resumed
    members = [MemberProgress(i, w, w) for i, w in enumerate(weightings)]
    block_states = engine.begin(start.codes, start.mixing)
    for part in (start.codes, start.mixing or []):
        part.clear()  # frees the codes of the start
    state = State.at(members, block_states, problem.hold(start.basis))
    state = energies_only(engine, problem, state)
    state = update_auto_parameters(
        engine, problem, state, warmup_passes=warmup_passes, freeze=max_iter == 0
    )
    return 0, state, {}


def _run_and_record(
    engine: Engine, problem: Problem, before: State, iteration: int, last: bool
) -> tuple[State, Statistics, list[bool]]:
    """Run a pass and record objectives; also return whether the pass of each member was undone."""
    state, statistics = run_pass(
        engine, problem, before, update_codes=iteration > 0, gather=not last
    )
    undone = record(problem, state, statistics)
    if any(undone):
        state = state.restored(engine, undone, before)
    return state, statistics, undone
