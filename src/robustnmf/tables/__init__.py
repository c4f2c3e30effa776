"""Read tables from files: their numbers, and the names of samples and features.

One reader for each kind of file, by its suffix. No file is ever executed: arrays of Python objects
are refused.
"""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from os.path import expanduser
from pathlib import Path
from typing import Any

from robustnmf.files.archive import is_stream
from robustnmf.tables._arrays import read_folder, read_matrix_market, read_npy, read_npz
from robustnmf.tables._frame import is_number, read_parquet, to_number
from robustnmf.tables._hdf5 import axis_names, read_hdf5, read_sparse, value_places, var_of
from robustnmf.tables._table import (
    Doubt,
    ReadOptions,
    StoredRows,
    Table,
    choose_columns,
    count_missing,
    divide,
    draw_rows,
    join_first,
    make_unique,
    scale_features,
    take_rows,
    turn,
)
from robustnmf.tables._text import OPENERS, read_text

__all__ = [
    "Doubt", "ReadOptions", "StoredRows", "Table", "axis_names", "count_missing", "divide",
    "draw_rows", "is_number", "join_first", "read_sparse", "read_table", "scale_features",
    "take_rows", "to_number", "value_places", "var_of",
]  # fmt: skip

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

SPREADSHEET = "a spreadsheet; save the sheet as CSV there (UTF-8), and give that file"
OTHER_FILES = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".ods", ".numbers"), SPREADSHEET),
    ".rds": "an R object; write it in R with write.csv, or Matrix::writeMM",
    ".rdata": "R objects; write one in R with write.csv, or Matrix::writeMM",
    ".mat": "a file of MATLAB; write the table there with writematrix, as CSV",
    ".loom": "a Loom file; write it as H5AD with anndata.read_loom(path).write_h5ad(...)",
    ".zarr": "a Zarr folder; fit it in Python, RobustNMF(k).fit(zarr.open(path))",
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), "a pickle, which may run code when it is "
                    "read; save the table as CSV, Parquet or NPY"),
}  # fmt: skip
"""Kinds of files that are not read, and what to do, by suffix."""

COLOR_SUFFIXES = {".csv", ".tsv", ".txt", ".parquet", ".h5ad", ".h5", ".hdf5"}
"""Files whose columns have names, one of which --color-by can be."""

TEXTS = (".csv", ".tsv", ".txt")
OPTION_SUFFIXES = {
    "--id": ("id_column", (*TEXTS, ".parquet")),
    "--dataset": ("dataset", (".npz", ".h5ad", ".h5", ".hdf5")),
    "--header or --no-header": ("header", TEXTS),
    "--sep": ("separator", TEXTS),
    "--decimal": ("decimal", (*TEXTS, ".parquet")),
}
"""Fields of :class:`ReadOptions` and the files that they are for, by option."""

READ_ERRORS = (
    KeyError, TypeError, UnicodeError, EOFError, OverflowError, MemoryError,
    zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
"""Errors of readers for damaged files, besides ValueError and OSError."""


def read_table(path: str | Path, *, columns: Sequence[str] | None = None, **options: Any) -> Table:
    """Read a table from a file.

    Parameters
    ----------
    path : path
        CSV, TSV, Parquet, NPY, NPZ (arrays, or SciPy's sparse ones), Matrix Market, AnnData, HDF5
        of Cell Ranger or others, or a folder as Cell Ranger writes it (matrix.mtx, features.tsv or
        genes.tsv, barcodes.tsv, also compressed).
    columns : sequence of str, optional
        Names of the features to keep, in which ``*`` stands for any characters and ``?`` for one.
    **options
        Fields of :class:`ReadOptions`.
    """
    file, given = Path(expanduser(path)), ReadOptions(**options)
    reader = _find_reader(file, given)
    try:
        table = reader(file, given)
    except READ_ERRORS as error:
        reason = str(error) or type(error).__name__
        raise ValueError(f"{file} is not a table that can be read ({reason}).") from error
    except ValueError as error:
        if str(file) in str(error):
            raise
        raise ValueError(f"{file}: {error}") from error
    except OSError as error:
        if error.errno is not None:  # the system names the file
            raise
        kind = f"a {file.suffix} file" if file.suffix else "a folder"
        raise ValueError(
            f"{file} is not {kind} that can be read ({error}). If it is of another kind, rename "
            "it; else save or download it again."
        ) from error
    samples, features = table.data.shape
    if not samples or not features:
        texts = table.left_out
        reason = f" Columns of texts: {join_first(map(repr, texts))}." if texts else ""
        raise ValueError(
            f"{file} holds no numbers: {samples} samples, {features} features.{reason}"
        )
    if table.data.dtype.kind not in "fiub":
        raise ValueError(f"{file} holds {table.data.dtype} values, which are not numbers.")
    if given.transpose and reader not in (read_matrix_market, read_folder):  # which know their axes
        table = turn(table)
    names, repeated = make_unique(table.features)
    notes = table.notes
    if repeated:
        what = "1 name stands" if len(repeated) == 1 else f"{len(repeated)} names stand"
        notes = [*notes, f"{what} for several features, which are numbered"]
    table = replace(table, features=names, repeated=repeated, notes=notes)
    return table if columns is None else choose_columns(table, columns)


def _find_reader(file: Path, options: ReadOptions) -> Callable[[Path, ReadOptions], Table]:
    """Return the reader of a file; refuse files that are not there or that none reads."""
    suffixes = [suffix.lower() for suffix in file.suffixes if suffix.lower() not in OPENERS]
    suffix = suffixes[-1] if suffixes else ""
    if suffix in OTHER_FILES and file.exists():
        raise ValueError(f"{file} is {OTHER_FILES[suffix]}.")
    if options.anndata_options and suffix not in (".h5ad", ".h5", ".hdf5"):
        given = " and ".join(options.anndata_options)
        raise ValueError(f"{given}: {file} has the suffix {suffix!r}, but only AnnData files have "
                         "layers, .raw and columns of var.")  # fmt: skip
    if options.color_by is not None and suffix not in COLOR_SUFFIXES:
        raise ValueError(f"--color-by names a column, but columns of {file} have no names.")
    is_read = file.is_dir() or (suffix in READERS and file.exists())
    for option, (field, kinds) in OPTION_SUFFIXES.items():
        if is_read and getattr(options, field) is not None and suffix not in kinds:
            raise ValueError(
                f"{option} is given, but {file} is of another kind than {', '.join(kinds)}, "
                f"which {option} is for. Leave it out."
            )
    if file.is_dir():
        return read_folder
    if str(file) == "-" or (file.exists() and is_stream(file)):
        raise ValueError(
            f"{file} is standard input, a FIFO or a device, but a table is read more than once; a "
            "regular file is needed. Save it to one."
        )
    if not file.exists():
        raise FileNotFoundError(f"there is no file {file}.")
    if suffix not in READERS:
        raise ValueError(
            f"{file} has the suffix {suffix!r}, but tables are read from "
            f"{', '.join(sorted(READERS))} (also .gz for texts and .mtx). Rename a text to .csv or "
            ".txt."
        )
    return READERS[suffix]
