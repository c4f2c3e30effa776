"""Thyroid disease: normal, hyper- and hypothyroid."""

from __future__ import annotations

from robustnmf.datasets._base import Dataset

THYROID = Dataset(
    name="thyroid",
    title="Thyroid",
    samples=7200,
    features=21,
    classes=3,
    sha256="d2572edcf5c0ff81177fafb653ba155afb08f9b6152a51cf68f8713f97d2e257",
    licence="CC BY 4.0",
    source="https://archive.ics.uci.edu/dataset/102/thyroid+disease (ann-train.data, then "
    "ann-test.data)",
    citation="R. Quinlan, 1986, doi:10.24432/C5D010",
)
