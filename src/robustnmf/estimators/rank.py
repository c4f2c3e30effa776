r"""Choosing the number of components by hiding entries and predicting them.

Entries are hidden at random, all over X ("speckled" masks: Wold, 1978; Owen and Perry, 2009), and
every rank predicts them from the rest. Too few components miss structure, too many follow noise;
both show in entries that were not seen. What an outlier contributes is capped, so that outliers
do not choose the rank: the error of sample i is

.. math:: \min\Big(\tfrac{1}{|H_i|} \sum_{j \in H_i} d(x_{ij}, (AC)_{ij}),\; c\Big)

over its hidden entries :math:`H_i`, with c beyond the majority of samples at the best rank.

Sparse X cannot say that an entry is missing, and is never made dense. There the hidden entries are
those of some samples in some features (bi-cross-validation: Owen and Perry, 2009): the rest is
factorised, the codes of these samples follow from the other features, the components in these
features from the other samples, and their product predicts what is hidden.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import check_array, check_random_state

from robustnmf.arrays import Array
from robustnmf.encoding import encode
from robustnmf.estimators._plan import FitPlan, plan_fit
from robustnmf.estimators._start import start_of
from robustnmf.estimators.robust import RobustNMF
from robustnmf.fit import fit
from robustnmf.problem import Problem
from robustnmf.sources import in_memory_engine, source_for
from robustnmf.sources.array import native
from robustnmf.state import Start
from robustnmf.structures import Free
from robustnmf.weightings import Uniform

REACH = 2.5
"""Robust standard deviations of log errors beyond the centre at which errors are capped."""

DENSE_NUMBERS = 1_000_000
"""Entries of sparse X that are looked at together as a dense table."""

NORMAL = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""


@dataclass(frozen=True)
class RankSelection:
    """Errors of hidden entries by rank.

    Attributes
    ----------
    ranks : ndarray (n_ranks,)
    errors : ndarray (n_folds, n_ranks)
        Capped mean error of the hidden entries.
    best : int
        The rank with the least mean error.
    recommended : int
        The smallest rank whose mean error is within one standard error of the least.
    """

    ranks: np.ndarray
    errors: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Mean error over folds (n_ranks,)."""
        return self.errors.mean(axis=0)

    @property
    def standard_error(self) -> np.ndarray:
        """Standard error of the mean (n_ranks,)."""
        return self.errors.std(axis=0, ddof=1) / len(self.errors) ** 0.5

    @property
    def best(self) -> int:
        return int(self.ranks[np.argmin(self.mean)])

    @property
    def recommended(self) -> int:
        least = np.argmin(self.mean)
        within = self.mean <= self.mean[least] + self.standard_error[least]
        return int(self.ranks[within].min())

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the curve with error bars; the axes. Needs matplotlib."""
        from sklearn.utils._optional_dependencies import check_matplotlib_support

        check_matplotlib_support("RankSelection.plot")
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.subplots()[1]
        ax.errorbar(self.ranks, self.mean, self.standard_error, marker="o", capsize=3)
        ax.axvline(self.recommended, color="#d6336c", ls="--", lw=1)
        ax.set_xlabel("number of components")
        ax.set_ylabel("error of hidden entries")
        ax.set_title(f"recommended: {self.recommended}")
        return ax


def select_rank(
    X: Any,
    ranks: Iterable[int] = range(1, 11),
    *,
    n_folds: int = 5,
    hidden: float = 0.1,
    random_state: Any = None,
    **parameters: Any,
) -> RankSelection:
    """Compare numbers of components by how well they predict hidden entries.

    All ranks of a fold are one batch that reads X once a pass: smaller ones have components that
    are zero and stay that.

    Parameters
    ----------
    X : array-like or sparse matrix (n_samples, n_features)
        Nonnegative data; NaN where a value is not known. Of sparse X whole blocks are hidden, and
        ranks need to be no larger than what is left of samples and features, about two thirds.
    ranks : iterable of int, default=range(1, 11)
    n_folds : int, default=5
        How many times entries are hidden, other ones each time.
    hidden : float, default=0.1
        Share of the known entries that is hidden, at most ``1 / n_folds``.
    random_state : int, RandomState or None
        What is hidden, and where fits start.
    **parameters
        Of :class:`RobustNMF`, for example ``loss="kullback-leibler"``.

    Returns
    -------
    selection : RankSelection

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import select_rank
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(0.5, size=(150, 3)) @ rng.gamma(0.5, size=(3, 30))
    >>> X += 0.02 * rng.random(X.shape)
    >>> X[:10] = 3 * rng.random((10, 30))
    >>> select_rank(X, range(1, 7), random_state=0).recommended
    3
    """
    table = _checked(X)
    if "n_components" in parameters:
        raise TypeError("select_rank takes ranks, a list, instead of n_components.")
    numbers = is_integer(n_folds) and isinstance(hidden, Real)
    if not numbers or n_folds < 2 or not 0 < hidden <= 1 / n_folds:
        raise ValueError(
            f"n_folds={n_folds} and hidden={hidden}: at least 2 folds are needed, and a share "
            f"between 0 and 1 / n_folds, so that every fold hides other entries."
        )
    checked_ranks = _checked_ranks(ranks, table, hidden)
    rng = check_random_state(random_state)
    seed = int(rng.randint(2**31 - 1))
    parameters = {"max_iter": 300, "tol": 1e-3} | parameters
    models = [
        RobustNMF(int(max(checked_ranks)), random_state=seed + fold, **parameters)
        for fold in range(n_folds)
    ]
    if scipy.sparse.issparse(table):
        by_fold = [
            _held_out_errors(model, table, *_drawn(rng, table.shape, hidden), checked_ranks)
            for model in models
        ]
        return RankSelection(checked_ranks, _capped(np.stack(by_fold)))
    known = np.flatnonzero(~np.isnan(table))
    each = max(1, round(hidden * len(known)))
    if n_folds * each > len(known):
        raise ValueError(
            f"X has {len(known)} known entries, too few to hide other ones in {n_folds} folds."
        )
    order = rng.permutation(known)
    by_fold = []
    for fold, model in enumerate(models):
        out = np.zeros(table.shape, dtype=bool)
        out.flat[order[fold * each : (fold + 1) * each]] = True
        by_fold.append(_hidden_errors(model, table, out, checked_ranks))
    return RankSelection(checked_ranks, _capped(np.stack(by_fold)))


def is_integer(value: object) -> bool:
    """Return whether a value is a whole number, and no boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def largest_rank(X: Any, hidden: float = 0.1) -> int:
    """The largest rank that :func:`select_rank` can compare with others on this X."""
    if not scipy.sparse.issparse(X):
        return min(X.shape)
    return min(n - held for n, held in zip(X.shape, _held(X.shape, hidden), strict=True))


