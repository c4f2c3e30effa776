"""Compiled loops over energies, and steps of one member, give the same numbers as array calls."""

from __future__ import annotations

import numpy as np
import pytest

from robustnmf import Frobenius
from robustnmf.arrays import DenseBlock, Kernels, kernels_for
from robustnmf.weightings import EnergyHistogram
from robustnmf.weightings._base import SCALE_STEP


class ArrayCalls(DenseBlock):
    """A block that computes with array calls."""

    kernels = Kernels()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("members", [1, 2])
def test_energies_equal_array_calls(dtype, members):
    """Codes and energies agree, also for energies that cancel."""
    rng = np.random.default_rng(1)
    basis = rng.random((members, 4, 12)).astype(dtype)
    basis[0, 3] = 0  # a component on which nothing depends
    X = rng.random((60, 12)).astype(dtype)
    X[7] = 0
    X[20:30] = rng.random((10, 4)).astype(dtype) @ basis[0]  # fitted exactly
    codes = rng.random((members, 60, 4)).astype(dtype)
    gram = basis @ basis.transpose(0, 2, 1)
    results = []
    for block in (DenseBlock(X, 4.0), ArrayCalls(X, 4.0)):
        linear = block.project(basis)
        updated = block.kernels.sweep_coordinates(codes, linear, gram, 200)
        rest = block.kernels.quadratic_part(updated, linear, gram)
        results.append((updated, Frobenius().expanded_energies(block, updated, basis, rest)))
    tolerance = 1e-10 if dtype == np.float64 else 1e-3
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
    assert results[0][1][0, 20:30].max() < 1e-5


def test_sweeps_keep_the_layout_of_transposed_factors():
    """Every row has the same result in any memory layout."""
    rng = np.random.default_rng(0)
    rows = 1000
    factor, linear = (rng.random((1, 2, rows)).transpose(0, 2, 1) for _ in range(2))
    gram = np.array([[[2.0, 0.5], [0.5, 1.0]]])
    kernels = kernels_for(factor)
    whole = kernels.sweep_coordinates(factor, linear, gram, 3)
    part = kernels.sweep_coordinates(factor[:, :50], linear[:, :50], gram, 3)
    np.testing.assert_array_equal(part, whole[:, :50])
    assert part.strides[1] < part.strides[2]


@pytest.mark.parametrize("top", [0.0, 1e-300, 1e-12, 0.5, 1.0, 3.0, 1e300])
def test_scales_of_weights_equal_array_calls(top):
    """For tiny and for huge weights."""
    rng = np.random.default_rng(0)
    weight, rho, counts = top * rng.random((2, 30)), rng.random((2, 30)), rng.random(30)
    weight[0, 3], weight[1, 4], counts[3], counts[4] = top, top, 1.0, 1.0
    ours = kernels_for(weight).weigh_rows(rho, weight, counts, SCALE_STEP)
    theirs = Kernels().weigh_rows(rho, weight, counts, SCALE_STEP)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12)


def test_positions_outside_of_the_nodes_are_not_counted():
    """Nothing is written outside of the counts for any values."""
    positions = np.array([[np.nan, 1.25, np.inf, -np.inf, 1e300, -1e300, -1.0, 4.0]])
    counts = kernels_for(positions).count_at_nodes(positions, np.ones(8), 5)
    np.testing.assert_array_equal(counts, [[0.0, 0.75, 0.25, 0.0, 0.0]])


def test_energies_of_float32_rows_do_not_overflow():
    """Also if they are computed from residuals of rows that are fitted almost exactly."""
    rng = np.random.default_rng(0)
    codes, basis = (rng.random(shape).astype(np.float32) for shape in ((1, 30, 3), (1, 3, 8)))
    codes *= np.float32(1e31)
    block = DenseBlock(codes[0] @ basis[0] * np.float32(1 + 1e-5), 1.0)
    rest = block.kernels.quadratic_part(
        codes, block.project(basis), basis @ basis.transpose(0, 2, 1)
    )
    energies = Frobenius().expanded_energies(block, codes, basis, rest)
    assert np.isfinite(energies).all()


def test_the_shortest_half_of_known_values():
    """It contains half of the values, and is as short as the shortest half of sorted values."""
    rng = np.random.default_rng(0)
    logs = np.concatenate([rng.normal(-2.0, 0.5, 3000), rng.normal(3.0, 2.0, 2000)])
    ones = np.ones(len(logs))
    histogram = EnergyHistogram.of(np.exp(logs), ones, ones, unit=1.0, features=1).energies
    low, high = histogram.shortest_half
    assert np.mean((logs > low) & (logs < high)) == pytest.approx(0.5, abs=0.01)
    ordered = np.sort(logs)
    assert high - low == pytest.approx((ordered[2500:] - ordered[:-2500]).min(), abs=0.06)
