"""Read arrays: NPY and NPZ, and Matrix Market files, dense or sparse.

Matrix Market files of 10x Genomics' programs hold genes in rows and cells in columns, with names in
two files beside them.
"""

from __future__ import annotations

import gzip
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse

from robustnmf.sources import npy_reader
from robustnmf.tables._table import (
    MAX_NAMES,
    ReadOptions,
    StoredRows,
    Table,
    exceeds_memory,
    numbered_table,
    turn,
)

SPARSE_ENTRIES = {"format", "indices", "indptr", "shape", "data"}
"""What an NPZ file of :func:`scipy.sparse.save_npz` holds."""

MATRIX = "matrix.mtx"
FEATURES, BARCODES = ("features.tsv", "genes.tsv"), ("barcodes.tsv",)
MAX_LINE = 10**5
"""Characters of a line of names."""


def read_npy(file: Path, options: ReadOptions) -> Table:
    """Read the array of an NPY file; one that is too large for memory stays in its file."""
    is_large = exceeds_memory(file.stat().st_size)
    try:
        data = StoredRows(npy_reader(file)) if is_large else np.load(file, allow_pickle=False)
    except ValueError as error:
        is_objects = "pickle" in str(error) or "objects" in str(error)
        reason = "Python objects, which are never read" if is_objects else str(error)
        raise ValueError(f"{file} is not an array of numbers ({reason}).") from error
    note = "an array that is read from its file block by block, as it is large"
    return numbered_table(data, note if is_large else "an array")


def read_npz(file: Path, options: ReadOptions) -> Table:
    """Read an NPZ file: a sparse array of SciPy, or one of its arrays."""
    if not zipfile.is_zipfile(file):
        raise zipfile.BadZipFile("it is not an NPZ file; if it is of another kind, rename it")
    with np.load(file, allow_pickle=False) as archive:
        names = archive.files
        if "format" in names and "shape" in names and options.dataset is None:
            check_sparse(as_text(archive["format"][()]), archive["shape"])
            return numbered_table(checked_csr(scipy.sparse.load_npz(file)), "a sparse array")
        tables = []
        for name in names:
            try:
                if archive[name].ndim == 2 or name == options.dataset:
                    tables.append(name)
            except ValueError:  # Python objects, which are never read
                continue
        name = choose_array(options.dataset, tables, file)
        return numbered_table(archive[name], f"the array {name!r}")


def check_sparse(kind: str, shape: Sequence[int] | np.ndarray) -> tuple[int, int]:
    """Refuse sparse formats other than csr and csc, and impossible shapes; return the shape.

    To be called before anything as large as the shape is allocated.
    """
    if kind not in ("csr", "csc"):
        raise ValueError(f"a sparse array of the format {kind!r} is not read; save it as csr.")
    rows, columns = (int(n) for n in shape)
    if min(rows, columns) < 0 or rows + columns > MAX_NAMES:
        raise ValueError(f"a sparse array of shape {(rows, columns)} is not a table.")
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
    import scipy.io

    try:
        rows, columns, *_ = scipy.io.mminfo(file)
    except ValueError as error:
        reason = str(error).rstrip(".")
        raise ValueError(
            f"{file} is not a Matrix Market file that can be read ({reason}). If it is of another "
            "kind, rename it; else save or download it again."
        ) from error
    if rows + columns > MAX_NAMES:
        raise ValueError(f"{file} is {rows} x {columns}, too large for a table of names.")
    genes_file, cells_file = (_find_beside(file, names) for names in (FEATURES, BARCODES))
    array = scipy.io.mmread(file)
    if scipy.sparse.issparse(array):
        table = numbered_table(scipy.sparse.csr_array(array), "a sparse array")
    else:
        table = numbered_table(array, "an array")
    if genes_file is None or cells_file is None:
        if options.transpose:
            return turn(table)
        if options.transpose is None:
            table.notes.append(f"the {rows} rows are samples (else: --transpose)")
        return table
    genes, cells = gene_names(_read_fields(genes_file)), [f[0] for f in _read_fields(cells_file)]
    is_genes_by_cells = (len(genes), len(cells)) == (rows, columns)
    if not is_genes_by_cells and (len(cells), len(genes)) != (rows, columns):
        raise ValueError(
            f"{file} is {rows} x {columns}, but the files beside it name {len(genes)} "
            f"features and {len(cells)} barcodes."
        )
    names = (genes, cells) if is_genes_by_cells else (cells, genes)
    is_turned = is_genes_by_cells if options.transpose is None else options.transpose
    table = replace(table, ids=names[0], features=names[1], named=True)
    table.notes[1:] = [f"names from {genes_file.name}, {cells_file.name}"]
    table = replace(turn(table) if is_turned else table, of_cells=is_turned == is_genes_by_cells)
    if is_turned and options.transpose is None:
        table.notes[-1] = (
            "the file is genes x cells and was transposed: cells are samples (else: "
            f"--no-transpose); {len(cells)} samples, {len(genes)} features"
        )
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


def gene_names(lines: list[list[str]]) -> list[str]:
    """Name genes by their symbol, with the identifier if several genes have that symbol.

    Genes have their identifier, their symbol and their kind in a line.
    """
    counts = Counter(fields[-1] for fields in lines)
    return [
        fields[-1] if counts[fields[-1]] == 1 or len(fields) == 1 else f"{fields[1]} ({fields[0]})"
        for fields in lines
    ]


def as_text(value: bytes | str) -> str:
    """Return a text that a file holds as bytes or str."""
    return value.decode() if isinstance(value, bytes) else str(value)
