"""Errors of hidden entries for several numbers of components, which are fitted as one batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from robustnmf.arrays import Array
from robustnmf.encoding import encode, encoded_start
from robustnmf.estimators._aliases import init_of
from robustnmf.estimators._plan import FitPlan, plan_fit
from robustnmf.estimators._start import start_of
from robustnmf.estimators.robust import RobustNMF
from robustnmf.fit import fit
from robustnmf.losses import ReweightedLoss
from robustnmf.problem import Problem
from robustnmf.screening import screen_entries
from robustnmf.sources import in_memory_engine, source_for
from robustnmf.state import Start
from robustnmf.structures import Free
from robustnmf.weightings import Uniform

REACH = 2.5
"""Robust standard deviations of log errors beyond the centre at which errors are capped."""

DENSE_NUMBERS = 1_000_000
"""Entries of sparse X that are looked at together as a dense table."""

NORMAL = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""


def hidden_errors(
    model: RobustNMF, table: np.ndarray, out: np.ndarray, ranks: np.ndarray
) -> np.ndarray:
    """Mean error of the hidden entries of every sample (ranks, samples); NaN where none is."""
    seen = np.where(out, np.nan, table)
    empty = np.asarray(np.isnan(seen).all(axis=1) & out.any(axis=1))
    seen[empty], out = table[empty], out & ~empty[:, None]
    if not out.any():
        raise ValueError("all hidden entries are the only ones of their samples; X has too few.")
    plan, fitted = _fit_ranks(model, seen, ranks)
    return np.stack([_error(plan, member, table, out) for member in fitted])


def _fit_ranks(model: RobustNMF, X: Any, ranks: np.ndarray) -> tuple[FitPlan, list[Any]]:
    """Fit all ranks as one batch; smaller ones have components that are zero."""
    parts = model._checked_parts()
    if parts.structure.mixes_samples:
        raise ValueError("select_rank is not for convex structures, which mix all samples.")
    plan = plan_fit(
        model, parts, source_for(X, type(model).__name__), None, None, None,
        weightings=len(ranks), screened=False,
    )  # fmt: skip
    width = plan.start.basis.shape[1]
    with plan.engine.thread_pool():
        is_fixed = plan.problem.fixed is not None
        if parts.loss.has_auto and init_of(model) == "robust" and not is_fixed:
            every = [_screened_start(plan, int(k)) or plan.start for k in ranks]
        else:
            every = [
                plan.start if k == width
                else start_of(
                    model, plan.engine, plan.problem, int(k), reference=plan.reference
                )[0]
                for k in ranks
            ]  # fmt: skip
    starts = [_padded(start, width) for start in every]
    weightings = [parts.weighting.rescaled(1.0 / plan.unit)] * len(ranks)
    fitted = fit(
        plan.engine,
        plan.problem,
        weightings,
        _stacked(starts),
        max_iter=model.max_iter,
        tol=model.tol,
    )
    return plan, fitted


def _screened_start(plan: FitPlan, rank: int) -> Start | None:
    """Return the start of a rank that bad entries have not shaped, if there is one."""
    assert isinstance(plan.problem.loss, ReweightedLoss)
    basis = screen_entries(plan.engine, plan.problem.loss, rank, seed=0).basis
    return None if basis is None else encoded_start(plan.engine, plan.problem, basis[None])


def held_out_errors(
    model: RobustNMF, table: Any, rows: np.ndarray, columns: np.ndarray, ranks: np.ndarray
) -> np.ndarray:
    """Mean error of sparse X in held-out columns, for held-out rows (ranks, samples); else NaN."""
    if model.fixed_components is not None:
        raise ValueError("select_rank of sparse X cannot hold components. Leave them out.")
    plan, fitted = _fit_ranks(model, table[~rows][:, ~columns], ranks)
    beside, below, corner = table[rows][:, ~columns], table[~rows][:, columns], table[rows]
    corner = corner[:, columns]
    errors = np.full((len(ranks), table.shape[0]), np.nan)
    for at, (k, member) in enumerate(zip(ranks, fitted, strict=True)):
        basis = member.basis[:k]
        engine = in_memory_engine(
            beside, plan.problem, member.weighting, int(k), scale=plan.engine.scale
        )
        codes, _ = encode(engine, plan.problem, member.weighting, basis)
        other = _basis_of_columns(plan, member.codes[:, :k], member.importances, below)
        errors[at, rows] = _sparse_error(plan, corner, codes, other)
    return errors


def _basis_of_columns(plan: FitPlan, codes: Array, importances: Array, table: Any) -> Array:
    """Basis (k, columns) of further columns, for codes (samples, k) that stay.

    The transposed problem: columns are encoded by the codes of the samples. A weight of a sample is
    the loss of that many times its values, as losses are homogeneous.
    """
    loss = plan.parts.loss
    weights = np.asarray(importances / importances.max(), dtype=np.float64) ** (1.0 / loss.degree)
    counted_samples = (weights > 0) & codes.any(axis=1)
    factors = weights[counted_samples].astype(codes.dtype)
    scaled = scipy.sparse.csr_array(
        (scipy.sparse.diags_array(factors, dtype=codes.dtype) @ table[counted_samples]).T
    )
    problem, weighting = Problem(loss, Free(), plan.problem.solver), Uniform()
    rank = codes.shape[1]
    engine = in_memory_engine(scaled, problem, weighting, rank, scale=plan.engine.scale)
    return encode(engine, problem, weighting, (codes[counted_samples] * factors[:, None]).T)[0].T


def _sparse_error(plan: FitPlan, table: Any, codes: Array, basis: Array) -> np.ndarray:
    """Mean error of the rows of a sparse table, a few of them at a time as a dense one."""
    step = max(1, DENSE_NUMBERS // table.shape[1])
    means = []
    for at in range(0, table.shape[0], step):
        dense = table[at : at + step].toarray() / plan.engine.scale
        entries = plan.parts.loss.entries(dense, codes[at : at + step] @ basis)
        means.append(np.asarray(entries, dtype=np.float64).mean(axis=1))
    return np.concatenate(means) * plan.unit


def _padded(start: Start, k: int) -> Start:
    """A start with components that are zero, and stay zero, up to k of them."""

    def wider(array: Array, axis: int) -> Array:
        width = [(0, 0)] * array.ndim
        width[axis] = (0, k - array.shape[axis])
        return np.pad(array, width)

    return Start([wider(codes, 2) for codes in start.codes], wider(start.basis, 1))


def _stacked(starts: list[Start]) -> Start:
    """All starts as members of one batch."""
    codes = [np.concatenate(rows) for rows in zip(*(s.codes for s in starts), strict=True)]
    return Start(codes, np.concatenate([start.basis for start in starts]))


def _error(plan: FitPlan, member: Any, table: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Mean error of the hidden entries of every sample."""
    scale = plan.engine.scale
    rows, columns = np.nonzero(out)
    predicted = np.einsum("ij,ji->i", member.codes[rows], member.basis[:, columns])
    loss = plan.problem.loss.of_features(columns)
    entries = loss.entries(table[rows, columns] / scale, predicted)
    count = out.sum(axis=1)
    total = np.bincount(rows, np.asarray(entries, dtype=np.float64), len(table)) * plan.unit
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def capped_mean(errors: np.ndarray) -> np.ndarray:
    """Mean over samples (folds, ranks) of errors (folds, ranks, samples), outliers capped."""
    medians = np.nanmedian(errors, axis=(0, 2))
    at_best = errors[:, int(np.argmin(medians)), :]
    logs = np.log(np.maximum(at_best[np.isfinite(at_best)], np.finfo(float).tiny))
    centre = np.median(logs)
    spread = NORMAL * np.median(np.abs(logs - centre))
    cap = float(np.exp(centre + REACH * spread))
    return np.nanmean(np.minimum(errors, cap), axis=2)
