r"""A pass for any loss with one weight a row.

With N and P the parts of the gradient of the loss with respect to the approximation,

.. math::

    C \leftarrow C \odot \left(\frac{A^T w N}{A^T w P}\right)^e, \qquad
    A \leftarrow A \odot \left(\frac{N C^T}{P C^T}\right)^e

The weights of rows cancel in the update of the codes, as they do for the squared error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from robustnmf.arrays import Array, namespace
from robustnmf.passes._approximation import ApproximationPass, weighted_product
from robustnmf.passes._statistics import Local, Statistics
from robustnmf.solvers import Ratio
from robustnmf.weightings import Batch


class DivergencePass(ApproximationPass):
    """The visits of a pass to a block, for one basis per member (members, k, features)."""

    def move(self, block: Any, codes: Array, weighting: Batch) -> tuple[Array, Array]:
        """Updated codes, and the approximation they give."""
        xp = namespace(codes)
        parts = self.loss.split(block.values(), codes @ self.basis)
        ones = xp.sum(self.basis, axis=-1)[:, None, :]
        back = xp.matrix_transpose(self.basis)
        terms = Ratio(*(ones if part is None else part @ back for part in parts))
        return self.stay(block, self.solver.step(codes, terms, self.exponent))

    def measure(
        self, block: Any, local: Local, weighting: Batch, seen: Array
    ) -> tuple[Local, Statistics]:
        local, statistics, _ = self._weigh(block, local, weighting, seen)
        return local, statistics

    def gather(
        self, block: Any, local: Local, weighting: Batch, seen: Array
    ) -> tuple[Local, Statistics]:
        local, statistics, weights = self._weigh(block, local, weighting, seen)
        xp = namespace(local.codes)
        weighted = local.codes * xp.astype(weights, local.codes.dtype)[:, :, None]
        negative, positive = self.loss.split(block.values(), seen)
        back = xp.matrix_transpose(weighted)
        return local, replace(
            statistics,
            negative=weighted_product(back, negative),
            positive=weighted_product(back, positive),
        )

    def contributions(self, weighting: Batch, entries: Array) -> tuple[Array, Array]:
        return entries, namespace(entries).ones_like(entries)

    def _weigh(
        self, block: Any, local: Local, weighting: Batch, seen: Array
    ) -> tuple[Local, Statistics, Array]:
        energies = self.energies(block, local.codes, seen)
        weighed = weighting.weigh(energies, block.mass)
        statistics = Statistics(weighed.tally, weighed.log_scale, quadratic=False)
        return replace(local, energies=energies), statistics, weighed.weights
