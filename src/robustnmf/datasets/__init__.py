"""The datasets of the paper and two others; a new one is an entry of ``DATASETS``."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import sklearn.datasets
from sklearn.utils import Bunch

from robustnmf.datasets._base import (
    VARIABLE,
    DataDir,
    Dataset,
    DatasetError,
    DatasetNotFoundError,
    Tables,
    encode_labels,
)
from robustnmf.datasets._publisher_files import from_face_images, from_matlab, from_text

__all__ = [
    "DATASETS", "VARIABLE", "Dataset", "DatasetError", "DatasetNotFoundError", "dataset_called",
    "load_dataset",
]  # fmt: skip


def generate_balance() -> Tables:
    """Generate all 625 rows; the label is the side of the scale that goes down, or neither."""
    data = np.array(list(product(range(1, 6), repeat=4)), dtype=float)
    left, right = data[:, 0] * data[:, 1], data[:, 2] * data[:, 3]
    return data, np.where(left == right, 0, np.where(left > right, 1, 2))


def load_breast_cancer() -> Tables:
    """Load scikit-learn's copy, with the labels of the file: 0 benign, 1 malignant."""
    data, target = sklearn.datasets.load_breast_cancer(return_X_y=True)
    return data, 1 - target


def load_digits() -> Tables:
    """Load 1797 digits of 8 x 8 pixels, stored column by column like all images here."""
    bunch = sklearn.datasets.load_digits()
    return bunch.images.transpose(0, 2, 1).reshape(len(bunch.images), -1), bunch.target


def fetch_olivetti(folder: str | None) -> Tables:
    """Fetch scikit-learn's version of the pictures of ORL at half size; its crops are wider."""
    bunch = sklearn.datasets.fetch_olivetti_faces(data_home=folder)
    small = bunch.images.reshape(-1, 32, 2, 32, 2).mean(axis=(2, 4))
    return np.rint(255 * small.transpose(0, 2, 1).reshape(len(small), -1)), bunch.target


def from_openml(data_id: int) -> Callable[[str | None], Tables]:
    """Return a function that fetches a table with numeric labels from OpenML by its id."""

    def fetch(folder: str | None) -> Tables:
        bunch = sklearn.datasets.fetch_openml(
            data_id=data_id, as_frame=False, parser="liac-arff", data_home=folder
        )
        return np.asarray(bunch.data, dtype=float), encode_labels(bunch.target)

    return fetch


UCI = "https://archive.ics.uci.edu/dataset"
CAI = "http://www.cad.zju.edu.cn/home/dengcai/Data/FaceData.html"

