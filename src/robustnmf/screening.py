r"""Decide which samples have weight, on a few thousand rows, before everything is fitted.

The default weighting (:class:`Trimmed` with automatic cutoffs) needs cutoffs that separate good
samples from bad ones. They come from three steps:

1. The majority. A fit at a moderate rank, whose weights start with the samples in the middle of
   the energies, gives a basis and cutoffs that hardly change if almost half of the samples are bad.
2. Groups. Samples beyond these cutoffs may be a minority of good ones: those that predict each
   other are accepted after all (:mod:`robustnmf.groups`).
3. Start and cutoffs. All accepted samples are fitted with equal weights. Their energies give the
   cutoffs of the fit that follows, of all samples, under an objective that stays the same.

X is read at most twice, and a third time to encode it: rows are drawn by their content, so that
every engine draws the same ones. Where X has more rows than are drawn, rejected samples
are drawn from all of X, so that rare groups are not missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robustnmf.arrays import Array, Block, namespace, on_device_of, to_numpy
from robustnmf.encoding import encoded_start
from robustnmf.engine import Engine, InMemory, RowSample, draw_rows
from robustnmf.fit import fit
from robustnmf.groups import find_groups
from robustnmf.inits import INITS
from robustnmf.majority import SAMPLES_A_PART, Majority, fit_majority
from robustnmf.problem import Problem
from robustnmf.state import Start
from robustnmf.weightings import Batch, EnergyHistogram, Trimmed, Uniform
from robustnmf.weightings.trimmed import FEWEST_SAMPLES

ROWS = 3000
"""Number of rows that are drawn."""

PASSES = 100
"""Most passes of a fit of the drawn rows."""

TOLERANCE = 1e-3
"""Tolerance of these fits; the fit of all samples starts from their results."""

STRICTER = 1.0
"""By how many standard deviations of log energies a typical sample stays below the cutoffs."""

EXTRA_REACH = 0.5
"""Standard deviations by which the cutoffs are raised once the majority is known, so that fewer
good samples are down-weighted in the fit of all samples."""

COVERED, COVERED_OF_MAJORITY = 0.9, 0.99
"""Share of the accepted samples, and of the majority among them, that the cutoffs cover however
their energies are spread. A few bad samples may have been taken for a group."""

COVERED_OF_CLEAN, CLEAN = 0.97, 0.05
"""The same where no more than a share of all samples are rejected: hardly any of the others, then,
is bad."""

ALL = 1.0
"""The same where samples are too few to reject one."""

WORTH_A_FIT = 0.05
"""Energy of the groups, as a share of that of the majority, from which on they are fitted."""

LEAST_ENTRY = 1e-6
"""Entries of a start, as a share of the mean: multiplicative updates cannot leave zero."""


@dataclass(frozen=True)
class Screening:
    """Start and weighting of the fit of all samples.

    Parameters
    ----------
    start : Start
        Of every member, in the units of the engine.
    weighting : Trimmed
        With cutoffs, in the units of the engine.
    similar : float
        Total weight of the samples that are rejected although they resemble each other.
    sample : RowSample
        The rows that were drawn.
    """

    start: Start
    weighting: Trimmed
    similar: float
    sample: RowSample


def screen(
    engine: Engine, problem: Problem, rank: int, init: str, seeds: Sequence[int]
) -> Screening | None:
    """Screen the samples of an engine; None where X is zero."""
    with engine.thread_pool():  # once for all fits and reads of the screening
        return _screen(engine, problem, rank, init, seeds)


def _screen(
    engine: Engine, problem: Problem, rank: int, init: str, seeds: Sequence[int]
) -> Screening | None:
    if engine.mean() == 0:
        return None
    sample, count = draw_rows(engine, ROWS), engine.sample_count
    fill = problem.pass_type(False, False).fill_value
    if count < FEWEST_SAMPLES:
        every = sample.engine(engine.scale, fill, engine.like)
        accepted = fit_accepted(every, problem, rank, init, seeds, len(sample), ALL)
        return Screening(_start(engine, problem, accepted), accepted.cutoffs, 0.0, sample)
    table = sample.without_repeats().engine(engine.scale, fill, engine.like)
    majority = fit_majority(table, problem, rank)
    good, rejected = sample.take(majority.accepted), sample.take(~majority.accepted)
    if sample.total > float(sample.weight.sum()) * (1 + 1e-9):  # there are more rows than drawn
        is_rejected = _rejection_rule(engine, problem, majority)
        good = good.representative()
        rejected = draw_rows(engine, ROWS, is_rejected).representative()
    groups = find_groups(
        rejected, good, problem, majority.fitted.basis, engine.scale, majority.cutoffs,
        majority.cutoffs.lower_cutoffs(STRICTER, majority.unit), majority.typical_share,
    )  # fmt: skip
    energy_of_groups = float(rejected.weight[groups.members] @ groups.energies[groups.members])
    is_small = energy_of_groups <= WORTH_A_FIT * float(good.weight @ majority.energies)
    is_supported = len(majority.fitted.basis) == rank and SAMPLES_A_PART * rank <= count
    if is_small and is_supported and init == "robust":
        accepted = _accept_majority(majority)
    else:
        inliers = good.joined(rejected.take(groups.members))
        left_out = float(rejected.weight[~groups.members].sum())
        is_clean = left_out <= CLEAN * float(good.weight.sum() + rejected.weight.sum())
        coverage = COVERED_OF_CLEAN if is_clean else COVERED
        table = inliers.engine(engine.scale, fill, engine.like)
        accepted = fit_accepted(table, problem, rank, init, seeds, len(good), coverage)
    similar = float(rejected.weight[groups.similar].sum())
    return Screening(_start(engine, problem, accepted), accepted.cutoffs, similar, sample)


def _start(engine: Engine, problem: Problem, accepted: Accepted) -> Start:
    """Build the start of the fit of all samples from the bases of the accepted ones."""
    bases, codes = accepted.bases, accepted.codes
    if problem.solver.keeps_zeros:
        bases = np.maximum(bases, LEAST_ENTRY * bases.mean(axis=(1, 2), keepdims=True))
    elif codes is not None and len(codes) == engine.shape[0]:
        codes = on_device_of(engine.like, codes[None])
        return Start(engine.split(codes, axis=1), on_device_of(engine.like, bases))
    return encoded_start(engine, problem, on_device_of(engine.like, bases))


@dataclass(frozen=True)
class Accepted:
    """Bases (starts, k, features) of the accepted samples, and the cutoffs of the best of them.

    ``codes`` are those of all drawn rows, where they are known.
    """

    bases: np.ndarray
    cutoffs: Trimmed
    codes: np.ndarray | None = None


def _rejection_rule(engine: Engine, problem: Problem, majority: Majority) -> Any:
    """Return a function that masks the rows (rows,) of a block beyond the majority's cutoffs."""
    basis = on_device_of(engine.like, majority.fitted.basis)[None, ...]
    batch = Batch([majority.cutoffs], basis)
    data_pass = problem.make_pass(engine, batch, basis, basis)

    def is_rejected(block: Block) -> Array:
        codes, cache = data_pass.encode(block, batch)
        energies = data_pass.energies(block, codes, cache)[0, ...]
        return (
            energies > majority.cutoffs.for_row_sizes(block.row_sizes(problem.loss.degree)).cutoff
        )

    return is_rejected


