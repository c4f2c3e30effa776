"""The gallery of examples: its sections, and pictures that scroll on narrow screens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx_gallery.directives import imgsgnode

SECTIONS = {
    "start": ("faces", "swimmer", "outlier_detection", "pipeline", "when_not"),
    "fields": ("topics", "counts", "spectra", "raman", "audio"),
    "entries": ("bad_entries", "missing", "path", "own_weighting"),
    "components": ("rank", "cells", "consensus_signatures", "known_components"),
    "large": ("stream", "larger_than_memory", "dask", "gpu"),
}
"""The folders of the gallery and their examples, in reading order."""


class ReadingOrder:
    """Sort the examples of a folder as in ``SECTIONS``."""

    def __init__(self, folder: str):
        self.names = SECTIONS.get(Path(folder).name, ())

    def __call__(self, file: str) -> int:
        """Return the position of an example."""
        return self.names.index(file.removeprefix("plot_").removesuffix(".py"))

    def __repr__(self) -> str:
        return "<ReadingOrder>"  # part of the configuration, which must not change between builds


def wrap_pictures(app: Any, document: nodes.document) -> None:
    """Put every picture of an example into a box of its own, which can scroll (pages.css)."""
    for picture in list(document.findall(imgsgnode)):
        picture.replace_self(nodes.container("", picture.deepcopy(), classes=["picture"]))
