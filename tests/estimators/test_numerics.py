"""Finite, correct results for every size, shape and dtype that X may have."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from robustnmf import EWRNMF, Alpha, Beta, EucNMF, HuberRNMF, RobustNMF, WeightCollapseWarning
from robustnmf.estimators import ESTIMATORS
from robustnmf.losses import LOSSES
from robustnmf.structures import STRUCTURES
from tests.problems import PAIRS, law_over, noisy_low_rank

every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def quiet(model, X):
    """Fit without the two warnings that degenerate data rightly cause."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", WeightCollapseWarning)
        codes = model.fit_transform(X)
    return codes


def assert_sound(model, codes, X):
    arrays = (
        codes,
        model.components_,
        model.energies_,
        model.sample_importances_,
        model.objective_history_,
        model.transform(X),
        model.score_samples(X),
    )
    for array in arrays:
        assert np.all(np.isfinite(array))
    assert codes.min() >= 0
    assert model.components_.min() >= 0
    assert model.energies_.min() >= 0
    assert model.sample_importances_.sum() == pytest.approx(1.0)
    residual = ((X.astype(float) - codes.astype(float) @ model.components_) ** 2).sum(axis=1)
    norms = (X.astype(float) ** 2).sum(axis=1)
    slack = 8 * np.finfo(codes.dtype).eps
    np.testing.assert_allclose(model.energies_, residual, rtol=1e-3, atol=slack * norms.max())


@every_estimator
@pytest.mark.parametrize("scale", [1e-60, 1e-20, 1e20, 1e60])
def test_tiny_and_huge_data_give_the_same_fit(name, scale):
    X = noisy_low_rank(30, 8, 3)
    parameters = {"n_components": 3, "random_state": 0, "max_iter": 30, "tol": 0}
    estimator = ESTIMATORS[name](**parameters)
    scaled = ESTIMATORS[name](**parameters)
    if hasattr(scaled, "cutoff"):
        scaled.set_params(cutoff=scaled.cutoff * scale)
    codes, other = quiet(estimator, X), quiet(scaled, X * scale)
    assert_sound(scaled, other, X * scale)
    product, scaled_product = codes @ estimator.components_, other @ scaled.components_ / scale
    np.testing.assert_allclose(scaled_product, product, rtol=1e-6, atol=1e-6 * product.max())
    np.testing.assert_allclose(
        scaled.sample_importances_, estimator.sample_importances_, rtol=1e-4, atol=1e-9
    )


@pytest.mark.parametrize("scale", [1e-6, 3.0, 2.0**-10])
@pytest.mark.parametrize("options", [{}, {"init": "random"}, {"loss": "kullback-leibler"}], ids=str)
def test_components_in_other_units_have_one_common_factor(options, scale):
    """Which the codes are divided by; it is one for powers of two."""
    X = noisy_low_rank(40, 8, 3)
    models = [RobustNMF(3, random_state=0, **options) for _ in range(2)]
    codes, scaled_codes = (quiet(m, data) for m, data in zip(models, (X, scale * X), strict=True))
    components, scaled = (model.components_ for model in models)
    factor = scaled.sum() / (scale * components.sum())
    assert factor == 1.0 if scale == 2.0**-10 else 0.7 < factor < 1.5
    np.testing.assert_allclose(scaled, factor * scale * components, rtol=1e-6, atol=1e-9 * scale)
    np.testing.assert_allclose(scaled_codes, codes / factor, rtol=1e-6, atol=1e-9)


@every_estimator
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_float32_in_gives_float32_out(name, scale):
    X = (noisy_low_rank(30, 8, 3) * scale).astype(np.float32)
    model = ESTIMATORS[name](3, random_state=0, max_iter=30)
    if hasattr(model, "cutoff"):
        model.set_params(cutoff=scale)
    codes = quiet(model, X)
    assert codes.dtype == model.components_.dtype == model.transform(X).dtype == np.float32
    assert_sound(model, codes, X)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("options", [{}, {"weighting": "uniform"}, {"weighting": "entropy"},
                                     {"loss": "kullback-leibler"}])  # fmt: skip
def test_float32_codes_of_a_fit_are_those_of_transform(options, seed):
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.5, size=(90, 4)) @ rng.gamma(0.5, size=(4, 24)) + 0.3 * rng.random((90, 24))
    model = RobustNMF(4, random_state=0, **options)
    codes = model.fit_transform(X.astype(np.float32))
    again = model.transform(X.astype(np.float32))
    assert np.abs(codes - again).max() < 4e-7 * codes.max()


