"""Bad entries: found, ignored, repaired; and good tables stay as they are."""

import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import robustnmf
from robustnmf import HuberLoss, RobustNMF, TruncatedLoss, select_rank
from robustnmf.arrays import weighted_quantiles
from robustnmf.engine import memory
from robustnmf.exceptions import OutlierWarning
from robustnmf.experiments.contamination.scenario import Scenario, draw_entries
from robustnmf.metrics import squared_errors
from robustnmf.solvers import nonnegative_least_squares


def spoiled(share=0.05, n=200, m=24, seed=0, factor=8.0):
    """A table of three parts with noise, the same with bad entries, and their mask."""
    rng = np.random.default_rng(seed)
    clean = rng.gamma(1.0, size=(n, 3)) @ rng.gamma(1.0, size=(3, m))
    clean *= np.exp(0.02 * rng.standard_normal(clean.shape))
    bad = rng.random(clean.shape) < share
    return clean, np.where(bad, factor * clean.max() * rng.random(clean.shape), clean), bad


def fitted(X, loss="truncated", **options):
    return RobustNMF(3, loss=loss, **{"random_state": 0} | options).fit(X)


@cache
def shared_fit(share=0.05, loss="truncated"):
    """A table with this share of bad entries, and a model that several tests look at."""
    dirty = spoiled(share)[1]
    return dirty, fitted(dirty, loss)


sharing = pytest.mark.xdist_group("fits to bad entries")


@pytest.mark.parametrize("weighting", ["uniform", "l21", "trimmed"])
@pytest.mark.parametrize("share", [0.05, 0.2])
def test_bad_entries_are_found_and_repaired(share, weighting):
    clean, dirty, bad = spoiled(share)
    model = fitted(dirty, weighting=weighting)
    weights = model.entry_weights(dirty)
    gross = bad & (np.abs(dirty - clean) > 0.5 * clean.max())
    assert (weights[gross] < 0.1).mean() > 0.99
    assert (weights[~bad] > 0.5).mean() > 0.95
    repaired = model.inverse_transform(model.transform(dirty))
    errors = np.abs(repaired - clean) / clean.std()
    assert np.median(errors[gross]) < 0.05


def test_a_large_feature_of_zeros_and_ones_is_kept():
    rng = np.random.default_rng(0)
    others = rng.gamma(1.0, 0.1, size=(168, 2)) @ rng.gamma(1.0, size=(2, 4))
    others += 0.01 * rng.random((168, 4))
    X = np.column_stack([others, rng.random(168) < 0.3])
    model = RobustNMF(2, loss="truncated", random_state=0).fit(X)
    assert model.entry_weights(X)[:, 4].all()


@pytest.mark.parametrize("seed", [1, 2])
def test_working_samples_are_kept_if_a_machine_is_mostly_idle(seed):
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.7, size=(300, 3)) @ rng.gamma(0.6, size=(3, 10))
    X += 0.03 * X.mean() * np.abs(rng.standard_normal(X.shape))
    table = np.vstack([X, np.tile(rng.random(10) * X.mean(axis=0), (1200, 1))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutlierWarning)
        model = RobustNMF(4, loss="truncated", random_state=0).fit(table)
    plain = RobustNMF(4, weighting="uniform", random_state=0).fit(table)
    errors = [squared_errors(X, m.components_).sum() for m in (model, plain)]
    assert errors[0] < 1.5 * errors[1]
    assert model.outliers_[:300].mean() < 0.05


def test_clean_tables_keep_their_weights_and_parts():
    clean, _, _ = spoiled()
    seen, unseen = clean[:100], clean[100:]
    model, plain = fitted(seen), fitted(seen, "frobenius", weighting="uniform")
    assert (model.entry_weights(seen) < 0.1).mean() < 0.01
    errors = []
    for basis in (model.components_, plain.components_):
        codes = nonnegative_least_squares(unseen @ basis.T, basis @ basis.T)
        errors.append(((unseen - codes @ basis) ** 2).sum())
    assert errors[0] <= 1.02 * errors[1]


def test_clusters_are_not_taken_for_bad_entries():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [50, 150, 300])
    parts = np.kron(np.eye(3), 0.5 + rng.random((1, 10)))
    X = (0.5 + rng.random((500, 1))) * parts[labels] * np.exp(0.1 * rng.standard_normal((500, 30)))
    model = fitted(X)
    shares = [model.sample_importances_[labels == label].sum() for label in range(3)]
    np.testing.assert_allclose(shares, [0.1, 0.3, 0.6], atol=0.02)
    assert (model.entry_weights(X) < 0.1).mean() < 0.02


