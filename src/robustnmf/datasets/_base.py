"""The facts about a dataset, and how to load it: from a file, generated, or by a download."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from robustnmf.files.archive import whole_file

VARIABLE = "ROBUSTNMF_DATA"
LARGEST_FILE = 64 * 2**20

Tables = tuple[np.ndarray, np.ndarray]
"""Data (samples, features) and labels (samples,)."""

DataDir = str | os.PathLike[str] | None
"""Folder of the npz files, if any."""


class DatasetNotFoundError(FileNotFoundError):
    """Raised if data are not on this machine and cannot be generated or downloaded."""


class DatasetError(ValueError):
    """Raised if the file of a dataset has the wrong digest, content or shape."""


@dataclass(frozen=True)
class Dataset:
    """Facts about a dataset, and the functions that load it.

    Parameters
    ----------
    name : str
        Name of the dataset; its file is ``<name>.npz``.
    title : str
        Name in tables of results.
    samples, features, classes : int
    sha256 : str
        Digest of data and labels (:func:`content_digest`); empty if there is no file.
    converted : callable, optional
        Reads data and labels from the files of the publisher.
    files : str
        Names of these files.
    licence, source, citation : str
    image_shape : tuple of int, optional
        Height and width if samples are images; pixels are stored column by column.
    made : callable, optional
        Returns data and labels that are part of scikit-learn or generated.
    fetched : callable, optional
        Downloads data and labels by one of scikit-learn's fetchers; takes its cache folder or None.
    remark : str
        Note for readers of results.
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
    converted: Callable[[Sequence[Path]], Tables] | None = None
    files: str = ""

    @property
    def file(self) -> str:
        """Return the name of the file."""
        return f"{self.name}.npz"

    def path(self, data_dir: DataDir = None) -> Path | None:
        """Return the path of the file, in ``data_dir`` or else in ``ROBUSTNMF_DATA``, if any."""
        if not self.sha256:
            return None
        for folder in (data_dir, os.environ.get(VARIABLE)):
            if folder and (path := Path(folder) / self.file).is_file():
                return path
        return None

    def load(self, data_dir: DataDir = None, *, download: bool = True) -> Bunch:
        """Load the data from the file if it exists, else by ``made``, else by a download."""
        path = self.path(data_dir)
        if path is not None:
            (data, target), origin = self._read(path), str(path)
        elif self.made is not None:
            (data, target), origin = self.made(), "made here"
        elif self.fetched is not None and download:
            try:
                data, target = self.fetched(None if data_dir is None else str(data_dir))
            except Exception as error:  # network errors come in many types
                message = f"{self._where_to_get()} (The download failed: {error})"
                raise DatasetNotFoundError(message) from error
            origin = "downloaded"
        else:
            raise DatasetNotFoundError(self._where_to_get())
        expected = (self.samples, self.features)
        if data.shape != expected or target.shape != expected[:1]:
            raise DatasetError(
                f"{self.name} ({origin}) has shape {data.shape} with {target.shape[0]} labels, "
                f"but {expected} is needed. Replace it by the file from {self.source}."
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
        """Return size, source, citation and licence as text."""
        lines = [
            f"{self.title}: {self.samples} samples, {self.features} features, "
            f"{self.classes} classes.",
            f"Source: {self.source}",
            f"Citation: {self.citation}",
            f"Licence: {self.licence}",
        ]
        return "\n".join([*lines, self.remark] if self.remark else lines)

    def _read(self, path: Path) -> Tables:
        """Read data and labels, also from a file that was compressed anew; never unpickle."""
        try:
            with zipfile.ZipFile(path) as archive:
                unpacked = sum(member.file_size for member in archive.infolist())
            if unpacked > LARGEST_FILE:
                raise ValueError(f"it unpacks to {unpacked} bytes")
            with np.load(path, allow_pickle=False) as file:
                data, labels = file["X"], file["y"]
            if (digest := content_digest(data, labels)) != self.sha256:
                raise ValueError(f"the digest of its content is {digest}")
        except (KeyError, ValueError, TypeError, OSError, zipfile.BadZipFile) as error:
            raise DatasetError(
                f"{path} is not the file of the dataset {self.name}, whose content has the digest "
                f"{self.sha256}: {error}. Replace it, or load your own data with NumPy."
            ) from error
        return data, labels

    def convert(self, paths: Sequence[Path], folder: Path) -> Path:
        """Write the file of this dataset to a folder, from the files of its publisher."""
        if self.converted is None:
            raise DatasetError(f"{self.name} needs no file: scikit-learn has it.")
        missing = [path for path in paths if not path.exists()]
        if missing:
            raise DatasetNotFoundError(f"there is no file {missing[0]}.")
        data, labels = self.converted(paths)
        digest = content_digest(data, labels)
        if digest != self.sha256:
            raise DatasetError(
                f"these files have {data.shape[0]} samples with {data.shape[1]} features, but "
                f"their digest {digest} differs from that of {self.name} ({self.sha256}). "
                f"Use {self.files} from {self.source}."
            )
        is_byte = data.min() >= 0 and data.max() <= 255 and bool((data == np.rint(data)).all())
        X = data.astype(np.uint8) if is_byte else data
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / self.file
        with whole_file(target) as file:
            np.savez_compressed(file, X=X, y=labels.astype(np.uint8))
        return target

    def _where_to_get(self) -> str:
        return (
            f"The data of {self.name} are not on this machine. Get {self.files} from "
            f"{self.source}, convert them to {self.file} ({self.samples} x {self.features} and "
            f"labels) with robustnmf datasets convert {self.name} FILES, and pass its folder as "
            f"data_dir or in the environment variable {VARIABLE}."
        )


def content_digest(data: np.ndarray, labels: np.ndarray) -> str:
    """Return the SHA-256 of data (samples, features) and labels (samples,) of any dtype."""
    digest = hashlib.sha256(" ".join(map(str, data.shape)).encode())
    digest.update(np.ascontiguousarray(data, dtype="<f8").tobytes())
    digest.update(np.ascontiguousarray(labels, dtype="<i8").tobytes())
    return digest.hexdigest()


def encode_labels(labels: np.ndarray) -> np.ndarray:
    """Replace numeric labels (samples,), as numbers or text, by 0, 1, ... in their order."""
    return np.unique(np.ravel(labels).astype(np.float64), return_inverse=True)[1]
