"""Checks on what users hand in; every message says what was given and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight, _get_feature_names

from robustnmf.losses import Loss
from robustnmf.structures import Structure

FLOATS = [np.float64, np.float32]
LEAST, MOST = 1e-150, 1e150


def check_table(X: Any, name: str, loss: Loss) -> np.ndarray:
    """X as a finite nonnegative float table, not copied where it is one already."""
    _get_feature_names(X)  # refuses names of mixed types, before the work rather than after
    X = check_array(X, dtype=FLOATS, estimator=name, input_name="X")
    refuse_unfit(X, name, loss)
    return X


def check_weights(sample_weight: Any, X: np.ndarray) -> np.ndarray | None:
    """Sample weights in float64, not negative and not all zero."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():  # older scikit-learn lets this pass
        raise ValueError("sample_weight needs at least one non-zero number; all are zero.")
    return weights


def refuse_unfit(X: np.ndarray, name: str, loss: Loss) -> None:
    """Refuse negative values, sizes whose squares overflow, and zeros the loss cannot take."""
    if X.min() < 0:
        values, row, column = _found(X < 0, "negative value")
        raise ValueError(
            f"Negative values in data passed to {name}: X holds {values}, first at "
            f"[{row}, {column}] = {X[row, column]:.6g}; NMF needs X >= 0. Clip small negative "
            "noise at zero, or shift every feature by its minimum."
        )
    largest = float(X.max())
    if largest != 0 and not LEAST <= largest <= MOST:
        raise ValueError(
            f"the largest value of X is {largest:.3g}; {name} squares it, so it needs to lie "
            f"between {LEAST:g} and {MOST:g}. Divide X by {largest:.1g} first."
        )
    if not loss.takes_zeros and X.min() == 0:
        values, row, column = _found(X == 0, "zero")
        raise ValueError(
            f"{loss!r} needs X > 0, but X holds {values}, first at [{row}, {column}]: its loss "
            "is infinite there. Add a small constant to X, or use KullbackLeibler."
        )


def _found(mask: np.ndarray, what: str) -> tuple[str, int, int]:
    """How many there are, in words, and where the first is."""
    rows, columns = np.nonzero(mask)
    count = f"1 {what}" if len(rows) == 1 else f"{len(rows)} {what}s"
    return count, int(rows[0]), int(columns[0])


def check_fixed(fixed: Any, structure: Structure, rank: int, X: np.ndarray) -> np.ndarray | None:
    """Components that are given: nonnegative, of the features of X, no more than the rank."""
    if fixed is None:
        return None
    if structure.mixes_samples:
        raise ValueError(
            f"fixed_components and {structure!r} exclude each other: its components are "
            "mixtures of samples and cannot be given. Use structure='free'."
        )
    fixed = check_array(fixed, dtype=X.dtype, input_name="fixed_components")
    if fixed.shape[1] != X.shape[1] or len(fixed) > rank:
        raise ValueError(
            f"fixed_components has shape {fixed.shape}, but needs at most n_components={rank} "
            f"rows and as many columns as X has features, {X.shape[1]}."
        )
    if fixed.min() < 0:
        raise ValueError("fixed_components holds negative values; NMF needs components >= 0.")
    return fixed


def check_factor(factor: Any, shape: tuple[int, int], name: str, what: str, like: np.ndarray):
    """A factor of a custom start: right shape, finite and positive throughout."""
    if factor is None:
        raise ValueError(
            f"init='custom' needs both W (codes) and H (basis); {name} is missing. "
            f"Pass {name} with shape {shape} to fit, or choose another init."
        )
    factor = check_array(factor, dtype=like.dtype, input_name=name)
    if factor.shape != shape:
        raise ValueError(
            f"{name} has shape {factor.shape}, but {what} must have shape {shape} "
            "for this X and n_components."
        )
    if factor.min() <= 0:
        count = int(np.count_nonzero(factor <= 0))
        row, column = np.argwhere(factor <= 0)[0]
        raise ValueError(
            f"{name} holds {count} values that are zero or negative, first at [{row}, {column}] = "
            f"{factor[row, column]:.6g}; multiplicative updates can never change a zero. "
            "Replace them by small positive numbers."
        )
    return factor
