"""Repeat a step on the device without host synchronisation (CUDA graphs).

On a GPU, calls from Python take longer than small products. A step that needs no result on the
host is captured once as a CUDA graph and replayed. An array call that would need the host to
determine the number of rows to recompute uses a buffer of fixed size while capturing and flags
an overflow (:func:`flag_overflow`); the caller then runs the steps again without capturing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import array_api_compat

from robustnmf.arrays.namespace import Array, namespace

Step = Callable[[Sequence[Array]], tuple[Sequence[Array], Array]]
"""Takes arrays; returns arrays of the same shapes for the next step, and one array to record."""

_overflows: ContextVar[list[Array] | None] = ContextVar("overflows", default=None)


def is_capturing() -> bool:
    """Return whether array calls must not synchronise with the device at present."""
    return _overflows.get() is not None


def flag_overflow(overflow: Array) -> None:
    """Record a boolean on the device: whether a buffer of fixed size was too small."""
    overflows = _overflows.get()
    assert overflows is not None
    overflows.append(overflow)


def repeat_on_device(
    step: Step, arrays: Sequence[Array], times: int
) -> tuple[Sequence[Array], Array] | None:
    """Apply a step ``times`` times; return the last arrays and all records (times, ...).

    Returns None if a buffer of fixed size overflowed, or if the step cannot be captured; the caller
    then runs the steps normally.
    """

    def captured_step(arrays: Sequence[Array]) -> tuple[Sequence[Array], Array, Array]:
        overflows: list[Array] = []
        token = _overflows.set(overflows)
        try:
            arrays, record = step(arrays)
        finally:
            _overflows.reset(token)
        xp = namespace(record)
        overflow = xp.any(xp.stack(overflows)) if overflows else xp.any(record != record)
        return arrays, record, overflow

    if not (array_api_compat.is_torch_array(arrays[0]) and arrays[0].is_cuda):
        arrays, records, overflow = _call(captured_step, arrays, times)
    else:
        try:
            arrays, records, overflow = _capture_and_replay(captured_step, arrays, times)
        except RuntimeError:  # the step synchronises with its device, which capturing forbids
            return None
    return None if bool(overflow) else (arrays, records)


def _call(
    step: Callable, arrays: Sequence[Array], times: int
) -> tuple[Sequence[Array], Array, Array]:
    """Apply a step by calling it; return arrays, records and whether any call overflowed."""
    records, overflows = [], []
    for _ in range(times):
        arrays, record, overflow = step(arrays)
        records.append(record)
        overflows.append(overflow)
    stack = namespace(records[0]).stack
    return arrays, stack(records), namespace(records[0]).any(stack(overflows))


def _capture_and_replay(
    step: Callable, arrays: Sequence[Any], times: int
) -> tuple[Sequence[Array], Array, Array]:
    """Apply a step by replaying a CUDA graph of it; return the same results as ``_call``.

    The first step is called, which initialises libraries; the second is captured.
    """
    import torch

    stream = torch.cuda.current_stream()
    capture_stream = torch.cuda.Stream()
    capture_stream.wait_stream(stream)
    with torch.cuda.stream(capture_stream):
        after, record, overflow = step(arrays)
        buffers = [array.clone() for array in after]
        del after
        records = record.new_empty((times, *record.shape))
        records[0] = record
        any_overflow = overflow.clone()
        at = torch.ones(1, dtype=torch.int64, device=record.device)
        if times > 1:
            graph = torch.cuda.CUDAGraph()
            pointers = {array.data_ptr() for array in buffers}
            with torch.cuda.graph(graph, stream=capture_stream):
                after, record, overflow = step(buffers)
                # An array that the step returns unchanged must not be overwritten before it is
                # copied.
                after = [a.clone() if a.data_ptr() in pointers else a for a in after]
                for old, new in zip(buffers, after, strict=True):
                    old.copy_(new)
                records.index_copy_(0, at, record[None, ...])
                any_overflow.logical_or_(overflow)
                at.add_(1)
            for _ in range(times - 1):
                graph.replay()
    stream.wait_stream(capture_stream)
    for array in (*buffers, records, any_overflow):
        array.record_stream(stream)
    return buffers, records, any_overflow