@every_estimator
def test_float32_follows_float64(name):
    X = noisy_low_rank(30, 8, 3).astype(np.float32)
    products = []
    for dtype in (np.float32, np.float64):
        model = ESTIMATORS[name](3, random_state=0, max_iter=20, tol=0)
        products.append(quiet(model, X.astype(dtype)) @ model.components_)
    np.testing.assert_allclose(*products, rtol=2e-3, atol=2e-3 * X.max())


DEGENERATE = {
    "zeros": np.zeros((6, 4)),
    "constant": np.full((6, 4), 3.0),
    "one sample": np.array([[1.0, 2.0, 0.5]]),
    "one feature": np.arange(1.0, 7.0)[:, None],
    "one entry": np.array([[2.0]]),
    "zero rows": np.vstack([np.zeros((2, 4)), np.arange(1.0, 17.0).reshape(4, 4)]),
    "zero columns": np.hstack([np.zeros((6, 2)), np.arange(1.0, 13.0).reshape(6, 2)]),
    "duplicate rows": np.tile(np.array([[1.0, 2.0, 3.0], [0.0, 5.0, 1.0]]), (5, 1)),
    "one nonzero": np.pad([[7.0]], ((2, 3), (1, 2))),
    "identity": np.eye(5),
    "one huge entry": np.pad([[1e12]], ((0, 5), (0, 3)), constant_values=1.0),
    "integers": np.arange(1, 25).reshape(6, 4),
}


@law_over("name, data, rank", itertools.product(ESTIMATORS, DEGENERATE, ("one", "full")))
def test_degenerate_data_give_finite_answers(name, data, rank):
    X = DEGENERATE[data]
    k = 1 if rank == "one" else min(X.shape)
    model = ESTIMATORS[name](k, random_state=0, max_iter=50)
    assert_sound(model, quiet(model, X), X)


@pytest.mark.parametrize("data", ["constant", "one sample", "duplicate rows", "zero columns"])
@every_estimator
def test_exactly_low_rank_data_are_fitted(name, data):
    X = DEGENERATE[data]
    k = np.linalg.matrix_rank(X)
    model = ESTIMATORS[name](k, random_state=0, max_iter=300, tol=1e-5)
    if hasattr(model, "cutoff"):
        model.set_params(cutoff=10.0)
    quiet(model, X)
    # Adaptive weights may settle on a part of the samples; what counts must be fitted.
    norms = (X**2).sum(axis=1)
    assert model.sample_importances_ @ model.energies_ <= 0.05**2 * norms.mean()


@every_estimator
def test_zero_rows_change_nothing_for_the_others(name):
    X = noisy_low_rank(30, 8, 3)
    with_zeros = np.insert(X, [0, 10, 30], 0.0, axis=0)
    kept = np.flatnonzero(with_zeros.any(axis=1))
    rng = np.random.default_rng(0)
    W, H = rng.random((33, 3)) + 0.1, rng.random((3, 8)) + 0.1
    mixing = rng.random((3, 33)) + 0.1
    common = {"n_components": 3, "init": "custom", "max_iter": 20, "tol": 0}
    plain, padded = ESTIMATORS[name](**common), ESTIMATORS[name](**common)
    convex = name == "ConvexNMF"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeightCollapseWarning)
        codes = plain.fit_transform(X, W=W[kept], H=mixing[:, kept] if convex else H)
        other = padded.fit_transform(with_zeros, W=W, H=mixing if convex else H)
    np.testing.assert_allclose(other[kept], codes, rtol=1e-9)
    np.testing.assert_allclose(padded.components_, plain.components_, rtol=1e-9)
    np.testing.assert_allclose(padded.sample_importances_[kept], plain.sample_importances_)
    np.testing.assert_array_equal(np.delete(other, kept, axis=0), 0)
    np.testing.assert_array_equal(np.delete(padded.sample_importances_, kept), 0)


