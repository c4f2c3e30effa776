"""Read HDF5 files, AnnData among them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from robustnmf.tables._arrays import check_sparse, checked_csr, choose_array
from robustnmf.tables._stored import StoredRows, exceeds_memory
from robustnmf.tables._table import ReadOptions, Table, as_text, join_first, numbered_table

if TYPE_CHECKING:
    import h5py

SPARSE_CLASSES = {"csr": scipy.sparse.csr_array, "csc": scipy.sparse.csc_array}
CHUNK = 2**17
"""Stored entries that are read, and converted to floats, at a time."""


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
        return StoredRows(dataset, dataset)
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
