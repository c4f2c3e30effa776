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

from robustnmf.arrays import Array, eps, namespace, on_device_of, to_numpy
from robustnmf.checkpoint import Checkpoint
from robustnmf.passes import Local, Statistics
from robustnmf.state import GATED, Fitted, Problem, Reading, Start, State, Track
from robustnmf.weightings import Batch, Gate, Profile, Tally, Weighting

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
    with engine.at_work():
        shares = engine.shares(len(weightings))
        if len(shares) == 1 or callback is not None or checkpoint is not None:
            return _fit(engine, problem, weightings, start, max_iter, tol, callback, checkpoint)

        # Members know nothing of each other: a thread for some, rather than for some rows.
        halted = Event()

        def part(members: slice) -> list[Fitted]:
            return _fit(
                engine.alone(), problem, weightings[members], start.part(members), max_iter, tol,
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
    gated = 0 if problem.pays else min(GATED, max_iter // 4)
    resumed = None if checkpoint is None else checkpoint.resumed(engine, len(weightings), max_iter)
    if resumed is None:
        state = _begun(engine, problem, weightings, start)
        state = _follow(engine, problem, state, gated=gated, freeze=max_iter == 0)
        resumed = 0, state, {}
    first, state, results = resumed
    for iteration in range(first, max_iter + 1):
        if checkpoint is not None:
            checkpoint.offer(engine, iteration, state, results)
        last = iteration == max_iter
        before = state
        state, statistics, back = _pass(engine, problem, state, move=iteration > 0, gather=not last)
        if any(back):
            state = state.restored(engine, back, before)
        if callback is not None and callback(iteration, state):
            last = True
            state = _opened(engine, problem, state)
        done = [j for j, t in enumerate(state.tracks) if last or t.stalled(tol)]
        if done:
            leaving = state.keep(engine, done)
            converged = [track.stalled(tol) for track in leaving.tracks]
            results |= _finish(engine, problem, leaving, iteration, converged, tol)
            stay = [j for j in range(len(state.tracks)) if j not in done]
            if not stay:
                break
            state = state.keep(engine, stay)
            statistics = statistics.keep(on_device_of(state.basis, stay))
            back = [back[j] for j in stay]
        state = _stepped(engine, problem, state, statistics, back)
        freeze = 2 * (iteration + 1) >= max_iter
        state = _follow(engine, problem, state, gated=gated, freeze=freeze)
    return [results[i] for i in range(len(weightings))]


def _begun(engine: Any, problem: Problem, weightings: Sequence[Weighting], start: Start) -> State:
    """Before the first pass, with energies where weightings need them."""
    tracks = [Track(i, w, w) for i, w in enumerate(weightings)]
    locals_ = engine.begin(start.codes, start.mixing)
    return _energies_only(engine, problem, State.at(tracks, locals_, problem.hold(start.basis)))


def encode(
    engine: Any, problem: Problem, weighting: Weighting, basis: Array
) -> tuple[Array, Array]:
    """Best codes (n, k) for a basis (k, m) that stays, and their energies (n,)."""
    batch = Batch([weighting], basis)
    look = problem.look(engine, batch, basis[None, ...], basis[None, ...])

    def visit(block: Any, local: None) -> tuple[Local, None]:
        codes, seen = look.encode(block, batch)
        return Local(codes, energies=look.energies(block, codes, seen)), None

    with engine.at_work():
        locals_, _ = engine.sweep(visit)
    return engine.collect(locals_, "codes")[0, ...], engine.collect(locals_, "energies")[0, ...]


def objective(engine: Any, problem: Problem, weighting: Weighting, basis: Array) -> float:
    """Objective of the best codes for a basis (k, m) that stays."""
    batch = Batch([weighting], basis)
    look = problem.look(engine, batch, basis[None, ...], basis[None, ...])

    def visit(block: Any, local: None) -> tuple[Local, Statistics]:
        codes, seen = look.encode(block, batch)
        return look.measure(block, Local(codes), batch, seen)

    with engine.at_work():
        _, statistics = engine.sweep(visit)
    paid, _ = problem.basis_paid(batch, statistics.tally, basis[None, ...])
    return float((batch.value_of(statistics.tally) + paid)[0, 0])


def _pass(
    engine: Any, problem: Problem, state: State, *, move: bool, gather: bool
) -> tuple[State, Statistics, list[bool]]:
    """Visit all blocks once; the last pass of a fit gathers no sums."""
    weighting = state.weighting
    look = problem.look(engine, weighting, state.basis, state.previous)
    finish = look.gather if gather else look.measure
    ahead = state.ahead if problem.solver.extrapolates_codes else None

    def visit(block: Any, local: Local) -> tuple[Local, Statistics]:
        start = local.codes
        if not move:
            codes, seen = look.stay(block, start)
            local = replace(local, before=None if ahead is None else start)
            return finish(block, local, weighting, seen)
        if ahead is not None:
            start = problem.solver.further(start, local.before, ahead)
            local = replace(local, before=local.codes)
        codes, seen = look.move(block, start, weighting)
        return finish(block, replace(local, codes=codes), weighting, seen)

    return _recorded(engine, problem, state, visit)


def _recorded(
    engine: Any, problem: Problem, state: State, visit: Callable
) -> tuple[State, Statistics, list[bool]]:
    """Sweep, and note the objective of every member; which of them must go back."""
    locals_, statistics = engine.sweep(visit, state.locals)
    readings = _readings(problem, state.weighting, statistics.tally, state.basis)
    back = [track.record(found) for track, found in zip(state.tracks, readings, strict=True)]
    return replace(state, locals=locals_), statistics, back


def _readings(problem: Problem, weighting: Batch, tally: Tally, basis: Array) -> list[Reading]:
    """The objective of every member."""
    paid = problem.basis_paid(weighting, tally, basis)
    found = [weighting.value_of(tally) + paid[0], weighting.level_of(tally) + paid[1], paid[1]]
    # One trip from the device for all of them.
    rows = to_numpy(namespace(basis).concat(found, axis=1)).tolist()
    return [Reading(*row) for row in rows]


def _stepped(
    engine: Any, problem: Problem, state: State, statistics: Statistics, back: list[bool]
) -> State:
    """The state with the basis of the next pass.

    A solver that extrapolates lets it run on, ``C' = C + b (C - C_before)`` with b growing from
    zero towards one. A member that has risen for it goes on from where it had not run on.
    """
    locals_, basis = problem.basis_step(
        engine, state.locals, state.basis, state.weighting, statistics
    )
    if not problem.extrapolates:
        return replace(state, locals=locals_, basis=basis, previous=state.basis, reached=basis)
    xp = namespace(basis)
    if any(back):
        basis = xp.where(on_device_of(basis, back)[:, None, None], state.reached, basis)
    for track in state.tracks:
        track.run_on()
    further = problem.solver.further(basis, state.reached, state.ahead)
    return replace(state, basis=further, previous=state.basis, reached=basis)


def _energies_only(engine: Any, problem: Problem, state: State) -> State:
    """Measure the start, for weightings that need energies before they can weigh."""
    if not any(track.asked.settles for track in state.tracks):
        return state
    look = problem.look(engine, state.weighting, state.basis, state.basis)

    def visit(block: Any, local: Local) -> tuple[Local, None]:
        codes, seen = look.stay(block, local.codes)
        energies = look.penalised(block, codes, look.energies(block, codes, seen))
        return replace(local, energies=energies), None

    return replace(state, locals=engine.sweep(visit, state.locals)[0])


def _follow(engine: Any, problem: Problem, state: State, *, gated: int, freeze: bool) -> State:
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


def _profiles(engine: Any, problem: Problem, state: State, members: list[int]) -> list[Profile]:
    """How the energies of some members are spread."""
    index = on_device_of(state.basis, members)

    def energies(local: Local) -> Array:
        return namespace(local.energies).take(local.energies, index, axis=0)

    return engine.profiles(state.locals, problem.loss.degree, energies)


def _opened(engine: Any, problem: Problem, state: State) -> State:
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

    def visit(block: Any, local: Local) -> tuple[Local, Tally]:
        sizes = block.sizes(problem.loss.degree) if weighting.relative else None
        return local, weighting.weigh(local.energies, block.mass, sizes).tally

    tally = engine.sweep(visit, state.locals, data=False)[1]
    readings = _readings(problem, weighting, tally, state.previous)
    for track, found in zip(state.tracks, readings, strict=True):
        if track.asked.settles:
            track.reading = found


def _finish(
    engine: Any, problem: Problem, state: State, n_iter: int, converged: list[bool], tol: float
) -> dict[int, Fitted]:
    """What finished members have become, with the best codes for their basis.

    Importances are those the basis was learned with: the last word on the codes may fit a
    sample exactly that had no more say than others.
    """
    weighting = state.weighting
    importances = _importances(engine, problem, state)
    for track in state.tracks:
        track.ahead = 0.0
    if tol > 0:
        look = problem.look(engine, weighting, state.basis, state.basis)

        def visit(block: Any, local: Local) -> tuple[Local, Statistics]:
            codes, seen = look.encode(block, weighting)
            after = look.row_values(block, codes, seen, weighting)
            before = look.row_values(block, *look.stay(block, local.codes), weighting)
            # Where the loss is not convex in the codes, encoding may end in a worse minimum.
            rounding = max(1e-12, 8 * eps(codes)) * block.sizes(problem.loss.degree)
            worse = after > (1 + 1e-6) * before + rounding
            codes = namespace(codes).where(worse[:, :, None], local.codes, codes)
            codes, seen = look.stay(block, codes)
            return look.measure(block, replace(local, codes=codes), weighting, seen)

        state = _recorded(engine, problem, state, visit)[0]
    codes = engine.collect(state.locals, "codes")
    weighed = engine.collect(state.locals, "energies")
    energies = engine.collect(state.locals, "losses") if problem.pays else weighed
    mixes = problem.structure.mixes_samples
    mixing = engine.collect(state.locals, "mixing") if mixes else None
    _assert_finite(codes, state.basis, energies)
    return {
        track.member: Fitted(
            codes[j, ...],
            state.basis[j, ...],
            energies[j, ...],
            importances[j, ...],
            track.weighting,
            track.values,
            track.levels[-1],
            n_iter,
            converged[j],
            weighed[j, ...],
            track.basis_paid,
            None if mixing is None else mixing[j, ...],
        )
        for j, track in enumerate(state.tracks)
    }


def _importances(engine: Any, problem: Problem, state: State) -> Array:
    """Importance of every sample; where weights belong to entries, their share by row."""
    if not state.weighting.per_entry:
        energies = engine.collect(state.locals, "energies")
        sizes = engine.row_sizes(problem.loss.degree) if state.weighting.relative else None
        return state.weighting.importances(energies, engine.mass, sizes)
    weights = engine.collect(state.locals, "row_weights")
    return weights / namespace(weights).sum(weights, axis=-1, keepdims=True)


def _assert_finite(*arrays: Array) -> None:
    for array in arrays:
        xp = namespace(array)
        if not xp.all(xp.isfinite(array)):
            raise FloatingPointError(
                "the factorisation left the range of its floating-point numbers. Give X as "
                "float64, or scale its features to comparable sizes."
            )
