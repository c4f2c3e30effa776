"""Which samples count: groups of good ones do, outliers do not, whatever holds X."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_iris

from robustnmf import RobustNMF, RobustNMFDetector
from robustnmf.engine import InMemory, RowSample, Stored, draw_rows
from robustnmf.exceptions import OutlierWarning
from robustnmf.experiments.contamination.scenario import Scenario, draw_samples
from robustnmf.metrics import squared_errors
from robustnmf.screening.groups import find_filled, new_directions
from robustnmf.screening.majority import Majority
from robustnmf.screening.samples import FEWEST_ROWS, ROWS
from robustnmf.sources import reader_of
from robustnmf.weightings import Trimmed


def clusters(sizes, seed=0, features=10):
    """Clusters with features of their own, and 10% noise; their labels."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    profiles = np.kron(np.eye(len(sizes)), 0.5 + rng.random((1, features)))
    noise = np.exp(0.1 * rng.standard_normal((len(labels), profiles.shape[1])))
    return (0.5 + rng.random((len(labels), 1))) * profiles[labels] * noise, labels


def shares(model, labels):
    """Importance of every cluster."""
    return np.bincount(labels, model.sample_importances_)


def relative_error(model, X, rank, judged=None):
    """Squared error of samples over that of plain NMF of X."""
    judged = X if judged is None else judged
    plain = RobustNMF(rank, weighting="uniform", init="nndsvda", random_state=0).fit(X)
    errors = [squared_errors(judged, m.components_).sum() for m in (model, plain)]
    return errors[0] / errors[1]


def test_three_clusters_keep_their_shares():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [50, 150, 300])
    parts = np.kron(np.eye(3), 0.5 + rng.random((1, 10)))
    noise = np.exp(0.1 * rng.standard_normal((500, 30)))
    X = (0.5 + rng.random((500, 1))) * parts[labels] * noise
    model = RobustNMF(3, random_state=0).fit(X)
    np.testing.assert_allclose(shares(model, labels), [0.1, 0.3, 0.6], atol=0.01)


@pytest.mark.parametrize("sizes", [(160, 40), (200, 200, 200), (80,) * 5, (60,) * 10])
@pytest.mark.parametrize("seed", range(3))
def test_no_cluster_is_lost(sizes, seed):
    X, labels = clusters(sizes, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OutlierWarning)
        model = RobustNMF(len(sizes), random_state=0).fit(X)
    expected = np.array(sizes) / sum(sizes)
    np.testing.assert_allclose(shares(model, labels), expected, rtol=0.1)
    assert model.outliers_.mean() <= 0.03


@pytest.mark.parametrize("seed", range(3))
def test_a_group_with_many_more_counts_is_not_lost(seed):
    rng = np.random.default_rng(seed)
    few, many = (
        depth * rng.gamma(4, 0.25, size=(n, 2)) @ rng.gamma(0.5, size=(2, 30))
        for depth, n in ((3, 350), (90, 150))
    )
    X = rng.poisson(np.vstack([few, many])).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OutlierWarning)
        model = RobustNMF(4, loss="kullback-leibler", random_state=0).fit(X)
    assert model.outliers_.mean() <= 0.01


@pytest.mark.parametrize("noise", [0.01, 0.05])
@pytest.mark.parametrize("gain", [3, 10, 30])
def test_a_group_with_larger_values_is_not_lost(gain, noise):
    rng = np.random.default_rng(0)
    small, large = (
        size * rng.gamma(4, 0.25, size=(n, 1)) @ rng.gamma(0.5, size=(1, 30))
        for size, n in ((1, 140), (gain, 60))
    )
    X = np.vstack([small, large]) * rng.lognormal(0, noise, size=(200, 30))
    assert RobustNMF(2, random_state=0).fit(X).outliers_[140:].mean() <= 0.1


def test_a_machine_that_is_idle_most_of_the_time_keeps_its_working_samples():
    rng = np.random.default_rng(0)
    works = rng.random((600, 1)) > 0.6
    X = (rng.gamma(1, size=(600, 6)) * works) @ rng.gamma(0.5, size=(6, 40))
    X += 0.01 * rng.random((600, 40))
    assert RobustNMF(6, random_state=0).fit(X).outliers_.mean() <= 0.02


