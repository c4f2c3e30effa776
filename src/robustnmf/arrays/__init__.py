"""The only place that knows array libraries apart."""

from robustnmf.arrays.blocks import DenseBlock
from robustnmf.arrays.namespace import (
    Array,
    Namespace,
    column,
    eps,
    floored,
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

__all__ = [
    "Array",
    "DenseBlock",
    "Namespace",
    "column",
    "eps",
    "floored",
    "largest",
    "log_gap",
    "namespace",
    "noise",
    "on_device_of",
    "positive",
    "put",
    "safe_log",
    "smallest",
    "to_numpy",
    "wide",
]
