r"""Find groups of good samples among the rejected samples, which the majority does not describe.

Samples of a group predict each other: a few components learned from one half of them, in addition
to the basis of the majority, describe the other half well. Outliers that are noise or are shuffled
do not. So rejected samples are split into two halves, components are learned from each half, and
the other half is encoded with them. A sample that then has a typical energy belongs to a group. If
most of the samples have a typical energy relative to their size, this is enough.

Components are learned with :math:`L_{2,1}` weights from rows of equal norm. With the squared error,
they would describe outliers, which have the largest norms and differ most. Equal rows are used
once. Rows that one value fills (a code for missing values, a saturated channel) always predict each
other, so they are not evidence for a group.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from robustnmf.arrays import as_dense
from robustnmf.engine import RowSample, split_place
from robustnmf.loop.encoding import encode, least_codes
from robustnmf.loop.fit import fit
from robustnmf.loop.problem import Problem
from robustnmf.loop.state import Start
from robustnmf.weightings import L21, Trimmed, Uniform

ROUNDS = 2
"""Number of times that the samples that are still rejected are split."""

FEWEST = 4
"""Minimum number of rejected samples that are split, or that share a fill value."""

PASSES, MULTIPLICATIVE_PASSES = 6, 25
"""Passes of the fit of one half, and of one with multiplicative updates, which are slower."""

SPREAD = 0.1
"""Least entries of a direction, as a share of the mean row, if updates cannot change zeros."""

MOSTLY, PER_COMPONENT = 2 / 3, 5
"""If at least this share of the other half is described as well as good samples relative to the
sizes of the samples, their energies can be larger: a group can have larger values and errors. There
must be five samples per component: a few describe any others."""

LARGEST_ERROR = 0.1
"""A sample is of the majority's kind only if the error is at most this share of its size: small
samples that are only noise have large relative errors, and so would the others."""

CANDIDATES = 24
"""Number of rows that are tried as the direction of a new component."""

SIMILAR = 10.0
"""Rejected samples are similar if components of the other half divide their energy by this."""

FILLED, FILLED_FEATURES = 0.5, 0.2
"""A row is filled if one value has at least these shares of its squared norm and of its features.
A row of yes/no features also repeats a value, but in few features."""

MANY_FILLED, COMPARED = 0.05, 500
"""Filled rows are usual in a table if more than this share of the accepted rows are filled, of at
most so many that are compared."""

ROUNDING = 1e-12


class Groups(NamedTuple):
    """Which rejected samples (rows,) belong to groups, and which others are similar."""

    members: np.ndarray
    similar: np.ndarray


def find_groups(
    rejected: RowSample,
    accepted: RowSample,
    problem: Problem,
    basis: np.ndarray,
    scale: float,
    cutoffs: Trimmed,
) -> Groups:
    """Find the rejected samples (rows,) that components of other rejected samples describe.

    ``basis`` (k, features) is in units of ``scale``. ``cutoffs`` bound typical energies.
    """
    # A repeated row must be treated as one row with a larger weight.
    rejected, place = rejected.distinct()
    n, features = rejected.rows.shape
    if not n:
        return Groups(np.zeros(0, dtype=bool), np.zeros(0, dtype=bool))
    count = max(1, min(max(2, len(basis) - 1), features - len(basis) - 1))
    filled = find_filled(rejected, accepted)
    is_repeated = rejected.weight > 1.5 * rejected.weight.min()
    members, similar = np.zeros(n, dtype=bool), filled | is_repeated
    degree, fill = problem.loss.degree, problem.fill_value()
    engine = rejected.engine(scale, fill)
    sizes = engine.row_sizes(degree)
    limits, relative = cutoffs.for_row_sizes(sizes).cutoff, cutoffs.share * sizes
    codes, before = encode(engine, problem, Uniform(), basis)
    # Samples of the majority's kind stay rejected, whatever their size: they would add nothing.
    is_of_majority = before <= np.minimum(relative, LARGEST_ERROR * sizes)
    wide = np.where(is_of_majority, limits, np.maximum(limits, relative))
    norms = engine.row_sizes(2.0) ** 0.5
    of_equal_size, codes = rejected.divided(scale * norms), codes / norms[:, None]
    for turn in range(ROUNDS):
        left = np.flatnonzero(~members & ~filled)
        if len(left) < FEWEST:
            break
        for half, other in _halves(rejected.key, left, turn):
            parts = _learn_components(of_equal_size.take(half), codes[half], problem, basis, count)
            sample = rejected.take(other).engine(scale, fill)
            _, energies = encode(sample, problem, Uniform(), parts)
            is_described = energies <= wide[other]
            is_group = len(half) >= PER_COMPONENT * count and is_described.mean() >= MOSTLY
            members[other] = is_described if is_group else energies <= limits[other]
            similar[other] |= energies < before[other] / SIMILAR
    return Groups(members[place], (similar & ~members)[place])


def _halves(
    key: np.ndarray, chosen: np.ndarray, turn: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield halves (learned from, tested on) of chosen rows, split by content and turn."""
    place = split_place(key[chosen], turn)
    first = place < np.median(place)
    one, other = chosen[first], chosen[~first]
    if len(one) and len(other):
        yield one, other
        yield other, one


