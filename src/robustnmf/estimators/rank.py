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

import warnings
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import check_array, check_random_state

from robustnmf.estimators._rank_errors import capped_mean, held_out_errors, hidden_errors
from robustnmf.estimators.consensus import ConsensusNMF
from robustnmf.estimators.rank_selection import RankSelection
from robustnmf.estimators.robust import RobustNMF
from robustnmf.sources.array import native

NO_FILTER = 2.0
"""Density threshold that leaves no component out: the largest distance of unit vectors is less."""


def select_rank(
    X: Any,
    ranks: Iterable[int] = range(1, 11),
    *,
    n_folds: int = 5,
    hidden: float = 0.1,
    stability: bool = False,
    n_runs: int = 20,
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
    stability : bool, default=False
        Whether to find out, too, for which ranks components come back: every rank is run from
        ``n_runs`` random starts, and the silhouette of the groups that their components form
        (:class:`ConsensusNMF`) is high where runs agree. The recommendation then rests on both.
    n_runs : int, default=20
        Runs of each rank for the stability.
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
    if stability and (not is_integer(n_runs) or n_runs < 2):
        raise ValueError(f"n_runs is {n_runs!r}, but at least 2 runs are needed to compare.")
    checked_ranks = _checked_ranks(ranks, table, hidden)
    rng = check_random_state(random_state)
    seed = int(rng.randint(2**31 - 1))
    parameters = {"max_iter": 300, "tol": 1e-3} | parameters
    models = [
        RobustNMF(int(max(checked_ranks)), random_state=seed + fold, **parameters)
        for fold in range(n_folds)
    ]
    errors = _errors(table, models, checked_ranks, hidden, rng)
    silhouette = None
    if stability:
        silhouette = _silhouettes(table, checked_ranks, n_runs, seed, parameters)
    return RankSelection(checked_ranks, capped_mean(errors), silhouette)


def _errors(
    table: Any, models: list[RobustNMF], ranks: np.ndarray, hidden: float, rng: Any
) -> np.ndarray:
    """Compute errors of hidden entries (folds, ranks, samples); one model for each fold."""
    if scipy.sparse.issparse(table):
        by_fold = [
            held_out_errors(model, table, *_drawn(rng, table.shape, hidden), ranks)
            for model in models
        ]
        return np.stack(by_fold)
    first, copies = _distinct_rows(table)
    known = np.flatnonzero(~np.isnan(table[first]))
    each = max(1, round(hidden * len(known)))
    if len(models) * each > len(known):
        raise ValueError(
            f"X has {len(known)} known entries, too few to hide other ones in {len(models)} folds."
        )
    order = rng.permutation(known)
    by_fold = []
    for fold, model in enumerate(models):
        out = np.zeros((len(first), table.shape[1]), dtype=bool)
        out.flat[order[fold * each : (fold + 1) * each]] = True
        by_fold.append(hidden_errors(model, table, out[copies], ranks))
    return np.stack(by_fold)


def _distinct_rows(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of distinct rows, and which of them every row (samples,) is equal to.

    Equal rows have the same entries hidden: otherwise one would tell what is hidden in the other,
    and the more components, the better (as in a bootstrap of X).
    """
    rows = np.ascontiguousarray(table)
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, copies = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)  # in the order of X
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[copies.ravel()]


def _silhouettes(
    table: Any, ranks: np.ndarray, n_runs: int, seed: int, parameters: dict[str, Any]
) -> np.ndarray:
    """Compute the mean silhouette (ranks,) of the components of several runs; NaN for rank one.

    No component is left out: those that do not come back are what shows that a rank is too large.
    """
    means = np.full(len(ranks), np.nan)
    for at, rank in enumerate(ranks):
        if rank > 1:
            model = ConsensusNMF(
                RobustNMF(int(rank), **parameters), n_runs=n_runs, density_threshold=NO_FILTER,
                random_state=seed,
            )  # fmt: skip
            with warnings.catch_warnings():
                # They say nothing about the rank: runs are short, and every rank would repeat them.
                warnings.simplefilter("ignore")
                means[at] = float(np.mean(model.fit(table).silhouette_))
    return means


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
