r"""Tell groups of good samples from outliers among the samples that a basis describes badly.

Samples of a group predict each other: a few parts learned from one half of them, on top of the
basis, describe the other half as well as the majority is described. Noise, shuffled or foreign
samples do not. So rejected samples are split in two, parts are learned from each half, and the
other half is encoded with them; a sample that then has a typical energy belongs to a group.

Parts are learned with :math:`L_{2,1}` weights from rows of equal size: with a squared error they
would describe the outliers among the rejected, which are the largest and the most different.
Equal rows are one row. Rows that one value fills (a code for missing values, a saturated channel)
predict each other whatever they are, and are not evidence for a group.
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
"""How many times the samples that are still rejected are split."""

FEWEST = 4
"""Least number of rejected samples that are split, or that share a fill value."""

PASSES = 6
"""Passes of the fit of the parts of one half."""

CANDIDATES = 24
"""Rows that are tried as the direction of a new part."""

SIMILAR = 10.0
"""Rejected samples resemble each other if parts of the others divide their energy by this."""

FILLED, FILLED_FEATURES = 0.5, 0.2
"""Shares of the size and of the features of a row that one value fills, from which on it is filled.
A row of yes-or-no features has the same value in some of them too, but in few."""

MANY_FILLED, COMPARED = 0.05, 500
"""Share of accepted rows that are filled, from which on that is usual in this table, and most rows
that are looked at."""

ROUNDING = 1e-12


class Groups(NamedTuple):
    """Rejected samples (rows,): which belong to groups, which others resemble each other."""

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
    """Find the rejected samples (rows,) that parts of other rejected samples describe.

    ``basis`` (k, features) is in units of ``scale``. ``cutoffs`` bound typical energies.
    """
    # A row that is repeated, and one with as much weight, must be treated alike.
    rejected, place = rejected.distinct()
    n, features = rejected.rows.shape
    if not n:
        return Groups(np.zeros(0, dtype=bool), np.zeros(0, dtype=bool))
    count = max(1, min(max(2, len(basis) // 2), features - len(basis) - 1))
    filled = find_filled(rejected, accepted)
    is_repeated = rejected.weight > 1.5 * rejected.weight.min()
    members, similar = np.zeros(n, dtype=bool), filled | is_repeated
    degree, fill = problem.loss.degree, problem.fill_value()
    engine = rejected.engine(scale, fill)
    limits = cutoffs.for_row_sizes(engine.row_sizes(degree)).cutoff
    codes, before = encode(engine, problem, Uniform(), basis)
    norms = engine.row_sizes(2.0) ** 0.5
    of_equal_size, codes = rejected.divided(scale * norms), codes / norms[:, None]
    for turn in range(ROUNDS):
        left = np.flatnonzero(~members & ~filled)
        if len(left) < FEWEST:
            break
        for half, other in _halves(rejected.key, left, turn):
            parts = _learn_parts(of_equal_size.take(half), codes[half], problem, basis, count)
            sample = rejected.take(other).engine(scale, fill)
            _, energies = encode(sample, problem, Uniform(), parts)
            members[other] = energies <= limits[other]
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


def _learn_parts(
    sample: RowSample, codes: np.ndarray, problem: Problem, basis: np.ndarray, count: int
) -> np.ndarray:
    """Learn parts beside a basis from rows of equal size; returns both (k + count, features).

    ``codes`` (rows, k) are those of the rows for the basis.
    """
    parts, part_codes = new_directions(
        sample.whole_rows(), codes, sample.weight, np.argsort(sample.key), basis,
        min(count, len(sample)),
    )  # fmt: skip
    if not len(parts):
        return basis
    engine = sample.engine(1.0, problem.fill_value())
    dtype = engine.like.dtype
    bases = np.concatenate([basis, parts]).astype(dtype)
    all_codes = np.maximum(np.hstack([codes, part_codes]), least_codes(problem, bases[None]))
    start = Start(engine.split(all_codes.astype(dtype), axis=1), bases[None])
    with_fixed_basis = replace(problem, fixed=bases[: len(basis)])
    (fitted,) = fit(engine, with_fixed_basis, [L21()], start, max_iter=PASSES, tol=0.0)
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

    By matching pursuit: of several residuals, the one is chosen whose direction leaves the
    smallest sum of residual norms, and replaced by the weighted mean of the residuals along it;
    then residuals are reduced by it. Also returns the codes (rows, count) of the directions.
    Rows are tried as candidates in the given ``order``.
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
    """Divide rows by their norms; rows of zeros stay."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1.0)


def find_filled(rejected: RowSample, accepted: RowSample) -> np.ndarray:
    """Find rows (rows,) that the same value fills, unless filled rows are usual in this table.

    A code for missing values, a saturated channel or a covered lens gives different samples the
    same entries. They predict each other as copies do.
    """
    usual = accepted.take(np.argsort(accepted.key)[:COMPARED])
    if np.average(_filling_values(usual.rows) > 0, weights=usual.weight) > MANY_FILLED:
        return np.zeros(len(rejected), dtype=bool)
    filling = _filling_values(rejected.rows)
    _, which, times = np.unique(filling, return_inverse=True, return_counts=True)
    return (filling > 0) & (times[which] >= FEWEST)


def _filling_values(rows: Any) -> np.ndarray:
    """Return the value that fills each row (rows,), zero where there is none."""
    count, features = rows.shape
    filling = np.zeros(count)
    if scipy.sparse.issparse(rows):
        entries = np.split(rows.data, rows.indptr[1:-1])
        candidates = np.flatnonzero(np.diff(rows.indptr) >= _fewest_filled(features))
    else:
        entries = rows
        candidates = np.flatnonzero(_has_repeats(rows, _fewest_filled(features)))
    for row in candidates:
        filling[row] = _filling_value(entries[row], features)
    return filling


def _fewest_filled(features: int) -> int:
    """Return the least number of features that a value fills."""
    return max(2, math.ceil(FILLED_FEATURES * features))


def _has_repeats(rows: np.ndarray, times: int) -> np.ndarray:
    """Find rows (rows,) in which a positive value occurs several times; NaN does not count."""
    if rows.shape[1] < times:
        return np.zeros(len(rows), dtype=bool)
    values = np.sort(rows, axis=1)
    first, last = values[:, : values.shape[1] - times + 1], values[:, times - 1 :]
    return ((first == last) & (first > 0)).any(axis=1)


def _filling_value(entries: np.ndarray, features: int) -> float:
    """Return the value that fills the entries of one row, zero where there is none."""
    values, times = np.unique(entries[entries > 0], return_counts=True)  # NaN is not above zero
    often = times >= _fewest_filled(features)
    if not often.any():
        return 0.0
    squares = times * (values / values.max()) ** 2
    largest = int(np.argmax(np.where(often, squares, 0.0)))
    return float(values[largest]) if squares[largest] > FILLED * squares.sum() else 0.0


def _row_sq_norms(rows: Any) -> np.ndarray:
    """Compute the squared norm of every row (rows,) in float64."""
    if scipy.sparse.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