def _learn_components(
    sample: RowSample, codes: np.ndarray, problem: Problem, basis: np.ndarray, count: int
) -> np.ndarray:
    """Learn components in addition to a basis; returns both (k + count, features).

    ``codes`` (rows, k) are those of the rows for the basis.
    """
    parts, part_codes = new_directions(
        sample.whole_rows(), codes, sample.weight, np.argsort(sample.key), basis,
        min(count, len(sample)),
    )  # fmt: skip
    if not len(parts):
        return basis
    passes = PASSES
    if problem.solver.keeps_zeros:
        mean = np.asarray(sample.weight @ sample.whole_rows())
        parts, passes = np.maximum(parts, SPREAD * _unit_rows(mean[None])), MULTIPLICATIVE_PASSES
    engine = sample.engine(1.0, problem.fill_value())
    dtype = engine.like.dtype
    bases = np.concatenate([basis, parts]).astype(dtype)
    all_codes = np.maximum(np.hstack([codes, part_codes]), least_codes(problem, bases[None]))
    start = Start(engine.split(all_codes.astype(dtype), axis=1), bases[None])
    with_fixed_basis = replace(problem, fixed=bases[: len(basis)])
    (fitted,) = fit(engine, with_fixed_basis, [L21()], start, max_iter=passes, tol=0.0)
    return fitted.basis


def new_directions(
    rows: Any,
    codes: np.ndarray,
    weight: np.ndarray,
    order: np.ndarray,
    basis: np.ndarray,
    count: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Choose directions (count, features) that describe the residuals of rows for a basis.

    This is matching pursuit: the residuals of several rows are tried as directions, in the given
    ``order``. The direction with the smallest sum of remaining residual norms is replaced by the
    weighted mean of the residuals along it, and subtracted from all residuals. Also returns the
    codes (rows, count) of the directions.
    """
    parts, codes = basis, codes.astype(np.float64)
    onto, gram = np.asarray(rows @ basis.T, dtype=np.float64), basis @ basis.T
    sq_norms = _row_sq_norms(rows)
    floor = ROUNDING * sq_norms
    left = sq_norms + np.einsum("ij,ij->i", codes, codes @ gram - 2 * onto)
    for turn in range(count):
        left = np.maximum(left, floor)
        tried = np.take(order, range(turn * CANDIDATES, (turn + 1) * CANDIDATES), mode="wrap")
        residuals = as_dense(rows[tried]) - codes[tried] @ parts
        candidates = _unit_rows(np.maximum(residuals, 0.0))
        along = np.maximum(rows @ candidates.T - codes @ (parts @ candidates.T), 0.0)
        remain = np.sqrt(np.maximum(left[:, None] - along**2, floor[:, None]))
        best = candidates[np.argmin(weight @ remain)]
        along = np.maximum(rows @ best - codes @ (parts @ best), 0.0)
        share = weight * along / np.sqrt(np.maximum(left - along**2, 1e-8 * sq_norms))
        mean = np.maximum(share @ rows - (share @ codes) @ parts, 0.0)
        best = _unit_rows(mean[None])[0]
        if not best.any():
            break
        along = np.maximum(rows @ best - codes @ (parts @ best), 0.0)
        parts, codes = np.vstack([parts, best]), np.column_stack([codes, along])
        left = left - along**2
    return parts[len(basis) :], codes[:, len(basis) :]


def _unit_rows(rows: np.ndarray) -> np.ndarray:
    """Divide rows by their norms; rows of zeros remain zero."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1.0)


def find_filled(rejected: RowSample, accepted: RowSample) -> np.ndarray:
    """Find rows (rows,) that a common value fills, unless filled rows are usual in this table.

    A code for missing values, a saturated channel or a covered lens gives different samples the
    same entries, so they predict each other as copies would.
    """
    usual = accepted.take(np.argsort(accepted.key)[:COMPARED])
    if np.average(_filling_values(usual.rows) > 0, weights=usual.weight) > MANY_FILLED:
        return np.zeros(len(rejected), dtype=bool)
    filling = _filling_values(rejected.rows)
    _, which, times = np.unique(filling, return_inverse=True, return_counts=True)
    return (filling > 0) & (times[which] >= FEWEST)


def _filling_values(rows: Any) -> np.ndarray:
    """Return the value that fills each row (rows,), or zero."""
    fewest = max(2, math.ceil(FILLED_FEATURES * rows.shape[1]))
    if not scipy.sparse.issparse(rows):
        return _filling_values_of_dense(rows, fewest)
    filling = np.zeros(rows.shape[0])
    for row in np.flatnonzero(np.diff(rows.indptr) >= fewest):
        entries = rows.data[None, rows.indptr[row] : rows.indptr[row + 1]]
        filling[row] = _filling_values_of_dense(entries, fewest)[0]
    return filling


def _filling_values_of_dense(rows: np.ndarray, fewest: int) -> np.ndarray:
    """Return a value that is at least ``fewest`` times in each row and fills it, or zero.

    A value with more than half of the squares is their weighted median.
    """
    values = np.sort(np.where(rows > 0, rows, 0.0), axis=1)  # NaN is not above zero
    relative = values / np.where(values[:, -1:] > 0, values[:, -1:], 1.0)
    squares = np.cumsum(relative**2, axis=1, dtype=np.float64)
    below = np.sum(squares <= FILLED * squares[:, -1:], axis=1, keepdims=True)
    middle = np.minimum(below, rows.shape[1] - 1)
    value, size = (np.take_along_axis(table, middle, axis=1) for table in (values, relative))
    times = np.sum(values == value, axis=1, keepdims=True)
    is_filled = (times >= fewest) & (times * size**2 > FILLED * squares[:, -1:])
    return np.where(is_filled, value, 0.0)[:, 0]


def _row_sq_norms(rows: Any) -> np.ndarray:
    """Compute the squared norm of every row (rows,) in float64."""
    if scipy.sparse.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
