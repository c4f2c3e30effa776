"""Red wines by their quality."""

from __future__ import annotations

from robustnmf.datasets._base import Dataset, from_openml
from robustnmf.datasets._publisher_files import from_text

WINEQUALITY_RED = Dataset(
    name="winequality_red",
    title="Winequality-red",
    samples=1599,
    features=11,
    classes=6,
    sha256="6b6b33d8eb5a39e32307f15877d972ac3b35e345542f3655f509315441ccaf5f",
    content_sha256="03ea80cf1b46c01bf39b389dbfc018e37178d1a70fa2b3a1d21ee867834ca9aa",
    converted=from_text(separator=";", header=1, label=-1),
    files="winequality-red.csv",
    licence="CC BY 4.0",
    source="https://archive.ics.uci.edu/dataset/186/wine+quality",
    citation="Cortez, Cerdeira, Almeida, Matos, Reis, 2009, doi:10.24432/C56S3T",
    fetched=from_openml(40691),
    remark="The paper gives it 4898 samples, the size of the white set, 12 dimensions (with the "
    "quality column) and 11 classes (the whole scale, of which 6 occur).",
)
