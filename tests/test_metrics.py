"""Scores of clusterings: laws, and what they are by hand."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustnmf.metrics import (
    clustering_accuracy,
    largest_cluster_share,
    match_components,
    n_clusters,
    normalized_mutual_info,
)

labellings = st.integers(2, 12).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 3), min_size=n, max_size=n)] * 2)
)


@given(labellings)
def test_accuracy_is_the_best_over_all_assignments(pair):
    y, labels = map(np.array, pair)
    best = max(np.mean(np.array(order)[labels] == y) for order in permutations(range(4)))
    assert clustering_accuracy(y, labels) == pytest.approx(best)


@given(labellings)
def test_scores_do_not_depend_on_names(pair):
    y, labels = map(np.array, pair)
    renamed = np.array(["d", "a", "c", "b"])[labels]
    for score in (clustering_accuracy, normalized_mutual_info):
        assert score(y, renamed) == pytest.approx(score(y, labels))
        assert 0 <= score(y, labels) <= 1 + 1e-12


def test_information_is_over_the_larger_entropy():
    y, labels = [0, 0, 1, 1], [0, 1, 2, 3]
    assert normalized_mutual_info(y, labels) == pytest.approx(np.log(2) / np.log(4))
    assert normalized_mutual_info(y, y) == pytest.approx(1.0)


def test_share_and_number_of_clusters():
    labels = [3, 3, 3, 7]
    assert largest_cluster_share(labels) == 0.75
    assert n_clusters(labels) == 2


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="inconsistent"):
        clustering_accuracy([0, 1], [0])
    with pytest.raises(ValueError, match="at least one sample"):
        normalized_mutual_info([], [])


def test_components_are_matched_once():
    truth = np.eye(3)
    rows, matches, cosines = match_components(truth, np.array([[0.0, 2.0, 0.0], [0.0, 1.0, 0.1]]))
    assert sorted(matches) == [0, 1]
    assert cosines[list(rows).index(1)] > 0.99
    assert (cosines > 0.5).sum() == 1
    np.testing.assert_allclose(match_components(truth, 5 * truth[::-1])[2], 1)