def test_small_clusters_with_all_features_keep_all_entries():
    rng = np.random.default_rng(1)
    labels = np.repeat(np.arange(7), [180, 120, 90, 72, 60, 48, 30])
    parts = rng.gamma(0.5, size=(7, 40))
    X = (0.5 + rng.random((600, 1))) * parts[labels] * np.exp(0.2 * rng.standard_normal((600, 40)))
    assert RobustNMF(7, loss="truncated", random_state=0).fit(X).entry_weights(X).all()


def test_small_clusters_are_found_beside_wrong_entries():
    data = draw_entries(Scenario("mixed_clusters", "large", 0.05, 0))
    model = RobustNMF(data.rank, loss="truncated", random_state=0).fit(data.dirty)
    plain = RobustNMF(data.rank, weighting="uniform", random_state=0).fit(data.clean)
    ours, best = (squared_errors(data.held_back, m.components_).sum() for m in (model, plain))
    assert ours < 1.1 * best


@sharing
def test_the_objective_is_fixed_and_never_rises():
    for loss in ("truncated", "huber"):
        history = shared_fit(0.1, loss)[1].objective_history_
        assert np.all(np.diff(history) <= 1e-9 * history[0])


def test_new_rows_are_repaired_one_by_one():
    clean, dirty, _ = spoiled(0.1)
    model = fitted(dirty[:150])
    codes = model.transform(dirty[150:])
    np.testing.assert_allclose(codes[7], model.transform(dirty[157:158])[0], rtol=1e-6, atol=1e-9)
    errors = np.abs(model.inverse_transform(codes) - clean[150:]) / clean.std()
    assert np.median(errors) < 0.05


def test_missing_values_and_bad_entries_together():
    clean, dirty, bad = spoiled(0.1)
    unknown = np.random.default_rng(1).random(dirty.shape) < 0.1
    dirty[unknown] = np.nan
    model = fitted(dirty)
    weights = model.entry_weights(dirty)
    assert np.array_equal(np.isnan(weights), unknown)
    gross = bad & ~unknown & (np.abs(dirty - clean) > 0.5 * clean.max())
    assert (weights[gross] < 0.1).mean() > 0.99
    repaired = model.inverse_transform(model.transform(dirty))
    assert np.median(np.abs(repaired - clean)[unknown]) < 0.05 * clean.std()


@sharing
def test_units_of_x_do_not_matter():
    dirty, one = shared_fit(0.1)
    other = fitted(1024 * dirty)
    np.testing.assert_allclose(other.loss_.cutoff, 1024 * one.loss_.cutoff, rtol=1e-6)
    np.testing.assert_allclose(
        other.inverse_transform(other.transform(1024 * dirty)),
        1024 * one.inverse_transform(one.transform(dirty)), rtol=1e-4, atol=1e-3,
    )  # fmt: skip


@pytest.mark.parametrize("unit", [1.3, 1.4, 1.9])
def test_any_unit_gives_the_same_bad_entries(unit):
    table = load_breast_cancer().data[:200]
    one, other = (
        RobustNMF(3, loss="truncated", random_state=0)
        .fit(factor * table)
        .entry_weights(factor * table)
        for factor in (1.0, unit)
    )
    assert np.mean(one != other) < 1e-3


def test_weights_of_samples_count_as_repetitions():
    _, dirty, _ = spoiled(0.1, n=60)
    weight = np.random.default_rng(0).integers(0, 3, len(dirty))
    weighted = RobustNMF(3, loss="truncated", random_state=0).fit(dirty, sample_weight=weight)
    repeated = fitted(np.repeat(dirty, weight, axis=0))
    np.testing.assert_allclose(weighted.loss_.cutoff, repeated.loss_.cutoff, rtol=1e-6)
    np.testing.assert_allclose(weighted.components_, repeated.components_, rtol=1e-4, atol=1e-4)


@sharing
def test_files_and_dask_agree_with_memory(tmp_path):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    dirty, memory = shared_fit(0.1)
    path = tmp_path / "table.npy"
    np.save(path, dirty)
    for X in (path, da.from_array(dirty, chunks=(64, -1))):
        model = fitted(X)
        np.testing.assert_allclose(model.components_, memory.components_, rtol=1e-8, atol=1e-10)
        weights = np.asarray(model.entry_weights(X))
        np.testing.assert_allclose(weights, memory.entry_weights(dirty), rtol=1e-6, atol=1e-8)


