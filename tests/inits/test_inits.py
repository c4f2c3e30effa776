"""Starts: sizes, positivity and dependence on X."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition._nmf import _initialize_nmf

from robustnmf import RobustNMF
from robustnmf.arrays import to_numpy
from robustnmf.engine import InMemory
from robustnmf.inits import INITS
from robustnmf.solvers import nonnegative_least_squares
from tests.problems import noisy_low_rank

X = noisy_low_rank(50, 20, 4)


def start(name, xp, k=4, seed=0, data=X, **engine):
    engine = InMemory(xp.asarray(data), scale=1.0, **engine)
    codes, basis = INITS[name](engine, k, seed)
    return to_numpy(engine.whole(codes)), to_numpy(basis)


@pytest.mark.parametrize("name", INITS)
def test_starts_are_nonnegative_and_do_not_depend_on_blocks(name, xp):
    codes, basis = start(name, xp)
    assert codes.shape == (50, 4)
    assert basis.shape == (4, 20)
    assert codes.min() >= 0
    assert basis.min() >= 0
    again = start(name, xp, block_rows=7)
    np.testing.assert_allclose(again[0], codes, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(again[1], basis, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["random", "nndsvda"])
def test_starts_for_multiplicative_updates_have_no_zeros(name, xp):
    codes, basis = start(name, xp)
    assert codes.min() > 0
    assert basis.min() > 0


def test_random_has_the_mean_of_the_data(xp):
    codes, basis = start("random", xp, k=10, data=np.abs(np.sin(np.arange(6e4)).reshape(300, 200)))
    assert (codes @ basis).mean() == pytest.approx(2 / np.pi, rel=0.05)


def test_random_depends_only_on_the_seed(xp):
    one, same, other = (start("random", xp, seed=seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 0


def test_nndsvd_equals_scikit_learn(xp):
    W, H = _initialize_nmf(X, 4, init="nndsvd", random_state=0)
    codes, basis = start("nndsvd", xp)
    np.testing.assert_allclose(codes @ basis, W @ H, rtol=1e-3, atol=1e-3 * X.max())


def test_nndsvd_of_permuted_samples_is_permuted(xp):
    order = np.random.default_rng(0).permutation(len(X))
    codes, basis = start("nndsvda", xp)
    shuffled, same = start("nndsvda", xp, data=X[order])
    np.testing.assert_allclose(shuffled, codes[order], rtol=1e-6)
    np.testing.assert_allclose(same, basis, rtol=1e-6)


@pytest.mark.parametrize("name", ["nndsvda", "robust"])
def test_rounding_errors_of_pixels_that_are_always_black_do_not_matter(name):
    digits = load_digits().data
    order = np.random.default_rng(0).permutation(len(digits))
    _, basis = start(name, np, k=10, data=digits)
    _, same = start(name, np, k=10, data=digits[order])
    black = ~digits.any(axis=0)
    np.testing.assert_allclose(same[:, black], basis[:, black], rtol=1e-6)


def test_starts_scale_with_the_data(xp):
    for name in INITS:
        codes, basis = start(name, xp)
        bigger = start(name, xp, data=9.0 * X)
        np.testing.assert_allclose(bigger[0] @ bigger[1], 9.0 * codes @ basis, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6])
def test_the_robust_start_does_not_fit_huge_rows(size):
    rng = np.random.default_rng(0)
    clean = rng.gamma(1.0, size=(200, 4)) @ rng.gamma(1.0, size=(4, 30))
    dirty = clean.copy()
    dirty[:5] = size * clean.max() * rng.random((5, 30))
    _, basis = INITS["robust"](InMemory(dirty), 4, 0)
    _, plain = INITS["nndsvda"](InMemory(dirty), 4, 0)

    def left_over(parts):
        codes = nonnegative_least_squares(clean @ parts.T, parts @ parts.T)
        return np.sum((clean - codes @ parts) ** 2) / np.sum(clean**2)

    assert left_over(basis) < 0.1
    if size > 10:
        assert left_over(basis) < left_over(plain)


@pytest.mark.parametrize(("weighting", "init"), [("uniform", "nndsvda"), ("l21", "robust")])
def test_the_default_start_suits_the_weighting(weighting, init):
    default, named = (
        RobustNMF(3, weighting=weighting, init=name, max_iter=20, tol=0, random_state=0).fit(X)
        for name in (None, init)
    )
    np.testing.assert_array_equal(default.components_, named.components_)


def test_plain_nmf_of_many_samples_starts_from_some_of_them():
    many = np.tile(X, (150, 1))
    few = RobustNMF(4, weighting="uniform", random_state=0).fit(X)
    model = RobustNMF(4, weighting="uniform", random_state=0).fit(many)
    assert model.energies_.sum() < 150 * 1.05 * few.energies_.sum()
