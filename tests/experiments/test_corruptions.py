"""Spoiled samples: the right share, and nothing else touched."""

import numpy as np
import pytest

from robustnmf.experiments.corruptions import CORRUPTIONS, spoil

X = np.random.default_rng(0).random((50, 16))


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_a_corruption_spoils_its_share_and_nothing_else(kind):
    spoiled, bad = spoil(X, 0.2, [kind], (4, 4), seed=1)
    assert bad.sum() == 10
    np.testing.assert_array_equal(spoiled[~bad], X[~bad])
    assert np.all(np.any(spoiled[bad] != X[bad], axis=1))
    assert spoiled.min() >= 0
    assert spoiled.max() <= X.max()


def test_the_same_seed_spoils_the_same():
    one, other = (spoil(X, 0.3, list(CORRUPTIONS), (4, 4), seed=3) for _ in range(2))
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])


def test_shuffled_samples_keep_their_values():
    spoiled, bad = spoil(X, 1.0, ["shuffled"], (4, 4), seed=0)
    assert bad.all()
    np.testing.assert_array_equal(np.sort(spoiled), np.sort(X))
