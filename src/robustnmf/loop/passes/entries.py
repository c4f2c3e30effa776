r"""A pass with a weight for every entry.

Half-quadratic minimisation: the weights :math:`\Omega` at the factors at the start of a
cycle are used to update first the basis and then the codes,

.. math::

    C \leftarrow C \odot \left(\frac{A^T (\Omega \odot N)}{A^T (\Omega \odot P)}\right)^e, \qquad
    A \leftarrow A \odot \left(\frac{(\Omega \odot N) C^T}{(\Omega \odot P) C^T}\right)^e

with N and P the negative and positive part of the gradient of the loss (X and A C for the squared
error). Codes are updated in the pass after the basis; their weights are recomputed from the basis
of the pass before, because storing them would take as much memory as X.
"""

from __future__ import annotations

from typing import Any

from robustnmf.arrays import Array, Block, EntryLoop, energy_rounding, namespace
from robustnmf.engine import BlockState
from robustnmf.loop.passes._approximation import ApproximationPass, weigh_parts
from robustnmf.loop.passes._statistics import Statistics
from robustnmf.weightings import Batch, ObjectiveSums


class EntryPass(ApproximationPass):
    """Pass with one weight for each entry; its cache is the approximation."""

    def update_codes(self, block: Block, codes: Array, weighting: Batch) -> tuple[Array, Array]:
        data = block.values()
        before, now = (block.approximation(codes, at) for at in (self.previous, self.basis))
        loop = self._loop(block, weighting)
        weighted = block.kernels.weighted_parts(loop, data, before, now)
        if weighted is None:
            weights = weighting.weight(self.loss.entries(data, before))
            weighted = weigh_parts(weights, self.loss.split(data, now))
        negative, positive = (block.project_part(part, self.basis) for part in weighted)
        return self.evaluate(block, self.step(block, codes, negative, positive))

    def _loop(self, block: Block, weighting: Batch) -> EntryLoop | None:
        """Return the loop of the weighting, for squared errors of complete rows without penalty."""
        squared = self.loss.quadratic and self.loss.unit == 2.0
        plain = squared and not self.penalty and not self.bounded
        return weighting.entry_loop if plain and block.is_complete_table else None

    def sums(self, block: Block, codes: Array, weights: Any, cache: Array) -> tuple[Array, Array]:
        if not isinstance(weights, tuple):
            weights = weigh_parts(weights, self.loss.split(block.values(), cache))
        return block.cross_part(codes, weights[0]), block.cross_part(codes, weights[1])

    def row_objective(
        self, block: Block, codes: Array, weighting: Batch, cache: Array
    ) -> tuple[Array, Array]:
        entries = self.loss.entries(block.values(), cache)
        values = block.row_sums(weighting.rho(entries))
        values = values + self.penalty.energies(block, codes) if self.penalty else values
        return values, weighting.weight(entries)

    def weigh(
        self, block: Block, local: BlockState, weighting: Batch, cache: Array
    ) -> tuple[BlockState, Statistics, Any]:
        """Compute energies and objective sums of a block, and the weights of its entries.

        The two parts of the gradient, multiplied by weights, can be returned instead of weights.
        """
        xp = namespace(cache)
        parts_and_sums = block.kernels.weighted_rows(
            self._loop(block, weighting), block.values(), cache, block.full_row_weight
        )
        if parts_and_sums is not None:
            *parts, values, losses, sums = parts_and_sums
            weights: Any = tuple(parts)
            losses = energies = xp.maximum(losses, energy_rounding(cache) * block.sq_norms)
        else:
            values, slopes = self.row_objective(block, local.codes, weighting, cache)
            weights = xp.astype(block.full_row_weight, cache.dtype)[:, None] * slopes
            sums = block.row_sums(weights)
            losses = self.energies(block, local.codes, cache)
            energies = self.penalised(block, local.codes, losses)
        features = cache.shape[-1]
        local = self.with_energies(local, losses, energies, row_weights=sums / features)
        total = xp.sum(block.full_row_weight * values, axis=-1, keepdims=True)
        zero = xp.zeros_like(total)
        objective_sums = ObjectiveSums(zero, total, zero + xp.sum(block.row_weight) * features)
        return local, Statistics(objective_sums, zero, quadratic=False), weights

    def row_weights(self, block: Block, weights: Array) -> Array:
        """Return the weights of rows (rows, 1) by which the penalty of the codes is multiplied."""
        return namespace(weights).astype(block.full_row_weight, weights.dtype)[:, None]
