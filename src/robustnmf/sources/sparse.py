"""Sparse matrices and arrays of SciPy, and data frames of sparse columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from robustnmf.compatibility import ModelSpec
from robustnmf.engine import DataSummary, scan_sparse
from robustnmf.sources.array import ArraySource, fills_with_zeros, has_sparse_columns


class SparseSource(ArraySource):
    """A sparse table in memory; what it does not store is zero."""

    @classmethod
    def claims(cls, X: Any) -> bool:
        return scipy.sparse.issparse(X) or (has_sparse_columns(X) and fills_with_zeros(X))

    def dense_rows(self) -> np.ndarray:
        return self.table.toarray()

    def _canonical(self, table: Any) -> scipy.sparse.csr_array:
        """Store every entry once; sparse X cannot mark missing values."""
        try:
            table.check_format()
        except ValueError as error:  # loops would read and write outside of their arrays
            raise ValueError(
                f"sparse X is damaged: {error}. Build it again, for example from its rows, columns "
                "and values by scipy.sparse.coo_array."
            ) from error
        if np.isnan(table.data).any():
            dense = "X.toarray()" if scipy.sparse.issparse(self.X) else "X.sparse.to_dense()"
            raise ValueError(
                f"Input X contains NaN. {self.name} takes missing values in dense X only: what "
                f"sparse X leaves out are zeros. Pass {dense}, with NaN for what is missing."
            )
        if not table.has_canonical_format:
            table = table.copy()
            table.sum_duplicates()
        return scipy.sparse.csr_array(table)

    def _scan(self, spec: ModelSpec) -> DataSummary:
        return scan_sparse(self.table)
