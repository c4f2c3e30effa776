r"""Orthogonal NMF: every sample uses one component, or nearly so.

Nonnegative columns of codes are orthogonal, :math:`A^T A` diagonal, if and only if no sample
uses two components. So the constraint of Ding, Li, Peng and Park (*Orthogonal nonnegative
matrix tri-factorizations for clustering*, KDD 2006) and Choi (*Algorithms for orthogonal
nonnegative matrix factorization*, IJCNN 2008) is a sum over samples, and can be added to
their energies:

.. math::

    \tilde z_i = z_i + s_i \sum_{j \ne l} \|a_{ij} c_j\| \, \|a_{il} c_l\|

The penalty does not depend on the scaling between codes and basis, and scales like the loss
(:math:`s_i` is one for the squared error). Sample weights apply to
:math:`\tilde z_i` as to any energy, and cancel in the update of the codes. The published
rules, which eliminate the multipliers of a constraint, need all samples at once and can raise the
objective; this rule cannot. For the squared error and strength one, two components never fit a
sample better than the better one of them.
"""

from __future__ import annotations

from numbers import Real

from sklearn.utils._param_validation import Interval

from robustnmf.arrays import (
    Array,
    Block,
    arange_like,
    as_float64,
    at_least,
    floored,
    identity_like,
    namespace,
    on_device_of,
    quotient,
)
from robustnmf.engine import Engine
from robustnmf.structures._base import Structure

CANDIDATES = 4


class Orthogonal(Structure):
    r"""Orthogonal or nearly orthogonal codes: each component is a cluster of samples.

    Use it for clustering. The energy of a sample has a penalty
    :math:`\|a_{ij} c_j\| \|a_{il} c_l\|` for every pair of components, times ``strength``.
    ``codes_overlap_``, the mean cosine between columns of the codes, is zero for orthogonal codes.

    Parameters
    ----------
    strength : float > 0, default=1.0
        With one, the best codes of a sample use a single component (for the squared error);
        with less, a sample can use several.

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
        self, engine: Engine, codes: list[Array], basis: Array
    ) -> tuple[list[Array], Array, None]:
        """Start components near samples that differ, and samples near one component.

        The components of a plain start are nearly equal, or the first one describes everything; a
        fit would not leave this start, and the other components would be unused. Candidates are
        samples at several ranks of the codes of each component in the plain start. Each component
        is the candidate that reduces the residuals of all samples most. Norms of residuals are
        summed, not squares, so that outliers are not preferred.
        """
        complete = engine.filled()
        all_codes = engine.whole(codes, axis=1)
        starts = [
            self._start_member(complete, all_codes[j, ...]) for j in range(all_codes.shape[0])
        ]
        stack = namespace(all_codes).stack
        new_codes, new_basis = (stack(part) for part in zip(*starts, strict=True))
        return engine.split(new_codes, axis=1), new_basis, None

    def _start_member(self, engine: Engine, codes: Array) -> tuple[Array, Array]:
        """Return codes (n, k) and basis (k, features) of one member from codes of a plain start."""
        xp = namespace(codes)
        k = codes.shape[1]
        rows = engine.samples(self._candidates(engine, codes))
        residuals = self._sq_residuals(engine, rows)
        least, chosen = residuals[:, 0] + xp.inf, []
        for _ in range(k):
            totals = engine.row_weight @ xp.minimum(least[:, None], residuals) ** 0.5
            chosen.append(int(xp.argmin(totals)))
            least = xp.minimum(least, residuals[:, chosen[-1]])
        chosen_rows = xp.take(rows, on_device_of(rows, chosen), axis=0)
        basis = 0.9 * chosen_rows + 0.1 * xp.mean(rows, axis=0) + 0.01 * engine.mean()
        onto = engine.whole(
            engine.map_blocks(lambda b, _: (b.project(basis[None, ...])[0, ...], None))[0]
        )
        sizes = onto / floored(xp.vecdot(basis, basis))
        best = xp.argmax(onto * sizes, axis=1)
        is_best = arange_like(k, onto) == best[:, None]
        fractions = xp.where(is_best, 0.8 + 0 * onto, 0 * onto) + 0.2 / k
        return sizes * fractions, basis

    def _candidates(self, engine: Engine, codes: Array) -> Array:
        """Return indices of samples at equally spaced ranks of each column of codes (n, k).

        Equal codes are ordered by the norms of their samples, not by their positions.
        """
        xp = namespace(codes)
        candidates = []
        by_norm = xp.argsort(xp.concat([block.sq_norms for block in engine.blocks]))
        for j in range(codes.shape[1]):
            order = xp.argsort(-xp.take(codes[:, j], by_norm), stable=True)
            order = xp.take(by_norm, order)
            cumulative = xp.cumulative_sum(xp.take(engine.row_weight, order))
            for part in range(CANDIDATES):
                # Sums are rounded; the tolerance ensures that no sample is missed.
                beyond = cumulative > (part / CANDIDATES + 1e-12) * cumulative[-1]
                candidates.append(xp.take(order, xp.argmax(xp.astype(beyond, xp.int64))[None]))
        return xp.concat(candidates)

    def _sq_residuals(self, engine: Engine, rows: Array) -> Array:
        """Compute squared residuals (n, rows) of every sample after projection on each row."""
        xp = namespace(rows)
        sizes = as_float64(floored(xp.vecdot(rows, rows)))

        def visit(block: Block, _: None) -> tuple[Array, None]:
            onto = as_float64(block.project(rows[None, ...])[0, ...])
            return at_least(block.sq_norms[:, None] - onto**2 / sizes, 0.0), None

        return engine.whole(engine.map_blocks(visit)[0])

    def overlap_penalty(self, basis: Array) -> Array:
        """Compute norms of the components (members, k), times the square root of the strength."""
        xp = namespace(basis)
        return (self.strength * xp.vecdot(basis, basis)) ** 0.5

    def ridge(self, basis: Array, codes_gram: Array) -> Array:
        """Compute the ridge penalty (members, k) whose squares majorise products of norms."""
        xp = namespace(basis)
        norms = xp.linalg.vector_norm(basis, axis=-1)
        off = codes_gram * (1 - identity_like(codes_gram))
        slopes = xp.squeeze(off @ norms[:, :, None], axis=-1)
        return self.strength * quotient(slopes, norms)  # a component of zeros is not penalised
