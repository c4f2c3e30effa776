"""What kinds of X that are read block by block have in common."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, Self

from robustnmf.compatibility import ModelSpec
from robustnmf.engine import Engine, RowReader, Stored
from robustnmf.problem import Problem
from robustnmf.sources._base import Source, copies_of
from robustnmf.sources._checks import check_nonempty, check_number_dtype
from robustnmf.weightings import Weighting


class StoredSource(Source):
    """Rows that a reader reads block by block, as often as a fit needs them."""

    in_memory = False

    @cached_property
    @abstractmethod
    def reader(self) -> RowReader:
        """The reader of the rows."""

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Samples and features."""
        return self.reader.shape

    def checked(
        self, spec: ModelSpec, *, model: Any = None, dtype: Any = None, learning: bool = False
    ) -> Self:
        check_nonempty(self.shape, self.name)
        check_number_dtype(self.reader.dtype, self.reader.dtype.kind, self.name)
        self.spec, self.read_dtype = spec, dtype
        self.dtype = dtype or self.reader.dtype
        if model is not None:
            self.check_features(model)
        return self

    def engine(
        self,
        problem: Problem,
        weighting: Weighting,
        rank: int,
        members: int = 1,
        *,
        scale: float | None = None,
        sample_weight: Any = None,
    ) -> Engine:
        return Stored(
            self.reader, copies=copies_of(problem, weighting, members),
            sample_weight=sample_weight, **self._scanning(problem, weighting, scale),
        )  # fmt: skip
