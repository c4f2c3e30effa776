"""The only place that knows array libraries apart."""

from robustnmf.arrays.blocks import DenseBlock
from robustnmf.arrays.coordinates import (
    beyond,
    depends,
    quadratic_part,
    scaled_rows,
    sweep_coordinates,
)
from robustnmf.arrays.masked import MaskedBlock, hide
from robustnmf.arrays.namespace import (
    Array,
    Namespace,
    column,
    eps,
    floored,
    has_holes,
    largest,
    log_gap,
    namespace,
    noise,
    on_device_of,
    positive,
    put,
    safe_log,
    smallest,
    to_numpy,
    wide,
)
from robustnmf.arrays.sparse import SparseBlock, row_slice

__all__ = [
    "Array",
    "DenseBlock",
    "MaskedBlock",
    "Namespace",
    "SparseBlock",
    "beyond",
    "column",
    "depends",
    "eps",
    "floored",
    "has_holes",
    "hide",
    "largest",
    "log_gap",
    "namespace",
    "noise",
    "on_device_of",
    "positive",
    "put",
    "quadratic_part",
    "row_slice",
    "safe_log",
    "scaled_rows",
    "smallest",
    "sweep_coordinates",
    "to_numpy",
    "wide",
]
