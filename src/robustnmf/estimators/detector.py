"""Outlier detection: samples that components do not describe, or that are far from others."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from robustnmf.arrays import as_float64, namespace, on_device_of, to_numpy, weighted_quantile
from robustnmf.estimators.encoding import check_same_namespace
from robustnmf.estimators.robust import RobustNMF
from robustnmf.estimators.saving import SaveMixin
from robustnmf.fitting import RankSelection, Seed, check_weights
from robustnmf.losses import LOSSES, Loss
from robustnmf.sources import source_for
from robustnmf.weightings import Trimmed


@dataclass(repr=False, eq=False)
class RobustNMFDetector(SaveMixin, OutlierMixin, BaseEstimator):
    r"""Detect outliers: samples that components do not describe, or that are far from others.

    :class:`RobustNMF` learns components from the samples that belong together, with
    :class:`Trimmed` weights. A sample does not fit if its energy exceeds the cutoff those have
    settled on, or the share of its own size that they allow. Samples that fit, and that an
    isolation forest calls usual, are the *core*. Every sample is compared with it,

    .. math:: s_i = -\ln \frac{D_i^2}{(1.7 \Lambda)^2} - \max(e_i, 0) - m\, g_i, \qquad
              e_i = \max\left(\ln \frac{z_i}{t}, \ln \frac{z_i}{r |x_i|^2}\right),

    with the Mahalanobis distance :math:`D_i` of a sample from the core (with a ridge, so that
    there may be more features than samples), and a distance :math:`\Lambda` that few samples of
    the core exceed. Samples with negative scores are outliers.

    With few features, components describe almost any sample. So samples are made whose features
    come from different ones. If energies miss a share m of these artificial outliers, samples are
    also compared with each other,

    .. math:: g_i = \ln \frac{d_i}{1.7\, \ell} + 20 \Big(f_i - \frac12\Big),

    with the distance :math:`d_i` to the fifth nearest of up to 500 samples, a distance
    :math:`\ell` that few usual samples exceed, and the score :math:`f_i` of the isolation forest.

    Features that hold negative values are shifted to start at zero (squared error only); what
    lies below in new data adds to the energy.

    Parameters
    ----------
    n_components : int, "auto" or None, default=None
        Number of parts, as in :class:`RobustNMF`. None: ten, or one for every three features where
        these are few; with many more, outliers would have parts of their own. "auto": chosen from
        the data.
    contamination : "auto" or float in (0, 0.5], default="auto"
        Share of outliers in the data of the fit. "auto": samples of negative scores.
    loss : str or Loss, default="frobenius"
        As in :class:`RobustNMF`.
    max_iter : int, default=1000
    tol : float, default=1e-4
    random_state : int, RandomState or None
        As in :class:`RobustNMF`.

    Attributes
    ----------
    offset_ : float
        ``decision_function = score_samples - offset_``; zero where contamination is "auto".
    missed_ : float
        Share m of artificial outliers that energies miss.
    neighbourhood_ : object or None
        The samples that others are compared with; None if there are fewer than 20 samples, which
        are judged by their energies alone.
    estimator_ : RobustNMF
        The factorisation, with ``sample_importances_``, ``components_`` and so on.
    shift_ : ndarray (n_features,)
        What features were raised by; zero where they hold no negative values.
    n_components_ : int
    rank_selection_ : RankSelection
        How numbers of parts compare, where ``n_components="auto"`` has chosen one.
    n_iter_ : int
        Iterations of the fit.
    n_features_in_ : int
    feature_names_in_ : ndarray (n_features,)

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import RobustNMFDetector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(1.0, size=(60, 3)) @ rng.gamma(1.0, size=(3, 8)) + 0.1 * rng.random((60, 8))
    >>> X[:4] = 5 * rng.random((4, 8))  # four bad samples
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
        """Learn the parts, and from where on a sample is an outlier.

        Parameters
        ----------
        X : table (n_samples, n_features)
            Samples in rows, of any kind that :meth:`RobustNMF.fit` takes; NaN where a value is not
            known.
        y : ignored
        sample_weight : array-like (n_samples,), optional
            How many times each sample counts.

        Returns
        -------
        self : the fitted detector
        """
        self._validate_params()
        source = source_for(X, type(self).__name__)
        table = source.floats()
        shape = table.shape if source.in_memory else source.shape
        _check_rank(self.n_components, shape)
        # Rows that are not in memory are read as they are; RobustNMF refuses negative ones.
        shift = self._shift(table) if source.in_memory else np.zeros(shape[1])
        inside, _ = _shifted(table, shift)
        estimator = RobustNMF(
            self.n_components,
            weighting=Trimmed(),
            loss=self.loss,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=self.random_state,
        ).fit(inside, sample_weight=sample_weight)
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
            weights = np.ones(1) if weights is None else weights
            row_weight = np.broadcast_to(weights, shape[:1])
            self.offset_ = _level(
                to_numpy(self._scores(table)), row_weight, float(self.contamination)
            )
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """How much closer to others than an outlier every sample is, as a logarithm.

        Low for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix (n_samples, n_features)

        Returns
        -------
        scores : ndarray (n_samples,)
        """
        return self._scores(self._checked(X))

    def decision_function(self, X: Any) -> Any:
        """``score_samples`` less the offset: negative for outliers.

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
        """-1 for outliers, +1 for the others.

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

    def explain(self, X: Any) -> np.ndarray:
        """What every feature adds to the energy of every sample.

        See :meth:`RobustNMF.explain`.

        Parameters
        ----------
        X : array-like (n_samples, n_features)

        Returns
        -------
        contributions : ndarray (n_samples, n_features)
        """
        inside, below = _shifted(self._checked(X), self.shift_)
        contributions = self.estimator_.explain(inside)
        return contributions if below is None else contributions - self._squared_unit * below**2

    @property
    def components_(self) -> Any:
        """The parts that samples are measured by."""
        return self.estimator_.components_

    @property
    def rank_selection_(self) -> RankSelection:
        """How numbers of parts compare, where one was chosen from the data."""
        return self.estimator_.rank_selection_

    def _agree(self, X: Any, method: str) -> None:
        check_is_fitted(self)
        check_same_namespace(X, self, attribute="components_", method=method)

    def _checked(self, X: Any) -> Any:
        """New data, if they have the features of the fit."""
        check_is_fitted(self)
        source = source_for(X, type(self).__name__)
        if not source.in_memory and bool(namespace(self.shift_).any(self.shift_ > 0)):
            raise ValueError(
                "this detector was fitted on data with negative values, which are not looked for "
                "in data that are stored elsewhere. Read them into memory."
            )
        return source.floats(self)

    @property
    def _quadratic(self) -> bool:
        """Whether energies are squared errors, which negative values can be a part of."""
        return RobustNMF(1, loss=self.loss)._spec().loss.quadratic

    @property
    def _squared_unit(self) -> float:
        """Energy of a squared error of one, where energies are squared errors."""
        return 0.5 * self.estimator_._problem.loss.unit

    def _shift(self, X: Any) -> Any:
        """By how much features are raised to hold no negative values."""
        if scipy.sparse.issparse(X) or not self._quadratic:
            return np.zeros(X.shape[1])  # RobustNMF says what is wrong with negative values there
        xp = namespace(X)
        below = xp.where(X < 0, X, xp.zeros_like(X))
        return -xp.min(as_float64(below), axis=0)

    def _scores(self, X: Any) -> np.ndarray:
        inside, below = _shifted(X, self.shift_)
        energies, sizes, engine = self.estimator_._energies_and_sizes(inside)
        if below is not None:
            squares = namespace(below).sum(as_float64(below) ** 2, axis=1)
            energies = energies + self._squared_unit * squares
        logs = _logs(energies, sizes, self.estimator_.weighting_)
        near = getattr(self, "neighbourhood_", None)  # models of earlier releases have none
        if near is None:
            return -logs
        beyond = namespace(logs).maximum(logs, 0 * logs)
        return -beyond - near.outlyingness(engine, self.missed_)

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
    """Return which rows (rows,) an estimator describes: none of these is an outlier for it."""
    energies, sizes, _ = estimator._energies_and_sizes(rows)
    return to_numpy(_logs(energies, sizes, estimator.weighting_)) <= 0


