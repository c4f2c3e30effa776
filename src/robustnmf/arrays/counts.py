"""Counts of a histogram by array calls."""

from __future__ import annotations

import numpy as np

from robustnmf.arrays.namespace import Array, arange_like, namespace, to_numpy


def count_at_nodes(lists: Array, sample_weight: Array, size: int) -> np.ndarray:
    """Count positions (lists, rows) at the nodes (lists, size); ``Kernels.count_at_nodes``."""
    xp = namespace(lists)
    count, rows = lists.shape
    line = lists + size * xp.astype(arange_like(count, lists), lists.dtype)[:, None]
    right_weights = xp.broadcast_to(sample_weight, (count, rows)) * (lists - xp.floor(lists))
    order = xp.argsort(xp.reshape(line, (-1,)))
    edges = xp.searchsorted(
        xp.take(xp.reshape(line, (-1,)), order),
        xp.astype(arange_like(count * size + 1, lists), lists.dtype),
    )
    weights = xp.reshape(xp.broadcast_to(sample_weight, (count, rows)), (-1,))
    zero = xp.zeros_like(weights[:1])
    sums_by_node = []
    for part in (weights, xp.reshape(right_weights, (-1,))):
        sums = xp.concat([zero, xp.cumulative_sum(xp.take(part, order))])
        sums = xp.take(sums, edges)
        sums_by_node.append(sums[1:] - sums[:-1])
    whole, right = (xp.reshape(part, (count, size)) for part in sums_by_node)
    from_left = xp.concat([xp.zeros_like(right[:, :1]), right[:, :-1]], axis=1)
    return to_numpy(whole - right + from_left)
