"""The loops of a pass on a GPU of NVIDIA, as Triton kernels (which comes with PyTorch).

Array calls take every intermediate result through memory; a kernel takes each number there once.

The two products with X are bound by its bytes once they run on tensor cores. These multiply numbers
of TF32, so each factor is split into two of them, and three of the four products of the parts are
summed: the error is that of float32. Sums within tensor cores lose digits as well, so a few steps
at a time are added up outside. Where PyTorch is allowed TF32 (``allow_tf32``), one product of
rounded factors is enough.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from typing import Any

from array_api_compat import is_torch_array

WORTH_A_PRODUCT = 2**15
"""Rows from which products by these kernels are sooner than those of PyTorch."""

WIDEST = 128
"""Columns that the registers of a tile of rows have room for."""

TILE = 64
"""Rows of a tile, where rows are all there is to do."""


def has_kernels(table: Any) -> bool:
    """Whether a table is where the kernels are."""
    return is_torch_array(table) and table.is_cuda and _has_tensor_cores(table.device.index)


def has_loops(table: Any, columns: int) -> bool:
    """Whether loops over rows with so many columns have kernels here, in either precision."""
    return has_kernels(table) and columns <= WIDEST and table.stride(-1) == 1


def is_dense(*tables: Any) -> bool:
    """Whether tables of one shape and dtype fill their memory, in whatever order of axes."""
    first = tables[0]
    reach = sum((size - 1) * step for size, step in zip(first.shape, first.stride(), strict=True))
    alike = all(t.shape == first.shape and t.dtype == first.dtype for t in tables)
    return alike and reach + 1 == first.numel()


def has_products(table: Any, columns: int) -> bool:
    """Whether products of a tall table of float32 with so many columns have kernels here."""
    return (
        has_loops(table, columns)
        and str(table.dtype) == "torch.float32"
        and table.shape[-2] >= WORTH_A_PRODUCT
    )


@cache
def _has_tensor_cores(device: int) -> bool:
    import torch

    if find_spec("triton") is None:  # PyTorch without CUDA comes without
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)


def _exact() -> bool:
    """Whether products of float32 must be as good as that: unless PyTorch is told otherwise."""
    import torch

    return not torch.backends.cuda.matmul.allow_tf32


def _pieces(count: int, size: int) -> int:
    """Pieces of a size that cover so many."""
    return -(-count // size)


def _padded(columns: int) -> int:
    return max(16, 1 << (columns - 1).bit_length())


def _unit(*lengths: int) -> int:
    """Numbers that can be read at once, in tables with rows of these lengths."""
    return next(unit for unit in (16, 4, 2, 1) if all(length % unit == 0 for length in lengths))


def projected(X: Any, directions: Any) -> Any:
    """``X directions^T`` (rows, k) for directions (k, features)."""
    from robustnmf.arrays import gpu_kernels as kernels

    (n, m), k = X.shape, directions.shape[0]
    out = X.new_empty((n, k))
    unit, (high, low) = _unit(m, X.stride(0)), _split(directions)
    kernels.project[(_pieces(n, 128),)](
        X, high, low, out, n, m // unit, k, X.stride(0) // unit, 1.0,
        K=_padded(k), ROWS=128, STEP=32, UNIT=unit, SPLIT=_exact(), num_warps=8, num_stages=3,
    )  # fmt: skip
    return out


def projected_and_multiplied(X: Any, basis: Any, gram: Any, codes: Any, least: float) -> Any:
    """Codes (1, rows, k) after a multiplicative step, and ``a G a^T - 2 a.(x C^T)`` (1, rows)."""
    import torch

    from robustnmf.arrays import gpu_kernels as kernels

    (n, m), k = X.shape, basis.shape[0]
    codes = codes.contiguous()
    out = torch.empty_like(codes)
    rest = X.new_empty((1, n), dtype=torch.float64)
    width = _padded(k)
    filled = X.new_zeros((width, width))
    filled[:k, :k] = gram
    unit, k_unit, (high, low) = _unit(m, X.stride(0)), _unit(k), _split(basis)
    kernels.project_and_multiply[(_pieces(n, 64),)](
        X, high, low, codes, filled, out, rest, n, m // unit, k // k_unit, X.stride(0) // unit,
        least, 1.0, K=width, ROWS=64, STEP=32 if _exact() else 64, UNIT=unit, K_UNIT=k_unit,
        SPLIT=_exact(), num_warps=4, num_stages=4 if _exact() else 3,
    )  # fmt: skip
    return out, rest


def weighted_cross(codes: Any, weights: Any, *tables: Any) -> list[Any]:
    """``codes^T w X`` (members * k, features) for every X (rows, features).

    Partial sums are added in a fixed order.
    """
    from robustnmf.arrays import gpu_kernels as kernels

    members, n, k = codes.shape
    high, low = (codes.new_empty((members * k, n)) for _ in range(2))
    kernels.turn[(_pieces(n, TILE), members)](
        codes, weights.contiguous(), high, low, n, k, *codes.stride()[:2],
        K=_padded(k), ROWS=TILE, SPLIT=_exact(), num_warps=4,
    )  # fmt: skip
    return [_crossed(high, low, X) for X in tables]


def _crossed(high: Any, low: Any, X: Any) -> Any:
    """``(high + low) X``."""
    from robustnmf.arrays import gpu_kernels as kernels

    (k, n), m = high.shape, X.shape[1]
    # As was found on an H200; tables of codes have few features.
    if m <= 64:
        width, step, warps, stages = _padded(m), 32, 4, 3
    elif _exact():
        width, step, warps, stages = 128, 16, 4, 4
    else:
        width, step, warps, stages = 256, 16, 4, 3
    tiles = _pieces(m, width)
    parts = max(1, min(_pieces(n, 512), 2 * _multiprocessors(X.device) // tiles))
    each = _pieces(_pieces(n, parts), 64) * 64
    parts = _pieces(n, each)
    out = X.new_empty((parts, k, m))
    kernels.cross[(tiles, parts)](
        high, low, X, out, n, m, k, X.stride(0), each, 1.0,
        K=_padded(k), ROWS=step, WIDE=width, SPLIT=_exact(),
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return out.sum(0)


def multiplied(factor: Any, negative: Any, positive: Any, least: float) -> Any:
    """``factor negative / positive``, where all lie in memory as the first does."""
    from robustnmf.arrays import gpu_kernels as kernels

    negative, positive = (_laid_out_as(factor, table) for table in (negative, positive))
    out = _empty_as(factor)
    count = factor.numel()
    kernels.multiply[(_pieces(count, 1024),)](
        factor, negative, positive, out, count, LEAST=least, BLOCK=1024
    )
    return out


def left_over(codes: Any, product: Any, linear: Any) -> Any:
    """``a P^T - 2 l a^T`` of every row (members, rows), float64, for ``P = A G``."""
    import torch

    from robustnmf.arrays import gpu_kernels as kernels

    product, linear = (_laid_out_as(codes, table) for table in (product, linear))
    out = codes.new_empty(codes.shape[:2], dtype=torch.float64)
    kernels.leave[_over_rows(codes)](
        codes, product, linear, out, *codes.shape[1:], *codes.stride()[:2],
        K=_padded(codes.shape[2]), ROWS=TILE, num_warps=4,
    )  # fmt: skip
    return out


def swept(codes: Any, linear: Any, gram: Any, steps: Any, sweeps: int, fixed: int) -> Any:
    """Codes (members, rows, k) after some sweeps; steps (members, k): one over the diagonal."""
    from robustnmf.arrays import gpu_kernels as kernels

    out = _empty_as(codes)
    kernels.sweep[_over_rows(codes)](
        codes, _laid_out_as(codes, linear), gram.contiguous(), steps.contiguous(), out,
        *codes.shape[1:], fixed, sweeps, *codes.stride()[:2],
        K=_padded(codes.shape[2]), ROWS=TILE, num_warps=4,
    )  # fmt: skip
    return out


def huber_parts(X: Any, before: Any, seen: Any, cutoff: Any) -> tuple[Any, Any]:
    """``w X`` and ``w seen`` (members, rows, features) for Huber's weights w at ``before``."""
    from robustnmf.arrays import gpu_kernels as kernels

    before, seen, table = before.contiguous(), seen.contiguous(), X.numel()
    weighted = seen.new_empty((2, *seen.shape))
    kernels.huber_parts[(_pieces(table, 1024), seen.shape[0])](
        X.contiguous(), before, seen, cutoff, weighted[0], weighted[1], table, BLOCK=1024
    )
    return weighted[0], weighted[1]


