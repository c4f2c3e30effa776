"""Compiled loops over rows give the same numbers as the formulas of the losses."""

import numpy as np
import pytest
import scipy.sparse

from robustnmf.arrays import DenseBlock, MaskedBlock, SparseBlock, row_slice
from robustnmf.losses import Beta, ItakuraSaito, KullbackLeibler

LOSSES = [KullbackLeibler(), ItakuraSaito(), Beta(1.0), Beta(0.0)]


def table(loss, dtype=np.float64, order="C"):
    """Rows in the user's units, and two approximations of them in units of 8."""
    rng = np.random.default_rng(0)
    rows = 8 * (rng.gamma(0.5, size=(30, 50)) + 1e-6)
    if loss.takes_zeros:
        rows[rng.random(rows.shape) < 0.2] = 0.0
    approximations = rng.gamma(0.5, size=(2, *rows.shape)) + 1e-3
    approximations[0] = rows / 8 * np.exp(0.1 * rng.standard_normal(rows.shape))
    return np.asarray(rows, dtype=dtype, order=order), approximations.astype(dtype)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_sums_over_rows_equal_sums_of_entries(loss, dtype, order):
    rows, approximations = table(loss, dtype, order)
    block = DenseBlock(rows, 8.0)
    expected = loss.entries(rows.astype(float) / 8, approximations.astype(float)).sum(axis=-1)
    sums = loss.row_losses(block, approximations)
    assert sums.dtype == np.float64
    np.testing.assert_allclose(sums, expected, rtol=1e-12 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_parts_of_the_gradient_equal_the_formulas(loss):
    rows, approximations = table(loss)
    block = DenseBlock(rows, 8.0)
    for part, expected in zip(
        loss.split_block(block, approximations), loss.split(rows / 8, approximations), strict=True
    ):
        assert (part is None) == (expected is None)
        if part is not None:
            np.testing.assert_allclose(part, expected, rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", [KullbackLeibler(), Beta(1.0)], ids=repr)
def test_stored_entries_of_sparse_rows_are_summed_and_divided(loss, dtype):
    rows, approximations = table(loss, dtype)
    rows[3] = 0.0
    sparse = scipy.sparse.csr_array(rows)
    block = SparseBlock(row_slice(sparse, 1, 20), 8.0)
    stored = np.nonzero(rows[1:20])
    values = rows[1:20][stored] / 8
    at_stored = np.stack([member[1:20][stored] for member in approximations])
    assert np.shares_memory(block.rows.data, sparse.data)  # no copy of X
    expected = block.row_sums(loss.entries(values.astype(float), at_stored.astype(float)))
    rtol = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(loss.row_losses(block, at_stored), expected, rtol=rtol, atol=1e-12)
    ratios, _ = loss.split_block(block, at_stored)
    np.testing.assert_allclose(ratios, loss.split(values, at_stored)[0], rtol=max(1e-14, rtol))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("gap", [1e-12, 1e-7, 1e-3])
def test_digits_are_kept_if_the_approximation_nearly_agrees(loss, gap):
    rows = np.ones((1, 1))
    approximation = np.full((1, 1, 1), 1 + gap)
    exact_gap = approximation[0, 0, 0] - 1.0
    series = sum((-1) ** i * exact_gap**i / i for i in range(2, 8))
    if loss.degree == 0:  # x / y instead of y / x
        ratio_gap = 1.0 / approximation[0, 0, 0] - 1.0
        series = sum((-1) ** i * ratio_gap**i / i for i in range(2, 8))
    np.testing.assert_allclose(loss.row_losses(DenseBlock(rows), approximation), series, rtol=1e-3)
    assert loss.row_losses(DenseBlock(rows), np.ones((1, 1, 1))) == 0.0


@pytest.mark.parametrize("ratio", [1e-290, 1e-20, 0.5**0.5, 2.0**0.5, 3.0, 1e20, 1e290])
def test_distant_approximations_have_finite_losses(ratio):
    value = KullbackLeibler().row_losses(DenseBlock(np.ones((1, 1))), np.full((1, 1, 1), ratio))
    y = max(ratio, np.finfo(float).eps ** 2)
    np.testing.assert_allclose(value, y - 1 - np.log(y), rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_missing_entries_add_nothing_to_the_sums(loss, dtype):
    rows, approximations = table(loss, dtype)
    known = np.random.default_rng(1).random(rows.shape) < 0.8
    block = MaskedBlock(rows, known, 8.0)
    assert block.divergence(loss.row_loop, approximations, per_row=True) is not None
    entries = loss.entries(rows.astype(float) / 8, approximations.astype(float))
    expected = np.where(known, entries, 0.0).sum(axis=-1)
    sums = loss.row_losses(block, approximations)
    np.testing.assert_allclose(sums, expected, rtol=1e-12 if dtype == np.float64 else 1e-5)
