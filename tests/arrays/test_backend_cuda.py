"""Choice of GPU kernels by arrays, with PyTorch formulas in place of the kernels.

These run without a GPU; ``test_gpu.py`` tests the kernels themselves.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from robustnmf import Entropy, Huber, RobustNMF  # noqa: E402
from robustnmf.arrays import kernels, kernels_for  # noqa: E402
from robustnmf.arrays.kernels import Kernels, cuda, gpu  # noqa: E402


def project_and_update(X, basis, gram, codes, least):
    linear = (X @ basis.T)[None]
    updated = codes * linear / (codes @ gram).clamp(min=least)
    return updated, quadratic_part(updated, updated @ gram, linear)


def weighted_cross(codes, weights, *tables):
    members, n, k = codes.shape
    flat = (codes * weights[:, :, None]).mT.reshape(members * k, n)
    return [flat @ X for X in tables]


def quadratic_part(codes, product, linear):
    return (codes.double() * (product.double() - 2 * linear.double())).sum(-1)


def sweep_coordinates(codes, linear, gram, steps, sweeps):
    codes = codes.clone()
    for _ in range(sweeps):
        for j in range(codes.shape[2]):
            slope = linear[:, :, j] - (codes @ gram[:, :, j : j + 1])[:, :, 0]
            codes[:, :, j] = (codes[:, :, j] + slope * steps[:, j : j + 1]).clamp(min=0)
    return codes


def energies(X, unit, norms, rest, codes, basis, doubtful, least):
    expanded = norms + rest
    residuals = ((unit * X - codes @ basis).double() ** 2).sum(-1)
    return torch.where(expanded < doubtful * norms, residuals, expanded).maximum(least * norms)


def huber_parts(X, before, cache, cutoff):
    assert cutoff.shape == (len(cache), 1, 1)
    weights = cutoff / torch.maximum((X - before).abs(), cutoff)
    return weights * X, weights * cache


def huber_rows(X, cache, cutoff, row_weight):
    assert row_weight.dtype == cache.dtype
    left = (X - cache).abs()
    weights = row_weight[:, None] * cutoff / torch.maximum(left, cutoff)
    capped = torch.minimum(left, cutoff)
    sums = (t.double().sum(-1) for t in (capped * (2 * left - capped), left**2, weights))
    return (weights * X, weights * cache, *sums)


FORMULAS = {
    "project": lambda X, directions: X @ directions.T,
    "project_and_update": project_and_update,
    "weighted_cross": weighted_cross,
    "quadratic_part": quadratic_part,
    "sweep_coordinates": sweep_coordinates,
    "masked_solve": Kernels().masked_solve,
    "energies": energies,
    "huber_parts": huber_parts,
    "huber_rows": huber_rows,
}
PRODUCTS = "project", "weighted_cross"


@pytest.fixture
def called(monkeypatch):
    """Set of the names of kernels that were called; formulas replace the kernels."""
    names = set()

    def noted(name):
        def call(*arguments):
            names.add(name)
            return FORMULAS[name](*arguments)

        return call

    monkeypatch.setattr(kernels, "has_gpu_kernels", torch.is_tensor)
    monkeypatch.setattr(cuda, "WORTH_A_PRODUCT", 100)
    for name in FORMULAS:
        monkeypatch.setattr(gpu, name, noted(name))
    return names


@pytest.mark.parametrize(
    ("weighting", "solver", "n_init", "expected"),
    [
        (Entropy(5.0), "mu", 1, {"project_and_update", "quadratic_part", "energies", *PRODUCTS}),
        (Entropy(5.0), "mu", 3, {"quadratic_part", "energies", *PRODUCTS}),
        (Entropy(5.0), "hals", 1, {"sweep_coordinates", "quadratic_part", "energies", *PRODUCTS}),
        (Huber(0.1), "mu", 1, {"huber_parts", "huber_rows"}),
        (Huber(0.1), "hals", 1, {"sweep_coordinates"}),
    ],
)
def test_a_fit_calls_the_available_kernels(weighting, solver, n_init, expected, called):
    rng = np.random.default_rng(0)
    table = 3 * rng.random((200, 4)) @ rng.random((4, 30))
    X = torch.as_tensor(table.astype(np.float32))
    model = RobustNMF(
        4, weighting=weighting, solver=solver, n_init=n_init, init="random", random_state=0,
        tol=0, max_iter=15,
    )  # fmt: skip
    by_kernels = model.fit(X).objective_history_
    assert called == expected
    here = model.fit(X.numpy()).objective_history_
    np.testing.assert_allclose(by_kernels, here, rtol=2e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_default_fit_with_kernels_equals_the_numpy_fit(dtype, called):
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, size=(400, 4)) @ rng.gamma(0.5, size=(4, 30)) + 0.1 * rng.random((400, 30))
    X[:40] = 5 * rng.random((40, 30))
    X = X.astype(dtype)
    model = RobustNMF(4, random_state=0, tol=1e-6)
    codes = model.fit_transform(X)
    outliers, objective = model.outliers_, model.objective_history_[-1]
    by_kernels = model.fit_transform(torch.as_tensor(X))
    assert {"sweep_coordinates", "quadratic_part"} <= called
    assert (model.outliers_.numpy() == outliers).all()
    np.testing.assert_allclose(model.objective_history_[-1], objective, rtol=1e-4)
    np.testing.assert_allclose(by_kernels, codes, atol=1e-2 * codes.max())
    transformed = model.transform(torch.as_tensor(X))
    np.testing.assert_allclose(transformed, by_kernels, atol=1e-6 * codes.max())
    assert "masked_solve" in called


@pytest.mark.parametrize("view", ["transposed", "every other column"])
def test_energies_of_views_use_no_kernel(view, called):
    rng = np.random.default_rng(0)
    X = (rng.random((300, 4)) @ rng.random((4, 20))).astype(np.float32)
    tensor = torch.as_tensor(np.repeat(X, 2, axis=1))[:, ::2]
    if view == "transposed":
        tensor = torch.as_tensor(np.ascontiguousarray(X.T)).T
    model = RobustNMF(4, random_state=0).fit(tensor)
    assert "energies" not in called
    assert float(model.reconstruction_err_) < 0.05 * np.linalg.norm(X)


SWEPT = {"sweep_coordinates"}
BOTH = {"quadratic_part", *SWEPT}


def test_shapes_and_dtypes_without_a_kernel_use_array_calls(called):
    wide, double = torch.rand(1, 200, 129), torch.rand(1, 200, 5, dtype=torch.float64)
    for codes, loops in ((wide, set()), (double.mT.contiguous().mT, SWEPT), (double, BOTH)):
        called.clear()
        kernels = kernels_for(codes)
        gram = codes.mT @ codes
        found = kernels.quadratic_part(codes, codes, gram)
        swept = kernels.sweep_coordinates(codes, codes, gram, 1)
        assert called == loops
        assert swept.stride() == codes.stride()
        torch.testing.assert_close(found, quadratic_part(codes, codes @ gram, codes))
        called.clear()
        kernels.project(torch.rand(200, 7, dtype=codes.dtype), torch.rand(1, 3, 7).to(codes.dtype))
        assert called == ({"project"} if codes is wide else set())  # for float32
        kernels.project(torch.rand(99, 7), torch.rand(1, 3, 7))
        assert called == ({"project"} if codes is wide else set())
