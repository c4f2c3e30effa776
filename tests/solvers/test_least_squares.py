"""Codes for a given basis compared with SciPy's nonnegative least squares."""

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from sklearn.utils.fixes import parse_version

from robustnmf.arrays import to_numpy
from robustnmf.arrays.kernels import loops
from robustnmf.solvers import nonnegative_least_squares, refine
from robustnmf.solvers.least_squares import RIDGE, TOLERANCE


def solve(X, basis, xp=None):
    linear, gram = X @ basis.T, basis @ basis.T
    if xp is None:
        return nonnegative_least_squares(linear, gram)
    return to_numpy(nonnegative_least_squares(xp.asarray(linear), xp.asarray(gram)))


def residual_energies(X, basis, codes):
    return ((X - codes @ basis) ** 2).sum(axis=1)


def least_energies(X, basis):
    """Residuals of SciPy's solution; with components of other sizes it can fail to converge."""
    norms = np.linalg.norm(basis, axis=1, keepdims=True)
    basis = basis / np.where(norms > 0, norms, 1.0)
    return np.array([nnls(basis.T, row)[1] ** 2 for row in X])


needs_nnls = pytest.mark.skipif(
    parse_version(scipy.__version__) < parse_version("1.16"),
    reason="nnls of SciPy 1.15 is wrong: it returns a residual of 1.64 instead of 0.25",
)


@needs_nnls
@settings(max_examples=60)
@given(
    rows=st.integers(1, 12),
    features=st.integers(1, 12),
    k=st.integers(1, 14),
    seed=st.integers(0, 2**31),
    kind=st.sampled_from(["plain", "duplicates", "zero component", "sparse", "tiny"]),
)
def test_residuals_are_as_small_as_with_scipy(rows, features, k, seed, kind):
    rng = np.random.default_rng(seed)
    basis, X = rng.gamma(0.7, size=(k, features)), rng.gamma(1.0, size=(rows, features))
    if kind == "duplicates" and k > 1:
        basis[1] = basis[0]
    if kind == "zero component":
        basis[0] = 0
    if kind == "sparse":
        basis *= rng.random(basis.shape) < 0.3
    if kind == "tiny":
        basis *= 10.0 ** rng.integers(-6, 6, size=(k, 1))
    codes = solve(X, basis)
    assert np.all(codes >= 0)
    best = least_energies(X, basis)
    norms = (X**2).sum(axis=1)
    assert np.all(residual_energies(X, basis, codes) <= best + 1e-9 * norms)


@needs_nnls
@pytest.mark.parametrize("kind", ["plain", "negative", "duplicates", "peaks"])
@pytest.mark.parametrize("k", [1, 4, 20])
def test_active_sets_alone_are_as_exact_as_scipy(k, kind):
    rng = np.random.default_rng(0)
    basis, X = rng.gamma(0.5, size=(k, 15)), rng.gamma(1.0, size=(30, 15))
    if kind == "negative":
        X -= 1.0
    if kind == "duplicates":
        basis[-1] = basis[0]
    if kind == "peaks":
        basis = np.exp(-0.5 * ((np.arange(15) - np.linspace(0, 14, k)[:, None]) / 4) ** 2)
    basis /= np.linalg.norm(basis, axis=1, keepdims=True)
    gram, codes, marks = basis @ basis.T, np.empty((30, k)), np.empty((2, k), dtype=np.int64)
    every = np.ones(30, dtype=bool)
    space = np.empty((k, k)), np.empty(k), *marks
    loops.climb_rows(X @ basis.T, gram[None], every, RIDGE, TOLERANCE, codes, *space)
    assert codes.min() >= 0
    best = least_energies(X, basis)
    assert np.all(residual_energies(X, basis, codes) <= best + 1e-12 * (X**2).sum(axis=1))


