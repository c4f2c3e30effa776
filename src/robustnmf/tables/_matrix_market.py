"""Read Matrix Market files, and the folders of them that 10x Genomics' programs write.

Their files hold genes in rows and cells in columns, with names in two files beside them.
"""

from __future__ import annotations

import gzip
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse

from robustnmf.tables._table import (
    MAX_NAMES,
    ReadOptions,
    Table,
    join_first,
    numbered_table,
    turn,
)

MATRIX = "matrix.mtx"
FEATURES, BARCODES = ("features.tsv", "genes.tsv"), ("barcodes.tsv",)
MAX_LINE = 10**5
"""Characters of a line of names."""


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
