"""The scikit-learn face that all estimators share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from robustnmf.compatibility import ModelSpec, unsupported_reason
from robustnmf.estimators.partial import PartialFit
from robustnmf.estimators.saving import SaveMixin
from robustnmf.fit import Callback
from robustnmf.fitting import (
    Encoder,
    FitPlan,
    FitSettings,
    Seed,
    check_codes_path,
    check_source,
    choose_components,
    plan_fit,
)
from robustnmf.fitting.consensus import Progress
from robustnmf.fitting.settings import SOLVER_ALIASES
from robustnmf.fitting.warnings import warn_if_not_converged, warn_of_bad_entries, warn_of_fit
from robustnmf.inits import INITS
from robustnmf.solvers import SOLVERS
from robustnmf.sources import source_for
from robustnmf.state import State

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # callbacks came with scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Any) -> Any:
        """The method as it is."""
        return method


@dataclass(repr=False, eq=False)
class BaseRobustNMF(
    SaveMixin, CallbackSupportMixin, PartialFit, ClassNamePrefixFeaturesOutMixin, BaseEstimator
):
    """Factorisation ``X ~ codes @ components_``; subclasses say what it is made of.

    Estimators are dataclasses: their fields are the parameters, and ``__init__`` is generated.
    """

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

    n_components: int | str | None = None
    _: KW_ONLY
    solver: str = "auto"
    init: str | None = "robust"
    n_init: int = 1
    max_iter: int = 1000
    tol: float = 1e-4
    random_state: Seed = None
    verbose: int = 0

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
        settings = self._settings()
        source = source_for(X, settings.name)
        path = check_codes_path(codes_path, source, settings.parts.structure, checkpoint)
        source = check_source(settings, source)
        settings, selection = choose_components(settings, source, sample_weight)
        plan = plan_fit(settings, source, W=W, H=H, sample_weight=sample_weight, codes_path=path)
        kept = None
        if checkpoint is not None:
            kept = plan.checkpoint(self.get_params(), checkpoint, checkpoint_every, (W, H))
        best = plan.best(plan.run(callback=progress_of(self, plan), checkpoint=kept))
        result = plan.result(best, selection)
        warn_if_not_converged(plan, best.converged, result)
        warn_of_fit(plan, result, best.penalised_energies * plan.unit)
        warn_of_bad_entries(plan, result)
        codes = plan.codes(best, path)
        plan.engine.close()
        # Nothing is set before this point: a failed fit leaves the estimator as it was.
        validate_data(self, source.header, skip_check_array=True, reset=True)
        for name in ("mixing_", "rank_selection_", "_stream", "n_steps_", "n_samples_seen_"):
            self.__dict__.pop(name, None)
        self.__dict__.update(result.attributes())
        finished(self)
        if kept is not None:
            kept.done()
        return codes

    def _settings(self) -> FitSettings:
        """All parameters, checked."""
        self._validate_params()
        parts = self._parts()
        for part in parts:
            part._validate_params()
        parameters = self.get_params(deep=False)
        if self.init is None:
            parameters["init"] = type(self).init  # the default of the class
        return FitSettings.of(type(self).__name__, parts, parameters)

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


def progress_of(model: Any, plan: FitPlan) -> Callback | None:
    """Return what to call after every pass of a fit, if somebody wants to know.

    Objectives are printed in the user's units. The estimator that callbacks see is the first
    member that is still in the batch.
    """
    if not (model.verbose or getattr(model, "_skl_callbacks", None)):
        return None
    tell = _task_reporter(model, "pass", model.max_iter + 1)

    def after_pass(iteration: int, state: State) -> bool:
        if model.verbose and iteration % max(1, 10 // int(model.verbose)) == 0:
            values = ", ".join(
                f"{member.values[-1] * plan.unit**member.weighting.degree:.6g}"
                + (" (settling)" if member.requested_weighting.has_auto else "")
                for member in state.members
            )
            print(f"{type(model).__name__}: iteration {iteration}, objective {values}")
        return tell(lambda: plan.encoder(state.basis[0, ...], state.members[0].weighting))

    return after_pass


def runs_progress_of(model: Any, batches: int) -> Progress:
    """Return what to call after every batch of the runs of a consensus."""
    tell = _task_reporter(model, "batch of runs", batches)

    def after_batch(done: int, best: Callable[[], Encoder]) -> bool:
        if model.verbose:
            print(f"{type(model).__name__}: {done} of {model.n_runs} runs")
        return tell(best)

    return after_batch


def _task_reporter(
    model: Any, task_name: str, count: int
) -> Callable[[Callable[[], Encoder]], bool]:
    """Return what tells callbacks that one of several tasks is done, and whether to stop.

    Given a function that returns what ``transform`` needs at this point.
    """
    if not getattr(model, "_skl_callbacks", None):
        return lambda encoder: False
    root = model._init_callback_context(max_subtasks=count)
    root.call_on_fit_task_begin(estimator=model)

    def tell(encoder: Callable[[], Encoder]) -> bool:
        task = root.subcontext(task_name=task_name)
        task.call_on_fit_task_begin(estimator=model)
        return task.call_on_fit_task_end(
            estimator=model, reconstruction_attributes=lambda: encoder().attributes()
        )

    return tell


def finished(model: Any) -> None:
    """Tell callbacks that the fit is over, while the estimator is fitted."""
    root = getattr(model, "_callback_fit_ctx", None)
    if root is not None:
        root.call_on_fit_task_end(estimator=model, reconstruction_attributes=dict)