@pytest.mark.extra
def test_torch_agrees_with_numpy():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    _, dirty, _ = spoiled(0.1)
    memory, model = fitted(dirty), fitted(torch.as_tensor(dirty))
    np.testing.assert_allclose(np.asarray(model.components_), memory.components_, rtol=1e-8,
                               atol=1e-10)  # fmt: skip
    weights = np.asarray(model.entry_weights(torch.as_tensor(dirty)))
    np.testing.assert_allclose(weights, memory.entry_weights(dirty), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("cutoff", [0.5, [0.5] * 24], ids=["number", "by feature"])
def test_cutoffs_may_be_given_and_models_saved(cutoff, tmp_path):
    _, dirty, _ = spoiled(0.05)
    model = fitted(dirty, TruncatedLoss(cutoff))
    np.testing.assert_allclose(model.loss_.cutoff, 0.5)
    path = tmp_path / "model.rnmf"
    model.save(path)
    again = robustnmf.load(path)
    assert np.array_equal(again.entry_weights(dirty), model.entry_weights(dirty))


@sharing
@pytest.mark.parametrize("loss", ["huber", "truncated"])
def test_a_saved_model_keeps_automatic_cutoffs_and_usual_values(loss, tmp_path):
    dirty, model = shared_fit(loss=loss)
    if loss == "truncated":
        assert np.asarray(model.loss_.usual).shape == (2, dirty.shape[1])
    model.save(tmp_path / "model.rnmf")
    again = robustnmf.load(tmp_path / "model.rnmf")
    assert np.array_equal(again.loss_.cutoff, model.loss_.cutoff)
    assert np.array_equal(again.transform(dirty), model.transform(dirty))
    np.testing.assert_array_equal(again.entry_weights(dirty), model.entry_weights(dirty))


def test_entry_weights_need_parts_that_weigh_entries():
    clean, _, _ = spoiled()
    with pytest.raises(AttributeError) as failure:
        fitted(clean, "frobenius").entry_weights(clean)
    assert "loss='truncated'" in str(failure.value.__cause__)
    weights = RobustNMF(3, weighting="huber", random_state=0).fit(clean).entry_weights(clean)
    assert weights.shape == clean.shape
    assert weights.max() <= 1.0


def test_sparse_x_is_refused_with_the_reason():
    import scipy.sparse

    with pytest.raises(ValueError, match="zeros that sparse X"):
        fitted(scipy.sparse.csr_array(np.where(spoiled()[0] > 1, spoiled()[0], 0.0)))
    with pytest.raises(ValueError, match="both give every entry its own weight"):
        RobustNMF(3, loss=HuberLoss(), weighting="huber").fit(spoiled()[0])


def test_the_rank_is_found_in_spite_of_bad_entries():
    _, dirty, _ = spoiled(0.05, n=120)
    selection = select_rank(
        dirty, [1, 2, 3, 4], loss="truncated", weighting="uniform", n_folds=2, random_state=0
    )
    assert selection.best == 3


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_the_default_says_where_entries_are_bad(share):
    clean, dirty, _ = spoiled(share)
    with pytest.warns(OutlierWarning, match="loss='truncated'"):
        RobustNMF(3, random_state=0).fit(dirty)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OutlierWarning)
        RobustNMF(3, random_state=0).fit(clean)
        clean[:20] = 5 * clean.max() * np.random.default_rng(0).random(clean[:20].shape)
        RobustNMF(3, random_state=0).fit(clean)  # bad samples, not entries


@pytest.mark.filterwarnings("ignore", category=OutlierWarning)
def test_few_samples_are_fitted_with_all_their_entries():
    _, dirty, _ = spoiled(0.05, n=12)
    model = fitted(dirty)
    assert model.entry_weights(dirty).min() > 0.9


def test_weighted_quantiles():
    rng = np.random.default_rng(0)
    table, weight = rng.random((9, 4)), rng.integers(1, 4, 9)
    repeated = np.repeat(table, weight, axis=0)
    ones = np.ones(len(repeated))
    for share in (0.25, 0.5, 0.6):
        found = weighted_quantiles(table, weight, share)
        assert np.array_equal(found, weighted_quantiles(repeated, ones, share))
    np.testing.assert_allclose(weighted_quantiles(table, np.ones(9)), np.median(table, axis=0))
    table[:, 2] = np.nan
    assert weighted_quantiles(table, weight)[2] == 0.0