def _check_rank(n_components: int | str | None, shape: tuple[int, int]) -> None:
    """Refuse more parts than X of a shape can have different ones."""
    if n_components not in (None, "auto") and int(n_components) > min(shape):
        raise ValueError(
            f"n_components={n_components} is too large: X with n_samples={shape[0]}, "
            f"n_features={shape[1]} has at most {min(shape)} parts to tell apart. Lower it."
        )


def _level(scores: np.ndarray, row_weight: np.ndarray, share: float) -> float:
    """The score that a share of the samples, each as often as it counts, stays below."""
    first = weighted_quantile(scores, row_weight, share, side="right")
    below = scores[(row_weight > 0) & (scores < first - 1e-9 * abs(first))]
    # Between two samples, so that rounding does not move one across.
    return 0.5 * (float(below.max()) + first) if len(below) else first - 0.5


def _shifted(X: Any, shift: Any) -> tuple[Any, Any]:
    """Return X with features raised by a shift, and what is still below zero (or None).

    Both (samples, features); the first has zeros where the second is negative.
    """
    if not bool(namespace(shift).any(shift > 0)):
        return X, None
    table = X.toarray() if scipy.sparse.issparse(X) else X
    xp = namespace(table)
    raised = table + xp.astype(on_device_of(table, shift), table.dtype)
    nothing = xp.zeros_like(raised)
    below = xp.where(raised < 0, raised, nothing)
    # What is known stands for what is not, as in energies; squares of it add to those.
    known = xp.sum(xp.astype(xp.isfinite(raised), table.dtype), axis=1, keepdims=True)
    whole = (table.shape[1] / xp.where(known > 0, known, 1 + 0 * known)) ** 0.5
    return xp.where(raised < 0, nothing, raised), below * whole
