"""Many fits of one table or of its resamples, from random starts and in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import check_random_state

from robustnmf.arrays import Array, host_dtype, on_device_of, to_numpy
from robustnmf.files import archive
from robustnmf.fitting.plan import FitPlan, check_source, plan_fit
from robustnmf.fitting.settings import FitSettings, Seed
from robustnmf.fitting.starts import DEFAULT_RANK, starts_from
from robustnmf.loop.checkpoint import Checkpoint
from robustnmf.loop.compatibility import ModelSpec
from robustnmf.sources import Source, source_for
from robustnmf.weightings import Uniform

CODES_BYTES = 2**30
"""Memory for the codes of all members of a batch, including temporary arrays."""

CODES_ARRAYS = 6
"""Number of arrays of the size of the codes in a pass."""

BATCH_COLUMNS = 1000
"""Components of all members of a batch on a CPU; half as many take 5% longer."""

FAR = 5.0
"""A run is left out if it is more robust standard deviations above the median objective."""

NEAR = 0.01
"""A run is kept in any case if it is at most this share above the median objective."""

NORMAL = 1.4826
"""Ratio of standard deviation and median absolute deviation of a normal distribution."""

LARGEST_MEAN = 1e12
"""Above this mean, counts are drawn from normal distributions, which agree to six digits.

NumPy's Poisson distribution is too wide for means of 1e17 and raises an error for 1e19."""

FORMAT = "robustnmf runs 1"


