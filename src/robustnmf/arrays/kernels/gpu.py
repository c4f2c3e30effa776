"""Loops of a pass on an NVIDIA GPU, as Triton kernels (Triton comes with PyTorch).

Array calls write every intermediate result to memory; a kernel reads and writes each number once.

The two products with X on tensor cores are limited by memory bandwidth. Tensor cores multiply
TF32 numbers, so each factor is split into a sum of two, and three of the four products are
summed: the error is that of float32. Sums within tensor cores lose digits as well, so a few
steps at a time are summed outside. If PyTorch allows TF32 (``allow_tf32``), one product of
rounded factors is enough.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import torch

TILE = 64
"""Rows of a tile in kernels that only loop over rows."""


@cache
def _kernels() -> Any:
    """Return the module of kernels, which imports Triton."""
    from robustnmf.arrays.kernels import gpu_kernels

    return gpu_kernels


def _exact() -> bool:
    """Return whether products must have the accuracy of float32, as PyTorch is configured."""
    return not torch.backends.cuda.matmul.allow_tf32


def ceil_div(count: int, size: int) -> int:
    """Return ``count / size``, rounded up."""
    return -(-count // size)


def padded(columns: int) -> int:
    """Return the next power of two, at least 16."""
    return max(16, 1 << (columns - 1).bit_length())


def unit_of(*lengths: int) -> int:
    """Return how many numbers can be read at once in tables with rows of these lengths."""
    return next(unit for unit in (16, 4, 2, 1) if all(length % unit == 0 for length in lengths))


def project(X: Any, directions: Any) -> Any:
    """Compute ``X directions^T`` (rows, k) for directions (k, features)."""
    (n, m), k = X.shape, directions.shape[0]
    out = X.new_empty((n, k))
    unit, (high, low) = unit_of(m, X.stride(0)), _split(directions)
    _kernels().project[(ceil_div(n, 128),)](
        X, high, low, out, n, m // unit, k, X.stride(0) // unit, 1.0,
        K=padded(k), ROWS=128, STEP=32, UNIT=unit, SPLIT=_exact(), num_warps=8, num_stages=3,
    )  # fmt: skip
    return out


def project_and_update(X: Any, basis: Any, gram: Any, codes: Any, least: float) -> Any:
    """Update codes (1, rows, k) by a multiplicative step, in one kernel with ``X C^T``.

    Also returns ``a G a^T - 2 a.(x C^T)`` (1, rows) of the new codes.
    """
    (n, m), k = X.shape, basis.shape[0]
    codes = codes.contiguous()
    out = torch.empty_like(codes)
    rest = X.new_empty((1, n), dtype=torch.float64)
    padded_gram = with_zeros(gram, 0, 1)
    unit, k_unit, (high, low) = unit_of(m, X.stride(0)), unit_of(k), _split(basis)
    _kernels().project_and_multiply[(ceil_div(n, 64),)](
        X, high, low, codes, padded_gram, out, rest, n, m // unit, k // k_unit, X.stride(0) // unit,
        least, 1.0, K=padded(k), ROWS=64, STEP=32 if _exact() else 64, UNIT=unit, K_UNIT=k_unit,
        SPLIT=_exact(), num_warps=4, num_stages=4 if _exact() else 3,
    )  # fmt: skip
    return out, rest


def weighted_cross(codes: Any, weights: Any, *tables: Any) -> list[Any]:
    """Compute ``codes^T w X`` (members * k, features) for every X (rows, features).

    Partial sums are added in a fixed order.
    """
    members, n, k = codes.shape
    high, low = (codes.new_empty((members * k, n)) for _ in range(2))
    _kernels().turn[(ceil_div(n, TILE), members)](
        codes, weights.contiguous(), high, low, n, k, *codes.stride()[:2],
        K=padded(k), ROWS=TILE, SPLIT=_exact(), num_warps=4,
    )  # fmt: skip
    return [_cross(high, low, X) for X in tables]


def _cross(high: Any, low: Any, X: Any) -> Any:
    """Compute ``(high + low) X`` (k, features) for factors (k, rows)."""
    (k, n), m = high.shape, X.shape[1]
    # Tuned on an H200; tables of codes have few features.
    if m <= 64:
        width, step, warps, stages = padded(m), 32, 4, 3
    elif _exact():
        width, step, warps, stages = 128, 16, 4, 4
    else:
        width, step, warps, stages = 256, 16, 4, 3
    tiles = ceil_div(m, width)
    parts = max(1, min(ceil_div(n, 512), 2 * _multiprocessors(X.device) // tiles))
    each = ceil_div(ceil_div(n, parts), 64) * 64
    parts = ceil_div(n, each)
    out = X.new_empty((parts, k, m))
    _kernels().cross[(tiles, parts)](
        high, low, X, out, n, m, k, X.stride(0), each, 1.0,
        K=padded(k), ROWS=step, WIDE=width, SPLIT=_exact(),
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return out.sum(0)


def quadratic_part(codes: Any, product: Any, linear: Any) -> Any:
    """Compute ``a P^T - 2 l a^T`` of every row (members, rows) in float64, for ``P = A G``."""
    product, linear = (laid_out_as(codes, table) for table in (product, linear))
    out = codes.new_empty(codes.shape[:2], dtype=torch.float64)
    _kernels().quadratic[over_rows(codes)](
        codes, product, linear, out, *codes.shape[1:], *codes.stride()[:2],
        K=padded(codes.shape[2]), ROWS=TILE, num_warps=4,
    )  # fmt: skip
    return out


def huber_parts(X: Any, before: Any, cache: Any, cutoff: Any) -> tuple[Any, Any]:
    """Compute ``w X`` and ``w Y`` (members, rows, features) for Huber's weights w at ``before``.

    Y (``cache``) is the current approximation, ``before`` an earlier one.
    """
    before, cache, table = before.contiguous(), cache.contiguous(), X.numel()
    weighted = cache.new_empty((2, *cache.shape))
    _kernels().huber_parts[(ceil_div(table, 1024), cache.shape[0])](
        X.contiguous(), before, cache, cutoff, weighted[0], weighted[1], table, BLOCK=1024
    )
    return weighted[0], weighted[1]


def huber_rows(X: Any, cache: Any, cutoff: Any, row_weight: Any) -> tuple[Any, ...]:
    """Compute ``Kernels.weighted_rows`` for Huber's weights at the approximation (``cache``)."""
    members, n, m = cache.shape
    cache = cache.contiguous()
    weighted = cache.new_empty((2, *cache.shape))
    sums = cache.new_empty((3, members, n), dtype=torch.float64)
    _kernels().huber_rows[(n, members)](
        X.contiguous(), cache, cutoff, row_weight, *weighted, *sums, n, m,
        BLOCK=min(1024, padded(m)), num_warps=4,
    )  # fmt: skip
    return (*weighted, *sums)


