"""Breast cancer: benign or malignant, by measurements of cell nuclei."""

from __future__ import annotations

from robustnmf.datasets._base import Dataset, Tables
from robustnmf.datasets._publisher_files import from_text


def load_from_sklearn() -> Tables:
    """Load scikit-learn's copy, with the labels of the file: 0 benign, 1 malignant."""
    from sklearn.datasets import load_breast_cancer

    data, target = load_breast_cancer(return_X_y=True)
    return data, 1 - target


WDBC = Dataset(
    name="wdbc",
    title="WDBC",
    samples=569,
    features=30,
    classes=2,
    sha256="291dbb8b67992d1522ed91a471ade256fa2607bbe9abf8c47aae0ad16664f191",
    content_sha256="053f7917a7223d440519bc2473e2d3cd85aa106d7f0c9a953d4bb2e920f42439",
    converted=from_text(separator=",", label=1, dropped=(0,), names=("B", "M")),
    files="wdbc.data",
    licence="CC BY 4.0",
    source="https://archive.ics.uci.edu/dataset/17/breast+cancer+wisconsin+diagnostic",
    citation="Wolberg, Mangasarian, Street, doi:10.24432/C5DW2B",
    made=load_from_sklearn,
    remark="The paper's 32 dimensions count the patient's number and the diagnosis.",
)
