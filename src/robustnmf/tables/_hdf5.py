"""Read HDF5 files: AnnData, Cell Ranger, or one of their two-dimensional datasets."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from robustnmf.engine import SlicedReader
from robustnmf.tables._arrays import as_text, check_sparse, checked_csr, choose_array, gene_names
from robustnmf.tables._table import (
    ReadOptions,
    StoredRows,
    Table,
    choose_features,
    exceeds_memory,
    join_first,
    numbered_table,
)

if TYPE_CHECKING:
    import h5py

CHUNK = 2**17
"""Stored entries that are read, and converted to floats, at a time."""


def read_hdf5(file: Path, options: ReadOptions) -> Table:
    """Read an AnnData or Cell Ranger file, or a two-dimensional dataset of another HDF5 file."""
    import h5py

    with ExitStack() as stack:
        archive = stack.enter_context(h5py.File(file, "r"))
        if options.dataset is None and "obs" in archive and "var" in archive:
            table = _read_anndata(archive, options)
        elif options.anndata_options:
            given = " and ".join(options.anndata_options)
            raise ValueError(f"{file} is not read as an AnnData file. Leave {given} out.")
        elif options.dataset is None and "matrix/features/name" in archive:
            table = _read_cell_ranger(archive["matrix"])
        else:
            tables: list[str] = []

            def add_table(name: str, item: h5py.Group | h5py.Dataset) -> None:
                if isinstance(item, h5py.Dataset) and item.ndim == 2:
                    tables.append(name)

            archive.visititems(add_table)
            name = choose_array(options.dataset, tables, file)
            table = numbered_table(_read_dense(archive[name]), f"the dataset {name!r}")
        if isinstance(table.data, StoredRows):
            stack.pop_all()  # the file stays open
        return table


def _read_anndata(archive: h5py.File, options: ReadOptions) -> Table:
    """Read X, a layer or ``.raw`` of an AnnData file with the names of observations and variables.

    Until release 0.7 obs and var were tables of records, named by their first column, and sparse
    arrays had other attributes.
    """
    where = _chosen_place(archive, options)
    item, obs, var = archive[where], archive["obs"], archive[var_of(where)]
    data = _read_dense(item) if hasattr(item, "shape") else read_sparse(item)
    ids, features = axis_names(obs), axis_names(var)
    if data.shape != (len(ids), len(features)):
        raise ValueError(
            f"{where} is {data.shape}, but obs and var name {len(ids)} x {len(features)}."
        )
    notes = [f"AnnData, {where}: {len(ids)} observations, {len(features)} variables"]
    layers = [str(name) for name in archive.get("layers", ())]
    if layers and where == "X" and options.layer is None:
        notes.append(f"layers that were not read: {join_first(layers)} (else: --layer)")
    table = Table(
        data, ids, features, notes, of_cells=True, place=where,
        colors=None if options.color_by is None else _read_colors(obs, options.color_by),
        groupings=[name for name in _list_columns(obs)[1:] if _is_categorical(obs, name)],
    )  # fmt: skip
    if options.mask_var is None:
        return table
    mask = _read_column(var, options.mask_var, "--mask-var", var_of(where))
    if mask.dtype != bool or mask.shape != (len(features),) or not mask.any():
        raise ValueError(
            f"--mask-var is {options.mask_var[:40]!r}, which holds {mask.dtype} values, of which "
            f"{np.count_nonzero(mask)} are true; booleans that choose variables are needed."
        )
    return choose_features(table, np.flatnonzero(mask), f"--mask-var {options.mask_var}")


def _read_cell_ranger(matrix: h5py.Group) -> Table:
    """Read counts that Cell Ranger stored as genes x cells, one cell after another."""
    counts = read_sparse(matrix, matrix["shape"][()][::-1])
    columns = (matrix["features"][name][()] for name in ("id", "name"))
    genes = gene_names([[*map(as_text, names)] for names in zip(*columns, strict=True)])
    cells = [as_text(name) for name in matrix["barcodes"][()]]
    if counts.shape != (len(cells), len(genes)):
        raise ValueError(
            f"{matrix.file.filename} holds {counts.shape[0]} cells and {counts.shape[1]} genes, "
            f"but names {len(cells)} cells and {len(genes)} genes. Download it again."
        )
    notes = [f"Cell Ranger: {len(cells)} cells, {len(genes)} genes"]
    return Table(counts, cells, genes, notes, of_cells=True, named=True)


def value_places(archive: h5py.File) -> dict[str, str]:
    """Return the paths of X, layers and ``.raw`` in an AnnData file by the option for each."""
    paths = {"--layer X": "X"} if "X" in archive else {}
    for name in archive.get("layers", ()):
        paths.setdefault(f"--layer {shlex.quote(str(name))}", f"layers/{name}")
    raw = [path for path in ("raw/X", "raw.X") if path in archive]
    return paths | ({"--raw": raw[0]} if raw else {})


def var_of(place: str) -> str:
    """Return the path of the variables of X, a layer or ``.raw``, which has its own."""
    return f"{place[:-1]}var" if place.startswith("raw") else "var"


def _chosen_place(archive: h5py.File, options: ReadOptions) -> str:
    """Return the path of the values that the options choose; refuse those that are not there."""
    layer = options.layer or "X"
    places = value_places(archive)
    place = places.get("--raw" if options.raw else f"--layer {shlex.quote(layer)}")
    if place is not None:
        return place
    if options.raw:
        raise ValueError("--raw is given, but the file has no .raw. Leave --raw out.")
    layers = join_first(repr(str(name)) for name in archive.get("layers", ())) or "none"
    if layer == "X":
        raise ValueError(f"the file has no X; its layers are {layers}. Name one with --layer.")
    raise ValueError(f"--layer is {layer[:40]!r}, but the layers of the file are {layers}.")


def _read_dense(dataset: h5py.Dataset) -> np.ndarray | StoredRows:
    """Read a dataset; one that is too large for memory stays in its file."""
    if dataset.ndim == 2 and exceeds_memory(dataset.size * dataset.dtype.itemsize):
        return StoredRows(SlicedReader(dataset))
    return dataset[()]


def read_sparse(group: Any, shape: Any = None) -> scipy.sparse.csr_array:
    """Read a sparse array of floats from a group of HDF5 or Zarr that holds its parts.

    Entries are converted in pieces, so that memory holds the array once. ``shape`` is that of
    the group by default.
    """
    attributes = group.attrs
    encoding = attributes.get("encoding-type", attributes.get("h5sparse_format", "csr_matrix"))
    kind = as_text(encoding).removesuffix("_matrix")
    if shape is None:
        shape = attributes.get("shape", attributes.get("h5sparse_shape"))
    shape = check_sparse(kind, group["shape"][()] if shape is None else shape)
    stored = group["data"].dtype
    if stored.kind not in "fiub":
        raise ValueError(f"the sparse array holds {stored} values, which are not numbers.")
    is_short = stored.itemsize < (8 if stored.kind == "f" else 4)  # of which float32 loses nothing
    data = _read_as(group["data"], np.dtype(np.float32 if is_short else np.float64))
    fits = max(*shape, len(data)) < 2**31
    index = np.dtype(np.int32 if fits and group["indices"].dtype.itemsize <= 4 else np.int64)
    indices, indptr = (_read_as(group[name], index) for name in ("indices", "indptr"))
    array = scipy.sparse.csr_array if kind == "csr" else scipy.sparse.csc_array
    return checked_csr(array((data, indices, indptr), shape=shape))


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


def axis_names(axis: h5py.Group | h5py.Dataset) -> list[str]:
    """Return the names of observations or variables."""
    return [as_text(name) for name in _read_values(axis, _list_columns(axis)[0])]


def _is_categorical(axis: h5py.Group | h5py.Dataset, name: str) -> bool:
    """Whether a column holds categories: a group with them, or codes with a reference to them."""
    if hasattr(axis, "shape"):  # a table of records
        return False
    item = axis[name]
    return "categories" in (item.attrs if hasattr(item, "shape") else item)


def _read_column(axis: h5py.Group | h5py.Dataset, name: str, option: str, path: str) -> np.ndarray:
    """Read the column (n,) of obs or var that an option names."""
    columns = _list_columns(axis)
    if name not in columns:
        names = join_first(map(repr, columns[1:]), 20) or "none"
        raise ValueError(f"{option} is {name[:40]!r}, but the columns of {path} are {names}.")
    return _read_values(axis, name)


def _read_colors(obs: h5py.Group | h5py.Dataset, name: str) -> np.ndarray:
    """Read a column of obs as an array (samples,) of floats or texts."""
    values = _read_column(obs, name, "--color-by", "obs")
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
        if "mask" in item and item["mask"][()].any():
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
