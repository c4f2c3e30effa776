"""GPU kernels compared with array calls, on a GPU or in Triton's interpreter."""

import os

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is imported
pytest.importorskip("triton", reason="Triton is not installed (it is included in PyTorch for CUDA)")

from robustnmf import Cauchy, Entropy, Fuzzy, Huber, RobustNMF, Trimmed  # noqa: E402
from robustnmf.arrays import kernels, kernels_for  # noqa: E402
from robustnmf.arrays.kernels import gpu  # noqa: E402

MEMBERS, ROWS, FEATURES, K = 3, 300, 70, 5


def drawn(*shape, dtype=torch.float32):
    """Uniform numbers on the device."""
    make = torch.Generator().manual_seed(sum(shape))
    return torch.rand(*shape, generator=make, dtype=dtype).to(DEVICE)


def codes(dtype=torch.float32):
    """Codes with the memory layout of a fit: the members of a row are adjacent."""
    return drawn(ROWS, MEMBERS, K, dtype=dtype).permute(1, 0, 2)


def apart(found, expected):
    """Relative distance."""
    return float((found.double() - expected.double()).norm() / expected.double().norm())


@pytest.fixture(params=[(False, 3e-7), (True, 2e-4)], ids=["float32", "tf32"])
def bound(request, monkeypatch):
    """Allowed error of a product, with full precision and with TF32."""
    allowed, error = request.param
    monkeypatch.setattr(gpu, "_exact", lambda: not allowed)
    return error


def test_products_have_the_expected_accuracy(bound):
    X, basis, weights = drawn(ROWS, FEATURES), drawn(MEMBERS * K, FEATURES), drawn(MEMBERS, ROWS)
    expected = X.double() @ basis.double().T
    assert apart(gpu.project(X, basis), expected) < bound
    A = codes()
    (found,) = gpu.weighted_cross(A, weights, X)
    expected = (A * weights[:, :, None]).double().mT @ X.double()
    assert apart(found.reshape(expected.shape), expected) < bound


def test_a_multiplicative_step_fused_with_the_product(bound):
    X, basis = drawn(ROWS, FEATURES), drawn(K, FEATURES)
    A, gram = codes()[:1], basis @ basis.T
    moved, rest = gpu.project_and_update(X, basis, gram, A, 1e-38)
    seen = (X.double() @ basis.double().T)[None]
    expected = A.double() * seen / (A.double() @ gram.double())
    assert apart(moved, expected) < 4 * bound
    terms = (expected * (expected @ gram.double() - 2 * seen)).sum(-1)
    assert apart(rest, terms) < 4 * bound


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("beside", [True, False])
def test_loops_over_rows(dtype, beside):
    A, linear, basis = codes(dtype), codes(dtype) + 0.1, drawn(MEMBERS, K, FEATURES, dtype=dtype)
    linear = linear if beside else linear.contiguous()
    gram = basis @ basis.mT
    error = 1e-6 if dtype == torch.float32 else 1e-14
    expected = (A.double() * ((A @ gram).double() - 2 * linear.double())).sum(-1)
    assert apart(gpu.quadratic_part(A, A @ gram, linear), expected) < 1e-14
    steps = 1 / torch.diagonal(gram, dim1=1, dim2=2)
    arrays = [np.array(array.cpu()) for array in (A, linear, gram)]
    swept = kernels_for(arrays[0]).sweep_coordinates(*arrays, 2, 1)
    steps[:, :1] = 0.0  # the first column is fixed
    assert (
        apart(gpu.sweep_coordinates(A, linear, gram, steps, 2).cpu(), torch.as_tensor(swept))
        < error
    )


@pytest.mark.parametrize("columns", [5, 20])
def test_masked_systems_are_solved(columns):
    basis, mask = drawn(columns, FEATURES), drawn(ROWS, columns) > 0.4
    gram = basis @ basis.T + torch.eye(columns, device=DEVICE)
    solution = torch.where(mask, drawn(ROWS, columns), 0.0)
    found = gpu.masked_solve(solution @ gram, mask, gram, 30)
    assert apart(found, solution) < 1e-4
    assert (found[~mask] == 0).all()


