"""The model and settings that all members of a fit share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from robustnmf.arrays import Array, as_float64, at_least, at_most, namespace
from robustnmf.engine import Engine
from robustnmf.loop.passes import (
    DivergencePass,
    EntryPass,
    GramPass,
    MaskedPass,
    Pass,
    ReweightedPass,
    Statistics,
)
from robustnmf.losses import Loss
from robustnmf.solvers import Penalty, Solver
from robustnmf.structures import Structure
from robustnmf.weightings import Batch, ObjectiveSums, Weighting


class ElasticNet(NamedTuple):
    """Elastic-net penalty of the entries of a factor f, ``lasso sum f + ridge/2 sum f^2``.

    Its units are the units of the parts of the gradient of the loss.
    """

    lasso: float = 0.0
    ridge: float = 0.0


NO_PENALTY = ElasticNet()


@dataclass(frozen=True)
class Problem:
    """The model and settings that all members share.

    ``fixed`` (components, features) are the first rows of every basis, which stay unchanged:
    solvers update only the others, or minimise a majorant that is separable over the entries
    of the basis, which decreases even if some entries stay unchanged.

    The penalty of the codes is included in the energy of a sample, so that its weight applies to
    both. The penalty of the basis is added to phi, after phi is converted to a sum over samples.
    """

    loss: Loss
    structure: Structure
    solver: Solver
    fixed: Array | None = None
    codes_penalty: ElasticNet = NO_PENALTY
    basis_penalty: ElasticNet = NO_PENALTY

    def hold(self, basis: Array) -> Array:
        """Replace the first rows of the basis (members, k, features) by the fixed components."""
        if self.fixed is None:
            return basis
        xp = namespace(basis)
        count, features = self.fixed.shape
        fixed = xp.broadcast_to(self.fixed, (basis.shape[0], count, features))
        return xp.concat([fixed, basis[:, count:, :]], axis=1)

    def make_pass(self, engine: Engine, weighting: Batch, basis: Array, previous: Array) -> Pass:
        """Build the pass over the data of an engine for bases (members, k, features)."""
        pass_type = self.pass_type(weighting.per_entry, engine.complete)
        overlap_penalty = self.structure.overlap_penalty(basis)
        penalty = Penalty(self.loss.unit, self.loss.degree, *self.codes_penalty, overlap_penalty)
        update = self.update(penalty.curved)
        plain = self.solver.multiplies and update.keywords["exponent"] == 1.0
        return pass_type(
            self.loss, update, basis, previous, penalty, self.solver.quadratic, plain,
            engine.threads_of_a_block,
        )  # fmt: skip

    def pass_type(self, per_entry: bool, complete: bool) -> type[Pass]:
        """Choose the class of the pass by type of weights, loss, and completeness of the data."""
        if per_entry:
            return EntryPass
        if self.loss.weighs_entries and self.solver.quadratic:
            return ReweightedPass
        if not self.loss.quadratic:
            return DivergencePass
        return GramPass if complete else MaskedPass

    def fill_value(self, per_entry: bool = False) -> float:
        """Return the value of missing entries, in units of scale."""
        return self.pass_type(per_entry, complete=False).fill_value

    @property
    def extrapolates(self) -> bool:
        """Whether the basis is extrapolated; a mixture of samples is not."""
        return self.solver.extrapolates and not self.structure.mixes_samples

    def needs_no_host_decisions(self, weightings: Sequence[Weighting]) -> bool:
        """Return whether the host decides nothing between passes, so that they can be captured."""
        return not self.solver.extrapolates and not any(w.has_auto for w in weightings)

    @property
    def has_penalty(self) -> bool:
        """Whether energies include a penalty of the codes."""
        return any(self.codes_penalty) or self.structure.penalises_overlap

    def update(self, curved: bool) -> partial:
        """Return the update of a factor, with the exponent of multiplicative updates.

        A smaller exponent than the loss allows also lowers the objective.
        """
        exponent = self.loss.curved_exponent if curved else self.loss.exponent
        return partial(self.solver.step, exponent=exponent * self.structure.exponent)

    def basis_step(
        self,
        engine: Engine,
        block_states: Any,
        basis: Array,
        weighting: Batch,
        statistics: Statistics,
    ) -> tuple[Any, Array]:
        """Return new block states and basis (members, k, features) from the sums of a pass."""
        terms = statistics.terms()
        xp = namespace(basis)
        has_penalty = self.structure.penalises_overlap or any(self.basis_penalty)
        ridge = xp.zeros_like(basis[:, :, 0]) if has_penalty else None
        lasso: Array | float = 0.0
        if self.structure.penalises_overlap:
            ridge = self.structure.ridge(basis, statistics.codes_gram)
        if any(self.basis_penalty):
            # The weighted sums in the units in which phi is a sum over samples. If the factor
            # would overflow, the penalty is divided by it instead.
            objective_sums = statistics.objective_sums
            scale = statistics.log_scale - weighting.log_normaliser(objective_sums)
            scale = scale + weighting.log_units(objective_sums)[0]
            loss_factor = xp.astype(xp.exp(at_most(scale, 0.0)), basis.dtype)
            penalty_factor = xp.astype(xp.exp(-at_least(scale, 0.0)), basis.dtype)
            terms = terms.scaled(loss_factor[:, :, None])
            ridge = loss_factor * ridge + self.basis_penalty.ridge * penalty_factor
            lasso = self.basis_penalty.lasso * penalty_factor[:, :, None]
        curved = self.structure.penalises_overlap or self.basis_penalty.ridge > 0
        if has_penalty:
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
        """Compute the basis penalty (members, 1) in units of the objective and the shifted one."""
        lasso, ridge = self.basis_penalty
        xp = namespace(basis)
        if not any(self.basis_penalty):
            return (xp.zeros_like(objective_sums.shift),) * 2
        basis = as_float64(basis)
        entries = lasso * basis + 0.5 * ridge * basis**2
        penalty = self.loss.unit * xp.sum(entries, axis=(1, 2))[:, None]
        log_unit, shifted_log_unit = weighting.log_units(objective_sums)
        return xp.exp(-log_unit) * penalty, xp.exp(-shifted_log_unit) * penalty
