"""The kinds of X, one small file each; a new kind is a file beside these and one line below."""

from __future__ import annotations

from typing import Any

from robustnmf.sources._base import Source, in_memory_engine
from robustnmf.sources.array import ArraySource
from robustnmf.sources.arrow import ArrowSource
from robustnmf.sources.block_function import BlockFunctionSource
from robustnmf.sources.chunked import ChunkedSource
from robustnmf.sources.dask import DaskSource
from robustnmf.sources.file import FileSource
from robustnmf.sources.sparse import SparseSource
from robustnmf.sources.tensor import TensorSource, library_of

SOURCES: tuple[type[Source], ...] = (
    DaskSource,
    TensorSource,
    SparseSource,
    FileSource,
    ChunkedSource,
    ArrowSource,
    BlockFunctionSource,
    ArraySource,
)
"""In the order in which they are tried; the last one takes what no other does."""

__all__ = ["SOURCES", "ArraySource", "Source", "in_memory_engine", "library_of", "source_for"]


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
