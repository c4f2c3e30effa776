"""X in memory: consecutive row blocks, visited one after the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from robustnmf.arrays import Array, DenseBlock, floored, namespace, wide
from robustnmf.passes import Local

BLOCK_BYTES = 8 * 2**20
TYPICAL_SHARE = 0.01


class InMemory:
    """Blocks of a dense array and what stays with them.

    Parameters
    ----------
    X : array (samples, features)
    scale : float, optional
        Units in which X is read; by default a power of two near its largest entry.
    block_rows : int, optional
        Rows of a block; by default as many as fill ``BLOCK_BYTES``, so that the second
        product of a pass finds the block still in cache.
    copies : int, default=1
        How many arrays of the size of a block a pass holds for it.
    """

    def __init__(
        self,
        X: Array,
        *,
        scale: float | None = None,
        block_rows: int | None = None,
        copies: int = 1,
    ):
        self.like = X
        self.shape: tuple[int, int] = X.shape
        self.scale = power_of_two_near_largest(X) if scale is None else scale
        n, m = X.shape
        row_bytes = copies * m * namespace(X).finfo(X.dtype).bits // 8
        step = block_rows or max(1, BLOCK_BYTES // row_bytes)
        blocks = [DenseBlock(X[at : min(at + step, n), :], self.scale) for at in range(0, n, step)]
        if not any(bool(b.xp.any(b.mass > 0)) for b in blocks):
            # Nothing but zeros: the rows are all alike, and all of them count.
            blocks = [DenseBlock(b.rows, self.scale, count_empty_rows=True) for b in blocks]
        self.blocks = blocks

    def begin(self, codes: Array, mixing: Array | None = None) -> list[Local]:
        """What stays with each block: its rows of the codes (members, samples, k)."""
        locals_ = []
        at = 0
        for block in self.blocks:
            rows = slice(at, at + len(block))
            share = None if mixing is None else mixing[:, rows, :]
            locals_.append(Local(codes[:, rows, :], mixing=share))
            at += len(block)
        return locals_

    def sweep(
        self, visit: Callable[[Any, Any], tuple[Any, Any]], locals_: list[Any] | None = None
    ) -> tuple[list[Any], Any]:
        """Visit every block once; new local states, and what the visits found, merged."""
        kept, total = [], None
        for block, local in zip(self.blocks, locals_ or [None] * len(self.blocks), strict=True):
            local, part = visit(block, local)
            kept.append(local)
            total = part if total is None else merged(total, part)
        return kept, total

    def keep(self, locals_: list[Local], members: Array) -> list[Local]:
        """Local states of these members alone."""
        return [local.keep(members) for local in locals_]

    def collect(self, locals_: list[Local], name: str) -> Array:
        """One field of the local states for all samples (members, samples, ...)."""
        parts = [getattr(local, name) for local in locals_]
        return parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts, axis=1)

    @property
    def mass(self) -> Array:
        """How many times every sample counts (samples,)."""
        return namespace(self.like).concat([block.mass for block in self.blocks])

    def mean(self) -> float:
        """Mean entry of X, in units of scale."""
        _, total = self.sweep(lambda block, _: (None, float(block.xp.sum(wide(block.values())))))
        return total / (self.shape[0] * self.shape[1])

    def typical_energies(self, locals_: list[Local], degree: float) -> list[float]:
        """Median energy of the samples that count, for every member.

        Never below ``TYPICAL_SHARE`` of the median size of a sample (its squared norm, for the
        squared error): what is fitted to a tenth of its norm is fitted, and telling such
        samples apart would lock out those that are merely slow to converge.
        """
        xp = namespace(self.like)
        (counted,) = xp.nonzero(self.mass > 0)
        sizes = xp.concat([block.sizes(degree) for block in self.blocks])
        least = float(floored(TYPICAL_SHARE * _medians(xp.take(sizes, counted)[None, :])[0]))
        medians = _medians(xp.take(self.collect(locals_, "energies"), counted, axis=1))
        return [max(float(median), least) for median in medians]


def _medians(values: Array) -> Array:
    """Lower median of every row."""
    return namespace(values).sort(values, axis=1)[:, (values.shape[1] - 1) // 2]


def merged(total: Any, part: Any) -> Any:
    """Statistics merge in their own way, numbers and arrays by addition."""
    return total.merge(part) if hasattr(total, "merge") else total + part


def power_of_two_near_largest(X: Array) -> float:
    """Units that bring the largest entry into [1/2, 1); one where X is zero."""
    largest = float(namespace(X).max(X))
    limit = 1000 if namespace(X).finfo(X.dtype).bits == 64 else 120
    exponent = max(-limit, min(limit, math.frexp(largest)[1]))
    return 2.0**exponent if largest > 0 else 1.0
