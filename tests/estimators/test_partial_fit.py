"""Minibatches: nearly as good as all data at once, robust, and forgetting."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.utils._testing import ignore_warnings

from robustnmf import EWRNMF, FWRNMF, NMFL2, ConvexNMF, EucNMF, HuberRNMF, RobustNMF, Trimmed
from robustnmf.metrics import squared_errors

PARTS = np.random.default_rng(0).gamma(0.5, size=(4, 30))
OTHERS = np.random.default_rng(1).gamma(0.5, size=(4, 30))


def drawn(n, seed, parts=PARTS, bad=0):
    """Samples of some components with a little noise; the first of them are bad."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.0, size=(n, len(parts))) @ parts + 0.05 * rng.random((n, parts.shape[1]))
    X[:bad] = 4 * X.max() * rng.random((bad, parts.shape[1]))
    return X


def streamed(model, batches, **arguments):
    for batch in batches:
        model.partial_fit(batch, **arguments)
    return model


TEST = drawn(500, 99)
METHODS = [
    RobustNMF(4), RobustNMF(4, weighting="uniform"), RobustNMF(4, weighting="cauchy"), EucNMF(4),
    NMFL2(4), EWRNMF(4), FWRNMF(4, p="auto"), RobustNMF(4, solver="mu", weighting="entropy"),
]  # fmt: skip


@ignore_warnings
@pytest.mark.parametrize("model", METHODS, ids=str)
def test_minibatches_teach_as_much_as_all_data_at_once(model):
    batches = [drawn(200, seed) for seed in range(10)]
    whole = clone(model).set_params(random_state=0).fit(np.concatenate(batches))
    stream = streamed(clone(model).set_params(random_state=0), batches)
    errors = [squared_errors(TEST, m.components_).sum() for m in (whole, stream)]
    assert errors[1] < 1.1 * errors[0]
    assert (stream.n_steps_, stream.n_samples_seen_) == (10, 2000)
    assert stream.transform(TEST).shape == (500, 4)


@ignore_warnings
def test_bad_samples_are_down_weighted_in_every_minibatch():
    clean = streamed(RobustNMF(4, random_state=0), [drawn(200, seed) for seed in range(8)])
    batches = [drawn(200, seed, bad=30) for seed in range(8)]
    robust = streamed(RobustNMF(4, random_state=0), batches)
    plain = streamed(RobustNMF(4, weighting="uniform", random_state=0), batches)
    errors = [squared_errors(TEST, m.components_).sum() for m in (clean, robust, plain)]
    assert errors[1] < 1.2 * errors[0]
    assert errors[2] > 10 * errors[0]


@ignore_warnings
def test_old_minibatches_are_discounted():
    batches = [drawn(200, seed) for seed in range(5)]
    batches += [drawn(200, seed, OTHERS) for seed in range(20)]
    new = drawn(300, 77, OTHERS)
    errors = [
        squared_errors(new, streamed(model, batches).components_).sum()
        for model in (
            RobustNMF(4, weighting="uniform", forget_factor=0.5, random_state=0),
            RobustNMF(4, weighting="uniform", forget_factor=1.0, random_state=0),
        )
    ]
    assert errors[0] < 0.5 * errors[1]


@ignore_warnings
def test_weights_are_repetitions_and_zero_is_absence():
    batches = [drawn(150, seed) for seed in range(3)]
    weights = np.random.default_rng(0).integers(0, 3, 150)
    weighted = streamed(RobustNMF(3, random_state=0), batches, sample_weight=weights.astype(float))
    repeated = streamed(
        RobustNMF(3, random_state=0), [np.repeat(b, weights, axis=0) for b in batches]
    )
    np.testing.assert_allclose(weighted.components_, repeated.components_, rtol=1e-3)


@ignore_warnings
@pytest.mark.parametrize("kind", ["float32", "sparse", "torch"])
def test_other_kinds_of_data(kind):
    batches = [drawn(200, seed) for seed in range(4)]
    expected = streamed(RobustNMF(3, random_state=0), batches).components_
    if kind == "torch":
        torch = pytest.importorskip("torch", reason="needs PyTorch: pip install robustnmf[torch]")
        given = [torch.asarray(batch) for batch in batches]
    elif kind == "sparse":
        given = [scipy.sparse.csr_array(batch) for batch in batches]
    else:
        given = [batch.astype(np.float32) for batch in batches]
    found = streamed(RobustNMF(3, random_state=0), given).components_
    assert type(found) is (type(given[0]) if kind == "torch" else np.ndarray)
    if kind == "float32":
        errors = [squared_errors(TEST, basis).sum() for basis in (found, expected)]
        assert errors[0] == pytest.approx(errors[1], rel=0.05)
    else:
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6, atol=1e-6)


