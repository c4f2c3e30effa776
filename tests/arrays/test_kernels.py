"""Compiled loops give the same numbers as array calls."""

from __future__ import annotations

import itertools

import array_api_strict as strict
import numpy as np
import pytest

from robustnmf.arrays import kernels_for
from tests.problems import law_over

SHAPES = [(1, 1, 1), (2, 7, 3), (1, 64, 4), (3, 65, 10), (2, 131, 17), (1, 200, 40)]


def tables(shape, dtype, layout):
    """Two factors and a Gram matrix, with contiguous columns, rows or members."""
    rng = np.random.default_rng(0)
    members, _, k = shape
    order = {"rows": (0, 1, 2), "columns": (0, 2, 1), "members": (1, 0, 2)}[layout]
    back = np.argsort(order)

    def draw():
        drawn = rng.random(shape).astype(dtype) * (rng.random(shape) < 0.8)
        laid = np.ascontiguousarray(drawn.transpose(order)).transpose(back)
        return laid.astype(dtype, copy=False)

    basis = rng.random((members, k, 2 * k + 1)).astype(dtype)
    return draw(), draw(), basis @ basis.transpose(0, 2, 1)


def lie_alike(one, other):
    """Whether two arrays of the same shape have the same order in memory."""
    return [s for s, n in zip(one.strides, one.shape, strict=True) if n > 1] == [
        s for s, n in zip(other.strides, other.shape, strict=True) if n > 1
    ]


def compiled(operation, *arguments):
    """Result of the compiled loop of an operation for NumPy arrays."""
    return getattr(kernels_for(arguments[0]), operation)(*arguments)


def twin(operation, *arguments):
    """Result of array calls for the same numbers, in float64."""
    wide = [
        strict.asarray(np.ascontiguousarray(a), dtype=strict.float64)
        if isinstance(a, np.ndarray)
        else a
        for a in arguments
    ]
    return np.asarray(getattr(kernels_for(wide[0]), operation)(*wide))


@law_over(
    "shape, dtype, layout, fixed",
    itertools.product(SHAPES, ("float64", "float32"), ("rows", "columns", "members"), (0, 1)),
)
def test_loops_equal_array_calls(shape, dtype, layout, fixed):
    factor, other, gram = tables(shape, dtype, layout)
    absent = shape[2] // 2
    gram[0, absent, :] = gram[0, :, absent] = 0
    close = {"rtol": 2e-4, "atol": 2e-4} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-12}
    linear = other + factor @ gram
    moved = compiled("sweep_coordinates", factor, linear, gram, 3, fixed)
    assert moved.dtype == dtype
    assert lie_alike(moved, factor)
    expected = twin("sweep_coordinates", factor, linear, gram, 3, fixed)
    np.testing.assert_allclose(moved, expected, **close)
    np.testing.assert_array_equal(moved[:, :, :fixed], factor[:, :, :fixed])
    np.testing.assert_array_equal(moved[0, :, absent], factor[0, :, absent])
    assert compiled("quadratic_part", factor, linear, gram).dtype == np.float64


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_multiplication_keeps_dtype_and_sets_subnormal_numbers_to_zero(dtype):
    factor, other, _ = tables((3, 65, 10), dtype, "members")
    tiny = np.finfo(dtype).tiny
    factor[0, :3, 0] = [tiny, 1.0, 1.0]
    negative, positive = np.array([0.5, 1.0], dtype), np.array([1.0, 0.0], dtype)
    moved = compiled("multiplicative_step", factor, other, other + 1)
    assert moved.dtype == dtype
    assert lie_alike(moved, factor)
    expected = twin("multiplicative_step", factor, other, other + 1)
    np.testing.assert_allclose(moved, expected, rtol=1e-6, atol=tiny)
    assert compiled("multiplicative_step", factor[:1, :1, :1], negative[:1], positive[:1]) == 0
    assert np.isfinite(
        compiled("multiplicative_step", tiny * factor, negative[1:], positive[1:])
    ).all()


def test_nan_is_propagated_only_within_its_row():
    factor, other, gram = tables((1, 200, 5), np.float64, "rows")
    linear = other.copy()
    linear[0, 2, 1] = np.nan
    moved = compiled("sweep_coordinates", factor, linear, gram, 2)
    assert np.isnan(moved[0, 2]).any()
    assert np.isfinite(np.delete(moved[0], 2, axis=0)).all()
