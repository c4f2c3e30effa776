"""Scores of clusterings and of consensus matrices.

Names in ``__all__`` are public. The others are for experiments: they compare components with true
components, and samples with their approximations, in the same way for all methods.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import squareform
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import check_consistent_length, column_or_1d

from robustnmf.solvers import nonnegative_least_squares

__all__ = [
    "clustering_accuracy", "cophenetic_correlation", "dispersion", "largest_cluster_share",
    "n_clusters", "normalized_mutual_info",
]  # fmt: skip


def clustering_accuracy(y: Any, labels: Any) -> float:
    r"""Compute the share of samples in the class that their cluster is assigned to.

    .. math:: ACC = \max_{map} \frac{1}{n} \sum_i [y_i = map(y'_i)]

    with the best one-to-one assignment of clusters to classes.

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

    If it is near 1, the accuracy is only the share of the largest class.

    Examples
    --------
    >>> from robustnmf.metrics import largest_cluster_share
    >>> largest_cluster_share([0, 0, 0, 1])
    0.75
    """
    labels = column_or_1d(labels)
    return float(np.unique(labels, return_counts=True)[1].max() / len(labels))


def n_clusters(labels: Any) -> int:
    """Count the clusters that are not empty.

    Examples
    --------
    >>> from robustnmf.metrics import n_clusters
    >>> n_clusters([0, 0, 2, 2])
    2
    """
    return len(np.unique(column_or_1d(labels)))


def cophenetic_correlation(consensus_matrix: np.ndarray) -> float:
    """Correlate a consensus matrix with the distances in its dendrogram (average linkage).

    It is 1 if all runs group the samples in the same way (Brunet et al., 2004). The argument is the
    result (n_samples, n_samples) of :meth:`robustnmf.ConsensusNMF.consensus_matrix`.

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf.metrics import cophenetic_correlation
    >>> round(cophenetic_correlation(np.kron(np.eye(2), np.ones((3, 3)))), 6)
    1.0
    """
    distances = squareform(1.0 - np.asarray(consensus_matrix), checks=False)
    if not np.ptp(distances):  # all samples are in one group, in every run
        return 1.0
    return float(cophenet(linkage(distances, "average"), distances)[0])


def dispersion(consensus_matrix: np.ndarray) -> float:
    """Measure how near the entries of a consensus matrix are to 0 and 1 (Kim and Park, 2007).

    It is 1 if all runs group the samples in the same way, and 0 if each pair of samples is in the
    same group in half of the runs.

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf.metrics import dispersion
    >>> dispersion(np.eye(4)), dispersion(np.full((4, 4), 0.5))
    (1.0, 0.0)
    """
    return float(np.mean(4 * (np.asarray(consensus_matrix) - 0.5) ** 2))


def match_components(
    truth: np.ndarray, components: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Match true components (k, features) and components so that the sum of cosines is largest.

    Returns the indices of both (pairs,), and their cosines (pairs,).
    """
    one, other = (
        rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
        for rows in (truth, components)
    )
    cosines = one @ other.T
    rows, columns = linear_sum_assignment(cosines, maximize=True)
    return rows, columns, cosines[rows, columns]


def residuals(X: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return the residuals (n_samples, n_features) of all entries with the best codes for a basis.

    Missing values (NaN) do not influence the codes; their residuals are NaN.
    """
    return X - best_codes(X, basis) @ basis


def best_codes(X: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return the nonnegative codes (n_samples, k) of least squared error for a basis."""
    missing = np.isnan(X)
    known_values, gram = X, basis @ basis.T
    if missing.any():
        known_values = np.where(missing, 0.0, X)
        products = (basis[:, None, :] * basis[None, :, :]).reshape(-1, basis.shape[1])
        gram = (~missing @ products.T).reshape(len(X), *gram.shape)
    return nonnegative_least_squares(known_values @ basis.T, gram)


def squared_errors(X: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return the squared error (n_samples,) of every sample with the best codes for a basis."""
    return np.nansum(residuals(X, basis) ** 2, axis=1)


def _checked(y: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """Validate classes and clusters of the same length, at least one sample."""
    y, labels = column_or_1d(y), column_or_1d(labels)
    check_consistent_length(y, labels)
    if len(y) == 0:
        raise ValueError("y and labels are empty, but at least one sample is needed.")
    return y, labels
