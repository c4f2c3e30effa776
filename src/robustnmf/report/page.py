"""Build one self-contained HTML page from its pieces; all text is escaped here."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from math import isfinite
from typing import Any, Protocol

STYLE, SCRIPT = "page.css", "page.js"

NUMBER = re.compile(r"[-+<>]?\s?[\d.]|[-\u2212]\d|-$|nan$")
"""How the text of a number begins, or of none."""


class Content(Protocol):
    """A piece of a page."""

    def html(self) -> str:
        """Return the piece as HTML, with its text escaped."""


@dataclass(frozen=True)
class Heading:
    """A heading, with an anchor to link to."""

    text: str
    anchor: str

    def html(self) -> str:
        return f'<h2 id="{escape(self.anchor, quote=True)}">{escape(self.text)}</h2>'


@dataclass(frozen=True)
class Paragraph:
    """A piece of running text."""

    text: str
    kind: str = ""

    def html(self) -> str:
        kind = f' class="{escape(self.kind, quote=True)}"' if self.kind else ""
        return f"<p{kind}>{escape(self.text)}</p>"


@dataclass(frozen=True)
class Bullets:
    """A list of texts."""

    texts: Sequence[str]

    def html(self) -> str:
        return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in self.texts) + "</ul>"


@dataclass(frozen=True)
class Links:
    """A row of links to anchors of the page."""

    targets: Sequence[tuple[str, str]]

    def html(self) -> str:
        links = (
            f'<a href="#{escape(anchor, quote=True)}">{escape(text)}</a>'
            for anchor, text in self.targets
        )
        return f"<nav>{' '.join(links)}</nav>"


@dataclass(frozen=True)
class TableCell:
    """A cell of a table: text, number to sort by, CSS classes, text to show on hover."""

    text: str
    number: float | None = None
    kinds: Sequence[str] = ()
    hint: str = ""

    def html(self, column_kinds: Sequence[str] = ()) -> str:
        """Return the cell as HTML, with the classes of its column."""
        parts = []
        if self.number is not None and isfinite(self.number):
            parts.append(f' data-sort="{float(self.number)!r}"')
        parts.append(_classes((*self.kinds, *column_kinds)))
        if self.hint:
            parts.append(f' title="{escape(self.hint, quote=True)}"')
        return f"<td{''.join(parts)}>{escape(self.text)}</td>"


@dataclass(frozen=True)
class Table:
    """A table of texts or cells; a click on the head of a column sorts by it.

    Columns of numbers are aligned to the right. A ``searchable`` table has a field above it: rows
    without the text in it are hidden.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str | TableCell]]
    caption: str = ""
    searchable: bool = False

    def html(self) -> str:
        rows = [[TableCell(c) if isinstance(c, str) else c for c in row] for row in self.rows]
        kinds = [self._kinds(column, rows) for column in range(len(self.header))]
        head = "".join(
            f'<th scope="col"{_classes(kind)}><button type="button">{escape(text)}</button></th>'
            for text, kind in zip(self.header, kinds, strict=True)
        )
        body = "".join(
            "<tr>" + "".join(c.html(kind) for c, kind in zip(row, kinds, strict=True)) + "</tr>"
            for row in rows
        )
        search = (
            '<p class="search"><label>Search <input type="search"></label> <output></output></p>'
            if self.searchable
            else ""
        )
        return (
            f'{search}<div class="scroll"><table class="sortable">'
            f"<caption>{escape(self.caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    @staticmethod
    def _kinds(column: int, rows: Sequence[Sequence[TableCell]]) -> Sequence[str]:
        """Return the CSS classes of a column; the first one names the rows."""
        cells = [row[column] for row in rows if row[column].text]
        if not column or not cells or any("text" in cell.kinds for cell in cells):
            return ()
        return ("number",) if all(NUMBER.match(cell.text) for cell in cells) else ()


def _classes(kinds: Sequence[str]) -> str:
    """Return CSS classes as an attribute, if there are any."""
    return f' class="{escape(" ".join(kinds), quote=True)}"' if kinds else ""


@dataclass(frozen=True)
class Picture:
    """A PNG image, embedded in the page."""

    png: bytes
    description: str

    def html(self) -> str:
        alt = escape(self.description, quote=True)
        return f'<figure><img src="{data_uri(self.png, "image/png")}" alt="{alt}"></figure>'


@dataclass(frozen=True)
class Plot:
    """An interactive plot: data and layout as Plotly's script takes them."""

    data: Sequence[dict[str, Any]]
    layout: dict[str, Any]
    description: str

    def html(self) -> str:
        label = escape(self.description, quote=True)
        figure = json.dumps({"data": list(self.data), "layout": self.layout}, allow_nan=False)
        figure = figure.replace("<", "\\u003c")  # nothing in it may end the script
        return (
            f'<div class="plot" role="img" aria-label="{label}">'
            f'<script type="application/json">{figure}</script></div>'
        )


@dataclass(frozen=True)
class Row:
    """Pieces side by side, where there is room."""

    parts: Sequence[Content]

    def html(self) -> str:
        return '<div class="row">' + "".join(part.html() for part in self.parts) + "</div>"


@dataclass(frozen=True)
class Download:
    """A file to download, embedded in the page."""

    name: str
    content: bytes
    kind: str = "text/csv"

    def html(self) -> str:
        name = escape(self.name, quote=True)
        return (
            f'<p class="download"><a download="{name}" '
            f'href="{data_uri(self.content, self.kind)}">{name}</a></p>'
        )


def data_uri(content: bytes, kind: str) -> str:
    """Return bytes as a ``data:`` URI of a media type."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def page(title: str, content: Sequence[Content]) -> str:
    """Return an HTML document that needs no other file."""
    body = "\n".join(part.html() for part in content)
    has_plots = '<div class="plot"' in body
    scripts = [_plotly(), _resource(SCRIPT)] if has_plots else [_resource(SCRIPT)]
    code = "".join(f"<script>{script}</script>" for script in scripts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_resource(STYLE)}</style></head>"
        f"<body><h1>{escape(title)}</h1>\n{body}\n{code}</body></html>\n"
    )


@cache
def _resource(name: str) -> str:
    """Read a style sheet or script that lies beside this file."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def _plotly() -> str:
    """Return Plotly's script."""
    from plotly.offline import get_plotlyjs

    return get_plotlyjs()
