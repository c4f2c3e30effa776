"""Tables in memory: arrays, data frames, lists, sparse arrays, PyArrow, tensors on a device."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse
from array_api_compat import is_torch_array
from sklearn.utils import check_array
from sklearn.utils.validation import _get_feature_names, validate_data

from robustnmf.arrays import (
    Array,
    device_of,
    fill_masked,
    host_dtype,
    is_foreign,
    namespace,
    on_device_of,
    to_numpy,
)
from robustnmf.engine import DataSummary, Engine, scan, scan_sparse
from robustnmf.loop.compatibility import ModelSpec
from robustnmf.sources._base import PassNeeds, Source, check_shape, check_summary

ACCEPTED = {
    "dtype": [np.float64, np.float32],
    "accept_sparse": "csr",
    "ensure_all_finite": "allow-nan",
}
"""Arguments of scikit-learn's checks."""

BLOCK_BYTES = 2**32
"""Size of a block on a device, which has its own threads and needs no blocks for the cache."""


class ArraySource(Source):
    """A dense table in memory; NaN and masked entries are missing values."""

    table: Any

    @classmethod
    def claims(cls, X: Any) -> bool:
        return True

    @property
    def header(self) -> Any:
        return self.X

    @property
    def file(self) -> Any:
        return self.X.filename if isinstance(self.X, np.memmap) else None

    def checked(
        self, spec: ModelSpec, *, model: Any = None, dtype: Any = None, learning: bool = False
    ) -> Self:
        given = self.floats(model)
        self.dtype, self.shape = given.dtype, given.shape
        with np.errstate(over="ignore"):  # values out of range raise an error below
            self.table = self._canonical(given.astype(dtype or given.dtype, copy=False))
        summary = self._scan(spec)
        if summary.has_inf and dtype is not None:
            raise ValueError(
                f"X leaves the range of {np.dtype(dtype)}, in which this {self.name} was fitted. "
                "Fit it on float64 data, or scale X."
            )
        check_summary(self.name, spec, summary, scale=getattr(model, "_scale", None))
        return self

    def floats(self, model: Any = None) -> Any:
        X = readable(self.X)
        if model is not None:
            return validate_data(model, X, reset=False, **ACCEPTED)
        _get_feature_names(self.X)  # raises an error for names of mixed types before the work
        return check_array(X, estimator=self.name, input_name="X", **ACCEPTED)

    def _engine(self, needs: PassNeeds, options: dict[str, Any]) -> Engine:
        return needs.hold(self.table, **options)

    def dense_rows(self) -> np.ndarray:
        return np.asarray(self.table)

    def _canonical(self, table: Any) -> Any:
        return table

    def _scan(self, spec: ModelSpec) -> DataSummary:
        return scan(self.table, zeros=not spec.loss.takes_zeros)


class SparseSource(ArraySource):
    """A sparse table in memory; entries that are not stored are zero."""

    @classmethod
    def claims(cls, X: Any) -> bool:
        return scipy.sparse.issparse(X) or (has_sparse_columns(X) and fills_with_zeros(X))

    def dense_rows(self) -> np.ndarray:
        return self.table.toarray()

    def _canonical(self, table: Any) -> scipy.sparse.csr_array:
        """Store every entry once; sparse X cannot mark missing values."""
        try:
            table.check_format()
        except ValueError as error:  # compiled loops would access memory outside of their arrays
            raise ValueError(
                f"sparse X is damaged: {error}. Build it again, for example from its rows, columns "
                "and values by scipy.sparse.coo_array."
            ) from error
        if np.isnan(table.data).any():
            dense = "X.toarray()" if scipy.sparse.issparse(self.X) else "X.sparse.to_dense()"
            raise ValueError(
                f"Input X contains NaN. {self.name} accepts missing values in dense X only. Entries"
                f" not stored in sparse X are zeros. Pass {dense}, with NaN for missing values."
            )
        if not table.has_canonical_format:
            table = table.copy()
            table.sum_duplicates()
        return scipy.sparse.csr_array(table)

    def _scan(self, spec: ModelSpec) -> DataSummary:
        return scan_sparse(self.table)


