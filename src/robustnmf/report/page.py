"""Content -> one self-contained HTML page; every piece of text is escaped here."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem;
       padding: 0 1rem; color: #1b1f24; background: #fff; }
h1 { font-size: 1.6rem; } figure { margin: 1.5rem 0; } img { max-width: 100%; height: auto; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; min-width: 30rem; }
caption { text-align: left; padding: .4rem 0; color: #57606a; }
th, td { padding: .35rem .8rem; border-bottom: 1px solid #d0d7de; text-align: right; }
th:first-child, td:first-child { text-align: left; }
"""


@dataclass(frozen=True)
class Paragraph:
    """A piece of running text."""

    text: str

    def html(self) -> str:
        """Escaped HTML."""
        return f"<p>{escape(self.text)}</p>"


@dataclass(frozen=True)
class Table:
    """A table of texts."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""

    def html(self) -> str:
        """Escaped HTML."""
        head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in self.header)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        return (
            f'<div class="scroll"><table><caption>{escape(self.caption)}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )


@dataclass(frozen=True)
class Picture:
    """A PNG image, carried inside the page."""

    png: bytes
    description: str

    def html(self) -> str:
        """Escaped HTML."""
        data = base64.b64encode(self.png).decode()
        alt = escape(self.description, quote=True)
        return f'<figure><img src="data:image/png;base64,{data}" alt="{alt}"></figure>'


def page(title: str, content: Sequence[Paragraph | Table | Picture]) -> str:
    """One HTML document that needs nothing but itself."""
    body = "\n".join(part.html() for part in content)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )
