"""Read datasets from the files that their publishers distribute."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from robustnmf.datasets._base import DatasetError, Tables, encode_labels

Converter = Callable[[Sequence[Path]], Tables]
"""Reads data (samples, features) and labels (samples,) from 0 from the files of a publisher."""


def from_text(
    *,
    label: int,
    separator: str | None = None,
    header: int = 0,
    dropped: Sequence[int] = (),
    names: Sequence[str] = (),
) -> Converter:
    """Return a reader of text files with one sample in each line.

    ``label`` is the column of the label, negative from the right; columns are separated by white
    space by default. ``header`` is the number of lines before the first sample, ``dropped`` are
    columns that are neither data nor labels, and ``names`` are the labels in the order of their
    numbers (by default, labels are numbers).
    """

    def convert(paths: Sequence[Path]) -> Tables:
        # The training file is first, in any order of the paths.
        ordered = sorted(paths, key=lambda path: "test" in path.name)
        lines = [line for path in ordered for line in _lines(path)[header:]]
        cells = [[cell.strip() for cell in line.split(separator)] for line in lines]
        if not cells or len({len(row) for row in cells}) != 1:
            raise DatasetError(
                f"{ordered[0]} is not a table: its lines have different numbers of columns."
            )
        table = np.array(cells)
        if table.shape[1] < 2 + len(dropped):
            raise DatasetError(f"{ordered[0]} has too few columns: {table.shape[1]}.")
        labels = table[:, label]
        keys = [column % table.shape[1] for column in (label, *dropped)]
        try:
            data = np.delete(table, keys, axis=1).astype(np.float64)
            if names:
                return data, np.array([names.index(text) for text in labels])
            return data, encode_labels(labels)
        except ValueError as error:
            raise DatasetError(f"{ordered[0]} is not the original file: {error}.") from error

    return convert


def _lines(path: Path) -> list[str]:
    """Return the lines of a text file that are not blank."""
    if path.suffix == ".Z":
        raise DatasetError(f"{path} is compressed. Unpack it first: uncompress {path.name}")
    if path.is_dir():
        raise DatasetError(f"{path} is a folder. Pass the text files in it.")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path} is not a text file: {error}.") from error
    return [line for line in text.splitlines() if line.strip()]


def from_matlab(data: str, labels: str) -> Converter:
    """Return a reader of one MATLAB file with an array of data and one of labels."""

    def convert(paths: Sequence[Path]) -> Tables:
        from scipy.io import loadmat
        from scipy.io.matlab import MatReadError

        if len(paths) != 1:
            raise DatasetError(f"one file is needed, but {len(paths)} were given.")
        (path,) = paths
        try:
            content = loadmat(path)
            X, y = content[data], encode_labels(content[labels])
        except (KeyError, ValueError, NotImplementedError, OSError, MatReadError) as error:
            raise DatasetError(
                f"{path} is not the original MATLAB file with the arrays {data} and {labels}: "
                f"{error}"
            ) from error
        return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64), y

    return convert


def from_face_images(height: int, width: int) -> Converter:
    """Return a reader of images whose paths name a person and a number: s01_05.jpg, s01/05.jpg.

    Images are converted to grey and shrunk by antialiased bicubic resampling; pixels are stored
    column by column. All images of a folder are read.
    """

    def convert(paths: Sequence[Path]) -> Tables:
        from PIL import Image

        files = [file for path in paths for file in _images_of(path)]
        keyed = sorted((_person_and_number(file), file) for file in files)
        if not keyed:
            raise DatasetError("none of these files is an image (jpg, png, pgm).")
        rows = []
        for _, file in keyed:
            with Image.open(file) as image:
                # "L" is grey: 0.299 red, 0.587 green, 0.114 blue.
                small = image.convert("L").resize((width, height), Image.Resampling.BICUBIC)
            rows.append(np.asarray(small, dtype=np.float64).ravel(order="F"))
        people = [person for (person, _), _ in keyed]
        return np.stack(rows), np.unique(people, return_inverse=True)[1]

    return convert


def _images_of(path: Path) -> list[Path]:
    """Return the images in a folder, or the image itself."""
    files = path.rglob("*") if path.is_dir() else [path]
    return [file for file in files if file.suffix.lower() in (".jpg", ".jpeg", ".png", ".pgm")]


def _person_and_number(path: Path) -> tuple[int, int]:
    """Return the numbers of the person and of the image from the end of a path."""
    match = re.search(r"s(\d+)[_/\\](\d+)\.\w+$", str(path))
    if match is None:
        raise DatasetError(f"{path} does not have a person and a number like s01_05.jpg.")
    return int(match[1]), int(match[2])
