r"""Nonnegative least squares for a fixed basis; every row is independent of the others.

For each row, :math:`\min_{a \ge 0} \tfrac12 a G a^T - l a^T`, for all rows together by
batched solves, in two stages:

* Block principal pivoting: guess which coordinates are positive, solve for them, exchange
  all coordinates that are wrong. A few rounds solve most rows. Kim and Park, *Fast
  nonnegative matrix factorization: an active-set-like method and comparisons*, SIAM
  J. Sci. Comput. 33(6), 2011.
* The active-set method of Lawson and Hanson (*Solving least squares problems*, 1974) for the
  rows that do not converge because components are nearly dependent. It adds one
  coordinate at a time, remains feasible and never raises the objective, so that it can be stopped
  at any time.

A row is removed as soon as it is solved, so its codes do not depend on the other
rows. On a device, which is fast for few and large calls, conjugate gradients are used first
(:mod:`robustnmf.solvers._many_rows`). All arithmetic is in float64, because errors grow with the
squared condition number of the basis.
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
    kernels_for,
    masked_scatter,
    namespace,
    on_device_of,
    to_numpy,
)
from robustnmf.solvers._many_rows import solve_jointly

RIDGE = 1e-13  # makes duplicate components solvable; relative to a unit diagonal
TOLERANCE = 1e-11
PATIENCE = 10
MAX_SWEEPS = 100
CHUNK_NUMBERS = 4_000_000


def nonnegative_least_squares(
    linear: Array, gram: Array, guess: Array | None = None, precision: float = TOLERANCE
) -> Array:
    """Compute codes (rows, k) from ``linear = X C^T`` (rows, k) and ``gram = C C^T``.

    Parameters
    ----------
    linear : array (rows, k)
    gram : array (k, k), or (rows, k, k) with one matrix per row
    guess : array (rows, k), optional; its positive entries are the first guess of the support
    precision : float; maximum relative error on a device, where more precision takes more steps
    """
    if guess is None and gram.ndim == 2 and kernels_for(linear).is_accelerated:
        return _solve_on_device(linear, gram, precision)
    guess = linear - linear if guess is None else guess
    return _in_chunks(_solve, linear, gram, guess)


def by_coordinates(linear: Array, gram: Array, codes: Array) -> Array:
    """Find a local minimum of a quadratic function near codes (rows, k) by coordinate descent.

    The function need not be convex: ``gram`` (k, k) or (rows, k, k) has a nonnegative diagonal, so
    that there is a minimum over each single coordinate. The function never increases.
    """
    xp = namespace(linear)
    k = linear.shape[1]
    order = arange_like(k, linear)
    slope = linear - _times(codes, gram)
    for _ in range(MAX_SWEEPS):
        before = codes
        for j in range(k):
            diagonal = gram[..., j, j]
            nonzero = diagonal > 0
            column = codes[:, j] + slope[:, j] / xp.where(nonzero, diagonal, 1 + 0 * diagonal)
            column = xp.where(nonzero, at_least(column, 0.0), 0 * column)
            change = (column - codes[:, j])[:, None]
            codes = xp.where(order == j, column[:, None], codes)
            slope = slope - change * gram[..., j, :]
        if xp.max(xp.abs(codes - before)) <= 1e-15 * xp.max(codes):
            break
    return codes


def refine(codes: Array, slope: Array, gram: Array) -> Array:
    """Improve codes (rows, k) by one Newton step on their positive coordinates.

    ``slope = (X - codes C) C^T`` is computed from the residual itself. It recovers the digits that
    are lost in the Gram matrix, which matter if a row is fitted exactly.
    """
    return _in_chunks(_newton, slope, gram, codes)


def _in_chunks(function: Callable, first: Array, gram: Array, second: Array) -> Array:
    """Apply a function to chunks of rows in float64; return the dtype of the first array."""
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


def _solve_on_device(linear: Array, gram: Array, precision: float) -> Array:
    """Compute codes (rows, k) of all rows together; pivoting solves the remaining rows."""
    xp = namespace(linear)
    unit, scaled_gram = _unit_components(as_float64(gram))
    codes, rows = solve_jointly(as_float64(linear) * unit, scaled_gram, max(precision, TOLERANCE))
    codes = xp.astype(codes * unit, linear.dtype, copy=False)
    if rows.shape[0]:
        left = xp.take(linear, rows, axis=0)
        codes[rows, :] = _in_chunks(_solve, left, gram, 0 * left)
    return codes


def _solve(linear: Array, gram: Array, guess: Array) -> Array:
    """Compute codes (rows, k) by pivoting, or by the active-set method for rows that remain."""
    unit, gram = _unit_components(gram)
    return at_least(_solve_scaled(linear * unit, gram, guess > 0), 0.0) * unit


def _solve_scaled(linear: Array, gram: Array, positive: Array) -> Array:
    """Compute codes (rows, k) of components of norm one, on the host if rows are given up."""
    limits = RIDGE, TOLERANCE, PATIENCE
    compiled = kernels_for(linear).nonnegative_rows(linear, gram, positive, limits)
    if compiled is not None:
        return compiled
    xp = namespace(linear)
    codes, given_up = _pivot(linear, gram, positive)
    if not xp.any(given_up):
        return codes
    (rows,) = xp.nonzero(given_up)
    left = to_numpy(xp.take(linear, rows, axis=0))
    grams = to_numpy(gram if gram.ndim == 2 else xp.take(gram, rows, axis=0))
    solved = on_device_of(linear, _solve_scaled(left, grams, left > 0))
    return masked_scatter(codes.T, given_up, solved.T).T


def _newton(slope: Array, gram: Array, codes: Array) -> Array:
    """Take a Newton step on the positive coordinates of codes (rows, k)."""
    unit, gram = _unit_components(gram)
    step = _solve_positive(slope * unit, gram, codes > 0) * unit
    return at_least(codes + step, 0.0)


def _unit_components(gram: Array) -> tuple[Array, Array]:
    """Return the factors that scale every component to norm one, and the scaled Gram matrix."""
    xp = namespace(gram)
    diagonal = xp.linalg.diagonal(gram)
    unit = xp.where(diagonal > 0, 1.0 / floored(diagonal) ** 0.5, xp.zeros_like(diagonal))
    return unit, gram * unit[..., :, None] * unit[..., None, :]


def _pivot(linear: Array, gram: Array, positive: Array) -> tuple[Array, Array]:
    """Solve by block principal pivoting: exchange all wrong coordinates until there are none.

    Returns codes (rows, k), and a mask (rows,) of the rows that were not solved because the number
    of wrong coordinates did not decrease for ``PATIENCE`` rounds.
    """
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
        size = xp.max(at_least(linear, 0.0), axis=1, keepdims=True)
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


def _times(codes: Array, gram: Array) -> Array:
    """Compute ``codes gram`` (rows, k); every row can have its own Gram matrix."""
    if gram.ndim == 2:
        return codes @ gram
    return namespace(codes).squeeze(codes[:, None, :] @ gram, axis=1)


def _solve_positive(linear: Array, gram: Array, positive: Array) -> Array:
    """Solve without constraints for the coordinates in a mask (rows, k); the others are zero."""
    xp = namespace(linear)
    support = positive[:, :, None] & positive[:, None, :]
    identity = identity_like(gram)
    system = xp.where(support, gram, xp.zeros_like(gram))
    zero = xp.zeros_like(linear)
    system = system + identity * xp.where(positive, zero + RIDGE, zero + 1.0)[:, :, None]
    right = xp.where(positive, linear, zero)
    return xp.squeeze(xp.linalg.solve(system, right[:, :, None]), axis=2)
