"""Blocks of page layouts: text, lines, pictures."""

from __future__ import annotations

from robustnmf.datasets._base import Dataset, from_openml
from robustnmf.datasets._publisher_files import from_text

PAGE_BLOCKS = Dataset(
    name="page_blocks",
    title="Page-blocks",
    samples=5473,
    features=10,
    classes=5,
    sha256="a5979adace6c018ea1a71218d5df75301c8553508f2a8347d1441fe0021d0b26",
    content_sha256="c4f8537d1767b22cbd962909ad92d8b932ccf8cd804baf2a7c78a2c4cdfdbe16",
    converted=from_text(label=-1),
    files="page-blocks.data",
    licence="CC BY 4.0",
    source="https://archive.ics.uci.edu/dataset/78/page+blocks+classification",
    citation="D. Malerba, doi:10.24432/C5J590",
    fetched=from_openml(30),
)
