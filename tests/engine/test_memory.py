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


def test_an_empty_table_has_units_of_one_and_all_its_rows_count():
    engine = InMemory(np.zeros((3, 2)))
    assert engine.scale == 1.0
    assert engine.row_weight.tolist() == [1.0, 1.0, 1.0]


def test_zero_rows_among_others_do_not_count():
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
