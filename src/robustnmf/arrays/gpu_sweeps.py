"""Codes of rows on an NVIDIA GPU: coordinate sweeps, masked systems and energies."""

from __future__ import annotations

from typing import Any

from robustnmf.arrays.gpu import (
    TILE,
    ceil_div,
    empty_as,
    laid_out_as,
    over_rows,
    padded,
    unit_of,
    with_zeros,
)


def sweep_coordinates(codes: Any, linear: Any, gram: Any, steps: Any, sweeps: int) -> Any:
    """Run coordinate sweeps on codes (members, rows, k); steps (members, k) are 1 / diagonal."""
    import torch

    from robustnmf.arrays import gpu_sweep_kernels as kernels

    n, k = codes.shape[1:]
    linear = laid_out_as(codes, linear)
    if codes.dtype == torch.float32:
        out = empty_as(codes).copy_(codes)
        kernels.sweep_by_blocks[over_rows(codes)](
            out, linear, with_zeros(gram, 1, 2), with_zeros(steps, 1), n, k, sweeps,
            *codes.stride()[:2], K=padded(k), ROWS=TILE, WIDTH=16, num_warps=4,
        )  # fmt: skip
        return out
    out = empty_as(codes)
    kernels.sweep[over_rows(codes)](
        codes, linear, gram.contiguous(), steps.contiguous(), out,
        n, k, sweeps, *codes.stride()[:2], K=padded(k), ROWS=TILE, num_warps=4,
    )  # fmt: skip
    return out


def masked_solve(rest: Any, mask: Any, gram: Any, steps: int) -> Any:
    """Solve ``x gram = rest`` (rows, k) on a mask by so many steps of conjugate gradients."""
    from robustnmf.arrays import gpu_sweep_kernels as kernels

    n, k = rest.shape
    rest = rest.contiguous()
    out = empty_as(rest)
    kernels.masked_solve[(ceil_div(n, TILE),)](
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
    """Compute squared errors (members, rows) of ``unit X`` from norms (rows,) and the rest.

    Those below a share ``doubtful`` of the norm are sums over residuals instead; none is below a
    share ``least``.
    """
    from robustnmf.arrays import gpu_sweep_kernels as kernels

    (n, m), (members, k) = X.shape, basis.shape[:2]
    rest = rest.contiguous()
    out, word = empty_as(rest), unit_of(m, X.stride(0))
    kernels.energies[(ceil_div(n, 128), members)](
        X, norms.contiguous(), rest, codes, basis.contiguous(), out, n, m // word, k,
        X.stride(0) // word, *codes.stride()[:2], unit, doubtful, least,
        K=padded(k), ROWS=128, STEP=64, UNIT=word, num_warps=8,
    )  # fmt: skip
    return out
