"""Functions: factorise, compare numbers of components, list features of components."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from robustnmf.arrays import to_numpy
from robustnmf.estimators.robust import RobustNMF
from robustnmf.exceptions import warn
from robustnmf.fitting import RankSelection
from robustnmf.fitting.rank import SHORT, compare_ranks, is_integer
from robustnmf.sources.array import readable

LEAST_SHARE = 1e-3
"""Smallest share of a feature that makes a difference, relative to the mean share."""


def non_negative_factorization(
    X: Any,
    W: Any = None,
    H: Any = None,
    n_components: int | str | None = None,
    *,
    init: str | None = None,
    update_H: bool = True,
    sample_weight: Any = None,
    **parameters: Any,
) -> tuple[Any, Any, int]:
    """Factorise X with :class:`RobustNMF`, or compute the codes of X for given components.

    The counterpart of scikit-learn's function of the same name.

    Parameters
    ----------
    X : table (n_samples, n_features)
        Any kind of data that :meth:`RobustNMF.fit` accepts.
    W : array-like (n_samples, n_components), optional
        Codes to start from, with ``init="custom"``.
    H : array-like (n_components, n_features), optional
        Components: the start with ``init="custom"``, or fixed with ``update_H=False``.
    n_components : int, "auto" or None, default=None
        As in :class:`RobustNMF`; with ``update_H=False`` the number of rows of H.
    init : str, optional
        As in :class:`RobustNMF`; ignored with ``update_H=False``.
    update_H : bool, default=True
        Whether to learn the components. If False, H is fixed, and the best codes are computed.
    sample_weight : array-like (n_samples,), optional
        Weight of each sample, as in :meth:`RobustNMF.fit`.
    **parameters
        Further parameters of :class:`RobustNMF`.

    Returns
    -------
    W : ndarray (n_samples, n_components)
        Codes.
    H : ndarray (n_components, n_features)
        Components.
    n_iter : int
        Number of iterations.

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import non_negative_factorization
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(1.0, size=(60, 3)) @ rng.gamma(1.0, size=(3, 8))
    >>> W, H, n_iter = non_negative_factorization(X, n_components=3, random_state=0)
    >>> again, same, _ = non_negative_factorization(X, H=H, update_H=False)
    >>> np.allclose(again, W, atol=1e-6), np.array_equal(same, H)
    (True, True)
    """
    if "fixed_components" in parameters:
        raise TypeError(
            "non_negative_factorization has no fixed_components. Pass H with update_H=False."
        )
    if update_H:
        model = RobustNMF(n_components, init=init, **parameters)
        codes = model.fit_transform(X, W=W, H=H, sample_weight=sample_weight)
        return codes, model.components_, model.n_iter_
    if H is None:
        raise ValueError("update_H=False needs the fixed components. Pass H.")
    if W is not None:
        warn("W is ignored: with update_H=False, codes are computed from H alone.", RuntimeWarning)
    rank = int(H.shape[0] if hasattr(H, "shape") else np.shape(H)[0])
    if n_components not in (None, "auto", rank):
        raise ValueError(
            f"n_components={n_components}, but H has {rank} rows, and update_H=False fixes H. "
            "Leave n_components out."
        )
    # Weights do not change the codes, and codes are the best ones only if tol > 0.
    given = {"weighting": "uniform", **parameters, "tol": parameters.get("tol") or RobustNMF.tol}
    model = RobustNMF(rank, fixed_components=H, **given)
    codes = model.fit_transform(X, sample_weight=sample_weight)
    return codes, model.components_, model.n_iter_


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
    """Recommend a number of components: compare how well they predict hidden entries.

    Some entries of X are hidden, models with different numbers of components are fitted to the
    others, and their errors on the hidden entries are compared. Ranks are compared in increasing
    order; larger ranks are skipped if the errors of the last three are clearly above the smallest.

    Parameters
    ----------
    X : array-like or sparse matrix (n_samples, n_features)
        Nonnegative data; NaN is a missing value. If X is sparse, whole blocks are hidden, and ranks
        can be at most about two thirds of the number of samples or features.
    ranks : iterable of int, default=range(1, 11)
        Numbers of components to compare; the largest ones can be skipped. With
        ``fixed_components``, smaller numbers are left out.
    n_folds : int, default=5
        Number of repetitions, each with other hidden entries.
    hidden : float, default=0.1
        Share of the known entries that is hidden, at most ``1 / n_folds``.
    stability : bool, default=False
        Whether to measure the stability of the components as well: every rank is fitted from
        ``n_runs`` random starts, and their components are grouped as in :class:`ConsensusNMF`. The
        silhouette of the groups is high if the runs agree. The recommendation then uses both.
    n_runs : int, default=20
        Number of random starts of each rank for the stability.
    random_state : int, RandomState or None
        Seed of the hidden entries and of the starts.
    verbose : int, default=0
        Whether to print the progress.
    **parameters
        Parameters of :class:`RobustNMF`, for example ``loss="kullback-leibler"``.

    Returns
    -------
    selection : RankSelection

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import select_rank
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(0.5, size=(150, 3)) @ rng.gamma(0.5, size=(3, 30))
    >>> X *= 1 + 0.05 * rng.standard_normal(X.shape)
    >>> X[:10] = 3 * rng.random((10, 30))
    >>> select_rank(X, range(1, 7), random_state=0).recommended
    3
    """
    table = check_array(
        readable(X), dtype=[np.float64, np.float32], order="C", accept_sparse="csr",
        ensure_all_finite="allow-nan", ensure_min_samples=2, ensure_min_features=2,
    )  # fmt: skip
    if "n_components" in parameters:
        raise TypeError("select_rank takes ranks, a list, instead of n_components.")
    numbers = is_integer(n_folds) and isinstance(hidden, Real)
    if not numbers or n_folds < 2 or not 0 < hidden <= 1 / n_folds:
        raise ValueError(
            f"n_folds={n_folds!r} and hidden={hidden!r}, but n_folds must be an integer >= 2 "
            "and hidden between 0 and 1 / n_folds, so that every fold hides other entries."
        )
    if stability and (not is_integer(n_runs) or n_runs < 2):
        raise ValueError(f"n_runs is {n_runs!r}, but at least 2 runs are needed to compare.")
    model = RobustNMF(random_state=random_state, verbose=verbose, **(SHORT | parameters))
    runs = n_runs if stability else None
    return compare_ranks(
        model._settings(), table, ranks, n_folds=n_folds, hidden=hidden, n_runs=runs
    )


@dataclass(frozen=True)
class TopFeature:
    """A distinctive feature of a component.

    Attributes
    ----------
    component : int
        Index of the component.
    feature : int
        Index of the feature.
    name : str
        Name of the feature; "x" and the index if the model was fitted without names.
    value : float
        Entry of ``components_``.
    share : float
        The entry divided by the sum of the component.
    ratio : float
        How many times larger the share is than in any other component. A small number is added to
        both shares, so that it is finite; it is infinite if there is only one component.
    spread : float or None
        Standard deviation of the entry over runs, if the model has ``spread_``.
    """

    component: int
    feature: int
    name: str
    value: float
    share: float
    ratio: float
    spread: float | None = None


class TopFeatures(list[list[TopFeature]]):
    """Distinctive features of each component: a list for every component, the best first."""

    def to_frame(self) -> Any:
        """Return a pandas data frame with one row for each feature and the fields as columns."""
        import pandas as pd

        columns = [field.name for field in fields(TopFeature)]
        return pd.DataFrame([vars(f) for features in self for f in features], columns=columns)


def top_features(model: Any, n: int = 10) -> TopFeatures:
    r"""List the most distinctive features of each component.

    Features are ordered by :math:`p_{ij} \ln(p_{ij} / \max_{h \ne i} p_{hj})`, where
    :math:`p_{ij}` is feature j's share of component i: features that are frequent in the component
    and rare in the others are first. For a single component, they are its largest entries.

    Parameters
    ----------
    model : fitted estimator
        Estimator with ``components_``, for example :class:`RobustNMF` or :class:`ConsensusNMF`.
    n : int, default=10
        Maximum number of features of each component. Only features with a larger share than in any
        other component are listed.

    Returns
    -------
    features : list of lists of TopFeature
        The features of every component, the best first. ``features.to_frame()`` returns them as a
        pandas data frame.

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import RobustNMF, top_features
    >>> components = np.array([[5.0, 1.0, 0.0, 0.2], [5.0, 0.0, 1.0, 0.2]])
    >>> X = np.random.default_rng(0).random((60, 2)) @ components
    >>> model = RobustNMF(2, random_state=0).fit(X)
    >>> sorted(features[0].name for features in top_features(model, 1))
    ['x1', 'x2']
    """
    if not hasattr(model, "components_"):
        check_is_fitted(model)
    if not is_integer(n) or n < 1:
        raise ValueError(f"n is {n!r}, but a number of features (1 or more) is needed.")
    components = to_numpy(model.components_).astype(np.float64)
    sums = components.sum(axis=1, keepdims=True)
    # Shares have no units: the scale of a component, which trades off with its codes, cancels.
    shares = components / np.where(sums > 0, sums, 1.0)
    scores, ratios = shares, np.full_like(shares, np.inf)
    k, features = shares.shape
    if k > 1:
        second, first = np.sort(shares, axis=0)[-2:]
        others = np.where(np.argmax(shares, axis=0) == np.arange(k)[:, None], second, first)
        least = LEAST_SHARE / features
        ratios = (shares + least) / (others + least)
        scores = shares * np.log(ratios)
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(features)])
    spread = to_numpy(model.spread_) if hasattr(model, "spread_") else None
    found = TopFeatures()
    for i, row in enumerate(scores):
        best = [int(j) for j in np.argsort(-row, kind="stable")[: int(n)] if row[j] > 0]
        found.append(
            [
                TopFeature(
                    i, j, str(names[j]), float(components[i, j]), float(shares[i, j]),
                    float(ratios[i, j]), None if spread is None else float(spread[i, j]),
                )
                for j in best
            ]
        )  # fmt: skip
    return found
