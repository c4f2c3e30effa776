"""Read HDF5 files, AnnData among them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import scipy.sparse

from robustnmf.tables._arrays import check_sparse, checked_csr, choose_array
from robustnmf.tables._table import ReadOptions, Table, as_text, numbered_table

if TYPE_CHECKING:
    import h5py

SPARSE_CLASSES = {"csr": scipy.sparse.csr_array, "csc": scipy.sparse.csc_array}


def read_hdf5(file: Path, options: ReadOptions) -> Table:
    """Read an AnnData file, or a two-dimensional dataset of another HDF5 file."""
    import h5py

    with h5py.File(file, "r") as archive:
        if options.dataset is None and "X" in archive and "obs" in archive:
            return _read_anndata(archive)
        tables: list[str] = []

        def add_table(name: str, item: h5py.Group | h5py.Dataset) -> None:
            if isinstance(item, h5py.Dataset) and item.ndim == 2:
                tables.append(name)

        archive.visititems(add_table)
        name = choose_array(options.dataset, tables, file)
        return numbered_table(archive[name][()], f"the dataset {name!r}")


def _read_anndata(archive: h5py.File) -> Table:
    """Read X of an AnnData file with the names of observations and variables.

    Until release 0.7 obs and var were tables of records, named by their first column, and sparse
    arrays had other attributes.
    """
    X = archive["X"]
    data = X[()] if hasattr(X, "shape") else _read_sparse(X)
    ids, features = (_read_names(archive[axis]) for axis in ("obs", "var"))
    if data.shape != (len(ids), len(features)):
        raise ValueError(f"X is {data.shape}, but obs and var name {len(ids)} x {len(features)}.")
    note = f"AnnData: {len(ids)} observations, {len(features)} variables"
    return Table(data, ids, features, [note])


def _read_sparse(group: h5py.Group) -> scipy.sparse.csr_array:
    """Read a sparse array from a group that holds its parts."""
    attributes = group.attrs
    encoding = attributes.get("encoding-type", attributes.get("h5sparse_format", "csr_matrix"))
    kind = as_text(encoding).removesuffix("_matrix")
    shape = attributes.get("shape", attributes.get("h5sparse_shape"))
    shape = check_sparse(kind, group["shape"][()] if shape is None else shape)
    parts = tuple(group[name][()] for name in ("data", "indices", "indptr"))
    return checked_csr(SPARSE_CLASSES[kind](parts, shape=shape))


def _read_names(axis: h5py.Group | h5py.Dataset) -> list[str]:
    """Read the names of observations or variables."""
    if hasattr(axis, "shape"):  # a table of records
        return [as_text(value) for value in axis[()][axis.dtype.names[0]]]
    index = axis[as_text(axis.attrs.get("_index", "_index" if "_index" in axis else "index"))]
    if hasattr(index, "shape"):
        return [as_text(value) for value in index[()]]
    if "values" in index:  # texts of which some may be missing
        return [as_text(value) for value in index["values"][()]]
    categories = [as_text(value) for value in index["categories"][()]]
    return [categories[code] for code in index["codes"][()]]
