"""Resamples of X: rows drawn with replacement, or counts drawn from Poisson distributions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse

from robustnmf.arrays import has_holes, host_dtype, is_foreign, on_device_of, to_numpy
from robustnmf.estimators._plan import FitPlan, plan_fit
from robustnmf.estimators._runs import Settled
from robustnmf.sources import Source, source_for

LARGEST_MEAN = 1e12
"""Mean above which counts are drawn from normal distributions, which are the same to six digits.

NumPy's Poisson distribution is too wide for means of 1e17, and refuses 1e19."""


def resampled_plans(
    model: Any, source: Source, settled: Settled, resample: str | None, members: int
) -> Callable[[int], FitPlan]:
    """Return a function that plans the runs of a resample of checked X, given its seed.

    The last plan is kept, as the batches of a resample follow each other.
    """
    samples = source.shape[0]

    def plan_runs(seed: int) -> FitPlan:
        rng = np.random.default_rng(seed)
        table, weights = source, settled.weights
        if resample == "rows":
            # Among samples that count: others alone would teach nothing.
            counted = np.arange(samples) if weights is None else np.flatnonzero(weights > 0)
            drawn = np.bincount(rng.choice(counted, size=len(counted)), minlength=samples)
            weights = drawn * (1.0 if weights is None else weights)
        elif resample == "poisson":
            table = source_for(draw_counts(source, rng), source.name)
        plan = plan_fit(
            model, settled.run_parts, table, None, None, weights, weightings=members, screened=False
        )
        if settled.reference is None:
            return plan
        return replace(plan, reference=settled.reference / plan.engine.scale)

    return lru_cache(maxsize=1)(plan_runs)


def draw_counts(source: Source, rng: np.random.Generator) -> Any:
    """Draw every entry of checked X from a Poisson distribution of that mean; NaN stays NaN."""
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
    return on_device_of(table, new) if is_foreign(table) else new


def _poisson(means: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw from Poisson distributions, or from normal ones if means are huge."""
    drawn = rng.poisson(np.minimum(means, LARGEST_MEAN)).astype(np.float64)
    is_huge = means > LARGEST_MEAN
    huge = means[is_huge].astype(np.float64)
    drawn[is_huge] = np.rint(rng.normal(huge, np.sqrt(huge)))
    return drawn


def counts_of(source: Source) -> Any:
    """Return the table of a checked source, if it holds counts in memory."""
    table = getattr(source, "table", None)
    if table is None:
        raise ValueError(
            "resample='poisson' needs X in memory. Use resample='rows', or none, for X in files or "
            "on clusters."
        )
    values = to_numpy(table.data if scipy.sparse.issparse(table) else table)
    known = values[~np.isnan(values)] if has_holes(values) else values
    if not np.array_equal(known, np.rint(known)):
        raise ValueError(
            "resample='poisson' draws counts, but X holds numbers that are no integers. Use "
            "resample='rows', or give the counts themselves."
        )
    return table
