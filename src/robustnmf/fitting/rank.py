r"""Choose the number of components by how well hidden entries are predicted.

Entries are hidden at random, all over X ("speckled" masks: Wold, 1978; Owen and Perry, 2009), and
every rank predicts them from the other entries. Models with too few components miss structure, and
models with too many fit noise; both increase the error of hidden entries. The error of a sample is
capped, so that outliers do not determine the choice. The error of sample i is

.. math:: \min\Big(\tfrac{1}{|H_i|} \sum_{j \in H_i} d(x_{ij}, (AC)_{ij}),\; c\Big)

over its hidden entries :math:`H_i`. The cap c is above the errors of most samples at the best rank.

Sparse X cannot contain missing values, and is never converted to a dense table. There, the entries
of some samples in some features are hidden (bi-cross-validation: Owen and Perry, 2009). The other
samples and features are factorised. Then the codes of the hidden samples are computed from the
other features, and the components in the hidden features from the other samples. Their product
predicts the hidden entries.

The weights of the samples are computed once, by a fit of all known entries with the default number
of components. All further fits minimise the plain objective with these weights.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import check_random_state

from robustnmf.arrays import Array
from robustnmf.engine import draw_rows, run_fits
from robustnmf.exceptions import warn
from robustnmf.fitting.consensus import find_consensus, screened_once
from robustnmf.fitting.plan import FitPlan, check_source, plan_fit
from robustnmf.fitting.rank_selection import RankSelection, has_risen
from robustnmf.fitting.runs import NORMAL, Settled, most_members, plan_settled, settle
from robustnmf.fitting.settings import FitSettings, check_weights
from robustnmf.fitting.starts import default_rank, draw_seeds, starts_from
from robustnmf.loop.compatibility import ModelSpec
from robustnmf.loop.encoding import encode, encoded_start, entry_weights
from robustnmf.loop.fit import fit
from robustnmf.loop.problem import Problem
from robustnmf.loop.state import Fitted, Start
from robustnmf.losses import Frobenius
from robustnmf.screening.entries import HAS_WEIGHT, START_PASSES, START_TOLERANCE
from robustnmf.sources import Source, in_memory_engine, source_for
from robustnmf.structures import Free
from robustnmf.weightings import Uniform

BATCH_RANKS = 3
"""Number of ranks that are fitted as one batch. Each takes as long as the largest one."""

SMALL = 100_000
"""Up to this number of entries, calls take longer than the arithmetic, so batches are larger."""

SMALL_BATCH_RANKS = 5
"""Number of ranks in a batch for such small X."""

LEAST_RANKS = 2
"""Minimum number of ranks in a batch; fewer ranks at the end are added to the last batch."""

MAX_RANK = 15
"""Largest number of components that ``n_components="auto"`` compares."""

MAX_ROWS = 2000
"""Maximum number of samples for ``n_components="auto"``. More do not improve the choice: with 2,000
samples it was right for 35 of 42 generated tables, with 5,000 for 33."""

RUNS = 10
"""Number of random starts of each rank, to measure the stability of its components."""

RUN_PASSES = 50
"""Iterations of a run. Fits until convergence also compute final codes and take twice as long."""

SHORT: dict[str, Any] = {"max_iter": 300, "tol": 1e-3}
"""Default parameters of the fits of a comparison."""

REACH = 2.5
"""Errors are capped this many robust standard deviations of log errors above the centre."""

DENSE_NUMBERS = 1_000_000
"""Number of entries of sparse X that are dense at a time."""


def choose_components(
    settings: FitSettings, source: Source, sample_weight: Any
) -> tuple[FitSettings, RankSelection | None]:
    """Return settings with a number of components, and the comparison for "auto" (or None)."""
    if not settings.chooses_rank:
        return settings, None
    weights = check_weights(sample_weight, source.shape[0])
    selection = choose_rank(settings, draw_rank_rows(settings, source, weights))
    if selection.at_edge and selection.recommended == MAX_RANK:
        warn(
            f"n_components='auto' chose {MAX_RANK} components, the largest number that it tries. "
            "Larger numbers may be better: compare them with select_rank(X, ranks).",
            UserWarning,
        )
    return replace(settings, n_components=selection.recommended), selection


def draw_rank_rows(settings: FitSettings, source: Source, sample_weight: Any = None) -> Any:
    """Return rows (rows, features) of checked X for the choice of the number, on the host.

    Up to ``MAX_ROWS``, all rows with a weight are returned, in their order. Of more rows, the same
    ones are chosen for every kind of X.
    """
    weighting = settings.spec.weighting
    engine = source.engine(settings.problem(), weighting, 1, sample_weight=sample_weight)
    with engine.thread_pool():
        rows = draw_rows(engine, MAX_ROWS).rows
    engine.close()
    return rows


def choose_rank(settings: FitSettings, rows: Any, max_rank: int = MAX_RANK) -> RankSelection:
    """Compare numbers of components on rows (rows, features), for ``n_components="auto"``.

    Without a seed, the seed is zero, so that all fits of X choose the same number. ``max_rank`` is
    the largest number that is compared, if X is large enough.
    """
    if min(rows.shape) < 2:
        raise ValueError(
            "n_components='auto' needs at least two samples and two features, but X has "
            f"n_samples={rows.shape[0]}, n_features={rows.shape[1]}. Use n_components=1 (blank "
            "samples do not count)."
        )
    least = _least_rank(settings)
    ranks = range(least, max(least, min(max_rank, largest_rank(rows))) + 1)
    seed = 0 if settings.random_state is None else settings.random_state
    short = replace(settings, n_init=1, random_state=seed, **SHORT)
    try:
        with warnings.catch_warnings(action="ignore"):  # from fits of numbers that are not chosen
            return compare_ranks(short, rows, ranks, n_runs=RUNS)
    except ValueError as error:
        raise ValueError(
            f"n_components='auto' cannot compare numbers of components: {error} Give a number."
        ) from error


def compare_ranks(
    settings: FitSettings,
    table: Any,
    ranks: Iterable[int],
    *,
    n_folds: int = 5,
    hidden: float = 0.1,
    n_runs: int | None = None,
) -> RankSelection:
    """Compare numbers of components by the errors of hidden entries of a table on the host.

    The arguments are those of ``select_rank``; ``n_runs`` is None if stability is not computed.
    """
    checked_ranks = _checked_ranks(ranks, table, hidden, _least_rank(settings))
    rng = check_random_state(settings.random_state)
    seed = int(rng.randint(2**31 - 1))
    plain, settled = _settle(settings, table)
    with warnings.catch_warnings(action="ignore"):  # about features that are hidden
        errors = _errors(plain, settled, table, checked_ranks, n_folds, hidden, rng, seed)
    count = errors.shape[1]
    left_out = tuple(checked_ranks[count:].tolist())
    selection = RankSelection(checked_ranks[:count], errors, left_out=left_out)
    if n_runs is None:
        return selection
    silhouette = np.full(count, np.nan)
    selection = replace(selection, silhouette=silhouette)
    while (at := selection.undecided) is not None:
        of_rank = replace(plain, n_components=int(selection.ranks[at]), random_state=seed)
        silhouette[at] = _mean_silhouette(of_rank, settled, table, n_runs)
        _say(settings, f"stability of {selection.ranks[at]} components")
    return selection


def _settle(settings: FitSettings, table: Any) -> tuple[FitSettings, Settled]:
    """Fit once and fix the weights of the samples; also return the settings of all further fits."""
    if settings.spec.structure.mixes_samples:
        raise ValueError("select_rank is not for convex structures, which mix all samples.")
    rank = max(default_rank(table.shape), _least_rank(settings))
    once = screened_once(replace(settings, n_components=rank))
    source = check_source(once, source_for(table, settings.name))
    with warnings.catch_warnings(action="ignore"):  # from a fit that is not returned
        plan = plan_fit(once, source)
        settled = settle(plan)
    plan.engine.close()
    init = settings.init or "robust"  # "nndsvda" finds too few components in heavy-tailed tables
    return replace(settings, spec=settled.run_spec, init=init, n_init=1), settled


def largest_rank(X: Any, hidden: float = 0.1) -> int:
    """Return the largest rank that :func:`select_rank` supports for this X."""
    if not scipy.sparse.issparse(X):
        return min(X.shape)
    return min(n - held for n, held in zip(X.shape, held_counts(X.shape, hidden), strict=True))


def _least_rank(settings: FitSettings) -> int:
    """Return the smallest number of components: one, or that of the fixed components."""
    fixed = settings.fixed_components
    return 1 if fixed is None else max(1, len(fixed))


def _checked_ranks(ranks: Iterable[int], X: Any, hidden: float, least: int) -> np.ndarray:
    """Validate ranks; return them in increasing order, without those below the least one."""
    given = list(ranks) if isinstance(ranks, Iterable) else [ranks]
    most = largest_rank(X, hidden)
    numbers = all(is_integer(k) for k in given)
    different = sorted(set(given)) if numbers else []
    if not different or not 1 <= different[0] <= different[-1] <= most:
        kind = "sparse X" if scipy.sparse.issparse(X) else "X"
        raise ValueError(
            f"ranks is {given!r}, but only numbers of components from 1 to {most} are possible for "
            f"{kind} of shape {X.shape}."
        )
    possible = [k for k in different if k >= least]
    if not possible:
        raise ValueError(
            f"ranks is {given!r}, but there are {least} fixed_components, and a model has at least "
            "these. Give larger ranks."
        )
    return np.array(possible, dtype=int)


def _errors(
    settings: FitSettings,
    settled: Settled,
    table: Any,
    ranks: np.ndarray,
    n_folds: int,
    hidden: float,
    rng: Any,
    seed: int,
) -> np.ndarray:
    """Compute capped errors of hidden entries (folds, ranks), until errors have risen."""
    is_sparse = scipy.sparse.issparse(table)
    compute: list[Callable[..., np.ndarray]]  # errors (ranks, samples) of a fold
    if is_sparse:
        held = [hold_out(rng, table.shape, hidden) for _ in range(n_folds)]
        compute = [partial(held_out_errors, table=table, rows=i, columns=j) for i, j in held]
    else:
        masks = hide_entries(table, n_folds, hidden, rng)
        compute = [partial(hidden_errors, table=table, out=mask) for mask in masks]
    of_samples = np.empty((n_folds, 0, table.shape[0]))
    is_small = _is_small(table)
    size = SMALL_BATCH_RANKS if is_small else BATCH_RANKS
    for batch in _batches(ranks, size):
        settings = replace(settings, n_components=int(batch[-1]))
        folds = [
            partial(of_fold, replace(settings, random_state=seed + fold), settled, ranks=batch)
            for fold, of_fold in enumerate(compute)
        ]
        # Threads would only wait for each other in a small table.
        more = [fold() for fold in folds] if is_small else run_fits(folds)
        of_samples = np.concatenate([of_samples, np.stack(more)], axis=1)
        errors = capped_mean(of_samples)
        _say(settings, f"errors of {ranks[0]} to {batch[-1]} components, of up to {ranks[-1]}")
        if has_risen(errors):
            break
    return errors


def _is_small(table: Any) -> bool:
    """Return whether calls cost more than the arithmetic."""
    return bool((table.nnz if scipy.sparse.issparse(table) else table.size) <= SMALL)


def _batches(ranks: np.ndarray, size: int) -> list[np.ndarray]:
    """Split ranks into batches that are fitted together, in increasing order."""
    edges = list(range(0, len(ranks) - LEAST_RANKS + 1, size)) or [0]
    return [ranks[at:stop] for at, stop in pairwise([*edges, len(ranks)])]


def _mean_silhouette(settings: FitSettings, settled: Settled, table: Any, n_runs: int) -> float:
    """Compute the mean silhouette of the components of several runs with settled weights.

    No component is left out: components that other starts do not find show that a rank is too
    large.
    """
    # Runs are short, and every rank would repeat the warnings.
    with warnings.catch_warnings(action="ignore"):
        random = replace(settings, init="random", max_iter=RUN_PASSES, tol=0.0, verbose=0)
        source = check_source(random, source_for(table, settings.name))
        most = most_members(random, n_runs, source)
        plan = plan_settled(random, settled, source, most)
        _, _, groups = find_consensus(plan, most, n_runs=n_runs, random_state=settings.random_state)
    plan.engine.close()
    return float(np.mean(groups.silhouette))


def _say(settings: FitSettings, text: str) -> None:
    """Print the progress of a comparison, if the fit is verbose."""
    if settings.verbose:
        print(f"  {text}", flush=True)


def is_integer(value: object) -> bool:
    """Return whether a value is an integer, and not a boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def hide_entries(table: np.ndarray, n_folds: int, hidden: float, rng: Any) -> Iterator[np.ndarray]:
    """Yield which entries (samples, features) each fold hides."""
    first, copies = distinct_rows(table)
    known = np.flatnonzero(~np.isnan(table[first]))
    each = max(1, round(hidden * len(known)))
    if n_folds * each > len(known):
        raise ValueError(
            f"the different samples of X have {len(known)} known entries, too few to hide others "
            f"in each of {n_folds} folds."
        )
    order = rng.permutation(known)
    for fold in range(n_folds):
        out = np.zeros((len(first), table.shape[1]), dtype=bool)
        out.flat[order[fold * each : (fold + 1) * each]] = True
        yield out[copies]


