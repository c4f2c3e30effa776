"""Plots of fitted estimators, in the style of scikit-learn's displays.

Each display is created from a fitted estimator (or a :class:`RobustNMFDetector`), stores its data,
and can be plotted again with ``display.plot(ax=...)``. Matplotlib is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
import scipy.sparse
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils.validation import _num_samples, check_is_fitted

from robustnmf.arrays import to_numpy
from robustnmf.files.page import mosaic
from robustnmf.metrics import cophenetic_correlation, dispersion

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from robustnmf.estimators import ConsensusNMF, RobustNMFDetector
    from robustnmf.estimators.base import BaseRobustNMF

    Estimator: TypeAlias = BaseRobustNMF | RobustNMFDetector

GOOD, BAD = "#1c6dd0", "#d6336c"
MAX_NAMES, MAX_NAME_LENGTH = 40, 30
"""Maximum number of features with names below the bars, and maximum length of a name."""

NAME_HEIGHT = 0.07
"""Height of a character of a rotated name, in inches."""

ENTRY_COLUMNS = 8
"""Maximum number of images side by side in a display of the weights of entries."""

__all__ = [
    "BasisDisplay", "ClustergramDisplay", "ConsensusMatrixDisplay", "EntryWeightsDisplay",
    "ExplanationDisplay", "ImportancesDisplay", "ObjectiveDisplay", "plot_basis",
    "plot_entry_weights", "plot_explanation", "plot_importances", "plot_objective",
]  # fmt: skip


@dataclass(kw_only=True, eq=False, repr=False)
class ImportancesDisplay:
    """Plot of the importances of all samples in decreasing order.

    Parameters
    ----------
    importances : ndarray (n_samples,)
        Weights of the samples, normalised to sum to one.
    effective_sample_size : float
    """

    importances: np.ndarray
    effective_sample_size: float

    @classmethod
    def from_estimator(cls, estimator: Estimator, *, ax: Axes | None = None) -> ImportancesDisplay:
        """Draw the display of a fitted estimator."""
        model = factorisation_of(estimator)
        display = cls(
            importances=model.sample_importances_,
            effective_sample_size=model.effective_sample_size_,
        )
        return display.plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> ImportancesDisplay:
        """Draw on these axes, or on new ones."""
        self.ax_, self.figure_ = axes_or_new(ax, type(self))
        ordered = np.sort(np.asarray(self.importances))[::-1] * len(self.importances)
        (self.line_,) = self.ax_.plot(np.arange(1, len(ordered) + 1), ordered, color=GOOD)
        self.ax_.axvline(self.effective_sample_size, color=BAD, ls="--", lw=1)
        self.ax_.annotate(
            f"effective sample size {self.effective_sample_size:.0f}",
            (self.effective_sample_size, 0.02), xycoords=("data", "axes fraction"),
            xytext=(-4, 0), textcoords="offset points", ha="right", fontsize=8, color=BAD,
        )  # fmt: skip
        self.ax_.set(
            xlabel="samples in order of importance",
            ylabel="importance (relative to the mean)",
            ylim=(0, None),
        )
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class BasisDisplay:
    """Plot of the components as images or as bars over the features.

    Parameters
    ----------
    components : ndarray (n_components, n_features)
    image_shape : (height, width), optional
    feature_names : sequence of str, optional
    order : {"C", "F"}, default="C"
        Order of the pixels: row by row ("C") or column by column ("F").
    """

    components: np.ndarray
    image_shape: tuple[int, int] | None = None
    feature_names: Sequence[str] | None = None
    order: Literal["C", "F"] = "C"

    def __post_init__(self) -> None:
        self.components = np.asarray(self.components)
        check_features(self.components.shape[1], self.image_shape, self.feature_names)

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        *,
        image_shape: tuple[int, int] | None = None,
        feature_names: Sequence[str] | None = None,
        order: Literal["C", "F"] = "C",
        figure: Figure | None = None,
    ) -> BasisDisplay:
        """Draw the display of a fitted estimator."""
        model = factorisation_of(estimator)
        names = feature_names_of(estimator, feature_names)
        display = cls(
            components=model.components_, image_shape=image_shape, feature_names=names, order=order
        )
        return display.plot(figure=figure)

    def plot(self, *, figure: Figure | None = None) -> BasisDisplay:
        """Draw a panel for each component on this figure, or on a new one."""
        check_matplotlib_support(type(self).__name__)
        import matplotlib.pyplot as plt

        count, features = self.components.shape
        has_images = self.image_shape is not None
        columns = min(count, int(np.ceil(np.sqrt(count * (1.5 if has_images else 0.5)))))
        rows = -(-count // columns)
        width, height = (1.6, 1.7 * rows) if has_images else (5.0, 1.5 * rows + 0.4)
        names = [] if has_images or self.feature_names is None else self.feature_names
        names = [] if len(names) > MAX_NAMES else [label(name) for name in names]
        # Names are below the last panel of every column, in one row or two.
        height += NAME_HEIGHT * max(map(len, names), default=0) * (1 + (count % columns > 0))
        if figure is None:
            figure = plt.figure(figsize=(width * columns, height), layout="constrained")
        self.figure_ = figure
        self.axes_ = self.figure_.subplots(rows, columns, squeeze=False).ravel()
        for ax in self.axes_[count:]:
            ax.set_axis_off()
        for i, (ax, component) in enumerate(zip(self.axes_, self.components, strict=False)):
            if has_images:
                ax.imshow(component.reshape(self.image_shape, order=self.order), cmap="gray_r")
                ax.set_axis_off()
            else:
                ax.bar(np.arange(features), component, color=GOOD)
                ax.margins(x=0.01)
                ax.tick_params(labelsize=7)
                if names:
                    is_last = i >= count - columns
                    labels = names if is_last else [""] * features
                    ax.set_xticks(np.arange(features), labels, rotation=90)
            ax.set_title(f"component {i + 1}", fontsize=8)
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class ObjectiveDisplay:
    """Plot of the objective after every iteration.

    Parameters
    ----------
    history : ndarray (n_iterations,)
    """

    history: np.ndarray

    @classmethod
    def from_estimator(cls, estimator: Estimator, *, ax: Axes | None = None) -> ObjectiveDisplay:
        """Draw the display of a fitted estimator."""
        return cls(history=factorisation_of(estimator).objective_history_).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> ObjectiveDisplay:
        """Draw on these axes, or on new ones."""
        self.ax_, self.figure_ = axes_or_new(ax, type(self))
        (self.line_,) = self.ax_.plot(self.history, color=GOOD)
        if len(self.history) and np.min(self.history) > 0:
            self.ax_.set_yscale("log")
        self.ax_.set(xlabel="iteration (after automatic parameters are fixed)", ylabel="objective")
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class ExplanationDisplay:
    """Plot of the contribution of each feature to the reconstruction error of a sample.

    It shows which features make a sample an outlier.

    Parameters
    ----------
    contributions : ndarray (n_features,)
        Positive if the sample has more than its approximation; see :meth:`RobustNMF.explain`.
    feature_names : sequence of str, optional
    image_shape : (height, width), optional
    order : {"C", "F"}, default="C"
    """

    contributions: np.ndarray
    feature_names: Sequence[str] | None = None
    image_shape: tuple[int, int] | None = None
    order: Literal["C", "F"] = "C"

    def __post_init__(self) -> None:
        self.contributions = np.asarray(self.contributions)
        check_features(len(self.contributions), self.image_shape, self.feature_names)

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: Any,
        sample: int,
        *,
        feature_names: Sequence[str] | None = None,
        image_shape: tuple[int, int] | None = None,
        order: Literal["C", "F"] = "C",
        ax: Axes | None = None,
    ) -> ExplanationDisplay:
        """Draw the display of the sample with this index in X (n_samples, n_features)."""
        check_is_fitted(estimator)
        names = feature_names_of(estimator, feature_names)
        count = _num_samples(X)
        if not -count <= sample < count:
            raise ValueError(f"sample={sample}, but X has {count} samples, 0 to {count - 1}.")
        X = X.tocsr() if scipy.sparse.issparse(X) else X
        index = range(count)[sample]
        row = X.iloc[[index]] if hasattr(X, "iloc") else X[index : index + 1]
        contributions = np.asarray(estimator.explain(row))[0]
        display = cls(
            contributions=contributions, feature_names=names, image_shape=image_shape, order=order
        )
        return display.plot(ax=ax)

    def plot(self, *, ax: Axes | None = None, most: int = 15) -> ExplanationDisplay:
        """Draw an image, or bars of the largest contributions, on these axes or new ones."""
        self.ax_, self.figure_ = axes_or_new(ax, type(self))
        if self.image_shape is not None:
            image = self.contributions.reshape(self.image_shape, order=self.order)
            limit = float(np.nanmax(np.abs(image))) or 1.0
            self.ax_.imshow(image, cmap="RdBu_r", vmin=-limit, vmax=limit)
            self.ax_.set_axis_off()
            return self
        sizes = np.nan_to_num(np.abs(self.contributions))
        largest = np.argsort(sizes, kind="stable")[::-1][:most][::-1]
        values = self.contributions[largest]
        self.ax_.barh(np.arange(len(largest)), values, color=np.where(values > 0, BAD, GOOD))
        names = [label(i if self.feature_names is None else self.feature_names[i]) for i in largest]
        self.ax_.set_yticks(np.arange(len(largest)))
        self.ax_.set_yticklabels(names, fontsize=8)
        self.ax_.axvline(0, color="0.4", lw=0.8)
        self.ax_.set_xlabel("contribution to the error (positive: more than expected)")
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class EntryWeightsDisplay:
    """Plot of the weights of the entries of samples; ignored entries are dark.

    Parameters
    ----------
    weights : ndarray (n_samples, n_features)
        From 0 (ignored) to 1 (used), NaN for missing values; see :meth:`RobustNMF.entry_weights`.
    image_shape : (height, width), optional
        Samples are then shown as images, side by side.
    """

    weights: np.ndarray
    image_shape: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        self.weights = np.asarray(self.weights)
        check_features(self.weights.shape[1], self.image_shape, None)

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: Any,
        *,
        image_shape: tuple[int, int] | None = None,
        ax: Axes | None = None,
    ) -> EntryWeightsDisplay:
        """Draw the display of the samples X (n_samples, n_features)."""
        model = factorisation_of(estimator)
        weights = to_numpy(model.entry_weights(X))
        return cls(weights=weights, image_shape=image_shape).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> EntryWeightsDisplay:
        """Draw a table, or images side by side, on these axes or new ones."""
        self.ax_, self.figure_ = axes_or_new(ax, type(self))
        picture = self.weights
        if self.image_shape is None:
            self.ax_.set(xlabel="feature", ylabel="sample")
        else:
            images = self.weights.reshape(-1, *self.image_shape)
            picture = mosaic(images, min(ENTRY_COLUMNS, len(images)), np.nan)
            self.ax_.set_axis_off()
        self.image_ = self.ax_.imshow(
            picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest",
            aspect="equal" if self.image_shape else "auto",
        )  # fmt: skip
        self.figure_.colorbar(self.image_, ax=self.ax_, label="weight", shrink=0.7)
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class ClustergramDisplay:
    """Plot of the distances between the components of all runs of a consensus, by group.

    Dark squares on the diagonal are components that all runs find; stray components are last.

    Parameters
    ----------
    distances : ndarray (runs * n_components, runs * n_components)
        Distances between components of unit length.
    labels : ndarray of int (runs * n_components,)
        Group of every component; -1 for stray components.
    """

    distances: np.ndarray
    labels: np.ndarray

    @classmethod
    def from_estimator(
        cls, estimator: ConsensusNMF, *, ax: Axes | None = None
    ) -> ClustergramDisplay:
        """Draw the runs of a ``ConsensusNMF`` that was fitted with ``keep_runs=True``."""
        check_is_fitted(estimator)
        if not hasattr(estimator, "run_components_"):
            raise ValueError("The clustergram needs all runs. Fit with keep_runs=True.")
        runs = to_numpy(estimator.run_components_)
        components = runs.reshape(-1, runs.shape[2]).astype(np.float64)
        norms = np.linalg.norm(components, axis=1, keepdims=True)
        unit = components / np.where(norms > 0, norms, 1.0)
        distances = np.sqrt(np.maximum(2 - 2 * unit @ unit.T, 0.0))
        return cls(distances=distances, labels=to_numpy(estimator.labels_).ravel()).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> ClustergramDisplay:
        """Draw on these axes, or on new ones."""
        self.ax_, self.figure_ = axes_or_new(ax, type(self))
        groups = np.where(self.labels < 0, self.labels.max() + 1, self.labels)
        order = np.argsort(groups, kind="stable")
        self.image_ = self.ax_.imshow(
            self.distances[np.ix_(order, order)], cmap="viridis", vmin=0, vmax=2**0.5
        )
        edges = np.flatnonzero(np.diff(groups[order])) + 0.5
        for edge in edges:
            self.ax_.axhline(edge, color="white", lw=0.5)
            self.ax_.axvline(edge, color="white", lw=0.5)
        middles = [np.flatnonzero(groups[order] == group).mean() for group in np.unique(groups)]
        names = ["stray" if group > self.labels.max() else str(group + 1)
                 for group in np.unique(groups)]  # fmt: skip
        self.ax_.set_xticks(middles, names)
        self.ax_.set_yticks(middles, names)
        self.ax_.set(xlabel="component", ylabel="component")
        self.figure_.colorbar(self.image_, ax=self.ax_, label="distance", shrink=0.8)
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class ConsensusMatrixDisplay:
    """Plot of the share of runs in which two samples have the same dominant component.

    Samples are in the order of a dendrogram (average linkage). The title shows the cophenetic
    correlation and the dispersion.

    Parameters
    ----------
    shares : ndarray (n_samples, n_samples)
    """

    shares: np.ndarray

    @classmethod
    def from_estimator(
        cls, estimator: ConsensusNMF, X: Any, *, ax: Axes | None = None
    ) -> ConsensusMatrixDisplay:
        """Draw the display of X for a ``ConsensusNMF`` that was fitted with ``keep_runs=True``."""
        return cls(shares=estimator.consensus_matrix(X)).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> ConsensusMatrixDisplay:
        """Draw on these axes, or on new ones."""
        self.ax_, self.figure_ = axes_or_new(ax, type(self))
        order = leaves_list(linkage(squareform(1.0 - self.shares, checks=False), "average"))
        self.image_ = self.ax_.imshow(
            self.shares[np.ix_(order, order)], cmap="Blues", vmin=0, vmax=1
        )
        correlation, spread = cophenetic_correlation(self.shares), dispersion(self.shares)
        self.ax_.set(
            xlabel="sample", ylabel="sample", xticks=[], yticks=[],
            title=f"cophenetic correlation {correlation:.3f}, dispersion {spread:.3f}",
        )  # fmt: skip
        self.figure_.colorbar(self.image_, ax=self.ax_, label="share of runs", shrink=0.8)
        return self


def plot_importances(estimator: Estimator, *, ax: Axes | None = None) -> ImportancesDisplay:
    """Draw the importances of all samples; see :class:`ImportancesDisplay`."""
    return ImportancesDisplay.from_estimator(estimator, ax=ax)


def plot_basis(estimator: Estimator, **options: Any) -> BasisDisplay:
    """Draw the components as images or bars; options as in :class:`BasisDisplay`."""
    return BasisDisplay.from_estimator(estimator, **options)


def plot_objective(estimator: Estimator, *, ax: Axes | None = None) -> ObjectiveDisplay:
    """Draw the objective after every iteration; see :class:`ObjectiveDisplay`."""
    return ObjectiveDisplay.from_estimator(estimator, ax=ax)


def plot_explanation(
    estimator: Estimator, X: Any, sample: int, **options: Any
) -> ExplanationDisplay:
    """Draw contributions of features to a sample's error; see :class:`ExplanationDisplay`."""
    return ExplanationDisplay.from_estimator(estimator, X, sample, **options)


