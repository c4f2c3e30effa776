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

from dataclasses import replace
from typing import Any

from robustnmf.arrays import Array, namespace, wide
from robustnmf.passes._approximation import ApproximationPass
from robustnmf.passes._statistics import Local, Statistics, total_per_member
from robustnmf.solvers import Ratio
from robustnmf.weightings import Batch, Tally


class EntryPass(ApproximationPass):
    """What it sees of a block is its approximation; weights belong to entries."""

    def move(self, block: Any, codes: Array, weighting: Batch) -> tuple[Array, Array]:
        data = block.values()
        weights = weighting.slope(self.loss.entries(data, codes @ self.previous))
        parts = self.loss.split(data, codes @ self.basis)
        back = namespace(data).matrix_transpose(self.basis)
        terms = Ratio(*(_weighted(weights, part) @ back for part in parts))
        return self.stay(block, self.update(codes, terms))

    def sums(self, block: Any, codes: Array, weights: Array, seen: Array) -> tuple[Array, Array]:
        negative, positive = self.loss.split(block.values(), seen)
        back = namespace(seen).matrix_transpose(codes)
        return back @ _weighted(weights, negative), back @ _weighted(weights, positive)

    def contributions(self, weighting: Batch, entries: Array) -> tuple[Array, Array]:
        return weighting.rho(entries), weighting.slope(entries)

    def weigh(
        self, block: Any, local: Local, weighting: Batch, seen: Array
    ) -> tuple[Local, Statistics, Array]:
        """Energies of a block, the tally of its entries, and their weights."""
        xp = namespace(seen)
        entries = self.loss.entries(block.values(), seen)
        mass = xp.astype(block.mass, seen.dtype)[:, None]
        weights = mass * weighting.slope(entries)
        total = total_per_member(mass * weighting.rho(entries))
        zero = xp.zeros_like(total)
        tally = Tally(zero, total, zero + xp.sum(block.mass) * seen.shape[-1])
        local = replace(
            local,
            energies=xp.sum(wide(entries), axis=-1),
            row_weights=xp.mean(wide(weights), axis=-1),
        )
        return local, Statistics(tally, zero, quadratic=False), weights


def _weighted(weights: Array, part: Array | None) -> Array:
    """Weighted part of the gradient, where None stands for ones."""
    return weights if part is None else weights * part
