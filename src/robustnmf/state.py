"""What a fit is about: the problem, where it starts, where it stands, what it becomes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from robustnmf.arrays import Array, as_float64, at_least, at_most, column, namespace, on_device_of
from robustnmf.losses import Loss
from robustnmf.passes import DivergencePass, EntryPass, GramPass, MaskedPass, Pass, Statistics
from robustnmf.solvers import Penalty, Solver
from robustnmf.structures import Structure
from robustnmf.weightings import Batch, EnergyHistogram, ObjectiveSums, WarmupWeights, Weighting

WINDOW = 10
REST = 0.01
CIRCLE = 12
"""Averaging window in passes: cancels limit cycles whose period divides 12."""

PATIENCE = 5
WARMUP_PASSES = 20


class ObjectiveValue(NamedTuple):
    """Objective, shifted objective (zero for a perfect fit), and the penalty of the basis."""

    value: float
    shifted_objective: float
    basis_penalty_value: float


class ElasticNet(NamedTuple):
    """Elastic-net penalty of the entries of a factor f, ``lasso sum f + ridge/2 sum f^2``.

    In the units in which the gradient of the loss is split.
    """

    lasso: float = 0.0
    ridge: float = 0.0


NO_PENALTY = ElasticNet()


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
    codes_penalty: ElasticNet = NO_PENALTY
    basis_penalty: ElasticNet = NO_PENALTY

    def hold(self, basis: Array) -> Array:
        """The basis (members, k, features) with its fixed rows as they must be."""
        if self.fixed is None:
            return basis
        xp = namespace(basis)
        count, features = self.fixed.shape
        held = xp.broadcast_to(self.fixed, (basis.shape[0], count, features))
        return xp.concat([held, basis[:, count:, :]], axis=1)

    def make_pass(self, engine: Any, weighting: Batch, basis: Array, previous: Array) -> Pass:
        """The pass over the data of an engine for these bases."""
        pass_type = self.pass_type(weighting.per_entry, engine.complete)
        overlap_penalty = self.structure.overlap_penalty(basis)
        penalty = Penalty(self.loss.unit, self.loss.degree, *self.codes_penalty, overlap_penalty)
        update = self.update(penalty.curved)
        plain = self.solver.multiplies and update.keywords["exponent"] == 1.0
        return pass_type(self.loss, update, basis, previous, penalty, self.solver.quadratic, plain)

    def pass_type(self, per_entry: bool, complete: bool) -> type[Pass]:
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

    def needs_no_host_decisions(self, members: list[MemberProgress]) -> bool:
        """Whether passes follow each other with nothing to decide in between."""
        return not self.solver.extrapolates and not any(
            member.requested_weighting.has_auto for member in members
        )

    @property
    def has_penalty(self) -> bool:
        """Whether energies are more than the loss."""
        return any(self.codes_penalty) or self.structure.penalises_overlap

    def update(self, curved: bool) -> partial:
        """Step of a factor; a smaller exponent than the loss allows descends as well."""
        exponent = self.loss.curved_exponent if curved else self.loss.exponent
        return partial(self.solver.step, exponent=exponent * self.structure.exponent)

    def basis_step(
        self, engine: Any, block_states: Any, basis: Array, weighting: Batch, statistics: Statistics
    ) -> tuple[Any, Array]:
        """New local states and basis from what a pass has gathered."""
        terms = statistics.terms()
        xp = namespace(basis)
        ridge = xp.zeros_like(basis[:, :, 0])
        lasso: Array | float = 0.0
        if self.structure.penalises_overlap:
            ridge = self.structure.ridge(basis, statistics.codes_gram)
        if any(self.basis_penalty):
            # The weighted sums as they would be with the gradient of phi, times what makes
            # phi a sum; where that is beyond all bounds, what is paid is as good as nothing.
            objective_sums = statistics.objective_sums
            scale = statistics.log_scale - weighting.log_normaliser(objective_sums)
            scale = scale + weighting.log_units(objective_sums)[0]
            by = xp.astype(xp.exp(at_most(scale, 0.0)), basis.dtype)
            paid = xp.astype(xp.exp(-at_least(scale, 0.0)), basis.dtype)
            terms = terms.scaled(by[:, :, None])
            ridge = by * ridge + self.basis_penalty.ridge * paid
            lasso = self.basis_penalty.lasso * paid[:, :, None]
        curved = self.structure.penalises_overlap or self.basis_penalty.ridge > 0
        if self.structure.penalises_overlap or any(self.basis_penalty):
            terms = terms.penalised(lasso, ridge)
        if self.fixed is not None:
            terms = replace(terms, fixed=self.fixed.shape[0])
        block_states, basis = self.structure.step(
            engine, block_states, basis, terms, self.update(curved)
        )
        return block_states, self.hold(basis)

    def basis_penalty_value(
        self, weighting: Batch, objective_sums: ObjectiveSums, basis: Array
    ) -> tuple[Array, Array]:
        """What the basis adds to value and level (members, 1)."""
        lasso, ridge = self.basis_penalty
        xp = namespace(basis)
        if not any(self.basis_penalty):
            return (xp.zeros_like(objective_sums.shift),) * 2
        basis = as_float64(basis)
        entries = lasso * basis + 0.5 * ridge * basis**2
        paid = self.loss.unit * xp.sum(entries, axis=(1, 2))[:, None]
        value, shifted_objective = (
            xp.exp(-unit) * paid for unit in weighting.log_units(objective_sums)
        )
        return value, shifted_objective


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

        codes = engine.map_blocks(again, self.codes, data=False)[0]
        mixing = self.mixing and engine.map_blocks(again, self.mixing, data=False)[0]
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

    ``shifted_objective`` is the last objective less a constant that makes it zero for a perfect
    fit. Members are compared by it: for large parameters the constant takes all digits of phi.
    ``penalised_energies`` are the energies with the penalty of the codes. ``basis_penalty_value``
    is the penalty of the basis, a part of the shifted objective.
    """

    codes: Array
    basis: Array
    energies: Array
    importances: Array
    weighting: Weighting
    history: list[float]
    shifted_objective: float
    n_iter: int
    converged: bool
    penalised_energies: Array
    basis_penalty_value: float
    mixing: Array | None = None


