"""Scores of clusterings against classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import check_consistent_length, column_or_1d

__all__ = [
    "clustering_accuracy",
    "largest_cluster_share",
    "n_clusters",
    "normalized_mutual_info",
]


def clustering_accuracy(y: Any, labels: Any) -> float:
    r"""Compute the share of samples in the class that their cluster is assigned to.

    .. math:: ACC = \max_{map} \frac{1}{n} \sum_i [y_i = map(y'_i)]

    with the best assignment of clusters to classes, no two clusters to one class.

    Parameters
    ----------
    y, labels : array-like (n_samples,)
        Classes and clusters, in any coding.

    Examples
    --------
    >>> from robustnmf.metrics import clustering_accuracy
    >>> clustering_accuracy([0, 0, 1, 1], ["b", "b", "a", "b"])
    0.75
    """
    y, labels = _checked(y, labels)
    counts = contingency_matrix(y, labels)
    return float(counts[linear_sum_assignment(counts, maximize=True)].sum() / len(y))


def normalized_mutual_info(y: Any, labels: Any) -> float:
    r"""Compute the mutual information of classes and clusters over the larger of their entropies.

    .. math:: NMI = \frac{MI(y, y')}{\max(H(y), H(y'))}

    Parameters
    ----------
    y, labels : array-like (n_samples,)

    Examples
    --------
    >>> from robustnmf.metrics import normalized_mutual_info
    >>> round(normalized_mutual_info([0, 0, 1, 1], [1, 1, 0, 0]), 3)
    1.0
    """
    y, labels = _checked(y, labels)
    return float(normalized_mutual_info_score(y, labels, average_method="max"))


def largest_cluster_share(labels: Any) -> float:
    """Compute the share of the samples in the largest cluster.

    Where it is near one, the accuracy is just the share of the largest class.

    Examples
    --------
    >>> from robustnmf.metrics import largest_cluster_share
    >>> largest_cluster_share([0, 0, 0, 1])
    0.75
    """
    labels = column_or_1d(labels)
    return float(np.unique(labels, return_counts=True)[1].max() / len(labels))


def n_clusters(labels: Any) -> int:
    """Count the clusters that hold any sample.

    Examples
    --------
    >>> from robustnmf.metrics import n_clusters
    >>> n_clusters([0, 0, 2, 2])
    2
    """
    return len(np.unique(column_or_1d(labels)))


def _checked(y: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """Validate classes and clusters of the same length, at least one sample."""
    y, labels = column_or_1d(y), column_or_1d(labels)
    check_consistent_length(y, labels)
    if len(y) == 0:
        raise ValueError("there are no samples to compare: y and labels are empty.")
    return y, labels
