"""What a fit is about: the problem, where it starts, where it stands, what it becomes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from robustnmf.arrays import Array, at_least, at_most, column, namespace, on_device_of, wide
from robustnmf.losses import Loss
from robustnmf.passes import DivergencePass, EntryPass, GramPass, MaskedPass, Pass, Statistics
from robustnmf.solvers import Penalty, Solver
from robustnmf.structures import Structure
from robustnmf.weightings import Batch, Gate, Profile, Tally, Weighting

WINDOW = 10
REST = 0.01
CIRCLE = 12
"""Passes after which circles of two, three, four, six or twelve are at their beginning."""

PATIENCE = 5
GATED = 20


class Reading(NamedTuple):
    """The objective at some point, the same up to constants, and the part the basis pays."""

    value: float
    level: float
    basis_paid: float


class Paid(NamedTuple):
    """What the entries of a factor f pay, ``lasso sum f + ridge/2 sum f^2``.

    In the units in which the gradient of the loss is split.
    """

    lasso: float = 0.0
    ridge: float = 0.0


NOTHING = Paid()


@dataclass(frozen=True)
class Problem:
    """The parts of a method that all members share.

    ``fixed`` (components, features) are the first rows of every basis, held as they are:
    solvers move the others alone, or minimise a majorant that is separable over the entries
    of the basis, so that leaving some of them where they were descends all the same.

    What the codes of a sample pay is a part of its energy, so that its weight applies to both.
    What the basis pays is added to phi, which is first made a sum over samples.
    """

    loss: Loss
    structure: Structure
    solver: Solver
    fixed: Array | None = None
    codes_pay: Paid = NOTHING
    basis_pays: Paid = NOTHING

    def hold(self, basis: Array) -> Array:
        """The basis (members, k, features) with its fixed rows as they must be."""
        if self.fixed is None:
            return basis
        xp = namespace(basis)
        count, features = self.fixed.shape
        held = xp.broadcast_to(self.fixed, (basis.shape[0], count, features))
        return xp.concat([held, basis[:, count:, :]], axis=1)

    def look(self, engine: Any, weighting: Batch, basis: Array, previous: Array) -> Pass:
        """The pass over the data of an engine for these bases."""
        kind = self.kind(weighting.per_entry, engine.complete)
        company = self.structure.company(basis)
        penalty = Penalty(self.loss.unit, self.loss.degree, *self.codes_pay, company)
        update = self.update(penalty.curved)
        plain = self.solver.multiplies and update.keywords["exponent"] == 1.0
        return kind(self.loss, update, basis, previous, penalty, self.solver.quadratic, plain)

    def kind(self, per_entry: bool, complete: bool) -> type[Pass]:
        """The pass for weights of entries or of rows: by Gram matrices where they say all."""
        if per_entry:
            return EntryPass
        if not self.loss.quadratic:
            return DivergencePass
        return GramPass if complete else MaskedPass

    @property
    def extrapolates(self) -> bool:
        """Whether the basis runs on; a mixture of samples stays where its mixing is."""
        return self.solver.extrapolates and not self.structure.mixes_samples

    def steady(self, tracks: list[Track]) -> bool:
        """Whether passes follow each other with nothing to decide in between."""
        return not self.solver.extrapolates and not any(track.asked.settles for track in tracks)

    @property
    def pays(self) -> bool:
        """Whether energies are more than the loss."""
        return any(self.codes_pay) or self.structure.pays

    def update(self, curved: bool) -> partial:
        """Step of a factor; a smaller exponent than the loss allows descends as well."""
        exponent = self.loss.curved_exponent if curved else self.loss.exponent
        return partial(self.solver.step, exponent=exponent * self.structure.exponent)

    def basis_step(
        self, engine: Any, locals_: Any, basis: Array, weighting: Batch, statistics: Statistics
    ) -> tuple[Any, Array]:
        """New local states and basis from what a pass has gathered."""
        terms = statistics.terms()
        xp = namespace(basis)
        ridge = xp.zeros_like(basis[:, :, 0])
        lasso: Array | float = 0.0
        if self.structure.pays:
            ridge = self.structure.ridge(basis, statistics.codes_gram)
        if any(self.basis_pays):
            # The weighted sums as they would be with the gradient of phi, times what makes
            # phi a sum; where that is beyond all bounds, what is paid is as good as nothing.
            tally = statistics.tally
            scale = statistics.log_scale - weighting.log_normaliser(tally)
            scale = scale + weighting.log_units(tally)[0]
            by = xp.astype(xp.exp(at_most(scale, 0.0)), basis.dtype)
            paid = xp.astype(xp.exp(-at_least(scale, 0.0)), basis.dtype)
            terms = terms.scaled(by[:, :, None])
            ridge = by * ridge + self.basis_pays.ridge * paid
            lasso = self.basis_pays.lasso * paid[:, :, None]
        curved = self.structure.pays or self.basis_pays.ridge > 0
        if self.structure.pays or any(self.basis_pays):
            terms = terms.penalised(lasso, ridge)
        if self.fixed is not None:
            terms = replace(terms, fixed=self.fixed.shape[0])
        locals_, basis = self.structure.step(engine, locals_, basis, terms, self.update(curved))
        return locals_, self.hold(basis)

    def basis_paid(self, weighting: Batch, tally: Tally, basis: Array) -> tuple[Array, Array]:
        """What the basis adds to value and level (members, 1)."""
        lasso, ridge = self.basis_pays
        xp = namespace(basis)
        if not any(self.basis_pays):
            return (xp.zeros_like(tally.shift),) * 2
        basis = wide(basis)
        entries = lasso * basis + 0.5 * ridge * basis**2
        paid = self.loss.unit * xp.sum(entries, axis=(1, 2))[:, None]
        value, level = (xp.exp(-unit) * paid for unit in weighting.log_units(tally))
        return value, level


@dataclass(frozen=True)
class Start:
    """Where the members start: for every block codes (members, rows, k), and basis (members, k, m).

    ``mixing`` (members, rows, k) is the share of every sample in the basis, for structures
    that mix samples; ``basis`` is then its product with X. A fit uses up the codes of its start.
    """

    codes: list[Array]
    basis: Array
    mixing: list[Array] | None = None

    def repeated(self, engine: Any, times: int) -> Start:
        """All members again and again."""
        if times == 1:
            return self
        tile = namespace(self.basis).tile

        def again(block: Any, part: Array) -> tuple[Array, None]:
            return tile(part, (times, 1, 1)), None

        codes = engine.sweep(again, self.codes, data=False)[0]
        mixing = self.mixing and engine.sweep(again, self.mixing, data=False)[0]
        return Start(codes, tile(self.basis, (times, 1, 1)), mixing)

    def part(self, members: slice) -> Start:
        """The start of some members alone."""
        codes, mixing = (
            part and [rows[members, ...] for rows in part] for part in (self.codes, self.mixing)
        )
        return Start(codes or [], self.basis[members, ...], mixing)


@dataclass(frozen=True)
class Fitted:
    """One member, fitted; everything in the units of the engine.

    ``level`` is the last objective up to the constants that make it zero for a perfect fit:
    what to compare members by, since the constants may be all there is to see of phi.
    ``weighed`` are the energies with what codes pay, ``basis_paid`` is what the basis pays, as a
    part of the level.
    """

    codes: Array
    basis: Array
    energies: Array
    importances: Array
    weighting: Weighting
    history: list[float]
    level: float
    n_iter: int
    converged: bool
    weighed: Array
    basis_paid: float
    mixing: Array | None = None


@dataclass
class Track:
    """What is remembered of one member from pass to pass.

    Until ``asked`` has its automatic parameter frozen, ``weighting`` follows the
    energies; the objective is not fixed yet and its history starts over.

    ``steps`` counts the steps of the basis since the member last stood still, and ``ahead`` is
    by how much of its last step the basis has run on before the present pass.
    """

    member: int
    asked: Weighting
    weighting: Weighting
    values: list[float] = field(default_factory=list)
    levels: list[float] = field(default_factory=list)
    medians: list[float] = field(default_factory=list)
    followed: int = 0
    reading: Reading | None = None
    steps: int = 0
    ahead: float = 0.0

    def record(self, found: Reading) -> bool:
        """Note the objective after a pass; whether the member must go back to where it was.

        It must where running on has raised the objective. Levels are compared, which have the
        digits that constants take from values.
        """
        back = self.ahead > 0 and self.reading is not None and not found.level <= self.reading.level
        if back:
            self.steps = 0
        else:
            self.reading = found
        assert self.reading is not None
        self.values.append(self.reading.value)
        self.levels.append(self.reading.level)
        return back

    def note(self) -> None:
        """Start the history with what was read last."""
        assert self.reading is not None
        self.values[:], self.levels[:] = [self.reading.value], [self.reading.level]

    @property
    def basis_paid(self) -> float:
        """What the basis pays, as a part of the level."""
        return self.reading.basis_paid if self.reading else 0.0

    def run_on(self) -> None:
        """Go further than the step that the basis has just taken, each time by more of it."""
        if isinstance(self.weighting, Gate) or (self.asked.settles and self.asked.per_entry):
            return  # no objective to go further for, or none that is known again at once
        self.ahead = self.steps / (self.steps + PATIENCE)
        self.steps += 1

    def follow(self, profile: Profile, *, gated: int, freeze: bool) -> None:
        """Read automatic parameters off the energies; freeze them once these rest."""
        self.values.clear()
        self.levels.clear()
        if self.asked.gated and self.followed < gated and not freeze:
            self.weighting = Gate.at(profile, self.followed / gated)
            self.followed += 1
            return
        median = profile.typical
        self.medians.append(median)
        self.weighting = self.asked.settle(profile)
        if freeze or self._rests():
            self.asked = self.weighting
            # What was measured under other parameters is no bar for the objective from here on.
            self.ahead, self.steps, self.reading = 0.0, 0, None

    def _rests(self) -> bool:
        """Whether typical energies stay where they are, or go round in a circle."""
        if len(self.medians) <= WINDOW:
            return False
        before, now = self.medians[-1 - WINDOW], self.medians[-1]
        if abs(before - now) <= REST * before:
            return True
        if len(self.medians) < 2 * CIRCLE:
            return False
        before, now = (
            sum(part) for part in (self.medians[-2 * CIRCLE : -CIRCLE], self.medians[-CIRCLE:])
        )
        return abs(before - now) <= REST * before

    def stalled(self, tol: float) -> bool:
        """Whether the last passes each lowered the objective by no more than tol of it."""
        if tol <= 0 or len(self.levels) <= WINDOW:
            return False
        before, now = self.levels[-1 - WINDOW], self.levels[-1]
        return before - now <= WINDOW * tol * before


@dataclass(frozen=True)
class State:
    """The members still in the batch, and where they stand between passes."""

    tracks: list[Track]
    locals: Any
    basis: Array
    previous: Array
    reached: Array
    """The basis before it ran on; the same where it did not."""
    weighting: Batch
    """The weightings in force."""

    @classmethod
    def at(cls, tracks: list[Track], locals_: Any, basis: Array) -> State:
        """Before the first pass."""
        return cls(tracks, locals_, basis, basis, basis, _in_force(tracks, basis))

    def reweighted(self) -> State:
        """The same with what the tracks now weigh by."""
        return replace(self, weighting=_in_force(self.tracks, self.basis))

    @property
    def ahead(self) -> Array:
        """By how much of their last step the members run on (members, 1, 1)."""
        values = [track.ahead for track in self.tracks]
        return column(values, self.basis, self.basis.dtype, ndim=3)

    def keep(self, engine: Any, members: list[int]) -> State:
        """The state of these members alone; nothing is copied where that is all of them."""
        if len(members) == len(self.tracks):
            return self
        xp = namespace(self.basis)
        index = on_device_of(self.basis, members)
        return State(
            [self.tracks[j] for j in members],
            engine.keep(self.locals, index),
            xp.take(self.basis, index, axis=0),
            xp.take(self.previous, index, axis=0),
            xp.take(self.reached, index, axis=0),
            self.weighting.keep(members),
        )

    def restored(self, engine: Any, members: list[bool], before: State) -> State:
        """The state with some members where they were before this pass."""
        xp = namespace(self.basis)
        chosen = on_device_of(self.basis, members)
        basis = xp.where(chosen[:, None, None], before.previous, self.basis)
        return replace(
            self, locals=engine.restored(self.locals, chosen, before.locals), basis=basis
        )


def _in_force(tracks: list[Track], like: Array) -> Batch:
    return Batch([track.weighting for track in tracks], like)
