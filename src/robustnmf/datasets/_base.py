"""What is known of a dataset, and the ways to its data: a file, a rule, a download."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

VARIABLE = "ROBUSTNMF_DATA"
LARGEST_FILE = 64 * 2**20

Tables = tuple[np.ndarray, np.ndarray]
"""Data (samples, features) and labels (samples,)."""


class DatasetNotFoundError(FileNotFoundError):
    """The data are not here and cannot be made or fetched; the message says where to get them."""


class DatasetError(ValueError):
    """A file of a dataset is not what it should be."""


@dataclass(frozen=True)
class Dataset:
    """Facts about a dataset, and how to come by it.

    Parameters
    ----------
    name : str
        Also that of its file, ``<name>.npz``.
    title : str
        As tables call it.
    samples, features, classes : int
    sha256 : str
        Of the file; empty where there is none.
    licence, source, citation : str
    image_shape : tuple of int, optional
        Where samples are images; pixels lie column by column.
    made : callable, optional
        Data and labels from what scikit-learn ships or a rule generates.
    fetched : callable, optional
        Data and labels through one of scikit-learn's fetchers, given its cache folder or None.
    remark : str
        What a reader of results should know.
    """

    name: str
    title: str
    samples: int
    features: int
    classes: int
    sha256: str
    licence: str
    source: str
    citation: str
    image_shape: tuple[int, int] | None = None
    made: Callable[[], Tables] | None = None
    fetched: Callable[[str | None], Tables] | None = None
    remark: str = ""

    @property
    def file(self) -> str:
        """Name of the file."""
        return f"{self.name}.npz"

    def path(self, data_dir: str | os.PathLike | None = None) -> Path | None:
        """Where its file lies: in ``data_dir``, else where ``ROBUSTNMF_DATA`` points to."""
        if not self.sha256:
            return None
        for folder in (data_dir, os.environ.get(VARIABLE)):
            if folder and (path := Path(folder) / self.file).is_file():
                return path
        return None

    def load(self, data_dir: str | os.PathLike | None = None, *, download: bool = True) -> Bunch:
        """The data from the first place that has them."""
        path = self.path(data_dir)
        if path is not None:
            data, target = self._read(path)
            origin = str(path)
        elif self.made is not None:
            data, target = self.made()
            origin = "made here"
        elif self.fetched is not None and download:
            data, target = self._fetch(None if data_dir is None else str(data_dir))
            origin = "downloaded"
        else:
            raise DatasetNotFoundError(self._where_to_get())
        expected = (self.samples, self.features)
        if data.shape != expected or target.shape != expected[:1]:
            raise DatasetError(
                f"{self.name} ({origin}) has shape {data.shape} with {target.shape[0]} labels, "
                f"but {expected} is needed. Replace it by the file {self.source} offers."
            )
        return Bunch(
            data=np.ascontiguousarray(data, dtype=np.float64),
            target=np.asarray(target, dtype=np.int64),
            name=self.name,
            image_shape=self.image_shape,
            origin=origin,
            DESCR=self.description,
        )

    @property
    def description(self) -> str:
        """A few lines for people."""
        lines = [
            f"{self.title}: {self.samples} samples, {self.features} features, "
            f"{self.classes} classes.",
            f"Source: {self.source}",
            f"Citation: {self.citation}",
            f"Licence: {self.licence}",
        ]
        return "\n".join([*lines, self.remark] if self.remark else lines)

    def _read(self, path: Path) -> Tables:
        """Data and labels of a file that is the one we know, never unpickled."""
        size = path.stat().st_size
        content = path.read_bytes() if size <= LARGEST_FILE else b""
        found = hashlib.sha256(content).hexdigest()
        if found != self.sha256:
            told = f"SHA-256 {found}" if content else f"{size} bytes"
            raise DatasetError(
                f"{path} ({told}) is not the file this library knows as {self.name} (SHA-256 "
                f"{self.sha256}). Replace it, or load your own data with NumPy."
            )
        try:
            with np.load(BytesIO(content), allow_pickle=False) as file:
                return file["X"], file["y"]
        except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
            raise DatasetError(f"{path} cannot be read: {error}") from error

    def _fetch(self, folder: str | None) -> Tables:
        assert self.fetched is not None
        try:
            return self.fetched(folder)
        except Exception as error:  # whatever the network and the other end come up with
            raise DatasetNotFoundError(
                f"{self._where_to_get()} (The download failed: {error})"
            ) from error

    def _where_to_get(self) -> str:
        return (
            f"The data of {self.name} are not here. Get them from {self.source}, save them as "
            f"{self.file} (arrays X: {self.samples} x {self.features} and y: labels from 0; "
            f"SHA-256 {self.sha256}) in a folder, and name that folder as data_dir or in the "
            f"environment variable {VARIABLE}."
        )


def numbered(labels: np.ndarray) -> np.ndarray:
    """Labels that are numbers, also as texts, as 0, 1, ... in their order."""
    return np.unique(np.asarray(labels).astype(float), return_inverse=True)[1]


def from_openml(data_id: int) -> Callable[[str | None], Tables]:
    """A fetcher for a table that OpenML carries with numbers as labels."""

    def fetch(folder: str | None) -> Tables:
        from sklearn.datasets import fetch_openml

        found = fetch_openml(data_id=data_id, as_frame=False, parser="liac-arff", data_home=folder)
        return np.asarray(found.data, dtype=float), numbered(found.target)

    return fetch
