"""Methods of fitted estimators that encode new data with the learned components."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils._set_output import ADAPTERS_MANAGER, _get_output_config
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from robustnmf.arrays import eps, host_dtype, namespace, on_device_of, to_numpy
from robustnmf.engine import Engine
from robustnmf.fitting import RankSelection, check_weights
from robustnmf.loop.compatibility import ModelSpec
from robustnmf.loop.encoding import encode, encoded_start, entry_weights, objective
from robustnmf.loop.problem import Problem
from robustnmf.loop.state import Start
from robustnmf.losses import Loss
from robustnmf.screening import Neighbourhood, find_neighbourhood
from robustnmf.sources import Source, StoredSource, in_memory_engine, source_for
from robustnmf.structures import Free
from robustnmf.weightings import Weighting
from robustnmf.weightings._base import LOST
from robustnmf.weightings.trimmed import FEWEST_SAMPLES

try:
    from sklearn.utils._array_api import check_same_namespace
except ImportError:  # scikit-learn has it since version 1.9

    def check_same_namespace(X: Any, estimator: Any, *, attribute: str, method: str) -> None:
        """Do nothing: this scikit-learn does not dispatch."""


MAX_HIDDEN = 3
"""Maximum number of features of an outlier that are hidden to find the reason."""


def _weighs_entries(model: Any) -> bool:
    """Return True if the model gives weights to entries; else raise an error with alternatives."""
    loss, weighting, _ = model._spec()
    if loss.weighs_entries or weighting.per_entry:
        return True
    raise AttributeError(
        f"entries have no weights with {loss!r} and {weighting!r}. Use loss='truncated', which "
        "ignores entries with a large residual, or loss='huber'."
    )


class EncodingMixin(TransformerMixin):
    """Codes, reconstruction errors and explanations of new data.

    It is a subclass of ``TransformerMixin`` because scikit-learn wraps ``transform`` for
    ``set_output`` in the class that defines it.
    """

    # Fitted attributes, in the array library of X.
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
    _problem: Problem
    _scale: float

    @property
    def n_components_(self) -> int:
        """Number of components that were learned."""
        return self.components_.shape[0]

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "components_")

    def transform(self, X: Any) -> np.ndarray:
        """Compute the best codes of X for the learned components, independently for each sample.

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
        """Compute the approximation of the data from codes.

        Parameters
        ----------
        X : array-like (n_samples, n_components)
            Codes, also as the path of a .npy file.

        Returns
        -------
        approximation : ndarray (n_samples, n_features)
        """
        check_is_fitted(self)
        k, features = self.components_.shape

        def approximation(source: Source) -> np.ndarray:
            codes = source.floats()
            if isinstance(source, StoredSource):
                codes = np.concatenate([*source.reader.blocks()])
            if codes.shape[1] != k:
                raise ValueError(
                    f"X has {codes.shape[1]} columns, but codes of this {type(self).__name__} have "
                    f"{k}, one for each component. Pass the result of transform."
                )
            return codes @ source.like(self.components_)

        source = source_for(X, type(self).__name__)
        return source.run(self, "inverse_transform", approximation, (features,))

    def score_samples(self, X: Any) -> np.ndarray:
        """Compute the negative reconstruction error of every sample.

        Parameters
        ----------
        X : array-like or sparse matrix (n_samples, n_features)

        Returns
        -------
        scores : ndarray (n_samples,)
            High for samples that the components describe well, low for outliers.
        """
        source = self._checked(X)
        return source.run(self, "score_samples", lambda rows: -self._encode(rows)[1], ())

    def explain(self, X: Any) -> Any:
        """Compute the contribution of every feature to the reconstruction error of every sample.

        The features with the largest contributions are the reasons why a sample is an outlier. A
        contribution is positive if the sample has more than its approximation and negative if it
        has less; the absolute values of a row sum to its reconstruction error. If an outlier would
        be normal without one to three of its features, its approximation is computed from the other
        features, because wrong entries would distort it.

        Parameters
        ----------
        X : array-like or sparse matrix (n_samples, n_features)

        Returns
        -------
        contributions : ndarray or data frame (n_samples, n_features)
            NaN for missing values of X; the other values of the row are scaled up. After
            ``set_output(transform="pandas")`` (or "polars"), a data frame with the names of the
            features.

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
        contributions = source.like(explain_rows(self, source.dense_rows()))
        return as_frame_if_configured(self, contributions, X)

    @available_if(_weighs_entries)
    def entry_weights(self, X: Any) -> np.ndarray:
        """Compute the weight of every entry of X: 1 if it is used, 0 if it is ignored.

        ``inverse_transform(transform(X))`` replaces ignored entries. Only available if entries have
        weights (``loss="truncated"``, ``loss="huber"`` or ``weighting="huber"``).

        Parameters
        ----------
        X : array-like (n_samples, n_features)

        Returns
        -------
        weights : ndarray (n_samples, n_features)
            NaN for missing values of X.

        Examples
        --------
        >>> import numpy as np
        >>> from robustnmf import RobustNMF
        >>> rng = np.random.default_rng(0)
        >>> X = rng.random((80, 2)) @ rng.random((2, 12)) + 0.01 * rng.random((80, 12))
        >>> X[3, 5] = 40.0  # a typing error
        >>> model = RobustNMF(2, loss="truncated", random_state=0).fit(X)
        >>> np.argwhere(model.entry_weights(X) < 0.1)
        array([[3, 5]])
        """

        def weights(rows: Source) -> np.ndarray:
            return self._call(entry_weights, rows, self._engine(rows))

        source = self._checked(X, "entry_weights")
        return source.run(self, "entry_weights", weights, (self.components_.shape[1],))

    @property
    def loss_(self) -> Loss:
        """The loss of the fit, with cutoffs as estimated from X, in the units of X."""
        check_is_fitted(self)
        return self._problem.loss.rescaled(self._scale)

    def score(self, X: Any, y: Any = None) -> float:
        """Compute the mean of ``score_samples``, for model selection.

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
        """Compute the objective of X for the learned components and weighting, with the best codes.

        For the data of the fit and ``tol > 0``, this is the last entry of ``objective_history_`` if
        ``transform`` returns the codes of the fit.

        Parameters
        ----------
        X : array-like or sparse matrix (n_samples, n_features)
        sample_weight : array-like (n_samples,), optional
            Weight of each sample, as in ``fit``.

        Returns
        -------
        objective : float
        """
        source = self._checked(X)
        weights = check_weights(sample_weight, source.shape[0])
        value = self._call(objective, source, self._engine(source, weights))
        return value * self._unit**self.weighting_.degree

    def _call(self, function: Callable[..., Any], source: Source, engine: Engine) -> Any:
        """Call a function of the loop with this model in the units of the engine."""
        basis = source.like(self.components_) / self._scale
        return function(engine, self._problem, self._scaled_weighting, basis)

    def _encode(self, source: Source) -> tuple[np.ndarray, np.ndarray]:
        """Return codes (samples, k) and energies (samples,) of checked X, in the user's units."""
        codes, energies = self._call(encode, source, self._engine(source))
        return namespace(codes).astype(codes, source.dtype, copy=False), energies * self._unit

    def _measure(self, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, Engine]:
        """Return codes, energies and sizes of samples in the user's units, and the engine."""
        source = self._checked(X)
        engine = self._engine(source)
        codes, energies = self._call(encode, source, engine)
        sizes = engine.row_sizes(self._problem.loss.degree)
        return codes, energies * self._unit, sizes * self._unit, engine

    def _start(self, engine: Engine) -> Start:
        """Return the best codes of the rows of an engine, and the components, as a start."""
        basis = on_device_of(engine.like, self.components_) / self._scale
        return encoded_start(engine, self._problem, basis[None, ...])

    def _neighbourhood(self, X: Any, sample_weight: Any) -> Neighbourhood | None:
        """Draw reference samples for the comparison of others; None if there are too few."""
        source = self._checked(X)
        engine = self._engine(source, check_weights(sample_weight, source.shape[0]))
        if engine.sample_count < FEWEST_SAMPLES or engine.mean() == 0:
            return None
        with engine.thread_pool():
            return find_neighbourhood(engine, self._problem.fill_value())

    @property
    def _unit(self) -> float:
        """Factor from energies in the units of the engine to the user's units."""
        return self._scale**self._problem.loss.degree

    @property
    def _scaled_weighting(self) -> Weighting:
        """The learned weighting in the units of the engine."""
        return self.weighting_.rescaled(1.0 / self._unit)

    def _checked(self, X: Any, method: str | None = None) -> Source:
        """Return the source of new data, in the precision of the fit; X can be a source already.

        A method that returns arrays needs X in the library of the fit if scikit-learn dispatches.
        """
        check_is_fitted(self)
        source = X if isinstance(X, Source) else source_for(X, type(self).__name__)
        if method is not None and source.in_memory:
            check_same_namespace(X, self, attribute="components_", method=method)
        spec = ModelSpec(self._problem.loss, self.weighting_, Free())  # structures matter in fits
        return source.checked(spec, model=self, dtype=host_dtype(self.components_))

    def _engine(self, source: Source, sample_weight: np.ndarray | None = None) -> Engine:
        return source.engine(
            self._problem, self.weighting_, self.components_.shape[0],
            scale=self._scale, sample_weight=sample_weight,
        )  # fmt: skip


