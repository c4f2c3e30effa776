"""Energies from the Gram identity equal energies from the residual."""

import numpy as np
import pytest

from robustnmf.arrays import DenseBlock, energy_rounding, to_numpy
from robustnmf.losses import Frobenius


def energies(X, codes, basis, xp, dtype="float64"):
    X, codes, basis = (xp.asarray(a, dtype=getattr(xp, dtype)) for a in (X, codes, basis))
    block = DenseBlock(X)
    codes, basis = codes[None, ...], basis[None, ...]
    gram = basis @ xp.matrix_transpose(basis)
    rest = block.kernels.quadratic_part(codes, block.project(basis), gram)
    z = Frobenius().expanded_energies(block, codes, basis, rest)
    return to_numpy(z)[0]


@pytest.mark.parametrize("size", [1.0, 1e-2, 1e-4, 1e-6, 1e-9])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_energies_of_nearly_exact_rows_keep_their_digits(size, dtype, xp):
    rng = np.random.default_rng(0)
    codes, basis = rng.random((30, 4)), rng.random((4, 50))
    X = (codes @ basis + size * rng.random((30, 50))).astype(dtype)
    codes, basis = codes.astype(dtype), basis.astype(dtype)
    exact = ((X.astype(float) - codes.astype(float) @ basis.astype(float)) ** 2).sum(axis=1)
    eps = np.finfo(dtype).eps
    norms = (X.astype(float) ** 2).sum(axis=1)
    exact = np.maximum(exact, energy_rounding(X) * norms)
    # The identity has an error of a few eps |x|^2 if it is used (z > sqrt(eps) |x|^2): up to 4.4 on
    # ARM, where BLAS sums in another order than on x86. A residual r of a unit row has the error
    # eps, so its square has the error 2 r eps + eps^2.
    allowed = np.minimum(8 * eps * norms, 4 * eps * np.sqrt(exact * norms) + 4 * eps**2 * norms)
    allowed = np.where(exact > 0.9 * eps**0.5 * norms, 8 * eps * norms, allowed)
    assert np.all(np.abs(energies(X, codes, basis, xp, dtype) - exact) <= allowed)


def test_an_exact_row_has_the_energy_of_rounding_instead_of_zero(xp):
    codes, basis = np.ones((1, 1)), np.array([[1.0, 2.0, 4.0]])
    z = energies(codes @ basis, codes, basis, xp)
    assert z == pytest.approx([energy_rounding(xp.asarray(1.0)) * 21.0])


def test_a_zero_row_has_zero_energy_and_weight(xp):
    block = DenseBlock(xp.asarray([[0.0, 0.0], [1.0, 2.0]]))
    assert to_numpy(block.row_weight).tolist() == [0.0, 1.0]
    z = energies([[0.0, 0.0], [1.0, 2.0]], [[0.0], [1.0]], [[1.0, 1.0]], xp)
    assert z.tolist() == [0.0, 1.0]
