"""Tables in files: what of them is data, and what samples and features are called.

One reader for each kind of file, by its suffix. No file is ever executed: arrays of Python objects
are refused.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from os.path import expanduser
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse

ID_NAMES = {"", "id", "ids", "index", "name", "names", "sample", "samples", "sample_id", "barcode"}
"""Headers of a first column that holds names of samples, also where they are numbers."""

NOTHING = {"", "na", "nan", "n/a", "null", "none"}
"""Texts that stand for a value that is not known."""

MOSTLY = 0.5
"""Share of a column that must be numbers for its texts to be missing values."""

LIKE_AN_AXIS = 5
"""So many numbers, each larger than the last, are names of features (wavelengths, times)."""

MOST_NAMES = 10**8
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
BROKEN = (
    KeyError, TypeError, UnicodeDecodeError, EOFError, OverflowError, MemoryError,
    zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip


@dataclass(frozen=True)
class Table:
    """A table of numbers.

    Attributes
    ----------
    data : ndarray or sparse array (samples, features)
    ids : list of str
    features : list of str
        All different.
    notes : list of str
        What was taken for data and what was not, in words.
    named : bool
        Whether the file says what features are called.
    repeated : frozenset of str
        Names that the file gives to several features; the later ones are numbered here.
    """

    data: Any
    ids: list[str]
    features: list[str]
    notes: list[str] = field(default_factory=list)
    named: bool = True
    repeated: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Asked:
    """What the user says about a file."""

    id_column: str | None = None
    dataset: str | None = None
    header: bool | None = None


def read_table(
    path: str | Path,
    *,
    id_column: str | None = None,
    dataset: str | None = None,
    header: bool | None = None,
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
    """
    file = Path(expanduser(path))
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
        table = READERS[suffix](file, Asked(id_column, dataset, header))
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{file} is no table that can be read ({error}). Save it as UTF-8."
        ) from error
    except BROKEN as error:
        told = str(error) or type(error).__name__
        raise ValueError(f"{file} is no table that can be read ({told}).") from error
    samples, features = table.data.shape
    if not samples or not features:
        raise ValueError(f"{file} holds no numbers: {samples} samples, {features} features.")
    if table.data.dtype.kind not in "fiub":
        raise ValueError(f"{file} holds {table.data.dtype}, no numbers.")
    names, repeated = _different(table.features)
    notes = table.notes
    if repeated:
        notes = [*notes, f"{len(repeated)} names stand for several features, which are numbered"]
    return replace(table, features=names, repeated=repeated, notes=notes)


def _different(names: Iterable[str]) -> tuple[list[str], frozenset[str]]:
    """Names that are all different, and which were not."""
    found: list[str] = []
    seen: dict[str, int] = {}
    repeated = set()
    for name in names:
        count = seen.get(name, 0)
        seen[name] = count + 1
        if count:
            repeated.add(name)
        found.append(f"{name}.{count}" if count else name)
    return found, frozenset(repeated)


def _numbered(data: Any, note: str) -> Table:
    """A table whose file names neither samples nor features."""
    if data.ndim != 2:
        raise ValueError(f"an array of shape {data.shape} is no table of samples and features.")
    samples, features = data.shape
    if samples + features > MOST_NAMES:
        raise ValueError(f"an array of shape {data.shape} is too large for a table of names.")
    ids, names = ([str(i) for i in range(count)] for count in (samples, features))
    return Table(data, ids, names, [note, "samples and features are numbered"], named=False)


def _delimited(separator: str) -> Callable[[Path, Asked], Table]:
    def read(file: Path, asked: Asked) -> Table:
        import pandas

        lines = _first_lines(file)
        skipped = next((i for i, line in enumerate(lines) if not line.startswith("#")), 0)
        options: dict[str, Any] = {"sep": separator, "skiprows": skipped, "low_memory": False}
        try:
            first, second = _fields(file, options, 0), _fields(file, options, 1)
            if len(first) == 1:
                _refuse_other_separators(first[0], separator, file)
            named = _names_columns(first) if asked.header is None else asked.header
            notes = [] if named and _holds_texts(first) else [_on_header(named)]
            if named:
                names = _columns(first, len(second), second[-1] if second else "", file)
                options |= {"header": 0, "names": names, "index_col": False}
            else:
                options |= {"header": None}
            frame = pandas.read_csv(file, **options)
            frame.columns = [str(name) for name in frame.columns]
            if not named and not is_number(first[0]) and first[0].lower() not in NOTHING:
                frame.columns = ["", *map(str, range(frame.shape[1] - 1))]
            place = _id_place(frame, asked.id_column)
            ids = None
            if place is not None:  # as they are written, not as numbers
                texts = {"usecols": [place], "dtype": str, "keep_default_na": False}
                ids = list(pandas.read_csv(file, **options | texts).iloc[:, 0])
        except (pandas.errors.ParserError, pandas.errors.EmptyDataError) as error:
            raise ValueError(f"{file} is no table that can be read ({error}).") from error
        return _framed(frame, place, ids, notes)

    return read


