"""What a fit is about: the problem, where it starts, where it stands, what it becomes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from robustnmf.arrays import Array, namespace
from robustnmf.losses import Loss
from robustnmf.passes import DivergencePass, EntryPass, GramPass, MaskedPass, Pass
from robustnmf.solvers import Multiplicative, Update
from robustnmf.structures import Structure
from robustnmf.weightings import Batch, Weighting

WINDOW = 10
REST = 0.01


@dataclass(frozen=True)
class Problem:
    """The parts of a method that all members share.

    ``fixed`` (components, features) are the first rows of every basis, held as they are:
    multiplicative updates minimise a majorant that is separable over the entries of the
    basis, so leaving some of them where they were descends all the same.
    """

    loss: Loss
    structure: Structure
    solver: Multiplicative
    fixed: Array | None = None

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
        return kind(self.loss, self.update, basis, previous)

    def kind(self, per_entry: bool, complete: bool) -> type[Pass]:
        """The pass for weights of entries or of rows: by Gram matrices where they say all."""
        if per_entry:
            return EntryPass
        if not self.loss.quadratic:
            return DivergencePass
        return GramPass if complete else MaskedPass

    @property
    def update(self) -> Update:
        """Step of a factor; a smaller exponent than the loss allows descends as well."""
        exponent = self.loss.exponent * self.structure.exponent
        return partial(self.solver.step, exponent=exponent)


@dataclass(frozen=True)
class Start:
    """Where the members start: codes (members, n, k) and basis (members, k, m).

    ``mixing`` (members, n, k) is the share of every sample in the basis, for structures
    that mix samples; ``basis`` is then its product with X.
    """

    codes: Array
    basis: Array
    mixing: Array | None = None


@dataclass(frozen=True)
class Fitted:
    """One member, fitted; everything in the units of the engine.

    ``level`` is the last objective up to the constants that make it zero for a perfect fit:
    what to compare members by, since the constants may be all there is to see of phi.
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
    mixing: Array | None = None


@dataclass
class Track:
    """What is remembered of one member from pass to pass.

    Until ``asked`` has its automatic parameter frozen, ``weighting`` follows the
    energies; the objective is not fixed yet and its history starts over.
    """

    member: int
    asked: Weighting
    weighting: Weighting
    values: list[float] = field(default_factory=list)
    levels: list[float] = field(default_factory=list)
    medians: list[float] = field(default_factory=list)

    def record(self, value: float, level: float) -> None:
        """Note the objective after a pass."""
        self.values.append(value)
        self.levels.append(level)

    def follow(self, median: float, *, freeze: bool) -> None:
        """Read the automatic parameter off the energies; freeze it once they rest."""
        self.values.clear()
        self.levels.clear()
        self.medians.append(median)
        self.weighting = self.asked.settle(median)
        past = self.medians[-1 - WINDOW : -WINDOW]
        if freeze or any(abs(before - median) <= REST * before for before in past):
            self.asked = self.weighting

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

    @cached_property
    def weighting(self) -> Batch:
        """The weightings in force."""
        return Batch([track.weighting for track in self.tracks], self.basis)

    def keep(self, engine: Any, members: list[int]) -> State:
        """The state of these members alone."""
        xp = namespace(self.basis)
        index = xp.asarray(members)
        return State(
            [self.tracks[j] for j in members],
            engine.keep(self.locals, index),
            xp.take(self.basis, index, axis=0),
            xp.take(self.previous, index, axis=0),
        )
