"""Pictures of what was learned, in the style of scikit-learn's displays.

Each is made from a fitted estimator (or a :class:`RobustNMFDetector`), keeps the numbers it shows,
and can be drawn again: ``display.plot(ax=...)``. Needs matplotlib.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils.validation import _num_samples, check_is_fitted

GOOD, BAD = "#1c6dd0", "#d6336c"
MOST_NAMES, LONGEST_NAME = 40, 30

__all__ = [
    "BasisDisplay",
    "ExplanationDisplay",
    "ImportancesDisplay",
    "ObjectiveDisplay",
    "plot_basis",
    "plot_explanation",
    "plot_importances",
    "plot_objective",
]


class ImportancesDisplay:
    """Importances of all samples, from the most to the least important.

    Parameters
    ----------
    importances : ndarray (n_samples,)
        They sum to one.
    effective_sample_size : float
    """

    def __init__(self, *, importances: np.ndarray, effective_sample_size: float):
        self.importances = np.asarray(importances)
        self.effective_sample_size = float(effective_sample_size)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> ImportancesDisplay:
        """The display of a fitted estimator."""
        model = _fitted(estimator, cls)
        display = cls(
            importances=model.sample_importances_,
            effective_sample_size=model.effective_sample_size_,
        )
        return display.plot(ax=ax)

    def plot(self, *, ax: Any = None) -> ImportancesDisplay:
        """Draw on these axes, or on new ones."""
        self.ax_, self.figure_ = _axes(ax, type(self))
        ordered = np.sort(self.importances)[::-1] * len(self.importances)
        (self.line_,) = self.ax_.plot(np.arange(1, len(ordered) + 1), ordered, color=GOOD)
        self.ax_.axvline(self.effective_sample_size, color=BAD, ls="--", lw=1)
        self.ax_.annotate(
            f"effective sample size {self.effective_sample_size:.0f}",
            (self.effective_sample_size, 0.02), xycoords=("data", "axes fraction"),
            xytext=(-4, 0), textcoords="offset points", ha="right", fontsize=8, color=BAD,
        )  # fmt: skip
        self.ax_.set(
            xlabel="samples, the most important first",
            ylabel="importance (1 is an equal share)",
            ylim=(0, None),
        )
        return self


class BasisDisplay:
    """The components: as images, or as bars over the features.

    Parameters
    ----------
    components : ndarray (n_components, n_features)
    image_shape : (height, width), optional
    feature_names : sequence of str, optional
    order : {"C", "F"}, default="C"
        How pixels follow each other: row by row, or column by column.
    """

    def __init__(
        self,
        *,
        components: np.ndarray,
        image_shape: tuple[int, int] | None = None,
        feature_names: Any = None,
        order: str = "C",
    ):
        self.components = np.asarray(components)
        self.image_shape = image_shape
        self.feature_names = feature_names
        self.order = order
        _check_features(self.components.shape[1], image_shape, feature_names)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        image_shape: tuple[int, int] | None = None,
        feature_names: Any = None,
        order: str = "C",
        figure: Any = None,
    ) -> BasisDisplay:
        """The display of a fitted estimator."""
        model = _fitted(estimator, cls)
        names = _names(estimator, feature_names)
        display = cls(
            components=model.components_, image_shape=image_shape, feature_names=names, order=order
        )
        return display.plot(figure=figure)

    def plot(self, *, figure: Any = None) -> BasisDisplay:
        """Draw on this figure, or on a new one: a panel for each component."""
        check_matplotlib_support(type(self).__name__)
        import matplotlib.pyplot as plt

        count, features = self.components.shape
        images = self.image_shape is not None
        columns = min(count, int(np.ceil(np.sqrt(count * (1.5 if images else 0.5)))))
        rows = -(-count // columns)
        size = (1.6 * columns, 1.7 * rows) if images else (5.0 * columns, 1.5 * rows + 0.4)
        self.figure_ = plt.figure(figsize=size, layout="constrained") if figure is None else figure
        self.axes_ = self.figure_.subplots(rows, columns, squeeze=False).ravel()
        for ax in self.axes_[count:]:
            ax.set_axis_off()
        for i, (ax, part) in enumerate(zip(self.axes_, self.components, strict=False)):
            if images:
                ax.imshow(part.reshape(self.image_shape, order=self.order), cmap="gray_r")
                ax.set_axis_off()
            else:
                ax.bar(np.arange(features), part, color=GOOD)
                ax.margins(x=0.01)
                self._name_features(ax)
            ax.set_title(f"component {i}", fontsize=8)
        return self

    def _name_features(self, ax: Any) -> None:
        ax.tick_params(labelsize=7)
        if self.feature_names is not None and len(self.feature_names) <= MOST_NAMES:
            ax.set_xticks(np.arange(len(self.feature_names)))
            ax.set_xticklabels([_plain(name) for name in self.feature_names], rotation=90)


class ObjectiveDisplay:
    """The objective after every pass.

    Parameters
    ----------
    history : ndarray (n_passes,)
    """

    def __init__(self, *, history: np.ndarray):
        self.history = np.asarray(history)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> ObjectiveDisplay:
        """The display of a fitted estimator."""
        return cls(history=_fitted(estimator, cls).objective_history_).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> ObjectiveDisplay:
        """Draw on these axes, or on new ones."""
        self.ax_, self.figure_ = _axes(ax, type(self))
        (self.line_,) = self.ax_.plot(self.history, color=GOOD)
        if len(self.history) and self.history.min() > 0:
            self.ax_.set_yscale("log")
        self.ax_.set(xlabel="pass since the weights settled", ylabel="objective")
        return self


class ExplanationDisplay:
    """Which features make a sample an outlier: what each adds to its energy.

    Parameters
    ----------
    contributions : ndarray (n_features,)
        Positive where the sample has more than its approximation; see :meth:`RobustNMF.explain`.
    feature_names : sequence of str, optional
    image_shape : (height, width), optional
    order : {"C", "F"}, default="C"
    """

    def __init__(
        self,
        *,
        contributions: np.ndarray,
        feature_names: Any = None,
        image_shape: tuple[int, int] | None = None,
        order: str = "C",
    ):
        self.contributions = np.asarray(contributions)
        self.feature_names = feature_names
        self.image_shape = image_shape
        self.order = order
        _check_features(len(self.contributions), image_shape, feature_names)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        sample: int,
        *,
        feature_names: Any = None,
        image_shape: tuple[int, int] | None = None,
        order: str = "C",
        ax: Any = None,
    ) -> ExplanationDisplay:
        """The display of one sample of X."""
        check_is_fitted(estimator)
        names = _names(estimator, feature_names)
        count = _num_samples(X)
        if not -count <= sample < count:
            raise ValueError(f"sample={sample}, but X has {count} samples, 0 to {count - 1}.")
        X = X.tocsr() if scipy.sparse.issparse(X) else X
        at = range(count)[sample]
        row = X.iloc[[at]] if hasattr(X, "iloc") else X[at : at + 1]
        contributions = estimator.explain(row)[0]
        display = cls(
            contributions=contributions, feature_names=names, image_shape=image_shape, order=order
        )
        return display.plot(ax=ax)

    def plot(self, *, ax: Any = None, most: int = 15) -> ExplanationDisplay:
        """Draw on these axes, or on new ones: an image, or the features that add most."""
        self.ax_, self.figure_ = _axes(ax, type(self))
        if self.image_shape is not None:
            image = self.contributions.reshape(self.image_shape, order=self.order)
            limit = float(np.nanmax(np.abs(image))) or 1.0
            self.ax_.imshow(image, cmap="RdBu_r", vmin=-limit, vmax=limit)
            self.ax_.set_axis_off()
            return self
        sizes = np.nan_to_num(np.abs(self.contributions))
        chosen = np.argsort(sizes, kind="stable")[::-1][:most][::-1]
        values = self.contributions[chosen]
        self.ax_.barh(np.arange(len(chosen)), values, color=np.where(values > 0, BAD, GOOD))
        names = [_plain(i if self.feature_names is None else self.feature_names[i]) for i in chosen]
        self.ax_.set_yticks(np.arange(len(chosen)))
        self.ax_.set_yticklabels(names, fontsize=8)
        self.ax_.axvline(0, color="0.4", lw=0.8)
        self.ax_.set_xlabel("adds to the energy (right: more than expected)")
        return self


def plot_importances(estimator: Any, *, ax: Any = None) -> ImportancesDisplay:
    """Importances of all samples; see :class:`ImportancesDisplay`."""
    return ImportancesDisplay.from_estimator(estimator, ax=ax)


def plot_basis(estimator: Any, **options: Any) -> BasisDisplay:
    """The components as images or bars; options as in :class:`BasisDisplay`."""
    return BasisDisplay.from_estimator(estimator, **options)


def plot_objective(estimator: Any, *, ax: Any = None) -> ObjectiveDisplay:
    """The objective after every pass; see :class:`ObjectiveDisplay`."""
    return ObjectiveDisplay.from_estimator(estimator, ax=ax)


def plot_explanation(estimator: Any, X: Any, sample: int, **options: Any) -> ExplanationDisplay:
    """What makes a sample an outlier; options as in :class:`ExplanationDisplay`."""
    return ExplanationDisplay.from_estimator(estimator, X, sample, **options)


def _check_features(count: int, image_shape: tuple[int, int] | None, feature_names: Any) -> None:
    if image_shape is not None and np.prod(image_shape) != count:
        raise ValueError(
            f"image_shape={tuple(image_shape)} holds {np.prod(image_shape)} pixels, but samples "
            f"have {count} features. Give the height and width of the samples."
        )
    if feature_names is not None and len(feature_names) != count:
        raise ValueError(
            f"feature_names holds {len(feature_names)} names for {count} features. Give one each."
        )


def _names(estimator: Any, given: Any) -> Any:
    """Names of features: those given, or those of the data of the fit, if any."""
    return getattr(estimator, "feature_names_in_", None) if given is None else given


def _fitted(estimator: Any, display: type) -> Any:
    """The factorisation, also where a detector holds it."""
    check_matplotlib_support(display.__name__)
    check_is_fitted(estimator)
    return getattr(estimator, "estimator_", estimator)


def _axes(ax: Any, display: type) -> tuple[Any, Any]:
    check_matplotlib_support(display.__name__)
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(layout="constrained")
    return ax, ax.figure


def _plain(name: Any) -> str:
    """A name as text that is drawn as it is, no longer than there is room for."""
    text = str(name)
    text = text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "\u2026"
    return text.replace("$", r"\$")
