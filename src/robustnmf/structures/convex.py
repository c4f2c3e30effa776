r"""Convex NMF: the basis is a mixture of samples.

:math:`X \approx A P X` with :math:`A, P \ge 0`, and for nonnegative X

.. math::

    P^T \leftarrow P^T \odot \sqrt{\frac{X N^T}{X D^T}}, \qquad
    A \leftarrow A \odot \sqrt{\frac{X C^T}{A C C^T}}, \qquad C = P X

where N and D are the negative and positive part of the gradient with respect to the
basis (:math:`A^T X` and :math:`A^T A C` for plain weights). The updates, with the square root, are
from Ding, Li and Jordan, *Convex and semi-nonnegative matrix factorizations*, IEEE TPAMI 32(1),
2010. The Gram matrix of all samples is never formed: both products are computed
block by block, with a second read of X in each pass. If X has missing values, the samples that are
mixed contain estimates in their place; the loss uses known values only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from robustnmf.arrays import Array, Block, floored, namespace
from robustnmf.engine import Engine
from robustnmf.solvers import Ratio, Terms, Update
from robustnmf.structures._base import Structure


class Convex(Structure):
    r"""Components are mixtures of samples, :math:`X \approx A P X` with :math:`A, P \ge 0`.

    Use it if components must look like the data, for example to interpret them as prototypes.

    Examples
    --------
    >>> from robustnmf import Convex, RobustNMF
    >>> RobustNMF(structure=Convex())
    RobustNMF(structure=Convex())
    """

    exponent = 0.5
    mixes_samples = True

    def start(
        self, engine: Engine, codes: list[Array], basis: Array
    ) -> tuple[list[Array], Array, list[Array]]:
        """Start each component near the sample with the largest code for it.

        Averages of all samples weighted by random codes are nearly equal, and a fit makes no
        progress from there; a fifth of such an average keeps all coefficients positive.
        """
        xp = namespace(basis)
        all_codes = engine.whole(codes, axis=1)
        row_weight = xp.astype(engine.row_weight, all_codes.dtype)[:, None]
        mean = all_codes / floored(xp.sum(row_weight * all_codes, axis=1, keepdims=True))
        of_counting = xp.where(row_weight > 0, all_codes, xp.zeros_like(all_codes))
        top = xp.max(of_counting, axis=1, keepdims=True)
        largest = xp.astype(of_counting == top, all_codes.dtype)
        largest = largest / floored(xp.sum(row_weight * largest, axis=1, keepdims=True))
        mixing = engine.split(0.8 * largest + 0.2 * mean, axis=1)
        basis = self.mixed(engine, mixing)
        # Codes are rescaled so that the product has the mean of X.
        total = xp.sum(xp.sum(row_weight * all_codes, axis=1) * xp.sum(basis, axis=2), axis=-1)
        target = engine.mean() * float(xp.sum(engine.row_weight)) * engine.shape[1]
        scaled = all_codes * (target / floored(total))[:, None, None]
        return engine.split(scaled, axis=1), basis, mixing

    def mixed(self, engine: Engine, mixing: list[Array]) -> Array:
        """Compute the basis (members, k, features) from mixing coefficients (members, rows, k)."""
        engine.fill_samples()

        def mix(block: Block, local: Any) -> tuple[Any, Array]:
            return local, block.samples.cross(block.weighted(local.codes))

        return engine.map_blocks(mix, engine.begin(mixing))[1]

    def step(
        self, engine: Engine, block_states: Any, basis: Array, terms: Terms, update: Update
    ) -> tuple[Any, Array]:
        transpose = namespace(basis).matrix_transpose
        broadcast = namespace(basis).broadcast_to
        negative, positive = (
            broadcast(transpose(part), basis.shape) for part in terms.parts(transpose(basis))
        )

        def remix(block: Block, local: Any) -> tuple[Any, Array]:
            samples = block.samples
            parts = Ratio(samples.project(negative), samples.project(positive))
            mixing = update(local.mixing, parts)
            return replace(local, mixing=mixing), samples.cross(block.weighted(mixing))

        return engine.map_blocks(remix, block_states)
