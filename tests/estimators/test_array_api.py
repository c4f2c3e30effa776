"""Arrays of other libraries: the same numbers, and everything stays where X is."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.utils._testing import ignore_warnings

import robustnmf.arrays.namespace
from robustnmf import (
    EWRNMF,
    FWRNMF,
    NMFL2,
    ConvexNMF,
    EucNMF,
    HuberRNMF,
    RobustNMF,
    RobustNMFDetector,
)
from robustnmf.arrays import to_numpy
from robustnmf.exceptions import OutlierWarning
from tests.problems import noisy_low_rank

X = noisy_low_rank(200, 30, 4, outliers=10)
MODELS = {
    "trimmed": RobustNMF(4),
    "EucNMF": EucNMF(4),
    "ConvexNMF": ConvexNMF(4),
    "NMFL2": NMFL2(4),
    "HuberRNMF": HuberRNMF(4),
    "FWRNMF": FWRNMF(4),
    "EWRNMF": EWRNMF(4),
    "several starts": RobustNMF(4, weighting="entropy", init="random", n_init=2),
    "penalties": RobustNMF(4, weighting="l21", alpha_W=0.01, l1_ratio=0.5),
    "fixed": RobustNMF(4, weighting="cauchy", fixed_components=np.ones((1, 30))),
    "divergence": RobustNMF(4, weighting="l21", loss="kullback-leibler"),
    "orthogonal": RobustNMF(4, weighting="l21", structure="orthogonal", init="random"),
}
SLOW = ("HuberRNMF", "divergence")
ATTRIBUTES = ("components_", "energies_", "sample_importances_", "objective_history_")


@pytest.fixture(params=["torch", "strict"])
def library(request):
    """A library other than NumPy."""
    if request.param == "torch":
        return pytest.importorskip("torch", reason="needs PyTorch: pip install robustnmf[torch]")
    return pytest.importorskip("array_api_strict")


@ignore_warnings
@pytest.mark.parametrize(
    "name",
    # Seconds, as single array calls; tests/test_fit_laws.py has them for smaller tables.
    [pytest.param(name, marks=[pytest.mark.extra] * (name in SLOW)) for name in MODELS],
)
def test_results_stay_in_the_library_of_x_and_are_the_same(name, library):
    weights = np.random.default_rng(0).integers(0, 3, 200).astype(float)
    model = clone(MODELS[name]).set_params(random_state=0, max_iter=8, tol=0)
    expected = clone(model).fit(X, sample_weight=weights)
    table = library.asarray(X)
    codes = model.fit_transform(table, sample_weight=library.asarray(weights))
    assert type(codes) is type(table)
    for attribute in ATTRIBUTES:
        found = getattr(model, attribute)
        assert type(found) is type(table), attribute
        np.testing.assert_allclose(
            to_numpy(found), getattr(expected, attribute), rtol=1e-7, atol=1e-9
        )
    new, reference = model.transform(table), expected.transform(X)
    np.testing.assert_allclose(to_numpy(new), reference, rtol=1e-6, atol=1e-8)
    back = model.inverse_transform(new)
    np.testing.assert_allclose(to_numpy(back), expected.inverse_transform(reference), rtol=1e-6)
    for method in ("score_samples", "explain"):
        assert type(getattr(model, method)(table)) is type(table)
    assert model.objective(table) == pytest.approx(expected.objective(X), rel=1e-9)
    assert model.score(table) == pytest.approx(expected.score(X), rel=1e-9)


@ignore_warnings
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_dtypes_are_kept_as_numpys_are(dtype, library):
    table = (10 * X).astype(dtype)
    model = RobustNMF(3, weighting="l21", random_state=0, max_iter=5, tol=0)
    codes = model.fit_transform(library.asarray(table))
    wanted = library.float32 if dtype == "float32" else library.float64
    assert codes.dtype == model.components_.dtype == wanted
    assert model.energies_.dtype == library.float64


@ignore_warnings
def test_missing_values_and_a_start_of_ones_own(library):
    table = X.copy()
    table[::7, ::5] = np.nan
    rng = np.random.default_rng(0)
    start = {"W": 0.1 + rng.random((200, 4)), "H": 0.1 + rng.random((4, 30))}
    model = RobustNMF(4, init="custom", solver="mu", max_iter=20, tol=0)
    expected = clone(model).fit(table, **start).components_
    found = model.fit(library.asarray(table), **{k: library.asarray(v) for k, v in start.items()})
    np.testing.assert_allclose(to_numpy(found.components_), expected, rtol=1e-9)


def test_detectors_stay_where_x_is(library):
    expected = RobustNMFDetector(4, random_state=0).fit(X)
    table = library.asarray(X)
    detector = RobustNMFDetector(4, random_state=0).fit(table)
    labels = detector.predict(table)
    assert type(labels) is type(table)
    np.testing.assert_array_equal(to_numpy(labels), expected.predict(X))
    shifted, other = (RobustNMFDetector(4, random_state=0).fit(library.asarray(X - 1.0)),
                      RobustNMFDetector(4, random_state=0).fit(X - 1.0))  # fmt: skip
    scores = to_numpy(shifted.score_samples(library.asarray(X - 1.0)))
    np.testing.assert_allclose(scores, other.score_samples(X - 1.0), rtol=1e-6)


@ignore_warnings
def test_gradients_are_nobodys():
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install robustnmf[torch]")
    table = torch.asarray(X).requires_grad_()
    weights = torch.ones(200, dtype=torch.float64).requires_grad_()
    model = RobustNMF(3, random_state=0, max_iter=5, tol=0).fit(table, sample_weight=weights)
    assert not model.components_.requires_grad
    with pytest.raises(TypeError, match="to_dense"):
        RobustNMF(3).fit(torch.asarray(X).to_sparse())


def test_fitted_here_and_used_there(library):
    model = RobustNMF(4, random_state=0, max_iter=20, tol=0).fit(X)
    codes = model.transform(library.asarray(X))
    assert type(codes) is type(library.asarray(X))
    np.testing.assert_allclose(to_numpy(codes), model.transform(X), rtol=1e-9, atol=1e-12)
    away = RobustNMF(4, random_state=0, max_iter=20, tol=0).fit(library.asarray(X))
    assert isinstance(away.transform(X), np.ndarray)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (X - 5.0, "Negative values"),
        (np.where(X.max() / 2 < X, np.inf, X), "infinity"),
        (X[0], "Expected 2D array"),
        (X[:0], "minimum of 1"),
        (X * (1 + 0j), "real numbers"),
        (np.full((5, 3), np.nan), "only NaN"),
    ],
)
def test_bad_input_is_refused(data, message, library):
    with pytest.raises(ValueError, match=message):
        RobustNMF(2).fit(library.asarray(data))


@ignore_warnings
@pytest.mark.parametrize("weighting", ["entropy", "trimmed"])
def test_nothing_large_comes_home_while_a_fit_runs(weighting, monkeypatch):
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install robustnmf[torch]")
    many = torch.asarray(noisy_low_rank(20_000, 12, 3))
    sizes = []
    leave = torch.Tensor.numpy
    monkeypatch.setattr(
        torch.Tensor, "numpy", lambda self, **k: (sizes.append(self.numel()), leave(self, **k))[1]
    )
    dlpack = torch.Tensor.__dlpack__
    monkeypatch.setattr(
        torch.Tensor, "__dlpack__",
        lambda self, **k: (sizes.append(self.numel()), dlpack(self, **k))[1],
    )  # fmt: skip
    model = RobustNMF(3, weighting=weighting, random_state=0, max_iter=30, tol=0).fit(many)
    assert model.n_iter_ == 30
    nodes = len(robustnmf.arrays.histogram.NODES)
    # Histograms, rows that starts and screening draw, and keys of all rows: never X.
    assert max(sizes) <= max(2 * nodes, 20_000, robustnmf.screening.ROWS * 12)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_warning_of_outliers_is_the_same_for_tensors(device):
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install robustnmf[torch]")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    digits = load_digits().data[:500]
    digits[:50] = 16 * np.random.default_rng(0).random((50, 64))
    with pytest.warns(OutlierWarning, match="50 of 500 samples") as expected:
        RobustNMF(8, random_state=0).fit(digits)
    with pytest.warns(OutlierWarning, match="50 of 500 samples") as found:
        RobustNMF(8, random_state=0).fit(torch.asarray(digits, device=device))
    assert [str(each.message) for each in found] == [str(each.message) for each in expected]