@pytest.mark.parametrize("columns", [5, 20])
def test_energies_that_cancel_are_recomputed(columns):
    X = drawn(ROWS, FEATURES)
    A = drawn(ROWS, MEMBERS, columns).permute(1, 0, 2) / columns
    basis = drawn(MEMBERS, columns, FEATURES)
    X[:100] = 2 * (A[0] @ basis[0])[:100] * (1 + 1e-4 * drawn(100, FEATURES))
    norms = ((0.5 * X.double()) ** 2).sum(1)
    residuals = 0.5 * X.double() - A.double() @ basis.double()
    expected = (residuals**2).sum(-1)
    rest = expected - norms + 1e-7 * norms * drawn(MEMBERS, ROWS, dtype=torch.float64)
    energies = gpu.energies(X, 0.5, norms, rest, A, basis, 1e-3, 1e-12)
    cancels = norms + rest < 1e-3 * norms
    assert cancels[0, :100].all()
    assert not cancels[1:].any()
    assert apart(energies[cancels], expected[cancels]) < 1e-2
    torch.testing.assert_close(energies[~cancels], (norms + rest)[~cancels])


def test_huber_weights_of_entries():
    double = torch.float64
    X, row_weight = drawn(ROWS, FEATURES, dtype=double), drawn(ROWS, dtype=double)
    seen, before = (s * codes(double) @ drawn(MEMBERS, K, FEATURES, dtype=double) for s in (1, 1.1))
    cutoff = torch.tensor([0.1, 0.5, 2.0], dtype=double, device=DEVICE)
    huber = Huber(cutoff[:, None, None])
    weights = huber.weight((X - before) ** 2)
    for found, part in zip(gpu.huber_parts(X, before, seen, cutoff), (X, seen), strict=True):
        assert apart(found, weights * part) < 1e-14
    squares = (X - seen) ** 2
    weights = row_weight[:, None] * huber.weight(squares)
    expected = weights * X, weights * seen, huber.rho(squares), squares, weights
    found = gpu.huber_rows(X, seen, cutoff, row_weight)
    for at, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert apart(one, other if at < 2 else other.sum(-1)) < 1e-14


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU")
@pytest.mark.parametrize("solver", ["mu", "auto"])
@pytest.mark.parametrize("structure", ["free", "convex", "orthogonal"])
@pytest.mark.parametrize(
    "weighting",
    ["uniform", "l21", Fuzzy(50.0), Entropy(0.1), Cauchy(1.0), Trimmed(1.0), Huber(0.1)],
    ids=str,
)  # fmt: skip
def test_a_fit_on_the_gpu_equals_the_fit_on_the_host(weighting, structure, solver):
    rng = np.random.default_rng(0)
    X = rng.random((300, 4)) ** 2 @ rng.random((4, 60)) + 0.05 * rng.random((300, 60))
    model = RobustNMF(
        4, weighting=weighting, structure=structure, solver=solver,
        init="random", random_state=0, tol=0, max_iter=40,
    )  # fmt: skip
    here = model.fit(X).objective_history_
    there = model.fit(torch.as_tensor(X, device="cuda")).objective_history_
    # The objective of fuzzy weights is a power of the energies, near 50 here.
    np.testing.assert_allclose(there.cpu(), here, rtol=1e-5 if "Fuzzy" in str(weighting) else 1e-7)


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU")
@pytest.mark.parametrize("n_init", [1, 3])
@pytest.mark.parametrize("solver", ["mu", "auto"])
def test_many_rows_of_float32(solver, n_init, monkeypatch):
    X = drawn(100_000, 6) ** 2 @ drawn(6, 130) + 0.05 * drawn(100_000, 130)
    model = RobustNMF(
        6, weighting=Entropy(0.5), solver=solver, n_init=n_init, init="random", random_state=0,
        tol=0, max_iter=30,
    )  # fmt: skip
    by_kernels = model.fit(X).objective_history_
    monkeypatch.setattr(kernels, "has_gpu_kernels", lambda table: False)
    np.testing.assert_allclose(by_kernels.cpu(), model.fit(X).objective_history_.cpu(), rtol=1e-4)


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU")
def test_a_weighting_that_synchronises_with_the_device_is_not_captured():
    class Asking(Entropy):
        def score(self, energies):
            assert float(energies.sum()) >= 0
            return super().score(energies)

    X = drawn(200, 20, dtype=torch.float64)
    fits = [
        RobustNMF(3, weighting=weighting, solver="mu", tol=0, max_iter=40, random_state=0).fit(X)
        for weighting in (Asking(0.1), Entropy(0.1))
    ]
    asked, unasked = (model.objective_history_.cpu() for model in fits)
    np.testing.assert_allclose(asked, unasked, rtol=1e-9)
