"""Spoiled samples: the right share, and nothing else touched."""

import numpy as np
import pytest

from robustnmf.corruptions import CORRUPTIONS, gaussian, spoil

X = np.random.default_rng(0).random((50, 16))


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_a_corruption_spoils_its_share_and_nothing_else(kind):
    spoiled, bad = spoil(X, 0.2, [kind], (4, 4), seed=1)
    assert bad.sum() == 10
    np.testing.assert_array_equal(spoiled[~bad], X[~bad])
    assert np.all(np.any(spoiled[bad] != X[bad], axis=1))
    assert spoiled.min() >= 0
    assert spoiled.max() <= (10 if kind == "scaled" else 1) * X.max()


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_samples_that_are_not_images_can_be_corrupted(kind):
    spoiled, bad = spoil(X, 0.2, [kind], None, seed=1)
    assert np.all(np.any(spoiled[bad] != X[bad], axis=1))


def test_the_noise_of_the_paper_has_the_variance_of_the_values():
    table = np.full((200, 500), 4.0)
    noisy = gaussian(table, 0.1, random_state=0)
    assert abs((noisy - table).std() - 0.1 * 2.0) < 0.002
    np.testing.assert_array_equal(noisy, gaussian(table, 0.1, random_state=0))
    np.testing.assert_array_equal(gaussian(table, 0.0, random_state=0), table)
    assert gaussian(np.full((100, 100), 0.01), 1.0, random_state=0).min() == 0
    with pytest.raises(ValueError, match="negative"):
        gaussian(-table, 0.1)


def test_nothing_to_spoil_is_fine():
    spoiled, bad = spoil(X, 0.0, list(CORRUPTIONS), None, seed=0)
    np.testing.assert_array_equal(spoiled, X)
    assert not bad.any()


def test_the_same_seed_spoils_the_same():
    one, other = (spoil(X, 0.3, list(CORRUPTIONS), (4, 4), seed=3) for _ in range(2))
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])


def test_shuffled_samples_keep_their_values():
    spoiled, bad = spoil(X, 1.0, ["shuffled"], (4, 4), seed=0)
    assert bad.all()
    np.testing.assert_array_equal(np.sort(spoiled), np.sort(X))


def test_integers_are_corrupted_as_floats():
    pixels = (255 * X).astype(np.uint8)
    spoiled, _ = spoil(pixels, 0.2, ["scaled"], None, seed=1)
    assert spoiled.max() > 255
    np.testing.assert_array_equal(spoiled, spoil(pixels.astype(float), 0.2, ["scaled"], None, 1)[0])


@pytest.mark.parametrize(
    ("share", "kinds", "what"),
    [(0.2, ["x"], "kinds"), (0.2, "noise", "kinds"), (0.2, [], "kinds"), (2, ["noise"], "share")],
)
def test_bad_requests_are_refused(share, kinds, what):
    with pytest.raises(ValueError, match=f"{what} is .* needed"):
        spoil(X, share, kinds, None, seed=1)
