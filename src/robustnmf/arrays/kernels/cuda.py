"""Operations of a pass on an NVIDIA GPU, and the conditions for the use of Triton kernels."""

from __future__ import annotations

from robustnmf.arrays.kernels import gpu
from robustnmf.arrays.kernels._base import EntryLoop, Kernels, coordinate_steps
from robustnmf.arrays.namespace import Array, energy_rounding, eps, namespace, smallest

WORTH_A_PRODUCT = 2**15
"""Least number of rows for which these kernels are faster than the products of PyTorch."""

WIDEST = 128
"""Maximum number of columns that fit into the registers of a tile of rows."""


class CudaKernels(Kernels):
    """Kernels for PyTorch tensors on a supported device."""

    is_accelerated = True

    def _product(self, rows: Array, directions: Array) -> Array:
        if not _has_products(rows, directions.shape[0]):
            return super()._product(rows, directions)
        return gpu.project(rows, directions)

    def weighted_sums(self, rows: Array, codes: Array, weights: Array) -> tuple[Array, Array]:
        members, _, k = codes.shape
        if not _has_products(rows, members * k):
            return super().weighted_sums(rows, codes, weights)
        xp = namespace(codes)
        tables = [rows, codes[0, ...]] if members == 1 else [rows]
        products = gpu.weighted_cross(codes, weights[:, :, 0], *tables)
        cross = xp.reshape(products[0], (members, k, rows.shape[1]))
        if members == 1:
            return cross, products[1][None, ...]
        return cross, xp.matrix_transpose(codes * weights) @ codes

    def project_and_update(
        self, rows: Array, basis: Array, gram: Array, codes: Array
    ) -> tuple[Array, Array]:
        members, _, k = codes.shape
        if members > 1 or not _has_products(rows, k):
            return super().project_and_update(rows, basis, gram, codes)
        return gpu.project_and_update(rows, basis[0, ...], gram[0, ...], codes, smallest(codes))

    def sweep_coordinates(
        self,
        factor: Array,
        linear: Array,
        gram: Array,
        sweeps: int,
        fixed: int = 0,
        present: Array | None = None,
    ) -> Array:
        if factor.shape[-1] > WIDEST:
            return super().sweep_coordinates(factor, linear, gram, sweeps, fixed, present)
        if factor.stride(-1) != 1:  # a transposed view, such as a basis, which is small
            swept = self.sweep_coordinates(
                factor.contiguous(), linear, gram, sweeps, fixed, present
            )
            return gpu.laid_out_as(factor, swept)
        steps = coordinate_steps(gram, present)
        steps[:, :fixed] = 0.0
        return gpu.sweep_coordinates(factor, linear, gram, steps, sweeps)

    def masked_solve(self, rest: Array, mask: Array, gram: Array, steps: int) -> Array:
        if str(rest.dtype) != "torch.float32" or rest.shape[1] > WIDEST:
            return super().masked_solve(rest, mask, gram, steps)
        return gpu.masked_solve(rest, mask, gram, steps)

    def add_sq_norms(
        self, rows: Array, unit: float, sq_norms: Array, rest: Array, codes: Array, basis: Array
    ) -> Array | None:
        is_float = str(rows.dtype) == str(codes.dtype) == "torch.float32"
        has_loops = _has_loops(codes, codes.shape[-1]) and rows.stride(-1) == 1
        if not is_float or not has_loops:
            return None
        doubtful, least = eps(codes) ** 0.5, energy_rounding(codes)
        return gpu.energies(rows, unit, sq_norms, rest, codes, basis, doubtful, least)

    def quadratic_part(self, codes: Array, linear: Array, gram: Array) -> Array:
        if not _has_loops(codes, codes.shape[-1]):
            return super().quadratic_part(codes, linear, gram)
        return gpu.quadratic_part(codes, codes @ gram, linear)

    def weighted_parts(
        self, loop: EntryLoop | None, data: Array, before: Array, cache: Array
    ) -> tuple | None:
        if loop is None or loop.name != "huber":
            return None
        return gpu.huber_parts(data, before, cache, _of_members(loop.parameters["cutoff"], cache))

    def weighted_rows(
        self, loop: EntryLoop | None, data: Array, cache: Array, row_weight: Array
    ) -> tuple | None:
        if loop is None or loop.name != "huber":
            return None
        row_weight = namespace(cache).astype(row_weight, cache.dtype)
        cutoffs = _of_members(loop.parameters["cutoff"], cache)
        return gpu.huber_rows(data, cache, cutoffs, row_weight)


CUDA_KERNELS = CudaKernels()


def _has_loops(table: Array, columns: int) -> bool:
    """Return whether there are kernels for loops over rows with this number of columns."""
    return columns <= WIDEST and table.stride(-1) == 1


def _has_products(table: Array, columns: int) -> bool:
    """Return whether there are kernels for products of a tall float32 table with columns."""
    return (
        _has_loops(table, columns)
        and str(table.dtype) == "torch.float32"
        and table.shape[-2] >= WORTH_A_PRODUCT
    )


def _of_members(parameter: Array | float, cache: Array) -> Array:
    """Return a parameter of every member (members, 1, 1) of tables (members, rows, features)."""
    return parameter + namespace(cache).zeros_like(cache[:, 0, 0])[:, None, None]
