"""Operations of a pass on the arrays of one library and device: the interface of all kernels.

:class:`Kernels` implements them as array calls, for any library. Its subclasses have compiled loops
for NumPy (:mod:`robustnmf.arrays.kernels.numpy`) and kernels for NVIDIA GPUs
(:mod:`robustnmf.arrays.kernels.cuda`), with the same results. If there is none for a shape or
dtype, they use the array calls. Callers write ``kernels_for(array).operation(...)``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from robustnmf.arrays.namespace import (
    Array,
    arange_like,
    as_float64,
    at_least,
    by_rows,
    floored,
    namespace,
    quotient,
    safe_log,
    smallest,
    to_numpy,
)


class EntryLoop(NamedTuple):
    """A compiled loop that weights the entries of X: its name, and parameters of the weighting."""

    name: str
    parameters: dict[str, Any]


class Kernels:
    """Operations as array calls.

    The last few are formulas in one loop; they return None if there is no such loop.
    """

    is_accelerated = False  # whether few large calls are faster than loops over rows

    def project(self, rows: Array, basis: Array) -> Array:
        """Compute ``rows basis^T`` (members, rows, k) of all members as one product."""
        xp = namespace(basis)
        members, k, features = basis.shape
        if members == 1:
            return self._product(rows, basis[0, ...])[None, ...]
        product = self._product(rows, xp.reshape(basis, (members * k, features)))
        return by_rows(xp.reshape(product, (rows.shape[0], members, k)))

    def _product(self, rows: Array, directions: Array) -> Array:
        """Compute ``rows directions^T`` (rows, k) for directions (k, features)."""
        return rows @ directions.T

    def cross(self, rows: Array, codes: Array) -> Array:
        """Compute ``codes^T rows`` (members, k, features) of all members as one product."""
        xp = namespace(codes)
        members, count, k = codes.shape
        if members == 1:
            return self._transposed_product(codes[0, ...].T, rows)[None, ...]
        flat = xp.reshape(xp.permute_dims(codes, (0, 2, 1)), (members * k, count))
        return xp.reshape(self._transposed_product(flat, rows), (members, k, rows.shape[1]))

    def _transposed_product(self, codes: Array, rows: Array) -> Array:
        """Compute ``codes rows`` (k, features) for codes (k, rows)."""
        return codes @ rows

    def weighted_sums(self, rows: Array, codes: Array, weights: Array) -> tuple[Array, Array]:
        """Compute ``codes^T w rows`` and ``codes^T w codes`` for weights (members, rows, 1)."""
        weighted = codes * weights
        return self.cross(rows, weighted), namespace(codes).matrix_transpose(weighted) @ codes

    def project_and_update(
        self, rows: Array, basis: Array, gram: Array, codes: Array
    ) -> tuple[Array, Array]:
        """Update codes (members, rows, k) by a multiplicative step for the squared error.

        Also returns ``quadratic_part`` (members, rows) of the new codes.
        """
        linear = self.project(rows, basis)
        updated = self.multiplicative_step(codes, linear, self.times_gram(codes, gram))
        return updated, self.quadratic_part(updated, linear, gram)

    def times_gram(self, codes: Array, gram: Array) -> Array:
        """Compute ``codes gram`` (members, rows, k)."""
        return codes @ gram

    def sweep_coordinates(
        self,
        factor: Array,
        linear: Array,
        gram: Array,
        sweeps: int,
        fixed: int = 0,
        present: Array | None = None,
    ) -> Array:
        r"""Minimise over one coordinate after another of each row of a factor (members, rows, k).

        .. math:: f_j \leftarrow \max\big(0,\; f_j + (l_j - (f G)_j) / G_{jj}\big)

        is the minimum of :math:`f G f^T / 2 - l f^T` over one coordinate, so no step raises it. A
        coordinate on which the problem does not depend stays unchanged and can be used later.

        Parameters
        ----------
        factor, linear : arrays (members, rows, k)
        gram : array (members, k, k), symmetric
        sweeps : int
        fixed : int, default=0; number of leading columns that stay unchanged
        present : array of bool (members, k), optional; coordinates on which the problem depends,
            by default those with a positive diagonal
        """
        steps = coordinate_steps(gram, present)
        updated = namespace(factor).asarray(factor, copy=True)
        for _ in range(sweeps):
            for j in range(fixed, factor.shape[-1]):
                slope = linear[:, :, j] - (updated @ gram[:, :, j : j + 1])[:, :, 0]
                updated[:, :, j] = at_least(updated[:, :, j] + slope * steps[:, j : j + 1], 0.0)
        return updated

    def masked_solve(self, rest: Array, mask: Array, gram: Array, steps: int) -> Array:
        """Solve ``x gram = rest`` (rows, k) on a mask by ``steps`` steps of conjugate gradients.

        Coordinates outside the mask are zero. Every step is one product of all rows with the Gram
        matrix (k, k).
        """
        xp = namespace(rest)
        zero = 0 * rest
        rest = xp.where(mask, rest, zero)
        x, direction, square = zero, rest, xp.vecdot(rest, rest)[:, None]
        for _ in range(steps):
            image = xp.where(mask, direction @ gram, zero)
            curvature = xp.vecdot(direction, image)[:, None]
            # A row that is solved exactly has no search direction.
            length = quotient(square, curvature)
            x = x + length * direction
            rest = rest - length * image
            after = xp.vecdot(rest, rest)[:, None]
            direction, square = rest + quotient(after, square) * direction, after
        return x

    def quadratic_part(self, codes: Array, linear: Array, gram: Array) -> Array:
        """Compute ``a G a^T - 2 l a^T`` of every row (members, rows), summed in float64."""
        return namespace(codes).vecdot(
            as_float64(codes), as_float64(self.times_gram(codes, gram)) - 2 * as_float64(linear)
        )

    def multiplicative_step(self, factor: Array, negative: Array, positive: Array) -> Array:
        """Compute ``factor * negative / positive``, with zeros instead of subnormal numbers.

        Processors are slow with subnormal numbers. The product is computed before the division,
        because tiny entries have equally tiny divisors.
        """
        updated = factor * negative / floored(positive)
        return namespace(updated).where(updated < smallest(factor), 0 * updated, updated)

    def weigh_rows(
        self, rho: Array, weight: Array, sample_weight: Array, scale_step: float
    ) -> tuple[Array, Array, Array, Array]:
        """Multiply weights (members, rows) by sample weights (rows,), in units of the largest.

        The units avoid overflow in the dtype of X. Also returns (members, 1) the log of the unit,
        a multiple of ``scale_step``, the weighted sum of ``rho``, and the sum of sample weights.
        """
        xp = namespace(weight)
        total = xp.sum(sample_weight * rho, axis=-1, keepdims=True)
        weights = sample_weight * weight
        top = xp.max(weights, axis=-1, keepdims=True)
        log_scale = scale_step * xp.ceil(safe_log(top) / scale_step)
        weights = weights * xp.exp(-log_scale)
        zero = xp.zeros_like(total)
        log_scale = xp.where(top > 0, log_scale, zero - xp.inf)
        return weights, log_scale, total, xp.sum(sample_weight) + zero

    def hide(self, table: Array, known: Array) -> tuple[Array, Array]:
        """Set missing entries (..., rows, features) to zero; also sum the squares of each row."""
        xp = namespace(table)
        hidden = table * xp.astype(known, table.dtype)
        return hidden, xp.vecdot(hidden, hidden)

    def count_at_nodes(self, lists: Array, sample_weight: Array, size: int) -> np.ndarray:
        """Count positions (lists, rows) from 0 to ``size - 1`` at the nodes (lists, size).

        A position between two nodes is divided between them. All lists are concatenated, so that
        a device is synchronised only once.
        """
        xp = namespace(lists)
        count, rows = lists.shape
        line = lists + size * xp.astype(arange_like(count, lists), lists.dtype)[:, None]
        right_weights = xp.broadcast_to(sample_weight, (count, rows)) * (lists - xp.floor(lists))
        order = xp.argsort(xp.reshape(line, (-1,)))
        edges = xp.searchsorted(
            xp.take(xp.reshape(line, (-1,)), order),
            xp.astype(arange_like(count * size + 1, lists), lists.dtype),
        )
        weights = xp.reshape(xp.broadcast_to(sample_weight, (count, rows)), (-1,))
        zero = xp.zeros_like(weights[:1])
        sums_by_node = []
        for part in (weights, xp.reshape(right_weights, (-1,))):
            sums = xp.concat([zero, xp.cumulative_sum(xp.take(part, order))])
            sums = xp.take(sums, edges)
            sums_by_node.append(sums[1:] - sums[:-1])
        whole, right = (xp.reshape(part, (count, size)) for part in sums_by_node)
        from_left = xp.concat([xp.zeros_like(right[:, :1]), right[:, :-1]], axis=1)
        return to_numpy(whole - right + from_left)

    def divergence(
        self, name: str, rows: Any, unit: float, approximation: Array, per_row: bool
    ) -> Array | None:
        """Compute a divergence, or a part of its gradient, by the loop of that name.

        The data are ``unit * rows``, dense and complete or sparse, and are not copied. Returns sums
        over rows (members, rows) in float64, or one number for each entry.
        """
        return None

    def add_sq_norms(
        self, rows: Array, unit: float, sq_norms: Array, rest: Array, codes: Array, basis: Array
    ) -> Array | None:
        """Compute squared errors (members, rows) from ``rest``, their terms that depend on codes.

        The data are ``unit * rows`` (rows, features) with squared norms (rows,). Errors below a
        share ``sqrt(eps)`` of the squared norm are computed from residuals instead. Errors are at
        least their rounding error. ``rest`` (members, rows) may be overwritten.
        """
        return None

    def weighted_parts(
        self, loop: EntryLoop | None, data: Array, before: Array, cache: Array
    ) -> tuple | None:
        """Multiply data and approximation by weights of entries at an earlier one, ``before``."""
        return None

    def weighted_rows(
        self, loop: EntryLoop | None, data: Array, cache: Array, row_weight: Array
    ) -> tuple | None:
        """Multiply data and approximation by weights of entries at this approximation.

        Weights include the weights of rows. Also returns the sums of rho, of squared errors and of
        weights over every row (members, rows).
        """
        return None

    def weighted_residuals(
        self, name: str, rows: Array, unit: float, approximation: Array, bounds: np.ndarray
    ) -> tuple[Array, Array] | None:
        """Multiply residuals of ``unit * rows`` by weights of entries, by the loop of a loss.

        Also returns the sums of the loss over rows.
        """
        return None

    def nonnegative_rows(
        self, linear: Array, gram: Array, positive: Array, limits: tuple[float, float, int]
    ) -> Array | None:
        """Compute codes (rows, k) by nonnegative least squares, row after row.

        Block principal pivoting starts from the support ``positive`` (rows, k), with ``limits``
        ridge, tolerance and patience; rows for which it fails are solved by active sets.
        """
        return None


def active_components(gram: Array) -> Array:
    """Return a mask of the components (members, k) that are not zero, from their Gram matrix."""
    return namespace(gram).linalg.diagonal(gram) > smallest(gram) ** 0.5


def coordinate_steps(gram: Array, present: Array | None) -> Array:
    """Compute ``1 / diagonal`` (members, k) of Gram matrices; zero for components not present."""
    xp = namespace(gram)
    present = active_components(gram) if present is None else present
    return quotient(xp.astype(present, gram.dtype), xp.linalg.diagonal(gram))
