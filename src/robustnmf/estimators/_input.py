"""Checks on what users hand in beside X; messages say what was given and what to do."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight

from robustnmf.archive import is_stream
from robustnmf.arrays import fill_masked, host_dtype, is_foreign, to_numpy
from robustnmf.sources import Source
from robustnmf.structures import Structure

Seed = int | np.random.RandomState | None


def check_weights(sample_weight: Any, samples: int) -> np.ndarray | None:
    """Sample weights in float64, not negative and not all zero."""
    if sample_weight is None:
        return None
    sample_weight = _on_host(sample_weight)
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
    fixed = check_array(_on_host(fixed), dtype=dtype, input_name="fixed_components")
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
    factor = check_array(_on_host(factor), dtype=host_dtype(like), input_name=name)
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


def check_codes_path(
    path: Any, source: Source, structure: Structure, checkpoint: Any = None
) -> Path | None:
    """The file that codes are to be in, if they can be."""
    if path is None:
        return None
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"codes_path is {path!r}, but the path of a file is needed.")
    if source.codes_are_lazy:
        raise ValueError(
            "codes_path is for X in memory or in files. Codes of a Dask array stay on its workers; "
            "write what fit_transform returns with to_zarr or to_npy_stack."
        )
    if structure.mixes_samples:
        raise ValueError("codes_path is not for convex structures, which mix all samples at once.")
    target = Path(os.path.expanduser(path))
    if target.is_dir() or not target.parent.is_dir():
        raise FileNotFoundError(f"codes_path is {target}, but a file in a folder is needed.")
    if is_stream(target):
        raise ValueError(
            f"codes_path is {target}, a FIFO or a device, but a memory map needs a regular file. "
            "Write what fit_transform returns to it instead."
        )
    for other, what in ((source.file, "X"), (checkpoint, "the checkpoint")):
        if isinstance(other, (str, os.PathLike)) and _same_file(target, other):
            raise ValueError(f"codes_path is the file of {what}, which codes would replace.")
    with tempfile.TemporaryFile(dir=target.parent):
        pass  # better before a fit than after it
    return target


def _on_host(values: Any) -> Any:
    """Return values as scikit-learn's checks read them: in NumPy, and NaN if masked."""
    return to_numpy(values) if is_foreign(values) else fill_masked(values)


def _same_file(one: Path, other: str | os.PathLike) -> bool:
    return one.resolve() == Path(os.path.expanduser(other)).resolve()
