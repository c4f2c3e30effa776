"""Types of the fit loop: start, state between passes, progress of a member, result."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from robustnmf.arrays import Array, Block, column, namespace, on_device_of
from robustnmf.engine import Engine
from robustnmf.weightings import Batch, EnergyHistogram, WarmupWeights, Weighting

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


@dataclass(frozen=True)
class Start:
    """Start of all members: codes (members, rows, k) for every block, and basis (members, k, m).

    ``mixing`` (members, rows, k) are the coefficients of every sample in the basis, for structures
    that mix samples; ``basis`` is then its product with X. A fit empties the lists of its start
    to free their memory.
    """

    codes: list[Array]
    basis: Array
    mixing: list[Array] | None = None

    def repeated(self, engine: Engine, times: int) -> Start:
        """Return a start in which all members are repeated ``times`` times."""
        if times == 1:
            return self
        tile = namespace(self.basis).tile

        def repeat(block: Block, part: Array) -> tuple[Array, None]:
            return tile(part, (times, 1, 1)), None

        codes = engine.map_blocks(repeat, self.codes, data=False)[0]
        mixing = self.mixing and engine.map_blocks(repeat, self.mixing, data=False)[0]
        return Start(codes, tile(self.basis, (times, 1, 1)), mixing)

    def part(self, members: slice) -> Start:
        """Return the start of consecutive members."""
        codes, mixing = (
            part and [rows[members, ...] for rows in part] for part in (self.codes, self.mixing)
        )
        return Start(codes or [], self.basis[members, ...], mixing)


@dataclass(frozen=True)
class Fitted:
    """Results of one fitted member, in the units of the engine.

    ``shifted_objective`` is the last objective minus a constant, so that it is zero for a perfect
    fit. Members are compared by it: for large parameters the constant would lose all digits of phi.
    ``penalised_energies`` are the energies with the penalty of the codes. ``basis_penalty_value``
    is the penalty of the basis, which is included in the shifted objective.
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
    """Weighting, history and momentum of one member from pass to pass.

    Until the automatic parameters of ``requested_weighting`` are frozen, ``weighting`` is updated
    from the energies after each pass; the objective is not fixed yet and its history is restarted.

    ``steps`` is the number of basis updates since the last restart of the extrapolation, and
    ``momentum`` is the share of its last step by which the basis was extrapolated before this pass.
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

    def record(self, objective: ObjectiveValue) -> bool:
        """Record the objective after a pass; return whether the pass must be undone.

        It must be undone if extrapolation has raised the objective. Shifted objectives are
        compared, because the constant in the objective can hide a difference.
        """
        must_undo = (
            self.momentum > 0
            and self.objective is not None
            and not objective.shifted_objective <= self.objective.shifted_objective
        )
        if must_undo:
            self.steps = 0
        else:
            self.objective = objective
        assert self.objective is not None
        self.values.append(self.objective.value)
        self.shifted_objectives.append(self.objective.shifted_objective)
        return must_undo

    def restart_history(self) -> None:
        """Start the history over with the last objective."""
        assert self.objective is not None
        self.values[:] = [self.objective.value]
        self.shifted_objectives[:] = [self.objective.shifted_objective]

    @property
    def basis_penalty_value(self) -> float:
        """Penalty of the basis, in units of the shifted objective."""
        return self.objective.basis_penalty_value if self.objective else 0.0

    def update_momentum(self) -> None:
        """Raise the momentum towards one: ``steps / (steps + PATIENCE)``."""
        if isinstance(self.weighting, WarmupWeights) or (
            self.requested_weighting.has_auto and self.requested_weighting.per_entry
        ):
            return  # without an objective, it is unknown whether extrapolation helps
        self.momentum = self.steps / (self.steps + PATIENCE)
        self.steps += 1

    def update_auto_parameters(
        self, histogram: EnergyHistogram, *, warmup_passes: int, freeze: bool
    ) -> None:
        """Estimate automatic parameters from the energies; freeze them if these are stable."""
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
        self.medians.append(histogram.typical)
        self.weighting = self.requested_weighting.resolve_auto(histogram)
        if freeze or self._is_stable():
            self.requested_weighting = self.weighting
            # Objectives under different parameters cannot be compared.
            self.momentum, self.steps, self.objective = 0.0, 0, None

    def _is_stable(self) -> bool:
        """Return whether typical energies are constant, or in a limit cycle."""
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
        """Return whether the last passes have lowered the objective by at most tol on average."""
        if tol <= 0 or len(self.shifted_objectives) <= WINDOW:
            return False
        before, now = self.shifted_objectives[-1 - WINDOW], self.shifted_objectives[-1]
        return before - now <= WINDOW * tol * before


@dataclass(frozen=True)
class State:
    """The members still in the batch, with their factors between passes."""

    members: list[MemberProgress]
    block_states: Any
    basis: Array
    previous: Array
    basis_before_extrapolation: Array
    """The basis before extrapolation; equal to ``basis`` if there was none."""
    weighting: Batch
    """The current weightings."""

    @classmethod
    def at(cls, members: list[MemberProgress], block_states: Any, basis: Array) -> State:
        """Build the state before the first pass."""
        weighting = Batch([member.weighting for member in members], basis)
        return cls(members, block_states, basis, basis, basis, weighting)

    def reweighted(self) -> State:
        """Return the state with the current weightings of its members."""
        weightings = [member.weighting for member in self.members]
        return replace(self, weighting=Batch(weightings, self.basis))

    @property
    def momentum(self) -> Array:
        """Share of the last step by which members are extrapolated (members, 1, 1)."""
        values = [member.momentum for member in self.members]
        return column(values, self.basis, self.basis.dtype, ndim=3)

    def keep(self, engine: Engine, members: list[int]) -> State:
        """Return the state of the members with these indices; no copy if these are all members."""
        if len(members) == len(self.members):
            return self
        take, index = namespace(self.basis).take, on_device_of(self.basis, members)
        return State(
            [self.members[j] for j in members],
            engine.keep(self.block_states, index),
            take(self.basis, index, axis=0),
            take(self.previous, index, axis=0),
            take(self.basis_before_extrapolation, index, axis=0),
            self.weighting.keep(members),
        )

    def restored(self, engine: Engine, members: list[bool], before: State) -> State:
        """Return the state with the members in a mask as they were before this pass."""
        chosen = on_device_of(self.basis, members)
        block_states = engine.restored(self.block_states, chosen, before.block_states)
        basis = namespace(self.basis).where(chosen[:, None, None], before.previous, self.basis)
        return replace(self, block_states=block_states, basis=basis)
