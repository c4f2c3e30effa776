"""Base class of the estimators: the scikit-learn API, progress reports, shared documentation."""

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
from robustnmf.loop.checkpoint import Checkpoint
from robustnmf.loop.compatibility import ModelSpec, unsupported_reason
from robustnmf.loop.fit import Callback
from robustnmf.loop.state import State
from robustnmf.losses import FORMER_NAMES, LOSSES
from robustnmf.solvers import SOLVERS
from robustnmf.sources import Source, source_for
from robustnmf.structures import STRUCTURES
from robustnmf.weightings import WEIGHTINGS

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn has callbacks since version 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Empty: this scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method unchanged."""
        return method


@dataclass(repr=False, eq=False)
class BaseRobustNMF(
    SaveMixin, CallbackSupportMixin, PartialFit, ClassNamePrefixFeaturesOutMixin, BaseEstimator
):
    """Factorisation ``X ~ codes @ components_``; subclasses define the model.

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
    init: str | None = None
    n_init: int = 1
    max_iter: int = 1000
    tol: float = 1e-4
    random_state: Seed = None
    verbose: int = 0

    def _spec(self) -> ModelSpec:
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
        """Learn the components from X.

        Parameters
        ----------
        X : table (n_samples, n_features)
            Nonnegative data, samples in rows; NaN or masked entries are missing values. In memory,
            X can be an array, nested lists, a pandas or polars data frame, a PyArrow table, a SciPy
            sparse matrix, or a tensor of PyTorch, CuPy or JAX, which is fitted on its device. Data
            larger than memory can be the path of a .npy file, a Zarr array, an h5py dataset, a Dask
            array in chunks of rows, or a function without arguments that yields all blocks of rows
            every time it is called.
        y : ignored
        W : array-like (n_samples, n_components), optional
            Codes to start from, with ``init="custom"``; otherwise ignored with a warning.
        H : array-like (n_components, n_features), optional
            Components to start from, with ``init="custom"``; otherwise ignored with a warning. With
            a convex structure, the matrix (n_components, n_samples) that mixes the samples.
        sample_weight : array-like (n_samples,), optional
            Weight of each sample: 2 is the same as the sample twice, 0 the same as leaving it out.
            It multiplies the robust weights.
        checkpoint : path, optional
            File in which the state of the fit is saved regularly. If the file exists, the fit
            resumes from it and gives the same result as an uninterrupted fit. The file is deleted
            at the end of the fit.
        checkpoint_every : float, default=60.0
            Seconds between two writes of the checkpoint.
        codes_path : path, optional
            A .npy file for the codes; ``fit_transform`` then returns a memory map of it. If X is
            read from a file, the codes are kept in files during the fit as well, and memory holds
            only a few numbers for each sample.

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
        """Learn the components from X and return the codes of X.

        With ``tol > 0``, the codes are equal to ``transform(X)`` up to rounding. If the loss of a
        sample has several minima (orthogonal structure, losses that are not convex), the better
        codes are kept. With ``tol=0``, they are the codes of the last iteration.

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
        path = check_codes_path(codes_path, source, settings.spec.structure, checkpoint)
        source = check_source(settings, source)
        settings, selection = choose_components(settings, source, sample_weight)
        plan = plan_fit(settings, source, W=W, H=H, sample_weight=sample_weight, codes_path=path)
        kept = None
        if checkpoint is not None:
            kept = plan.checkpoint(self.get_params(), checkpoint, checkpoint_every, W, H)
        best = plan.best(plan.run(callback=progress_of(self, plan), checkpoint=kept))
        result = plan.result(best, selection)
        warn_if_not_converged(plan, best.converged, result)
        warn_of_fit(plan, result, best.penalised_energies * plan.unit)
        warn_of_bad_entries(plan, result)
        codes = plan.codes(best, path)
        plan.engine.close()
        set_fitted(self, source, result.attributes(), kept)
        return codes

    def _settings(self) -> FitSettings:
        """Return all parameters after validation."""
        self._validate_params()
        spec = self._spec()
        for part in spec:
            part._validate_params()
        given = {name: getattr(self, name) for name in PARAMETERS if hasattr(self, name)}
        if self.init is None:
            given["init"] = type(self).init  # the default of the class
        return FitSettings(type(self).__name__, spec, **given)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.allow_nan = True
        with suppress(KeyError, TypeError, ValueError):  # invalid parameters: fit raises the error
            tags.input_tags.sparse = unsupported_reason(*self._spec(), "sparse") is None
        tags.array_api_support = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def progress_of(model: Any, plan: FitPlan) -> Callback | None:
    """Return a function to call after every pass, or None without callbacks and ``verbose``."""
    if not (model.verbose or getattr(model, "_skl_callbacks", None)):
        return None
    report = _task_reporter(model, "pass", model.max_iter + 1)

    def after_pass(iteration: int, state: State) -> bool:
        if model.verbose and iteration % max(1, 10 // int(model.verbose)) == 0:
            values = ", ".join(
                f"{member.values[-1] * plan.unit**member.weighting.degree:.6g}"
                + (" (settling)" if member.requested_weighting.has_auto else "")
                for member in state.members
            )
            print(f"{type(model).__name__}: iteration {iteration}, objective {values}")
        return report(lambda: plan.encoder(state.basis[0, ...], state.members[0].weighting))

    return after_pass


def runs_progress_of(model: Any, batches: int) -> Progress:
    """Return a function to call after every batch of the runs of a consensus."""
    report = _task_reporter(model, "batch of runs", batches)

    def after_batch(done: int, best: Callable[[], Encoder]) -> bool:
        if model.verbose:
            print(f"{type(model).__name__}: {done} of {model.n_runs} runs")
        return report(best)

    return after_batch


def _task_reporter(
    model: Any, task_name: str, count: int
) -> Callable[[Callable[[], Encoder]], bool]:
    """Return a function that notifies callbacks of a finished task and returns whether to stop."""
    if not getattr(model, "_skl_callbacks", None):
        return lambda encoder: False
    root = model._init_callback_context(max_subtasks=count)
    root.call_on_fit_task_begin(estimator=model)

    def report(encoder: Callable[[], Encoder]) -> bool:
        task = root.subcontext(task_name=task_name)
        task.call_on_fit_task_begin(estimator=model)
        return task.call_on_fit_task_end(
            estimator=model, reconstruction_attributes=lambda: encoder().attributes()
        )

    return report


def set_fitted(
    model: Any, source: Source, learned: Mapping[str, Any], checkpoint: Checkpoint | None
) -> None:
    """Set all fitted attributes at the end of a fit, so that a failed fit changes nothing."""
    validate_data(model, source.header, skip_check_array=True, reset=True)
    optional = ("mixing_", "rank_selection_", "run_components_", "n_steps_", "n_samples_seen_")
    for name in (*optional, "feature_scale_", "_stream"):
        model.__dict__.pop(name, None)
    model.__dict__.update(learned)
    root = getattr(model, "_callback_fit_ctx", None)
    if root is not None:
        root.call_on_fit_task_end(estimator=model, reconstruction_attributes=dict)
    if checkpoint is not None:
        checkpoint.done()


Class = TypeVar("Class", bound=type)

REGISTRIES: dict[str, Mapping[str, type]] = {
    "loss": LOSSES | FORMER_NAMES,
    "weighting": WEIGHTINGS,
    "structure": STRUCTURES,
}
"""Parameters that can be given by name."""

TEXTS = {
    "parameters": """\
Parameters
----------
<n_components>""",
    "others": """\
<common>

<attributes>""",
    "n_components": """\
n_components : int, "auto" or None, default=None
    Number of components.

    * None: ten, or one third of the number of features for narrow tables, and at most the number
      of samples. scikit-learn's NMF uses the number of features, but outliers would then get
      components of their own.
    * "auto": the recommendation of ``select_rank(X, range(1, 16), stability=True, n_runs=10)`` on
      at most 2,000 samples. This takes as long as a few dozen fits. X must be large enough that
      some of its entries can be hidden.

    With ``init="custom"``, None and "auto" use the number of components of the start.""",
    "common": """\
solver : {"auto", "hals", "cd", "mu-extrapolated", "mu"}, default=<solver>
    Algorithm; the objective never rises with any of them.

    * "auto": the fastest that the loss and the structure allow.
    * "hals": coordinate descent with extrapolation, by far the fastest, for the squared error with
      free structure. "cd" is scikit-learn's name for it.
    * "mu-extrapolated": multiplicative updates with extrapolation, for the other losses.
    * "mu": multiplicative updates, as in the paper.
init : {"robust", "nndsvda", "nndsvdar", "nndsvd", "random", "custom"} or None, default=<init>
    Start of the fit. None is "nndsvda" for plain NMF (``weighting="uniform"``), and "robust" for
    other weightings; the classes of the paper's methods use "random".

    * "robust": as "nndsvda", from a robust SVD in which huge and outlying rows have little weight.
    * "nndsvda": from a truncated SVD, with zeros replaced by a small constant.
    * "nndsvdar": the same, with zeros replaced by small random numbers.
    * "nndsvd": the same with zeros, which "mu" can never change.
    * "random": uniform positive factors whose product has the mean of X.
    * "custom": W and H as passed to ``fit``; "mu" never changes zeros in them.

    "robust" and "nndsvda" use a few thousand samples of a large X.
    X has at most min(n_samples, n_features) singular vectors; further components start at random
    ("nndsvd" raises an error).
n_init : int, default=1
    Number of starts, fitted as one batch; the fit with the best objective is kept. Use it with
    ``init="random"``: most other starts are always the same.
max_iter : int, default=<max_iter>
    Maximum number of iterations.
tol : float, default=1e-4
    The fit stops if the relative decrease of the objective is at most ``tol``, on average over
    the last ten iterations, and then computes the best codes for its components. With 0, exactly
    ``max_iter`` iterations of the algorithm are run.
random_state : int, RandomState or None, default=None
    Seed of the start.
verbose : int, default=0
    Print the objective every ``10 / verbose`` iterations.""",
    "attributes": """\
Attributes
----------
outliers_ : ndarray of bool (n_samples,)
    Samples that were left out: their reconstruction error is above the cutoffs of trimmed weights
    or, for other weightings, their weight is below a tenth of the mean weight. An
    :class:`~robustnmf.exceptions.OutlierWarning` is issued if more than a fifth of the samples
    are outliers, if the outliers are similar to each other, or if leaving them out hardly improves
    the prediction of the other samples.
components_ : ndarray (n_components, n_features)
    The learned components.
n_components_ : int
    Number of components.
energies_ : ndarray (n_samples,), float64
    Reconstruction error of each sample: the loss between the sample and its approximation.
sample_importances_ : ndarray (n_samples,)
    Weight of each sample in the fit, normalised to sum to one; zero for rows of zeros. For fuzzy
    weights, these are the paper's Q; the losses of the samples are multiplied by ``Q**p``.
effective_sample_size_ : float
    ``sum(w)**2 / sum(w**2)`` for the weights w by which the losses of the samples are multiplied:
    ``1 / sum(sample_importances_**2)``, except for fuzzy weights, which are ``Q**p``. A sample
    with ``sample_weight`` m is equivalent to m equal samples. A
    :class:`~robustnmf.exceptions.WeightCollapseWarning` is issued if it is below the number of
    components.
codes_overlap_ : float
    Mean cosine between different columns of the codes: 0 if they are orthogonal, so that each
    sample uses one component, and 1 if they are equal.
objective_history_ : ndarray
    Objective at the start and after every iteration, and with ``tol > 0`` for the final codes.
    Automatic parameters change the objective, so the history begins when they are fixed.
reconstruction_err_ : float
    Frobenius norm of the residual, all samples with equal weight; for other losses the square
    root of twice their sum.
n_iter_ : int
    Number of iterations.
weighting_ : Weighting
    The weighting with its automatic parameters as estimated from X.
rank_selection_ : RankSelection
    Comparison of numbers of components, with ``n_components="auto"``.
mixing_ : ndarray (n_components, n_samples)
    With a convex structure, ``components_ = mixing_ @ X`` (with sample weights,
    ``(mixing_ * sample_weight) @ X``; missing values of X are replaced by estimates).
n_features_in_, feature_names_in_
    Number and names of the features seen in ``fit``.""",
}


def documented(cls: Class) -> Class:
    """Fill placeholders in the docstring of an estimator: shared texts, values, defaults."""
    text = inspect.cleandoc(cls.__doc__ or "")
    for name, replacement in TEXTS.items():
        text = text.replace(f"<{name}>", replacement)
    for name, registry in REGISTRIES.items():
        values = [
            f'    * "{value}": {str(kind.__doc__).splitlines()[0]}'
            for value, kind in registry.items()
            if value not in FORMER_NAMES
        ]
        text = text.replace(f"    <{name}>", "\n".join(["", *values]))
    for name in ("solver", "init", "max_iter"):
        text = text.replace(f"<{name}>", repr(getattr(cls, name)).replace("'", '"'))
    cls.__doc__ = text
    return cls
