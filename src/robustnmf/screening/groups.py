r"""Tell groups of good samples from outliers among the samples that a basis describes badly.

Samples of a group predict each other: a few parts learned from one half of them, on top of the
basis, describe the other half as well as the majority is described. Noise, shuffled or foreign
samples do not. So rejected samples are split in two, parts are learned from each half, and the
other half is encoded with them; a sample that then has a typical energy belongs to a group.

Parts are learned with :math:`L_{2,1}` weights from rows of equal size: with a squared error they
would describe the outliers among the rejected, which are the largest and the most different.
Rows that are the same up to rounding (a stuck sensor), or that one value fills (a code for missing
values, a saturated channel), predict each other whatever they are, and are no evidence for a group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from robustnmf.encoding import encode, least_codes
from robustnmf.engine import RowSample, split_place
from robustnmf.fit import fit
from robustnmf.problem import Problem
from robustnmf.screening.copies import (
    FEWEST,
    ROUNDING,
    as_dense,
    find_copies,
    find_filled,
    row_sq_norms,
)
from robustnmf.state import Start
from robustnmf.weightings import L21, Trimmed, Uniform

ROUNDS = 4
"""How many times the samples that are still rejected are split."""

WORTH_A_ROUND = 0.05
"""Share of the split samples that belong to groups, below which no further round follows."""

PASSES = 6
"""Passes of the fit of the parts of one half."""

CANDIDATES = 24
"""Rows that are tried as the direction of a new part."""

REFINEMENTS = 3
"""Times that the direction of a new part is averaged over the rows that it describes."""

MOST = 0.5
"""Share of the samples within the limits that have typical energies, in a group."""

WIDER = 1.5
"""Factor of the limits for the members of a group once it is found: fewer parts describe them."""

COPY = 1 / 30
"""Rows whose relative distance is below this share of a typical relative energy are copies."""

SIMILAR = 10.0
"""Rejected samples resemble each other where parts of the others divide their energy by this."""


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
    typical_cutoffs: Trimmed,
    typical_share: float,
) -> Groups:
    """Find the rejected samples (rows,) that parts of other rejected samples describe.

    ``basis`` (k, features) is in units of ``scale``. ``cutoffs`` bound the energies that count
    as described, ``typical_cutoffs`` those that are typical of good samples. ``typical_share`` is
    the typical energy of accepted samples over their size.
    """
    # A row that is repeated, and one with as much weight, must be treated alike.
    rejected, place = rejected.distinct()
    n, features = rejected.rows.shape
    if not n:
        return Groups(np.zeros(0, dtype=bool), np.zeros(0, dtype=bool))
    count = max(1, min(max(2, len(basis) // 2), features - len(basis) - 1))
    copies = find_copies(rejected.scaled(scale), accepted.scaled(scale), COPY * typical_share)
    copies |= find_filled(rejected, accepted)
    members, similar = np.zeros(n, dtype=bool), copies.copy()
    degree, fill = problem.loss.degree, problem.pass_type(False, False).fill_value
    engine = rejected.engine(scale, fill)
    sizes = engine.row_sizes(degree)
    limits, typical_limits = (
        bound.for_row_sizes(sizes).cutoff for bound in (cutoffs, typical_cutoffs)
    )
    codes, before = encode(engine, problem, Uniform(), basis)
    norms = engine.row_sizes(2.0) ** 0.5
    of_equal_size, codes = rejected.divided(scale * norms), codes / norms[:, None]
    for turn in range(ROUNDS):
        left = np.flatnonzero(~members & ~copies)
        if len(left) < FEWEST:
            break
        described = np.zeros(n, dtype=bool)
        for half, other in _halves(rejected.key, left, turn):
            parts = _learn_parts(of_equal_size.take(half), codes[half], problem, basis, count)
            sample = rejected.take(other).engine(scale, fill)
            _, energies = encode(sample, problem, Uniform(), parts)
            described[other] = _described(energies, limits[other], typical_limits[other])
            similar[other] |= energies < before[other] / SIMILAR
        members |= described
        if described.sum() < WORTH_A_ROUND * len(left):
            break
    return Groups(members[place], (similar & ~members)[place])


def _described(energies: np.ndarray, limits: np.ndarray, typical: np.ndarray) -> np.ndarray:
    """Find described samples (rows,): all within the limits, if most of them have typical energies.

    Energies of a group are distributed as those of the majority are. Where most energies within the
    limits are close to the limits, they are no group, and only typical ones are described.
    """
    within, are_typical = energies <= limits, energies <= typical
    is_group = are_typical.sum() >= MOST * within.sum()
    return energies <= WIDER * limits if is_group else are_typical


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
    engine = sample.engine(1.0, problem.pass_type(False, False).fill_value)
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
    sq_norms = row_sq_norms(rows)
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
        for _ in range(REFINEMENTS):
            along = np.maximum(rows @ best - codes @ (parts @ best), 0.0)
            share = weight * along / np.sqrt(np.maximum(left - along**2, 1e-8 * sq_norms))
            mean = np.maximum(share @ rows - (share @ codes) @ parts, 0.0)
            if not mean.any():
                break
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