def huber_rows(X: Any, seen: Any, cutoff: Any, row_weight: Any) -> tuple[Any, ...]:
    """``w X``, ``w seen``, and of every row rho, squared error and weights, as sums in float64."""
    import torch

    from robustnmf.arrays import gpu_kernels as kernels

    members, n, m = seen.shape
    seen = seen.contiguous()
    weighted = seen.new_empty((2, *seen.shape))
    sums = seen.new_empty((3, members, n), dtype=torch.float64)
    kernels.huber_rows[(n, members)](
        X.contiguous(), seen, cutoff, row_weight, *weighted, *sums, n, m,
        BLOCK=min(1024, _padded(m)), num_warps=4,
    )  # fmt: skip
    return (*weighted, *sums)


def _over_rows(codes: Any) -> tuple[int, int]:
    return _pieces(codes.shape[1], TILE), codes.shape[0]


def _empty_as(table: Any) -> Any:
    return table.new_empty_strided(table.shape, table.stride())


def _laid_out_as(like: Any, table: Any) -> Any:
    """A table of the shape of another as that lies in memory."""
    return table if table.stride() == like.stride() else _empty_as(like).copy_(table)


def _split(table: Any) -> tuple[Any, Any]:
    """Two tables of TF32 numbers of which this is the sum, to the digits of float32."""
    import torch

    def rounded(x: Any) -> Any:
        return ((x.view(torch.int32) + 0x1000) & -8192).view(torch.float32)

    table = table.contiguous()
    high = rounded(table)
    return high, rounded(table - high)


@cache
def _multiprocessors(device: Any) -> int:
    import torch

    if os.environ.get("TRITON_INTERPRET") == "1":
        return 1
    return int(torch.cuda.get_device_properties(device).multi_processor_count)