@dataclass
class MemberProgress:
    """What is remembered of one member from pass to pass.

    Until ``asked`` has its automatic parameter frozen, ``weighting`` follows the
    energies; the objective is not fixed yet and its history starts over.

    ``steps`` counts the steps of the basis since the member last stood still, and ``ahead`` is
    by how much of its last step the basis has run on before the present pass.
    """

    index: int
    requested_weighting: Weighting
    weighting: Weighting
    values: list[float] = field(default_factory=list)
    shifted_objectives: list[float] = field(default_factory=list)
    medians: list[float] = field(default_factory=list)
    warmup_passes_done: int = 0
    objective: ObjectiveValue | None = None
    steps: int = 0
    momentum: float = 0.0

    def record(self, found: ObjectiveValue) -> bool:
        """Note the objective after a pass; whether the member must go back to where it was.

        It must where running on has raised the objective. Levels are compared, which have the
        digits that constants take from values.
        """
        back = (
            self.momentum > 0
            and self.objective is not None
            and not found.shifted_objective <= self.objective.shifted_objective
        )
        if back:
            self.steps = 0
        else:
            self.objective = found
        assert self.objective is not None
        self.values.append(self.objective.value)
        self.shifted_objectives.append(self.objective.shifted_objective)
        return back

    def restart_history(self) -> None:
        """Start the history with what was read last."""
        assert self.objective is not None
        self.values[:], self.shifted_objectives[:] = (
            [self.objective.value],
            [self.objective.shifted_objective],
        )

    @property
    def basis_penalty_value(self) -> float:
        """What the basis pays, as a part of the level."""
        return self.objective.basis_penalty_value if self.objective else 0.0

    def update_momentum(self) -> None:
        """Go further than the step that the basis has just taken, each time by more of it."""
        if isinstance(self.weighting, WarmupWeights) or (
            self.requested_weighting.has_auto and self.requested_weighting.per_entry
        ):
            return  # no objective to go further for, or none that is known again at once
        self.momentum = self.steps / (self.steps + PATIENCE)
        self.steps += 1

    def update_auto_parameters(
        self, histogram: EnergyHistogram, *, warmup_passes: int, freeze: bool
    ) -> None:
        """Read automatic parameters off the energies; freeze them once these rest."""
        self.values.clear()
        self.shifted_objectives.clear()
        if (
            self.requested_weighting.needs_warmup
            and self.warmup_passes_done < warmup_passes
            and not freeze
        ):
            self.weighting = WarmupWeights.at(histogram, self.warmup_passes_done / warmup_passes)
            self.warmup_passes_done += 1
            return
        median = histogram.typical
        self.medians.append(median)
        self.weighting = self.requested_weighting.resolve_auto(histogram)
        if freeze or self._is_stable():
            self.requested_weighting = self.weighting
            # What was measured under other parameters is no bar for the objective from here on.
            self.momentum, self.steps, self.objective = 0.0, 0, None

    def _is_stable(self) -> bool:
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

    def has_converged(self, tol: float) -> bool:
        """Whether the last passes each lowered the objective by no more than tol of it."""
        if tol <= 0 or len(self.shifted_objectives) <= WINDOW:
            return False
        before, now = self.shifted_objectives[-1 - WINDOW], self.shifted_objectives[-1]
        return before - now <= WINDOW * tol * before


@dataclass(frozen=True)
class State:
    """The members still in the batch, and where they stand between passes."""

    members: list[MemberProgress]
    block_states: Any
    basis: Array
    previous: Array
    basis_before_extrapolation: Array
    """The basis before it ran on; the same where it did not."""
    weighting: Batch
    """The weightings in force."""

    @classmethod
    def at(cls, members: list[MemberProgress], block_states: Any, basis: Array) -> State:
        """Before the first pass."""
        return cls(members, block_states, basis, basis, basis, _in_force(members, basis))

    def reweighted(self) -> State:
        """The same with what the tracks now weigh by."""
        return replace(self, weighting=_in_force(self.members, self.basis))

    @property
    def momentum(self) -> Array:
        """By how much of their last step the members run on (members, 1, 1)."""
        values = [member.momentum for member in self.members]
        return column(values, self.basis, self.basis.dtype, ndim=3)

    def keep(self, engine: Any, members: list[int]) -> State:
        """The state of these members alone; nothing is copied where that is all of them."""
        if len(members) == len(self.members):
            return self
        xp = namespace(self.basis)
        index = on_device_of(self.basis, members)
        return State(
            [self.members[j] for j in members],
            engine.keep(self.block_states, index),
            xp.take(self.basis, index, axis=0),
            xp.take(self.previous, index, axis=0),
            xp.take(self.basis_before_extrapolation, index, axis=0),
            self.weighting.keep(members),
        )

    def restored(self, engine: Any, members: list[bool], before: State) -> State:
        """The state with some members where they were before this pass."""
        xp = namespace(self.basis)
        chosen = on_device_of(self.basis, members)
        basis = xp.where(chosen[:, None, None], before.previous, self.basis)
        return replace(
            self,
            block_states=engine.restored(self.block_states, chosen, before.block_states),
            basis=basis,
        )


def _in_force(members: list[MemberProgress], like: Array) -> Batch:
    return Batch([member.weighting for member in members], like)
