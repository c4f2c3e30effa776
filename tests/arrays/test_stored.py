"""Products with stored entries of sparse rows equal those of dense rows."""

import numpy as np
import pytest
import scipy.sparse

from robustnmf.arrays.kernels import stored

STORED = [0, 1, 3, 4, 5, 11, 20, 0]
"""Stored entries of each row: none, fewer than a vector, some left over, all."""

FEATURES = 20


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request):
    return np.dtype(request.param)


@pytest.fixture(params=[np.int32, np.int64], ids=["int32", "int64"])
def rows(request, dtype):
    rng = np.random.default_rng(0)
    dense = np.zeros((len(STORED), FEATURES), dtype)
    for row, count in zip(dense, STORED, strict=True):
        row[rng.permutation(FEATURES)[:count]] = 1 + rng.random(count)
    sparse = scipy.sparse.csr_array(dense)
    sparse.indices, sparse.indptr = (
        a.astype(request.param) for a in (sparse.indices, sparse.indptr)
    )
    return sparse


@pytest.fixture(params=[1, 4, 17], ids="k={}".format)
def factors(request, dtype):
    """Codes (members, rows, k) and basis (members, k, features) of two members."""
    rng = np.random.default_rng(1)
    shapes = (2, len(STORED), request.param), (2, request.param, FEATURES)
    return [rng.random(shape).astype(dtype) for shape in shapes]


def entries_of(rows, dtype):
    """Other entries (2, stored), and the dense tables (2, rows, features) that they make."""
    entries = np.random.default_rng(2).random((2, rows.nnz)).astype(dtype)
    dense = [scipy.sparse.csr_array((e, rows.indices, rows.indptr), rows.shape) for e in entries]
    return entries, np.stack([table.toarray() for table in dense])


def close(actual, desired, dtype):
    assert actual.dtype == dtype
    np.testing.assert_allclose(actual, desired, rtol=100 * np.finfo(dtype).eps)


def test_approximation(rows, factors, dtype):
    codes, basis = factors
    at = np.nonzero(rows.toarray())
    close(stored.approximate(rows, codes, basis), (codes @ basis)[:, *at], dtype)


def test_projection(rows, factors, dtype):
    entries, dense = entries_of(rows, dtype)
    basis = factors[1]
    close(stored.project(rows, entries, basis), dense @ basis.transpose(0, 2, 1), dtype)


def test_cross(rows, factors, dtype):
    entries, dense = entries_of(rows, dtype)
    codes = factors[0]
    close(stored.cross(rows, entries, codes), codes.transpose(0, 2, 1) @ dense, dtype)


def test_two_precisions_give_the_higher(rows, factors):
    basis = factors[1][:1].astype(np.float64)
    entries = rows.data[None].astype(np.float32)
    expected = rows.astype(np.float32).toarray() @ basis.transpose(0, 2, 1)
    close(stored.project(rows, entries, basis), expected, np.float64)


def test_gram_matrices(rows, factors, dtype):
    entries, dense = entries_of(rows, dtype)
    basis = factors[1][0].astype(np.float64)
    expected = np.einsum("km,bm,lm->bkl", basis, dense[0], basis)
    close(stored.grams(rows, entries[0], basis), expected, np.float64)