def _accept_majority(majority: Majority) -> Accepted:
    """Take the fit of the majority as the one of all accepted rows."""
    rows = majority.accepted
    sizes, weight = majority.sizes[rows], majority.weight[rows]
    cutoffs = _cutoffs(majority.energies, sizes, weight, majority.unit, int(rows.sum()), COVERED)
    return Accepted(majority.fitted.basis[None], cutoffs, majority.fitted.codes)


def fit_accepted(
    engine: InMemory,
    problem: Problem,
    rank: int,
    init: str,
    seeds: Sequence[int],
    majority: int,
    coverage: float,
) -> Accepted:
    """Fit accepted samples with equal weights from every start.

    The first ``majority`` of them were accepted at once, the others as groups. The cutoffs cover a
    share ``coverage`` of the samples.
    """
    degree = problem.loss.degree
    complete = engine.filled()
    make_start = INITS["nndsvda" if init == "robust" else init]
    starts = [make_start(complete, rank, int(seed)) for seed in seeds]
    xp = namespace(engine.like)
    codes = [xp.stack(rows) for rows in zip(*(codes for codes, _ in starts), strict=True)]
    start = Start(codes, xp.stack([basis for _, basis in starts]))
    members = fit(engine, problem, [Uniform()] * len(starts), start, max_iter=PASSES, tol=TOLERANCE)
    energies = min(members, key=lambda member: member.shifted_objective).penalised_energies
    sizes, weight = to_numpy(engine.row_sizes(degree)), to_numpy(engine.row_weight)
    cutoffs = _cutoffs(energies, sizes, weight, engine.typical_size(degree), majority, coverage)
    return Accepted(np.stack([member.basis for member in members]), cutoffs)


def _cutoffs(
    energies: np.ndarray,
    sizes: np.ndarray,
    row_weight: np.ndarray,
    unit: float,
    majority: int,
    coverage: float,
) -> Trimmed:
    """Read the cutoffs of the fit of all samples off the energies (rows,) of accepted ones.

    The first ``majority`` of them were accepted at once, the others as groups.
    """
    histogram = EnergyHistogram.of(energies, sizes, row_weight, unit=unit, features=0)
    if coverage < ALL:  # of enough samples few may have been accepted
        histogram = replace(histogram, samples=max(histogram.samples, FEWEST_SAMPLES))
    cutoffs = Trimmed().resolve_auto(histogram, EXTRA_REACH)
    cutoffs = cutoffs.raise_cutoffs_to_cover(energies, sizes, row_weight, coverage)
    first = slice(majority)
    return cutoffs.raise_cutoffs_to_cover(
        energies[first], sizes[first], row_weight[first], COVERED_OF_MAJORITY
    )
