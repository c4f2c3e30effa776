"""Balance scale: every combination of two weights and two distances."""

from __future__ import annotations

from itertools import product

import numpy as np

from robustnmf.datasets._base import Dataset, Tables
from robustnmf.datasets._publisher_files import from_text


def generate() -> Tables:
    """Generate all 625 rows; the label is the side of the scale that goes down, or neither."""
    data = np.array(list(product(range(1, 6), repeat=4)), dtype=float)
    left, right = data[:, 0] * data[:, 1], data[:, 2] * data[:, 3]
    return data, np.where(left == right, 0, np.where(left > right, 1, 2))


BALANCE = Dataset(
    name="balance",
    title="Balance",
    samples=625,
    features=4,
    classes=3,
    sha256="b4afbd6efa9b8ace9067f751e545dc09f67be62c2f4e73aa0816fa746f583009",
    content_sha256="174e31c43230a8e7dc609ddcca14193d2799f32468c02ce33c0bbb2a349e5a33",
    converted=from_text(separator=",", label=0, names=("B", "L", "R")),
    files="balance-scale.data",
    licence="CC BY 4.0",
    source="https://archive.ics.uci.edu/dataset/12/balance+scale",
    citation="R. Siegler, 1976, doi:10.24432/C5488X",
    made=generate,
)
