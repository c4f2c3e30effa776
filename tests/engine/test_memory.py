"""Units and blocks of data in memory."""

import math

import numpy as np
import pytest

from robustnmf.engine import InMemory
from robustnmf.engine.memory import power_of_two_near_largest


@pytest.mark.parametrize("largest", [1.0, 0.7, 255.0, 1e-60, 1e60, 1e-300, 1e300, 5e-324])
def test_units_are_a_power_of_two_near_the_largest_entry(largest):
    scale = power_of_two_near_largest(np.array([[0.0, largest]]))
    assert math.frexp(scale)[0] == 0.5
    if 1e-300 <= largest <= 1e300:
        assert 0.5 <= largest / scale < 1


def test_a_table_of_zeros_has_units_of_one_and_all_rows_have_weight():
    engine = InMemory(np.zeros((3, 2)))
    assert engine.scale == 1.0
    assert engine.row_weight.tolist() == [1.0, 1.0, 1.0]


def test_zero_rows_among_others_have_no_weight():
    engine = InMemory(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]), block_rows=1)
    assert engine.row_weight.tolist() == [0.0, 1.0, 0.0]


def test_blocks_are_views_that_cover_all_rows():
    X = np.random.default_rng(0).random((10, 3))
    engine = InMemory(X, block_rows=4)
    assert [len(block) for block in engine.blocks] == [4, 4, 2]
    assert all(np.shares_memory(block.rows, X) for block in engine.blocks)
    assert engine.mean() * engine.scale == pytest.approx(X.mean())


def test_imputed_data_have_the_same_blocks():
    X = np.random.default_rng(0).random((60, 8))
    X[3, 2] = np.nan
    engine = InMemory(X, block_rows=25)
    assert [len(block) for block in engine.filled().blocks] == [25, 25, 10]


@pytest.mark.parametrize("huge", [1e60, 1e140])
def test_one_huge_entry_does_not_change_the_typical_size(huge):
    X = np.random.default_rng(0).random((101, 5))
    engine = InMemory(X)
    X[3, 2] = huge
    spoiled = InMemory(X)
    sizes = [e.typical_size() * e.scale**2 for e in (engine, spoiled)]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.05)


def test_units_of_divergences_are_lower_if_typical_entries_are_far_smaller_than_the_largest():
    X = 0.5 + np.random.default_rng(0).random((101, 5))
    assert InMemory(X, degree=1.0).scale == InMemory(X).scale
    X[3, 2] = 1e60
    engine = InMemory(X, degree=1.0, block_rows=25)
    assert math.frexp(engine.scale)[0] == 0.5
    eps = np.finfo(float).eps
    assert 0.5 * eps <= engine.typical_size(1.0) / 5 <= 2 * eps
    assert all(block.scale == engine.scale for block in engine.blocks)
    assert engine.row_sizes(1.0)[0] == pytest.approx(X[0].sum() / engine.scale)


def test_units_of_divergences_keep_powers_of_the_largest_entry_in_range():
    X = np.ones((101, 5))
    X[3, 2] = 1e90
    engine = InMemory(X, degree=3.0)
    assert np.isfinite(engine.row_sizes(3.0)).all()
