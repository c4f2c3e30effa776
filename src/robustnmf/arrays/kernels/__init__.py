"""Operations of a pass that have kernels, and their choice by library and device."""

from functools import cache
from importlib.util import find_spec

import numpy as np
from array_api_compat import is_torch_array

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
    if has_gpu_kernels(array):
        from robustnmf.arrays.kernels.cuda import CUDA_KERNELS

        return CUDA_KERNELS
    return _ARRAY_CALLS


def has_gpu_kernels(array: Array) -> bool:
    """Return whether an array is on a device that the Triton kernels support."""
    return is_torch_array(array) and array.is_cuda and _has_tensor_cores(array.device.index)


@cache
def _has_tensor_cores(device: int) -> bool:
    import torch

    if find_spec("triton") is None:  # not included in PyTorch without CUDA
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)
