"""Results of experiments as tables, charts and images, which reports draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, the number to sort by, names of marks, and a tooltip."""

    text: str
    number: float | None = None
    marks: tuple[str, ...] = ()
    hint: str = ""


@dataclass(frozen=True)
class Grid:
    """A table; ``suffix`` distinguishes the files of several tables of one outcome."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    suffix: str = ""


@dataclass(frozen=True)
class Line:
    """A series of a chart; ``error`` is one standard deviation."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    error: Sequence[float] | None = None
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """Series over one pair of axes; ``scatter`` draws points alone."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    scatter: bool = False


@dataclass(frozen=True)
class Images:
    """Images side by side (count, height, width)."""

    title: str
    images: np.ndarray


@dataclass(frozen=True)
class Outcome:
    """A table or figure with our results: grids, charts and images under one title."""

    key: str
    title: str
    caption: str
    grids: Sequence[Grid] = ()
    charts: Sequence[Chart] = ()
    images: Sequence[Images] = ()
    notes: Sequence[str] = ()
