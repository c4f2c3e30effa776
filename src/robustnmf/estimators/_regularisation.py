"""Penalties of codes and basis: scikit-learn's parameters in the units of a problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from robustnmf.losses import Loss
from robustnmf.problem import ElasticNet
from robustnmf.weightings import Weighting


def penalties_of(
    model: Any,
    loss: Loss,
    weighting: Weighting,
    shape: tuple[float, int],
    scale: float,
    dtype: np.dtype,
    balance: float = 1.0,
) -> dict[str, Any]:
    """Return the penalties of a problem with codes ``W / balance`` and basis ``H balance / scale``.

    scikit-learn adds penalties to half the squared error, whose double our energies are, and
    to other losses as they are.
    """
    alpha_codes = float(getattr(model, "alpha_W", 0.0))
    alpha_H = getattr(model, "alpha_H", "same")
    alpha_basis = alpha_codes if alpha_H == "same" else float(alpha_H)
    l1_ratio = getattr(model, "l1_ratio", 0.0)
    n_samples, n_features = shape
    energy = scale**loss.degree
    # A larger penalty changes nothing: all that it is on is zero, and nothing may overflow.
    prohibitive = float(np.finfo(dtype).max) ** 0.5
    factor = 1.0 if loss.quadratic else 1.0 / loss.unit

    def penalty_of(strength: float, size: float, value: float) -> ElasticNet:
        lasso = factor * strength * l1_ratio * size / value
        ridge = factor * strength * (1 - l1_ratio) * size**2 / value
        return ElasticNet(float(min(lasso, prohibitive)), float(min(ridge, prohibitive)))

    return {
        "codes_penalty": penalty_of(n_features * alpha_codes, balance, energy),
        "basis_penalty": penalty_of(
            n_samples * alpha_basis, scale / balance, energy**weighting.degree
        ),
    }
