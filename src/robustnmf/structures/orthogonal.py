r"""Orthogonal NMF: every sample made of one component, or nearly.

Nonnegative columns of codes are orthogonal, :math:`A^T A` diagonal, if and only if no sample
uses two components. So the constraint of Ding, Li, Peng and Park (*Orthogonal nonnegative
matrix tri-factorizations for clustering*, KDD 2006) and Choi (*Algorithms for orthogonal
nonnegative matrix factorization*, IJCNN 2008) is a sum over samples, and can be a part of
their energies:

.. math::

    \tilde z_i = z_i + s_i \sum_{j \ne l} \|a_{ij} c_j\| \, \|a_{il} c_l\|

It does not see how size is shared out between codes and basis, and scales as the loss does
(:math:`s_i` is one for the squared error). Weights of samples apply to
:math:`\tilde z_i` as to any energy, and cancel in the update of the codes. The published
rules, multipliers eliminated from a constraint, need all samples at once and can raise the
objective; this one cannot. With strength one, a sample is never fitted better by two
components than by the better of them, if the loss is the squared error.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

from sklearn.utils._param_validation import Interval

from robustnmf.arrays import (
    Array,
    arange_like,
    as_float64,
    at_least,
    floored,
    identity_like,
    namespace,
    on_device_of,
)
from robustnmf.structures._base import Structure

CANDIDATES = 4


class Orthogonal(Structure):
    r"""Codes that are orthogonal, or nearly: parts as clusters of samples.

    Samples pay for using components together, :math:`\|a_{ij} c_j\| \|a_{il} c_l\|` for
    every pair, times ``strength``. How orthogonal the codes have become is told by
    ``codes_overlap_``, the mean cosine between their columns.

    Parameters
    ----------
    strength : float > 0, default=1.0
        One makes the best codes of a sample use a single component under the squared error;
        less lets components share a sample.

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import RobustNMF, Orthogonal
    >>> X = np.kron(np.eye(2), np.ones((3, 4))) + 0.1
    >>> codes = RobustNMF(2, structure=Orthogonal(), random_state=0).fit_transform(X)
    >>> np.count_nonzero(codes, axis=1)
    array([1, 1, 1, 1, 1, 1])
    """

    penalises_overlap = True
    _parameter_constraints = {"strength": [Interval(Real, 0, None, closed="neither")]}

    def __init__(self, strength: float = 1.0):
        self.strength = strength

    def start(
        self, engine: Any, codes: list[Array], basis: Array
    ) -> tuple[list[Array], Array, None]:
        """Components start near samples that differ, and samples near one component.

        A plain start is all alike, or has a first component that describes everything; a fit
        would rest there with the other components unused. The samples that the components of
        the plain start have most, or at some ranks least, stand as candidates; one after the
        other is taken that leaves least of all samples undescribed. Norms, not squares, of
        what is left are added up, so that outliers are no better candidates than others.
        """
        whole = engine.filled()
        drawn = engine.whole(codes, axis=1)
        starts = [self._spread(whole, drawn[j, ...]) for j in range(drawn.shape[0])]
        new_codes, new_basis = (namespace(drawn).stack(part) for part in zip(*starts, strict=True))
        return engine.split(new_codes, axis=1), new_basis, None

    def _spread(self, engine: Any, codes: Array) -> tuple[Array, Array]:
        xp = namespace(codes)
        k = codes.shape[1]
        rows = engine.samples(self._candidates(engine, codes))
        left = self._left(engine, rows)
        least, chosen = left[:, 0] + xp.inf, []
        for _ in range(k):
            totals = engine.row_weight @ xp.minimum(least[:, None], left) ** 0.5
            chosen.append(int(xp.argmin(totals)))
            least = xp.minimum(least, left[:, chosen[-1]])
        apart = xp.take(rows, on_device_of(rows, chosen), axis=0)
        basis = 0.9 * apart + 0.1 * xp.mean(rows, axis=0) + 0.01 * engine.mean()
        onto = engine.whole(
            engine.map_blocks(lambda b, _: (b.project(basis[None, ...])[0, ...], None))[0]
        )
        sizes = onto / floored(xp.vecdot(basis, basis))
        best = xp.argmax(onto * sizes, axis=1)
        shares = xp.where(arange_like(k, onto) == best[:, None], 0.8 + 0 * onto, 0 * onto) + 0.2 / k
        return sizes * shares, basis

    def _candidates(self, engine: Any, codes: Array) -> Array:
        """Samples at the first, second, third... part of the order of each column of codes.

        Equal codes are in the order of the norms of their samples, not of their places.
        """
        xp = namespace(codes)
        found = []
        by_norm = xp.argsort(xp.concat([block.sq_norms for block in engine.blocks]))
        for j in range(codes.shape[1]):
            order = xp.argsort(xp.take(codes[:, j], by_norm), descending=True, stable=True)
            order = xp.take(by_norm, order)
            passed = xp.cumulative_sum(xp.take(engine.row_weight, order))
            for part in range(CANDIDATES):
                # Summing rounds: a sample must not be missed by the last digit.
                beyond = passed > (part / CANDIDATES + 1e-12) * passed[-1]
                found.append(xp.take(order, xp.argmax(xp.astype(beyond, xp.int64))[None]))
        return xp.concat(found)

    def _left(self, engine: Any, rows: Array) -> Array:
        """What each row alone leaves of the squared norm of every sample (n, rows)."""
        xp = namespace(rows)
        sizes = as_float64(floored(xp.vecdot(rows, rows)))

        def visit(block: Any, _: None) -> tuple[Array, None]:
            onto = as_float64(block.project(rows[None, ...])[0, ...])
            return at_least(block.sq_norms[:, None] - onto**2 / sizes, 0.0), None

        return engine.whole(engine.map_blocks(visit)[0])

    def overlap_penalty(self, basis: Array) -> Array:
        """Norms of the components, for the strength that they pay with."""
        xp = namespace(basis)
        return (self.strength * xp.vecdot(basis, basis)) ** 0.5

    def ridge(self, basis: Array, codes_gram: Array) -> Array:
        """Norms pay for each other; what they pay together is majorised by their squares."""
        xp = namespace(basis)
        norms = xp.linalg.vector_norm(basis, axis=-1)
        off = codes_gram * (1 - identity_like(codes_gram))
        paid = xp.squeeze(off @ norms[:, :, None], axis=-1)
        # A component that has died down pays nothing, and costs nothing.
        alive = norms > 0
        return self.strength * xp.where(alive, paid / xp.where(alive, norms, 1 + paid), 0 * paid)
