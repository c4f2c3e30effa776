"""Coordinate sweeps and their minimum; tests/arrays/test_kernels.py compares their loops."""

import array_api_compat.numpy as xnp
import numpy as np

from robustnmf.arrays import kernels_for
from robustnmf.solvers import Hals, Quadratic, Ratio, nonnegative_least_squares


def quadratic(members=2, rows=150, k=5, seed=0, dtype="float64"):
    """Factor, linear term and Gram matrix of random nonnegative least squares problems."""
    rng = np.random.default_rng(seed)
    basis = rng.random((members, k, 3 * k))
    data = rng.random((members, rows, 3 * k))
    gram = basis @ np.swapaxes(basis, 1, 2)
    linear = data @ np.swapaxes(basis, 1, 2)
    return tuple(a.astype(dtype) for a in (rng.random((members, rows, k)), linear, gram))


def value(factor, linear, gram):
    return np.sum(factor * (0.5 * factor @ gram - linear), axis=-1)


def test_the_memory_layout_of_the_factor_is_kept():
    factor, linear, gram = quadratic()
    across = [np.ascontiguousarray(np.swapaxes(a, 1, 2)) for a in (factor, linear)]
    views = [np.swapaxes(a, 1, 2) for a in across]
    sweep = kernels_for(factor).sweep_coordinates
    moved = sweep(*views, gram, 2)
    assert np.swapaxes(moved, 1, 2).flags.c_contiguous
    np.testing.assert_allclose(moved, sweep(factor, linear, gram, 2), rtol=1e-13)


def test_sweeps_never_raise_the_objective_and_converge_to_the_minimum():
    factor, linear, gram = quadratic()
    before = value(factor, linear, gram)
    for sweeps in (1, 1, 3, 500):
        factor = kernels_for(factor).sweep_coordinates(factor, linear, gram, sweeps)
        after = value(factor, linear, gram)
        assert np.all(after <= before + 1e-12)
        before = after
    best = [nonnegative_least_squares(a, g) for a, g in zip(linear, gram, strict=True)]
    np.testing.assert_allclose(factor, np.stack(best), atol=1e-8)


def test_a_majorant_lies_above_and_has_the_same_gradient():
    rng = np.random.default_rng(0)
    data, basis, codes = rng.random((20, 12)), rng.random((4, 12)), rng.random((20, 4))
    known = rng.random(data.shape) < 0.7

    def loss(a):
        return np.sum(known * (data - a @ basis) ** 2, axis=1) / 2

    negative, positive = ((known * t) @ basis.T for t in (data, codes @ basis))
    terms = Ratio(negative[None], positive[None], (basis @ basis.T)[None])
    above = terms.majorant(codes[None])
    for _ in range(20):
        other = rng.random(codes.shape)
        rise = value(other[None], above.linear, above.gram) - value(
            codes[None], above.linear, above.gram
        )
        assert np.all(loss(other) - loss(codes) <= rise[0] + 1e-12)
    moved = Hals().step(codes[None], terms, 1.0)[0]
    assert np.all(loss(moved) <= loss(codes) + 1e-12)


def test_a_row_without_known_entries_becomes_zero():
    zero = xnp.zeros((1, 2, 3))
    terms = Ratio(zero, zero, xnp.eye(3)[None])
    assert np.all(Hals().step(xnp.ones((1, 2, 3)), terms, 1.0) == 0)


def test_penalties_are_included_in_the_step():
    factor, linear, gram = quadratic()
    plain = Hals().step(factor, Quadratic(linear, gram), 1.0)
    lasso = Hals().step(factor, Quadratic(linear, gram, lasso=0.5), 1.0)
    assert np.mean(lasso == 0) > np.mean(plain == 0)
