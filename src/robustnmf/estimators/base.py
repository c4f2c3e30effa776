"""What all estimators share: the scikit-learn API, reports of progress, documentation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from robustnmf.estimators.partial import PartialFit
from robustnmf.estimators.saving import SaveMixin
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
from robustnmf.fitting.settings import PARAMETERS, SOLVER_ALIASES
from robustnmf.fitting.warnings import warn_if_not_converged, warn_of_bad_entries, warn_of_fit
from robustnmf.inits import INITS
from robustnmf.loop.compatibility import ModelSpec, unsupported_reason
from robustnmf.loop.fit import Callback
from robustnmf.loop.state import State
from robustnmf.losses import FORMER_NAMES, LOSSES
from robustnmf.solvers import SOLVERS
from robustnmf.sources import source_for
from robustnmf.structures import STRUCTURES
from robustnmf.weightings import WEIGHTINGS

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
        given = {name: getattr(self, name) for name in PARAMETERS if hasattr(self, name)}
        if self.init is None:
            given["init"] = type(self).init  # the default of the class
        return FitSettings(type(self).__name__, parts, **given)

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
    """Return what to call after every pass of a fit, if a callback or the progress needs it.

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


Class = TypeVar("Class", bound=type)

REGISTRIES: dict[str, Mapping[str, type]] = {
    "loss": LOSSES | FORMER_NAMES,
    "weighting": WEIGHTINGS,
    "structure": STRUCTURES,
}
"""Parts that may be given by name."""

PARTS = {
    "parameters": """\
Parameters
----------
<n_components>""",
    "others": """\
<common>

<attributes>""",
    "n_components": """\
n_components : int, "auto" or None, default=None
    Rank k: number of parts; more than there are features are allowed. None: ten, or one for
    every three features where these are few, and no more than samples; scikit-learn's NMF
    takes all features, but then outliers have parts of their own. "auto": chosen from X, as
    ``select_rank(X, range(1, 16), stability=True, n_runs=10)`` recommends it, on at most 2,000
    samples; this takes as long as some dozen fits, and X needs to be large enough to hide some
    entries of it. Either takes it from a custom start, if there is one.""",
    "common": """\
solver : {"auto", "hals", "cd", "mu-extrapolated", "mu"}, default=<solver>
    "mu": multiplicative updates, the paper's. "hals": coordinate descent with extrapolation,
    for the squared error with free structure; by far the fastest; "cd" is scikit-learn's name
    for it. "mu-extrapolated": multiplicative updates with extrapolation, for the other losses.
    "auto" picks the fastest that applies. The objective never rises under any of them.
init : {"robust", "nndsvda", "nndsvdar", "nndsvd", "random", "custom"} or None, default=<init>
    Start; None is the default. "random": uniform positive factors whose product has the mean of X.
    "nndsvd": from a truncated SVD; its zeros can never change under "mu".
    "nndsvda": the same with zeros filled. "nndsvdar": the same with small random numbers in
    their place. "robust": as "nndsvda", with no row counting
    for more than one of median norm, so that a few huge ones do not take all components.
    Components beyond the number of singular vectors, of which X has no more than samples or
    features, start at random ("nndsvd" refuses them). "custom": W and H given to ``fit``; zeros
    in them stay zero under "mu".
n_init : int, default=1
    Number of random starts, run as one batch; the best objective is kept.
max_iter : int, default=<max_iter>
    Most iterations of a fit.
tol : float, default=1e-4
    A fit stops when the last ten iterations have each lowered the objective by no more
    than ``tol`` of itself, on average, and ends on the best codes for its basis. 0
    runs exactly ``max_iter`` iterations of the algorithm and nothing else.
random_state : int, RandomState or None, default=None
    Seed of the start.
verbose : int, default=0
    Print the objective every ``10 / verbose`` iterations.""",
    "attributes": """\
Attributes
----------
components_ : ndarray (n_components, n_features)
    Basis, the learned parts.
n_components_ : int
    Number of components.
sample_importances_ : ndarray (n_samples,)
    Importance every sample had when the basis was learned; sums to one. Rows of
    zeros have none. For fuzzy weights these are the paper's Q; what the losses of the samples
    were multiplied by is ``Q**p``.
energies_ : ndarray (n_samples,), float64
    Loss between each sample and its approximation. Bad samples stand out here.
outliers_ : ndarray of bool (n_samples,)
    Samples that were left out: their energy is beyond the cutoffs of trimmed weights, or, for
    other weightings, their weight is below a tenth of an equal share. An
    :class:`~robustnmf.exceptions.OutlierWarning` is issued if they are more than a fifth of
    all samples, if they resemble each other, or if others are hardly predicted better without
    them; it says by how much.
effective_sample_size_ : float
    ``sum(w)**2 / sum(w**2)`` of the weights w that the losses of the samples were multiplied
    by: ``1 / sum(sample_importances_**2)``, but for fuzzy weights, which are ``Q**p``. A sample
    of weight m stands for m equal ones. A
    :class:`~robustnmf.exceptions.WeightCollapseWarning` is issued when it is
    below the rank.
codes_overlap_ : float
    Mean cosine between different columns of the codes: zero where they are orthogonal, so
    that no sample uses two components, one where they are alike.
objective_history_ : ndarray
    Objective phi at the start and after every iteration; with ``tol > 0`` a last entry
    for the final codes. Automatic hyperparameters change phi while they settle; the
    history then starts when they are frozen.
reconstruction_err_ : float
    Frobenius norm of the residual, all samples counted alike; for other losses the
    square root of twice their sum.
n_iter_ : int
    Iterations run.
weighting_ : Weighting
    The weighting with its automatic hyperparameters as settled.
rank_selection_ : RankSelection
    How numbers of components compare, where ``n_components="auto"`` has chosen one.
mixing_ : ndarray (n_components, n_samples)
    With a convex structure, ``components_ = mixing_ @ X`` (with sample weights,
    ``(mixing_ * sample_weight) @ X``; with missing values, X has a guess in their place).
n_features_in_, feature_names_in_
    Number and names of the features seen in ``fit``.""",
}


def documented(cls: Class) -> Class:
    """Fill placeholders in the docstring of an estimator: texts, names of parts, its defaults."""
    text = inspect.cleandoc(cls.__doc__ or "")
    for name, part in PARTS.items():
        text = text.replace(f"<{name}>", part)
    for name, registry in REGISTRIES.items():
        text = text.replace(f"<{name}>", ", ".join(f'"{key}"' for key in registry))
    for name in ("solver", "init", "max_iter"):
        text = text.replace(f"<{name}>", repr(getattr(cls, name)).replace("'", '"'))
    cls.__doc__ = text
    return cls
