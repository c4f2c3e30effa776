"""A function applied to its own results again and again, with nobody watching.

On a GPU the calls from Python cost more than small products do. What asks the host nothing can
be recorded once and played as often as is needed (CUDA graphs). Where an array call would have to
ask, for how many rows there are in doubt, it does what can be done without and leaves a note
(:func:`doubt`); who repeats then finds out that it was not enough, and does it again, watching.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import array_api_compat

from robustnmf.arrays.namespace import Array, namespace

Step = Callable[[Sequence[Array]], tuple[Sequence[Array], Array]]
"""Of arrays: their successors, of the same shapes, and a note."""

_doubts: ContextVar[list[Array] | None] = ContextVar("doubts", default=None)


def is_capturing() -> bool:
    """Whether nothing may be asked of the device at present."""
    return _doubts.get() is not None


def flag_overflow(question: Array) -> None:
    """Leave a note (a boolean, on the device): whether the host was needed after all."""
    notes = _doubts.get()
    assert notes is not None
    notes.append(question)


@contextmanager
def _notes() -> Iterator[list[Array]]:
    notes: list[Array] = []
    token = _doubts.set(notes)
    try:
        yield notes
    finally:
        _doubts.reset(token)


def repeat_on_device(
    step: Step, arrays: Sequence[Array], times: int
) -> tuple[Sequence[Array], Array] | None:
    """Arrays after so many steps, and the notes of all of them (times, ...); None in doubt."""

    def unattended(arrays: Sequence[Array]) -> tuple[Sequence[Array], Array, Array]:
        with _notes() as doubts:
            arrays, note = step(arrays)
            xp = namespace(note)
            doubtful = xp.any(xp.stack(doubts)) if doubts else xp.any(note != note)
        return arrays, note, doubtful

    if not _has_graphs(arrays[0]):
        arrays, notes, doubtful = _called(unattended, arrays, times)
    else:
        try:
            arrays, notes, doubtful = _played(unattended, arrays, times)
        except RuntimeError:  # a part that asks its device something, which recording forbids
            return None
    return None if bool(doubtful) else (arrays, notes)


def _has_graphs(array: Array) -> bool:
    return array_api_compat.is_torch_array(array) and array.is_cuda


def _called(
    step: Callable, arrays: Sequence[Array], times: int
) -> tuple[Sequence[Array], Array, Array]:
    notes, doubts = [], []
    for _ in range(times):
        arrays, note, doubtful = step(arrays)
        notes.append(note)
        doubts.append(doubtful)
    stack = namespace(notes[0]).stack
    return arrays, stack(notes), namespace(notes[0]).any(stack(doubts))


def _played(
    step: Callable, arrays: Sequence[Any], times: int
) -> tuple[Sequence[Array], Array, Array]:
    """The first step is called, which readies libraries; the second recorded, and then played."""
    import torch

    here = torch.cuda.current_stream()
    aside = torch.cuda.Stream()
    aside.wait_stream(here)
    with torch.cuda.stream(aside):
        after, note, doubtful = step(arrays)
        held = [array.clone() for array in after]
        del after
        notes = note.new_empty((times, *note.shape))
        notes[0] = note
        seen = doubtful.clone()
        at = torch.ones(1, dtype=torch.int64, device=note.device)
        if times > 1:
            graph = torch.cuda.CUDAGraph()
            places = {array.data_ptr() for array in held}
            with torch.cuda.graph(graph, stream=aside):
                after, note, doubtful = step(held)
                # What a step only passes on must not be overwritten before it is copied.
                after = [a.clone() if a.data_ptr() in places else a for a in after]
                for old, new in zip(held, after, strict=True):
                    old.copy_(new)
                notes.index_copy_(0, at, note[None, ...])
                seen.logical_or_(doubtful)
                at.add_(1)
            for _ in range(times - 1):
                graph.replay()
    here.wait_stream(aside)
    for array in (*held, notes, seen):
        array.record_stream(here)
    return held, notes, seen