def test_a_warning_says_that_samples_are_larger_than_others():
    rng = np.random.default_rng(0)
    sizes = np.repeat([1, 20], [140, 60])[:, None]
    X = sizes * rng.gamma(4, 0.25, size=(200, 2)) @ rng.gamma(0.5, size=(2, 30))
    X *= rng.lognormal(0, 0.05, size=(200, 30))
    with pytest.warns(OutlierWarning, match=r"times as large; if only proportions matter"):
        assert RobustNMF(2, random_state=0).fit(X).outliers_[140:].mean() >= 0.9
    shares_of_sums = X / X.sum(axis=1, keepdims=True)
    assert RobustNMF(2, random_state=0).fit(shares_of_sums).outliers_.mean() <= 0.02


@pytest.mark.parametrize("rank", [2, 3])
def test_no_class_of_iris_is_lost(rank):
    X = load_iris().data
    X = X / X.max(axis=0)
    model = RobustNMF(rank, random_state=0).fit(X)
    assert relative_error(model, X, rank) <= 1.02
    assert model.outliers_.mean() <= 0.03


@pytest.mark.parametrize("seed", range(5))
def test_a_small_cluster_survives_beside_as_much_noise(seed):
    X, _ = clusters((510, 90), seed)
    bad = np.random.default_rng(seed).permutation(600)[:90]
    dirty = X.copy()
    dirty[bad] = X.max() * np.random.default_rng(seed + 10).random((90, X.shape[1]))
    good = np.ones(600, dtype=bool)
    good[bad] = False
    model = RobustNMF(2, random_state=0).fit(dirty)
    plain = RobustNMF(2, weighting="uniform", random_state=0).fit(X[good])
    errors = [squared_errors(X[good], m.components_).sum() for m in (model, plain)]
    assert errors[0] <= 1.05 * errors[1]
    assert model.outliers_[bad].all()
    assert model.outliers_[good].mean() <= 0.03


def noisy(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.5, size=(n, 5)) @ rng.gamma(0.5, size=(5, 40))
    return X / X.max() + 0.01 * rng.random(X.shape)


def test_users_are_warned_when_many_samples_are_left_out():
    X = noisy()
    X[:100] = np.random.default_rng(1).random((100, 40))
    with pytest.warns(OutlierWarning, match=r"left out 1\d\d of 300 samples; .*n_components"):
        model = RobustNMF(5, random_state=0).fit(X)
    assert model.outliers_[:100].all()


def test_users_are_warned_when_similar_samples_are_left_out():
    lost = []
    for seed in range(4):
        X = noisy(seed=seed)
        X[:30] = np.random.default_rng(seed + 1).random((1, 40))
        with pytest.warns(OutlierWarning, match="which resemble each other"):
            model = RobustNMF(5, random_state=0).fit(X)
        assert model.outliers_[:30].all()
        lost.append(model.outliers_[30:].mean())
    assert np.mean(lost) <= 0.05


def test_estimator_and_detector_find_the_same_outliers():
    X = noisy()
    X[:20] = np.random.default_rng(1).random((20, 40))
    detector = RobustNMFDetector(5, random_state=0).fit(X)
    for found in (detector.predict(X) == -1, detector.estimator_.outliers_):
        assert found[:20].all()
        assert found[20:].mean() < 0.03


@pytest.mark.parametrize("weighting", ["uniform", "l21", "entropy", "cauchy"])
def test_every_weighting_has_outliers(weighting):
    X = noisy()
    X[:20] = 5 * np.random.default_rng(1).random((20, 40))
    X[20] = 0.0
    model = RobustNMF(5, weighting=weighting, random_state=0).fit(X)
    assert model.outliers_.dtype == bool
    assert model.outliers_.shape == (300,)
    assert not model.outliers_[20]  # nothing is known against a sample of zeros
    expected = model.sample_importances_ < 0.1 / 299
    np.testing.assert_array_equal(np.delete(model.outliers_, 20), np.delete(expected, 20))
    assert weighting != "uniform" or not model.outliers_.any()


@pytest.mark.parametrize("seed", range(3))
def test_several_random_starts_help(seed):
    X, _ = clusters((60,) * 5, seed)
    one, several = (RobustNMF(5, init="random", n_init=n, random_state=seed).fit(X) for n in (1, 8))
    errors = [squared_errors(X, model.components_).sum() for model in (one, several)]
    assert errors[1] <= 1.001 * errors[0]
    assert relative_error(several, X, 5) <= 1.02


