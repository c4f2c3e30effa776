"""Handwritten digits, as scikit-learn ships them."""

from __future__ import annotations

from robustnmf.datasets._base import Dataset, Tables


def load_from_sklearn() -> Tables:
    """Load 1797 digits of 8 x 8 pixels, stored column by column as all images here."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return bunch.images.transpose(0, 2, 1).reshape(len(bunch.images), -1), bunch.target


DIGITS = Dataset(
    name="digits",
    title="Digits",
    samples=1797,
    features=64,
    classes=10,
    sha256="",
    licence="CC BY 4.0",
    source="https://archive.ics.uci.edu/dataset/80/optical+recognition+of+handwritten+digits",
    citation="E. Alpaydin, C. Kaynak, 1998, doi:10.24432/C50P49",
    image_shape=(8, 8),
    made=load_from_sklearn,
    remark="Not in the paper; needs no file, for trying things out.",
)
