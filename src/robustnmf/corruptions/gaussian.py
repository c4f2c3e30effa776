"""The paper's noise: on every entry of every sample, larger where values are larger."""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state


def gaussian(
    X: np.ndarray, c: float, random_state: int | np.random.RandomState | None = None
) -> np.ndarray:
    r"""Add Gaussian noise with variance in proportion to each value, and clip at zero.

    .. math:: X_{ij} \leftarrow \max(0,\; X_{ij} + c\, \epsilon_{ij}), \qquad
        \epsilon_{ij} \sim N(0, X_{ij})

    with :math:`X_{ij}` the variance, as the paper says. Clipping at zero is not in the paper, but
    nonnegative methods need it.

    Parameters
    ----------
    X : array (samples, features), nonnegative
    c : float
        Noise level.
    random_state : int, RandomState or None

    Returns
    -------
    noisy : array (samples, features)

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf.corruptions import gaussian
    >>> gaussian(np.array([[0.0, 1.0], [4.0, 100.0]]), 0.05, random_state=0).round(2)
    array([[  0.  ,   1.02],
           [  4.1 , 101.12]])
    """
    X = np.asarray(X, dtype=float)
    if not (X >= 0).all():
        raise ValueError("X holds negative values or NaN, and no variance is negative.")
    noise = check_random_state(random_state).standard_normal(X.shape)
    return np.maximum(X + c * np.sqrt(X) * noise, 0.0)
