"""The scikit-learn face that all estimators share."""

from __future__ import annotations

from contextlib import suppress
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from robustnmf._warn import warn
from robustnmf.arrays import host_dtype, namespace, to_numpy
from robustnmf.compatibility import ModelSpec, unsupported_reason
from robustnmf.encoding import encode, objective
from robustnmf.engine import Engine
from robustnmf.estimators._input import Seed, check_weights
from robustnmf.estimators._partial import PartialFit
from robustnmf.estimators._plan import check_codes_path, plan_fit
from robustnmf.estimators._progress import (
    CallbackSupportMixin,
    finished,
    progress_of,
    with_callbacks,
)
from robustnmf.estimators._summary import comparable_objective
from robustnmf.estimators._warnings import warn_if_collapsed, warn_of_few_samples, warn_of_outliers
from robustnmf.estimators.saving import SaveMixin
from robustnmf.inits import INITS
from robustnmf.solvers import SOLVERS
from robustnmf.sources import Source, in_memory_engine, source_for
from robustnmf.structures import Free
from robustnmf.weightings import Weighting

try:
    from sklearn.utils._array_api import check_same_namespace
except ImportError:  # came with scikit-learn 1.9

    def check_same_namespace(X: Any, estimator: Any, *, attribute: str, method: str) -> None:
        """Do nothing: this scikit-learn does not dispatch."""


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
        source = source_for(X, type(self).__name__)
        path = check_codes_path(codes_path, source, parts.structure, checkpoint)
        plan = plan_fit(self, parts, source, W, H, sample_weight, codes_path=path)
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
        validate_data(self, source.header, skip_check_array=True, reset=True)
        for name in ("mixing_", "_stream", "n_steps_", "n_samples_seen_"):
            self.__dict__.pop(name, None)
        self.__dict__.update(learned)
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
        source = self._checked(X, "transform")
        return source.run(
            self, "transform", lambda rows: self._encode(rows)[0], (self.components_.shape[0],)
        )

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
        k, features = self.components_.shape

        def approximation(source: Source) -> np.ndarray:
            codes = source.floats()
            if codes.shape[1] != k:
                raise ValueError(
                    f"X has {codes.shape[1]} columns, but codes of this {type(self).__name__} have "
                    f"{k}, one for each component. Pass what transform returns."
                )
            return codes @ source.like(self.components_)

        source = source_for(X, type(self).__name__)
        return source.run(self, "inverse_transform", approximation, (features,))

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
        source = self._checked(X)
        return source.run(self, "score_samples", lambda rows: -self._encode(rows)[1], ())

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
        source = self._checked(X)
        rows = source.dense_rows()
        basis = to_numpy(self.components_) / self._scale
        engine = in_memory_engine(
            rows, self._problem, self.weighting_, len(basis), scale=self._scale
        )
        codes, _ = encode(engine, self._problem, self._scaled_weighting, basis)
        data = rows / self._scale
        approximation = codes.astype(data.dtype) @ basis
        known = ~np.isnan(data)
        entries = self._problem.loss.entries(np.where(known, data, approximation), approximation)
        # What is known stands for what is not, as in energies.
        counts = np.maximum(known.sum(axis=1, keepdims=True), 1)
        entries = entries.astype(np.float64) * (self._unit * data.shape[1] / counts)
        return source.give_back(np.where(known, np.sign(data - approximation) * entries, np.nan))

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
        source = self._checked(X)
        weights = check_weights(sample_weight, source.shape[0])
        value = objective(
            self._engine(source, sample_weight=weights),
            self._problem,
            self._scaled_weighting,
            source.like(self.components_) / self._scale,
        )
        return value * self._unit**self.weighting_.degree

    def _encode(self, source: Source) -> tuple[np.ndarray, np.ndarray]:
        """Return codes (samples, k) and energies (samples,) of checked X, in the user's units."""
        codes, energies = self._encode_rows(source, self._engine(source))
        return namespace(codes).astype(codes, source.dtype, copy=False), energies * self._unit

    def _encode_rows(self, source: Source, engine: Engine) -> tuple[np.ndarray, np.ndarray]:
        """Return codes in the user's units, and energies in those of the engine."""
        basis = source.like(self.components_) / self._scale
        return encode(engine, self._problem, self._scaled_weighting, basis)

    def _energies_and_sizes(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return energies (samples,) and the sizes that they compare with, in the user's units."""
        source = self._checked(X)
        engine = self._engine(source)
        sizes = engine.row_sizes(self._problem.loss.degree)
        return self._encode_rows(source, engine)[1] * self._unit, sizes * self._unit

    @property
    def _unit(self) -> float:
        """Energy of the user's units over that of the engine's."""
        return self._scale**self._problem.loss.degree

    @property
    def _scaled_weighting(self) -> Weighting:
        """The learned weighting in the units of the engine."""
        return self.weighting_.rescaled(1.0 / self._unit)

    @property
    def _spec(self) -> ModelSpec:
        """Parts that new data must suit; with the basis given, its structure does not matter."""
        return ModelSpec(self._problem.loss, self.weighting_, Free())

    def _checked(self, X: Any, method: str | None = None) -> Source:
        """Return the source of new data, in the precision of the fit; X may be a source already.

        A method that results in arrays needs X in the library of the fit, where scikit-learn
        dispatches.
        """
        check_is_fitted(self)
        source = X if isinstance(X, Source) else source_for(X, type(self).__name__)
        if method is not None and source.in_memory:
            check_same_namespace(X, self, attribute="components_", method=method)
        return source.checked(self._spec, model=self, dtype=host_dtype(self.components_))

    def _engine(self, source: Source, sample_weight: np.ndarray | None = None) -> Engine:
        return source.engine(
            self._problem, self.weighting_, self.components_.shape[0],
            scale=self._scale, sample_weight=sample_weight,
        )  # fmt: skip

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
        if self._checked_parts().weighting.needs_screening:
            warn_of_few_samples(name, engine)
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
