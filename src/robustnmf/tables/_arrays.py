"""Read arrays: NPY and NPZ, Matrix Market files, HDF5 and AnnData, dense or sparse.

Matrix Market files of 10x Genomics' programs hold genes in rows and cells in columns, with names in
two files beside them.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.io
import scipy.sparse

from robustnmf.engine import SlicedReader
from robustnmf.sources import npy_reader
from robustnmf.tables._table import (
    MAX_NAMES,
    ReadOptions,
    StoredRows,
    Table,
    exceeds_memory,
    join_first,
    numbered_table,
    turn,
)

if TYPE_CHECKING:
    import h5py

SPARSE_ENTRIES = {"format", "indices", "indptr", "shape", "data"}
"""What an NPZ file of :func:`scipy.sparse.save_npz` holds."""

MATRIX = "matrix.mtx"
FEATURES, BARCODES = ("features.tsv", "genes.tsv"), ("barcodes.tsv",)
MAX_LINE = 10**5
"""Characters of a line of names."""

SPARSE_CLASSES = {"csr": scipy.sparse.csr_array, "csc": scipy.sparse.csc_array}
CHUNK = 2**17
"""Stored entries that are read, and converted to floats, at a time."""


def read_npy(file: Path, options: ReadOptions) -> Table:
    """Read the array of an NPY file; one that is too large for memory stays in its file."""
    is_large = exceeds_memory(file.stat().st_size)
    try:
        data = StoredRows(npy_reader(file)) if is_large else np.load(file, allow_pickle=False)
    except ValueError as error:
        is_objects = "pickle" in str(error) or "objects" in str(error)
        reason = "Python objects, which are never read" if is_objects else str(error)
        raise ValueError(f"{file} is no array of numbers ({reason}).") from error
    if not is_large:
        return numbered_table(data, "an array")
    return numbered_table(
        data, "an array that is read from its file block by block, as it is large"
    )


def read_npz(file: Path, options: ReadOptions) -> Table:
    """Read an NPZ file: a sparse array of SciPy, or one of its arrays."""
    with np.load(file, allow_pickle=False) as archive:
        names = archive.files
        if set(names) >= SPARSE_ENTRIES:
            check_sparse(as_text(archive["format"][()]), archive["shape"])
            return numbered_table(checked_csr(scipy.sparse.load_npz(file)), "a sparse array")
        if options.dataset in names:
            return numbered_table(archive[options.dataset], f"the array {options.dataset!r}")
        tables = []
        for name in names:
            try:
                if archive[name].ndim == 2:
                    tables.append(name)
            except ValueError:  # Python objects, which are never read
                continue
        name = choose_array(options.dataset, tables, file)
        return numbered_table(archive[name], f"the array {name!r}")


def check_sparse(kind: str, shape: Sequence[int] | np.ndarray) -> tuple[int, int]:
    """Refuse sparse formats other than csr and csc, and shapes of no table; return the shape.

    To be called before anything as large as the shape is allocated.
    """
    if kind not in ("csr", "csc"):
        raise ValueError(f"a sparse array of the format {kind!r} is not read; save it as csr.")
    rows, columns = (int(n) for n in shape)
    if min(rows, columns) < 0 or rows + columns > MAX_NAMES:
        raise ValueError(f"a sparse array of shape {(rows, columns)} is no table.")
    return rows, columns


def checked_csr(array: scipy.sparse.csr_array | scipy.sparse.csc_array) -> scipy.sparse.csr_array:
    """Convert to CSR, after all indices were found to lie within the shape."""
    array.check_format(full_check=True)
    return scipy.sparse.csr_array(array)


def choose_array(dataset: str | None, tables: list[str], file: Path) -> str:
    """Return ``dataset`` if it is one of the tables, or the only table if no dataset is given."""
    if dataset is not None and dataset in tables:
        return dataset
    if dataset is None and len(tables) == 1:
        return tables[0]
    problem = f"there is no table {dataset!r} in {file}." if dataset else f"which table of {file}?"
    raise ValueError(f"{problem} It holds {tables or 'none'}; name one with --dataset.")


def read_folder(folder: Path, options: ReadOptions) -> Table:
    """Read the matrix of a folder as Cell Ranger writes it."""
    found = sorted(
        path for path in folder.iterdir() if path.name.removesuffix(".gz").endswith(MATRIX)
    )
    if len(found) != 1:
        what = f"{len(found)} files" if found else "no file"
        raise ValueError(
            f"{folder} is a folder with {what} that end{'' if len(found) > 1 else 's'} with "
            f"{MATRIX} or {MATRIX}.gz. Name a file, or a folder as Cell Ranger writes it."
        )
    return read_matrix_market(found[0], options)


def read_matrix_market(file: Path, options: ReadOptions) -> Table:
    """Read a Matrix Market file, with names of genes and cells if they lie beside it.

    With names it is known which axis is which: genes x cells is turned. Without, rows are samples.
    """
    rows, columns, *_ = scipy.io.mminfo(file)
    if rows + columns > MAX_NAMES:
        raise ValueError(f"{file} is {rows} x {columns}, too large for a table of names.")
    genes, cells = (_read_names_beside(file, names) for names in (FEATURES, BARCODES))
    is_genes_by_cells = None
    if genes is not None and cells is not None:
        is_genes_by_cells = (len(genes), len(cells)) == (rows, columns)
        if not is_genes_by_cells and (len(cells), len(genes)) != (rows, columns):
            raise ValueError(
                f"{file} is {rows} x {columns}, but the files beside it name {len(genes)} "
                f"features and {len(cells)} barcodes."
            )
    table = _read_array(file)
    if genes is None or cells is None:
        if options.transpose:
            return turn(table)
        if options.transpose is None:
            table.notes.append(f"the {rows} rows are samples (else: --transpose)")
        return table
    names = (genes, cells) if is_genes_by_cells else (cells, genes)
    table = replace(table, ids=names[0], features=names[1], named=True)
    table.notes[1:] = [f"names from {join_first(_names_beside(file))}"]
    is_turned = is_genes_by_cells if options.transpose is None else options.transpose
    if not is_turned:
        return table
    table = turn(table)
    if options.transpose is None:
        note = "the file is genes x cells and was turned: cells are samples (else: --no-transpose)"
        table.notes[-1] = f"{note}; {table.data.shape[0]} samples, {table.data.shape[1]} features"
    return table


def _read_array(file: Path) -> Table:
    """Read the array of a Matrix Market file."""
    array = scipy.io.mmread(file)
    if scipy.sparse.issparse(array):
        return numbered_table(scipy.sparse.csr_array(array), "a sparse array")
    return numbered_table(np.asarray(array), "an array")


def _files_beside(file: Path, names: tuple[str, ...]) -> list[Path]:
    """Return the files of names that belong to a matrix: with the same prefix, also compressed."""
    stem = file.name.removesuffix(".gz")
    if not stem.endswith(MATRIX):
        return []
    prefix = stem.removesuffix(MATRIX)
    paths = (file.with_name(f"{prefix}{name}{end}") for name in names for end in ("", ".gz"))
    return [path for path in paths if path.is_file()]


def _names_beside(file: Path) -> list[str]:
    """Return what the files of names beside a matrix are called."""
    return [
        paths[0].name for names in (FEATURES, BARCODES) if (paths := _files_beside(file, names))
    ]


def _read_names_beside(file: Path, names: tuple[str, ...]) -> list[str] | None:
    """Read the names of genes or cells beside a matrix; None if there is no such file.

    Genes have their identifier, their symbol and their kind in a line. The symbol names them, with
    the identifier if several genes have that symbol.
    """
    paths = _files_beside(file, names)
    if not paths:
        return None
    opener = gzip.open if paths[0].suffix == ".gz" else open
    lines_of_fields: list[list[str]] = []
    with opener(paths[0], "rt", encoding="utf-8") as lines:
        while line := lines.readline(MAX_LINE):
            lines_of_fields.append(line.rstrip("\r\n").split("\t")[:2])
            if len(lines_of_fields) > MAX_NAMES:
                raise ValueError(f"{paths[0]} has too many lines.")
    if names is not FEATURES:
        return [fields[0] for fields in lines_of_fields]
    counts = Counter(fields[-1] for fields in lines_of_fields)
    return [
        fields[-1] if counts[fields[-1]] == 1 or len(fields) == 1 else f"{fields[1]} ({fields[0]})"
        for fields in lines_of_fields
    ]


def read_hdf5(file: Path, options: ReadOptions) -> Table:
    """Read an AnnData file, or a two-dimensional dataset of another HDF5 file."""
    import h5py

    archive = h5py.File(file, "r")
    keep_open = False
    try:
        is_anndata = "obs" in archive and "var" in archive
        if options.dataset is None and is_anndata:
            table = _read_anndata(archive, options)
        elif options.layer is not None:
            raise ValueError(f"{file} is no AnnData file and has no layers; leave --layer out.")
        else:
            tables: list[str] = []

            def add_table(name: str, item: h5py.Group | h5py.Dataset) -> None:
                if isinstance(item, h5py.Dataset) and item.ndim == 2:
                    tables.append(name)

            archive.visititems(add_table)
            name = choose_array(options.dataset, tables, file)
            table = numbered_table(_read_dense(archive[name]), f"the dataset {name!r}")
        keep_open = isinstance(table.data, StoredRows)
        return table
    finally:
        if not keep_open:
            archive.close()


def _read_anndata(archive: h5py.File, options: ReadOptions) -> Table:
    """Read X or a layer of an AnnData file with the names of observations and variables.

    Until release 0.7 obs and var were tables of records, named by their first column, and sparse
    arrays had other attributes.
    """
    where = _find_layer(archive, options.layer)
    item = archive[where]
    data = _read_dense(item) if hasattr(item, "shape") else read_sparse(item)
    ids, features = (_read_names(archive[axis]) for axis in ("obs", "var"))
    if data.shape != (len(ids), len(features)):
        raise ValueError(
            f"{where} is {data.shape}, but obs and var name {len(ids)} x {len(features)}."
        )
    note = f"AnnData, {where}: {len(ids)} observations, {len(features)} variables"
    notes = [note]
    layers = [] if options.layer is not None else _list_layers(archive)
    if layers:
        notes.append(f"layers that were not read: {join_first(layers)} (else: --layer)")
    colors = None
    if options.color_by is not None:
        colors = _read_column(archive["obs"], options.color_by)
    return Table(data, ids, features, notes, colors=colors)


def _list_layers(archive: h5py.File) -> list[str]:
    """Return the names of the layers of an AnnData file."""
    layers = archive.get("layers")
    return [] if layers is None else [str(name) for name in layers]


def _find_layer(archive: h5py.File, layer: str | None) -> str:
    """Return the path of X, or of a layer, in an AnnData file; refuse a layer that is not there."""
    layers = _list_layers(archive)
    if layer is None or layer == "X":
        if "X" in archive:
            return "X"
        raise ValueError(
            f"the file has no X; its layers are {join_first(layers) or 'none'}. Name one with "
            "--layer."
        )
    if layer not in layers:
        raise ValueError(
            f"--layer is {layer[:40]!r}, but the layers of the file are "
            f"{join_first(map(repr, layers)) or 'none'}."
        )
    return f"layers/{layer}"


def _read_dense(dataset: h5py.Dataset) -> np.ndarray | StoredRows:
    """Read a dataset; one that is too large for memory stays in its file."""
    if dataset.ndim == 2 and exceeds_memory(dataset.size * dataset.dtype.itemsize):
        return StoredRows(SlicedReader(dataset))
    return dataset[()]


def read_sparse(group: Any) -> scipy.sparse.csr_array:
    """Read a sparse array of floats from a group of HDF5 or Zarr that holds its parts.

    Entries are converted in pieces, so that memory holds the array once.
    """
    attributes = group.attrs
    encoding = attributes.get("encoding-type", attributes.get("h5sparse_format", "csr_matrix"))
    kind = as_text(encoding).removesuffix("_matrix")
    shape = attributes.get("shape", attributes.get("h5sparse_shape"))
    shape = check_sparse(kind, group["shape"][()] if shape is None else shape)
    stored = group["data"].dtype
    if stored.kind not in "fiub":
        raise ValueError(f"the sparse array holds {stored}, no numbers.")
    is_short = stored.itemsize < (8 if stored.kind == "f" else 4)  # of which float32 loses nothing
    data = _read_as(group["data"], np.dtype(np.float32 if is_short else np.float64))
    fits = max(*shape, len(data)) < 2**31
    index = np.dtype(np.int32 if fits and group["indices"].dtype.itemsize <= 4 else np.int64)
    indices, indptr = (_read_as(group[name], index) for name in ("indices", "indptr"))
    return checked_csr(SPARSE_CLASSES[kind]((data, indices, indptr), shape=shape))


def _read_as(dataset: Any, dtype: np.dtype) -> np.ndarray:
    """Read a one-dimensional dataset (n,) in pieces into an array of a dtype."""
    (count,) = dataset.shape
    array = np.empty(count, dtype)
    for start in range(0, count, CHUNK):
        array[start : start + CHUNK] = dataset[start : start + CHUNK]
    return array


def _read_names(axis: h5py.Group | h5py.Dataset) -> list[str]:
    """Read the names of observations or variables."""
    if hasattr(axis, "shape"):  # a table of records
        return [as_text(value) for value in axis[()][axis.dtype.names[0]]]
    return [as_text(value) for value in _read_values(axis[_index_name(axis)])]


def _list_columns(axis: h5py.Group) -> list[str]:
    """Return the names of the columns of obs or var, without the index."""
    if "column-order" in axis.attrs:
        return [as_text(name) for name in axis.attrs["column-order"]]
    others = {_index_name(axis), "__categories"}
    return [str(name) for name in sorted(axis) if name not in others]


def _index_name(axis: h5py.Group) -> str:
    """Return the name of the column that names observations or variables."""
    return as_text(axis.attrs.get("_index", "_index" if "_index" in axis else "index"))


def _read_column(axis: h5py.Group | h5py.Dataset, name: str) -> np.ndarray:
    """Read a column of obs as an array (samples,) of floats or texts."""
    columns = axis.dtype.names if hasattr(axis, "shape") else _list_columns(axis)
    if name not in columns:
        raise ValueError(
            f"--color-by is {name[:40]!r}, but the columns of obs are "
            f"{join_first(map(repr, columns), 20)}."
        )
    values = axis[()][name] if hasattr(axis, "shape") else _read_values(axis[name])
    if values.dtype.kind in "fiu":
        return values.astype(np.float64)
    return np.array([as_text(value) for value in values], dtype=object)


def _read_values(item: h5py.Group | h5py.Dataset) -> np.ndarray:
    """Read a column (n,): an array, values of which some may be missing, or categories."""
    if hasattr(item, "shape"):
        if "categories" not in item.attrs:
            return item[()]
        # Release 0.7 stored codes, with a reference to their categories.
        categories, codes = item.file[item.attrs["categories"]][()], item[()]
    elif "values" in item:
        return _mask_values(item["values"][()], item["mask"][()] if "mask" in item else None)
    else:
        categories, codes = item["categories"][()], item["codes"][()]
    if codes.size and not -1 <= codes.min() <= codes.max() < len(categories):
        raise ValueError("a column has codes without a category.")
    known = codes >= 0  # minus one stands for a missing value
    values = np.full(len(codes), "missing", dtype=object)
    values[known] = np.array([as_text(value) for value in categories], dtype=object)[codes[known]]
    return values


def _mask_values(values: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Return values (n,) with those that a mask (n,) marks as missing: NaN, or a text."""
    if mask is None or not mask.any():
        return values
    is_number = values.dtype.kind in "fiu"
    masked = values.astype(np.float64 if is_number else object)
    masked[mask.astype(bool)] = np.nan if is_number else "missing"
    return masked


def as_text(value: bytes | str) -> str:
    """Return a text that a file holds as bytes or str."""
    return value.decode() if isinstance(value, bytes) else str(value)
