r"""Decide from which samples components are learned: all, those that fit, or those not isolated.

With few features, an outlier can be described well and still distort the components (a bad leverage
point), so energies do not reveal it. A second measure does: the *isolation* of a sample, its
distance to the fifth nearest of some reference rows. Its limit comes from samples that an isolation
forest accepts as usual.

Real tables have good samples that fit badly or are isolated. So several candidates are compared:
keep all samples, keep samples with typical energies, and keep those of them that are not isolated.
Reference rows are split into two halves, each candidate learns components from the rows that it
keeps in one half, and the other half is encoded with them. The error of the *core*, the rows that
all candidates keep, decides.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from robustnmf.arrays import Array, first_of_equal, to_numpy
from robustnmf.engine import InMemory, RowSample, split_place
from robustnmf.inits import INITS
from robustnmf.loop.encoding import encoded_start
from robustnmf.loop.fit import fit
from robustnmf.loop.problem import Problem
from robustnmf.screening.neighbourhood import SMALLEST, Neighbourhood, block_of_all, first_rows
from robustnmf.weightings import Batch, Separable, Uniform

FACTORS = (1.5, 1.0)
"""Factors of the limit of the isolation, one for each candidate."""

GAIN, CLEAR = 0.08, 5.0
"""Share by which a candidate must reduce the error of the core, or number of standard errors of the
reduction: with hundreds of rows, a smaller one can be beyond doubt."""

SPLITS, PASSES = 2, 6
"""Number of splits of the rows into halves, and passes of the fits of the halves."""

DESCRIBED = 5.0
"""Samples with large energies are always left out if their mean error is at least this multiple of
the mean error of the core."""

EXACT = 1e-4
"""Errors below this share of the size of a row are ignored."""


class Decision(NamedTuple):
    """Which rows (rows,) are kept, and by how much this reduces the error of the core.

    ``everyone`` is true if no sample is left out, ``isolated`` if isolated samples are. ``ratio``
    is the mean error of samples with large energies over the mean error of the core, if all samples
    are kept.
    """

    kept: np.ndarray
    gain: float = np.nan
    ratio: float = np.nan
    everyone: bool = False
    isolated: bool = False


UNDECIDED = Decision(np.ones(0, dtype=bool))
"""No decision was made: no sample was a candidate for an outlier."""


def decide(
    sample: RowSample,
    is_accepted: np.ndarray,
    is_member: np.ndarray,
    problem: Problem,
    rank: int,
    scale: float,
) -> Decision:
    """Decide from which rows of a sample components are learned.

    ``is_accepted`` (rows,) marks rows with typical energies, and ``is_member`` marks those of them
    that were accepted as members of a group. If there are too few rows to decide, accepted rows are
    kept. Members of a close group are never isolated, and a row of which more than half of the
    samples are copies is never left out.
    """
    rows, place = sample.distinct()  # in the order of their keys
    accepted, member = (np.zeros(len(rows), dtype=bool) for _ in range(2))
    # Other copies, as of a stuck sensor, are left out if this helps: their weight is their harm.
    rows, is_most = rows.without_idle()
    accepted[place] = is_accepted
    accepted |= is_most
    is_accepted = accepted[place]
    member[place] = is_member
    chosen = first_rows(rows)
    keep, most = accepted[: len(chosen)], len(chosen)
    fewest = max(SMALLEST, rank + 2)
    if keep.sum() < fewest:
        return Decision(is_accepted)
    fill = problem.fill_value()
    weight = chosen.weight / chosen.weight.mean()
    table = InMemory(
        chosen.rows, scale=scale, fill=fill, sample_weight=weight,
        block_rows=len(chosen),
    )  # fmt: skip
    near, measured = Neighbourhood.of(chosen, table.blocks[0])
    limits = []
    # Among fewer rows, those of a small cluster are as far from each other as outliers are.
    are_enough = most >= 2 * SMALLEST
    if are_enough and 2.0 * weight[measured.is_usual].sum() >= weight.sum():
        limits = [factor * near.limit for factor in FACTORS]
    candidates = [np.ones_like(keep), keep]
    in_group = is_most[:most] | (member[:most] & measured.is_cohesive)
    candidates += [keep & (in_group | ~measured.is_isolated(limit)) for limit in limits]
    while candidates[-1].sum() < fewest:
        candidates.pop()
    if candidates[-1].all():
        return Decision(is_accepted)
    halves = _halves(chosen.key)
    if min((candidates[-1] & half).sum() for half in halves) < fewest / 4:
        return Decision(is_accepted)  # one huge entry makes all keys equal
    errors, ratio = _errors(table, chosen, problem, rank, candidates, halves)
    of_core = weight[candidates[-1]]

    def is_better(i: int, j: int) -> bool:
        saved = errors[j] - errors[i]
        least = min(GAIN * (of_core @ errors[j]), CLEAR * np.sqrt(of_core @ saved**2))
        return bool(of_core @ saved > least)

    is_harmless = not is_better(1, 0) and ratio < DESCRIBED
    # A group without which the core is described worse is of its kind.
    is_needed = np.count_nonzero(~keep) >= SMALLEST and is_better(0, 1)
    best = 0 if is_harmless or is_needed else 1
    for i in range(2, len(candidates)):
        if is_better(i, best):
            best = i
    gain = 1.0 - of_core @ errors[best] / (of_core @ errors[0])
    if best == 0:
        # If they are only harmless, a few: cutoffs that cover these cover others of their kind.
        accepted[: None if is_needed else most] = True
        return Decision(accepted[place], gain, ratio, everyone=True)
    if best == 1:
        return Decision(is_accepted, gain, ratio)
    measured = near.measure(block_of_all(rows, scale, fill))
    in_group = is_most | (member & measured.is_cohesive)
    accepted &= in_group | ~measured.is_isolated(limits[best - 2])
    return Decision(accepted[place], gain, ratio, isolated=True)


class _Masks:
    """Weights (masks, rows) of the rows of one block, by number."""

    def __init__(self, table: np.ndarray):
        self.table = table


class _Kept(Separable):
    """Fixed weights of rows: the mask with a number."""

    def __init__(self, masks: Any, number: Any):
        self.masks = masks
        self.number = number

    def rho(self, energies: Array) -> Array:
        return self.weight(energies) * energies

    def weight(self, energies: Array) -> Array:
        return self.masks.table[np.ravel(self.number).astype(int)].reshape(energies.shape)


def _halves(key: np.ndarray) -> list[np.ndarray]:
    """Split rows in two by their keys (rows,), several times; returns masks of all halves."""
    halves = []
    for split in range(SPLITS):
        first = split_place(key, split) < 0.5
        halves += [first, ~first]
    return halves


def _errors(
    table: InMemory,
    rows: RowSample,
    problem: Problem,
    rank: int,
    candidates: list[np.ndarray],
    halves: list[np.ndarray],
) -> tuple[np.ndarray, float]:
    """Compute errors (candidates, core) of the core with the components of each candidate.

    Also return the mean error of rows with large energies over the mean error of the core, if all
    rows are kept. All halves of all candidates are fitted as one batch, from one start.
    """
    core = candidates[-1]
    first, which = first_of_equal(candidates)
    masks = _Masks(np.array([candidates[i] & half for i in first for half in halves], dtype=float))
    chosen = rows.take(core)
    learned_from = InMemory(chosen.whole_rows(), scale=table.scale, sample_weight=chosen.weight)
    _, basis = INITS["nndsvda"](learned_from, rank, 0)
    count = len(masks.table)
    start = encoded_start(table, problem, np.asarray(basis, dtype=table.like.dtype)[None])
    members = fit(
        table, problem, [_Kept(masks, number) for number in range(count)],
        start.repeated(table, count), max_iter=PASSES, tol=0.0,
    )  # fmt: skip
    bases = np.stack([member.basis for member in members])
    batch = Batch([Uniform()] * count, bases)
    data_pass = problem.make_pass(table, batch, bases, bases)
    with table.thread_pool():
        codes, cache = data_pass.encode(table.blocks[0], batch)
    energies = data_pass.energies(table.blocks[0], codes, cache)
    energies = energies + EXACT * table.row_sizes(problem.loss.degree)
    # Mean over the splits for every row and candidate, from fits of the half without the row.
    is_tested = np.array([~half for half in halves])
    errors = (energies.reshape(len(first), len(halves), -1) * is_tested).sum(axis=1) / SPLITS
    errors = errors[which]
    weight = to_numpy(table.row_weight)
    others = ~candidates[1] & (weight > 0)
    if not others.any():
        return errors[:, core], 0.0
    of_others, of_core = (np.average(errors[0][m], weights=weight[m]) for m in (others, core))
    return errors[:, core], float(of_others / of_core)
