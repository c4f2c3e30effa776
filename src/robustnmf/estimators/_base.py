"""The scikit-learn face that all estimators share."""

from __future__ import annotations

from contextlib import suppress
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from robustnmf._warn import warn
from robustnmf.compatibility import ModelSpec, unsupported_reason
from robustnmf.engine import Engine
from robustnmf.estimators._aliases import SOLVER_ALIASES
from robustnmf.estimators._encoding import EncodingMixin
from robustnmf.estimators._input import Seed, check_codes_path
from robustnmf.estimators._partial import PartialFit
from robustnmf.estimators._plan import plan_fit
from robustnmf.estimators._progress import (
    CallbackSupportMixin,
    finished,
    progress_of,
    with_callbacks,
)
from robustnmf.estimators._summary import comparable_objective
from robustnmf.estimators._warnings import (
    warn_if_collapsed,
    warn_of_bad_entries,
    warn_of_few_samples,
    warn_of_outliers,
)
from robustnmf.estimators.rank_selection import RankSelection
from robustnmf.estimators.saving import SaveMixin
from robustnmf.inits import INITS
from robustnmf.losses import Frobenius
from robustnmf.solvers import SOLVERS
from robustnmf.sources import source_for
from robustnmf.weightings import Weighting


class BaseRobustNMF(
    SaveMixin,
    CallbackSupportMixin,
    EncodingMixin,
    PartialFit,
    ClassNamePrefixFeaturesOutMixin,
    BaseEstimator,
):
    """Factorisation ``X ~ codes @ components_``; subclasses say what it is made of."""

    _parameter_constraints: ClassVar[dict[str, list]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "solver": [StrOptions({"auto", *SOLVERS, *SOLVER_ALIASES})],
        "init": [StrOptions({"custom", *INITS}), None],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    _default_init: ClassVar[str] = "robust"

    n_components: int | str | None
    solver: str
    init: str | None
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
    rank_selection_: RankSelection
    n_features_in_: int
    feature_names_in_: np.ndarray

    def _parts(self) -> ModelSpec:
        raise NotImplementedError

    def fit(
        self,
        X: Any,
        y: Any = None,
        W: Any = None,
        H: Any = None,
        *,
        sample_weight: Any = None,
        checkpoint: Any = None,
        checkpoint_every: float = 60.0,
        codes_path: Any = None,
    ) -> Self:
        """Learn the basis from X.

        Parameters
        ----------
        X : table (n_samples, n_features)
            Nonnegative data, samples in rows; NaN or masked where a value is missing. In memory: an
            array, nested lists, a data frame of pandas or polars, a table of PyArrow, a sparse
            matrix of SciPy, or a tensor of PyTorch, CuPy or JAX, which is computed with on its
            device. Larger than memory: the path of a .npy file, an array of Zarr or a dataset of
            h5py, a Dask array in chunks of rows, or a function without arguments that yields all
            blocks of rows every time it is called.
        y : ignored
        W : array-like (n_samples, n_components), optional
            Codes to start from, with ``init="custom"``; ignored with a warning otherwise.
        H : array-like (n_components, n_features), optional
            Basis to start from, with ``init="custom"``; ignored as W otherwise. With a convex
            structure, the mixing (n_components, n_samples) whose product with X is the basis.
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
        W: Any = None,
        H: Any = None,
        *,
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
        if parts.weighting.needs_screening:
            warn_of_few_samples(type(self).__name__, plan.engine)
        if plan.screening is not None:
            warn_of_outliers(
                type(self).__name__, learned, plan.engine, plan.screening, plan.problem
            )
            if type(parts.loss) is Frobenius:
                warn_of_bad_entries(type(self).__name__, learned, plan.screening.sample)
        codes = plan.codes(best, path)
        plan.engine.close()
        # Nothing is set before this point: a failed fit leaves the estimator as it was.
        validate_data(self, source.header, skip_check_array=True, reset=True)
        for name in ("mixing_", "rank_selection_", "_stream", "n_steps_", "n_samples_seen_"):
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
    def n_components_(self) -> int:
        """Number of components that were learned."""
        return self.components_.shape[0]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.allow_nan = True
        with suppress(KeyError, TypeError, ValueError):  # no part at all: fit says so
            tags.input_tags.sparse = unsupported_reason(*self._parts(), "sparse") is None
        tags.array_api_support = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
