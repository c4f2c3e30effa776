"""The gallery of examples: their order, and pictures that scroll on narrow screens."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx_gallery.directives import imgsgnode

ORDER = (
    "faces", "swimmer", "topics", "raman", "spectra", "audio", "counts",
    "outlier_detection", "bad_entries", "missing", "known_components", "rank",
    "consensus_cells", "consensus_signatures", "pipeline", "path", "own_weighting",
    "stream", "larger_than_memory", "dask", "gpu", "when_not",
)  # fmt: skip
"""Examples from what most come for to what few need; a new one goes where it belongs."""


class ReadingOrder:
    """Sort examples by ``ORDER``."""

    def __init__(self, folder: str):
        self.folder = folder

    def __call__(self, file: str) -> int:
        """Return the place of an example."""
        return ORDER.index(file.removeprefix("plot_").removesuffix(".py"))

    def __repr__(self) -> str:
        return "<ReadingOrder>"  # part of the configuration, which must not change between builds


def wrap_pictures(app: Any, document: nodes.document) -> None:
    """Put every picture of an example into a box of its own, which can scroll (pages.css)."""
    for picture in list(document.findall(imgsgnode)):
        picture.replace_self(nodes.container("", picture.deepcopy(), classes=["picture"]))
