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
    counting,
    device_of,
    eps,
    floored,
    has_holes,
    identity_like,
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
from robustnmf.arrays.residuals import measured_again
from robustnmf.arrays.sparse import SparseBlock, row_slice

__all__ = [
    "Array",
    "DenseBlock",
    "MaskedBlock",
    "Namespace",
    "SparseBlock",
    "beyond",
    "column",
    "counting",
    "depends",
    "device_of",
    "eps",
    "floored",
    "has_holes",
    "hide",
    "identity_like",
    "largest",
    "log_gap",
    "measured_again",
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
