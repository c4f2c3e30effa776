r"""A pass with a weight for every entry.

Half-quadratic minimisation: one set of weights :math:`\Omega`, taken at the factors
that a cycle starts from, serves the update of the basis and then of the codes,

.. math::

    C \leftarrow C \odot \left(\frac{A^T (\Omega \odot N)}{A^T (\Omega \odot P)}\right)^e, \qquad
    A \leftarrow A \odot \left(\frac{(\Omega \odot N) C^T}{(\Omega \odot P) C^T}\right)^e

with N and P the parts of the gradient of the loss (X and A C for the squared error). Codes
move in the pass after the basis has; their weights are found again from the basis of the
pass before rather than kept, which would take as much memory as X.
"""

from __future__ import annotations

from typing import Any

from robustnmf.arrays import Array, namespace
from robustnmf.passes._approximation import ApproximationPass
from robustnmf.passes._statistics import Local, Statistics
from robustnmf.solvers import Ratio
from robustnmf.weightings import Batch, Tally


class EntryPass(ApproximationPass):
    """What it sees of a block is its approximation; weights belong to entries."""

    def move(self, block: Any, codes: Array, weighting: Batch) -> tuple[Array, Array]:
        data = block.values()
        before = block.approximation(codes, self.previous)
        weights = weighting.slope(self.loss.entries(data, before))
        parts = self.loss.split(data, block.approximation(codes, self.basis))
        weighted = (block.project_part(_weighted(weights, p), self.basis) for p in parts)
        negative, positive = weighted
        terms = Ratio(negative, self.paid(block, codes, positive), self.bound, present=self.present)
        return self.stay(block, self.update(codes, terms))

    def sums(self, block: Any, codes: Array, weights: Array, seen: Array) -> tuple[Array, Array]:
        negative, positive = self.loss.split(block.values(), seen)
        return (
            block.cross_part(codes, _weighted(weights, negative)),
            block.cross_part(codes, _weighted(weights, positive)),
        )

    def row_objective(
        self, block: Any, codes: Array, weighting: Batch, seen: Array
    ) -> tuple[Array, Array]:
        entries = self.loss.entries(block.values(), seen)
        values = block.row_sums(weighting.rho(entries))
        values = values + self.penalty.energies(block, codes) if self.penalty else values
        return values, weighting.slope(entries)

    def weigh(
        self, block: Any, local: Local, weighting: Batch, seen: Array
    ) -> tuple[Local, Statistics, Array]:
        """Energies of a block, the tally of its entries, and their weights."""
        xp = namespace(seen)
        values, slopes = self.row_objective(block, local.codes, weighting, seen)
        total = xp.sum(block.entry_mass * values, axis=-1, keepdims=True)
        zero = xp.zeros_like(total)
        tally = Tally(zero, total, zero + xp.sum(block.mass) * seen.shape[-1])
        weights = xp.astype(block.entry_mass, seen.dtype)[:, None] * slopes
        losses = self.energies(block, local.codes, seen)
        energies = self.penalised(block, local.codes, losses)
        row_weights = block.row_sums(weights) / seen.shape[-1]
        local = self.noted(local, losses, energies, row_weights=row_weights)
        return local, Statistics(tally, zero, quadratic=False), weights

    def row_weights(self, block: Any, weights: Array) -> Array:
        """Codes pay by the row, whatever the weights of its entries."""
        return namespace(weights).astype(block.entry_mass, weights.dtype)[:, None]


def _weighted(weights: Array, part: Array | None) -> Array:
    """Weighted part of the gradient, where None stands for ones."""
    return weights if part is None else weights * part