@pytest.mark.parametrize("k", [15, 30])
def test_nearly_dependent_components_are_solved(k, xp):
    """Smooth overlapping peaks, for which pivoting fails on many rows."""
    rng = np.random.default_rng(0)
    basis = np.exp(-0.5 * ((np.arange(60) - np.linspace(0, 59, k)[:, None]) / 8) ** 2)
    codes = rng.gamma(1.0, size=(80, k)) * (rng.random((80, k)) < 0.4)
    X = codes @ basis + 0.01 * rng.random((80, 60))
    best = np.array([nnls(basis.T, row, maxiter=1000)[1] ** 2 for row in X])
    excess = residual_energies(X, basis, solve(X, basis, xp)) - best
    assert np.all(excess <= 1e-3 * best + 1e-10 * (X**2).sum(axis=1))


def test_a_row_does_not_depend_on_other_rows(xp):
    rng = np.random.default_rng(0)
    basis, X = rng.random((8, 30)), rng.random((50, 30))
    together = solve(X, basis, xp)
    apart = np.concatenate([solve(row[None], basis, xp) for row in X])
    np.testing.assert_allclose(apart, together, rtol=1e-9, atol=1e-12)


def test_every_row_can_have_its_own_gram_matrix(xp):
    rng = np.random.default_rng(0)
    basis, X, weights = rng.random((5, 20)), rng.random((9, 20)), rng.random((9, 20))
    grams = np.einsum("km,bm,lm->bkl", basis, weights, basis)
    linear = (weights * X) @ basis.T
    codes = to_numpy(nonnegative_least_squares(xp.asarray(linear), xp.asarray(grams)))
    for row, weight, code in zip(X, weights, codes, strict=True):
        want, _ = nnls((basis * np.sqrt(weight)).T, row * np.sqrt(weight))
        np.testing.assert_allclose(code, want, atol=1e-8)


def test_a_guess_does_not_change_the_solution():
    rng = np.random.default_rng(0)
    basis, X = rng.random((6, 15)), rng.random((20, 15))
    linear, gram = X @ basis.T, basis @ basis.T
    plain = nonnegative_least_squares(linear, gram)
    guessed = nonnegative_least_squares(linear, gram, guess=rng.random((20, 6)) - 0.5)
    np.testing.assert_allclose(guessed, plain, atol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_dtype_is_kept(dtype):
    rng = np.random.default_rng(0)
    basis, X = rng.random((6, 15)).astype(dtype), rng.random((20, 15)).astype(dtype)
    assert solve(X, basis).dtype == dtype


def test_large_problems_are_divided_into_chunks(monkeypatch):
    from robustnmf.solvers import least_squares

    rng = np.random.default_rng(0)
    basis, X = rng.random((6, 15)), rng.random((23, 15))
    whole = solve(X, basis)
    monkeypatch.setattr(least_squares, "CHUNK_NUMBERS", 5 * 36)
    np.testing.assert_allclose(solve(X, basis), whole, rtol=1e-10, atol=1e-13)


def test_refinement_fits_exact_rows_to_the_last_digit(xp):
    rng = np.random.default_rng(0)
    basis = rng.random((5, 30)) + 10  # nearly parallel components
    codes = rng.random((40, 5)) * (rng.random((40, 5)) < 0.6)
    X = codes @ basis
    rough = solve(X, basis)
    slope = (X - rough @ basis) @ basis.T
    fine = to_numpy(refine(xp.asarray(rough), xp.asarray(slope), xp.asarray(basis @ basis.T)))
    norms = (X**2).sum(axis=1)
    assert fine.min() >= 0
    assert np.all(residual_energies(X, basis, fine) <= 1e-28 * norms + 1e-300)


def test_components_without_curvature_do_not_hide_others(xp):
    linear = np.array([[1.0, 1.0, -1.0]])
    codes = nonnegative_least_squares(*map(xp.asarray, (linear, np.diag([1.0, 1.0, 1e-24]))))
    np.testing.assert_allclose(to_numpy(codes), [[1.0, 1.0, 0.0]], rtol=1e-6)
