"""Thyroid disease: normal, hyper- and hypothyroid."""

from __future__ import annotations

from robustnmf.datasets._base import Dataset
from robustnmf.datasets._publisher_files import from_text

THYROID = Dataset(
    name="thyroid",
    title="Thyroid",
    samples=7200,
    features=21,
    classes=3,
    sha256="d2572edcf5c0ff81177fafb653ba155afb08f9b6152a51cf68f8713f97d2e257",
    content_sha256="626266f6b4050b93e07c4c2fc68ee926a8b08295e5f1a093290e2f1cb10a1035",
    converted=from_text(label=-1),
    files="ann-train.data ann-test.data",
    licence="CC BY 4.0",
    source="https://archive.ics.uci.edu/dataset/102/thyroid+disease (ann-train.data, then "
    "ann-test.data)",
    citation="R. Quinlan, 1986, doi:10.24432/C5D010",
)
