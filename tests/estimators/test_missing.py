"""NaN is a missing value: it has no weight, and is imputed."""

import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags

from robustnmf import (
    ConsensusNMF,
    Entropy,
    Fuzzy,
    RobustNMF,
    RobustNMFDetector,
    Uniform,
    WeightCollapseWarning,
    fit_path,
    select_rank,
)
from robustnmf.estimators import ESTIMATORS
from robustnmf.losses import LOSSES
from robustnmf.structures import STRUCTURES
from tests.oracles import weighted
from tests.problems import noisy_low_rank, positive_start, with_holes

X = with_holes(noisy_low_rank(40, 15, 3, seed=3), share=0.3)
KNOWN = ~np.isnan(X)


def quiet(method, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", WeightCollapseWarning)
        return method(*args, **kwargs)


def entropy(Z, count):
    share = np.exp(-(Z - Z.min()) / 50.0)
    return share / (count @ share)


def fuzzy(Z, count):
    share = (Z / Z.min()) ** (-1 / 29.0)
    return (share / (count @ share)) ** 30.0


WEIGHTINGS = {
    "uniform": (Uniform(), lambda Z, count: np.ones_like(Z)),
    "entropy": (Entropy(gamma=50.0), entropy),
    "fuzzy": (Fuzzy(p=30.0), fuzzy),
}


@pytest.mark.parametrize("name", WEIGHTINGS)
def test_the_updates_are_the_literal_ones_with_a_mask(name):
    weighting, weights = WEIGHTINGS[name]
    W, H = positive_start(40, 15, 3)
    model = RobustNMF(3, weighting=weighting, solver="mu", init="custom", tol=0, max_iter=15)
    codes = model.fit_transform(X, W=W, H=H)
    base, representation = weighted.masked(X.T, KNOWN.T, H.T, W.T, weights, 15)
    np.testing.assert_allclose(model.components_, base.T, rtol=1e-9)
    np.testing.assert_allclose(codes, representation.T, rtol=1e-9)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_takes_nan(name):
    model = ESTIMATORS[name](3, random_state=0, max_iter=30)
    assert get_tags(model).input_tags.allow_nan
    codes = quiet(model.fit_transform, X)
    assert np.isfinite(codes).all()
    assert np.isfinite(model.components_).all()
    np.testing.assert_allclose(model.transform(X), codes, rtol=1e-6, atol=1e-9)
    assert model.sample_importances_.sum() == pytest.approx(1.0)
    assert np.isfinite(model.score_samples(X)).all()
    assert model.objective(X) == pytest.approx(model.objective_history_[-1], rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighting", ["uniform", pytest.param("entropy", marks=pytest.mark.extra)])
def test_hidden_entries_of_low_rank_data_are_recovered(loss, weighting):
    rng = np.random.default_rng(0)
    whole = rng.gamma(1.0, size=(60, 3)) @ rng.gamma(1.0, size=(3, 20))
    hidden = rng.random(whole.shape) < 0.3
    model = RobustNMF(3, loss=loss, weighting=weighting, max_iter=2000, tol=1e-4)
    codes = quiet(model.fit_transform, np.where(hidden, np.nan, whole))
    imputed = model.inverse_transform(codes)
    error = np.linalg.norm((imputed - whole)[hidden]) / np.linalg.norm(whole[hidden])
    assert error <= 0.02


def test_codes_of_a_row_do_not_depend_on_other_rows():
    model = quiet(RobustNMF(3).fit, X)
    alone = np.vstack([model.transform(row[None]) for row in X])
    np.testing.assert_allclose(alone, model.transform(X), rtol=1e-9)


def test_energies_are_those_of_whole_rows():
    """A row of which a representative half is known is as normal as the whole row."""
    half = noisy_low_rank(30, 8, 2)
    model = quiet(RobustNMF(2, random_state=0).fit, np.hstack([half, half]))
    model.components_ = np.hstack([model.components_[:, :8]] * 2)
    unknown = np.hstack([half, np.full_like(half, np.nan)])
    whole = model.score_samples(np.hstack([half, half]))
    np.testing.assert_allclose(model.score_samples(unknown), whole, rtol=1e-8)


def test_samples_and_features_of_which_nothing_is_known():
    empty = X.copy()
    empty[[3, 5]], empty[:, 7] = np.nan, np.nan
    model = RobustNMF(3, random_state=0)
    with (
        pytest.warns(UserWarning, match="2 samples without known values, first sample 3"),
        pytest.warns(UserWarning, match="1 feature without known values, first feature 7"),
    ):
        codes = quiet(model.fit_transform, empty)
    assert not codes[[3, 5]].any()
    assert not model.components_[:, 7].any()
    assert not model.sample_importances_[[3, 5]].any()
    assert not model.inverse_transform(codes)[:, 7].any()


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_feature_of_which_nothing_is_known_stays_zero(structure):
    empty = X.copy()
    empty[:, 7] = np.nan
    with pytest.warns(UserWarning, match="1 feature without known values"):
        model = quiet(RobustNMF(3, structure=structure, random_state=0, max_iter=20).fit, empty)
    assert not model.components_[:, 7].any()


def test_the_effective_sample_size_counts_samples_not_entries():
    rng = np.random.default_rng(0)
    table = rng.gamma(1.0, size=(300, 3)) @ rng.gamma(1.0, size=(3, 100))
    table[rng.random(table.shape) < 0.9] = np.nan
    model = quiet(RobustNMF(3, weighting="uniform", random_state=0, max_iter=5).fit, table)
    assert model.effective_sample_size_ == pytest.approx(
        1 / np.sum(model.sample_importances_**2), rel=1e-9
    )
    assert model.effective_sample_size_ > 250


def test_float32_stays_float32():
    model = quiet(RobustNMF(3).fit, X.astype(np.float32))
    assert model.components_.dtype == np.float32
    assert model.transform(X.astype(np.float32)).dtype == np.float32


COMPLETE = np.where(KNOWN, X, 1.0)
MASKED = np.ma.array(np.where(KNOWN, X, 1000.0), mask=~KNOWN)
SHORT = RobustNMF(3, weighting="entropy", init="random", random_state=0, max_iter=30)
READERS = {
    "fit": lambda X: RobustNMF(3, random_state=0).fit(X).components_,
    "fit of float32": lambda X: clone(SHORT).fit(X.astype(np.float32)).components_,
    "list of rows": lambda X: clone(SHORT).fit(list(X)).components_,
    "blocks": lambda X: clone(SHORT).fit(lambda: iter([X[:15], X[15:]])).components_,
    "dask": lambda X: clone(SHORT).fit(dask_array(X)).components_,
    "transform": lambda X: fitted().transform(X),
    "transform of dask": lambda X: fitted().transform(dask_array(X)).compute(),
    "score_samples": lambda X: fitted().score_samples(X),
    "explain": lambda X: fitted().explain(X),
    "objective": lambda X: fitted().objective(X),
    "entry_weights": lambda X: clone(SHORT).set_params(loss="huber").fit(X).entry_weights(X),
    "detector": lambda X: RobustNMFDetector(3, random_state=0).fit(X).score_samples(X),
    "consensus": lambda X: ConsensusNMF(SHORT, n_runs=4, random_state=0).fit(X).components_,
    "select_rank": lambda X: select_rank(X, [2, 3], random_state=0, max_iter=30).errors,
    "fit_path": lambda X: fit_path(X, 3, weightings=[Uniform()], random_state=0)[0].components,
}


@cache
def fitted():
    return quiet(clone(SHORT).fit, X)


def dask_array(X):
    return pytest.importorskip("dask.array").from_array(X, chunks=(20, 15))


@pytest.mark.xdist_group("masked entries")
@pytest.mark.parametrize("name", READERS)
def test_masked_entries_are_missing_values(name):
    masked, missing = (quiet(READERS[name], table) for table in (MASKED, X))
    np.testing.assert_array_equal(masked, missing)
    assert type(masked) is type(missing)


def test_masked_integers_are_missing_values():
    counts = np.where(KNOWN, 10 * np.where(KNOWN, X, 0), -1).astype(int)
    models = [
        quiet(RobustNMF(3, random_state=0).fit, table)
        for table in (np.ma.masked_less(counts, 0), np.where(counts < 0, np.nan, counts))
    ]
    np.testing.assert_array_equal(models[0].components_, models[1].components_)


@pytest.mark.parametrize(
    ("parameters", "arguments", "name"),
    [
        ({}, {"sample_weight": np.ma.masked_less(np.arange(40.0), 5)}, "sample_weight"),
        ({"fixed_components": np.ma.masked_less(COMPLETE[:1], 2)}, {}, "fixed_components"),
        ({"init": "custom"}, {"W": np.ma.masked_less(np.ones((40, 3)), 2), "H": COMPLETE[:3]}, "W"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_masked_weights_and_factors_are_refused(parameters, arguments, name):
    with pytest.raises(ValueError, match=f"Input {name} contains NaN"):
        RobustNMF(3, **parameters).fit(COMPLETE, **arguments)
