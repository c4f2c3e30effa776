r"""Find outliers on a few thousand rows, before the fit of all samples.

The default weighting (:class:`Trimmed` with automatic cutoffs) needs cutoffs that separate good
samples from outliers. They come from four steps:

1. Majority. A robust fit with a moderate number of components gives a basis and cutoffs. Its
   weights start with the samples in the middle of the energies, so almost half of the samples can
   be outliers without changing it much.
2. Groups. Samples beyond these cutoffs can be a minority of good samples: samples that predict each
   other are accepted (:mod:`robustnmf.screening.groups`).
3. Decision. Samples with large energies, and samples far from all others, are left out if the
   others are predicted better without them (:mod:`robustnmf.screening.decision`).
4. Start and cutoffs. All accepted samples are fitted with equal weights. Their energies give the
   fixed cutoffs of the fit of all samples.

X is read at most twice, and a third time to encode it. Rows are chosen by a hash of their content,
so every engine chooses the same rows. If X has more rows, rejected samples are drawn from all of X,
so that rare groups are not missed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from robustnmf.arrays import Array, Block, namespace, on_device_of, to_numpy
from robustnmf.engine import Engine, InMemory, RowSample, draw_rows
from robustnmf.inits import INITS
from robustnmf.loop.encoding import encoded_start
from robustnmf.loop.fit import fit
from robustnmf.loop.problem import Problem
from robustnmf.loop.state import Start
from robustnmf.screening.decision import GAIN, UNDECIDED, Decision, decide
from robustnmf.screening.groups import find_groups
from robustnmf.screening.majority import fit_majority
from robustnmf.weightings import Batch, EnergyHistogram, Trimmed, Uniform
from robustnmf.weightings.trimmed import FEWEST_SAMPLES

FEWEST_ROWS, ROWS, ENTRIES = 1500, 3000, 600_000
"""Minimum and maximum number of rows that are drawn; between these, they have this many entries.
The advice of a warning is computed only for rows with at most as many entries."""

PASSES = 30
"""Maximum number of passes of a fit of the drawn rows."""

TOLERANCE = 1e-3
"""Tolerance of these fits; the fit of all samples starts from their results."""

STRICTER = 1.0
"""Typical energies are this many standard deviations of log energies below the cutoffs."""

TRIED = (1.5, 2.0, 3.0)
"""Factors of the number of components that the advice of a warning tries."""

LEAST_ENTRY = 1e-6
"""Minimum of the entries of a start over their mean: multiplicative updates cannot change zeros."""


class Coverage(NamedTuple):
    """How the cutoffs of the fit of all samples are computed from the accepted samples.

    Cutoffs are raised by ``extra_reach`` standard deviations, and then at least until they cover
    this share of the accepted samples. It is below one, because a few outliers can have been
    accepted as a group.
    """

    extra_reach: float
    share: float


USUAL = Coverage(0.5, 0.97)
WITHOUT_ISOLATED = Coverage(-1.0, 0.97)
"""With few features, the energies of outliers are hardly larger than those of good samples."""

EVERYONE = Coverage(0.5, 1.0)
"""If it does not help to leave samples out, or if there are too few samples."""


@dataclass(frozen=True)
class Screening:
    """Start and weighting of the fit of all samples.

    Parameters
    ----------
    start : Start
        Codes and basis of every member, in the units of the engine.
    weighting : Trimmed
        With cutoffs, in the units of the engine.
    similar : float
        Total weight of the rejected samples that are similar to each other.
    sample : RowSample
        The rows that were drawn.
    decision : Decision
        Which samples are kept, and why.
    """

    start: Start
    weighting: Trimmed
    similar: float
    sample: RowSample
    decision: Decision = UNDECIDED


def screen(
    engine: Engine, problem: Problem, rank: int, init: str, seeds: Sequence[int]
) -> Screening | None:
    """Screen the samples of an engine; None if X is zero."""
    if engine.mean() == 0:
        return None
    most = min(max(FEWEST_ROWS, ENTRIES // engine.shape[1]), ROWS)
    sample, count = draw_rows(engine, most, distinct=True), engine.sample_count
    fill = problem.fill_value()
    if count < FEWEST_SAMPLES:
        every = sample.engine(engine.scale, fill, engine.like)
        bases, cutoffs = fit_accepted(every, problem, rank, init, seeds, EVERYONE, sample.weight)
        return Screening(_start(engine, problem, bases), cutoffs, 0.0, sample)
    table = sample.without_repeats().engine(engine.scale, fill, engine.like)
    majority = fit_majority(table, problem, rank)
    good, rejected = sample.take(majority.accepted), sample.take(~majority.accepted)
    all_good, all_rejected = good, rejected  # the same rows with weights that sum to those of X
    if sample.total > float(sample.weight.sum()) * (1 + 1e-9):  # there are more rows than drawn
        rule = _rejection_rule(engine, problem, majority.fitted.basis, majority.cutoffs)
        rejected = draw_rows(engine, most, rule, distinct=True)
        all_good = sample.representative().take(majority.accepted)
        all_rejected = rejected.representative()
    typical = majority.cutoffs.lower_cutoffs(STRICTER, majority.unit)
    groups = find_groups(rejected, good, problem, majority.fitted.basis, engine.scale, typical)
    pool, is_member = good.joined(rejected), np.zeros(len(good) + len(rejected), dtype=bool)
    is_member[len(good) :] = groups.members
    is_accepted = is_member.copy()
    is_accepted[: len(good)] = True
    # The rows with the smallest keys, by which it is decided, are drawn equally from all of X.
    decision = decide(pool, is_accepted, is_member, problem, rank, engine.scale)
    kept = all_good.joined(all_rejected).take(decision.kept)
    table = kept.engine(engine.scale, fill, engine.like)
    once = kept.without_repeats().weight
    coverage = WITHOUT_ISOLATED if decision.isolated else USUAL
    if decision.everyone:
        coverage = EVERYONE
    bases, cutoffs = fit_accepted(
        table, problem, rank, init, seeds, coverage, once, majority.fitted.basis
    )
    # Members of groups that are left out since they are far from others resemble each other, too.
    is_similar = is_member & ~decision.kept
    is_similar[len(good) :] |= groups.similar
    similar = float(all_good.joined(all_rejected).weight[is_similar].sum())
    return Screening(_start(engine, problem, bases), cutoffs, similar, sample, decision)


def enough_components(screening: Screening, problem: Problem, scale: float) -> int | None:
    """Return a larger number of components with which no sample is left out.

    A few numbers are tried, the largest first: outliers are usually left out with any number. None
    if there is no such number, or if the search would take long.
    """
    sample, basis = screening.sample, to_numpy(screening.start.basis[0, ...])
    rows, features = sample.rows.shape
    tried = [math.ceil(factor * basis.shape[0]) for factor in TRIED]
    tried = [more for more in tried if more <= min(features, rows // 2)]
    if rows * features > ENTRIES or problem.loss.weighs_entries or not tried:
        return None
    engine = sample.engine(scale, problem.fill_value())
    is_rejected = _rejection_rule(engine, problem, basis, screening.weighting)
    rejected = np.concatenate([to_numpy(is_rejected(block)) for block in engine.blocks])

    def is_enough(more: int) -> bool:
        found = screen(engine, problem, more, "robust", [0])
        return found is not None and found.decision.everyone

    with engine.thread_pool():  # once for all fits and reads
        # Decided for the same samples first, which takes a third of the time of a screening.
        again = decide(sample, ~rejected, np.zeros_like(rejected), problem, tried[-1], scale)
        if again.gain >= GAIN or not is_enough(tried[-1]):
            return None
        return next((more for more in tried[:-1] if is_enough(more)), tried[-1])


def _start(engine: Engine, problem: Problem, bases: np.ndarray) -> Start:
    """Build the start of the fit of all samples from bases (starts, k, features)."""
    if problem.solver.keeps_zeros:
        bases = np.maximum(bases, LEAST_ENTRY * bases.mean(axis=(1, 2), keepdims=True))
    return encoded_start(engine, problem, on_device_of(engine.like, bases))


def _rejection_rule(engine: Engine, problem: Problem, basis: Array, cutoffs: Trimmed) -> Any:
    """Return a function that masks the rows (rows,) of a block beyond the cutoffs of a fit."""
    basis = on_device_of(engine.like, basis)[None, ...]
    batch = Batch([cutoffs], basis)
    data_pass = problem.make_pass(engine, batch, basis, basis)

    def is_rejected(block: Block) -> Array:
        codes, cache = data_pass.encode(block, batch)
        energies = data_pass.energies(block, codes, cache)[0, ...]
        return energies > cutoffs.for_row_sizes(block.row_sizes(problem.loss.degree)).cutoff

    return is_rejected


def fit_accepted(
    engine: InMemory,
    problem: Problem,
    rank: int,
    init: str,
    seeds: Sequence[int],
    coverage: Coverage,
    weight: np.ndarray,
    basis: np.ndarray | None = None,
) -> tuple[np.ndarray, Trimmed]:
    """Fit accepted samples with equal weights; returns bases (starts, k, features) and cutoffs.

    Cutoffs cover a share of ``weight`` (rows,), in which repeated rows can count once. The default
    start is the better one of two: NNDSVDa, and the basis (k, features) of the majority.
    """
    degree, complete, xp = problem.loss.degree, engine.filled(), namespace(engine.like)
    make_start = INITS["nndsvda" if init == "robust" else init]
    starts = [make_start(complete, rank, int(seed)) for seed in seeds]
    bases = [basis for _, basis in starts]
    if init == "robust" and basis is not None and len(basis) == rank:
        bases.append(on_device_of(engine.like, basis, bases[0].dtype))
        start = encoded_start(engine, problem, xp.stack(bases))
    else:
        codes = [xp.stack(rows) for rows in zip(*(codes for codes, _ in starts), strict=True)]
        start = Start(codes, xp.stack(bases))
    members = fit(engine, problem, [Uniform()] * len(bases), start, max_iter=PASSES, tol=TOLERANCE)
    objectives = np.array([member.shifted_objective for member in members])
    # The first of equally good members, so that rounding does not decide.
    best = members[int(np.argmax(objectives <= (1.0 + TOLERANCE) * objectives.min()))]
    energies, unit = best.penalised_energies, engine.typical_size(degree)
    sizes = to_numpy(engine.row_sizes(degree))
    histogram = EnergyHistogram.of(energies, sizes, weight, unit=unit, features=0)
    if basis is not None:  # there are enough samples, even if few were accepted
        histogram = replace(histogram, samples=max(histogram.samples, FEWEST_SAMPLES))
    cutoffs = Trimmed().resolve_auto(histogram, coverage.extra_reach)
    cutoffs = cutoffs.raise_cutoffs_to_cover(energies, sizes, weight, coverage.share)
    kept = [best] if init == "robust" else members
    return np.stack([member.basis for member in kept]), cutoffs
