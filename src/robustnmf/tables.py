"""Tables in files: what of them is data, and what samples and features are called.

One reader for each kind of file, by its suffix. No file is ever executed: arrays of Python objects
are refused.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice, pairwise
from os.path import expanduser
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse

from robustnmf.text_format import (
    CHUNK,
    DECIMALS,
    SEPARATORS,
    detect_decimal,
    detect_encoding,
    detect_separator,
    has_thousands,
    is_nothing,
    is_number,
    split,
    to_number,
)

ID_NAMES = {"", "id", "ids", "index", "name", "names", "sample", "samples", "sample_id", "barcode"}
"""Headers of a first column that holds names of samples, also where they are numbers."""

MOSTLY = 0.5
"""Share of a column that must be numbers for its texts to be missing values."""

LIKE_AN_AXIS = 5
"""So many numbers, each larger than the last, are names of features (wavelengths, times)."""

MOST_NAMES = 10**8
FIRST_LINES, FIRST_CHARACTERS = 100, 10**6
"""How much of a text its separator and decimal mark are detected from."""

SEPARATOR_LINE = re.compile(r"\"?sep=(.)\"?[\r\n]*", re.IGNORECASE)
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
BROKEN = (
    KeyError, TypeError, UnicodeError, EOFError, OverflowError, MemoryError,
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
        What was taken for data, in words.
    left_out : list of str
        Columns that are no numbers.
    made_missing : dict of str to int
        How many texts of a column count as missing values.
    text_format : dict, optional
        Encoding, separator and decimal mark of a text.
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
    left_out: list[str] = field(default_factory=list)
    made_missing: dict[str, int] = field(default_factory=dict)
    text_format: dict[str, str] | None = None

    @property
    def losses(self) -> list[str]:
        """What of the file is not in the data, in words."""
        texts = []
        if self.left_out:
            texts.append(f"left out, no numbers: {_listed(map(repr, self.left_out))}")
        if self.made_missing:
            cells = (f"{count} in {name!r}" for name, count in self.made_missing.items())
            total = sum(self.made_missing.values())
            texts.append(f"texts that count as missing values: {total} ({_listed(cells)})")
        return texts


def _listed(texts: Iterable[str], most: int = 5) -> str:
    """The first of some texts, and whether there are more."""
    first = list(islice(texts, most + 1))
    return ", ".join(first[:most]) + (", ..." if len(first) > most else "")


@dataclass(frozen=True)
class ReadOptions:
    """What the user says about a file."""

    id_column: str | None = None
    dataset: str | None = None
    header: bool | None = None
    separator: str | None = None
    decimal: str | None = None


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
    except BROKEN as error:
        reason = str(error) or type(error).__name__
        raise ValueError(f"{file} is no table that can be read ({reason}).") from error
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


def _delimited(default: str) -> Callable[[Path, ReadOptions], Table]:
    """A reader of texts whose fields are separated by ``default``, unless they look otherwise."""

    def read(file: Path, given: ReadOptions) -> Table:
        import pandas

        encoding = detect_encoding(_chunks(file))
        lines = _first_lines(file, encoding)
        skipped = next((i for i, line in enumerate(lines) if not line.startswith("#")), 0)
        separator = given.separator
        named_separator = SEPARATOR_LINE.fullmatch(lines[skipped]) if lines else None
        if named_separator:  # as spreadsheets write it
            skipped, separator = skipped + 1, separator or named_separator[1]
        separator = separator or detect_separator(lines[skipped:], default)
        cells = chain.from_iterable(split(lines[skipped:], separator))
        mark, doubt = (given.decimal, False) if given.decimal else detect_decimal(cells, separator)
        options: dict[str, Any] = {"sep": separator, "skiprows": skipped, "low_memory": False}
        options |= {"encoding": encoding, "decimal": mark}
        try:
            first, second = _fields(file, options, 0), _fields(file, options, 1)
            named = _names_columns(first, mark) if given.header is None else given.header
            notes = [] if named and _holds_texts(first, mark) else [_on_header(named)]
            if named:
                names = _columns(first, len(second), second[-1] if second else "", file)
                options |= {"header": 0, "names": names, "index_col": False}
            else:
                options |= {"header": None}
            frame = pandas.read_csv(file, **options)
            if doubt:  # what the first lines leave open, the others may say
                later, doubt = detect_decimal(_texts(frame), separator)
                if not doubt and later != mark:
                    mark = options["decimal"] = later
                    frame = pandas.read_csv(file, **options)
            frame.columns = [str(name) for name in frame.columns]
            if not named and not is_number(first[0], mark) and not is_nothing(first[0]):
                frame.columns = ["", *map(str, range(frame.shape[1] - 1))]
            place = _id_place(frame, given.id_column, mark)
            ids = None
            if place is not None:  # as they are written, not as numbers
                texts = {"usecols": [place], "dtype": str, "keep_default_na": False}
                ids = list(pandas.read_csv(file, **options | texts).iloc[:, 0])
        except (pandas.errors.ParserError, pandas.errors.EmptyDataError) as error:
            raise ValueError(f"{file} is no table that can be read ({error}).") from error
        text_format = {
            "separator": separator, "decimal": mark, "encoding": encoding.removesuffix("-sig"),
        }  # fmt: skip
        notes += _on_format(text_format, default)
        table = _framed(frame, place, ids, notes, mark, fixed=given.decimal is not None)
        return replace(table, text_format=text_format)

    return read


def _chunks(file: Path) -> Iterator[bytes]:
    """The bytes of a text, uncompressed."""
    with OPENERS.get(file.suffix.lower(), open)(file, "rb") as content:
        while chunk := content.read(CHUNK):
            yield chunk


def _first_lines(file: Path, encoding: str) -> list[str]:
    lines: list[str] = []
    size = 0
    with OPENERS.get(file.suffix.lower(), open)(file, "rt", encoding=encoding) as text:
        for line in islice(text, FIRST_LINES):
            lines.append(line)
            size += len(line)
            if size > FIRST_CHARACTERS:
                break
    return lines


def _on_format(text_format: dict[str, str], default: str) -> list[str]:
    """What is unusual about a text, in words, with the options for when it was not so."""
    separator, decimal = text_format["separator"], text_format["decimal"]
    notes = []
    if text_format["encoding"] != "utf-8":
        notes.append(f"the text is no UTF-8; it is read as {text_format['encoding']}")
    if separator != default:
        name = SEPARATORS.get(separator, repr(separator))
        notes.append(f"fields are separated by {name} (else: --sep)")
    if decimal != ".":
        notes.append(f"the decimal mark is a {DECIMALS[decimal]} (else: --decimal)")
    return notes


def _texts(frame: Any) -> Iterator[str]:
    """Different texts of every column that is not all numbers."""
    for at in range(frame.shape[1]):
        column = frame.iloc[:, at]
        if _holds_objects(column):
            with suppress(TypeError):  # of lists, which are no numbers
                yield from (value for value in column.dropna().unique() if isinstance(value, str))


def _holds_objects(column: Any) -> bool:
    """Whether a column of a data frame holds texts, or anything else but numbers and dates."""
    return column.dtype == object or str(column.dtype) in ("string", "str", "category")


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


def _holds_texts(first: list[str], decimal: str) -> bool:
    """Whether a line has a field that can be nothing but a name."""
    return not all(is_number(cell, decimal) or is_nothing(cell) for cell in first)


def _names_columns(first: list[str], decimal: str) -> bool:
    """Whether a line names columns: texts, numbers from zero on, or a long axis of numbers."""
    rest = first if is_number(first[0], decimal) else first[1:]
    if not rest or _holds_texts(rest, decimal):
        return True
    numbers = [number for cell in rest if (number := to_number(cell, decimal)) is not None]
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
    different, _ = _different(names)  # as pandas needs them
    return different


def _parquet(file: Path, given: ReadOptions) -> Table:
    import pandas

    try:
        frame = pandas.read_parquet(file)
    except ImportError as error:
        raise ModuleNotFoundError("Parquet files need pyarrow", name="pyarrow") from error
    frame.columns = [str(name) for name in frame.columns]
    mark = given.decimal or detect_decimal(_texts(frame), ",")[0]
    fixed = given.decimal is not None
    index = frame.index
    if isinstance(index, pandas.RangeIndex) and index.name is None and index.start == 0:
        return _framed(frame, _id_place(frame, given.id_column, mark), None, [], mark, fixed)
    ids = ["/".join(map(str, i)) if isinstance(i, tuple) else str(i) for i in index]
    return _framed(frame, None, ids, ["samples are named by the index"], mark, fixed)


def _framed(
    frame: Any,
    place: int | None,
    ids: list[str] | None,
    notes: list[str],
    decimal: str,
    fixed: bool,
) -> Table:
    """The numbers of a data frame.

    Unless the decimal mark is ``fixed``, columns whose numbers have the other one are read by it.
    """
    notes = list(notes)
    if place is not None:
        ids = [str(value) for value in frame.iloc[:, place]] if ids is None else ids
        notes.append(f"samples are named by the column {frame.columns[place]!r}")
    columns: list[np.ndarray] = []
    names, left_out, grouped, other_mark = [], [], [], []
    made_missing: dict[str, int] = {}
    for at in range(frame.shape[1]):
        if at == place:
            continue
        column, name = frame.iloc[:, at], str(frame.columns[at])
        mark = decimal
        if not fixed and _holds_objects(column):
            own, doubt = detect_decimal(_texts(frame.iloc[:, [at]]), "")
            mark = decimal if doubt else own
        numbers, known, example = _numbers(column, mark)
        if numbers is None or (known.any() and (~np.isnan(numbers[known])).mean() < MOSTLY):
            left_out.append(name)
            continue
        if not known.any() and name.startswith("column "):
            continue  # what a comma at the end of lines leaves
        texts = int((np.isnan(numbers) & known).sum())
        if texts:
            made_missing[name] = made_missing.get(name, 0) + texts
        if example is not None:
            grouped.append((name, example, to_number(example, mark)))
        if mark != decimal:
            other_mark.append(name)
        columns.append(numbers)
        names.append(name)
    if grouped:
        name, example, number = grouped[0]
        more = f" and {len(grouped) - 1} more columns" if len(grouped) > 1 else ""
        notes.append(
            f"numbers of {name!r}{more} have separators of thousands: {example!r} is "
            f"{number:.10g} (else: --decimal)"
        )
    if other_mark:
        mark = DECIMALS["," if decimal == "." else "."]
        notes.append(
            f"the decimal mark of {_listed(map(repr, other_mark))} is a {mark} (else: --decimal)"
        )
    data = np.column_stack(columns) if columns else np.empty((len(frame), 0))
    notes.insert(0, f"{data.shape[0]} samples, {data.shape[1]} features")
    ids = [str(i) for i in range(len(frame))] if ids is None else ids
    return Table(data, ids, names, notes, left_out=left_out, made_missing=made_missing)


def _numbers(column: Any, decimal: str) -> tuple[np.ndarray | None, np.ndarray, str | None]:
    """The numbers of a column, or None; which cells hold something; a number with thousands.

    Texts that are no numbers are NaN.
    """
    import pandas

    known = column.notna().to_numpy(dtype=bool)
    if pandas.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan), known, None
    if not _holds_objects(column):
        return None, known, None  # dates
    values = column.astype(object)
    try:
        different = values[known].unique()
    except TypeError:  # lists
        return None, known, None
    texts = [value for value in different if isinstance(value, str)]
    as_number = {text: to_number(text, decimal) for text in texts}
    nothing = {text for text in texts if is_nothing(text)}
    if nothing:
        known = known & ~values.isin(nothing).to_numpy(dtype=bool)
    read = values.map(lambda value: as_number[value] if isinstance(value, str) else value)
    numbers = pandas.to_numeric(read, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    example = next((text for text in texts if has_thousands(text, decimal)), None)
    return numbers, known, example


def _id_place(frame: Any, id_column: str | None, decimal: str) -> int | None:
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
    texts = _holds_objects(first)
    numbers = texts and sum(is_number(str(v), decimal) for v in first) > MOSTLY * len(first)
    return 0 if texts and not numbers and first.is_unique else None


def _npy(file: Path, given: ReadOptions) -> Table:
    return _numbered(np.load(file, allow_pickle=False), "an array")


def _npz(file: Path, given: ReadOptions) -> Table:
    with np.load(file, allow_pickle=False) as archive:
        names = archive.files
        if {"format", "indices", "indptr", "shape", "data"} <= set(names):
            return _numbered(_compressed(archive), "a sparse array")
        if given.dataset in names:
            return _numbered(archive[given.dataset], f"the array {given.dataset!r}")
        tables = []
        for name in names:
            try:
                if archive[name].ndim == 2:
                    tables.append(name)
            except ValueError:  # Python objects, which are never read
                continue
        chosen = _chosen(given.dataset, tables, file)
        return _numbered(archive[chosen], f"the array {chosen!r}")


def _compressed(parts: Any, kind: str | None = None, shape: Any = None) -> Any:
    """A sparse array from its parts, whose places are checked before anything is done with them."""
    if kind is None:
        kind = _decoded(parts["format"][()])
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
    """Name of the array that the user gives, or of the only one."""
    if dataset is not None and dataset in tables:
        return dataset
    if dataset is None and len(tables) == 1:
        return tables[0]
    problem = f"there is no table {dataset!r} in" if dataset is not None else "which table of"
    raise ValueError(f"{problem} {file}? It holds {tables or 'none'}; name one with --dataset.")


def _matrix_market(file: Path, given: ReadOptions) -> Table:
    rows, columns, *_ = scipy.io.mminfo(file)
    if rows + columns > MOST_NAMES:
        raise ValueError(f"{file} is {rows} x {columns}, too large for a table of names.")
    found = scipy.io.mmread(file)
    if scipy.sparse.issparse(found):
        return _numbered(scipy.sparse.csr_array(found), "a sparse array")
    return _numbered(np.asarray(found), "an array")


def _hdf5(file: Path, given: ReadOptions) -> Table:
    import h5py

    with h5py.File(file, "r") as archive:
        if given.dataset is None and "X" in archive and "obs" in archive:
            return _anndata(archive)
        tables: list[str] = []
        archive.visititems(
            lambda name, item: (
                tables.append(name) if isinstance(item, h5py.Dataset) and item.ndim == 2 else None
            )
        )
        chosen = _chosen(given.dataset, tables, file)
        return _numbered(archive[chosen][()], f"the dataset {chosen!r}")


def _anndata(archive: Any) -> Table:
    """AnnData: X with the names of observations and variables.

    Until release 0.7 obs and var were tables of records, named by their first column, and sparse
    arrays had other attributes.
    """
    X = archive["X"]
    if hasattr(X, "shape"):
        data = X[()]
    else:
        kind = X.attrs.get("encoding-type", X.attrs.get("h5sparse_format", "csr_matrix"))
        shape = X.attrs.get("shape", X.attrs.get("h5sparse_shape"))
        data = _compressed(X, _decoded(kind).removesuffix("_matrix"), shape)
    ids, features = (_anndata_names(archive[axis]) for axis in ("obs", "var"))
    if data.shape != (len(ids), len(features)):
        raise ValueError(f"X is {data.shape}, but obs and var name {len(ids)} x {len(features)}.")
    note = f"AnnData: {len(ids)} observations, {len(features)} variables"
    return Table(data, ids, features, [note])


def _anndata_names(axis: Any) -> list[str]:
    """Names of observations or variables."""
    if hasattr(axis, "shape"):  # a table of records
        return [_decoded(value) for value in axis[()][axis.dtype.names[0]]]
    index = axis[_decoded(axis.attrs.get("_index", "_index" if "_index" in axis else "index"))]
    if not hasattr(index, "shape"):
        return _encoded_names(index)
    return [_decoded(value) for value in index[()]]


def _encoded_names(index: Any) -> list[str]:
    """Names that are kept as categories, or as texts of which some may be missing."""
    if "values" in index:
        return [_decoded(value) for value in index["values"][()]]
    categories = [_decoded(value) for value in index["categories"][()]]
    return [categories[code] for code in index["codes"][()]]


def _decoded(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


READERS: dict[str, Callable[[Path, ReadOptions], Table]] = {
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
