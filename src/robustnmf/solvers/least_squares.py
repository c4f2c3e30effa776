r"""Nonnegative least squares with the basis given, every row for itself.

For each row, :math:`\min_{a \ge 0} \tfrac12 a G a^T - l a^T`, all rows at once by
batched solves, in two stages:

* Block principal pivoting: guess which coordinates are positive, solve for them, exchange
  all coordinates that turn out wrong. A few rounds solve most rows. Kim and Park, *Fast
  nonnegative matrix factorization: an active-set-like method and comparisons*, SIAM
  J. Sci. Comput. 33(6), 2011.
* The active-set method of Lawson and Hanson (*Solving least squares problems*, 1974) for the
  rows that keep exchanging, as they do when components are nearly dependent. It adds one
  coordinate at a time, stays feasible and never goes up, so that it can be left at any time.

Rows leave as soon as they are solved, so a row gets the same codes whatever other
rows it comes with. The arithmetic is float64: conditioning enters squared here.
"""

from __future__ import annotations

from collections.abc import Callable

from robustnmf.arrays import (
    Array,
    arange_like,
    as_float64,
    at_least,
    device_of,
    floored,
    identity_like,
    masked_scatter,
    namespace,
)

RIDGE = 1e-13  # keeps duplicate components apart: relative to a unit diagonal
TOLERANCE = 1e-11
PATIENCE = 10
MAX_SWEEPS = 100
CHUNK_NUMBERS = 4_000_000


def nonnegative_least_squares(linear: Array, gram: Array, guess: Array | None = None) -> Array:
    """Codes (rows, k) from ``linear = X C^T`` (rows, k) and ``gram = C C^T``.

    Parameters
    ----------
    linear : array (rows, k)
    gram : array (k, k), or (rows, k, k) where every row has its own
    guess : array (rows, k), optional; where it is positive, the search starts
    """
    guess = linear - linear if guess is None else guess
    return _in_chunks(_solve, linear, gram, guess)


def by_coordinates(linear: Array, gram: Array, codes: Array) -> Array:
    """A minimum near codes of a quadratic that need not be convex, coordinate by coordinate.

    ``gram`` (k, k) or (rows, k, k) has a nonnegative diagonal, so that every coordinate has a
    minimum of its own. Never goes up.
    """
    xp = namespace(linear)
    k = linear.shape[1]
    order = arange_like(k, linear)
    slope = linear - _times(codes, gram)
    for _ in range(MAX_SWEEPS):
        before = codes
        for j in range(k):
            diagonal = gram[..., j, j]
            some = diagonal > 0
            wanted = codes[:, j] + slope[:, j] / xp.where(some, diagonal, 1 + 0 * diagonal)
            wanted = xp.where(some, at_least(wanted, 0.0), 0 * wanted)
            change = (wanted - codes[:, j])[:, None]
            codes = xp.where(order == j, wanted[:, None], codes)
            slope = slope - change * gram[..., j, :]
        if xp.max(xp.abs(codes - before)) <= 1e-15 * xp.max(codes):
            break
    return codes


def refine(codes: Array, slope: Array, gram: Array) -> Array:
    """Codes after one Newton step on their positive coordinates.

    ``slope = (X - codes C) C^T`` taken from the residual itself wins back the digits that
    the Gram matrix loses, which shows where a row is fitted exactly.
    """
    return _in_chunks(_newton, slope, gram, codes)


