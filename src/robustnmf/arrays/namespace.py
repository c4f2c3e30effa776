"""Array namespaces, and all numerical lower bounds of the library.

* ``smallest``: the smallest normal number; lower bound of denominators and of arguments of
  logarithms.
* ``noise``: ``eps**2``; lower bound of approximations by which a divergence divides (X is at
  most one).
* ``energy_rounding``: ``(8 eps)**2``, the energy that rounding of codes and of their products with
  the basis can leave in a row of unit size that is fitted exactly. It is the lower bound of
  computed energies relative to the size of their row: smaller energies are random numbers, and
  with unbounded weights the objective would be random too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

import array_api_compat
import numpy as np

Array = Any
Namespace = Any

ROUNDINGS = 8.0
"""Maximum difference between an exactly fitted row and its approximation, in machine epsilons."""

CUMULATIVE_ROUNDING = 1e-12
"""Relative error of cumulative weights; a share is reached if it is reached to this accuracy."""

WORTH_A_DEVICE = 2**20
"""Number of entries of a table above which a fit is faster on a GPU than on the host."""

_NAMESPACES: dict[type, Namespace] = {}


def namespace(x: Array) -> Namespace:
    """Return the array namespace of x, cached for each type of array.

    NumPy 2.1 and later implement the standard and need no wrappers.
    """
    kind = type(x)
    if kind not in _NAMESPACES:
        is_numpy = isinstance(x, np.ndarray | np.generic)
        _NAMESPACES[kind] = np if is_numpy else array_api_compat.array_namespace(x)
    return _NAMESPACES[kind]


@cache
def _limits(xp: Namespace, dtype: Any) -> tuple[float, float, float]:
    limits = xp.finfo(dtype)
    return float(limits.eps), float(limits.smallest_normal), float(limits.max)


def eps(x: Array) -> float:
    """Return the machine epsilon of the dtype of x."""
    return _limits(namespace(x), x.dtype)[0]


def smallest(x: Array) -> float:
    """Return the smallest normal number of the dtype of x."""
    return _limits(namespace(x), x.dtype)[1]


def largest(x: Array) -> float:
    """Return the largest number of the dtype of x."""
    return _limits(namespace(x), x.dtype)[2]


def noise(x: Array) -> float:
    """Return the square of the machine epsilon of the dtype of x."""
    return eps(x) ** 2


def energy_rounding(x: Array) -> float:
    """Return the energy that rounding alone can give to a row of unit size."""
    return (ROUNDINGS * eps(x)) ** 2


def at_least(x: Array, least: float | Array) -> Array:
    """Return the larger of x and a number; PyTorch does not copy the number to the device."""
    if array_api_compat.is_torch_array(x):
        return x.clamp(min=least)
    return namespace(x).maximum(x, least)


def at_most(x: Array, most: float | Array) -> Array:
    """Return the smaller of x and a number."""
    if array_api_compat.is_torch_array(x):
        return x.clamp(max=most)
    return namespace(x).minimum(x, most)


def by_rows(x: Array) -> Array:
    """Swap members and rows of codes; in memory, the members of a sample are adjacent."""
    return namespace(x).permute_dims(x, (1, 0, 2))


def floored(x: Array) -> Array:
    """Raise x to the smallest normal number, so that division by it is safe."""
    return at_least(x, smallest(x))


def quotient(over: Array, under: Array) -> Array:
    """Compute ``over / under``, and zero if the divisor is not positive."""
    xp = namespace(under)
    is_positive = under > 0
    return xp.where(is_positive, over / xp.where(is_positive, under, 1 + 0 * under), 0 * over)


def positive(x: Array) -> Array:
    """Raise x to ``eps**2``, so that a divergence can divide by this approximation twice."""
    return at_least(x, noise(x))


def safe_log(x: Array) -> Array:
    """Compute the logarithm of x, with zero replaced by the smallest normal number."""
    return namespace(x).log(floored(x))


def log_gap(value: Array, above: Array) -> Array:
    """Compute ``value - above`` for logarithms, and zero if value is the logarithm of zero."""
    xp = namespace(value)
    zero = xp.zeros_like(value)
    gap = xp.where(xp.isfinite(value), value, zero) - xp.where(xp.isfinite(above), above, zero)
    return xp.where(xp.isfinite(value), gap, zero)


def has_holes(x: Array) -> bool:
    """Return whether any entry is NaN; computed from a sum, without a table of booleans."""
    xp = namespace(x)
    with np.errstate(over="ignore", invalid="ignore"):  # an infinite sum is not a missing value
        total = xp.sum(x)
    return bool(xp.isnan(total)) and bool(xp.any(xp.isnan(x)))


def fill_masked(x: Any) -> Any:
    """Return x with NaN for the masked values of a NumPy masked array.

    Masked integers become float64. A list of masked rows is converted as well; any other x is
    returned unchanged.
    """
    if isinstance(x, list | tuple) and any(isinstance(row, np.ma.MaskedArray) for row in x):
        x = np.ma.array(x)
    if not isinstance(x, np.ma.MaskedArray):
        return x
    return np.ma.filled(x.astype(np.float64) if x.dtype.kind in "iub" else x, np.nan)


def as_float64(x: Array) -> Array:
    """Return x in float64, without a copy if it is float64 already."""
    xp = namespace(x)
    return xp.astype(x, xp.float64, copy=False)


def to_numpy(x: Array) -> np.ndarray:
    """Copy an array of any library and device to a NumPy array."""
    if isinstance(x, np.ndarray):
        return x
    if array_api_compat.is_dask_array(x):
        return to_numpy(x.compute())
    if array_api_compat.is_torch_array(x):
        x = x.detach()
    if array_api_compat.is_torch_array(x) or array_api_compat.is_cupy_array(x):
        x = array_api_compat.to_device(x, "cpu")
    return x if isinstance(x, np.ndarray) else np.from_dlpack(x)


def from_gpu(x: Array) -> np.ndarray:
    """Copy a PyTorch tensor to NumPy through pinned memory, 64 MB at a time."""
    import torch

    flat = x.contiguous().view(-1)
    out = np.empty(flat.shape[0], dtype=host_dtype(x))
    step = 2**26 // out.itemsize
    pages = torch.empty(min(step, out.size), dtype=x.dtype, pin_memory=True)
    for at in range(0, out.size, step):
        part = flat[at : at + step]
        pages[: part.shape[0]].copy_(part)
        out[at : at + step] = pages[: part.shape[0]].numpy()
    return out.reshape(x.shape)


def is_foreign(x: Any) -> bool:
    """Return whether x is an array of a library that computes eagerly and is not NumPy."""
    return (
        array_api_compat.is_torch_array(x)
        or array_api_compat.is_cupy_array(x)
        or type(x).__module__.startswith("array_api_strict")
    )


def host_dtype(like: Array) -> np.dtype:
    """Return the NumPy dtype of an array of floats."""
    return np.dtype(np.float64 if like.dtype == namespace(like).float64 else np.float32)


def column(values: Sequence[float], like: Array, dtype: Any, *, ndim: int) -> Array:
    """Return values along the first of ndim axes, on the device of another array."""
    xp = namespace(like)
    flat = xp.asarray([float(v) for v in values], dtype=dtype, device=device_of(like))
    return xp.reshape(flat, (-1,) + (1,) * (ndim - 1))


def on_device_of(like: Array, values: Any, dtype: Any = None) -> Array:
    """Copy host values to an array of the library and device of another array."""
    return namespace(like).asarray(values, dtype=dtype, device=device_of(like))


def device_of(like: Array) -> Any:
    """Return the device of an array."""
    return array_api_compat.device(like)


def to_device_of(like: Array, array: Array) -> Array:
    """Copy an array to the library and device of another one; no copy if it is there already."""
    if type(array) is type(like) and device_of(array) == device_of(like):
        return array
    return on_device_of(like, to_numpy(array))


def masked_scatter(into: Array, mask: Array, values: Array) -> Array:
    """Replace the entries of ``into`` in a mask over its last axis by values, in order."""
    xp = namespace(into)
    place = xp.cumulative_sum(xp.astype(mask, xp.int64)) - 1
    scattered = xp.take(values, xp.clip(place, min=0), axis=-1)
    return xp.where(mask, scattered, into)


def identity_like(gram: Array) -> Array:
    """Return the identity (k, k) with dtype and device of a Gram matrix (..., k, k)."""
    return namespace(gram).eye(gram.shape[-1], dtype=gram.dtype, device=device_of(gram))


def arange_like(count: int, like: Array, start: int = 0) -> Array:
    """Return ``start, ..., count - 1`` on the device of another array."""
    return namespace(like).arange(start, count, device=device_of(like))


def weighted_quantile(
    values: np.ndarray, weight: np.ndarray, share: float, side: Literal["left", "right"] = "left"
) -> float:
    """Return the value (one of ``values``) at which the cumulative weight reaches a share.

    For "left" it is the smallest value at which the cumulative weight is at least the share, for
    "right" the smallest value at which it exceeds the share.
    """
    order = np.argsort(values)
    cumulative = np.cumsum(weight[order])
    tolerance = 1 - CUMULATIVE_ROUNDING if side == "left" else 1 + CUMULATIVE_ROUNDING
    place = np.searchsorted(cumulative, share * cumulative[-1] * tolerance, side=side)
    return float(values[order[place]])


def weighted_quantiles(table: np.ndarray, weight: np.ndarray, share: float = 0.5) -> np.ndarray:
    """Compute a weighted quantile of every column (columns,) of a table, without NaN.

    It is the smallest entry at which the cumulative weight is at least the share, so that a row of
    weight two is equivalent to the same row twice; zero for a column of NaN.
    """
    if np.all(weight == weight[0]):  # the usual case, four times as fast
        values = np.sort(table, axis=0)  # NaN last
        known = len(table) - np.isnan(values).sum(axis=0)
        place = np.maximum(np.ceil(share * known * (1 - CUMULATIVE_ROUNDING)).astype(int) - 1, 0)
    else:
        order = np.argsort(table, axis=0)
        values = np.take_along_axis(table, order, axis=0)
        cumulative = np.cumsum(np.where(np.isnan(values), 0.0, weight[order]), axis=0)
        below = cumulative < share * cumulative[-1] * (1 - CUMULATIVE_ROUNDING)
        place = np.minimum(below.sum(axis=0), len(table) - 1)
    quantiles = values[place, np.arange(table.shape[1])]
    return np.where(np.isnan(quantiles), 0.0, quantiles)


def first_of_equal(masks: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of different masks, and for every mask its place among them."""
    keys = [mask.tobytes() for mask in masks]  # np.unique(axis=0) is slow for long masks
    return np.unique(keys, return_index=True, return_inverse=True)[1:]