def _held(shape: tuple[int, ...], hidden: float) -> list[int]:
    """How many samples and features to hold out, for this share of the entries to be hidden."""
    return [max(1, round(n * hidden**0.5)) for n in shape]


def _drawn(
    rng: np.random.RandomState, shape: tuple[int, ...], hidden: float
) -> tuple[np.ndarray, np.ndarray]:
    """Samples and features to hold out, at random: True where held out."""
    masks = []
    for n, held in zip(shape, _held(shape, hidden), strict=True):
        mask = np.zeros(n, dtype=bool)
        mask[rng.permutation(n)[:held]] = True
        masks.append(mask)
    return masks[0], masks[1]


def _checked(X: Any) -> Any:
    return check_array(
        native(X), dtype=[np.float64, np.float32], accept_sparse="csr",
        ensure_all_finite="allow-nan", ensure_min_samples=2, ensure_min_features=2,
    )  # fmt: skip


def _checked_ranks(ranks: Iterable[int], X: Any, hidden: float) -> np.ndarray:
    given = list(ranks) if isinstance(ranks, Iterable) else [ranks]
    most = largest_rank(X, hidden)
    numbers = all(is_integer(k) for k in given)
    different = sorted(set(given)) if numbers else []
    if not different or not 1 <= different[0] <= different[-1] <= most:
        kind = "sparse X" if scipy.sparse.issparse(X) else "X"
        raise ValueError(
            f"ranks is {given!r}, but numbers of components from 1 to {most} are needed for "
            f"{kind} of shape {X.shape}."
        )
    return np.array(different, dtype=int)


def _hidden_errors(
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
    with plan.engine.thread_pool():
        smaller = [
            start_of(model, plan.engine, plan.problem, int(k), None, None)[0] for k in ranks[:-1]
        ]
    starts = [_padded(start, int(ranks[-1])) for start in (*smaller, plan.start)]
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


def _held_out_errors(
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
    entries = plan.parts.loss.entries(table[rows, columns] / scale, predicted)
    count = out.sum(axis=1)
    total = np.bincount(rows, np.asarray(entries, dtype=np.float64), len(table)) * plan.unit
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _capped(errors: np.ndarray) -> np.ndarray:
    """Mean over samples (folds, ranks) of errors (folds, ranks, samples), outliers capped."""
    medians = np.nanmedian(errors, axis=(0, 2))
    at_best = errors[:, int(np.argmin(medians)), :]
    logs = np.log(np.maximum(at_best[np.isfinite(at_best)], np.finfo(float).tiny))
    centre = np.median(logs)
    spread = NORMAL * np.median(np.abs(logs - centre))
    cap = float(np.exp(centre + REACH * spread))
    return np.nanmean(np.minimum(errors, cap), axis=2)