def with_noise_rows(seed=0, n=100, rank=4, m=20, count=6):
    """A table of a low rank with a little noise, some of its rows replaced by noise, and which."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.5, size=(n, rank)) @ rng.gamma(0.5, size=(rank, m))
    X += 0.01 * rng.random(X.shape)
    bad = np.zeros(n, dtype=bool)
    bad[rng.choice(n, count, replace=False)] = True
    X[bad] = 4 * X.mean() * rng.random((count, m))
    return X, bad


@pytest.mark.parametrize("cutoff", ["auto", 0.05])
@pytest.mark.parametrize(
    "start",
    [{}, {"init": "random"}, {"init": "random", "n_init": 3}, {"init": "nndsvda"}],
    ids=str,
)
def test_bad_rows_shape_no_start(start, cutoff):
    X, bad = with_noise_rows()
    model = RobustNMF(4, loss=TruncatedLoss(cutoff), random_state=0, **start)
    residuals = X - model.fit_transform(X) @ model.components_
    assert np.linalg.norm(residuals[~bad]) < 0.01 * np.linalg.norm(X[~bad])


@pytest.mark.parametrize(
    "loss", ["truncated", "huber", TruncatedLoss(5.0), HuberLoss(0.5)], ids=str
)
def test_outliers_are_found_under_losses_that_bad_entries_cannot_raise(loss):
    for seed in range(4):
        X, bad = with_noise_rows(seed, n=200, count=10)
        np.testing.assert_array_equal(RobustNMF(4, loss=loss).fit(X).outliers_, bad)


@sharing
@pytest.mark.parametrize("loss", ["truncated", "huber"])
def test_a_few_gross_entries_make_no_row_an_outlier(loss):
    assert shared_fit(loss=loss)[1].outliers_.mean() <= 0.02


@pytest.mark.parametrize("loss", [TruncatedLoss(1e6), HuberLoss(1e6)], ids=str)
def test_the_reconstruction_error_is_the_norm_where_residuals_are_small(loss):
    clean, _, _ = spoiled()
    model = RobustNMF(3, loss=loss, random_state=0)
    residuals = clean - model.fit_transform(clean) @ model.components_
    assert model.reconstruction_err_ == pytest.approx(np.linalg.norm(residuals), rel=1e-6)


def test_good_entries_of_features_that_nothing_predicts_stay():
    """A rare feature of its own: its entries do not fit two components, and are good."""
    rng = np.random.default_rng(0)
    X = rng.random((300, 2)) @ rng.random((2, 6))
    X = np.column_stack([X / X.max(axis=0), rng.random(300) < 0.2])
    weights = RobustNMF(2, loss="truncated", random_state=0).fit(X).entry_weights(X)
    assert (weights[:, -1] > 0.9).all()


def warnings_of(X, rank):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        RobustNMF(rank, random_state=0).fit(X)
    return " ".join(str(warning.message) for warning in caught)


def test_users_are_warned_of_scattered_bad_entries_although_their_samples_are_left_out():
    """With eight features, every fifth sample has a bad entry; most of these are outliers."""
    rng = np.random.default_rng(0)
    clean = rng.gamma(2.0, size=(300, 2)) @ rng.gamma(2.0, size=(2, 8))
    clean *= np.exp(0.05 * rng.standard_normal(clean.shape))
    assert "far above" not in warnings_of(clean, 2)
    bad = rng.random(clean.shape) < 0.03
    dirty = np.where(bad, clean.max() * rng.uniform(1, 5, clean.shape), clean)
    assert "loss='truncated'" in warnings_of(dirty, 2)
    noise = np.where(rng.random((300, 1)) < 0.1, 3 * clean.max() * rng.random(clean.shape), clean)
    assert "far above" not in warnings_of(noise, 2)


@sharing
def test_drawn_rows_may_be_several_blocks(monkeypatch):
    X, expected = shared_fit()
    monkeypatch.setattr(memory, "BLOCK_BYTES", X.nbytes // 3)
    monkeypatch.setattr(memory, "WORTH_A_BLOCK", 1)
    np.testing.assert_allclose(fitted(X).components_, expected.components_, rtol=1e-6)