def test_partial_fit_is_missing_if_sums_do_not_add_up():
    for model in (HuberRNMF(2), ConvexNMF(2), RobustNMF(2, loss="kullback-leibler")):
        assert not hasattr(model, "partial_fit")
        with pytest.raises(AttributeError, match="partial_fit"):
            model.partial_fit(TEST)
    broken = TEST.copy()
    broken[0, 0] = np.nan
    with pytest.raises(ValueError, match="partial_fit needs complete samples"):
        RobustNMF(2).partial_fit(broken)


@ignore_warnings
def test_a_bad_minibatch_changes_nothing():
    model = streamed(RobustNMF(3, random_state=0), [drawn(200, 0), drawn(200, 1)])
    before = pickle.dumps(model)
    for bad, message in ((-TEST, "Negative values"), (TEST[:, :5], "30 features")):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(bad)
    broken = TEST.copy()
    broken[3, 3] = np.nan
    with pytest.raises(ValueError, match="complete samples"):
        model.partial_fit(broken)
    assert pickle.dumps(model) == before


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_minibatches_whose_squares_leave_the_range_are_refused():
    first, second = drawn(100, 0), drawn(100, 1)
    model = RobustNMF(3, weighting="uniform", random_state=0).partial_fit(first.astype(np.float32))
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"squares exceed the range of float32.* or start again"):
        model.partial_fit((second * 1e25).astype(np.float32))
    assert pickle.dumps(model) == before
    for weighting in ("uniform", "trimmed"):
        wide = RobustNMF(3, weighting=weighting, random_state=0).partial_fit(first)
        for size in (1e25, 1e-25, 1e140):
            assert np.isfinite(wide.partial_fit(second * size).components_).all()


@ignore_warnings
@pytest.mark.parametrize(
    "changed",
    [
        {"n_components": 7}, {"weighting": "uniform"}, {"weighting": Trimmed(2.0)},
        {"alpha_W": 0.1}, {"alpha_H": 0.1}, {"l1_ratio": 0.5},
        {"fixed_components": np.ones((1, 30))},
    ],
    ids=str,
)  # fmt: skip
def test_parameters_that_change_between_minibatches_are_refused(changed):
    model = RobustNMF(4, random_state=0, tol=1e-3).partial_fit(drawn(200, 0))
    before = model.components_.copy()
    with pytest.raises(
        ValueError, match=r"but the minibatches so far were .* Set it back, or clone"
    ):
        model.set_params(**changed).partial_fit(drawn(200, 1))
    np.testing.assert_array_equal(model.components_, before)
    first = RobustNMF(4, random_state=0).get_params(deep=False)
    model.set_params(**first | {"tol": 1e-4}).partial_fit(drawn(200, 1))
    assert model.n_steps_ == 2
    assert clone(model).set_params(**changed).partial_fit(drawn(200, 1)).n_steps_ == 1


@ignore_warnings
def test_fits_and_streams_start_over():
    X = drawn(300, 0)
    fitted = RobustNMF(3, random_state=0).fit(X)
    model = streamed(RobustNMF(3, random_state=0), [drawn(200, 5, OTHERS)] * 2).fit(X)
    np.testing.assert_array_equal(model.components_, fitted.components_)
    assert not hasattr(model, "n_steps_")
    again = fitted.partial_fit(drawn(200, 5))
    assert again.n_steps_ == 1
    assert not hasattr(again, "objective_history_")
    fresh = RobustNMF(3, random_state=0).partial_fit(drawn(200, 5))
    np.testing.assert_array_equal(again.components_, fresh.components_)


def test_a_minibatch_of_zeros_has_no_effect():
    model = streamed(RobustNMF(3, random_state=0), [drawn(200, 0), drawn(200, 1)])
    before = model.components_.copy()
    model.partial_fit(np.zeros((50, 30)))
    assert np.isfinite(model.components_).all()
    np.testing.assert_allclose(model.components_, before, rtol=0.1, atol=0.1)