def find_outliers(model: EncodingMixin, energies: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Find outliers by the rule of the fit, from the energies and sizes (n,) of samples."""
    weighting = model.weighting_
    if weighting.uses_row_sizes:
        ones = np.ones_like(energies)
        return np.asarray(weighting.outliers(energies, ones, ones, sizes))
    if not hasattr(model, "energies_"):  # partial_fit keeps no energies to compare with
        return np.zeros(len(energies), dtype=bool)
    fitted = to_numpy(model.energies_)
    if weighting.per_entry:  # the energy of a sample does not determine the weights of its entries
        inside = fitted[~to_numpy(model.outliers_)]
        return energies > (inside.max() if len(inside) else np.inf)
    # Compare with the weights of the fit, as all new samples can be outliers.
    weights = weighting.weights(np.concatenate([fitted, energies]))
    has_weight = to_numpy(model.sample_importances_) > 0  # blank samples have none
    return weights[len(fitted) :] < LOST * weights[: len(fitted)][has_weight].mean()


def as_frame_if_configured(model: Any, table: Any, X: Any) -> Any:
    """Return a table (samples, features) as ``set_output`` or the configuration asks for it."""
    library = _get_output_config("transform", model)["dense"]
    if library == "default":
        return table
    adapter = ADAPTERS_MANAGER.adapters[library]
    return adapter.create_container(to_numpy(table), X, columns=_check_feature_names_in(model))


def explain_rows(model: EncodingMixin, rows: np.ndarray) -> np.ndarray:
    """Split the energies of rows (n, m) among their features (n, m), signed; NaN if missing.

    A bad entry of a feature that dominates the components determines the codes, so that the
    residuals of all other features are large. Features of an outlier are therefore hidden, one
    after the other, until it is not an outlier any more, and the energy is split by the residuals
    with the codes from the other features. If `MAX_HIDDEN` features are not enough, the codes from
    all features are used.
    """
    loss, basis = model._problem.loss, to_numpy(model.components_) / model._scale
    known = ~np.isnan(rows)
    codes, energies, is_outlier = _codes_and_outliers(model, rows, basis)
    hidden = rows.copy()
    remaining = np.flatnonzero(is_outlier)
    trial = codes[remaining]
    explained = np.zeros(len(rows), dtype=bool)
    for _ in range(MAX_HIDDEN):
        # The remaining features must more than determine the codes.
        has_spare = (~np.isnan(hidden[remaining])).sum(axis=1) > len(basis) + 1
        remaining, trial = remaining[has_spare], trial[has_spare]
        if not len(remaining):
            break
        for i, row_codes in zip(remaining, trial, strict=True):
            hidden[i, _most_influential(loss, hidden[i] / model._scale, row_codes, basis)] = np.nan
        trial, _, is_outlier = _codes_and_outliers(model, hidden[remaining], basis)
        codes[remaining[~is_outlier]] = trial[~is_outlier]
        explained[remaining[~is_outlier]] = True
        remaining, trial = remaining[is_outlier], trial[is_outlier]
    data = rows / model._scale
    approximation = codes.astype(data.dtype) @ basis
    entries = loss.entries(np.where(known, data, approximation), approximation).astype(np.float64)
    # Known entries are scaled up to account for missing ones, as in energies.
    factors = model._unit * data.shape[1] / np.maximum(known.sum(axis=1), 1)
    totals = np.where(known, entries, 0.0).sum(axis=1)
    factors = np.where(
        explained & (totals > 0), energies / np.where(totals > 0, totals, 1), factors
    )
    signed = np.sign(data - approximation) * entries * factors[:, None]
    return np.where(known, signed, np.nan)


def _codes_and_outliers(
    model: EncodingMixin, rows: np.ndarray, basis: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return codes (n, k), energies (n,) in the user's units, and whether rows are outliers."""
    engine = in_memory_engine(
        rows, model._problem, model.weighting_, len(basis), scale=model._scale
    )
    codes, energies = encode(engine, model._problem, model._scaled_weighting, basis)
    energies = to_numpy(energies) * model._unit
    if not (model.weighting_.uses_row_sizes or hasattr(model, "energies_")):
        return codes, energies, np.zeros(len(rows), dtype=bool)  # fitted by minibatches
    sizes = to_numpy(engine.row_sizes(model._problem.loss.degree)) * model._unit
    return codes, energies, find_outliers(model, energies, sizes)


def _most_influential(loss: Loss, row: np.ndarray, codes: np.ndarray, basis: np.ndarray) -> int:
    """Return the feature whose removal lowers the energy of a row (m,) most.

    Removing a feature of leverage h lowers the energy by its loss over 1 - h. This is exact for the
    squared error if the same codes stay positive.
    """
    approximation = codes @ basis
    known = ~np.isnan(row)
    row = np.where(known, row, approximation)
    active = basis[codes > 0].astype(np.float64)
    curvatures = np.where(known, loss.curvature(row, approximation), 0.0)
    gram = (active * curvatures) @ active.T
    leverages = curvatures * (active * (np.linalg.pinv(gram, hermitian=True) @ active)).sum(axis=0)
    rest = np.maximum(1.0 - leverages, eps(row) ** 0.5)
    return int(np.where(known, loss.entries(row, approximation) / rest, -1.0).argmax())
