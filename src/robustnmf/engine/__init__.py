"""Engines, which hold the blocks of X and call functions on them (``map_blocks``)."""

from robustnmf.engine._base import OUT_OF_RANGE, BlockState, Engine
from robustnmf.engine._scan import DataSummary, Occurrences, as_floats, scan, scan_sparse
from robustnmf.engine.memory import InMemory
from robustnmf.engine.sampling import RowSample, draw_rows, split_place
from robustnmf.engine.stored import RowReader, SlicedReader, SparseReader, Stored, in_parts, written
from robustnmf.engine.threads import Threads, one_of_many, run_fits
