"""The datasets of the paper and two more; a new one is a file beside these and a line here."""

from __future__ import annotations

from sklearn.utils import Bunch

from robustnmf.datasets._base import VARIABLE, DataDir, Dataset, DatasetError, DatasetNotFoundError
from robustnmf.datasets.balance import BALANCE
from robustnmf.datasets.digits import DIGITS
from robustnmf.datasets.dimdata import DIMDATA
from robustnmf.datasets.gtfd import GTFD
from robustnmf.datasets.orl import ORL
from robustnmf.datasets.page_blocks import PAGE_BLOCKS
from robustnmf.datasets.thyroid import THYROID
from robustnmf.datasets.wdbc import WDBC
from robustnmf.datasets.winequality_red import WINEQUALITY_RED
from robustnmf.datasets.winequality_white import WINEQUALITY_WHITE
from robustnmf.datasets.yale import YALE

DATASETS: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        YALE,
        ORL,
        GTFD,
        WINEQUALITY_RED,
        WINEQUALITY_WHITE,
        PAGE_BLOCKS,
        BALANCE,
        THYROID,
        WDBC,
        DIMDATA,
        DIGITS,
    )
}

__all__ = [
    "DATASETS",
    "VARIABLE",
    "Dataset",
    "DatasetError",
    "DatasetNotFoundError",
    "dataset_called",
    "load_dataset",
]


def load_dataset(name: str, data_dir: DataDir = None, *, download: bool = True) -> Bunch:
    """Load one of the datasets by name.

    Looks for ``<name>.npz`` in ``data_dir`` and in the folder that the environment variable
    ``ROBUSTNMF_DATA`` names, takes what scikit-learn ships (wdbc, digits) or a rule generates
    (balance), and else downloads through scikit-learn's fetchers, where they carry it. Files are
    checked by their SHA-256 and never unpickled.

    Parameters
    ----------
    name : str
        One of ``DATASETS``.
    data_dir : path, optional
        Folder of the npz files; downloads are kept there too.
    download : bool, default=True
        Whether to download data that are found nowhere else.

    Returns
    -------
    data : Bunch
        ``data`` (samples, features) float64, ``target`` labels from 0, ``name``,
        ``image_shape`` (None where samples are no images; reshape with ``order="F"``), ``origin``
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
        raise ValueError(f"no dataset is called {name!r}. Known ones are {', '.join(DATASETS)}.")
    return DATASETS[name]
