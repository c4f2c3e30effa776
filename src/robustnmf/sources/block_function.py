"""Functions that yield blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from robustnmf.engine import FunctionReader, RowReader
from robustnmf.sources._stored import StoredSource


class BlockFunctionSource(StoredSource):
    """A function without arguments that yields all blocks, every time it is called."""

    def __init__(self, X: Any, name: str):
        super().__init__(X, name)
        if isinstance(X, Iterator):
            raise TypeError(
                "X is a generator, which can be gone through once, but every pass reads X again. "
                "Pass the function that makes it, for example lambda: blocks(path)."
            )

    @classmethod
    def claims(cls, X: Any) -> bool:
        return isinstance(X, Iterator) or (callable(X) and not hasattr(X, "__array__"))

    @cached_property
    def reader(self) -> RowReader:
        return FunctionReader(self.X)
