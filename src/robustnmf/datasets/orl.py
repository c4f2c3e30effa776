"""ORL: 40 people, 10 pictures each."""

from __future__ import annotations

import numpy as np

from robustnmf.datasets._base import Dataset, Tables
from robustnmf.datasets._publisher_files import from_matlab


def fetch_olivetti(folder: str | None) -> Tables:
    """Fetch scikit-learn's version of the pictures at half size; its crops are wider."""
    from sklearn.datasets import fetch_olivetti_faces

    bunch = fetch_olivetti_faces(data_home=folder)
    small = bunch.images.reshape(-1, 32, 2, 32, 2).mean(axis=(2, 4))
    return np.rint(255 * small.transpose(0, 2, 1).reshape(len(small), -1)), bunch.target


ORL = Dataset(
    name="orl",
    title="ORL",
    samples=400,
    features=1024,
    classes=40,
    sha256="a9f6ab453e5ef4cebc3c49baaf8f6f6b33de7a122f06d88a271c8baa6399908c",
    content_sha256="b596e1ff2ac5e8e612f3af1ebeaa1a529cf38ee55a43a95291b3ed7fb8e61155",
    converted=from_matlab("fea", "gnd"),
    files="ORL_32x32.mat",
    licence="free to use with credit to Olivetti Research Laboratory",
    source="http://www.cad.zju.edu.cn/home/dengcai/Data/FaceData.html (ORL_32x32.mat)",
    citation="Samaria, Harter, IEEE Workshop on Applications of Computer Vision, 1994; "
    "32x32 crops by Deng Cai",
    image_shape=(32, 32),
    fetched=fetch_olivetti,
    remark="Downloaded, they are scikit-learn's 64x64 crops at half the size, which are wider "
    "than those of the file: results are close, not equal.",
)
