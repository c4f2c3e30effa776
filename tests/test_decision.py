"""Samples are left out only if others are predicted better without them."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_digits
from sklearn.ensemble import IsolationForest as SklearnForest

from robustnmf import OutlierWarning, RobustNMF
from robustnmf.arrays.forest import USUAL, IsolationForest
from robustnmf.metrics import squared_errors
from robustnmf.screening.decision import Decision
from tests.problems import narrow_table, noisy_low_rank


def relative_error(model, good):
    plain = RobustNMF(model.n_components_, weighting="uniform", init="nndsvda").fit(good)
    errors = [squared_errors(good, m.components_).sum() for m in (model, plain)]
    return errors[0] / errors[1]


def fitted(X, rank, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutlierWarning)
        return RobustNMF(rank, random_state=0, **parameters).fit(X)


@pytest.mark.parametrize("seed", range(3))
def test_noise_in_a_narrow_table_does_not_shape_the_components(seed):
    X, is_bad = narrow_table(seed=seed)
    assert relative_error(fitted(X, 2), X[~is_bad]) < 1.1


@pytest.mark.parametrize("seed", range(4))
def test_images_of_noise_are_found_even_if_they_do_little_harm(seed):
    rng = np.random.default_rng(seed)
    X = load_digits().data
    X[::10] = 16 * rng.random((180, 64))
    outliers = fitted(X, 10).outliers_
    assert outliers[::10].all()
    assert outliers.sum() < 200


def test_clusters_of_all_sizes_survive_much_noise():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), (300, 120, 80, 40))
    profiles = rng.random((4, 12)) * (rng.random((4, 12)) < 0.5)
    good = profiles[labels] * rng.uniform(0.5, 1.5, (540, 1)) + 0.01 * rng.random((540, 12))
    X = np.vstack([good, rng.random((360, 12)) * good.max()])
    assert relative_error(fitted(X, 4), good) < 1.2


def test_heavy_tails_of_a_clean_table_stay():
    rng = np.random.default_rng(0)
    X = rng.lognormal(0.0, 1.0, (400, 3)) @ rng.gamma(0.5, size=(3, 20))
    X *= 1 + 0.1 * rng.standard_normal(X.shape)
    assert fitted(np.maximum(X, 0.0), 3).outliers_.mean() < 0.05


def test_the_decision_does_not_depend_on_order_or_container():
    X, _ = narrow_table()
    order = np.random.default_rng(1).permutation(len(X))
    outliers = fitted(X, 2).outliers_
    np.testing.assert_array_equal(fitted(X[order], 2).outliers_, outliers[order])
    np.testing.assert_array_equal(fitted(scipy.sparse.csr_array(X), 2).outliers_, outliers)


def test_a_table_without_usual_samples_is_fitted():
    X = np.eye(40) + 0.01 * np.random.default_rng(0).random((40, 40))
    assert np.isfinite(fitted(X, 2).components_).all()


def test_one_extreme_sample_is_never_kept():
    X, _ = narrow_table(bad=0)
    X[7] = 1e6
    assert fitted(X, 2).outliers_[7]


def blood_cells(scanpy):
    cells = scanpy.datasets.pbmc68k_reduced()
    return np.expm1(cells.raw.X.toarray().astype(float)), cells.obs["bulk_labels"].to_numpy()


def test_a_warning_says_that_leaving_a_few_out_does_not_help(monkeypatch):
    monkeypatch.setattr(
        "robustnmf.screening.samples.decide",
        lambda sample, is_accepted, *more: Decision(is_accepted, gain=-0.01),
    )
    X = noisy_low_rank(200, 12, 3, outliers=12)
    with pytest.warns(
        OutlierWarning, match=r"12 of 200 samples.* are not predicted better without"
    ):
        RobustNMF(3, random_state=0).fit(X)


def test_a_warning_says_with_how_many_components_none_is_left_out():
    values, _ = blood_cells(pytest.importorskip("scanpy"))
    with pytest.warns(OutlierWarning, match=r"a group of good ones; .* with 8 components none is"):
        RobustNMF(5, random_state=0).fit(values)


def test_no_type_of_blood_cells_is_left_out():
    values, kinds = blood_cells(pytest.importorskip("scanpy"))
    counts = np.round(values / np.where(values > 0, values, np.inf).min(axis=1, keepdims=True))
    for rank in (5, 8, 12):
        outliers = fitted(counts, rank).outliers_
        assert max(outliers[kinds == kind].mean() for kind in np.unique(kinds)) <= 0.05


def test_the_forest_agrees_with_that_of_scikit_learn():
    X, is_bad = narrow_table()
    scores = IsolationForest.grow(X, np.ones(len(X))).scores(X)
    theirs = -SklearnForest(random_state=0).fit(X).score_samples(X)
    assert np.corrcoef(scores, theirs)[0, 1] > 0.97
    assert np.mean((scores > USUAL) == (theirs > USUAL)) > 0.95
    assert np.mean(scores[is_bad] > USUAL) > 0.9


def test_a_row_that_counts_twice_is_two_rows_for_the_forest():
    X, _ = narrow_table()
    times = np.random.default_rng(0).integers(1, 4, len(X))
    scores = [
        IsolationForest.grow(rows, weight.astype(float)).scores(X)
        for rows, weight in ((X, times), (np.repeat(X, times, axis=0), np.ones(times.sum())))
    ]
    assert np.corrcoef(*scores)[0, 1] > 0.97


def test_the_forest_needs_no_missing_value():
    X, _ = narrow_table()
    forest = IsolationForest.grow(X, np.ones(len(X)))
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    scores = forest.scores(holes)
    assert np.isfinite(scores).all()
    assert np.corrcoef(scores, forest.scores(X))[0, 1] > 0.8
    assert forest.scores(np.full((1, 4), np.nan))[0] < USUAL
    assert np.array_equal(IsolationForest.grow(X, np.ones(len(X))).scores(X), forest.scores(X))
    assert IsolationForest.grow(np.ones((1, 3)), np.ones(1)).scores(np.ones((1, 3))).shape == (1,)
