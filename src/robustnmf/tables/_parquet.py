"""Read Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from robustnmf.tables._blocks import needs_blocks, rows_of_block, table_from_blocks
from robustnmf.tables._frame import find_id_column, table_from_frame
from robustnmf.tables._numbers import distinct_texts
from robustnmf.tables._table import ReadOptions, Table
from robustnmf.text_format import detect_decimal

if TYPE_CHECKING:
    import pandas
    from pyarrow.parquet import ParquetFile


def read_parquet(file: Path, options: ReadOptions) -> Table:
    """Read a Parquet file; samples are named by its index, or by a column if it has none.

    One that is too large for memory is converted to a temporary file.
    """
    import pandas

    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ModuleNotFoundError("Parquet files need pyarrow", name="pyarrow") from error
    try:
        opened = pyarrow.parquet.ParquetFile(file, pre_buffer=False)
    except pyarrow.ArrowInvalid as error:
        raise ValueError(f"{file} is no Parquet file that can be read ({error}).") from error
    with opened as source:  # a buffer would keep the whole file
        n_rows, n_columns = source.metadata.num_rows, source.metadata.num_columns
        is_large = needs_blocks(8 * n_rows * n_columns) and not options.transpose
        frame = next(_read_blocks(source)) if is_large else source.read().to_pandas()
        frame.columns = [str(name) for name in frame.columns]
        decimal = options.decimal or detect_decimal(distinct_texts(frame), ",")[0]
        fixed = options.decimal is not None
        id_column: int | None = None
        ids_of: Callable[[pandas.DataFrame], list[str]] | None = None
        notes: list[str] = []
        index = frame.index
        if not isinstance(index, pandas.RangeIndex) or index.name is not None or index.start != 0:
            ids_of, notes = _index_names, ["samples are named by the index"]
        else:
            id_column = find_id_column(frame, options.id_column, decimal)
            if id_column is not None:
                ids_of = partial(_column_names, column=id_column)
        if is_large:
            return table_from_blocks(
                _read_blocks(source), id_column, ids_of, notes, decimal, fixed=fixed,
                color_by=options.color_by, folder=options.scratch,
            )  # fmt: skip
        ids = None if ids_of is None else ids_of(frame)
        return table_from_frame(
            frame, id_column, ids, notes, decimal, fixed=fixed, color_by=options.color_by
        )


def _read_blocks(source: ParquetFile) -> Iterator[pandas.DataFrame]:
    """Yield blocks of rows."""
    import pyarrow

    step = rows_of_block(source.metadata.num_columns)
    for batch in source.iter_batches(batch_size=step):
        frame = pyarrow.Table.from_batches([batch]).to_pandas()
        frame.columns = [str(name) for name in frame.columns]
        yield frame
    frame = batch = None  # so that their memory is released, too
    pyarrow.default_memory_pool().release_unused()


def _index_names(frame: pandas.DataFrame) -> list[str]:
    """Return the names of samples that the index holds."""
    return ["/".join(map(str, i)) if isinstance(i, tuple) else str(i) for i in frame.index]


def _column_names(frame: pandas.DataFrame, column: int) -> list[str]:
    """Return the names of samples that a column holds."""
    return [str(value) for value in frame.iloc[:, column]]
