"""ConsensusNMF: stable components from many runs with random starts."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, clone
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from robustnmf.arrays import on_device_of, to_numpy
from robustnmf.estimators.base import (
    BaseRobustNMF,
    CallbackSupportMixin,
    runs_progress_of,
    set_fitted,
    with_callbacks,
)
from robustnmf.estimators.encoding import EncodingMixin
from robustnmf.estimators.robust import RobustNMF
from robustnmf.estimators.saving import SaveMixin
from robustnmf.fitting import Seed, check_source, choose_components, plan_fit
from robustnmf.fitting.consensus import encode_medians, find_consensus, screened_once
from robustnmf.fitting.runs import most_members
from robustnmf.fitting.warnings import warn_of_fit, warn_of_stopped_runs
from robustnmf.loop.compatibility import ModelSpec
from robustnmf.sources import source_for

FOUND = ("stability_", "silhouette_", "spread_", "labels_", "objectives_", "n_runs_kept_",
         "run_components_")  # fmt: skip
"""Attributes that the inner estimator does not have."""


@dataclass(repr=False, eq=False)
class ConsensusNMF(
    SaveMixin, CallbackSupportMixin, EncodingMixin, ClassNamePrefixFeaturesOutMixin, BaseEstimator
):
    r"""Stable components from many runs with random starts.

    NMF can find different components from different starts. ConsensusNMF fits ``n_runs`` random
    starts and groups their components, one of each run in each of the k groups. Its components are
    the medians of the groups, and the codes are the best codes for them. Use it to find out which
    components are stable: a component that only some starts find has a low ``stability_``.

    Components are compared at unit length, and components without near neighbours are left out. One
    robust fit gives the weights of the samples for all runs, so that outliers do not affect the
    runs in different ways.

    Parameters
    ----------
    estimator : RobustNMF or another factorisation of this library, optional
        Estimator of each run; :class:`RobustNMF` by default. Its ``init``, ``n_init`` and
        ``random_state`` are not used; ``n_components="auto"`` is resolved once for all runs.
    n_runs : int, default=100
        Number of random starts.
    resample : {"rows", "poisson"} or None, default=None
        Data of each run: X itself (None), samples of X drawn with replacement ("rows"), or counts
        drawn from Poisson distributions with the counts in X as means ("poisson").
    n_resamples : int, default=10
        Number of different resamples; the runs are split evenly among them.
    density_threshold : float, default=0.5
        A component is left out if its mean distance to its neighbours is larger; 2 keeps all. If
        all components of a group would be left out, they are kept.
    neighborhood : float in (0, 1], default=0.3
        Number of these neighbours, as a share of the runs.
    keep_runs : bool, default=False
        Keep the components of all runs in ``run_components_``, for consensus matrices and plots.
    random_state : int, RandomState or None, default=None
        Seed of starts and resamples.
    verbose : int, default=0
        Print the number of finished runs after every batch.

    Attributes
    ----------
    components_ : ndarray (n_components, n_features)
        The consensus components: medians of the groups.
    n_components_ : int
        Number of components.
    stability_ : ndarray (n_components,)
        Mean cosine between a component and the members of its group: 1 if all runs agree.
    silhouette_ : ndarray (n_components,)
        Mean silhouette of each group with cosine distances: 1 if it is far from other groups, 0 or
        less if the groups overlap.
    spread_ : ndarray (n_components, n_features)
        Standard deviation of every entry of ``components_`` over the runs (from quartiles).
    labels_ : ndarray of int (n_runs, n_components)
        Index of the component that each component of a run belongs to; -1 if it was left out.
    n_runs_kept_ : int
        Number of runs that are used: runs with an objective far above the median are left out.
    objectives_ : ndarray (n_runs,)
        Objective of every run, with the same weights of samples in all runs.
    run_components_ : ndarray (n_runs, n_components, n_features)
        Components of every run, with ``keep_runs=True``.
    estimator_ : estimator
        A fitted clone of ``estimator`` with the consensus components.
    outliers_, energies_, sample_importances_, effective_sample_size_, reconstruction_err_
        As in :class:`RobustNMF`, for the consensus components.
    weighting_, objective_history_, codes_overlap_, rank_selection_
        The same.
    n_iter_ : int
        Median number of iterations of a run.
    n_features_in_, feature_names_in_
        Number and names of the features seen in ``fit``.

    References
    ----------
    D. Kotliar et al., "Identifying gene expression programs of cell-type identity and cellular
    activity with single-cell RNA-Seq", eLife 8 (2019).

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import ConsensusNMF, RobustNMF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(0.3, size=(80, 3)) @ rng.gamma(0.3, size=(3, 12))
    >>> X += 0.01 * rng.random(X.shape)
    >>> model = ConsensusNMF(RobustNMF(3), n_runs=20, random_state=0).fit(X)
    >>> model.stability_.round(1)
    array([1., 1., 1.])
    >>> model.transform(X).shape
    (80, 3)
    """

    _parameter_constraints: ClassVar[dict[str, list]] = {
        "estimator": [BaseRobustNMF, None],
        "n_runs": [Interval(Integral, 1, None, closed="left")],
        "resample": [StrOptions({"rows", "poisson"}), None],
        "n_resamples": [Interval(Integral, 1, None, closed="left")],
        "density_threshold": [Interval(Real, 0, None, closed="neither")],
        "neighborhood": [Interval(Real, 0, 1, closed="right")],
        "keep_runs": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    estimator: BaseRobustNMF | None = None
    _: KW_ONLY
    n_runs: int = 100
    resample: str | None = None
    n_resamples: int = 10
    density_threshold: float = 0.5
    neighborhood: float = 0.3
    keep_runs: bool = False
    random_state: Seed = None
    verbose: int = 0

    def fit(
        self, X: Any, y: Any = None, *, sample_weight: Any = None, checkpoint: Any = None
    ) -> Self:
        """Learn the consensus components from X.

        Parameters
        ----------
        X : array-like or sparse matrix (n_samples, n_features)
            Nonnegative data, samples in rows; NaN is a missing value.
        y : ignored
        sample_weight : array-like (n_samples,), optional
            Weight of each sample, as in :class:`RobustNMF`.
        checkpoint : path, optional
            File in which finished runs are saved after every batch. If it exists, only the other
            runs are fitted, with the same result. It is deleted at the end of the fit.

        Returns
        -------
        self : the fitted estimator
        """
        self.fit_transform(X, y, sample_weight=sample_weight, checkpoint=checkpoint)
        return self

    @with_callbacks
    def fit_transform(
        self, X: Any, y: Any = None, *, sample_weight: Any = None, checkpoint: Any = None
    ) -> np.ndarray:
        """Learn the consensus components from X and return the codes of X.

        Parameters
        ----------
        X, y, sample_weight, checkpoint
            As in ``fit``.

        Returns
        -------
        codes : ndarray (n_samples, n_components)
        """
        self._validate_params()
        inner = replace(self._chosen._settings(), name=type(self).__name__)
        settings = screened_once(inner)
        source = check_source(settings, source_for(X, settings.name))
        most = most_members(settings, self.n_runs, source)
        settings, selection = choose_components(settings, source, sample_weight)
        plan = plan_fit(settings, source, sample_weight=sample_weight, weightings=most)
        kept = None
        if checkpoint is not None:
            kept = plan.checkpoint(self.get_params(), checkpoint, 0.0)
            kept.identity["units of X"] = plan.engine.scale  # of the components in the file
        runs, settled, groups = find_consensus(
            plan, most, n_runs=self.n_runs, random_state=self.random_state,
            resample=self.resample, n_resamples=self.n_resamples,
            density_threshold=self.density_threshold, neighborhood=self.neighborhood,
            checkpoint=kept, report=partial(runs_progress_of, self),
        )  # fmt: skip
        encoded, member = encode_medians(plan, groups.medians, settled)
        n_iter = int(np.median(runs.n_iter))
        result = replace(encoded.result(member, selection), n_iter=n_iter)
        warn_of_stopped_runs(plan, runs)
        warn_of_fit(plan, result, result.energies)
        codes = encoded.codes(member)
        of_runs: dict[str, Any] = {
            "stability_": groups.stability, "silhouette_": groups.silhouette,
            "spread_": groups.spread, "labels_": groups.labels,
            "objectives_": runs.objectives,
        }  # fmt: skip
        if self.keep_runs:
            of_runs["run_components_"] = runs.components
        of_runs = {name: on_device_of(plan.engine.like, array) for name, array in of_runs.items()}
        of_runs["n_runs_kept_"] = int((groups.labels >= 0).any(axis=1).sum())
        plan.engine.close()
        set_fitted(self, source, result.attributes() | of_runs, kept)
        return codes

    def consensus_matrix(self, X: Any) -> np.ndarray:
        """Compute the share of runs in which two samples have the same dominant component.

        Needs ``keep_runs=True``. If all values are near 0 or 1, the runs group the samples in the
        same way; ``robustnmf.metrics.cophenetic_correlation`` and ``dispersion`` measure this.

        Parameters
        ----------
        X : array-like or sparse matrix (n_samples, n_features)

        Returns
        -------
        shares : ndarray (n_samples, n_samples)
        """
        check_is_fitted(self)
        if not hasattr(self, "run_components_"):
            raise ValueError("consensus_matrix needs the runs. Fit with keep_runs=True.")
        model, dominant = self.estimator_.set_output(transform="default"), []
        for components in self.run_components_:
            norms = (components**2).sum(axis=1) ** 0.5
            model.components_ = components
            dominant.append(to_numpy(model.transform(X) * norms).argmax(axis=1))
        return np.mean([labels[:, None] == labels for labels in dominant], axis=0)

    @property
    def _chosen(self) -> BaseRobustNMF:
        """The estimator of each run, by default ``RobustNMF()``."""
        return RobustNMF() if self.estimator is None else self.estimator

    @property
    def estimator_(self) -> BaseRobustNMF:
        """A fitted clone of the estimator with the consensus components."""
        check_is_fitted(self)
        model = clone(self._chosen)
        own = {*self.get_params(deep=False), *FOUND}
        model.__dict__.update({n: value for n, value in vars(self).items()
                               if n not in own and not n.startswith("_skl")})  # fmt: skip
        return model

    def _spec(self) -> ModelSpec:
        return self._chosen._spec()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = self._chosen.__sklearn_tags__()
        tags.input_tags = inner.input_tags
        tags.array_api_support = True
        tags.transformer_tags = inner.transformer_tags
        return tags
