"""Bad input gets one clear error, and the estimator stays as it was."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from robustnmf import (
    EWRNMF,
    FWRNMF,
    ConvexNMF,
    Entropy,
    EucNMF,
    HuberLoss,
    HuberRNMF,
    RobustNMF,
    TruncatedLoss,
)
from robustnmf.estimators import ESTIMATORS
from tests.problems import noisy_low_rank, positive_start

X = noisy_low_rank(10, 6, 2)
W, H = positive_start(10, 6, 2)


def spoiled(value, *places):
    bad = X.copy()
    for place in places:
        bad[place] = value
    return bad


BAD_DATA = {
    "negative": (
        spoiled(-0.31, (2, 4), (7, 1), (9, 5)),
        r"X holds 3 negative values, first at \[2, 4\] = -0.31; NMF needs X >= 0",
    ),
    "one negative": (spoiled(-2.0, (0, 3)), r"X holds 1 negative value, first at \[0, 3\] = -2"),
    "nothing but NaN": (np.full((4, 3), np.nan), "Input X contains only NaN"),
    "negative beside NaN": (
        np.array([[1.0, np.nan], [np.nan, -1.0]]),
        r"X holds 1 negative value, first at \[1, 1\] = -1",
    ),
    "inf": (spoiled(np.inf, (1, 1)), "Input X contains infinity"),
    "one dimension": (X[0], "Expected 2D array, got 1D array"),
    "three dimensions": (X[None], "dim 3"),
    "no samples": (X[:0], r"0 sample\(s\)"),
    "no features": (X[:, :0], r"0 feature\(s\)"),
    "strings": (np.full((4, 3), "a"), "could not convert string to float"),
    "complex": (X + 1j, "Complex data not supported"),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_are_refused_and_leave_no_trace(name, case):
    bad, message = BAD_DATA[case]
    model = ESTIMATORS[name](2, random_state=0)
    with pytest.raises(ValueError, match=message):
        model.fit(bad)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_a_failed_second_fit_leaves_the_first():
    model = EucNMF(2, random_state=0).fit(X)
    components = model.components_.copy()
    with pytest.raises(ValueError, match="negative"):
        model.fit(-X[:, :3])
    np.testing.assert_array_equal(model.components_, components)
    assert model.n_features_in_ == 6
    assert model.transform(X).shape == (10, 2)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (EucNMF(0), "'n_components' parameter of EucNMF must be an int in the range"),
        (EucNMF(-3), "Got -3 instead"),
        (EucNMF(2.5), "Got 2.5 instead"),
        (RobustNMF(7, init="nndsvd"), "n_components=7 is too large for init='nndsvd'.*at most 6"),
        (FWRNMF(2, p=1), r"'p' parameter of FWRNMF must be a float in the range \(1"),
        (FWRNMF(2, p=0.5), "Got 0.5 instead"),
        (EWRNMF(2, gamma=0), r"'gamma' parameter of EWRNMF must be a float in the range \(0"),
        (EWRNMF(2, gamma=-1.0), "Got -1.0 instead"),
        (EWRNMF(2, gamma="none"), "'auto'"),
        (HuberRNMF(2, cutoff=0), "'cutoff' parameter of HuberRNMF must be a float"),
        (RobustNMF(2, weighting=Entropy(gamma=-1)), "'gamma' parameter of Entropy must be"),
        (RobustNMF(2, weighting="median"), "'weighting' parameter of RobustNMF"),
        (RobustNMF(2, loss="l1"), "'loss' parameter of RobustNMF"),
        (RobustNMF(2, structure="round"), "'structure' parameter of RobustNMF"),
        (EucNMF(2, solver="newton"), "'solver' parameter of EucNMF"),
        (EucNMF(2, init="zeros"), "'init' parameter of EucNMF"),
        (EucNMF(2, n_init=0), "'n_init' parameter of EucNMF"),
        (EucNMF(2, max_iter=-1), "'max_iter' parameter of EucNMF"),
        (EucNMF(2, tol=-1e-3), "'tol' parameter of EucNMF"),
    ],
    ids=lambda value: repr(value) if not isinstance(value, str) else "",
)
def test_bad_parameters_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({}, "W is missing"),
        ({"W": W}, "H is missing"),
        (
            {"W": W[:, :1], "H": H},
            r"W has shape \(10, 1\), but the codes must have shape \(10, 2\)",
        ),
        ({"W": W, "H": H[:, :3]}, r"H has shape \(2, 3\), but the basis must have shape \(2, 6\)"),
        ({"W": W * 0, "H": H}, "W is all zero"),
        ({"W": W, "H": H - 0.5}, r"H holds .* negative values, first at \["),
        ({"W": W, "H": np.full((2, 6), np.nan)}, "Input H contains NaN"),
        ({"W": 5, "H": H}, "Expected 2D array, got scalar array"),
    ],
    ids=["none", "no H", "shape of W", "shape of H", "zeros", "negative", "NaN", "scalar"],
)
@pytest.mark.parametrize("rank", [2, "auto"])
def test_bad_custom_starts_are_refused(start, message, rank):
    if rank == "auto" and "shape" in message:
        pytest.skip("the number of components is that of W here")
    with pytest.raises(ValueError, match=message):
        EucNMF(rank, init="custom").fit(X, **start)


@pytest.mark.parametrize("loss", ["kullback-leibler", "frobenius"])
def test_a_result_is_a_start_with_a_warning_about_zeros(loss):
    data = np.random.default_rng(0).gamma(0.5, size=(60, 4)) @ X[:4]
    options = {"loss": loss, "weighting": "uniform", "solver": "mu"}
    first = RobustNMF(3, random_state=0, max_iter=2000, **options)
    codes = first.fit_transform(data)
    assert (codes == 0).any()
    with pytest.warns(UserWarning, match="W holds .* zeros, which multiplicative updates can"):
        again = RobustNMF(3, init="custom", **options).fit(data, W=codes, H=first.components_)
    assert again.objective_history_[0] == pytest.approx(first.objective_history_[-1])
    assert again.objective_history_[-1] <= first.objective_history_[-1] * (1 + 1e-9)


@pytest.mark.parametrize("size", [1e155, 1e-170])
def test_data_whose_squares_leave_the_range_are_refused(size):
    with pytest.raises(ValueError, match=r"largest value of X is .* Divide X by"):
        EucNMF(2).fit(X * size)
    model = EucNMF(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="largest value of X"):
        model.score_samples(X * size)


@pytest.mark.parametrize(
    ("dtype", "sizes"), [(np.float64, (1e-100, 1e100)), (np.float32, (1e-20, 1e20))]
)
@pytest.mark.parametrize("weighting", ["trimmed", "uniform"])
@pytest.mark.parametrize("turned", [False, True])
def test_new_data_need_to_be_in_the_units_of_the_fit(dtype, sizes, weighting, turned, tmp_path):
    first, second = ((X * size).astype(dtype) for size in (sizes[::-1] if turned else sizes))
    np.save(tmp_path / "X.npy", second)
    model = RobustNMF(2, weighting=weighting, random_state=0).partial_fit(first)
    before = model.components_.copy()
    for table in (second, scipy.sparse.csr_array(second), tmp_path / "X.npy"):
        for method in (model.partial_fit, model.transform, model.score_samples):
            with pytest.raises(ValueError, match=r"fitted on values of about .* the units of the"):
                method(table)
    np.testing.assert_array_equal(model.components_, before)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("size", [1e38, 1e-36, 1e-40, 1e-43])
@pytest.mark.parametrize("init", ["robust", "random"])
def test_float32_has_a_range_of_its_own(size, init, tmp_path):
    data = (X / X.max() * size).astype(np.float32)
    np.save(tmp_path / "X.npy", data)
    model = RobustNMF(2, init=init, random_state=0)
    for table in (data, scipy.sparse.csr_array(data), tmp_path / "X.npy"):
        with pytest.raises(ValueError, match=r"between 1e-32 and 1e\+32.* or give it as float64"):
            model.fit(table)
    with pytest.raises(ValueError, match="between 1e-32 and"):
        RobustNMF(2).fit(X.astype(np.float32)).transform(data)
    doubled = data.astype(np.float64)
    assert model.fit(doubled).components_.max() > 0
    np.testing.assert_allclose(model.transform(data), model.transform(doubled), rtol=1e-6)


def test_names_of_mixed_types_are_refused_before_the_work():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")

    frame = pd.DataFrame(X, columns=["a", 1, "c", 3, "e", 5])
    model = EucNMF(2, max_iter=10**9, tol=1e-300)
    with pytest.raises(TypeError, match="Feature names"):
        model.fit(frame)


def test_a_convex_start_is_a_mixing():
    with pytest.raises(ValueError, match=r"the mixing must have shape \(2, 10\)"):
        ConvexNMF(2, init="custom").fit(X, W=W, H=H)


def test_a_start_without_custom_init_is_ignored_with_a_warning():
    with pytest.warns(RuntimeWarning, match="only used with init='custom' and init is 'random'"):
        model = EucNMF(2, random_state=0).fit(X, W=W, H=H)
    np.testing.assert_array_equal(model.components_, EucNMF(2, random_state=0).fit(X).components_)


@pytest.mark.parametrize("method", ["transform", "inverse_transform", "score_samples", "score"])
def test_use_before_fit_is_refused(method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(EucNMF(2), method)(X)


def test_another_number_of_features_is_refused():
    model = EucNMF(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="X has 5 features, but EucNMF is expecting 6"):
        model.transform(X[:, :5])
    with pytest.raises(ValueError, match="X has 3 columns, but codes of this EucNMF have 2"):
        model.inverse_transform(np.ones((4, 3)))
    with pytest.raises(ValueError, match="X holds 1 negative value"):
        model.transform(spoiled(-1.0, (0, 0)))


def test_several_starts_need_a_random_one():
    with pytest.warns(RuntimeWarning, match="one of the 5 starts is run"):
        RobustNMF(2, init="nndsvda", n_init=5).fit(X)
    with pytest.warns(RuntimeWarning, match="init='custom' always gives the same start"):
        EucNMF(2, init="custom", n_init=3).fit(X, W=W, H=H)


def test_nndsvd_and_multiplicative_updates_are_warned_about():
    with pytest.warns(UserWarning, match="Use init='nndsvda', which replaces the zeros"):
        EucNMF(2, init="nndsvd").fit(X)


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_data_beyond_the_range_of_the_fit_are_refused(loss):
    model = RobustNMF(2, loss=loss, max_iter=5, tol=0).fit(X.astype(np.float32))
    with pytest.raises(ValueError, match="leaves the range of float32"):
        model.transform(1e60 * X)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (
            TruncatedLoss([1.0, 2.0]),
            r"cutoff of TruncatedLoss has the shape \(2,\), but X has 8 features",
        ),
        (HuberLoss(np.ones((1, 8))), r"has the shape \(1, 8\)"),
        (TruncatedLoss([-1.0] * 8), "holds -1, but cutoffs are positive"),
        (TruncatedLoss(["a"] * 8), "not finite numbers"),
        (TruncatedLoss([np.nan] * 8), "not finite numbers"),
        (TruncatedLoss(1.0, highest=[1.0]), "highest of TruncatedLoss has the shape"),
        (TruncatedLoss(1.0, usual=[1.0] * 8), "usual of TruncatedLoss has the shape"),
    ],
)
def test_cutoffs_that_are_not_one_for_every_feature_are_refused(loss, message):
    X = np.random.default_rng(0).random((30, 8))
    with pytest.raises(ValueError, match=message):
        RobustNMF(2, loss=loss).fit(X)