def distinct_rows(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of distinct rows, and which of them every row (samples,) is equal to.

    Equal rows have the same entries hidden. Otherwise one row would reveal the hidden entries of
    the other, and more components would always be better (as in a bootstrap of X).
    """
    places: dict[bytes, int] = {}
    copies = np.array([places.setdefault(row.tobytes(), len(places)) for row in table])
    return np.unique(copies, return_index=True)[1], copies


def held_counts(shape: tuple[int, ...], hidden: float) -> list[int]:
    """Return how many samples and features to hold out, so that this share of X is hidden."""
    return [max(1, round(n * hidden**0.5)) for n in shape]


def hold_out(
    rng: np.random.RandomState, shape: tuple[int, ...], hidden: float
) -> tuple[np.ndarray, np.ndarray]:
    """Choose samples and features to hold out at random; returns two masks."""
    masks = []
    for n, held in zip(shape, held_counts(shape, hidden), strict=True):
        mask = np.zeros(n, dtype=bool)
        mask[rng.permutation(n)[:held]] = True
        masks.append(mask)
    return masks[0], masks[1]


def hidden_errors(
    settings: FitSettings, settled: Settled, table: np.ndarray, out: np.ndarray, ranks: np.ndarray
) -> np.ndarray:
    """Compute the mean error of the hidden entries of each sample (ranks, samples), or NaN."""
    seen = np.where(out, np.nan, table)
    empty = np.asarray(np.isnan(seen).all(axis=1) & out.any(axis=1))
    seen[empty], out = table[empty], out & ~empty[:, None]
    if not out.any():
        raise ValueError("X has too few known entries: samples have only one of them.")
    plan, fitted = _fit_ranks(settings, settled, seen, ranks)
    rows, columns = np.nonzero(out)
    loss, count = plan.problem.loss.of_features(columns), out.sum(axis=1)
    hidden = table[rows, columns] / plan.engine.scale
    errors = []
    for member in fitted:
        predicted = np.einsum("ij,ji->i", member.codes[rows], member.basis[:, columns])
        entries = np.asarray(loss.entries(hidden, predicted), dtype=np.float64)
        total = np.bincount(rows, entries, len(table)) * plan.unit
        errors.append(np.where(count > 0, total / np.maximum(count, 1), np.nan))
    return np.stack(errors)


def _fit_ranks(
    settings: FitSettings, settled: Settled, X: Any, ranks: np.ndarray, is_nested: bool = True
) -> tuple[FitPlan, list[Fitted]]:
    """Fit all ranks as one batch; smaller ranks are padded with components that are zero."""
    source = check_source(settings, source_for(X, settings.name))
    plan = plan_settled(settings, settled, source, len(ranks))
    engine, problem = plan.engine, plan.problem

    def start_of(k: int) -> Start:
        if is_nested:  # the leading components: those of an SVD are nested
            codes = [codes[..., :k] for codes in plan.start.codes]
            return Start(codes, plan.start.basis[:, :k])
        seeds = draw_seeds(settings, problem.solver)
        return starts_from(settings.start_name, engine, problem, k, seeds)

    if plan.reference is None:
        with engine.thread_pool():
            start = _stacked([start_of(int(k)) for k in ranks], plan.rank)
    else:
        bases = _fit_good_entries(settings, settled, plan, X, ranks)
        start = encoded_start(engine, problem, bases)
    weightings = [settings.spec.weighting.rescaled(1.0 / plan.unit)] * len(ranks)
    fitted = fit(
        engine, problem, weightings, start, max_iter=settings.max_iter, tol=settings.tol,
        solve_codes=problem.loss.quadratic and _is_small(X),
    )  # fmt: skip
    return plan, fitted


def _fit_good_entries(
    settings: FitSettings, settled: Settled, plan: FitPlan, X: np.ndarray, ranks: np.ndarray
) -> Array:
    """Fit plain NMF of all ranks as one batch to the entries that have weight with the reference.

    Returns bases (ranks, k, features) as :func:`robustnmf.screening.fit_good_entries` for one rank.
    """
    engine, reference, weights = plan.engine, plan.reference, settled.weights
    assert reference is not None
    problem = replace(plan.problem, fixed=None)
    good = entry_weights(engine, problem, Uniform(), reference) > HAS_WEIGHT
    has_good = good.any(axis=1)
    spec = ModelSpec(Frobenius(), Uniform(), Free())
    plain = replace(
        settings, spec=spec, solver="hals", alpha_W=0.0, alpha_H="same", max_iter=START_PASSES,
        tol=START_TOLERANCE,
    )  # fmt: skip
    same = Settled(spec, spec, has_good * (1.0 if weights is None else weights))
    good_X = np.where(good | ~has_good[:, None], X, np.nan)
    of_plain, fitted = _fit_ranks(plain, same, good_X, ranks, is_nested=False)
    bases = np.stack([member.basis for member in fitted])
    bases *= of_plain.engine.scale / engine.scale
    k = len(reference)
    if settings.start_name == "robust" and settings.fixed_components is None and k in ranks:
        bases[ranks == k, :k] = reference
    return bases


def held_out_errors(
    settings: FitSettings,
    settled: Settled,
    table: Any,
    rows: np.ndarray,
    columns: np.ndarray,
    ranks: np.ndarray,
) -> np.ndarray:
    """Compute the mean error of held-out rows in held-out columns (ranks, samples); else NaN."""
    if settings.fixed_components is not None:
        raise ValueError(
            "select_rank does not support fixed_components for sparse X. Leave them out."
        )
    weights, reference = settled.weights, settled.reference
    settled = replace(
        settled,
        weights=None if weights is None else weights[~rows],
        reference=None if reference is None else reference[:, ~columns],
    )
    plan, fitted = _fit_ranks(settings, settled, table[~rows][:, ~columns], ranks)
    beside, below = table[rows][:, ~columns], table[~rows][:, columns]
    errors = np.full((len(ranks), table.shape[0]), np.nan)
    for at, (k, member) in enumerate(zip(ranks, fitted, strict=True)):
        basis = member.basis[:k]
        engine = in_memory_engine(
            beside, plan.problem, member.weighting, int(k), scale=plan.engine.scale
        )
        codes, _ = encode(engine, plan.problem, member.weighting, basis)
        other = _basis_of_columns(plan, member.codes[:, :k], member.importances, below)
        errors[at, rows] = _sparse_error(plan, table[rows][:, columns], codes, other)
    return errors


def _basis_of_columns(plan: FitPlan, codes: Array, importances: Array, table: Any) -> Array:
    """Compute the basis (k, columns) of further columns, for fixed codes (samples, k).

    This is the transposed problem: columns are encoded by the codes of the samples. Losses are
    homogeneous, so a weighted sample is a scaled sample.
    """
    loss = plan.settings.spec.loss
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
    """Compute the mean error of the rows of a sparse table; a few are dense at a time."""
    step = max(1, DENSE_NUMBERS // table.shape[1])
    means = []
    for at in range(0, table.shape[0], step):
        dense = table[at : at + step].toarray() / plan.engine.scale
        entries = plan.settings.spec.loss.entries(dense, codes[at : at + step] @ basis)
        means.append(np.asarray(entries, dtype=np.float64).mean(axis=1))
    return np.concatenate(means) * plan.unit


def _stacked(starts: list[Start], k: int) -> Start:
    """Return starts as one batch, padded to k components with components that remain zero."""

    def wider(array: Array, axis: int) -> Array:
        width = [(0, 0)] * array.ndim
        width[axis] = (0, k - array.shape[axis])
        return np.pad(array, width)

    blocks = zip(*(start.codes for start in starts), strict=True)
    codes = [np.concatenate([wider(part, 2) for part in block]) for block in blocks]
    return Start(codes, np.concatenate([wider(start.basis, 1) for start in starts]))


def capped_mean(errors: np.ndarray) -> np.ndarray:
    """Compute the mean over samples of capped errors (folds, ranks, samples): (folds, ranks)."""
    medians = np.nanmedian(errors, axis=(0, 2))
    at_best = errors[:, int(np.argmin(medians)), :]
    logs = np.log(np.maximum(at_best[np.isfinite(at_best)], np.finfo(float).tiny))
    centre = np.median(logs)
    spread = NORMAL * np.median(np.abs(logs - centre))
    cap = float(np.exp(centre + REACH * spread))
    return np.nanmean(np.minimum(errors, cap), axis=2)
