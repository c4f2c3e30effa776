"""Data frames that are too large for memory: converted once to a temporary file, block by block."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from robustnmf.tables._frame import colors, convert_frame, find_column
from robustnmf.tables._numbers import column_numbers, count_by_name
from robustnmf.tables._stored import StoredRows, exceeds_memory
from robustnmf.tables._table import NumberedNames, Table

if TYPE_CHECKING:
    import pandas

COPIES = 2
"""How often memory holds a table while pandas reads it, at least."""

BLOCK_CELLS, MIN_ROWS = 2**22, 100
"""Cells of a block, and its fewest rows."""


def needs_blocks(nbytes: int) -> bool:
    """Whether a table of so many bytes is too large for pandas to read it at once."""
    return exceeds_memory(COPIES * nbytes)


def rows_of_block(n_columns: int) -> int:
    """Return how many rows of so many columns are read at a time."""
    return max(MIN_ROWS, BLOCK_CELLS // max(n_columns, 1))


def table_from_blocks(
    blocks: Iterable[pandas.DataFrame],
    id_column: int | None,
    ids_of: Callable[[pandas.DataFrame], list[str]] | None,
    notes: list[str],
    decimal: str,
    *,
    fixed: bool,
    color_by: str | None,
    folder: Path | None,
) -> Table:
    """Return the columns of numbers of blocks of rows as a table in a temporary file.

    The first block decides which columns hold numbers, and by which decimal mark. ``ids_of``
    returns the names of the samples of a block, where they have names. The file is in ``folder``
    and has no name: it is gone with the process, however that ends.
    """
    remaining = iter(blocks)
    first = next(remaining)
    ids = None if ids_of is None else ids_of(first)
    table, columns = convert_frame(
        first, id_column, ids, notes, decimal, fixed=fixed, color_by=color_by
    )
    if not columns:
        return table
    assert isinstance(table.data, np.ndarray)
    formats = [(column.position, column.decimal) for column in columns]
    n_rows, n_texts = len(first), np.array([column.n_texts for column in columns])
    color_column = None if color_by is None else find_column(first, color_by)
    color_blocks = [] if color_column is None else [first.iloc[:, color_column]]
    with tempfile.TemporaryFile(dir=folder) as file:
        table.data.tofile(file)
        for block in remaining:
            rows, n_new = _convert(block, formats)
            rows.tofile(file)
            n_rows, n_texts = n_rows + len(rows), n_texts + n_new
            if ids is not None and ids_of is not None:
                ids += ids_of(block)
            if color_column is not None:
                color_blocks.append(block.iloc[:, color_column])
        file.flush()
        if not n_rows:
            return table
        array = np.memmap(file, dtype=np.float64, mode="r", shape=(n_rows, len(formats)))
    note = (
        "the table is large: it is converted to a temporary file, and read from there block by "
        f"block; the first {len(first)} rows decided which columns hold numbers"
    )
    return replace(
        table, data=StoredRows(array, None),
        made_missing=count_by_name(table.features, n_texts.tolist()),
        notes=[f"{n_rows} samples, {len(formats)} features", *table.notes[1:], note],
        ids=NumberedNames(range(n_rows)) if ids is None else ids,
        colors=_join_colors(color_blocks, decimal) if color_blocks else None,
    )  # fmt: skip


def _convert(
    block: pandas.DataFrame, formats: list[tuple[int, str]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return columns as numbers (rows, features), and how many texts of each count as missing."""
    rows = np.full((len(block), len(formats)), np.nan)
    n_texts = np.zeros(len(formats), dtype=np.int64)
    for j, (position, decimal) in enumerate(formats):
        numbers, known, _ = column_numbers(block.iloc[:, position], decimal)
        if numbers is not None:
            rows[:, j] = numbers
        n_texts[j] = (np.isnan(rows[:, j]) & known).sum()
    return rows, n_texts


def _join_colors(blocks: list[pandas.Series], decimal: str) -> np.ndarray:
    """Return the column of colours of all blocks."""
    import pandas

    return colors(pandas.concat(blocks, ignore_index=True), decimal)
