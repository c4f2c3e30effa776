r"""Features that tell each component from the others.

The largest entries of a component are often those that all components have. The contrast of
component i in feature j is

.. math:: s_{ij} = p_{ij} \ln \frac{p_{ij}}{q_{ij}}, \qquad
    p_{ij} = \frac{c_{ij}}{\sum_l c_{il}}, \qquad
    q_{ij} = \max_{h \ne i} p_{hj}

with a small number in place of zeros: the share that the feature has in the component, times the
logarithm of how much that exceeds its share in any other component. Features are thus first those
that are both frequent in the component and rare in the others. Shares have no units, so that the
sizes of components, which trade off with those of the codes, do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from robustnmf.arrays import to_numpy
from robustnmf.estimators.rank import is_integer

LEAST_SHARE = 1e-3
"""Share in other components, as a part of the mean share, below which it makes no difference."""


@dataclass(frozen=True)
class TopFeature:
    """A feature that tells a component from the others.

    Attributes
    ----------
    component : int
        Index of the component.
    feature : int
        Index of the feature.
    name : str
        Its name, where the model knows it, else "x" and the index.
    value : float
        Entry of ``components_``.
    share : float
        The same as a share of the component.
    ratio : float
        Share over the largest share that the feature has in another component; both are raised by
        a small number, so that it is finite. Infinite where there is no other component.
    spread : float or None
        Standard deviation of the entry over runs, where the model has ``spread_``.
    """

    component: int
    feature: int
    name: str
    value: float
    share: float
    ratio: float
    spread: float | None = None


def top_features(model: Any, n: int = 10) -> list[list[TopFeature]]:
    r"""List the features that tell each component from the others.

    Features are ordered by :math:`p_{ij} \ln(p_{ij} / \max_{h \ne i} p_{hj})`, where
    :math:`p_{ij}` is feature j's share of component i. Of a single component they are its largest
    entries.

    Parameters
    ----------
    model : fitted estimator
        With ``components_``, for example :class:`RobustNMF` or :class:`ConsensusNMF`.
    n : int, default=10
        Features of each component, at most; only those with a larger share than in any other
        component are listed.

    Returns
    -------
    features : list of lists of TopFeature
        For every component its features, the best first.

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import RobustNMF, top_features
    >>> parts = np.array([[5.0, 1.0, 0.0, 0.2], [5.0, 0.0, 1.0, 0.2]])
    >>> X = np.random.default_rng(0).random((60, 2)) @ parts
    >>> model = RobustNMF(2, random_state=0).fit(X)
    >>> sorted(features[0].name for features in top_features(model, 1))
    ['x1', 'x2']
    """
    if not hasattr(model, "components_"):
        check_is_fitted(model)
    if not is_integer(n) or n < 1:
        raise ValueError(f"n is {n!r}, but a number of features (1 or more) is needed.")
    components = to_numpy(model.components_).astype(np.float64)
    shares, ratios = _shares_and_ratios(components)
    scores = shares * np.log(ratios) if len(components) > 1 else shares
    names = getattr(model, "feature_names_in_", None)
    spread = getattr(model, "spread_", None)
    spread = None if spread is None else to_numpy(spread)
    found = []
    for i, row in enumerate(scores):
        best = [int(j) for j in np.argsort(-row, kind="stable")[: int(n)] if row[j] > 0]
        found.append(
            [
                TopFeature(
                    i, j, f"x{j}" if names is None else str(names[j]), float(components[i, j]),
                    float(shares[i, j]), float(ratios[i, j]) if len(scores) > 1 else np.inf,
                    None if spread is None else float(spread[i, j]),
                )
                for j in best
            ]
        )  # fmt: skip
    return found


def _shares_and_ratios(components: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute shares (k, features), and how much they exceed the largest in other components."""
    k, features = components.shape
    sums = components.sum(axis=1, keepdims=True)
    shares = components / np.where(sums > 0, sums, 1.0)
    others = np.zeros_like(shares)
    if k > 1:
        two = np.sort(shares, axis=0)[-2:]
        others = np.where(np.argmax(shares, axis=0) == np.arange(k)[:, None], two[0], two[1])
    least = LEAST_SHARE / features
    return shares, (shares + least) / (others + least)
