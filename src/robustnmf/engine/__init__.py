"""Where blocks live. An engine has one verb, ``sweep``: visit all blocks, merge."""

from robustnmf.engine._base import Engine
from robustnmf.engine._scan import DataSummary, check_nonempty, look_at
from robustnmf.engine.codes_store import in_parts, written
from robustnmf.engine.memory import InMemory
from robustnmf.engine.sampling import RowSample, draw_rows
from robustnmf.engine.sources import Source, source_of
from robustnmf.engine.stored import Stored
from robustnmf.engine.threads import one_of_many

__all__ = [
    "DataSummary",
    "Engine",
    "InMemory",
    "RowSample",
    "Source",
    "Stored",
    "check_nonempty",
    "draw_rows",
    "in_parts",
    "look_at",
    "one_of_many",
    "source_of",
    "written",
]