def sweep_coordinates(codes: Any, linear: Any, gram: Any, steps: Any, sweeps: int) -> Any:
    """Run coordinate sweeps on codes (members, rows, k); steps (members, k) are 1 / diagonal."""
    n, k = codes.shape[1:]
    linear = laid_out_as(codes, linear)
    if codes.dtype == torch.float32:
        out = empty_as(codes).copy_(codes)
        _kernels().sweep_by_blocks[over_rows(codes)](
            out, linear, with_zeros(gram, 1, 2), with_zeros(steps, 1), n, k, sweeps,
            *codes.stride()[:2], K=padded(k), ROWS=TILE, WIDTH=16, num_warps=4,
        )  # fmt: skip
        return out
    out = empty_as(codes)
    _kernels().sweep[over_rows(codes)](
        codes, linear, gram.contiguous(), steps.contiguous(), out,
        n, k, sweeps, *codes.stride()[:2], K=padded(k), ROWS=TILE, num_warps=4,
    )  # fmt: skip
    return out


def masked_solve(rest: Any, mask: Any, gram: Any, steps: int) -> Any:
    """Solve ``x gram = rest`` (rows, k) on a mask by ``steps`` steps of conjugate gradients."""
    n, k = rest.shape
    rest = rest.contiguous()
    out = empty_as(rest)
    _kernels().masked_solve[(ceil_div(n, TILE),)](
        rest, mask.contiguous(), with_zeros(gram, 0, 1), out, n, k, steps,
        K=padded(k), ROWS=TILE, num_warps=4,
    )  # fmt: skip
    return out


def energies(
    X: Any,
    unit: float,
    norms: Any,
    rest: Any,
    codes: Any,
    basis: Any,
    doubtful: float,
    least: float,
) -> Any:
    """Compute ``Kernels.add_sq_norms`` with the shares ``doubtful`` and ``least`` of the norms."""
    (n, m), (members, k) = X.shape, basis.shape[:2]
    rest = rest.contiguous()
    out, word = empty_as(rest), unit_of(m, X.stride(0))
    _kernels().energies[(ceil_div(n, 128), members)](
        X, norms.contiguous(), rest, codes, basis.contiguous(), out, n, m // word, k,
        X.stride(0) // word, *codes.stride()[:2], unit, doubtful, least,
        K=padded(k), ROWS=128, STEP=64, UNIT=word, num_warps=8,
    )  # fmt: skip
    return out


def over_rows(codes: Any) -> tuple[int, int]:
    """Return the launch grid (tiles of rows, members)."""
    return ceil_div(codes.shape[1], TILE), codes.shape[0]


def with_zeros(table: Any, *axes: int) -> Any:
    """Pad the axes of a table with zeros to the length that kernels need."""
    shape = [padded(size) if axis in axes else size for axis, size in enumerate(table.shape)]
    out = table.new_zeros(shape)
    out[tuple(slice(size) for size in table.shape)] = table
    return out


def empty_as(table: Any) -> Any:
    """Allocate a table with the shape and memory layout of another."""
    return table.new_empty_strided(table.shape, table.stride())


def laid_out_as(like: Any, table: Any) -> Any:
    """Return a table with the memory layout of another one of its shape; copied if needed."""
    return table if table.stride() == like.stride() else empty_as(like).copy_(table)


def _split(table: Any) -> tuple[Any, Any]:
    """Split a table into two tables of TF32 numbers whose sum equals it in float32 accuracy."""

    def rounded(x: Any) -> Any:
        return ((x.view(torch.int32) + 0x1000) & -8192).view(torch.float32)

    table = table.contiguous()
    high = rounded(table)
    return high, rounded(table - high)


@cache
def _multiprocessors(device: Any) -> int:
    if os.environ.get("TRITON_INTERPRET") == "1":
        return 1
    return int(torch.cuda.get_device_properties(device).multi_processor_count)