@settings(max_examples=150, deadline=None)
@given(
    n=st.integers(1, 12),
    m=st.integers(1, 9),
    k=st.integers(1, 6),
    seed=st.integers(0, 2**31),
    exponent=st.integers(-60, 60),
    sparsity=st.floats(0, 1),
    dtype=st.sampled_from(["float64", "float32", "int64"]),
    structure=st.sampled_from(sorted(STRUCTURES)),
    loss_and_weighting=st.sampled_from(sorted(PAIRS)),
)
def test_any_shape_scale_and_dtype(
    n, m, k, seed, exponent, sparsity, dtype, structure, loss_and_weighting
):
    loss, weighting = loss_and_weighting
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.0, size=(n, m)) * (rng.random((n, m)) >= sparsity)
    if dtype == "int64":
        X = (9 * X).astype(dtype)
    else:
        X = (X * 10.0 ** (exponent if dtype == "float64" else exponent // 2)).astype(dtype)
    if not LOSSES[loss]().takes_zeros:
        X = X + X.dtype.type(X.max() if X.max() > 0 else 1)
    model = RobustNMF(
        k,
        weighting=weighting,
        structure=structure,
        loss=loss,
        init="random",
        random_state=0,
        max_iter=20,
    )
    codes = quiet(model, X)
    assert np.all(np.isfinite(codes))
    assert np.all(np.isfinite(model.components_))
    assert np.all(np.isfinite(model.energies_))
    assert model.sample_importances_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("init", ["robust", "nndsvda", "random"])
@pytest.mark.parametrize("shape", [(60, 5), (5, 60)])
def test_a_rank_above_the_number_of_features_or_samples_is_as_good_as_scikit_learns(init, shape):
    X = noisy_low_rank(*shape, 3)
    model = RobustNMF(8, weighting="uniform", init=init, random_state=0)
    codes = quiet(model, X)
    assert_sound(model, codes, X)
    assert codes.shape == (shape[0], 8)
    assert np.all(model.components_.max(axis=1) > 0)
    reference = NMF(8, max_iter=1000, random_state=0).fit(X).reconstruction_err_
    assert model.reconstruction_err_ <= reference + 1e-3 * np.linalg.norm(X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("init", ["robust", "random"])
def test_codes_stay_bounded_where_components_are_more_than_x_needs(init, seed, dtype):
    X = np.random.default_rng(seed).random((30, 1)).astype(dtype)
    model = RobustNMF(3, init=init, random_state=seed)
    codes = quiet(model, X)
    for table in (codes, model.transform(X), model.partial_fit(X).transform(X)):
        assert table.max() < 100
        np.testing.assert_allclose(
            table @ model.components_, X, rtol=1e-3 if dtype == np.float32 else 1e-9
        )


def test_sizes_that_penalties_and_known_components_determine_stay():
    X = np.random.default_rng(0).random((30, 2))
    known = np.array([[1.0, 1.0], [1e-12, 2e-12]])
    model = RobustNMF(4, fixed_components=known, random_state=0).fit(X)
    np.testing.assert_array_equal(model.components_[:2], known)
    model = RobustNMF(4, alpha_H=1.0, weighting="uniform", random_state=0).fit(X)
    assert model.components_.max() < 1.0


def test_a_rank_above_the_number_of_samples_is_allowed_from_a_random_start():
    X = noisy_low_rank(5, 8, 3)
    model = EucNMF(7, random_state=0, max_iter=50)
    assert_sound(model, quiet(model, X), X)


DIVERGENCES = ["kullback-leibler", "itakura-saito", Beta(1.5), Beta(0.5), Alpha(0.5), Alpha(-1.0)]


def error_of_good_samples(X, huge, loss, container=np.asarray):
    """Mean error of the other samples after one entry has been replaced by a huge one."""
    spoiled = X.copy()
    spoiled[7, 3] = huge
    model = RobustNMF(3, loss=loss, random_state=0)
    approximation = quiet(model, container(spoiled)).astype(float) @ model.components_
    assert model.outliers_[7]
    return np.abs(np.delete(approximation - X, 7, axis=0)).mean()


@pytest.mark.parametrize("loss", DIVERGENCES, ids=str)
def test_one_huge_entry_does_not_matter_to_divergences(loss):
    X = 0.1 + noisy_low_rank(80, 12, 3, noise=0.05)
    usual = error_of_good_samples(X, 1e3, loss)
    for huge in (1e40, 1e140):
        assert error_of_good_samples(X, huge, loss) == pytest.approx(usual, rel=0.05)


@pytest.mark.parametrize(
    "loss",
    [*DIVERGENCES[:2], *(pytest.param(loss, marks=pytest.mark.extra) for loss in DIVERGENCES[2:])],
    ids=str,
)
def test_one_huge_entry_does_not_matter_to_divergences_in_float32(loss):
    X = (0.1 + noisy_low_rank(80, 12, 3, noise=0.05)).astype(np.float32)
    usual = error_of_good_samples(X, 1e3, loss)
    assert error_of_good_samples(X, 1e20, loss) == pytest.approx(usual, rel=0.05)


def test_one_huge_entry_of_sparse_data_does_not_matter():
    X = noisy_low_rank(200, 20, 3, noise=0.05) * (np.random.default_rng(0).random((200, 20)) < 0.7)
    usual, error = (
        error_of_good_samples(X, huge, "kullback-leibler", scipy.sparse.csr_array)
        for huge in (1e3, 1e60)
    )
    assert error == pytest.approx(usual, rel=0.05)


def test_entries_too_far_apart_for_float32_are_refused():
    X = (0.1 + noisy_low_rank(200, 20, 3)).astype(np.float32)
    X[7, 3] = 1e30
    with pytest.raises(ValueError, match=r"about 1e\+30, .* or give X as float64"):
        RobustNMF(3, loss="kullback-leibler").fit(X)


def test_values_whose_powers_leave_the_range_of_floats_are_refused():
    X = 0.1 + noisy_low_rank(30, 8, 3)
    X[7, 3] = 1e140
    with pytest.raises(
        ValueError, match=r"raises it to the power 3, .* between 1e-100 and 1e\+100"
    ):
        RobustNMF(3, loss=Beta(3.0)).fit(X)


def test_outliers_are_down_weighted():
    X = noisy_low_rank(200, 20, 3, noise=0.1, outliers=20)
    model = EWRNMF(3, random_state=0).fit(X)
    assert model.sample_importances_[:20].sum() < 0.01
    assert model.energies_[:20].min() > np.median(model.energies_[20:])


@pytest.mark.parametrize("imbalance", [1e20, 1e-25])
def test_factors_of_very_different_size_are_balanced(imbalance):
    X = noisy_low_rank(30, 8, 3).astype(np.float32)
    rng = np.random.default_rng(0)
    W, H = rng.random((30, 3)) + 0.1, rng.random((3, 8)) + 0.1
    model, other = (EucNMF(3, init="custom", tol=0, max_iter=50) for _ in range(2))
    product = model.fit_transform(X, W=W, H=H) @ model.components_
    codes = other.fit_transform(X, W=W * imbalance, H=H / imbalance)
    np.testing.assert_allclose(codes @ other.components_, product, rtol=1e-3)
    assert 1e-3 < np.median(codes) / (imbalance * np.median(W)) < 1e3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_huge_cutoff_is_plain_nmf_and_a_tiny_one_is_finite(dtype):
    X = noisy_low_rank(30, 8, 3).astype(dtype)
    X[3], X[:, 2] = 0, 0
    parameters = {"n_components": 3, "random_state": 0, "tol": 0, "max_iter": 50}
    plain = EucNMF(**parameters).fit(X)
    huge = HuberRNMF(cutoff=1e300, **parameters).fit(X)
    np.testing.assert_allclose(huge.components_, plain.components_, rtol=1e-2, atol=1e-3)
    tiny = HuberRNMF(cutoff=1e-300, **parameters).fit(X)
    assert tiny.reconstruction_err_ < np.linalg.norm(X)


def test_components_beyond_the_rank_of_the_data_start_apart():
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(40, 2)) @ rng.gamma(1.0, size=(2, 9))
    model = RobustNMF(5, weighting="uniform")
    quiet(model, X)
    distances = np.abs(model.components_[:, None] - model.components_[None]).max(axis=2)
    assert distances[np.triu_indices(5, 1)].min() > 1e-3


def test_a_float32_row_has_the_same_codes_whatever_its_company():
    rng = np.random.default_rng(0)
    peaks = np.exp(-0.5 * ((np.arange(60) - np.linspace(0, 59, 12)[:, None]) / 6) ** 2)
    X = (rng.gamma(1.0, size=(80, 12)) @ peaks).astype(np.float32)
    model = RobustNMF(12, random_state=0, max_iter=200)
    quiet(model, X)
    together = model.transform(X)
    alone = np.concatenate([model.transform(row[None]) for row in X])
    np.testing.assert_allclose(alone, together, rtol=1e-4, atol=1e-5 * together.max())


def test_a_model_fitted_in_float64_transforms_float32_data_in_float64():
    X = noisy_low_rank(30, 8, 3)
    model = EucNMF(3, random_state=0).fit(X * 1e60)
    codes = model.transform((X * 1e30).astype(np.float32))
    assert codes.dtype == np.float32
    np.testing.assert_allclose(codes, 1e-30 * model.transform(X * 1e60), rtol=1e-4, atol=1e-36)
