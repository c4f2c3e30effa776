"""Checks on what users hand in beside X; messages say what was given and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight

from robustnmf.arrays import host_dtype, is_foreign, to_numpy
from robustnmf.structures import Structure

Seed = int | np.random.RandomState | None


def check_weights(sample_weight: Any, samples: int) -> np.ndarray | None:
    """Sample weights in float64, not negative and not all zero."""
    if sample_weight is None:
        return None
    sample_weight = to_numpy(sample_weight) if is_foreign(sample_weight) else sample_weight
    table = np.broadcast_to(0.0, (samples, 1))  # for its length alone
    weights = _check_sample_weight(sample_weight, table, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():  # older scikit-learn lets this pass
        raise ValueError("sample_weight needs at least one non-zero number; all are zero.")
    return weights


def check_fixed(
    fixed: Any, structure: Structure, rank: int, features: int, dtype: Any
) -> np.ndarray | None:
    """Components that are given: nonnegative, of the features of X, no more than the rank."""
    if fixed is None:
        return None
    if structure.mixes_samples:
        raise ValueError(
            f"fixed_components and {structure!r} exclude each other: its components are "
            "mixtures of samples and cannot be given. Use structure='free'."
        )
    fixed = to_numpy(fixed) if is_foreign(fixed) else fixed
    fixed = check_array(fixed, dtype=dtype, input_name="fixed_components")
    if fixed.shape[1] != features or len(fixed) > rank:
        raise ValueError(
            f"fixed_components has shape {fixed.shape}, but needs at most n_components={rank} "
            f"rows and as many columns as X has features, {features}."
        )
    if fixed.min() < 0:
        raise ValueError("fixed_components holds negative values; NMF needs components >= 0.")
    return fixed


def check_factor(
    factor: Any, shape: tuple[int, int], name: str, what: str, like: np.ndarray
) -> np.ndarray:
    """Return a factor of a custom start: right shape, finite, nonnegative, not all zero."""
    if factor is None:
        raise ValueError(
            f"init='custom' needs both W (codes) and H (basis); {name} is missing. "
            f"Pass {name} with shape {shape} to fit, or choose another init."
        )
    factor = to_numpy(factor) if is_foreign(factor) else factor
    factor = check_array(factor, dtype=host_dtype(like), input_name=name)
    if factor.shape != shape:
        raise ValueError(
            f"{name} has shape {factor.shape}, but {what} must have shape {shape} "
            "for this X and n_components."
        )
    if factor.min() < 0:
        count = int(np.count_nonzero(factor < 0))
        row, column = np.argwhere(factor < 0)[0]
        raise ValueError(
            f"{name} holds {count} values that are negative, first at [{row}, {column}] = "
            f"{factor[row, column]:.6g}. Replace them by small positive numbers."
        )
    if not factor.any():
        raise ValueError(f"{name} is zero throughout; a start needs something to go on.")
    return factor
