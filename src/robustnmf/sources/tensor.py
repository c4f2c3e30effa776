"""Arrays of other libraries (PyTorch, CuPy, JAX), computed with on their device."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from array_api_compat import is_torch_array

from robustnmf.arrays import (
    Array,
    device_of,
    host_dtype,
    is_foreign,
    namespace,
    on_device_of,
    to_numpy,
)
from robustnmf.compatibility import ModelSpec
from robustnmf.engine import Engine, scan
from robustnmf.sources._base import PassNeeds, Source, check_nonempty, check_summary

BLOCK_BYTES = 2**32
"""Size of a block on a device: it has threads of its own, and no use for caches."""


class TensorSource(Source):
    """A dense tensor."""

    on_device = True
    table: Array

    @classmethod
    def claims(cls, X: Any) -> bool:
        return is_foreign(X)

    @property
    def library(self) -> str:
        return library_of(self.X)

    def checked(
        self, spec: ModelSpec, *, model: Any = None, dtype: Any = None, learning: bool = False
    ) -> Self:
        given = self.floats(model)
        self.dtype = given.dtype
        summary = scan(given, zeros=not spec.loss.takes_zeros)
        check_summary(self.name, spec, summary, scale=getattr(model, "_scale", None))
        xp = namespace(given)
        wanted = given.dtype
        if dtype is not None:
            wanted = xp.float64 if dtype == np.float64 else xp.float32
        self.table = xp.astype(given, wanted, copy=False)
        return self

    def floats(self, model: Any = None) -> Array:
        X, xp = self.X, namespace(self.X)
        if X.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got {X.ndim}D array instead (shape={tuple(X.shape)}). Reshape "
                "your data: samples in rows, features in columns."
            )
        check_nonempty(X.shape, self.name)
        if not xp.isdtype(X.dtype, ("real floating", "integral", "bool")):
            raise ValueError(f"X holds {X.dtype}, but {self.name} needs real numbers.")
        if is_torch_array(X):
            if "strided" not in str(X.layout):
                raise TypeError(
                    f"X has the layout {X.layout}; {self.name} needs a dense tensor, X.to_dense()."
                )
            X = X.detach()  # a fit is not differentiated through
        self.shape = int(X.shape[0]), int(X.shape[1])
        if model is not None:
            self.check_features(model)
        return X if X.dtype in (xp.float32, xp.float64) else xp.astype(X, xp.float64)

    def _engine(self, needs: PassNeeds, options: dict[str, Any]) -> Engine:
        weight, float64 = options["sample_weight"], namespace(self.table).float64
        if weight is not None:
            options = {**options, "sample_weight": on_device_of(self.table, weight, float64)}
        bytes_a_row = needs.copies * self.shape[1] * host_dtype(self.table).itemsize
        rows = max(1, BLOCK_BYTES // bytes_a_row)
        return needs.hold(self.table, block_rows=rows, **options)

    def dense_rows(self) -> np.ndarray:
        return to_numpy(self.table)

    def like(self, array: Array) -> Array:
        return on_device_of(self.X, array)

    def give_back(self, array: np.ndarray) -> Array:
        return on_device_of(self.X, array)


def library_of(array: Any) -> str:
    """Return the library of an array and the device it is on."""
    if not is_foreign(array):
        return "numpy"
    return f"{namespace(array).__name__.rpartition('.')[2]} on {device_of(array)}"