class ArrowSource(ArraySource):
    """A table or record batch with numeric columns; column names are the names of features.

    Null marks a missing value.
    """

    @classmethod
    def claims(cls, X: Any) -> bool:
        return type(X).__module__.partition(".")[0] == "pyarrow" and hasattr(X, "column_names")

    def __init__(self, X: Any, name: str):
        import pyarrow

        # scikit-learn does not find the names of features in a record batch.
        is_batch = isinstance(X, pyarrow.RecordBatch)
        super().__init__(pyarrow.Table.from_batches([X]) if is_batch else X, name)

    def floats(self, model: Any = None) -> np.ndarray:
        if model is not None:
            self.check_features(model)
        pairs = zip(self.X.column_names, self.X.columns, strict=True)
        columns = [self._numbers(name, column) for name, column in pairs]
        if not columns:
            raise ValueError(f"X has no columns; {self.name} needs at least one feature.")
        return ArraySource(np.column_stack(columns), self.name).floats()

    def _numbers(self, name: str, column: Any) -> np.ndarray:
        """Return a column as floats, with NaN for null."""
        values = np.asarray(column)
        if values.dtype.kind == "O" and column.null_count and str(column.type) == "bool":
            values = np.array([np.nan if v is None else float(v) for v in values])
        if values.dtype.kind not in "fiub":
            raise ValueError(
                f"column {name!r} of X holds {column.type}, but {self.name} needs real numbers. "
                "Leave it out, for example with X.drop_columns."
            )
        return values if values.dtype == np.float32 else values.astype(np.float64)


class TensorSource(Source):
    """A dense array of another library (PyTorch, CuPy, JAX); all computations run on its device."""

    on_device = True
    table: Array

    @classmethod
    def claims(cls, X: Any) -> bool:
        return is_foreign(X)

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
        check_shape(X.shape, self.name)
        if not xp.isdtype(X.dtype, ("real floating", "integral", "bool")):
            raise ValueError(f"X holds {X.dtype}, but {self.name} needs real numbers.")
        if is_torch_array(X):
            if "strided" not in str(X.layout):
                raise TypeError(
                    f"X has the layout {X.layout}; {self.name} needs a dense tensor, X.to_dense()."
                )
            X = X.detach()  # gradients through a fit are not supported
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


def readable(X: Any) -> Any:
    """Return X in a form that scikit-learn's checks read without loss.

    Masked values become NaN, sparse columns of a data frame whose missing entries are not zeros
    become dense, sparse columns of booleans, which scikit-learn does not convert, become floats,
    and floats get the native byte order, without which scikit-learn does not recognise float32.
    """
    if type(X).__name__ == "AnnData":
        raise TypeError(
            "X is an AnnData object, but a table of numbers is needed. Use "
            "robustnmf.anndata.nmf(adata, n_components), which writes its results into the object, "
            "or pass adata.X or a layer, for example adata.layers['counts']."
        )
    X = fill_masked(X)
    if has_sparse_columns(X) and not fills_with_zeros(X):
        return X.sparse.to_dense()
    if has_sparse_columns(X) and any(d.subtype.kind == "b" for d in X.dtypes):
        return X.astype(type(X.dtypes.iloc[0])(np.float64, 0.0))
    if isinstance(X, np.ndarray) and X.dtype.kind == "f" and not X.dtype.isnative:
        return X.astype(X.dtype.newbyteorder("="))
    return X


def has_sparse_columns(X: Any) -> bool:
    """Return whether X is a pandas data frame with only sparse columns."""
    return hasattr(X, "sparse") and X.ndim == 2  # only such frames have this attribute


def fills_with_zeros(X: Any) -> bool:
    """Return whether entries that the sparse columns of a data frame do not store are zeros."""
    return all(dtype.fill_value == 0 for dtype in X.dtypes)


def library_of(array: Any) -> str:
    """Return the name of the library of an array, and its device."""
    if not is_foreign(array):
        return "numpy"
    return f"{namespace(array).__name__.rpartition('.')[2]} on {device_of(array)}"
