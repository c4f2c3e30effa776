"""Simulated cells and tumours."""

import numpy as np
import scipy.sparse

from robustnmf.experiments.simulated import (
    matched_cosines,
    simulate_catalogues,
    simulate_cells,
)


def test_cells_have_the_parts_that_they_were_drawn_from():
    cells = simulate_cells(300, 120, 4, damaged=0.1, seed=0)
    assert scipy.sparse.issparse(cells.counts)
    counts = cells.counts.toarray()
    np.testing.assert_array_equal(counts, np.rint(counts))
    np.testing.assert_allclose(cells.programs.sum(axis=1), 1)
    np.testing.assert_allclose(cells.usages.sum(axis=1), 1)
    assert 0.04 < cells.is_damaged.mean() < 0.2
    assert 0.04 < cells.is_doublet.mean() < 0.2
    sizes = counts.sum(axis=1)
    good = ~cells.is_damaged
    assert sizes[good & cells.is_doublet].mean() > 1.4 * sizes[good & ~cells.is_doublet].mean()
    largest = counts.max(axis=1) / sizes  # a damaged cell has few genes
    assert np.median(largest[~good]) > 3 * np.median(largest[good])
    again = simulate_cells(300, 120, 4, damaged=0.1, seed=0)
    np.testing.assert_array_equal(again.counts.toarray(), counts)


def test_hypermutators_have_many_mutations_of_their_own():
    data = simulate_catalogues(200, 3, seed=0)
    assert data.counts.shape == (200, 96)
    np.testing.assert_allclose(data.signatures.sum(axis=1), 1)
    sizes = data.counts.sum(axis=1)
    assert sizes[data.is_hypermutator].min() > 5 * np.median(sizes)


def test_parts_are_matched_once():
    truth = np.eye(3)
    components = np.array([[0.0, 2.0, 0.0], [0.0, 1.0, 0.1]])
    cosines = matched_cosines(truth, components)
    assert cosines[1] > 0.99
    assert (cosines > 0.5).sum() == 1
    np.testing.assert_allclose(matched_cosines(truth, 5 * truth[::-1]), 1)
