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
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import check_array, check_random_state

from robustnmf.estimators._hidden import held_counts, hide_entries, hold_out
from robustnmf.estimators._rank_errors import capped_mean, held_out_errors, hidden_errors
from robustnmf.estimators.consensus import ConsensusNMF
from robustnmf.estimators.rank_selection import RankSelection, has_risen, is_far_from_stable
from robustnmf.estimators.robust import RobustNMF
from robustnmf.sources.array import readable

NO_FILTER = 2.0
"""Density threshold that leaves no component out: the largest distance of unit vectors is less."""

BATCH_RANKS = 3
"""Ranks that are fitted as one batch. All of them cost as much as the largest one."""

SMALL = 100_000
"""Entries of X up to which calls cost more than the arithmetic, and more ranks are a batch."""

SMALL_BATCH_RANKS = 5
"""Ranks of a batch then."""

LEAST_RANKS = 2
"""Ranks that are a batch of their own; fewer ones at the end are fitted with those before."""


def select_rank(
    X: Any,
    ranks: Iterable[int] = range(1, 11),
    *,
    n_folds: int = 5,
    hidden: float = 0.1,
    stability: bool = False,
    n_runs: int = 20,
    random_state: Any = None,
    verbose: int = 0,
    **parameters: Any,
) -> RankSelection:
    """Compare numbers of components by how well they predict hidden entries.

    Several ranks at a time are one batch that reads X once a pass: smaller ones have components
    that are zero and stay that. Ranks are compared in increasing order. If the errors of the last
    three are clearly larger than the least, no larger ones are tried.

    Parameters
    ----------
    X : array-like or sparse matrix (n_samples, n_features)
        Nonnegative data; NaN where a value is not known. Of sparse X whole blocks are hidden, and
        ranks need to be no larger than what is left of samples and features, about two thirds.
    ranks : iterable of int, default=range(1, 11)
        Numbers of components to compare; the largest ones may be left out.
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
    verbose : int, default=0
        Whether to print how far the comparison is.
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
    tell = print_progress if verbose else say_nothing
    errors = _errors(table, checked_ranks, n_folds, hidden, rng, seed, parameters, tell)
    count = errors.shape[1]
    left_out = tuple(checked_ranks[count:].tolist())
    selection = RankSelection(checked_ranks[:count], errors, left_out=left_out)
    if not stability:
        return selection
    # Ranks with larger errors are not recommended, however stable. The first of them shows how
    # silhouettes go on.
    last = int(np.flatnonzero(selection.is_near)[-1])
    silhouette = np.full(count, np.nan)
    silhouette[: last + 2] = _silhouettes(
        table, selection.ranks[: last + 2], n_runs, seed, parameters, tell
    )
    return replace(selection, silhouette=silhouette)


def _errors(
    table: Any,
    ranks: np.ndarray,
    n_folds: int,
    hidden: float,
    rng: Any,
    seed: int,
    parameters: dict[str, Any],
    tell: Callable[[str], None],
) -> np.ndarray:
    """Compute capped errors of hidden entries (folds, ranks), for ranks until errors have risen."""
    is_sparse = scipy.sparse.issparse(table)
    compute: list[Callable[..., np.ndarray]]  # errors (ranks, samples) of a fold
    if is_sparse:
        held = [hold_out(rng, table.shape, hidden) for _ in range(n_folds)]
        compute = [partial(held_out_errors, table=table, rows=i, columns=j) for i, j in held]
    else:
        masks = hide_entries(table, n_folds, hidden, rng)
        compute = [partial(hidden_errors, table=table, out=mask) for mask in masks]
    fixed = parameters.get("fixed_components")
    least = 1 if fixed is None else len(fixed)
    of_samples = np.empty((n_folds, 0, table.shape[0]))
    size = SMALL_BATCH_RANKS if (table.nnz if is_sparse else table.size) <= SMALL else BATCH_RANKS
    for batch in _batches(ranks, size):
        k = max(int(batch[-1]), least)
        more = [
            of_fold(RobustNMF(k, random_state=seed + fold, **parameters), ranks=batch)
            for fold, of_fold in enumerate(compute)
        ]
        of_samples = np.concatenate([of_samples, np.stack(more)], axis=1)
        errors = capped_mean(of_samples)
        tell(f"errors of {ranks[0]} to {batch[-1]} components, of up to {ranks[-1]}")
        if has_risen(errors):
            break
    return errors


def _batches(ranks: np.ndarray, size: int) -> list[np.ndarray]:
    """Split ranks into those that are fitted together, in increasing order."""
    edges = list(range(0, len(ranks) - LEAST_RANKS + 1, size)) or [0]
    return [ranks[at:stop] for at, stop in pairwise([*edges, len(ranks)])]


def _silhouettes(
    table: Any,
    ranks: np.ndarray,
    n_runs: int,
    seed: int,
    parameters: dict[str, Any],
    tell: Callable[[str], None],
) -> np.ndarray:
    """Compute the mean silhouette (ranks,) of the components of several runs; NaN for rank one.

    No component is left out: those that do not come back are what shows that a rank is too large.
    NaN, too, for ranks above several that are far from stable.
    """
    means = np.full(len(ranks), np.nan)
    for at, rank in enumerate(ranks):
        if is_far_from_stable(means[:at]):
            break
        if rank == 1:
            continue
        model = ConsensusNMF(
            RobustNMF(int(rank), **parameters), n_runs=n_runs, density_threshold=NO_FILTER,
            random_state=seed,
        )  # fmt: skip
        with warnings.catch_warnings():
            # They say nothing about the rank: runs are short, and every rank would repeat them.
            warnings.simplefilter("ignore")
            means[at] = float(np.mean(model.fit(table).silhouette_))
        tell(f"stability of {rank} components, of up to {ranks[-1]}")
    return means


def print_progress(text: str) -> None:
    """Print a line at once."""
    print(f"  {text}", flush=True)


def say_nothing(text: str) -> None:
    """Print nothing."""


def is_integer(value: object) -> bool:
    """Return whether a value is a whole number, and no boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def largest_rank(X: Any, hidden: float = 0.1) -> int:
    """The largest rank that :func:`select_rank` can compare with others on this X."""
    if not scipy.sparse.issparse(X):
        return min(X.shape)
    return min(n - held for n, held in zip(X.shape, held_counts(X.shape, hidden), strict=True))


def _checked(X: Any) -> Any:
    return check_array(
        readable(X), dtype=[np.float64, np.float32], accept_sparse="csr",
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
