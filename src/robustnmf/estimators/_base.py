"""The scikit-learn face that all estimators share."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from array_api_compat import is_dask_array
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_array
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from robustnmf.arrays import host_dtype, is_foreign, namespace, on_device_of, to_numpy
from robustnmf.compatibility import ModelSpec, unsupported_reason
from robustnmf.engine import Engine, look_at
from robustnmf.estimators._input import Seed, check_weights
from robustnmf.estimators._job import check_codes_path, plan_fit
from robustnmf.estimators._partial import PartialFit
from robustnmf.estimators._progress import (
    CallbackSupportMixin,
    finished,
    progress_of,
    with_callbacks,
)
from robustnmf.estimators._start import engine_for
from robustnmf.estimators._summary import comparable_objective
from robustnmf.estimators._table import (
    ACCEPTED,
    FLOATS,
    as_lazy,
    check_look,
    check_same_namespace,
    floats_of,
    header_of,
    mapped,
    native,
    usable,
)
from robustnmf.estimators._warn import warn
from robustnmf.estimators._warnings import warn_if_collapsed, warn_of_outliers
from robustnmf.estimators.saving import SaveMixin
from robustnmf.fit import encode, objective
from robustnmf.inits import INITS
from robustnmf.solvers import SOLVERS
from robustnmf.structures import Free
from robustnmf.weightings import Weighting


class BaseRobustNMF(
    SaveMixin,
    CallbackSupportMixin,
    PartialFit,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """Factorisation ``X ~ codes @ components_``; subclasses say what it is made of."""

    _parameter_constraints: ClassVar[dict[str, list]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "solver": [StrOptions({"auto", *SOLVERS})],
        "init": [StrOptions({"custom", *INITS})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    n_components: int | str
    solver: str
    init: str
    n_init: int
    max_iter: int
    tol: float
    random_state: Seed
    verbose: int
    # What a fit leaves, in the library of X.
    components_: Any
    sample_importances_: Any
    energies_: Any
    outliers_: Any
    effective_sample_size_: float
    codes_overlap_: float
    objective_history_: np.ndarray
    reconstruction_err_: float
    n_iter_: int
    weighting_: Weighting
    mixing_: Any
    n_features_in_: int
    feature_names_in_: np.ndarray

    def _parts(self) -> ModelSpec:
        raise NotImplementedError

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        W: Any = None,
        H: Any = None,
        sample_weight: Any = None,
        checkpoint: Any = None,
        checkpoint_every: float = 60.0,
        codes_path: Any = None,
    ) -> Self:
        """Learn the basis from X.

        Parameters
        ----------
        X : array-like or sparse matrix (n_samples, n_features)
            Nonnegative data, samples in rows; NaN where a value is not known.
        y : ignored
        W : array-like (n_samples, n_components), optional
            Codes to start from, with ``init="custom"``.
        H : array-like (n_components, n_features), optional
            Basis to start from, with ``init="custom"``. With a convex structure, the
            mixing (n_components, n_samples) whose product with X is the basis.
        sample_weight : array-like (n_samples,), optional
            How many times each sample counts: two is the same as the sample twice, zero the
            same as the sample absent. Combines with the adaptive weights.
        checkpoint : path, optional
            File that the state of the fit is written to from time to time. Where it exists, the
            fit goes on from it, with the same result as if it had never stopped; when the fit is
            over, it is deleted.
        checkpoint_every : float, default=60.0
            Seconds between two writes.
        codes_path : path, optional
            A .npy file for the codes, of which ``fit_transform`` returns a memory map. Where X is
            read from a file, codes are kept in files while they are computed, too: memory then
            holds a few numbers for each sample, whatever the number of components.

        Returns
        -------
        self : the fitted estimator
        """
        self.fit_transform(
            X, y, W=W, H=H, sample_weight=sample_weight,
            checkpoint=checkpoint, checkpoint_every=checkpoint_every, codes_path=codes_path,
        )  # fmt: skip
        return self

    @with_callbacks
    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        *,
        W: Any = None,
        H: Any = None,
        sample_weight: Any = None,
        checkpoint: Any = None,
        checkpoint_every: float = 60.0,
        codes_path: Any = None,
    ) -> np.ndarray:
        """Learn the basis from X and return the codes of X.

        With ``tol > 0`` these are the codes that ``transform(X)`` returns, up to rounding; where
        the loss of a row has several minima (orthogonal structure, losses that are not convex),
        a row for which the iterations have found better codes keeps them. With ``tol=0`` they
        are what the last iteration left.

        Parameters
        ----------
        X, y, W, H, sample_weight, checkpoint, checkpoint_every, codes_path
            As in ``fit``.

        Returns
        -------
        codes : ndarray (n_samples, n_components)
        """
        parts = self._checked_parts()
        path = check_codes_path(codes_path, X, parts.structure, checkpoint)
        plan = plan_fit(self, parts, X, W, H, sample_weight, codes_path=path)
        kept = (
            None
            if checkpoint is None
            else plan.checkpoint(self, checkpoint, checkpoint_every, (W, H))
        )
        members = plan.run(
            [parts.weighting], self.max_iter, self.tol, progress_of(self, plan), checkpoint=kept
        )
        best = min(members, key=comparable_objective(members, plan.engine, plan.problem))
        learned = plan.learned(best)
        self._warn(best.converged, learned, plan.engine, best.penalised_energies * plan.unit)
        if plan.screening is not None:
            warn_of_outliers(type(self).__name__, learned, plan.engine, plan.screening.similar)
        codes = plan.codes(best, path)
        plan.engine.close()
        # Nothing is set before this point: a failed fit leaves the estimator as it was.
        validate_data(self, plan.header(X), skip_check_array=True, reset=True)
        for name in ("mixing_", "_stream", "n_steps_", "n_samples_seen_"):
            vars(self).pop(name, None)
        vars(self).update(learned)
        finished(self)
        if kept is not None:
            kept.done()
        return codes

    def _checked_parts(self) -> ModelSpec:
        """What the estimator is made of, all parameters checked."""
        self._validate_params()
        parts = self._parts()
        for part in parts:
            part._validate_params()
        return parts

    def transform(self, X: Any) -> np.ndarray:
        """Best codes of X for the learned basis, each row for itself.

        Parameters
        ----------
        X : array-like or sparse matrix (n_samples, n_features)

        Returns
        -------
        codes : ndarray (n_samples, n_components)
        """
        check_is_fitted(self)
        if is_dask_array(X):
            validate_data(self, header_of(X), skip_check_array=True, reset=False)
            return mapped(self, "transform", X, (self.components_.shape[0],))
        # Whoever has scikit-learn dispatch is told; everybody else has arrays brought together.
        check_same_namespace(X, self, attribute="components_", method="transform")
        return self._encode(X)[0]

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Approximation of the data that codes stand for.

        Parameters
        ----------
        X : array-like (n_samples, n_components)
            Codes.

        Returns
        -------
        approximation : ndarray (n_samples, n_features)
        """
        check_is_fitted(self)
        if is_dask_array(X):
            return mapped(self, "inverse_transform", X, (self.components_.shape[1],))
        if is_foreign(X):
            codes = floats_of(X, type(self).__name__)
        else:
            codes = check_array(X, dtype=FLOATS, input_name="X")
        if codes.shape[1] != self.components_.shape[0]:
            raise ValueError(
                f"X has {codes.shape[1]} columns, but codes of this {type(self).__name__} have "
                f"{self.components_.shape[0]}, one for each component. Pass what transform returns."
            )
        return codes @ self._components(codes)

    def score_samples(self, X: Any) -> np.ndarray:
        """How normal every sample is: its energy with the sign turned.

        Parameters
        ----------
        X : array-like or sparse matrix (n_samples, n_features)

        Returns
        -------
        scores : ndarray (n_samples,)
            High for samples that the basis describes well, low for outliers.
        """
        check_is_fitted(self)
        if is_dask_array(X):
            validate_data(self, header_of(X), skip_check_array=True, reset=False)
            return mapped(self, "score_samples", X, ())
        return -self._encode(X)[1]

    def explain(self, X: Any) -> np.ndarray:
        """What every feature adds to the energy of every sample.

        Positive where the sample has more than its approximation, negative where it has less;
        the absolute values of a row sum to its energy. Large ones are what makes it an outlier.

        Parameters
        ----------
        X : array-like or sparse matrix (n_samples, n_features)

        Returns
        -------
        contributions : ndarray (n_samples, n_features)
            NaN where X is not known; what is known of such a row stands for all of it.

        Examples
        --------
        >>> import numpy as np
        >>> from robustnmf import RobustNMF
        >>> X = np.outer(np.arange(1.0, 9.0), [1.0, 2.0, 3.0])
        >>> model = RobustNMF(1).fit(X)
        >>> model.explain([[1.0, 9.0, 3.0]]).round().argmax()
        np.int64(1)
        """
        X = np.asarray(X) if isinstance(X, np.memmap) else X
        if is_foreign(X):
            return on_device_of(X, self.explain(to_numpy(floats_of(X, type(self).__name__))))
        table, unit, _ = self._checked(X)
        if as_lazy(table) is not None:
            raise TypeError(
                f"explain needs samples in memory, but X is {X!r}. Read the samples of interest."
            )
        codes, _ = self._encode_checked(table, self._engine(table))
        table = table.toarray() if scipy.sparse.issparse(table) else np.asarray(table)
        data = table / self._scale
        approximation = codes.astype(data.dtype) @ (to_numpy(self.components_) / self._scale)
        known = ~np.isnan(data)
        entries = self._problem.loss.entries(np.where(known, data, approximation), approximation)
        # What is known stands for what is not, as in energies.
        counts = np.maximum(known.sum(axis=1, keepdims=True), 1)
        entries = entries.astype(np.float64) * (unit * data.shape[1] / counts)
        return np.where(known, np.sign(data - approximation) * entries, np.nan)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of ``score_samples``, for model selection.

        Parameters
        ----------
        X : array-like or sparse matrix (n_samples, n_features)
        y : ignored

        Returns
        -------
        score : float
        """
        scores = self.score_samples(X)
        return float(namespace(scores).mean(scores))

    def objective(self, X: Any, *, sample_weight: Any = None) -> float:
        """Objective phi of X under the learned basis and weighting, with the best codes.

        For the data of the fit (and ``tol > 0``) the last entry of ``objective_history_``, as far
        as ``transform`` returns the codes of the fit.

        Parameters
        ----------
        X : array-like or sparse matrix (n_samples, n_features)
        sample_weight : array-like (n_samples,), optional
            How many times each sample counts.

        Returns
        -------
        objective : float
        """
        table, unit, _ = self._checked(X)
        weights = check_weights(sample_weight, table.shape[0])
        value = objective(
            self._engine(table, sample_weight=weights),
            self._problem,
            self.weighting_.rescaled(1.0 / unit),
            self._components(table) / self._scale,
        )
        return value * unit**self.weighting_.degree

    def _encode(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Codes and energies of X, in the user's units."""
        table, unit, dtype = self._checked(X)
        codes, energies = self._encode_checked(table, self._engine(table))
        return namespace(codes).astype(codes, dtype, copy=False), energies * unit

    def _encode_checked(self, table: Any, engine: Engine) -> tuple[np.ndarray, np.ndarray]:
        """Codes in the user's units, and energies in those of the engine."""
        return encode(
            engine,
            self._problem,
            self.weighting_.rescaled(1.0 / self._scale**self._problem.loss.degree),
            self._components(table) / self._scale,
        )

    def _components(self, like: Any) -> Any:
        """The components where another array is, in its library."""
        learned = self.components_
        return on_device_of(like, learned) if is_foreign(like) else to_numpy(learned)

    def _energies_and_sizes(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Energies of samples, and what they compare with, in the user's units."""
        table, unit, _ = self._checked(X)
        engine = self._engine(table)
        sizes = engine.row_sizes(self._problem.loss.degree)
        return self._encode_checked(table, engine)[1] * unit, sizes * unit

    def _checked(self, X: Any) -> tuple[Any, float, np.dtype]:
        """New data in the precision of the fit, the unit of their energies, their own dtype."""
        check_is_fitted(self)
        away = as_lazy(X)
        if away is not None:
            validate_data(self, header_of(away), skip_check_array=True, reset=False)
            return away, self._scale**self._problem.loss.degree, host_dtype(self.components_)
        if is_foreign(X):
            given = floats_of(X, type(self).__name__)
            validate_data(self, header_of(X), skip_check_array=True, reset=False)
            parts = ModelSpec(self._problem.loss, self.weighting_, Free())
            check_look(type(self).__name__, parts, look_at(given))
            double = host_dtype(self.components_) == np.float64
            xp = namespace(given)
            table = xp.astype(given, xp.float64 if double else xp.float32, copy=False)
            return table, self._scale**self._problem.loss.degree, given.dtype
        given = validate_data(self, native(X), reset=False, **ACCEPTED)
        # With the basis given, it does not matter what it was made of.
        parts = ModelSpec(self._problem.loss, self.weighting_, Free())
        with np.errstate(over="ignore"):  # what leaves the range of the fit is refused
            table = given.astype(host_dtype(self.components_), copy=False)
        table = usable(table, type(self).__name__, parts)
        return table, self._scale**self._problem.loss.degree, given.dtype

    def _engine(self, table: Any, sample_weight: np.ndarray | None = None) -> Engine:
        parts = ModelSpec(self._problem.loss, self.weighting_, Free())
        options = {
            "scale": self._scale,
            "sample_weight": sample_weight,
            "dtype": host_dtype(self.components_),
            "check": partial(check_look, type(self).__name__, parts),
        }
        rank = self.components_.shape[0]
        return engine_for(table, self._problem, self.weighting_, rank, **options)

    def _warn(
        self, converged: bool, learned: dict[str, Any], engine: Engine, weighed: np.ndarray
    ) -> None:
        name, n_iter = type(self).__name__, learned["n_iter_"]
        if self.tol > 0 and not converged:
            warn(
                f"{name} did not converge: after {n_iter} iterations the "
                f"objective still falls by more than tol={self.tol:g} of itself in each. "
                "Raise max_iter or tol.",
                ConvergenceWarning,
            )
        warn_if_collapsed(
            name,
            learned["weighting_"],
            weighed,
            engine,
            learned["effective_sample_size_"],
            learned["components_"].shape[0],
        )

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "components_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.allow_nan = True
        with suppress(KeyError):  # a name that is no part: fit says so
            tags.input_tags.sparse = unsupported_reason(*self._parts(), "sparse") is None
        tags.array_api_support = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