@pytest.mark.parametrize(("drawn", "features"), [(ROWS, 8), (FEWEST_ROWS, 220)])
def test_a_rare_group_of_a_large_table_is_kept(drawn, features):
    X, labels = clusters((2 * drawn, 100), features=features)
    order = np.random.default_rng(0).permutation(len(X))
    model = RobustNMF(2, random_state=0).fit(X[order])
    assert model.outliers_[labels[order] == 1].mean() <= 0.1


@pytest.mark.parametrize("kind", ["sparse", "float32", "missing", "kullback-leibler", "tensor"])
def test_clusters_survive_in_every_kind_of_table(kind):
    X, labels = clusters((40, 120, 240))
    loss = "frobenius"
    if kind == "sparse":
        X = scipy.sparse.csr_array(X)
    elif kind == "float32":
        X = X.astype(np.float32)
    elif kind == "missing":
        X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    elif kind == "tensor":
        X = pytest.importorskip("torch", reason="needs PyTorch").asarray(X)
    else:
        loss = kind
    model = RobustNMF(3, loss=loss, random_state=0).fit(X)
    found = np.bincount(labels, np.asarray(model.sample_importances_))
    np.testing.assert_allclose(found, [0.1, 0.3, 0.6], atol=0.02)


def test_the_objective_is_fixed_from_the_beginning():
    X, _ = clusters((40, 120, 240))
    model = RobustNMF(3, random_state=0).fit(X)
    history = model.objective_history_
    assert len(history) >= model.n_iter_ + 1
    assert np.all(np.diff(history) <= 1e-9 * history[0])


def test_rows_are_drawn_by_their_content(tmp_path):
    X = noisy(500)
    order = np.random.default_rng(0).permutation(500)
    np.save(tmp_path / "x.npy", X)
    engines = [
        InMemory(X), InMemory(X, block_rows=37), InMemory(X[order]),
        Stored(reader_of(tmp_path / "x.npy"), block_rows=50),
    ]  # fmt: skip
    drawn = [draw_rows(engine, 100) for engine in engines]
    rows = [sample.rows[np.argsort(sample.key)] for sample in drawn]
    for other in rows[1:]:
        np.testing.assert_array_equal(rows[0], other)
    assert [len(sample) for sample in drawn] == [100] * 4
    assert {sample.total for sample in drawn} == {500.0}


def test_copies_of_a_row_are_drawn_once(tmp_path):
    X = noisy(300)
    table = np.vstack([X, np.repeat(X[:1], 2000, axis=0)])
    table = table[np.random.default_rng(0).permutation(len(table))]
    np.save(tmp_path / "x.npy", table)
    engines = [
        InMemory(table), InMemory(table, block_rows=37), InMemory(scipy.sparse.csr_array(table)),
        Stored(reader_of(tmp_path / "x.npy"), block_rows=500),
    ]  # fmt: skip
    for engine in engines:
        sample = draw_rows(engine, 1000, distinct=True)
        assert len(sample) == 300
        assert sample.weight.max() == 2001
        assert sample.weight.sum() == sample.total == 2300
        few = draw_rows(engine, 100, distinct=True)
        assert len(few) == 100
        smallest = np.sort(sample.key)[:100]
        np.testing.assert_array_equal(np.sort(few.key), smallest)


@pytest.mark.parametrize("idle", [400, 1500, 6000])
@pytest.mark.parametrize("seed", [1, 2])
def test_noise_is_found_among_the_samples_of_a_machine_that_is_mostly_idle(idle, seed):
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.7, size=(300, 3)) @ rng.gamma(0.6, size=(3, 10))
    X += 0.03 * X.mean() * np.abs(rng.standard_normal(X.shape))
    table = np.vstack([X, np.tile(rng.random(10) * X.mean(axis=0), (idle, 1))])
    table[:40] = rng.random((40, 10)) * X.max(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutlierWarning)
        model = RobustNMF(4, random_state=0).fit(table)
    assert model.outliers_[:40].all()
    assert not model.outliers_[300:].any()
    assert model.outliers_[40:300].mean() < 0.05
    assert relative_error(model, table[40:], 4, X[40:]) < 1.5


def test_all_rows_that_count_are_drawn_in_their_order():
    X = noisy(50)
    X[7] = 0.0
    sample = draw_rows(InMemory(X, block_rows=8), 1000)
    np.testing.assert_array_equal(sample.rows, np.delete(X, 7, axis=0))


def sample_of(rows, weight=None):
    weight = np.ones(rows.shape[0]) if weight is None else np.asarray(weight, dtype=float)
    keys = draw_rows(InMemory(rows), rows.shape[0]).key
    return RowSample(rows, weight, keys, float(weight.sum()), rows.shape[0])