# fmt: off
CATALOGUE = (
    # 15 people, 11 pictures each
    Dataset(
        name="yale", title="Yale", samples=165, features=1024, classes=15, image_shape=(32, 32),
        sha256="86984699d2a274313d24d556a1405e64a29135ccc18baa286ce57c6009f03050",
        converted=from_matlab("fea", "gnd"), files="Yale_32x32.mat",
        licence="free for research; publications acknowledge the Yale Face Database",
        source=f"{CAI} (Yale_32x32.mat)",
        citation="Belhumeur, Hespanha, Kriegman, IEEE TPAMI 19(7), 1997; 32x32 crops by Deng Cai",
    ),
    # 40 people, 10 pictures each
    Dataset(
        name="orl", title="ORL", samples=400, features=1024, classes=40, image_shape=(32, 32),
        sha256="b596e1ff2ac5e8e612f3af1ebeaa1a529cf38ee55a43a95291b3ed7fb8e61155",
        converted=from_matlab("fea", "gnd"), files="ORL_32x32.mat", fetched=fetch_olivetti,
        licence="free to use with credit to Olivetti Research Laboratory",
        source=f"{CAI} (ORL_32x32.mat)",
        citation="Samaria, Harter, IEEE Workshop on Applications of Computer Vision, 1994; "
        "32x32 crops by Deng Cai",
        remark="Downloaded, they are scikit-learn's 64x64 crops at half the size, which are wider "
        "than those of the file: results are close, not equal.",
    ),
    # Georgia Tech face database: 50 people, 15 pictures each
    Dataset(
        name="gtfd", title="GTFD", samples=750, features=1024, classes=50, image_shape=(32, 32),
        sha256="ade56e2d2bb4b8efde36af561fae69ef6b316fd09afc4c150a0f5b052adb9760",
        converted=from_face_images(32, 32), files="the folder of the cropped images",
        licence="none stated; offered by its author for face recognition research",
        source="http://www.anefian.com/research/face_reco.htm",
        citation="A. V. Nefian, Georgia Tech face database; Chen, Man, Nefian, Pattern Recognition "
        "38(6), 2005",
        remark="The official cropped images, grey, shrunk to 32x32; the paper does not say how it "
        "cropped its own.",
    ),
    Dataset(
        name="winequality_red", title="Winequality-red", samples=1599, features=11, classes=6,
        sha256="03ea80cf1b46c01bf39b389dbfc018e37178d1a70fa2b3a1d21ee867834ca9aa",
        converted=from_text(separator=";", header=1, label=-1), files="winequality-red.csv",
        fetched=from_openml(40691), licence="CC BY 4.0", source=f"{UCI}/186/wine+quality",
        citation="Cortez, Cerdeira, Almeida, Matos, Reis, 2009, doi:10.24432/C56S3T",
        remark="The paper gives it 4898 samples, the size of the white set, 12 dimensions (with "
        "the quality column) and 11 classes (the whole scale, of which 6 occur).",
    ),
    Dataset(
        name="winequality_white", title="Winequality-white", samples=4898, features=11, classes=7,
        sha256="35d1d9d6f3bd997e5be169a2372d74eac758cfe4aa82bbbaf682f4ba62bc4e1f",
        converted=from_text(separator=";", header=1, label=-1), files="winequality-white.csv",
        fetched=from_openml(40498), licence="CC BY 4.0", source=f"{UCI}/186/wine+quality",
        citation="Cortez, Cerdeira, Almeida, Matos, Reis, 2009, doi:10.24432/C56S3T",
        remark="Not in the paper, but of the size that its table gives the red set.",
    ),
    # blocks of page layouts: text, lines, pictures
    Dataset(
        name="page_blocks", title="Page-blocks", samples=5473, features=10, classes=5,
        sha256="c4f8537d1767b22cbd962909ad92d8b932ccf8cd804baf2a7c78a2c4cdfdbe16",
        converted=from_text(label=-1), files="page-blocks.data", fetched=from_openml(30),
        licence="CC BY 4.0", source=f"{UCI}/78/page+blocks+classification",
        citation="D. Malerba, doi:10.24432/C5J590",
    ),
    # every combination of two weights and two distances on a scale
    Dataset(
        name="balance", title="Balance", samples=625, features=4, classes=3,
        sha256="174e31c43230a8e7dc609ddcca14193d2799f32468c02ce33c0bbb2a349e5a33",
        converted=from_text(separator=",", label=0, names=("B", "L", "R")),
        files="balance-scale.data", made=generate_balance,
        licence="CC BY 4.0", source=f"{UCI}/12/balance+scale",
        citation="R. Siegler, 1976, doi:10.24432/C5488X",
    ),
    # thyroid disease: normal, hyper- and hypothyroid
    Dataset(
        name="thyroid", title="Thyroid", samples=7200, features=21, classes=3,
        sha256="626266f6b4050b93e07c4c2fc68ee926a8b08295e5f1a093290e2f1cb10a1035",
        converted=from_text(label=-1), files="ann-train.data ann-test.data",
        licence="CC BY 4.0",
        source=f"{UCI}/102/thyroid+disease (ann-train.data, then ann-test.data)",
        citation="R. Quinlan, 1986, doi:10.24432/C5D010",
    ),
    # breast cancer: benign or malignant, by measurements of cell nuclei
    Dataset(
        name="wdbc", title="WDBC", samples=569, features=30, classes=2,
        sha256="053f7917a7223d440519bc2473e2d3cd85aa106d7f0c9a953d4bb2e920f42439",
        converted=from_text(separator=",", label=1, dropped=(0,), names=("B", "M")),
        files="wdbc.data", made=load_breast_cancer,
        licence="CC BY 4.0", source=f"{UCI}/17/breast+cancer+wisconsin+diagnostic",
        citation="Wolberg, Mangasarian, Street, doi:10.24432/C5DW2B",
        remark="The paper's 32 dimensions count the patient's number and the diagnosis.",
    ),
    # stars or galaxies, by measurements on photographic plates
    Dataset(
        name="dimdata", title="Dimdata", samples=4192, features=14, classes=2,
        sha256="d6249f2aecc590b1507d86fcd60d53d7c3a59ae9549dc366a12b2af8736a3402",
        converted=from_matlab("A", "d"), files="dimdata.mat",
        licence="none stated", source="http://pages.cs.wisc.edu/~olvi/ (dimdata.mat)",
        citation="Odewahn, Stockwell, Pennington, Humphreys, Zumach, Astronomical Journal 103(1), "
        "1992",
        remark="Two percent of the values are negative; the paper does not say how it treated "
        "them.",
    ),
    Dataset(
        name="digits", title="Digits", samples=1797, features=64, classes=10, image_shape=(8, 8),
        sha256="", made=load_digits, licence="CC BY 4.0",
        source=f"{UCI}/80/optical+recognition+of+handwritten+digits",
        citation="E. Alpaydin, C. Kaynak, 1998, doi:10.24432/C50P49",
        remark="Not in the paper; needs no file, for trying things out.",
    ),
)
# fmt: on

DATASETS: dict[str, Dataset] = {dataset.name: dataset for dataset in CATALOGUE}


def load_dataset(name: str, data_dir: DataDir = None, *, download: bool = True) -> Bunch:
    """Load one of the datasets by name.

    The function looks for ``<name>.npz`` in ``data_dir`` and in the folder given by the environment
    variable ``ROBUSTNMF_DATA``. Without a file, wdbc and digits come from scikit-learn, balance is
    generated, and others are downloaded with scikit-learn's fetchers if possible. The content of
    files is checked by its SHA-256, and they are never unpickled.

    Parameters
    ----------
    name : str
        One of ``DATASETS``.
    data_dir : path, optional
        Folder of the npz files; downloads are kept there too.
    download : bool, default=True
        Whether to download data that are not on this machine.

    Returns
    -------
    data : Bunch
        ``data`` (samples, features) float64, ``target`` labels from 0, ``name``,
        ``image_shape`` (None if samples are not images; reshape with ``order="F"``), ``origin``
        (where the data came from), ``DESCR``.

    Examples
    --------
    >>> from robustnmf.datasets import load_dataset
    >>> balance = load_dataset("balance")
    >>> balance.data.shape, sorted(set(balance.target.tolist()))
    ((625, 4), [0, 1, 2])
    """
    return dataset_called(name).load(data_dir, download=download)


def dataset_called(name: str) -> Dataset:
    """Return the facts about one of the datasets, by name."""
    if name not in DATASETS:
        raise ValueError(f"unknown dataset {name!r}. The datasets are {', '.join(DATASETS)}.")
    return DATASETS[name]
