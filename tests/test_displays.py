"""Displays draw what they hold, on the axes they are given."""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from robustnmf import ConsensusNMF, RobustNMF, RobustNMFDetector, displays
from robustnmf.displays import (
    plot_basis,
    plot_entry_weights,
    plot_explanation,
    plot_importances,
    plot_objective,
)
from tests.problems import noisy_low_rank

pd = pytest.importorskip("pandas", reason="pandas is not installed")
matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

X = noisy_low_rank(60, 12, 3, outliers=5)
MODELS = [RobustNMF(3, random_state=0).fit(X), RobustNMFDetector(3, random_state=0).fit(X)]
every_model = pytest.mark.parametrize("model", MODELS, ids=["RobustNMF", "RobustNMFDetector"])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@every_model
def test_importances_fall_from_left_to_right(model):
    display = plot_importances(model)
    heights = display.line_.get_ydata()
    assert len(heights) == len(X)
    assert np.all(np.diff(heights) <= 0)
    assert heights.mean() == pytest.approx(1.0)


@every_model
def test_the_objective_is_drawn_on_given_axes(model):
    _, ax = plt.subplots()
    display = plot_objective(model, ax=ax)
    assert display.ax_ is ax
    assert np.all(np.diff(display.line_.get_ydata()) <= 1e-9)


@every_model
def test_components_are_bars_or_images(model):
    bars = plot_basis(model, feature_names=[f"f{i}" for i in range(12)])
    assert bars.axes_[2].get_xticklabels()[0].get_text() == "f0"
    images = plot_basis(model, image_shape=(3, 4), order="F")
    shown = images.axes_[0].images[0].get_array()
    np.testing.assert_array_equal(shown.T.ravel(), images.components[0])
    with pytest.raises(ValueError, match="holds 15 pixels"):
        plot_basis(model, image_shape=(3, 5))


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_names_below_components_leave_room_for_the_panels(k):
    names = [f"{i} of a rather long name" for i in range(12)]
    display = plot_basis(RobustNMF(k, random_state=0).fit(X), feature_names=names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of axes without size
        display.figure_.canvas.draw()
    height = display.figure_.bbox.height
    boxes = [ax.get_window_extent() for ax in display.axes_[:k]]
    texts = [ax.get_tightbbox() for ax in display.axes_[:k]]
    assert min(box.height for box in boxes) > 0.8 * display.figure_.dpi
    assert all(box.y0 >= 0 and box.y1 <= height for box in texts)
    assert not any(one.overlaps(other) for one, other in itertools.combinations(texts, 2))


@every_model
def test_an_explanation_shows_the_features_that_add_most(model):
    display = plot_explanation(model, X, -1, image_shape=(3, 4))
    assert display.ax_.images
    display.image_shape = None
    display.plot(most=5)
    widths = np.abs([bar.get_width() for bar in display.ax_.patches])
    assert len(widths) == 5
    assert np.all(np.diff(widths) >= 0)


def test_weights_of_entries_are_a_table_or_images():
    model = RobustNMF(3, loss="truncated", random_state=0).fit(X)
    table = plot_entry_weights(model, X)
    np.testing.assert_array_equal(table.image_.get_array(), model.entry_weights(X))
    images = plot_entry_weights(model, X[:9], image_shape=(3, 4))
    assert images.image_.get_array().shape == (2 * 4 - 1, 8 * 5 - 1)
    with pytest.raises(ValueError, match="holds 15 pixels"):
        plot_entry_weights(model, X, image_shape=(3, 5))


def test_names_of_columns_are_drawn_as_they_are():
    names = ["$x^2$", "a" * 100, *(f"f{i}" for i in range(10))]
    table = pd.DataFrame(X, columns=names)
    model = RobustNMF(3, random_state=0).fit(table)
    display = plot_explanation(model, table, 0)
    display.figure_.canvas.draw()
    texts = {label.get_text() for label in display.ax_.get_yticklabels()}
    assert r"\$x^2\$" in texts
    assert max(map(len, texts)) <= 31


def test_models_that_are_not_fitted_are_refused():
    with pytest.raises(NotFittedError):
        plot_importances(RobustNMF(2))


def test_shapes_and_names_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="2 names for 12 features"):
        plot_basis(MODELS[0], feature_names=["a", "b"])
    with pytest.raises(ValueError, match="holds 9 pixels"):
        plot_explanation(MODELS[0], X, 0, image_shape=(3, 3))
    with pytest.raises(ValueError, match="X has 60 samples"):
        plot_explanation(MODELS[0], X, 60)


def test_runs_of_a_consensus_are_drawn_by_group():
    X = np.random.default_rng(0).random((30, 3)) @ np.random.default_rng(1).random((3, 8))
    model = ConsensusNMF(RobustNMF(3), n_runs=5, random_state=0)
    with pytest.raises(ValueError, match="keep_runs=True"):
        displays.ClustergramDisplay.from_estimator(model.fit(X))
    model.set_params(keep_runs=True).fit(X)
    drawn = displays.ClustergramDisplay.from_estimator(model)
    assert drawn.image_.get_array().shape == (15, 15)
    drawn = displays.ConsensusMatrixDisplay.from_estimator(model, X)
    assert drawn.image_.get_array().shape == (30, 30)
    assert "cophenetic" in drawn.ax_.get_title()