@dataclass
class Runs:
    """Results of the runs: components (runs, k, features) and objectives in the user's units.

    ``n_iter`` (runs,) are iterations (-1 for unfinished runs), ``seeds`` (runs,) the seeds of the
    starts, and ``resamples`` (runs,) the seeds of the resamples of X.
    """

    components: np.ndarray
    objectives: np.ndarray
    n_iter: np.ndarray
    seeds: np.ndarray
    resamples: np.ndarray

    @classmethod
    def planned(cls, plan: FitPlan, count: int, resamples: int, random_state: Seed) -> Runs:
        """Prepare runs with different seeds, split evenly among the resamples of X."""
        rng = check_random_state(random_state)
        engine = plan.engine
        return cls(
            np.zeros((count, plan.rank, engine.shape[1]), dtype=host_dtype(engine.like)),
            np.zeros(count),
            np.full(count, -1),
            rng.randint(2**31 - 1, size=count),
            rng.randint(2**31 - 1, size=resamples)[np.arange(count) * resamples // count],
        )

    def finished(self) -> Runs:
        """Return the finished runs."""
        return Runs(**{name: array[self.done] for name, array in vars(self).items()})

    def kept(self) -> np.ndarray:
        """Return a mask (runs,) of runs whose objective is not far above others of their resample.

        Other runs have ended early or in a poor minimum.
        """
        ratios = np.ones(len(self.objectives))
        for resample in np.unique(self.resamples):
            same = self.resamples == resample
            median = np.median(self.objectives[same])
            ratios[same] = self.objectives[same] / (median if median > 0 else 1.0)
        centre = np.median(ratios)
        spread = NORMAL * np.median(np.abs(ratios - centre))
        return ratios <= centre + max(FAR * spread, NEAR)

    @property
    def done(self) -> np.ndarray:
        """Mask (runs,) of finished runs."""
        return self.n_iter >= 0

    def batches(self, members: int) -> Iterator[np.ndarray]:
        """Yield the indices of unfinished runs in batches, each of one resample."""
        for resample in np.unique(self.resamples):
            (runs,) = np.nonzero((self.resamples == resample) & ~self.done)
            yield from (runs[at : at + members] for at in range(0, len(runs), members))


def restore_runs(checkpoint: Checkpoint, runs: Runs) -> None:
    """Read finished runs and the seeds of all runs from a checkpoint."""
    if not checkpoint.path.exists():
        return
    arrays, _ = checkpoint.read(FORMAT)
    for name, array in vars(runs).items():
        if name not in arrays or arrays[name].shape != array.shape:
            raise checkpoint.damaged(ValueError(f"it has other {name}"))
    vars(runs).update(arrays)


def write_runs(checkpoint: Checkpoint, runs: Runs) -> None:
    """Write all runs to a checkpoint."""
    record = {"format": FORMAT, "identity": checkpoint.identity}
    archive.write(checkpoint.path, dict(vars(runs)), record)


def most_members(settings: FitSettings, n_runs: int, source: Source) -> int:
    """Return the maximum number of members of a batch; on a CPU, large batches are not faster."""
    given = settings.n_components
    rank = int(given) if isinstance(given, Integral) else DEFAULT_RANK
    return n_runs if source.on_device else max(1, min(n_runs, BATCH_COLUMNS // rank))


def fitting_members(plan: FitPlan, most: int) -> int:
    """Return the number of members of a batch that fit into memory."""
    row_bytes = plan.rank * host_dtype(plan.engine.like).itemsize * CODES_ARRAYS
    return max(1, min(most, CODES_BYTES // (plan.engine.shape[0] * row_bytes)))


@dataclass(frozen=True)
class Settled:
    """The model and the weights of the samples that all runs share.

    ``spec`` is the model of the settings with automatic parameters fixed, ``run_spec`` the model
    of the runs, both in the user's units, and ``weights`` (samples,) are the weights in all runs.
    ``reference`` is the basis from the screening of the entries in the user's units, if any.
    """

    spec: ModelSpec
    run_spec: ModelSpec
    weights: np.ndarray | None
    reference: Array | None = None


def settle(plan: FitPlan) -> Settled:
    """Fit once, and fix the weights of the samples for all runs.

    At a random start, the approximation of all samples is bad, and so would be the weights; one
    robust fit has a good start. With fixed weights, all runs minimise the same objective, and its
    values can be compared.
    """
    sample_weight, scale = plan.sample_weight, plan.engine.scale
    spec = plan.settings.spec._replace(loss=plan.problem.loss.rescaled(scale))
    reference = None if plan.reference is None else plan.reference * scale
    if isinstance(spec.weighting, Uniform):
        return Settled(spec, spec, sample_weight, reference)
    (member,) = plan.run()
    spec = spec._replace(weighting=member.weighting.rescaled(plan.unit))
    if spec.weighting.per_entry:  # weights of entries are not weights of samples
        return Settled(spec, spec, sample_weight)
    rows = to_numpy(plan.engine.row_weight)
    shares = to_numpy(
        member.weighting.normalised_weights(member.importances, plan.engine.row_weight)
    )
    weights = np.where(rows > 0, shares / np.where(rows > 0, rows, 1.0), 0.0)
    weights = weights / weights.max() * (1.0 if sample_weight is None else sample_weight)
    return Settled(spec, spec._replace(weighting=Uniform()), weights, reference)


def plan_settled(settings: FitSettings, settled: Settled, source: Source, members: int) -> FitPlan:
    """Plan a fit of a checked source with settled weights."""
    plan = plan_fit(
        settings, source, sample_weight=settled.weights, weightings=members, screened=False
    )
    if settled.reference is None:
        return plan
    return replace(plan, reference=settled.reference / plan.engine.scale)


def run_batch(plan: FitPlan, runs: Runs, batch: np.ndarray) -> None:
    """Fit the runs of a batch and store their results."""
    with plan.engine.thread_pool():
        seeds = runs.seeds[batch].tolist()
        start = starts_from("random", plan.engine, plan.problem, plan.rank, seeds, plan.reference)
        members = replace(plan, start=start).run(solve_codes=False)  # codes are not used
    for run, member in zip(batch, members, strict=True):
        runs.components[run] = to_numpy(plan.encoder(member.basis, member.weighting).components)
        runs.objectives[run] = member.history[-1] * plan.unit**member.weighting.degree
        runs.n_iter[run] = member.n_iter


def resampled_plans(
    plan: FitPlan, settled: Settled, resample: str | None, members: int
) -> Callable[[int], FitPlan]:
    """Return a function that plans the runs of a resample of X from its seed.

    The last plan is cached, because all batches of a resample are run in a row.
    """
    settings = replace(plan.settings, spec=settled.run_spec, init="random", n_components=plan.rank)

    def plan_runs(seed: int) -> FitPlan:
        rng = np.random.default_rng(seed)
        table, weights = plan.source, settled.weights
        if resample == "rows":
            # Only samples with a positive weight are drawn.
            samples = table.shape[0]
            counted = np.arange(samples) if weights is None else np.flatnonzero(weights > 0)
            drawn = np.bincount(rng.choice(counted, size=len(counted)), minlength=samples)
            weights = drawn * (1.0 if weights is None else weights)
        elif resample == "poisson":
            table = check_source(settings, source_for(draw_counts(table, rng), settings.name))
        return plan_settled(settings, replace(settled, weights=weights), table, members)

    return lru_cache(maxsize=1)(plan_runs)


def draw_counts(source: Source, rng: np.random.Generator) -> Any:
    """Draw every entry from a Poisson distribution whose mean is the entry of X; keep NaN."""
    table = counts_of(source)
    if scipy.sparse.issparse(table):
        drawn = table.copy()
        drawn.data = _poisson(table.data, rng).astype(table.dtype)
        drawn.eliminate_zeros()
        return drawn
    host = to_numpy(table)
    missing = np.isnan(host)
    new = _poisson(np.where(missing, 0.0, host), rng).astype(host_dtype(table))
    new[missing] = np.nan
    return on_device_of(table, new)


def _poisson(means: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw from Poisson distributions, or from normal distributions if means are huge."""
    drawn = rng.poisson(np.minimum(means, LARGEST_MEAN)).astype(np.float64)
    is_huge = means > LARGEST_MEAN
    huge = means[is_huge].astype(np.float64)
    drawn[is_huge] = np.rint(rng.normal(huge, np.sqrt(huge)))
    return drawn


def counts_of(source: Source) -> Any:
    """Return the table of a checked source; refuse data that are not counts in memory."""
    table = getattr(source, "table", None)
    if table is None:
        raise ValueError(
            "resample='poisson' needs X in memory. For X in files or on clusters, use "
            "resample='rows' or None."
        )
    values = to_numpy(table.data if scipy.sparse.issparse(table) else table)
    if not np.array_equal(values, np.rint(values), equal_nan=True):
        raise ValueError(
            "resample='poisson' needs counts, but X contains numbers that are not integers. Use "
            "resample='rows', or pass the counts."
        )
    return table
