"""The scikit-learn face that all estimators share."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_array
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from robustnmf.combinations import Parts, refusal
from robustnmf.engine import InMemory
from robustnmf.estimators._collapse import warn_if_collapsed
from robustnmf.estimators._input import check_fixed, check_weights
from robustnmf.estimators._regularisation import paid
from robustnmf.estimators._start import engine_for, rank_of, start_of
from robustnmf.estimators._summary import common_level, overlap, reconstruction_error
from robustnmf.estimators._table import ACCEPTED, FLOATS, check_table, usable
from robustnmf.estimators._warn import warn
from robustnmf.fit import Callback, encode, fit, objective
from robustnmf.inits import INITS
from robustnmf.solvers import SOLVERS, Multiplicative
from robustnmf.state import Problem, State
from robustnmf.structures import Free
from robustnmf.weightings import effective_sample_size


class BaseRobustNMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
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

    def _parts(self) -> Parts:
        raise NotImplementedError

    def fit(
        self, X: Any, y: Any = None, *, W: Any = None, H: Any = None, sample_weight: Any = None
    ):
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

        Returns
        -------
        self : the fitted estimator
        """
        self.fit_transform(X, y, W=W, H=H, sample_weight=sample_weight)
        return self

    def fit_transform(
        self, X: Any, y: Any = None, *, W: Any = None, H: Any = None, sample_weight: Any = None
    ) -> np.ndarray:
        """Learn the basis from X and return the codes of X.

        With ``tol > 0`` these are the codes that ``transform(X)`` returns, up to rounding; where
        the loss of a row has several minima (orthogonal structure, losses that are not convex),
        a row for which the iterations have found better codes keeps them. With ``tol=0`` they
        are what the last iteration left.

        Parameters
        ----------
        X, y, W, H, sample_weight
            As in ``fit``.

        Returns
        -------
        codes : ndarray (n_samples, n_components)
        """
        self._validate_params()
        parts = self._parts()
        for part in parts:
            part._validate_params()
        name = type(self).__name__
        table = check_table(X, name, parts)
        rank = rank_of(table.shape, self.n_components, self.init, W, H)
        problem = Problem(parts.loss, parts.structure, self._solver())
        weights = check_weights(sample_weight, table)
        engine = engine_for(table, problem, parts.weighting, self.n_init, sample_weight=weights)
        # Energies are smaller than in the user's units by this factor.
        unit = engine.scale**parts.loss.degree
        start, balance = start_of(self, engine, problem, rank, W, H)
        fixed = check_fixed(getattr(self, "fixed_components", None), parts.structure, rank, table)
        counted = table.shape[0] if weights is None else float(weights.sum())
        shape = counted, table.shape[1]
        paying = (self, parts.loss, parts.weighting, shape, engine.scale, engine.like.dtype)
        problem = replace(problem, **paid(*paying, balance))
        if fixed is not None:
            problem = replace(problem, fixed=fixed * (balance / engine.scale))
        members = fit(
            engine,
            problem,
            [parts.weighting.rescaled(1.0 / unit)] * start.codes.shape[0],
            start,
            max_iter=self.max_iter,
            tol=self.tol,
            callback=self._reporter(unit) if self.verbose else None,
        )
        best = min(members, key=common_level(members, engine.mass))
        learned = {
            "components_": best.basis * (engine.scale / balance),
            "energies_": best.energies * unit,
            "sample_importances_": np.array(best.importances),
            "effective_sample_size_": float(effective_sample_size(best.importances, engine.sizes)),
            "objective_history_": np.array(best.history) * unit**best.weighting.degree,
            "codes_overlap_": overlap(best.codes),
            "reconstruction_err_": reconstruction_error(best.energies, parts.loss, unit),
            "n_iter_": best.n_iter,
            "weighting_": best.weighting.rescaled(unit),
            "_problem": replace(problem, **paid(*paying)),
            "_scale": engine.scale,
        }
        if best.mixing is not None:
            learned["mixing_"] = (best.mixing / balance).T
        self._warn(best.converged, learned, engine, best.weighed * unit)
        # Nothing is set before this point: a failed fit leaves the estimator as it was.
        validate_data(self, X, skip_check_array=True, reset=True)
        vars(self).pop("mixing_", None)
        vars(self).update(learned)
        return best.codes * balance

    def transform(self, X: Any) -> np.ndarray:
        """Best codes of X for the learned basis, each row for itself.

        Parameters
        ----------
        X : array-like or sparse matrix (n_samples, n_features)

        Returns
        -------
        codes : ndarray (n_samples, n_components)
        """
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
        codes = check_array(X, dtype=FLOATS, input_name="X")
        if codes.shape[1] != self.components_.shape[0]:
            raise ValueError(
                f"X has {codes.shape[1]} columns, but codes of this {type(self).__name__} have "
                f"{self.components_.shape[0]}, one for each component. Pass what transform returns."
            )
        return codes @ self.components_

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
        return -self._encode(X)[1]

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
        return float(np.mean(self.score_samples(X)))

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
        weights = check_weights(sample_weight, table)
        value = objective(
            self._engine(table, sample_weight=weights),
            self._problem,
            self.weighting_.rescaled(1.0 / unit),
            self.components_ / self._scale,
        )
        return value * unit**self.weighting_.degree

    def _encode(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Codes and energies of X, in the user's units."""
        table, unit, dtype = self._checked(X)
        codes, energies = encode(
            self._engine(table),
            self._problem,
            self.weighting_.rescaled(1.0 / unit),
            self.components_ / self._scale,
        )
        return codes.astype(dtype, copy=False), energies * unit

    def _checked(self, X: Any) -> tuple[Any, float, np.dtype]:
        """New data in the precision of the fit, the unit of their energies, their own dtype."""
        check_is_fitted(self)
        given = validate_data(self, X, reset=False, **ACCEPTED)
        # With the basis given, it does not matter what it was made of.
        parts = Parts(self._problem.loss, self.weighting_, Free())
        given = usable(given, type(self).__name__, parts)
        with np.errstate(over="ignore"):
            table = given.astype(self.components_.dtype, copy=False)
        if table.dtype != given.dtype:
            usable(table, type(self).__name__, parts)  # it may have left the range of its dtype
        return table, self._scale**self._problem.loss.degree, given.dtype

    def _engine(self, table: Any, sample_weight: np.ndarray | None = None) -> InMemory:
        options = {"scale": self._scale, "sample_weight": sample_weight}
        return engine_for(table, self._problem, self.weighting_, **options)

    def _solver(self) -> Multiplicative:
        return SOLVERS["mu" if self.solver == "auto" else self.solver]()

    def _warn(
        self, converged: bool, learned: dict[str, Any], engine: InMemory, weighed: np.ndarray
    ) -> None:
        name = type(self).__name__
        if self.tol > 0 and not converged:
            warn(
                f"{name} did not converge: after max_iter={self.max_iter} iterations the "
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

    def _reporter(self, unit: float) -> Callback:
        """Print the objective of every member in the user's units."""

        def report(iteration: int, state: State) -> None:
            if iteration % max(1, 10 // int(self.verbose)) == 0:
                values = ", ".join(
                    f"{track.values[-1] * unit**track.weighting.degree:.6g}"
                    + (" (settling)" if track.asked.settles else "")
                    for track in state.tracks
                )
                print(f"{type(self).__name__}: iteration {iteration}, objective {values}")

        return report

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
            tags.input_tags.sparse = refusal(*self._parts(), "sparse") is None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
