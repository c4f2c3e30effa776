"""Dim: stars or galaxies, by measurements on photographic plates."""

from __future__ import annotations

from robustnmf.datasets._base import Dataset
from robustnmf.datasets._publisher_files import from_matlab

DIMDATA = Dataset(
    name="dimdata",
    title="Dimdata",
    samples=4192,
    features=14,
    classes=2,
    sha256="e073d9668ac236293eddea48ec001aec9bb2c561855e3287c6db07145dc9a939",
    content_sha256="d6249f2aecc590b1507d86fcd60d53d7c3a59ae9549dc366a12b2af8736a3402",
    converted=from_matlab("A", "d"),
    files="dimdata.mat",
    licence="none stated",
    source="http://pages.cs.wisc.edu/~olvi/ (dimdata.mat)",
    citation="Odewahn, Stockwell, Pennington, Humphreys, Zumach, Astronomical Journal 103(1), 1992",
    remark="Two in a hundred values are negative; what the paper did about them it does not say.",
)
