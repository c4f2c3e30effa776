"""Read tables from files: what is data in them, and what samples and features are called.

One reader for each kind of file, by its suffix. No file is ever executed: arrays of Python objects
are refused.
"""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from os.path import expanduser
from pathlib import Path

from robustnmf.tables._arrays import read_matrix_market, read_npy, read_npz
from robustnmf.tables._frame import read_parquet
from robustnmf.tables._hdf5 import read_hdf5
from robustnmf.tables._table import ReadOptions, Table, make_unique
from robustnmf.tables._text import OPENERS, read_text
from robustnmf.text_format import DECIMALS

__all__ = ["ReadOptions", "Table", "read_table"]

READERS: dict[str, Callable[[Path, ReadOptions], Table]] = {
    ".csv": partial(read_text, default=","),
    ".tsv": partial(read_text, default="\t"),
    ".txt": partial(read_text, default="\t"),
    ".parquet": read_parquet,
    ".npy": read_npy,
    ".npz": read_npz,
    ".mtx": read_matrix_market,
    ".h5ad": read_hdf5,
    ".h5": read_hdf5,
    ".hdf5": read_hdf5,
}
"""By suffix."""

READ_ERRORS = (
    KeyError, TypeError, UnicodeError, EOFError, OverflowError, MemoryError,
    zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
"""What readers raise for damaged files, besides ValueError and OSError."""


def read_table(
    path: str | Path,
    *,
    id_column: str | None = None,
    dataset: str | None = None,
    header: bool | None = None,
    separator: str | None = None,
    decimal: str | None = None,
) -> Table:
    """Read a table from a file.

    Parameters
    ----------
    path : path
        CSV, TSV, Parquet, NPY, NPZ (arrays, or SciPy's sparse ones), Matrix Market, AnnData or
        another HDF5 file.
    id_column : str, optional
        Column that holds the names of samples; by default the first one, if it holds texts that
        are all different, or is called so.
    dataset : str, optional
        Which array of an NPZ or HDF5 file.
    header : bool, optional
        Whether the first line of a text names the columns; by default it does unless it holds
        numbers.
    separator : str, optional
        Character between the fields of a text; by default detected.
    decimal : {".", ","}, optional
        Decimal mark of numbers in a text; by default detected. Numbers may have separators of
        thousands.
    """
    file = Path(expanduser(path))
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise ValueError(f"separator is {separator!r}, but one character is needed.")
    if decimal is not None and decimal not in DECIMALS:
        raise ValueError(f"decimal is {decimal!r}, but '.' or ',' is needed.")
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}.")
    suffixes = [suffix.lower() for suffix in file.suffixes if suffix.lower() not in OPENERS]
    suffix = suffixes[-1] if suffixes else ""
    if suffix not in READERS:
        raise ValueError(
            f"{file} has the suffix {suffix!r}, but tables are read from "
            f"{', '.join(sorted(READERS))} (also .gz for texts)."
        )
    try:
        table = READERS[suffix](file, ReadOptions(id_column, dataset, header, separator, decimal))
    except READ_ERRORS as error:
        reason = str(error) or type(error).__name__
        raise ValueError(f"{file} is no table that can be read ({reason}).") from error
    samples, features = table.data.shape
    if not samples or not features:
        raise ValueError(f"{file} holds no numbers: {samples} samples, {features} features.")
    if table.data.dtype.kind not in "fiub":
        raise ValueError(f"{file} holds {table.data.dtype}, no numbers.")
    names, repeated = make_unique(table.features)
    notes = table.notes
    if repeated:
        notes = [*notes, f"{len(repeated)} names stand for several features, which are numbered"]
    return replace(table, features=names, repeated=repeated, notes=notes)