def test_repeated_rows_count_as_often_as_others_where_they_are_the_exception():
    X = noisy(60)
    X[:20] = X[0]
    weight = sample_of(X).without_repeats().weight
    np.testing.assert_allclose(weight[:20], 1 / 20)
    np.testing.assert_array_equal(weight[20:], 1.0)
    few = np.repeat(noisy(3), [10, 20, 30], axis=0)  # repeats are all there is
    np.testing.assert_array_equal(sample_of(few).without_repeats().weight, 1.0)


def filled(X, value, seed=0):
    """Half of the features of every sample, in a row, at one value."""
    first = np.random.default_rng(seed).integers(X.shape[1] // 2 + 1, size=len(X))
    features = np.arange(X.shape[1])
    covered = (features >= first[:, None]) & (features < first[:, None] + X.shape[1] // 2)
    return np.where(covered, value, X)


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_fill_values_are_found_unless_they_are_usual(kind):
    X = noisy(60)
    rejected = sample_of(kind(np.vstack([filled(noisy(5, seed=1), 9.0), noisy(5, seed=2)])))
    expected = [True] * 5 + [False] * 5
    np.testing.assert_array_equal(find_filled(rejected, sample_of(kind(X))), expected)
    yes_or_no = (np.median(X) < X).astype(float)
    assert not find_filled(rejected, sample_of(kind(yes_or_no))).any()


def test_different_values_that_fill_rows_are_no_fill_value():
    X = noisy(6, seed=1)
    rejected = sample_of(filled(X, (9.0 + np.arange(6.0))[:, None]))
    assert not find_filled(rejected, sample_of(noisy(60))).any()


def test_missing_values_and_zeros_are_no_fill_values():
    X = noisy(8)
    X[:4, ::2], X[4:, ::2] = np.nan, 0.0
    assert not find_filled(sample_of(X), sample_of(noisy(60))).any()


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_samples_with_a_fill_value_are_no_group(share):
    X = noisy(400)
    bad = np.random.default_rng(3).permutation(400)[: round(share * 400)]
    spoiled = X.copy()
    spoiled[bad] = filled(X[bad], X.max())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutlierWarning)
        model = RobustNMF(5, random_state=0).fit(spoiled)
    assert model.outliers_[bad].mean() > 0.95
    good = np.setdiff1d(np.arange(400), bad)
    assert model.outliers_[good].mean() < 0.05


def test_the_detector_keeps_clusters_at_a_rank_far_above_their_number():
    X, _ = clusters([50, 150, 300])
    assert (RobustNMFDetector(10, random_state=0).fit_predict(X) == -1).mean() <= 0.03


def test_new_directions_are_those_of_the_groups():
    X, _ = clusters((30, 30))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    basis = X[:1]
    codes = X @ basis.T
    found, amounts = new_directions(X, codes, np.ones(60), np.arange(60)[::-1], basis, 1)
    assert found.shape == (1, 20)
    assert amounts.shape == (60, 1)
    assert found[0] @ X[30:].mean(axis=0) > 0.9
    sparse, _ = new_directions(
        scipy.sparse.csr_array(X), codes, np.ones(60), np.arange(60)[::-1], basis, 1
    )
    np.testing.assert_allclose(sparse, found, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("samples", [8, 12, 16])
def test_very_few_samples_all_have_weight(samples, seed):
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.5, size=(samples, 2)) @ rng.gamma(0.5, size=(2, 6)) + 0.01
    X *= np.exp(0.05 * rng.standard_normal(X.shape))
    with pytest.warns(OutlierWarning, match=f"{samples} samples are too few"):
        model = RobustNMF(2, random_state=0).fit(X)
    assert not model.outliers_.any()
    assert relative_error(model, X, 2) <= 1.02


def test_one_sample_is_too_few():
    with pytest.warns(OutlierWarning, match="1 sample is too few"):
        RobustNMF(1).fit(np.ones((1, 5)))


@pytest.mark.parametrize("seed", range(6))
def test_forty_clean_samples_are_fitted_as_by_plain_nmf(seed):
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.5, size=(240, 2)) @ rng.gamma(0.5, size=(2, 6)) + 0.01
    X *= np.exp(0.05 * rng.standard_normal(X.shape))
    X, others = X[:40], X[40:]
    assert relative_error(RobustNMF(2, random_state=0).fit(X), X, 2, others) <= 1.15