def _first_lines(file: Path) -> list[str]:
    with OPENERS.get(file.suffix.lower(), open)(file, "rt", encoding="utf-8-sig") as text:
        return list(islice(text, 100))


def _fields(file: Path, options: dict[str, Any], line: int) -> list[str]:
    """The fields of a line, as texts; of the second the first one that is there."""
    import pandas

    given = {"header": None, "nrows": 1, "dtype": str, "keep_default_na": False}
    try:
        found = pandas.read_csv(file, **options | given | {"skiprows": options["skiprows"] + line})
    except pandas.errors.EmptyDataError:
        if line == 0:
            raise
        return []
    return [str(value) for value in found.iloc[0]] if len(found) else []


def _refuse_other_separators(field: str, separator: str, file: Path) -> None:
    for other, name in ((";", "semicolons"), ("\t", "tabs"), (",", "commas")):
        if other != separator and other in field:
            raise ValueError(
                f"{file} seems to be separated by {name}. Save it as .csv with commas (and points "
                "in numbers), or as .tsv with tabs."
            )


def _holds_texts(first: list[str]) -> bool:
    """Whether a line has a field that can be nothing but a name."""
    return not all(is_number(cell) or cell.strip().lower() in NOTHING for cell in first)


def _names_columns(first: list[str]) -> bool:
    """Whether a line names columns: texts, numbers from zero on, or a long axis of numbers."""
    rest = first if is_number(first[0]) else first[1:]
    if not rest or not all(is_number(cell) or cell.strip().lower() in NOTHING for cell in rest):
        return True
    numbers = [float(cell) for cell in rest if is_number(cell)]
    if numbers == [float(i) for i in range(len(rest))]:
        return True
    axis = len(numbers) == len(rest) >= LIKE_AN_AXIS
    return axis and all(one < other for one, other in pairwise(numbers))


def _on_header(named: bool) -> str:
    if named:
        return "the first line, numbers that increase, names the features (else: --no-header)"
    return "the first line is data, as it holds numbers (else: --header)"


def _columns(first: list[str], width: int, last: str, file: Path) -> list[str]:
    """Names of the columns; lines may begin with a name that has no column, as R writes them."""
    names = [name or ("" if at == 0 else f"column {at + 1}") for at, name in enumerate(first)]
    if width == len(first) + 1:
        names = [*names, f"column {width}"] if not last else ["", *names]
    elif width > len(first) + 1:
        raise ValueError(f"{file}: its lines have {width} fields, its first line {len(first)}.")
    # Pandas wants them all different; what they are called is told again further up.
    found, _ = _different(names)
    return found


def is_number(text: str) -> bool:
    """Whether a text is a number, and one that is known."""
    try:
        float(text)
    except ValueError:
        return False
    return text.strip().lower() not in NOTHING


def _parquet(file: Path, asked: Asked) -> Table:
    import pandas

    frame = pandas.read_parquet(file)
    frame.columns = [str(name) for name in frame.columns]
    index = frame.index
    if isinstance(index, pandas.RangeIndex) and index.name is None and index.start == 0:
        return _framed(frame, _id_place(frame, asked.id_column), None, [])
    ids = ["/".join(map(str, i)) if isinstance(i, tuple) else str(i) for i in index]
    return _framed(frame, None, ids, ["samples are named by the index"])


def _framed(frame: Any, place: int | None, ids: list[str] | None, notes: list[str]) -> Table:
    """The numbers of a data frame."""
    import pandas

    notes = list(notes)
    if place is not None:
        ids = [str(value) for value in frame.iloc[:, place]] if ids is None else ids
        notes.append(f"samples are named by the column {frame.columns[place]!r}")
    columns, names, left = [], [], []
    for at in range(frame.shape[1]):
        if at == place:
            continue
        column, name = frame.iloc[:, at], str(frame.columns[at])
        given = column.notna()
        dates = column.dtype.kind in "mM" or isinstance(column.dtype, pandas.DatetimeTZDtype)
        numbers = None if dates else pandas.to_numeric(column, errors="coerce")
        if numbers is None or (given.any() and numbers[given].notna().mean() < MOSTLY):
            left.append(name)
            continue
        if not given.any() and name.startswith("column "):
            continue  # what a comma at the end of lines leaves
        texts = int((numbers.isna() & given).sum())
        if texts:
            notes.append(f"{texts} texts in {name!r} count as missing")
        columns.append(numbers.to_numpy(dtype=np.float64, na_value=np.nan))
        names.append(name)
    if left:
        shown = ", ".join(repr(name) for name in left[:5]) + (", ..." if len(left) > 5 else "")
        notes.append(f"left out, no numbers: {shown}")
    data = np.column_stack(columns) if columns else np.empty((len(frame), 0))
    notes.insert(0, f"{data.shape[0]} samples, {data.shape[1]} features")
    ids = [str(i) for i in range(len(frame))] if ids is None else ids
    return Table(data, ids, names, notes)


