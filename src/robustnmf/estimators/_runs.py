"""Many fits of one table from random starts, as batches that fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robustnmf import archive
from robustnmf.arrays import Array, host_dtype, to_numpy
from robustnmf.checkpoint import Checkpoint
from robustnmf.compatibility import ModelSpec
from robustnmf.estimators._plan import FitPlan
from robustnmf.estimators._start import starts_from
from robustnmf.weightings import Uniform

CODES_BYTES = 2**30
"""Memory for the codes of all members of a batch, with what a pass holds beside them."""

CODES_ARRAYS = 6
"""Arrays of the size of the codes that a pass holds."""

BATCH_COLUMNS = 500
"""Columns of all members of a batch from which on more do not make products faster on a CPU."""

PLANNED_RANK = 10
"""Rank for which batches are planned where none is given."""

FAR = 5.0
"""Robust standard deviations above the median objective from which on a run is left out."""

NEAR = 0.01
"""Share of the objective by which a run may be above the median in any case."""

NORMAL = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""

FORMAT = "robustnmf runs 1"


@dataclass
class Runs:
    """Results of the runs: components (runs, k, features) and objectives in the user's units.

    ``n_iter`` (runs,) are iterations, ``seeds`` (runs,) those of the starts, and ``resamples``
    (runs,) those of the resample of X that a run has seen. Runs that are not done have -1
    iterations.
    """

    components: np.ndarray
    objectives: np.ndarray
    n_iter: np.ndarray
    seeds: np.ndarray
    resamples: np.ndarray

    @classmethod
    def planned(
        cls, count: int, basis: tuple[int, int], dtype: Any, rng: Any, resamples: int
    ) -> Runs:
        """Prepare so many runs with different seeds, spread evenly over the resamples of X."""
        return cls(
            np.zeros((count, *basis), dtype=dtype),
            np.zeros(count),
            np.full(count, -1),
            rng.randint(2**31 - 1, size=count),
            rng.randint(2**31 - 1, size=resamples)[np.arange(count) * resamples // count],
        )

    def finished(self) -> Runs:
        """Return the runs that are done."""
        return Runs(**{name: array[self.done] for name, array in vars(self).items()})

    def kept(self) -> np.ndarray:
        """Return which runs (runs,) have an objective not far above the others of their resample.

        Such a run has ended early, or in a poor minimum.
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
        """Which runs are done (runs,)."""
        return self.n_iter >= 0

    def batches(self, members: int) -> Iterator[np.ndarray]:
        """Yield the indices of runs that are left to do, a batch at a time, of one resample."""
        for resample in np.unique(self.resamples):
            (runs,) = np.nonzero((self.resamples == resample) & ~self.done)
            yield from (runs[at : at + members] for at in range(0, len(runs), members))


def restore_runs(checkpoint: Checkpoint, runs: Runs) -> None:
    """Read finished runs, and the seeds of all of them, from the file of a checkpoint."""
    if not checkpoint.path.exists():
        return
    arrays, _ = checkpoint.read(FORMAT)
    for name, array in vars(runs).items():
        if name not in arrays or arrays[name].shape != array.shape:
            raise checkpoint.damaged(ValueError(f"it has other {name}"))
    vars(runs).update(arrays)


def write_runs(checkpoint: Checkpoint, runs: Runs) -> None:
    """Write all runs to the file of a checkpoint."""
    record = {"format": FORMAT, "identity": checkpoint.identity}
    archive.write(checkpoint.path, dict(vars(runs)), record)


def most_members(n_components: int | str | None, n_runs: int, on_device: bool) -> int:
    """Return how many members a batch has at most; on a CPU, no more than make it faster."""
    rank = n_components if isinstance(n_components, int) else PLANNED_RANK
    return n_runs if on_device else max(1, min(n_runs, BATCH_COLUMNS // rank))


def fitting_members(plan: FitPlan, rank: int, most: int) -> int:
    """Return how many members of a batch fit into memory."""
    row_bytes = rank * host_dtype(plan.engine.like).itemsize * CODES_ARRAYS
    return max(1, min(most, CODES_BYTES // (plan.engine.shape[0] * row_bytes)))


@dataclass(frozen=True)
class Settled:
    """What all runs share.

    ``parts`` are those of the estimator with automatic parameters fixed, ``run_parts`` those of
    the runs, both in the user's units, and ``weights`` (samples,) those of the samples in all runs.
    ``reference`` is the basis of the screening of the entries in the user's units, if there is one.
    """

    parts: ModelSpec
    run_parts: ModelSpec
    weights: np.ndarray | None
    reference: Array | None = None


def settle(model: Any, plan: FitPlan, sample_weight: np.ndarray | None) -> Settled:
    """Fit once, and fix the weights of the samples for all runs.

    Runs from random starts would each weight samples by their own first approximation, which is
    bad for all samples; one robust fit has a good start. With the weights given, all runs minimise
    one plain objective, and their values can be compared.
    """
    loss = plan.problem.loss.rescaled(plan.engine.scale)
    parts = plan.parts._replace(loss=loss)
    reference = None if plan.reference is None else plan.reference * plan.engine.scale
    if isinstance(parts.weighting, Uniform):
        return Settled(parts, parts, sample_weight, reference)
    (member,) = plan.run([parts.weighting], model.max_iter, model.tol)
    parts = parts._replace(weighting=member.weighting.rescaled(plan.unit))
    if parts.weighting.per_entry:  # their weights are no weights of samples
        return Settled(parts, parts, sample_weight)
    rows = to_numpy(plan.engine.row_weight)
    shares = to_numpy(
        member.weighting.normalised_weights(member.importances, plan.engine.row_weight)
    )
    weights = np.where(rows > 0, shares / np.where(rows > 0, rows, 1.0), 0.0)
    weights = weights / weights.max() * (1.0 if sample_weight is None else sample_weight)
    return Settled(parts, parts._replace(weighting=Uniform()), weights, reference)


def run_batch(model: Any, plan: FitPlan, runs: Runs, batch: np.ndarray) -> None:
    """Fit the runs of a batch and note their results."""
    rank = runs.components.shape[1]
    with plan.engine.thread_pool():
        seeds = runs.seeds[batch].tolist()
        start = starts_from("random", plan.engine, plan.problem, rank, seeds, plan.reference)
        weighting = plan.parts.weighting
        members = replace(plan, start=start).run([weighting], model.max_iter, model.tol)
    for run, member in zip(batch, members, strict=True):
        runs.components[run] = to_numpy(plan.encoder(member.basis, member.weighting)["components_"])
        runs.objectives[run] = member.history[-1] * plan.unit**member.weighting.degree
        runs.n_iter[run] = member.n_iter
