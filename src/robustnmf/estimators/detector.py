"""Outlier detection: samples that components do not describe, or that are far from others."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from robustnmf.arrays import as_float64, namespace, on_device_of, to_numpy, weighted_quantile
from robustnmf.estimators.encoding import as_frame_if_configured, check_same_namespace
from robustnmf.estimators.robust import RobustNMF
from robustnmf.estimators.saving import SaveMixin
from robustnmf.exceptions import OutlierWarning
from robustnmf.fitting import RankSelection, Seed, check_weights
from robustnmf.losses import LOSSES, Loss
from robustnmf.sources import source_for
from robustnmf.weightings import Trimmed


@dataclass(repr=False, eq=False)
class RobustNMFDetector(SaveMixin, OutlierMixin, BaseEstimator):
    r"""Detect outliers: samples that components do not describe, or that are far from others.

    :class:`RobustNMF` learns components from the majority of the samples. A sample does not fit if
    its reconstruction error :math:`z_i` is above one of the two cutoffs of the fit: t, or r times
    the squared norm of the sample. With few features, components describe almost any sample, so
    samples are also compared with each other. The score sums three terms, and outliers have
    negative scores.

    Parameters
    ----------
    n_components : int, "auto" or None, default=None
        Number of components, as in :class:`RobustNMF`. None: ten, or one third of the number of
        features for narrow tables. "auto": chosen from the data.
    contamination : "auto" or float in (0, 0.5], default="auto"
        Share of outliers in the training data. This share of the samples, with the lowest scores,
        are outliers. "auto": samples with negative scores are outliers.
    loss, max_iter, tol, random_state
        As in :class:`RobustNMF`, with the same defaults.

    Attributes
    ----------
    offset_ : float
        ``decision_function = score_samples - offset_``; zero if contamination is "auto".
    missed_ : float
        Share m of artificial outliers that the components describe.
    neighbourhood_ : object or None
        The samples that others are compared with; None if there are fewer than 20 samples. The
        score then depends only on the reconstruction errors.
    estimator_ : RobustNMF
        The factorisation, with ``sample_importances_``, ``components_`` and so on.
    shift_ : ndarray (n_features,)
        Number added to each feature; zero for features without negative values.
    n_components_ : int
        Number of components.
    rank_selection_ : RankSelection
        Comparison of numbers of components, with ``n_components="auto"``.
    n_iter_ : int
        Number of iterations.
    n_features_in_, feature_names_in_
        Number and names of the features seen in ``fit``.

    Notes
    -----
    The score of sample i is

    .. math:: s_i = -\ln \frac{D_i^2}{(1.7 \Lambda)^2} - \max(e_i, 0) - m\, g_i.

    1. :math:`D_i` is the Mahalanobis distance of the sample from the *core*. Samples of the core
       fit, and an isolation forest accepts them or they form a close group. :math:`\Lambda` is
       the 95th percentile of the leave-one-out distances of the core. A ridge allows more features
       than samples.
    2. :math:`e_i = \max(\ln (z_i / t), \ln (z_i / (r |x_i|^2)))` compares the reconstruction
       error with the cutoffs.
    3. :math:`g_i = \ln (d_i / (1.7\, \ell)) + 20 (f_i - \frac12)` compares the sample with its
       neighbours. :math:`d_i` is its distance to the fifth nearest of up to 500 samples,
       :math:`\ell` is the 95th percentile of these distances for usual samples, and :math:`f_i`
       is the score of the isolation forest. The factor m is the share of artificial outliers
       (samples with permuted features) that fit.

    Features with negative values are shifted to start at zero (squared error only). If new data
    are below zero after the shift, the squares of these values are added to the reconstruction
    error.

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import RobustNMFDetector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(1.0, size=(60, 3)) @ rng.gamma(1.0, size=(3, 8)) + 0.1 * rng.random((60, 8))
    >>> X[:4] = 5 * rng.random((4, 8))  # four outliers
    >>> detector = RobustNMFDetector(3).fit(X)
    >>> detector.predict(X[:4])
    array([-1, -1, -1, -1])
    >>> np.sort(np.argsort(detector.score_samples(X))[:4])
    array([0, 1, 2, 3])
    """

    _parameter_constraints: ClassVar[dict[str, list]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "contamination": [StrOptions({"auto"}), Interval(Real, 0, 0.5, closed="right")],
        "loss": [StrOptions(set(LOSSES)), Loss],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    n_components: int | str | None = None
    _: KW_ONLY
    contamination: float | str = "auto"
    loss: str | Loss = "frobenius"
    max_iter: int = 1000
    tol: float = 1e-4
    random_state: Seed = None

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> RobustNMFDetector:
        """Learn the components, and the limits beyond which a sample is an outlier.

        Parameters
        ----------
        X : table (n_samples, n_features)
            Samples in rows, as for :meth:`RobustNMF.fit`; NaN is a missing value.
        y : ignored
        sample_weight : array-like (n_samples,), optional
            Weight of each sample: 2 is the same as the sample twice.

        Returns
        -------
        self : the fitted detector
        """
        self._validate_params()
        source = source_for(X, type(self).__name__)
        table = source.floats()
        shape = table.shape if source.in_memory else source.shape
        if self.n_components not in (None, "auto") and int(self.n_components) > min(shape):
            raise ValueError(
                f"n_components={self.n_components} is too large: X with n_samples={shape[0]}, "
                f"n_features={shape[1]} has at most {min(shape)} different components. Lower it."
            )
        # Rows that are not in memory are not shifted; RobustNMF raises an error for negative ones.
        shift = self._shift(table) if source.in_memory else np.zeros(shape[1])
        inside, _ = _shifted(table, shift)
        estimator = RobustNMF(
            self.n_components, weighting=Trimmed(), loss=self.loss, max_iter=self.max_iter,
            tol=self.tol, random_state=self.random_state,
        )  # fmt: skip
        with warnings.catch_warnings():  # to find outliers is what a detector is for
            warnings.filterwarnings("ignore", ".* left out ", OutlierWarning)
            estimator.fit(inside, sample_weight=sample_weight)
        near, missed = estimator._neighbourhood(inside, sample_weight), 0.0
        if near is not None:
            near = near.with_core(_fits(estimator, near.references * estimator._scale))
            missed = float(_fits(estimator, near.permuted(estimator._scale)).mean())
        # Nothing is set before this point: a failed fit leaves the detector as it was.
        validate_data(self, source.header, skip_check_array=True, reset=True)
        self.missed_ = missed
        self.neighbourhood_ = near
        self.estimator_ = estimator
        self.shift_ = shift
        self.n_components_ = estimator.components_.shape[0]
        self.n_iter_ = estimator.n_iter_
        self.offset_ = 0.0
        if self.contamination != "auto":
            weights = check_weights(sample_weight, shape[0])
            row_weight = np.ones(shape[0]) if weights is None else weights
            scores = to_numpy(self._scores(table))
            self.offset_ = _level(scores, row_weight, float(self.contamination))
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Compute the score of every sample; outliers have low scores.

        The score is a logarithm: with ``contamination="auto"``, negative scores are outliers.

        Parameters
        ----------
        X : array-like or sparse matrix (n_samples, n_features)

        Returns
        -------
        scores : ndarray (n_samples,)
        """
        return self._scores(self._checked(X))

    def decision_function(self, X: Any) -> Any:
        """Compute ``score_samples`` minus ``offset_``: negative for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix (n_samples, n_features)

        Returns
        -------
        scores : ndarray (n_samples,)
        """
        self._agree(X, "decision_function")
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Return -1 for outliers and 1 for inliers.

        Parameters
        ----------
        X : array-like or sparse matrix (n_samples, n_features)

        Returns
        -------
        labels : ndarray (n_samples,)
        """
        self._agree(X, "predict")
        scores = self.decision_function(X)
        xp = namespace(scores)
        return 1 - 2 * xp.astype(scores < 0, xp.int64)

    def explain(self, X: Any) -> Any:
        """Compute the contribution of every feature to the reconstruction error of every sample.

        See :meth:`RobustNMF.explain`.

        Parameters
        ----------
        X : array-like (n_samples, n_features)

        Returns
        -------
        contributions : ndarray or DataFrame (n_samples, n_features)
            A data frame after ``sklearn.set_config(transform_output="pandas")``.
        """
        inside, below = _shifted(self._checked(X), self.shift_)
        with config_context(transform_output="default"):
            contributions = self.estimator_.explain(inside)
        if below is not None:
            contributions = contributions - self._squared_unit * below**2
        return as_frame_if_configured(self, contributions, X)

    @property
    def components_(self) -> Any:
        """The components of ``estimator_``."""
        return self.estimator_.components_

    @property
    def rank_selection_(self) -> RankSelection:
        """Comparison of numbers of components, with ``n_components="auto"``."""
        return self.estimator_.rank_selection_

    def _agree(self, X: Any, method: str) -> None:
        check_is_fitted(self)
        check_same_namespace(X, self, attribute="components_", method=method)

    def _checked(self, X: Any) -> Any:
        """Return new data after checking that they have the features of the fit."""
        check_is_fitted(self)
        source = source_for(X, type(self).__name__)
        if not source.in_memory and bool(namespace(self.shift_).any(self.shift_ > 0)):
            raise ValueError(
                "this detector was fitted to data with negative values, so new data must be in "
                "memory to be shifted. Read X into memory first."
            )
        return source.floats(self)

    @property
    def _quadratic(self) -> bool:
        """Whether energies are squared errors, so that negative values can be shifted."""
        return RobustNMF(1, loss=self.loss)._spec().loss.quadratic

    @property
    def _squared_unit(self) -> float:
        """Energy of a squared error of one."""
        return 0.5 * self.estimator_._problem.loss.unit

    def _shift(self, X: Any) -> Any:
        """Compute the shifts (features,) after which no feature has negative values."""
        if scipy.sparse.issparse(X) or not self._quadratic:
            return np.zeros(X.shape[1])  # RobustNMF raises an error for negative values
        xp = namespace(X)
        below = xp.where(X < 0, X, xp.zeros_like(X))
        return -xp.min(as_float64(below), axis=0)

    def _scores(self, X: Any) -> np.ndarray:
        inside, below = _shifted(X, self.shift_)
        _, energies, sizes, engine = self.estimator_._measure(inside)
        if below is not None:
            squares = namespace(below).sum(as_float64(below) ** 2, axis=1)
            energies = energies + self._squared_unit * squares
        logs = _logs(energies, sizes, self.estimator_.weighting_)
        if self.neighbourhood_ is None:
            return -logs
        beyond = namespace(logs).maximum(logs, 0 * logs)
        start = None if engine.complete else self.estimator_._start(engine)
        return -beyond - self.neighbourhood_.outlyingness(engine, self.missed_, start)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = RobustNMF(1, loss=self.loss).__sklearn_tags__().input_tags
        tags.input_tags.positive_only = not self._quadratic
        tags.input_tags.allow_nan = inner.allow_nan
        tags.input_tags.sparse = inner.sparse
        tags.array_api_support = True
        return tags


def _logs(energies: Any, sizes: Any, weighting: Trimmed) -> Any:
    """Compute the logarithms of energies over their cutoffs (samples,)."""
    cutoffs = weighting.for_row_sizes(sizes).cutoff
    xp, tiny = namespace(energies), float(np.finfo(float).tiny)
    logs = xp.log(xp.maximum(energies, tiny + 0 * energies))
    return logs - xp.log(xp.maximum(cutoffs, tiny + 0 * energies))


def _fits(estimator: RobustNMF, rows: np.ndarray) -> np.ndarray:
    """Return which rows (rows,) fit: their energies are below the cutoffs of an estimator."""
    _, energies, sizes, _ = estimator._measure(rows)
    return to_numpy(_logs(energies, sizes, estimator.weighting_)) <= 0


def _level(scores: np.ndarray, row_weight: np.ndarray, share: float) -> float:
    """Compute the score that a share of the samples, by weight, is below."""
    first = weighted_quantile(scores, row_weight, share, side="right")
    below = scores[(row_weight > 0) & (scores < first - 1e-9 * abs(first))]
    # Halfway between two samples, so that rounding does not change a label.
    return 0.5 * (float(below.max()) + first) if len(below) else first - 0.5


def _shifted(X: Any, shift: Any) -> tuple[Any, Any]:
    """Return X plus a shift of its features, and the values that are still negative (or None).

    Both are (samples, features). Values that are still negative are zero in the first array, and
    the second array has zeros elsewhere.
    """
    if not bool(namespace(shift).any(shift > 0)):
        return X, None
    table = X.toarray() if scipy.sparse.issparse(X) else X
    xp = namespace(table)
    raised = table + xp.astype(on_device_of(table, shift), table.dtype)
    nothing = xp.zeros_like(raised)
    below = xp.where(raised < 0, raised, nothing)
    # Scaled up for missing values, as energies are: the squares are added to energies.
    known = xp.sum(xp.astype(xp.isfinite(raised), table.dtype), axis=1, keepdims=True)
    whole = (table.shape[1] / xp.where(known > 0, known, 1 + 0 * known)) ** 0.5
    return xp.where(raised < 0, nothing, raised), below * whole
