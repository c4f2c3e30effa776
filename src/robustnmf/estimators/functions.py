"""Factorisation as a function, called as scikit-learn's ``non_negative_factorization``."""

from __future__ import annotations

from typing import Any

import numpy as np

from robustnmf._warn import warn
from robustnmf.estimators.robust import RobustNMF


def non_negative_factorization(
    X: Any,
    W: Any = None,
    H: Any = None,
    n_components: int | str | None = None,
    *,
    init: str | None = None,
    update_H: bool = True,
    sample_weight: Any = None,
    **parameters: Any,
) -> tuple[Any, Any, int]:
    """Factorise X, or compute the codes of X for a basis that is given.

    As scikit-learn's function of this name does by its NMF, this one does by :class:`RobustNMF`.

    Parameters
    ----------
    X : table (n_samples, n_features)
        Of any kind that :meth:`RobustNMF.fit` takes.
    W : array-like (n_samples, n_components), optional
        Codes to start from, with ``init="custom"``.
    H : array-like (n_components, n_features), optional
        Basis to start from, with ``init="custom"``; with ``update_H=False`` the basis.
    n_components : int, "auto" or None, default=None
        As in :class:`RobustNMF`; with ``update_H=False`` the number of rows of H.
    init : str, optional
        As in :class:`RobustNMF`; of no use with ``update_H=False``.
    update_H : bool, default=True
        Whether the basis is learned. If not, H is held, and the codes are the best ones for it.
    sample_weight : array-like (n_samples,), optional
        How many times each sample counts.
    **parameters
        Further parameters of :class:`RobustNMF`.

    Returns
    -------
    W : ndarray (n_samples, n_components)
        Codes.
    H : ndarray (n_components, n_features)
        Basis.
    n_iter : int
        Iterations run.

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import non_negative_factorization
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(1.0, size=(60, 3)) @ rng.gamma(1.0, size=(3, 8))
    >>> W, H, n_iter = non_negative_factorization(X, n_components=3, random_state=0)
    >>> again, same, _ = non_negative_factorization(X, H=H, update_H=False)
    >>> np.allclose(again, W, atol=1e-6), np.array_equal(same, H)
    (True, True)
    """
    if "fixed_components" in parameters:
        raise TypeError("non_negative_factorization takes H with update_H=False for this.")
    if update_H:
        model = RobustNMF(n_components, init=init, **parameters)
        codes = model.fit_transform(X, W=W, H=H, sample_weight=sample_weight)
        return codes, model.components_, model.n_iter_
    if H is None:
        raise ValueError("update_H=False needs H, the basis that is held; pass H.")
    if W is not None:
        warn("update_H=False: the codes are the best ones for H, and W is ignored.", RuntimeWarning)
    rank = int(H.shape[0] if hasattr(H, "shape") else np.shape(H)[0])
    if n_components not in (None, "auto", rank):
        raise ValueError(
            f"n_components={n_components}, but H has {rank} rows, which update_H=False holds. "
            "Leave n_components out."
        )
    model = RobustNMF(rank, fixed_components=H, **parameters)
    codes = model.fit_transform(X, sample_weight=sample_weight)
    return codes, model.components_, model.n_iter_
