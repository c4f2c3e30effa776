"""Where blocks of rows live. An engine has one verb, ``map_blocks``: visit all blocks, merge."""

from robustnmf.engine._base import Engine
from robustnmf.engine._scan import DataSummary, Occurrences, scan, scan_sparse
from robustnmf.engine.codes_store import in_parts, written
from robustnmf.engine.memory import InMemory
from robustnmf.engine.row_readers import (
    FunctionReader,
    RowReader,
    SlicedReader,
    memory_map_reader,
    npy_reader,
)
from robustnmf.engine.sampling import RowSample, draw_rows, split_place
from robustnmf.engine.stored import DenseRows, Stored
from robustnmf.engine.threads import one_of_many

__all__ = [
    "DataSummary",
    "DenseRows",
    "Engine",
    "FunctionReader",
    "InMemory",
    "Occurrences",
    "RowReader",
    "RowSample",
    "SlicedReader",
    "Stored",
    "draw_rows",
    "in_parts",
    "memory_map_reader",
    "npy_reader",
    "one_of_many",
    "scan",
    "scan_sparse",
    "split_place",
    "written",
]
