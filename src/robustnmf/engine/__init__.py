"""Where blocks of rows live. An engine has one verb, ``map_blocks``: visit all blocks, merge."""

from robustnmf.engine._base import Engine
from robustnmf.engine._scan import DataSummary, Occurrences, as_floats, scan, scan_sparse
from robustnmf.engine.memory import InMemory
from robustnmf.engine.sampling import RowSample, draw_rows, split_place
from robustnmf.engine.stored import DenseRows, RowReader, SlicedReader, Stored, in_parts, written
from robustnmf.engine.threads import one_of_many

__all__ = [
    "DataSummary",
    "DenseRows",
    "Engine",
    "InMemory",
    "Occurrences",
    "RowReader",
    "RowSample",
    "SlicedReader",
    "Stored",
    "as_floats",
    "draw_rows",
    "in_parts",
    "one_of_many",
    "scan",
    "scan_sparse",
    "split_place",
    "written",
]
