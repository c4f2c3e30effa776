"""Sparse X: the numbers of dense X, and never a dense copy."""

import itertools
import tracemalloc
import warnings
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from robustnmf import (
    Beta,
    EucNMF,
    HuberRNMF,
    ItakuraSaito,
    KullbackLeibler,
    RobustNMF,
    select_rank,
)
from robustnmf.engine import stored
from tests.problems import law_over, noisy_low_rank, positive_start, with_zeros

X = with_zeros(noisy_low_rank(60, 20, 3), share=0.6)
FORMATS = ["csr_array", "csc_array", "coo_array", "csr_matrix", "csc_matrix", "lil_matrix"]
SPARSE_LOSSES = {
    "frobenius": "frobenius", "kullback-leibler": "kullback-leibler",
    "Beta(1)": Beta(1), "Beta(2)": Beta(2), "Beta(1.5)": Beta(1.5),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@cache
def dense_fit(loss, weighting, init):
    """A model that is fitted to X as a dense table, and its codes."""
    options = {"weighting": weighting, "init": init, "random_state": 0, "max_iter": 25}
    model = RobustNMF(3, loss=SPARSE_LOSSES[loss], **options)
    return model, model.fit_transform(X)


@law_over(
    "form, loss, how",
    itertools.product(
        FORMATS, SPARSE_LOSSES, (("trimmed", "random"), ("l21", "random"), ("l21", "nndsvda"))
    ),
    group=lambda form, loss, how: f"sparse {loss} {how}",
)
def test_every_format_gives_the_numbers_of_dense_data(form, loss, how):
    form = getattr(sp, form)
    dense, codes = dense_fit(loss, *how)
    sparse = clone(dense)
    # Factors that run on carry the rounding of one pass further into the next.
    close = {"rtol": 1e-7, "atol": 1e-8}
    np.testing.assert_allclose(sparse.fit_transform(form(X)), codes, **close)
    np.testing.assert_allclose(sparse.components_, dense.components_, **close)
    np.testing.assert_allclose(sparse.energies_, dense.energies_, **close)
    np.testing.assert_allclose(sparse.transform(form(X)), codes, **close)
    np.testing.assert_allclose(dense.transform(form(X)), codes, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(sparse.score_samples(form(X)), dense.score_samples(X), **close)
    assert sparse.objective(form(X)) == pytest.approx(dense.objective(X), rel=1e-10)


def test_plain_sparse_kl_is_scikit_learns():
    table = sp.csr_array(X[:-1])  # the last row is zero, and does not count with us
    W, H = positive_start(59, 20, 3)
    reference = NMF(3, solver="mu", beta_loss="kullback-leibler", init="custom", tol=0, max_iter=15)
    base = reference.fit_transform(table.T.tocsr(), W=H.T.copy(), H=W.T.copy())
    model = RobustNMF(
        3, loss="kullback-leibler", weighting="uniform", init="custom", solver="mu", tol=0,
        max_iter=15,
    )  # fmt: skip
    codes = model.fit_transform(table, W=W, H=H)
    np.testing.assert_allclose(model.components_, base.T, rtol=1e-8)
    np.testing.assert_allclose(codes, reference.components_.T, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(
    "loss", ["frobenius", pytest.param("kullback-leibler", marks=pytest.mark.extra)]
)
def test_memory_goes_with_the_stored_entries(loss):
    n, m, k = 20_000, 10_000, 5
    rng = np.random.default_rng(0)
    table = sp.random_array((n, m), density=1e-3, format="csr", rng=rng)
    model = RobustNMF(k, loss=loss, init="random", random_state=0, max_iter=2)
    model.fit(table[:100])  # kernels are compiled
    tracemalloc.start()
    model.fit(table)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * (12 * table.nnz + 12 * (n + m) * k) + 50e6
    assert peak < n * m * 8 / 10


def test_entries_stored_twice_are_summed_and_stored_zeros_are_zeros():
    table = sp.csr_array(X)
    coo = table.tocoo()
    rows, columns = np.tile(coo.row, 2), np.tile(coo.col, 2)
    halves = sp.coo_array((np.tile(coo.data / 2, 2), (rows, columns)), shape=X.shape)
    order = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(X)))])
    parts = (halves.data[order], columns[order], indptr)
    unmerged = sp.csr_array(parts, shape=X.shape)
    assert not unmerged.has_canonical_format
    with_explicit_zeros = sp.csr_array(np.where(X == 0, 7.0, X))
    with_explicit_zeros.data[with_explicit_zeros.data == 7.0] = 0.0
    reference = RobustNMF(3, loss="kullback-leibler", random_state=0, max_iter=20).fit(table)
    for same in (unmerged, with_explicit_zeros):
        stored = same.nnz
        model = RobustNMF(3, loss="kullback-leibler", random_state=0, max_iter=20).fit(same)
        np.testing.assert_allclose(model.components_, reference.components_, rtol=1e-9, atol=1e-12)
        assert same.nnz == stored, "what users hand in stays as it was"


