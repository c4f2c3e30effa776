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
    note = "an array that is read from its file block by block, as it is large"
    return numbered_table(data, note if is_large else "an array")


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
    genes_file, cells_file = (_find_beside(file, names) for names in (FEATURES, BARCODES))
    array = scipy.io.mmread(file)
    if scipy.sparse.issparse(array):
        table = numbered_table(scipy.sparse.csr_array(array), "a sparse array")
    else:
        table = numbered_table(np.asarray(array), "an array")
    if genes_file is None or cells_file is None:
        if options.transpose:
            return turn(table)
        if options.transpose is None:
            table.notes.append(f"the {rows} rows are samples (else: --transpose)")
        return table
    genes, cells = _gene_names(_read_fields(genes_file)), [f[0] for f in _read_fields(cells_file)]
    is_genes_by_cells = (len(genes), len(cells)) == (rows, columns)
    if not is_genes_by_cells and (len(cells), len(genes)) != (rows, columns):
        raise ValueError(
            f"{file} is {rows} x {columns}, but the files beside it name {len(genes)} "
            f"features and {len(cells)} barcodes."
        )
    names = (genes, cells) if is_genes_by_cells else (cells, genes)
    table = replace(table, ids=names[0], features=names[1], named=True)
    table.notes[1:] = [f"names from {genes_file.name}, {cells_file.name}"]
    is_turned = is_genes_by_cells if options.transpose is None else options.transpose
    if not is_turned:
        return table
    table = turn(table)
    if options.transpose is None:
        note = "the file is genes x cells and was turned: cells are samples (else: --no-transpose)"
        table.notes[-1] = f"{note}; {table.data.shape[0]} samples, {table.data.shape[1]} features"
    return table


def _find_beside(file: Path, names: tuple[str, ...]) -> Path | None:
    """Return the file of names that belongs to a matrix: with the same prefix, also compressed."""
    stem = file.name.removesuffix(".gz")
    prefix = stem.removesuffix(MATRIX)
    paths = (file.with_name(f"{prefix}{name}{end}") for name in names for end in ("", ".gz"))
    return next((path for path in paths if prefix != stem and path.is_file()), None)


def _read_fields(file: Path) -> list[list[str]]:
    """Read the first two fields of the lines of a file of names."""
    fields: list[list[str]] = []
    with (gzip.open if file.suffix == ".gz" else open)(file, "rt", encoding="utf-8") as lines:
        while line := lines.readline(MAX_LINE):
            fields.append(line.rstrip("\r\n").split("\t")[:2])
            if len(fields) > MAX_NAMES:
                raise ValueError(f"{file} has too many lines.")
    return fields


def _gene_names(lines: list[list[str]]) -> list[str]:
    """Name genes by their symbol, with the identifier if several genes have that symbol.

    Genes have their identifier, their symbol and their kind in a line.
    """
    counts = Counter(fields[-1] for fields in lines)
    return [
        fields[-1] if counts[fields[-1]] == 1 or len(fields) == 1 else f"{fields[1]} ({fields[0]})"
        for fields in lines
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
    layers = [str(name) for name in archive.get("layers", ())]
    where = "X"
    if options.layer not in (None, "X"):
        where = f"layers/{options.layer}"
        if options.layer not in layers:
            raise ValueError(
                f"--layer is {options.layer[:40]!r}, but the layers of the file are "
                f"{join_first(map(repr, layers)) or 'none'}."
            )
    elif "X" not in archive:
        raise ValueError(
            f"the file has no X; its layers are {join_first(layers) or 'none'}. Name one with "
            "--layer."
        )
    item, obs, var = archive[where], archive["obs"], archive["var"]
    data = _read_dense(item) if hasattr(item, "shape") else read_sparse(item)
    ids, features = (
        [as_text(name) for name in _read_values(axis, _list_columns(axis)[0])]
        for axis in (obs, var)
    )
    if data.shape != (len(ids), len(features)):
        raise ValueError(
            f"{where} is {data.shape}, but obs and var name {len(ids)} x {len(features)}."
        )
    notes = [f"AnnData, {where}: {len(ids)} observations, {len(features)} variables"]
    if layers and options.layer is None:
        notes.append(f"layers that were not read: {join_first(layers)} (else: --layer)")
    colors = None if options.color_by is None else _read_colors(obs, options.color_by)
    return Table(data, ids, features, notes, colors=colors)


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


def _list_columns(axis: h5py.Group | h5py.Dataset) -> list[str]:
    """Return the names of the columns of obs or var, the index first."""
    if hasattr(axis, "shape"):  # a table of records
        return list(axis.dtype.names)
    index = as_text(axis.attrs.get("_index", "_index" if "_index" in axis else "index"))
    order = axis.attrs.get("column-order", sorted(set(axis) - {index, "__categories"}))
    return [index, *map(as_text, order)]


def _read_colors(obs: h5py.Group | h5py.Dataset, name: str) -> np.ndarray:
    """Read a column of obs as an array (samples,) of floats or texts."""
    columns = _list_columns(obs)
    if name not in columns:
        raise ValueError(
            f"--color-by is {name[:40]!r}, but the columns of obs are "
            f"{join_first(map(repr, columns[1:]), 20)}."
        )
    values = _read_values(obs, name)
    if values.dtype.kind in "fiu":
        return values.astype(np.float64)
    return np.array([as_text(value) for value in values], dtype=object)


def _read_values(axis: h5py.Group | h5py.Dataset, name: str) -> np.ndarray:
    """Read a column (n,): an array, values of which some may be missing, or categories."""
    item = axis[()][name] if hasattr(axis, "shape") else axis[name]
    if isinstance(item, np.ndarray):
        return item
    if hasattr(item, "shape"):
        if "categories" not in item.attrs:
            return item[()]
        # Release 0.7 stored codes, with a reference to their categories.
        categories, codes = item.file[item.attrs["categories"]][()], item[()]
    elif "values" in item:
        values = item["values"][()]
        if "mask" in item:
            is_number = values.dtype.kind in "fiu"
            values = values.astype(np.float64 if is_number else object)
            values[item["mask"][()].astype(bool)] = np.nan if is_number else "missing"
        return values
    else:
        categories, codes = item["categories"][()], item["codes"][()]
    if codes.size and not -1 <= codes.min() <= codes.max() < len(categories):
        raise ValueError("a column has codes without a category.")
    texts = np.array([*map(as_text, categories), "missing"], dtype=object)
    return texts[codes]  # minus one, the last, stands for a missing value


def as_text(value: bytes | str) -> str:
    """Return a text that a file holds as bytes or str."""
    return value.decode() if isinstance(value, bytes) else str(value)
