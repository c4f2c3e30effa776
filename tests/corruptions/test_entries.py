"""Corrupted entries: the right share, correct masks, and no other changes."""

import numpy as np
import pytest

from robustnmf.corruptions import ENTRY_CORRUPTIONS, NOISE_SAMPLES, spoil_entries
from robustnmf.corruptions.entries import MISSING

X = 0.1 + np.random.default_rng(0).random((80, 16))


@pytest.mark.parametrize("kind", ENTRY_CORRUPTIONS)
@pytest.mark.parametrize("shape", [(4, 4), None])
def test_the_mask_marks_changed_entries(kind, shape):
    spoiled = spoil_entries(X, 0.2, kind, shape, seed=1)
    known = ~np.isnan(spoiled.X)
    np.testing.assert_array_equal(spoiled.bad, known & (spoiled.X != X))
    assert spoiled.bad_samples.shape == (80,)
    assert np.nanmin(spoiled.X) >= 0
    assert np.nanmax(spoiled.X) <= 5 * X.max()
    again = spoil_entries(X, 0.2, kind, shape, seed=1)
    np.testing.assert_array_equal(spoiled.X, again.X)


@pytest.mark.parametrize("kind", ENTRY_CORRUPTIONS)
def test_share_zero_is_the_clean_table(kind):
    spoiled = spoil_entries(X, 0.0, kind, None, seed=1)
    np.testing.assert_array_equal(spoiled.X, X)
    assert not spoiled.bad.any()
    assert not spoiled.bad_samples.any()


@pytest.mark.parametrize("kind", ["extreme", "large"])
def test_scattered_entries_have_their_share_and_values(kind):
    spoiled = spoil_entries(X, 0.2, kind, None, seed=2)
    assert spoiled.bad.mean() == pytest.approx(0.2, abs=0.001)
    assert not spoiled.bad_samples.any()
    values = spoiled.X[spoiled.bad] / X.max()
    if kind == "large":
        assert values.min() >= 1
        assert values.mean() == pytest.approx(3.0, abs=0.3)
    else:
        assert set(values) == {0.0, 1.0}
        assert values.mean() == pytest.approx(0.5, abs=0.1)


def test_entries_that_keep_their_value_are_not_bad():
    zeros = np.where(X > 0.6, X, 0.0)
    spoiled = spoil_entries(zeros, 0.5, "extreme", None, seed=2)
    np.testing.assert_array_equal(spoiled.bad, zeros != spoiled.X)
    assert spoiled.bad.mean() < 0.45


@pytest.mark.parametrize(("shape", "rows"), [((4, 4), {0, 4}), (None, {0, 4})])
def test_a_quarter_of_covered_samples_is_bad(shape, rows):
    spoiled = spoil_entries(X, 0.3, "covered", shape, seed=3)
    assert set(spoiled.bad.sum(axis=1)) == rows
    assert spoiled.bad_samples.sum() == 24
    np.testing.assert_array_equal(spoiled.bad_samples, spoiled.bad.any(axis=1))
    assert set(spoiled.X[spoiled.bad]) == {X.max()}
    if shape:
        image = spoiled.bad[spoiled.bad_samples][0].reshape(shape)
        assert image.any(axis=0).sum() == image.any(axis=1).sum() == 2


def test_mixed_has_noise_samples_and_large_entries():
    spoiled = spoil_entries(X, 0.1, "mixed", None, seed=4)
    assert spoiled.bad_samples.mean() == NOISE_SAMPLES
    assert spoiled.bad[spoiled.bad_samples].all()
    assert spoiled.X[spoiled.bad_samples].max() <= X.max()
    others = ~spoiled.bad_samples
    assert spoiled.bad[others].mean() == pytest.approx(0.1, abs=0.02)
    assert spoiled.X[others][spoiled.bad[others]].min() >= X.max()


def test_missing_entries_are_not_bad_ones():
    spoiled = spoil_entries(X, 0.1, "missing", None, seed=5)
    missing = np.isnan(spoiled.X)
    assert missing.mean() == pytest.approx(MISSING, abs=0.001)
    assert not spoiled.bad[missing].any()
    assert spoiled.bad.mean() == pytest.approx(0.09, abs=0.02)


@pytest.mark.parametrize("kind", ENTRY_CORRUPTIONS)
def test_missing_values_stay_missing(kind):
    table = X.copy()
    table[3, 2] = np.nan
    spoiled = spoil_entries(table, 0.2, kind, None, seed=1)
    if not spoiled.bad_samples[3]:
        assert np.isnan(spoiled.X[3, 2])
    assert not np.isnan(spoiled.X[spoiled.bad]).any()


@pytest.mark.parametrize(("share", "kind"), [(-0.1, "large"), (1.5, "large"), (0.1, "other")])
def test_impossible_shares_and_kinds_are_refused(share, kind):
    with pytest.raises(ValueError, match="is needed"):
        spoil_entries(X, share, kind, None, seed=1)
