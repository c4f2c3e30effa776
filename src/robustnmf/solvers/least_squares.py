r"""Nonnegative least squares with the basis given, every row for itself.

For each row, :math:`\min_{a \ge 0} \tfrac12 a G a^T - l a^T` by block principal
pivoting: guess which coordinates are positive, solve for them, exchange the
coordinates that turn out wrong, and fall back to exchanging one at a time where that
does not help. Exact after finitely many exchanges, and done on all rows at once by
batched solves. Kim and Park, *Fast nonnegative matrix factorization: an active-set-like
method and comparisons*, SIAM J. Sci. Comput. 33(6), 2011.

Rows leave as soon as they are solved, so a row gets the same codes whatever other
rows it comes with. The arithmetic is float64: conditioning enters squared here.
"""

from __future__ import annotations

from robustnmf.arrays import Array, floored, namespace, put, wide

RIDGE = 1e-13  # keeps duplicate components apart: relative to a unit diagonal
TOLERANCE = 1e-11
PATIENCE = 3
CHUNK_NUMBERS = 4_000_000


def nonnegative_least_squares(linear: Array, gram: Array, guess: Array | None = None) -> Array:
    """Codes (rows, k) from ``linear = X C^T`` (rows, k) and ``gram = C C^T``.

    Parameters
    ----------
    linear : array (rows, k)
    gram : array (k, k), or (rows, k, k) where every row has its own
    guess : array (rows, k), optional; where it is positive, the search starts
    """
    xp = namespace(linear)
    rows, k = linear.shape
    step = max(1, CHUNK_NUMBERS // k**2)
    parts = []
    for at in range(0, rows, step):
        chunk = slice(at, min(at + step, rows))
        grams = gram if gram.ndim == 2 else gram[chunk, ...]
        positive = linear[chunk, :] < 0 if guess is None else guess[chunk, :] > 0
        parts.append(_solve(wide(linear[chunk, :]), wide(grams), positive))
    codes = parts[0] if len(parts) == 1 else xp.concat(parts)
    return xp.astype(codes, linear.dtype, copy=False)


def _solve(linear: Array, gram: Array, positive: Array) -> Array:
    """All rows of a chunk, in units in which every component has norm one."""
    xp = namespace(linear)
    diagonal = xp.linalg.diagonal(gram)
    unit = xp.where(diagonal > 0, 1.0 / floored(diagonal) ** 0.5, xp.zeros_like(diagonal))
    gram = gram * unit[..., :, None] * unit[..., None, :]
    linear = linear * unit
    codes = _pivot(linear, gram, positive)
    return xp.maximum(codes, 0.0) * unit


def _pivot(linear: Array, gram: Array, positive: Array) -> Array:
    xp = namespace(linear)
    k = linear.shape[1]
    order = xp.arange(k)
    solved = xp.zeros_like(linear).T
    present = xp.any(linear == linear, axis=1)
    fewest = xp.full(linear.shape[:1], k + 1, dtype=xp.int64)
    patience = xp.full(linear.shape[:1], PATIENCE, dtype=xp.int64)
    for _ in range(50 + 5 * k):
        codes = _solve_positive(linear, gram, positive)
        slope = xp.squeeze(codes[:, None, :] @ gram, axis=1) - linear
        size = xp.max(xp.abs(linear), axis=1, keepdims=True)
        reach = xp.max(xp.abs(codes), axis=1, keepdims=True)
        wrong = xp.where(positive, codes < -TOLERANCE * reach, slope < -TOLERANCE * size)
        count = xp.sum(xp.astype(wrong, xp.int64), axis=1)
        solved = put(solved, present, codes.T)
        open_rows = count > 0
        if not xp.any(open_rows):
            break
        better = count < fewest
        patience = xp.where(better, PATIENCE + 0 * patience, patience - 1)
        fewest = xp.where(better, count, fewest)
        last = xp.max(xp.where(wrong, order, -1 + 0 * order), axis=1, keepdims=True)
        one = wrong & (order == last)
        wrong = xp.where((patience >= 0)[:, None], wrong, one)
        positive = xp.logical_xor(positive, wrong)

        present = put(present, present, open_rows)
        (rows,) = xp.nonzero(open_rows)
        linear, positive = xp.take(linear, rows, axis=0), xp.take(positive, rows, axis=0)
        fewest, patience = xp.take(fewest, rows), xp.take(patience, rows)
        gram = gram if gram.ndim == 2 else xp.take(gram, rows, axis=0)
    return solved.T


def _solve_positive(linear: Array, gram: Array, positive: Array) -> Array:
    """Unconstrained solution on the coordinates taken for positive, zero elsewhere."""
    xp = namespace(linear)
    both = positive[:, :, None] & positive[:, None, :]
    identity = xp.eye(linear.shape[1], dtype=linear.dtype)
    system = xp.where(both, gram, xp.zeros_like(gram))
    zero = xp.zeros_like(linear)
    system = system + identity * xp.where(positive, zero + RIDGE, zero + 1.0)[:, :, None]
    right = xp.where(positive, linear, zero)
    return xp.squeeze(xp.linalg.solve(system, right[:, :, None]), axis=2)
