r"""Nonnegative least squares for many rows at once, on a device.

Coordinate sweeps guess which coordinates are positive. Conjugate gradients then solve for these:
every step is one product of all rows with the Gram matrix, with the other coordinates masked.
Both compute in float32; corrections are added until the gradient, which is computed in
float64, is small enough. Wrong coordinates are exchanged, as in block principal pivoting, until at
most a few rows are left.
"""

from __future__ import annotations

from robustnmf.arrays import Array, arange_like, as_float64, at_least, kernels_for, namespace

SWEEPS = 40
"""Number of sweeps for the guess."""

NEGLIGIBLE = 1e-4
"""Coordinates of the guess below this share of the largest one of the row are set to zero."""

ROUNDS = 8
"""Maximum number of exchanges of wrong coordinates."""

STEPS = 20
"""Steps of conjugate gradients between two evaluations of the gradient in float64."""

CORRECTIONS = 6
"""Maximum number of corrections of a solution."""


def solve_jointly(linear: Array, gram: Array, tolerance: float) -> tuple[Array, Array]:
    """Solve rows (rows, k) of one Gram matrix (k, k) with unit diagonal, in float64.

    Returns codes (rows, k), and the indices of the rows (unsolved,) that another method must
    solve. ``tolerance`` is the maximum relative error.
    """
    xp = namespace(linear)
    size = xp.max(xp.abs(linear), axis=1, keepdims=True)
    unit = xp.where(size > 0, size, xp.ones_like(size))
    linear = linear / unit
    low, low_gram = (xp.astype(table, xp.float32)[None, ...] for table in (linear, gram))
    codes = as_float64(kernels_for(low).sweep_coordinates(0 * low, low, low_gram, SWEEPS)[0, ...])
    positive = codes > NEGLIGIBLE * xp.max(codes, axis=1, keepdims=True)
    codes = xp.where(positive, codes, 0 * codes)
    solution, rows = codes, arange_like(codes.shape[0], codes)
    for _ in range(ROUNDS):
        codes, slope = _solve_on_support(linear, gram, positive, codes, tolerance)
        reach = xp.max(xp.abs(codes), axis=1, keepdims=True)
        wrong = xp.where(positive, codes < -tolerance * reach, slope > tolerance)
        unsolved = xp.any(wrong | positive & (xp.abs(slope) > tolerance), axis=1)
        if rows.shape[0] == solution.shape[0]:
            solution = codes
        else:
            solution[rows, :] = codes
        (open_rows,) = xp.nonzero(unsolved)
        rows = xp.take(rows, open_rows)
        if not rows.shape[0]:
            break
        linear, codes, wrong, positive = (
            xp.take(table, open_rows, axis=0) for table in (linear, codes, wrong, positive)
        )
        positive = xp.logical_xor(positive, wrong)
        codes = xp.where(positive, at_least(codes, 0.0), 0 * codes)
    return at_least(solution, 0.0) * unit, rows


def _solve_on_support(
    linear: Array, gram: Array, positive: Array, codes: Array, tolerance: float
) -> tuple[Array, Array]:
    """Solve ``codes gram = linear`` for the positive coordinates (rows, k); the others are zero.

    Also returns ``linear - codes gram`` for all coordinates.
    """
    xp = namespace(linear)
    low_gram = xp.astype(gram, xp.float32)
    slope, largest = linear - codes @ gram, xp.inf
    for _ in range(CORRECTIONS):
        rest = xp.where(positive, slope, 0 * slope)
        before, largest = largest, float(xp.max(xp.abs(rest)))
        if largest <= tolerance or largest > 0.5 * before:
            break
        low = xp.astype(rest, xp.float32)
        correction = kernels_for(low).masked_solve(low, positive, low_gram, STEPS)
        codes = codes + as_float64(correction)
        slope = linear - codes @ gram
    return codes, slope
