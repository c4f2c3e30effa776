"""Stable components of several runs: the runs, groups of their components, and the medians.

Components are compared at unit length. Each group has one component of every run: the components of
a run are matched with the centres of the groups (assignment problem), the centres are replaced by
the medians of their members, and both steps are repeated until nothing changes. A component whose
nearest neighbours among all runs are far away is stray and left out (Kotliar et al., 2019).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from robustnmf.arrays import on_device_of
from robustnmf.fitting.plan import Encoder, FitPlan
from robustnmf.fitting.runs import (
    Runs,
    Settled,
    counts_of,
    fitting_members,
    resampled_plans,
    restore_runs,
    run_batch,
    settle,
    write_runs,
)
from robustnmf.fitting.settings import FitSettings, Seed
from robustnmf.loop.checkpoint import Checkpoint
from robustnmf.loop.encoding import encoded_start
from robustnmf.loop.fit import fit
from robustnmf.loop.state import Fitted
from robustnmf.structures import Free

ROUNDS = 50
"""Maximum number of rounds of matching; few are needed."""

NORMAL_QUARTILES = 1.349
"""Interquartile range of a normal distribution in standard deviations."""

CHUNK = 2**24
"""Number of distances between components that are in memory at a time."""

STRAY = -1
"""Label of a component that does not belong to a group."""


@dataclass(frozen=True)
class Groups:
    """Groups of the components of several runs.

    ``medians`` and ``spread`` (k, features) are medians and standard deviations of the entries,
    ``stability`` and ``silhouette`` (k,) measure the agreement within a group, and ``labels``
    (runs, k) are the groups of all components.
    """

    medians: np.ndarray
    spread: np.ndarray
    stability: np.ndarray
    silhouette: np.ndarray
    labels: np.ndarray


Progress = Callable[[int, Callable[[], Encoder]], bool]
"""Called after every batch with the number of finished runs and a function that returns the best
run so far; returns whether to stop."""


def screened_once(settings: FitSettings) -> FitSettings:
    """Return the settings of the fit that precedes the runs, with at most one screening."""
    init = "robust" if settings.spec.weighting.needs_screening else "random"
    return replace(settings, n_init=1, random_state=0, init=init, verbose=0)


def find_consensus(
    plan: FitPlan,
    most: int,
    *,
    n_runs: int,
    random_state: Seed,
    resample: str | None = None,
    n_resamples: int = 1,
    density_threshold: float = np.inf,
    neighborhood: float = 1.0,
    checkpoint: Checkpoint | None = None,
    report: Callable[[int], Progress] | None = None,
) -> tuple[Runs, Settled, Groups]:
    """Fit all runs, batch by batch, and group their components.

    ``most`` is the maximum number of members of a batch. Runs in the checkpoint are not repeated.
    ``report`` takes the number of batches and returns the progress function. The other arguments
    are parameters of :class:`ConsensusNMF`; by default, no component is left out.
    """
    if resample == "poisson":
        counts_of(plan.source)
    settled = settle(plan)
    resamples = 1 if resample is None else min(n_resamples, n_runs)
    planned = Runs.planned(plan, n_runs, resamples, random_state)
    if checkpoint is not None:
        restore_runs(checkpoint, planned)

    def best_encoder() -> Encoder:
        best = int(np.argmin(np.where(planned.done, planned.objectives, np.inf)))
        basis = on_device_of(plan.engine.like, planned.components[best] / plan.engine.scale)
        return plan.encoder(basis, settled.spec.weighting.rescaled(1.0 / plan.unit))

    plan_runs = resampled_plans(plan, settled, resample, most)
    batches = list(planned.batches(fitting_members(plan, most)))
    progress = None if report is None else report(len(batches))
    for batch in batches:
        run_batch(plan_runs(int(planned.resamples[batch[0]])), planned, batch)
        if checkpoint is not None:
            write_runs(checkpoint, planned)
        if progress is not None and progress(int(planned.done.sum()), best_encoder):
            break
    runs = planned.finished()
    groups = group_components(
        runs.components, runs.objectives, runs.kept(), density_threshold, neighborhood
    )
    return runs, settled, groups


def encode_medians(plan: FitPlan, medians: np.ndarray, settled: Settled) -> tuple[FitPlan, Fitted]:
    """Compute the best codes for the medians; return the plan and the fitted member."""
    # Medians of components are not mixtures of samples, and codes do not depend on the structure.
    if plan.problem.structure.mixes_samples:
        plan = replace(plan, problem=replace(plan.problem, structure=Free()))
    engine = plan.engine
    basis = on_device_of(engine.like, medians / engine.scale, engine.like.dtype)
    start = encoded_start(engine, plan.problem, basis[None, ...])
    weighting = settled.spec.weighting.rescaled(1.0 / plan.unit)
    (member,) = fit(engine, plan.problem, [weighting], start, max_iter=0, tol=1.0)
    return plan, member


def group_components(
    bases: np.ndarray,
    objectives: np.ndarray,
    kept_runs: np.ndarray,
    density_threshold: float,
    neighborhood: float,
) -> Groups:
    """Group the components of several runs (runs, k, features), one of each run in each group.

    Groups are in the order of the components of the best run. ``kept_runs`` (runs,) is False for
    runs that are left out.
    """
    scale = float(2.0 ** np.frexp(bases.max())[1])
    bases = bases / scale  # squares of float32 in other units leave its range
    norms = np.linalg.norm(bases, axis=2)
    unit = bases / np.where(norms > 0, norms, 1.0)[:, :, None]
    kept = kept_runs[:, None] & (norms > 0)
    kept &= neighbour_distances(unit, kept, neighborhood) <= density_threshold
    # Start from a run without stray components, if there is one.
    order = np.lexsort((objectives, -kept.sum(axis=1), ~kept_runs))
    centres = unit[order[0]]
    matched = np.zeros(0)
    for _ in range(ROUNDS):
        before, matched = matched, match_components(unit, centres)
        labels = _labels(matched, kept, kept_runs)
        if np.array_equal(before, matched):
            break
        centres = _medians(unit, labels, centres)
    members = [labels == group for group in range(len(centres))]
    sizes = np.array([np.median(norms[of_group]) for of_group in members])[:, None] * scale
    ranges = np.stack(
        [np.subtract(*_quantiles(unit[of_group], 0.75, 0.25)) for of_group in members]
    )
    cosines = [unit[of_group] @ centre for of_group, centre in zip(members, centres, strict=True)]
    return Groups(
        (sizes * centres).astype(unit.dtype),
        (sizes * ranges / NORMAL_QUARTILES).astype(unit.dtype),
        np.array([values.mean() for values in cosines], dtype=np.float64),
        group_silhouettes(unit, labels, len(centres)),
        labels,
    )


def neighbour_distances(unit: np.ndarray, kept: np.ndarray, neighborhood: float) -> np.ndarray:
    """Compute mean distances (runs, k) of unit components (runs, k, features) to neighbours.

    The number of neighbours is a share ``neighborhood`` of the runs. Only components that are
    ``kept`` are used as neighbours.
    """
    runs, k, _ = unit.shape
    count = min(max(1, int(neighborhood * kept.any(axis=1).sum())), int(kept.sum()) - 1)
    if count < 1:
        return np.zeros((runs, k))
    flat = unit.reshape(runs * k, -1)
    others = flat[kept.ravel()]
    step = max(1, CHUNK // len(others))
    means = []
    for at in range(0, len(flat), step):
        squares = np.maximum(2 - 2 * (flat[at : at + step] @ others.T), 0.0)
        nearest = np.sqrt(np.partition(squares, count, axis=1)[:, : count + 1])
        means.append(nearest.sum(axis=1) / count)  # the component itself is at distance zero
    return np.concatenate(means).reshape(runs, k)


def match_components(unit: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Match the components of every run with different centres; return labels (runs, k)."""
    runs, k, features = unit.shape
    cosines = (unit.reshape(runs * k, features) @ centres.T).reshape(runs, k, k)
    return np.stack([linear_sum_assignment(table, maximize=True)[1] for table in cosines])


