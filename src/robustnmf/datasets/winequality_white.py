"""White wines by their quality."""

from __future__ import annotations

from robustnmf.datasets._base import Dataset, from_openml
from robustnmf.datasets._publisher_files import from_text

WINEQUALITY_WHITE = Dataset(
    name="winequality_white",
    title="Winequality-white",
    samples=4898,
    features=11,
    classes=7,
    sha256="048971257db53571225d76294d579c14357af0e359206cbb00c48a7170c36382",
    content_sha256="35d1d9d6f3bd997e5be169a2372d74eac758cfe4aa82bbbaf682f4ba62bc4e1f",
    converted=from_text(separator=";", header=1, label=-1),
    files="winequality-white.csv",
    licence="CC BY 4.0",
    source="https://archive.ics.uci.edu/dataset/186/wine+quality",
    citation="Cortez, Cerdeira, Almeida, Matos, Reis, 2009, doi:10.24432/C56S3T",
    fetched=from_openml(40498),
    remark="Not in the paper, but of the size that its table gives the red set.",
)
