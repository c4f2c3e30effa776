"""Lists of missing entries give the same results as products of whole tables."""

import numpy as np
import pytest

from robustnmf import RobustNMF
from robustnmf.arrays import blocks
from robustnmf.arrays.blocks import LEAST_FEATURES, MaskedBlock
from tests.problems import noisy_low_rank, with_holes

X = with_holes(noisy_low_rank(60, LEAST_FEATURES, 4, seed=3), share=0.1)


def hidden_products(known, codes, basis):
    """The approximation at missing entries, and zeros for known entries."""
    return np.where(known, 0.0, codes @ basis)


def missing(known):
    """The list of the missing entries of a table."""
    return MaskedBlock(np.zeros(known.shape), known).missing


def test_products_with_the_missing_entries():
    rng = np.random.default_rng(0)
    known = ~np.isnan(X)
    codes, basis = rng.random((2, 60, 3)), rng.random((2, 3, LEAST_FEATURES))
    listed = missing(known)
    hidden = hidden_products(known, codes, basis)
    values = listed.approximation(codes, basis)
    np.testing.assert_allclose(values, hidden[:, ~known])
    projected = listed.project_part(values, basis)
    np.testing.assert_allclose(projected, hidden @ basis.swapaxes(1, 2))
    np.testing.assert_allclose(listed.row_sums(values**2), (hidden**2).sum(axis=2))
    np.testing.assert_allclose(listed.cross_part(codes, values), codes.swapaxes(1, 2) @ hidden)


def test_many_missing_entries_and_few_features_are_not_listed():
    rng = np.random.default_rng(0)
    assert missing(rng.random((20, LEAST_FEATURES)) < 0.5) is None
    assert missing(rng.random((20, LEAST_FEATURES - 1)) < 0.9) is None
    assert missing(rng.random((20, LEAST_FEATURES)) < 0.9) is not None


def spoiled(kind):
    """The table with empty rows and columns, or with a huge value at a missing entry."""
    table = X.copy()
    if kind == "unknown":
        table[3], table[:, 5], table[7, ~np.isnan(table[7])] = np.nan, np.nan, 0.0
    if kind == "large":
        table[:, 0] *= 300.0
        table[::4, 0] = np.nan
    return table


@pytest.mark.parametrize("weighting", ["trimmed", "uniform"])
@pytest.mark.parametrize("kind", ["plain", "unknown", "large"])
def test_fits_equal_fits_with_whole_products(kind, weighting, monkeypatch):
    table = spoiled(kind)
    model = RobustNMF(4, weighting=weighting, max_iter=40, tol=1e-9, random_state=0)
    listed = model.fit_transform(table) @ model.components_
    history = np.array(model.objective_history_)
    assert (np.diff(history) <= 1e-12 * history[0]).all()
    monkeypatch.setattr(blocks, "LARGEST_SHARE", -1.0)
    whole = model.fit_transform(table) @ model.components_
    np.testing.assert_allclose(listed, whole, rtol=1e-6, atol=1e-8 * whole.max())
    np.testing.assert_allclose(history, model.objective_history_, rtol=1e-7)