def plot_entry_weights(estimator: Estimator, X: Any, **options: Any) -> EntryWeightsDisplay:
    """Draw the weights of the entries of X; options as in :class:`EntryWeightsDisplay`."""
    return EntryWeightsDisplay.from_estimator(estimator, X, **options)


def check_features(
    count: int, image_shape: tuple[int, int] | None, feature_names: Sequence[str] | None
) -> None:
    """Refuse an image shape or names that do not fit the number of features."""
    if image_shape is not None and np.prod(image_shape) != count:
        raise ValueError(
            f"image_shape={tuple(image_shape)} holds {np.prod(image_shape)} pixels, but samples "
            f"have {count} features. Give the height and width of the samples."
        )
    if feature_names is not None and len(feature_names) != count:
        raise ValueError(
            f"feature_names holds {len(feature_names)} names for {count} features. Give one each."
        )


def feature_names_of(estimator: Estimator, names: Sequence[str] | None) -> Sequence[str] | None:
    """Return the given names, or the names of the features seen in ``fit``, if any."""
    return getattr(estimator, "feature_names_in_", None) if names is None else names


def factorisation_of(estimator: Estimator) -> BaseRobustNMF:
    """Return the fitted factorisation: the estimator itself, or the one inside a detector."""
    check_is_fitted(estimator)
    return cast("BaseRobustNMF", getattr(estimator, "estimator_", estimator))


def axes_or_new(ax: Axes | None, display: type) -> tuple[Axes, Figure | SubFigure]:
    """Return the axes, or new ones, and their figure."""
    check_matplotlib_support(display.__name__)
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(layout="constrained")
    return ax, ax.figure


def label(name: object) -> str:
    """Shorten a name, and escape it for Matplotlib."""
    text = str(name)
    text = text if len(text) <= MAX_NAME_LENGTH else text[: MAX_NAME_LENGTH - 1] + "\u2026"
    return text.replace("$", r"\$")
