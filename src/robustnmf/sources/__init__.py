"""The kinds of X. To add one, add a source to one of these files and a line below."""

from __future__ import annotations

from typing import Any

from robustnmf.sources._base import Source, in_memory_engine
from robustnmf.sources.array import ArraySource, ArrowSource, SparseSource, TensorSource, library_of
from robustnmf.sources.dask import DaskSource
from robustnmf.sources.stored import FileReader, StoredSource, npy_reader, reader_of

SOURCES: tuple[type[Source], ...] = (
    DaskSource, TensorSource, SparseSource, StoredSource, ArrowSource, ArraySource,
)  # fmt: skip
"""Sources in the order in which they are tried; the last one accepts everything else."""


def source_for(X: Any, name: str) -> Source:
    """Return the source of X, which a user passes to the estimator of a name (for messages).

    Only this function determines the kind of X.
    """
    return next(kind for kind in SOURCES if kind.claims(X))(X, name)