def test_few_bad_samples_among_thirty_are_found():
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(30, 2)) @ rng.gamma(0.5, size=(2, 12)) + 0.01
    X *= np.exp(0.05 * rng.standard_normal(X.shape))
    X[:3] = 2 * X.max() * rng.random((3, 12))
    np.testing.assert_array_equal(
        np.flatnonzero(RobustNMF(2, random_state=0).fit(X).outliers_), [0, 1, 2]
    )


def test_weights_that_add_up_to_one_are_no_single_sample():
    X, _ = clusters((160, 40))
    X[:10] = X.max() * np.random.default_rng(0).random((10, X.shape[1]))
    plain, weighted = (
        RobustNMF(2, random_state=0).fit(X, sample_weight=weight)
        for weight in (None, np.full(200, 1 / 200))
    )
    np.testing.assert_array_equal(weighted.outliers_, plain.outliers_)
    assert plain.outliers_[:10].all()


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_different_rows_with_the_same_key_stay_apart(kind):
    rows = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [0.0, 3.0], [2.0, 1.0]])
    key = np.array([0.5, 0.5, 0.5, 0.25, 0.5])
    sample = RowSample(kind(rows), np.ones(5), key, 5.0, 10)
    distinct, place = sample.distinct()
    found = distinct.rows.toarray() if scipy.sparse.issparse(distinct.rows) else distinct.rows
    np.testing.assert_array_equal(found[place], rows)
    np.testing.assert_array_equal(np.sort(distinct.weight), [1.0, 2.0, 2.0])


def test_a_majority_that_alternates_between_two_groups_has_cutoffs():
    """Twenty-four samples, ten of them half covered: energies jump in the last passes."""
    data = draw_samples(Scenario("few_clusters", "occluded", 0.4, 5))
    model = RobustNMF(data.rank, random_state=0).fit(data.dirty)
    assert model.outliers_.mean() <= 0.5


def test_a_majority_covers_half_of_the_samples_whatever_their_energies():
    """All energies are far beyond the cutoffs of the fit, and beyond what histograms count."""
    energies, ones = np.linspace(1e30, 2e30, 40), np.ones(40)
    fitted = SimpleNamespace(penalised_energies=energies, weighting=Trimmed(1.0, 1.0, 8.0, 0.0))
    majority = Majority(fitted, ones, ones, 1.0)
    assert majority.accepted.sum() >= 20


def test_rows_of_a_large_table_decide_as_if_drawn_from_all_of_it():
    """Rejected rows are drawn again, more of them than of the others; that must not weigh them."""
    rng = np.random.default_rng(2)
    shares = [0.5, 0.25, 0.12, 0.06, 0.03, 0.02, 0.015, 0.005]
    labels = rng.choice(8, 10_000, p=shares)
    clusters = np.kron(np.eye(8), np.ones(10)) * rng.gamma(2.0, 0.5, size=(8, 80))
    sizes, noise = rng.gamma(9.0, 1 / 9, size=(10_000, 1)), rng.standard_normal((10_000, 80))
    model = RobustNMF(8, random_state=0).fit(clusters[labels] * sizes * np.exp(0.1 * noise))
    assert model.outliers_.mean() < 0.01


def group_of_its_own(seed, count=10):
    """A clean table in which a few samples have a component of their own."""
    rng = np.random.default_rng(seed)
    components, own = rng.gamma(2, 1, (3, 15)), rng.gamma(2, 2, (1, 15))
    X = rng.gamma(2, 1, (200, 3)) @ components
    X[:count] = rng.uniform(3, 10, (count, 1)) * own
    return np.maximum(X * (1 + 0.03 * rng.standard_normal(X.shape)), 0)


@pytest.mark.parametrize("seed", [1000, 1001, 1002])
def test_a_group_is_not_lost_without_a_warning(seed):
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        model = RobustNMF(4, random_state=0).fit(group_of_its_own(seed))
    is_reported = any("resemble each other" in str(record.message) for record in records)
    assert is_reported or not model.outliers_[:10].any()


def test_many_outliers_of_a_fit_without_screening_are_counted_in_samples():
    X = noisy()
    X[:90] = 3 * np.random.default_rng(0).random((90, 40))
    for weights in (None, np.full(300, 1 / 300)):
        with pytest.warns(OutlierWarning, match=r"left out \d\d+ of 300 samples"):
            RobustNMF(5, alpha_W=1e-3, random_state=0).fit(X, sample_weight=weights)
