"""Operations of a pass that have kernels, and their choice by library and device."""

import numpy as np

from robustnmf.arrays.kernels import gpu
from robustnmf.arrays.kernels._base import EntryLoop, Kernels, active_components
from robustnmf.arrays.namespace import Array

_ARRAY_CALLS = Kernels()
_COMPILED: dict[type, Kernels] = {}
"""Compiled loops by type of NumPy array."""


def kernels_for(array: Array) -> Kernels:
    """Return the operations for arrays of the library and device of this one."""
    kind = type(array)
    if kind in _COMPILED:
        return _COMPILED[kind]
    # Imported at first use, because numba and Triton take long to import.
    if isinstance(array, np.ndarray):
        from robustnmf.arrays.kernels.numpy import NumpyKernels

        return _COMPILED.setdefault(kind, NumpyKernels())
    if gpu.has_kernels(array):
        from robustnmf.arrays.kernels.cuda import CUDA_KERNELS

        return CUDA_KERNELS
    return _ARRAY_CALLS
