"""Dask arrays, chunked over samples."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np
from array_api_compat import is_dask_array

from robustnmf.arrays import Array, to_numpy
from robustnmf.engine import Engine, one_of_many
from robustnmf.loop.compatibility import ModelSpec
from robustnmf.sources._base import PassNeeds, Source, check_number_dtype, check_shape
from robustnmf.structures import Structure

OF_SAMPLES = ("energies_", "sample_importances_", "outliers_", "mixing_", "_stream")
"""Attributes that are not sent to workers, because they grow with the number of samples."""


class DaskSource(Source):
    """A Dask array; its chunks are processed on their workers."""

    in_memory = False
    codes_are_lazy = True

    @classmethod
    def claims(cls, X: Any) -> bool:
        return is_dask_array(X)

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Samples and features."""
        return self.X.shape

    def checked(
        self, spec: ModelSpec, *, model: Any = None, dtype: Any = None, learning: bool = False
    ) -> Self:
        from robustnmf.engine.dask import refuse_sparse_chunks

        refuse_sparse_chunks(self.X._meta, self.name)
        if learning and type(spec.structure).start is not Structure.start:
            raise ValueError(
                f"{self.name} cannot read a Dask array with {spec.structure!r}: its start compares "
                "samples that are on different workers. Use structure='free'."
            )
        if model is not None:
            self.check_features(model)
        self.X = self._with_whole_samples()
        self.spec, self.read_dtype = spec, dtype
        self.dtype = dtype or self.X.dtype
        return self

    def _engine(self, needs: PassNeeds, options: dict[str, Any]) -> Engine:
        from robustnmf.engine.dask import DaskEngine

        return DaskEngine(self.X, **self._scanning(needs, options))

    def run(
        self, model: Any, method: str, compute: Callable[[Self], Array], width: tuple[int, ...]
    ) -> Any:
        """Return a lazy array; the method is called for each chunk when it is computed."""
        X = self._with_whole_samples()
        single = X.dtype.newbyteorder("=") == np.float32
        dtype = np.float32 if width and single else np.float64
        light = copy(model)
        for name in OF_SAMPLES:
            vars(light).pop(name, None)
        # One column for single values, because Dask joins the arrays of a dropped axis with NumPy.
        chunks = (X.chunks[0], width or (1,))
        result = X.map_blocks(partial(_call, light, method), dtype=dtype, chunks=chunks)
        return result if width else result[:, 0]

    def _with_whole_samples(self) -> Any:
        """Return X if it is a table of numbers whose chunks contain whole samples."""
        import dask.array as da

        X = self.X
        check_shape(X.shape, self.name)
        check_number_dtype(X.dtype, self.name)
        if np.isnan(X.shape).any():
            raise ValueError(
                f"the chunks of X have unknown sizes ({X.shape}). Call X.compute_chunk_sizes() "
                "first."
            )
        if X.numblocks[1] > 1:
            raise ValueError(
                f"the features of X are in {X.numblocks[1]} chunks, but every chunk must contain "
                "whole samples. Use X.rechunk({1: -1}), which keeps the chunks over samples if "
                "possible."
            )
        filled = [i for i, rows in enumerate(X.chunks[0]) if rows]
        return X if len(filled) == X.numblocks[0] else da.concatenate([X.blocks[i] for i in filled])


def _call(model: Any, method: str, rows: Any) -> np.ndarray:
    """Compute a method on the worker of the rows; return a NumPy array, as Dask expects."""
    with one_of_many():
        result = to_numpy(getattr(model, method)(rows))
    return result if result.ndim == 2 else result[:, None]
