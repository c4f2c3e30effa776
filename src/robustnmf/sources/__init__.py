"""The kinds of X: a new kind is a source in one of these files and one line below."""

from __future__ import annotations

from typing import Any

from robustnmf.sources._base import Source, in_memory_engine
from robustnmf.sources.array import (
    ArraySource,
    ArrowSource,
    SparseSource,
    TensorSource,
    library_of,
)
from robustnmf.sources.dask import DaskSource
from robustnmf.sources.stored import FileReader, StoredSource, npy_reader, reader_of

SOURCES: tuple[type[Source], ...] = (
    DaskSource,
    TensorSource,
    SparseSource,
    StoredSource,
    ArrowSource,
    ArraySource,
)
"""In the order in which they are tried; the last one takes what no other does."""

__all__ = [
    "SOURCES",
    "ArraySource",
    "FileReader",
    "Source",
    "in_memory_engine",
    "library_of",
    "npy_reader",
    "reader_of",
    "source_for",
]


def source_for(X: Any, name: str) -> Source:
    """Return the source of X: the one place where it is found out what X is.

    Parameters
    ----------
    X : object
        Whatever a user gives an estimator.
    name : str
        Of the estimator, for messages.
    """
    return next(kind for kind in SOURCES if kind.claims(X))(X, name)
