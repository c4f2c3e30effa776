"""Read arrays: NPY and NPZ, dense or sparse."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.sparse

from robustnmf.tables._stored import StoredRows, exceeds_memory
from robustnmf.tables._table import MAX_NAMES, ReadOptions, Table, as_text, numbered_table

SPARSE_ENTRIES = {"format", "indices", "indptr", "shape", "data"}
"""What an NPZ file of :func:`scipy.sparse.save_npz` holds."""


def read_npy(file: Path, options: ReadOptions) -> Table:
    """Read the array of an NPY file; one that is too large for memory stays in its file."""
    is_large = exceeds_memory(file.stat().st_size)
    try:
        array = np.load(file, allow_pickle=False, mmap_mode="r" if is_large else None)
    except ValueError as error:
        reason = "Python objects, which are never read" if "pickle" in str(error) else str(error)
        raise ValueError(f"{file} is no array of numbers ({reason}).") from error
    if not is_large:
        return numbered_table(array, "an array")
    note = "an array that is read from its file block by block, as it is large"
    return numbered_table(StoredRows(array, file), note)


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
