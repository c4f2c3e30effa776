"""Pieces of one self-contained HTML page; page.html writes them, and escapes all text."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from io import BytesIO
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jinja2 import Template
    from matplotlib.figure import Figure

NUMBER = re.compile(r"[-+<>]?\s?[\d.]|[-\u2212]\d|-$|nan$")
"""How the text of a number begins, or of none."""

INVISIBLE = re.compile(
    "[\ud800-\udfff\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)

MAX_NAME, MAX_NOTE = 60, 300
"""Characters of a name and of a note."""


def display_name(text: str, most: int = MAX_NAME) -> str:
    """Return a name or a note as a page shows it: visible, and not too long."""
    text = INVISIBLE.sub("\ufffd", text)
    return text if len(text) <= most else text[: most - 1] + "\u2026"


def format_percent(share: float) -> str:
    """Write a share in percent, with fewer digits where it is small."""
    return f"{100 * share:.1f}%" if share >= 0.001 else f"{100 * share:.1g}%"


def counted(count: int, noun: str) -> str:
    """Write a number of things, with their noun in the singular for one."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


class Content:
    """A piece of a page. The macro that has the name of its class writes it."""

    def html(self) -> str:
        """Return the piece as HTML, with its text escaped."""
        return getattr(_template().module, type(self).__name__)(self)


@dataclass(frozen=True)
class Heading(Content):
    """A heading, with an anchor to link to."""

    text: str
    anchor: str


@dataclass(frozen=True)
class Paragraph(Content):
    """A piece of running text, with a CSS class."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Bullets(Content):
    """A list of texts."""

    texts: Sequence[str]


@dataclass(frozen=True)
class Links(Content):
    """A row of links to anchors of the page: anchors and texts."""

    targets: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Picture(Content):
    """A PNG image, embedded in the page."""

    png: bytes
    description: str


@dataclass(frozen=True)
class Plot(Content):
    """An interactive plot: data and layout as Plotly's script takes them."""

    data: Sequence[dict[str, Any]]
    layout: dict[str, Any]
    description: str


@dataclass(frozen=True)
class Row(Content):
    """Pieces side by side, where there is room."""

    parts: Sequence[Content]


@dataclass(frozen=True)
class Download(Content):
    """A CSV file to download, embedded in the page."""

    name: str
    content: bytes


@dataclass(frozen=True)
class TableCell(Content):
    """A cell of a table: text, number to sort by, CSS classes, text on hover, shade from 0 to 1."""

    text: str
    number: float | None = None
    kinds: Sequence[str] = ()
    hint: str = ""
    shade: float | None = None

    @property
    def sorts(self) -> bool:
        """Whether there is a number to sort by."""
        return self.number is not None and isfinite(self.number)


@dataclass(frozen=True)
class Table(Content):
    """A table of texts or cells; a click on the head of a column sorts by it.

    Columns of numbers are aligned to the right. A ``searchable`` table has a field above it: rows
    without the text in it are hidden.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str | TableCell]]
    caption: str = ""
    searchable: bool = False

    @cached_property
    def cells(self) -> list[list[TableCell]]:
        """The rows, with cells for texts."""
        return [[TableCell(c) if isinstance(c, str) else c for c in row] for row in self.rows]

    @property
    def column_kinds(self) -> list[Sequence[str]]:
        """CSS classes of the columns; the first one names the rows."""
        kinds: list[Sequence[str]] = [() for _ in self.header]
        for column in range(1, len(kinds)):
            cells = [row[column] for row in self.cells if row[column].text]
            are_numbers = all("text" not in c.kinds and NUMBER.match(c.text) for c in cells)
            if cells and are_numbers:
                kinds[column] = ("number",)
        return kinds


def page(title: str, content: Sequence[Content]) -> str:
    """Return an HTML document that needs no other file."""
    pieces = [piece.html() for piece in content]
    script = ""
    if any('<div class="plot"' in piece for piece in pieces):
        from plotly.offline import get_plotlyjs

        script = get_plotlyjs()
    return _template().render(title=title, pieces=pieces, plotly=script)


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader

    environment = Environment(
        loader=PackageLoader("robustnmf.files", ""), autoescape=True, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["data_uri"] = data_uri
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
    return environment.get_template("page.html")


def figure_bytes(figure: Figure, kind: str = "png", dpi: int = 110) -> bytes:
    """Return a figure of Matplotlib as a PNG or SVG file; the same bytes every time."""
    from matplotlib import rc_context

    buffer = BytesIO()
    with rc_context({"svg.hashsalt": "robustnmf"}):
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=metadata)
    return buffer.getvalue()


def mosaic(images: np.ndarray, columns: int | None = None, gap: float = 0.5) -> np.ndarray:
    """Arrange images (count, height, width) in rows and columns, with lines between them."""
    count, height, width = images.shape
    columns = columns or int(np.ceil(np.sqrt(count * 1.25)))
    rows = -(-count // columns)
    sheet = np.full((rows * (height + 1) - 1, columns * (width + 1) - 1), gap)
    for place, image in enumerate(images):
        top, left = (place // columns) * (height + 1), (place % columns) * (width + 1)
        sheet[top : top + height, left : left + width] = image
    return sheet


def data_uri(content: bytes, kind: str) -> str:
    """Return bytes as a ``data:`` URI of a media type."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