def test_integers_and_float32():
    counts = np.floor(X).astype(np.int64)
    model = EucNMF(2, random_state=0).fit(sp.csr_array(counts))
    assert model.components_.dtype == np.float64
    model = EucNMF(2, random_state=0).fit(sp.csr_array(X.astype(np.float32)))
    assert model.components_.dtype == np.float32


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (HuberRNMF(2), "cannot read sparse X: Huber.* gives every entry its own weight"),
        (RobustNMF(2, loss=ItakuraSaito()), "needs X > 0, but .* sparse X"),
    ],
    ids=repr,
)
def test_unsupported_combinations_are_refused_with_the_reason(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(sp.csr_array(X))


def test_bad_entries_are_named():
    negative = sp.csr_array(X)
    negative.data[7] = -2.0
    row = int(np.searchsorted(negative.indptr, 7, side="right")) - 1
    where = rf"first at \[{row}, {negative.indices[7]}\] = -2"
    with pytest.raises(ValueError, match=where):
        EucNMF(2).fit(negative)
    missing = sp.csr_array(X)
    missing.data[7] = np.nan
    with pytest.raises(ValueError, match="missing values in dense X only"):
        RobustNMF(2, loss=KullbackLeibler()).fit(missing)


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_nothing_stored_is_a_table_of_zeros(loss):
    model = RobustNMF(2, loss=loss, random_state=0, max_iter=5)
    model.fit(sp.csr_array((10, 4)))
    assert not model.inverse_transform(model.transform(sp.csr_array((3, 4)))).any()


@pytest.mark.parametrize("structure", ["free", "convex", "orthogonal"])
@pytest.mark.parametrize("beta", [0.5, 2.5])
def test_losses_that_are_not_linear_at_zero_read_a_few_dense_rows(beta, structure, monkeypatch):
    monkeypatch.setattr(stored, "BLOCK_BYTES", 2**13)
    sizes = []
    to_dense = sp.csr_array.toarray

    def noted(self, *args, **options):
        sizes.append(self.shape[0])
        return to_dense(self, *args, **options)

    monkeypatch.setattr(sp.csr_array, "toarray", noted)
    options = {"loss": Beta(beta), "structure": structure, "init": "random", "weighting": "l21"}
    options |= {"random_state": 0, "max_iter": 15, "tol": 0}
    dense, sparse = RobustNMF(3, **options).fit(X), RobustNMF(3, **options).fit(sp.csr_array(X))
    np.testing.assert_allclose(sparse.components_, dense.components_, rtol=1e-6, atol=1e-9)
    assert 0 < max(sizes) < 60


@pytest.mark.parametrize(("beta", "weighting"), [(-1.2, "l21"), (0.0, "trimmed")])
def test_sparse_x_that_stores_no_zero_is_read_as_dense(beta, weighting):
    whole = X + 0.1
    options = {"loss": Beta(beta), "weighting": weighting, "max_iter": 15, "tol": 0}
    options |= {"random_state": 0}
    dense, sparse = (RobustNMF(3, **options).fit(table) for table in (whole, sp.csr_array(whole)))
    np.testing.assert_allclose(sparse.components_, dense.components_, rtol=1e-6, atol=1e-9)
    table = sp.csr_array(whole)
    table.data[5] = 0.0
    with pytest.raises(ValueError, match="needs X > 0"):
        RobustNMF(3, loss=Beta(beta)).fit(table)


def test_weights_of_entries_read_sparse_x_that_stores_no_zero_as_dense():
    model = HuberRNMF(3, random_state=0, max_iter=20)
    dense, sparse = (clone(model).fit(table) for table in (X + 0.1, sp.csc_array(X + 0.1)))
    np.testing.assert_allclose(sparse.components_, dense.components_, rtol=1e-6, atol=1e-9)


def test_ranks_of_sparse_x_are_compared_for_losses_that_are_not_linear_at_zero():
    options = {"loss": Beta(1.5), "random_state": 0, "max_iter": 20, "n_folds": 2}
    assert np.isfinite(select_rank(sp.csr_array(X), [1, 3], **options).errors).all()


@pytest.mark.parametrize("solver", ["mu", "hals"])
@pytest.mark.parametrize("table", [X, sp.csr_array(X)], ids=["dense", "sparse"])
def test_beta_two_is_half_the_squared_error(solver, table):
    options = {"weighting": "uniform", "solver": solver, "random_state": 0, "max_iter": 60}
    one = RobustNMF(3, loss="frobenius", **options).fit(table)
    half = RobustNMF(3, loss=Beta(2), **options).fit(table)
    np.testing.assert_allclose(half.components_, one.components_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(half.energies_, 0.5 * one.energies_, rtol=1e-9)
    assert half.reconstruction_err_ == pytest.approx(one.reconstruction_err_)
    np.testing.assert_allclose(half.explain(table), 0.5 * one.explain(table), atol=1e-9)


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_indices_outside_of_x_are_refused(loss):
    table = sp.random_array((60, 10), density=0.5, random_state=0, format="csr")
    model = RobustNMF(2, loss=loss, weighting="uniform", random_state=0).fit(table)
    table.indices[3] = 10**6
    for method in (model.fit, model.transform):
        with pytest.raises(ValueError, match=r"sparse X is damaged: .* Build it again"):
            method(table)
