"""An isolation forest in compiled loops (Liu, Ting and Zhou, 2008).

Random splits isolate unusual rows early. scikit-learn's forest gives the same scores, but takes
longer than a whole fit of a small table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robustnmf.arrays.kernels.compiled import compiled
from robustnmf.arrays.namespace import Array

TREES, TREE_ROWS = 100, 256
"""Number of trees, and number of rows from which each is grown, as in the paper."""

USUAL = 0.5
"""Rows with at most this score are usual, as in the paper and scikit-learn."""


@dataclass(frozen=True)
class IsolationForest:
    """Trees of random splits.

    Parameters
    ----------
    features, splits, sizes : ndarray (trees, nodes)
        Feature and value that split a node, and the rows in it; the feature of a leaf is -1. The
        children of node i are nodes 2 i + 1 and 2 i + 2.
    rows : int; number of rows from which each tree was grown
    """

    features: np.ndarray
    splits: np.ndarray
    sizes: np.ndarray
    rows: int

    @classmethod
    def grow(cls, rows: np.ndarray, weight: np.ndarray) -> IsolationForest:
        """Grow a forest from rows (rows, features) with weights (rows,).

        The forest is deterministic.
        """
        rng = np.random.default_rng(0)
        count = int(min(TREE_ROWS, np.ceil(weight.sum() / weight.min())))
        depth = max(1, int(np.ceil(np.log2(max(count, 2)))))
        nodes = 2 ** (depth + 1) - 1
        chosen = _draw(rng, weight, count)
        features = np.full((TREES, nodes), -1)
        splits, sizes = np.zeros((TREES, nodes)), np.zeros((TREES, nodes), dtype=np.int64)
        inner = 2**depth - 1
        grow_trees(
            np.ascontiguousarray(rows, dtype=np.float64), chosen, rng.random((TREES, inner, 2)),
            features, splits, sizes, np.zeros(nodes, dtype=np.int64),
        )  # fmt: skip
        return cls(features, splits, sizes, count)

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """Compute the scores of rows (rows,), between zero and one; high if unusual.

        A row with a missing value (NaN) goes to the child with more training rows.
        """
        lengths, averages = np.zeros(len(rows)), _average_length(np.arange(self.rows + 1))
        add_path_lengths(
            np.ascontiguousarray(rows, dtype=np.float64), self.features, self.splits, self.sizes,
            averages, lengths,
        )  # fmt: skip
        average = max(float(averages[-1]), 1.0)  # of one row: zero
        return 2.0 ** (-lengths / (len(self.features) * average))


def _draw(rng: np.random.Generator, weight: np.ndarray, count: int) -> np.ndarray:
    """Draw rows (trees, count) for all trees, with probabilities proportional to their weights."""
    order = np.argsort(rng.random((TREES, len(weight))), axis=1)
    ends = np.cumsum(weight[order], axis=1)
    places = (np.arange(count) + rng.random((TREES, 1))) / count
    return np.array([
        row[np.minimum(np.searchsorted(end, place * end[-1], side="right"), len(weight) - 1)]
        for row, end, place in zip(order, ends, places, strict=True)
    ])  # fmt: skip


def _average_length(count: np.ndarray) -> np.ndarray:
    """Return the average path length of an unsuccessful search in a tree of ``count`` rows."""
    many = np.maximum(count, 3)
    length = 2.0 * (np.log(many - 1.0) + np.euler_gamma) - 2.0 * (many - 1.0) / many
    return np.where(count > 2, length, np.where(count == 2, 1.0, 0.0))


@compiled()
def grow_trees(
    rows: Array, chosen: Array, draws: Array, features: Array, splits: Array, sizes: Array,
    first: Array,
) -> None:  # fmt: skip
    """Split the chosen rows (trees, count) by draws (trees, nodes, 2) into trees.

    ``first`` (nodes,) is space for the positions of the first rows of nodes.
    """
    width, inner = rows.shape[1], draws.shape[1]
    for tree in range(len(chosen)):
        sizes[tree, 0], first[0] = chosen.shape[1], 0
        for node in range(inner):
            start, count = first[node], sizes[tree, node]
            if count < 2:
                continue
            begin = int(draws[tree, node, 0] * width)
            for shift in range(width):  # the next feature that is not constant here
                feature = (begin + shift) % width
                low = high = rows[chosen[tree, start], feature]
                for at in range(start + 1, start + count):
                    value = rows[chosen[tree, at], feature]
                    if value < low:
                        low = value
                    elif value > high:
                        high = value
                if high > low:
                    break
            if not high > low:
                continue
            split = low + draws[tree, node, 1] * (high - low)
            below = start
            for at in range(start, start + count):
                if rows[chosen[tree, at], feature] <= split:
                    chosen[tree, at], chosen[tree, below] = chosen[tree, below], chosen[tree, at]
                    below += 1
            features[tree, node], splits[tree, node] = feature, split
            first[2 * node + 1], sizes[tree, 2 * node + 1] = start, below - start
            first[2 * node + 2], sizes[tree, 2 * node + 2] = below, start + count - below


@compiled()
def add_path_lengths(
    rows: Array, features: Array, splits: Array, sizes: Array, averages: Array, lengths: Array
) -> None:
    """Add the path lengths of rows in all trees to lengths (rows,).

    ``averages`` (counts,) are the average lengths below a leaf, by its number of training rows.
    """
    for tree in range(len(features)):
        for row in range(len(rows)):
            node = depth = 0
            while features[tree, node] >= 0:
                value, below = rows[row, features[tree, node]], 2 * node + 1
                if np.isnan(value):
                    is_above = sizes[tree, below + 1] > sizes[tree, below]
                else:
                    is_above = value > splits[tree, node]
                node = below + int(is_above)
                depth += 1
            lengths[row] += depth + averages[sizes[tree, node]]
