"""Engines, which hold the blocks of X and call functions on them (``map_blocks``)."""

from robustnmf.engine._base import BlockState, Engine
from robustnmf.engine._scan import DataSummary, Occurrences, as_floats, scan, scan_sparse
from robustnmf.engine.memory import InMemory
from robustnmf.engine.sampling import RowSample, draw_rows, split_place
from robustnmf.engine.stored import (
    RowReader,
    SlicedReader,
    SparseReader,
    Stored,
    in_parts,
    written,
)
from robustnmf.engine.threads import one_of_many, run_fits

__all__ = [
    "BlockState",
    "DataSummary",
    "Engine",
    "InMemory",
    "Occurrences",
    "RowReader",
    "RowSample",
    "SlicedReader",
    "SparseReader",
    "Stored",
    "as_floats",
    "draw_rows",
    "in_parts",
    "one_of_many",
    "run_fits",
    "scan",
    "scan_sparse",
    "split_place",
    "written",
]