def _id_place(frame: Any, id_column: str | None) -> int | None:
    """Which column names the samples."""
    columns = list(frame.columns)
    if id_column is not None:
        if id_column not in columns:
            raise ValueError(
                f"there is no column {id_column!r}; the columns are "
                f"{', '.join(map(repr, columns[:20]))}."
            )
        return columns.index(id_column)
    if not columns:
        return None
    first = frame.iloc[:, 0]
    if columns[0].strip().lower() in ID_NAMES:
        return 0
    texts = first.dtype == object or str(first.dtype) in ("string", "str", "category")
    numbers = texts and sum(is_number(str(value)) for value in first) > MOSTLY * len(first)
    return 0 if texts and not numbers and first.is_unique else None


def _npy(file: Path, asked: Asked) -> Table:
    return _numbered(np.load(file, allow_pickle=False), "an array")


def _npz(file: Path, asked: Asked) -> Table:
    with np.load(file, allow_pickle=False) as archive:
        names = archive.files
        if {"format", "indices", "indptr", "shape", "data"} <= set(names):
            return _numbered(_compressed(archive), "a sparse array")
        if asked.dataset in names:
            return _numbered(archive[asked.dataset], f"the array {asked.dataset!r}")
        tables = []
        for name in names:
            try:
                if archive[name].ndim == 2:
                    tables.append(name)
            except ValueError:  # Python objects, which are never read
                continue
        chosen = _chosen(asked.dataset, tables, file)
        return _numbered(archive[chosen], f"the array {chosen!r}")


def _compressed(parts: Any, kind: str | None = None, shape: Any = None) -> Any:
    """A sparse array from its parts, whose places are checked before anything is done with them."""
    if kind is None:
        found = parts["format"][()]
        kind = found.decode() if isinstance(found, bytes) else str(found)
    kinds = {"csr": scipy.sparse.csr_array, "csc": scipy.sparse.csc_array}
    if kind not in kinds:
        raise ValueError(f"a sparse array of the format {kind!r} is not read; save it as csr.")
    rows, columns = (int(n) for n in (parts["shape"][()] if shape is None else shape))
    if min(rows, columns) < 0 or rows + columns > MOST_NAMES:
        raise ValueError(f"a sparse array of shape {(rows, columns)} is no table.")
    arrays = tuple(parts[name][()] for name in ("data", "indices", "indptr"))
    table = kinds[kind](arrays, shape=(rows, columns))
    table.check_format(full_check=True)
    return table.tocsr()


def _chosen(dataset: str | None, tables: list[str], file: Path) -> str:
    """The array that was asked for, or the only one."""
    if dataset is not None and dataset in tables:
        return dataset
    if dataset is None and len(tables) == 1:
        return tables[0]
    asked = f"there is no table {dataset!r} in" if dataset is not None else "which table of"
    raise ValueError(f"{asked} {file}? It holds {tables or 'none'}; name one with --dataset.")


def _matrix_market(file: Path, asked: Asked) -> Table:
    rows, columns, *_ = scipy.io.mminfo(file)
    if rows + columns > MOST_NAMES:
        raise ValueError(f"{file} is {rows} x {columns}, too large for a table of names.")
    found = scipy.io.mmread(file)
    if scipy.sparse.issparse(found):
        return _numbered(scipy.sparse.csr_array(found), "a sparse array")
    return _numbered(np.asarray(found), "an array")


def _hdf5(file: Path, asked: Asked) -> Table:
    import h5py

    with h5py.File(file, "r") as archive:
        if asked.dataset is None and "X" in archive and "obs" in archive:
            return _anndata(archive)
        tables: list[str] = []
        archive.visititems(
            lambda name, item: (
                tables.append(name) if isinstance(item, h5py.Dataset) and item.ndim == 2 else None
            )
        )
        chosen = _chosen(asked.dataset, tables, file)
        return _numbered(archive[chosen][()], f"the dataset {chosen!r}")


def _anndata(archive: Any) -> Table:
    """AnnData: X with the names of observations and variables."""
    X = archive["X"]
    if hasattr(X, "shape"):
        data = X[()]
    else:
        kind = str(X.attrs.get("encoding-type", "csr_matrix")).removesuffix("_matrix")
        data = _compressed(X, kind, X.attrs["shape"])

    def names(axis: str) -> list[str]:
        group = archive[axis]
        index = group.attrs.get("_index", "_index")
        return [v.decode() if isinstance(v, bytes) else str(v) for v in group[index][()]]

    ids, features = names("obs"), names("var")
    if data.shape != (len(ids), len(features)):
        raise ValueError(f"X is {data.shape}, but obs and var name {len(ids)} x {len(features)}.")
    note = f"AnnData: {len(ids)} observations, {len(features)} variables"
    return Table(data, ids, features, [note])


READERS: dict[str, Callable[[Path, Asked], Table]] = {
    ".csv": _delimited(","),
    ".tsv": _delimited("\t"),
    ".txt": _delimited("\t"),
    ".parquet": _parquet,
    ".npy": _npy,
    ".npz": _npz,
    ".mtx": _matrix_market,
    ".h5ad": _hdf5,
    ".h5": _hdf5,
    ".hdf5": _hdf5,
}
"""By suffix."""