def _in_chunks(function: Callable, first: Array, gram: Array, second: Array) -> Array:
    """Rows in chunks of bounded memory, in float64; the result in the dtype of the first."""
    xp = namespace(first)
    rows, k = first.shape
    step = max(1, CHUNK_NUMBERS // k**2)
    parts = []
    for at in range(0, rows, step):
        chunk = slice(at, min(at + step, rows))
        grams = gram if gram.ndim == 2 else gram[chunk, ...]
        parts.append(
            function(as_float64(first[chunk, :]), as_float64(grams), as_float64(second[chunk, :]))
        )
    whole = parts[0] if len(parts) == 1 else xp.concat(parts)
    return xp.astype(whole, first.dtype, copy=False)


def _solve(linear: Array, gram: Array, guess: Array) -> Array:
    xp = namespace(linear)
    unit, gram = _unit_components(gram)
    linear = linear * unit
    codes, given_up = _pivot(linear, gram, guess > 0)
    if xp.any(given_up):
        (rows,) = xp.nonzero(given_up)
        grams = gram if gram.ndim == 2 else xp.take(gram, rows, axis=0)
        feasible = _lawson_hanson(xp.take(linear, rows, axis=0), grams)
        codes = masked_scatter(codes.T, given_up, feasible.T).T
    return at_least(codes, 0.0) * unit


def _newton(slope: Array, gram: Array, codes: Array) -> Array:
    unit, gram = _unit_components(gram)
    step = _solve_positive(slope * unit, gram, codes > 0) * unit
    return at_least(codes + step, 0.0)


def _unit_components(gram: Array) -> tuple[Array, Array]:
    """Factors that give every component norm one, and the Gram matrix in these units."""
    xp = namespace(gram)
    diagonal = xp.linalg.diagonal(gram)
    unit = xp.where(diagonal > 0, 1.0 / floored(diagonal) ** 0.5, xp.zeros_like(diagonal))
    return unit, gram * unit[..., :, None] * unit[..., None, :]


def _pivot(linear: Array, gram: Array, positive: Array) -> tuple[Array, Array]:
    """Exchange all wrong coordinates until none is left, or it leads nowhere."""
    xp = namespace(linear)
    k = linear.shape[1]
    solved = xp.zeros_like(linear).T
    present = xp.any(linear == linear, axis=1)
    fewest = xp.full(linear.shape[:1], k + 1, dtype=xp.int64, device=device_of(linear))
    patience = xp.full(linear.shape[:1], PATIENCE, dtype=xp.int64, device=device_of(linear))
    given_up = ~present
    while True:
        codes = _solve_positive(linear, gram, positive)
        slope = _times(codes, gram) - linear
        size = xp.max(xp.abs(linear), axis=1, keepdims=True)
        reach = xp.max(xp.abs(codes), axis=1, keepdims=True)
        wrong = xp.where(positive, codes < -TOLERANCE * reach, slope < -TOLERANCE * size)
        count = xp.sum(xp.astype(wrong, xp.int64), axis=1)
        better = count < fewest
        patience = xp.where(better, PATIENCE + 0 * patience, patience - 1)
        fewest = xp.where(better, count, fewest)
        solved = masked_scatter(solved, present, codes.T)
        hopeless = (count > 0) & (patience < 0)
        given_up = masked_scatter(given_up, present, hopeless)
        open_rows = (count > 0) & (patience >= 0)
        if not xp.any(open_rows):
            break
        present = masked_scatter(present, present, open_rows)
        (rows,) = xp.nonzero(open_rows)
        positive = xp.take(xp.logical_xor(positive, wrong), rows, axis=0)
        linear = xp.take(linear, rows, axis=0)
        fewest, patience = xp.take(fewest, rows), xp.take(patience, rows)
        gram = gram if gram.ndim == 2 else xp.take(gram, rows, axis=0)
    return solved.T, given_up


def _lawson_hanson(linear: Array, gram: Array) -> Array:
    """Add the coordinate that promises most, solve, step back to the feasible part."""
    xp = namespace(linear)
    k = linear.shape[1]
    order = arange_like(k, linear)
    codes, zero, one = xp.zeros_like(linear), xp.zeros_like(linear), xp.ones_like(linear)
    positive = codes > 0
    barred = positive
    size = xp.max(xp.abs(linear), axis=1, keepdims=True)
    solved, present = codes.T, xp.any(linear == linear, axis=1)
    adding = present
    for _ in range(10 * k + 20):
        promise = linear - _times(codes, gram)
        eligible = ~positive & ~barred & (promise > TOLERANCE * size)
        best = xp.argmax(xp.where(eligible, promise, zero), axis=1)
        added = eligible & (order == best[:, None]) & adding[:, None]
        open_rows = ~adding | xp.any(added, axis=1)
        if not xp.any(open_rows):
            break
        positive = positive | added
        wanted = _solve_positive(linear, gram, positive)
        # A coordinate that would leave at once promised nothing but rounding.
        refused = added & (wanted <= 0)
        barred = barred | refused
        positive = positive & ~refused
        wanted = xp.where(xp.any(refused, axis=1)[:, None], codes, wanted)
        leaving = positive & (wanted <= 0)
        # As far towards the solution as all coordinates stay feasible; a coordinate that
        # leaves has codes > 0 >= wanted.
        fraction = xp.where(leaving, codes / xp.where(leaving, codes - wanted, one), one)
        reach = xp.min(fraction, axis=1, keepdims=True)
        moved = at_least(codes + reach * (wanted - codes), 0.0)
        codes = xp.where(positive & ~(leaving & (fraction <= reach)), moved, zero)
        positive = positive & (codes > 0)
        adding = ~xp.any(leaving, axis=1)
        barred = barred & ~(adding & ~xp.any(refused, axis=1))[:, None]

        solved = masked_scatter(solved, present, codes.T)
        if xp.all(open_rows):
            continue
        present = masked_scatter(present, present, open_rows)
        (rows,) = xp.nonzero(open_rows)
        linear, size, codes = (xp.take(a, rows, axis=0) for a in (linear, size, codes))
        zero, one = xp.zeros_like(codes), xp.ones_like(codes)
        positive, barred = (xp.take(a, rows, axis=0) for a in (positive, barred))
        adding = xp.take(adding, rows)
        gram = gram if gram.ndim == 2 else xp.take(gram, rows, axis=0)
    return solved.T


def _times(codes: Array, gram: Array) -> Array:
    """``codes gram``, where every row may have its own Gram matrix."""
    if gram.ndim == 2:
        return codes @ gram
    return namespace(codes).squeeze(codes[:, None, :] @ gram, axis=1)


def _solve_positive(linear: Array, gram: Array, positive: Array) -> Array:
    """Unconstrained solution on the coordinates taken for positive, zero elsewhere."""
    xp = namespace(linear)
    both = positive[:, :, None] & positive[:, None, :]
    identity = identity_like(gram)
    system = xp.where(both, gram, xp.zeros_like(gram))
    zero = xp.zeros_like(linear)
    system = system + identity * xp.where(positive, zero + RIDGE, zero + 1.0)[:, :, None]
    right = xp.where(positive, linear, zero)
    return xp.squeeze(xp.linalg.solve(system, right[:, :, None]), axis=2)
