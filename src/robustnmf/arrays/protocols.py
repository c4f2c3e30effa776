"""Types of what maps blocks: what starts, structures and states need of an engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from robustnmf.arrays.blocks import Block
from robustnmf.arrays.namespace import Array

Visit = Callable[[Block, Any], tuple[Any, Any]]
"""``(block, state) -> (new state, value to merge)``."""


class BlockMapper(Protocol):
    """Blocks of X, and a function that calls another one on each of them.

    :class:`robustnmf.engine.Engine` documents the methods.
    """

    like: Array
    shape: tuple[int, int]
    scale: float
    complete: bool
    blocks: list[Any]

    @property
    def row_weight(self) -> Array: ...

    def map_blocks(
        self,
        visit: Visit,
        block_states: Sequence[Any] | None = None,
        *,
        data: bool = True,
        on_device: bool = False,
    ) -> tuple[list[Any], Any]: ...

    def map_columns(self, function: Callable[[slice], Array], count: int, cost: float) -> Array: ...

    def begin(self, codes: Sequence[Array], mixing: Sequence[Array] | None = None) -> list[Any]: ...

    def keep(self, block_states: list[Any], members: Array) -> list[Any]: ...

    def restored(self, block_states: list[Any], members: Array, before: list[Any]) -> list[Any]: ...

    def histograms(
        self, block_states: Sequence[Any], degree: float, energies: Callable[[Any], Array]
    ) -> list[Any]: ...

    def filled(self) -> BlockMapper: ...

    def fill_samples(self) -> None: ...

    def samples(self, index: Array) -> Array: ...

    def split(self, table: Array, axis: int = 0) -> list[Array]: ...

    def whole(self, parts: Sequence[Array], axis: int = 0) -> Array: ...

    def mean(self) -> float: ...

    def typical_size(self, degree: float = 2.0) -> float: ...