@pytest.mark.parametrize(
    "model", [RobustNMF(3, random_state=0), EucNMF(3, random_state=0)], ids=repr
)
def test_a_stream_that_begins_with_zeros_starts_with_the_first_minibatch_that_does_not(model):
    batches = [drawn(200, seed) for seed in range(3)]
    expected = streamed(clone(model), batches)
    model = clone(model)
    for count in (1, 2):
        with pytest.warns(UserWarning, match="components are zero until"):
            model.partial_fit(np.zeros((50, 30)))
        assert model.n_steps_ == count
        assert not model.transform(batches[0]).any()
    with pytest.raises(ValueError, match="30 features"):
        model.partial_fit(batches[0][:, :5])
    streamed(model, batches)
    np.testing.assert_array_equal(model.components_, expected.components_)
    assert (model.n_steps_, model.n_samples_seen_) == (5, 700)


def test_samples_without_weight_are_not_a_start():
    model = RobustNMF(3, random_state=0)
    X = drawn(200, 0)
    X[100:] = 0.0
    with pytest.warns(UserWarning, match="components are zero until"):
        model.partial_fit(X, sample_weight=np.repeat([0.0, 1.0], 100))
    assert model.partial_fit(X).components_.max() > 0


@ignore_warnings
@pytest.mark.parametrize("init", [None, "nndsvd", "nndsvda", "nndsvdar", "random"])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_minibatches_are_fitted_with_every_start_and_penalty(init, alpha):
    """Cases of scikit-learn's MiniBatchNMF; sparse minibatches give the numbers of dense ones."""
    X = np.where(drawn(60, 0) > 1.0, drawn(60, 0), 0.0)
    batches = [X[at : at + 20] for at in range(0, 60, 20)]
    options = {"init": init, "alpha_W": 0.01 * alpha, "l1_ratio": 0.5, "random_state": 0}
    dense = streamed(RobustNMF(4, **options), batches)
    sparse = streamed(RobustNMF(4, **options), map(scipy.sparse.csr_array, batches))
    assert dense.components_.min() >= 0
    assert np.isfinite(dense.transform(X)).all()
    scale = dense.components_.max()
    np.testing.assert_allclose(sparse.components_, dense.components_, rtol=1e-6, atol=1e-8 * scale)


def test_a_custom_start_is_that_of_the_first_minibatch():
    rng = np.random.default_rng(0)
    X = drawn(60, 0)
    W, H = rng.random((20, 4)) + 0.1, rng.random((4, 30)) + 0.1
    models = []
    for n_components in (4, None, "auto"):
        model = RobustNMF(n_components, init="custom", weighting="uniform")
        for at in range(0, 60, 20):
            model.partial_fit(X[at : at + 20], W=W, H=H)
        models.append(model)
        assert (model.n_steps_, model.n_components_) == (3, 4)
    np.testing.assert_array_equal(models[0].components_, models[1].components_)
    np.testing.assert_array_equal(models[0].components_, models[2].components_)
    first = RobustNMF(4, init="custom", weighting="uniform").partial_fit(X[:20], None, W, H)
    first.partial_fit(X[20:40]).partial_fit(X[40:])  # not used after the first one
    np.testing.assert_array_equal(first.components_, models[0].components_)
    with pytest.raises(ValueError, match="W is missing"):
        RobustNMF(4, init="custom").partial_fit(X[:20])


@ignore_warnings
@pytest.mark.parametrize("ratio", [1e-6, 1e6])
def test_fixed_components_stay_if_the_start_has_factors_of_very_different_size(ratio):
    rng = np.random.default_rng(0)
    X, W, H = drawn(60, 0), rng.random((60, 4)) + 0.1, rng.random((4, 30)) + 0.1
    for alpha in (0.0, 0.01):
        model = RobustNMF(
            4, init="custom", weighting="uniform", fixed_components=H[:2], alpha_W=alpha, alpha_H=0
        )
        model.partial_fit(X, W=ratio * W, H=H / ratio).partial_fit(X)
        np.testing.assert_allclose(model.components_[:2], H[:2])
        errors = [squared_errors(X, basis).sum() for basis in (model.components_, H)]
        assert errors[0] < errors[1]