def _labels(matched: np.ndarray, kept: np.ndarray, kept_runs: np.ndarray) -> np.ndarray:
    """Label stray components, except in groups without other components."""
    labels = np.where(kept, matched, STRAY)
    empty = np.setdiff1d(matched[0], labels)
    return np.where(np.isin(matched, empty) & kept_runs[:, None], matched, labels)


def _medians(unit: np.ndarray, labels: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Compute the medians of all groups at unit length; keep the centre if a median is zero."""
    medians = np.concatenate([_quantiles(unit[labels == g], 0.5) for g in range(len(centres))])
    norms = np.linalg.norm(medians, axis=1, keepdims=True)
    return np.where(norms > 0, medians / np.where(norms > 0, norms, 1.0), centres)


def _quantiles(values: np.ndarray, *shares: float) -> np.ndarray:
    """Compute quantiles (shares, features) of values (runs, features), faster than by NumPy."""
    ordered = np.sort(values, axis=0)
    place = np.array(shares) * (len(values) - 1)
    low, high = np.floor(place).astype(int), np.ceil(place).astype(int)
    above = (place - low).astype(values.dtype)[:, None]
    return ordered[low] + above * (ordered[high] - ordered[low])


def group_silhouettes(unit: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """Compute the mean silhouette (k,) of the groups of unit components, with cosine distances.

    The mean cosine to a group is the product with the mean of its members, which avoids distances
    between all pairs.
    """
    sums = np.stack([unit[labels == g].sum(axis=0, dtype=np.float64) for g in range(k)])
    counts = np.array([np.count_nonzero(labels == g) for g in range(k)])
    result = np.zeros(k)
    if k == 1:
        return result
    for g in range(k):
        if counts[g] < 2:
            continue
        members = unit[labels == g]
        products = members @ sums.T
        squares = np.vecdot(members, members)  # one, or zero for components of zeros
        own = 1 - (products[:, g] - squares) / (counts[g] - 1)
        other = np.min(np.delete(1 - products / counts, g, axis=1), axis=1)
        largest = np.maximum(np.maximum(own, other), np.finfo(np.float64).tiny)
        result[g] = np.mean((other - own) / largest)
    return result
