"""Laws of the loop, over the product loss x weighting x structure x data x solver.

Members with all weightings that read X in the same way are fitted as one batch, which is one case
of a law; laws about the same fits share them. Another law is that a batch equals its single fits.
make test covers every pair of values of two axes, and make test-all the full product.
"""

from functools import cache
from typing import NamedTuple

import array_api_compat.numpy as xnp
import array_api_strict
import numpy as np
import pytest
import scipy.sparse

from robustnmf import combinations
from robustnmf.loop.compatibility import unsupported_solver_reason
from robustnmf.loop.state import Fitted
from robustnmf.losses import LOSSES
from robustnmf.solvers import SOLVERS
from robustnmf.structures import STRUCTURES
from robustnmf.weightings import WEIGHTINGS, Weighting
from tests import problems
from tests.problems import (
    assert_same_fit,
    law_over,
    loss_of,
    made_of_rounding,
    noisy_low_rank,
    numbers,
    pairs_of,
    pairwise,
    positive_start,
    run,
    variants,
)

N, M, K = 40, 12, 3
X = noisy_low_rank(N, M, K, outliers=4)
CODES, BASIS = positive_start(N, M, K)
TYPICAL = 5.0  # about the median energy of X after a fit
# Large enough that no sample is fitted exactly: the importances and the objective of FWRNMF would
# then be determined by rounding errors, and could not be compared.
SOFT = (10.0, 30.0)

TABLES = {data: make(X) for data, make in problems.KINDS.items()}
NAMESPACES = {"numpy": xnp, "strict": array_api_strict}
EVERY_ROW = tuple(range(N))
SHUFFLED = tuple(np.random.default_rng(5).permutation(N).tolist())


class Kind(NamedTuple):
    """Settings that the members of a batch share."""

    loss: str
    per_entry: bool
    structure: str
    data: str
    solver: str


class Member(NamedTuple):
    """A requested weighting, and its fit."""

    weighting: Weighting
    fitted: Fitted


def all_kinds() -> dict[Kind, list[str]]:
    """All kinds of batches, with the names of the weightings of their members."""
    kinds = {}
    for part in combinations():
        loss, structure = LOSSES[part.loss](), STRUCTURES[part.structure]()
        per_entry = WEIGHTINGS[part.weighting].per_entry
        for solver in SOLVERS:
            if part.supported and not unsupported_solver_reason(loss, structure, solver):
                kind = Kind(part.loss, per_entry, part.structure, part.data, solver)
                kinds.setdefault(kind, []).append(part.weighting)
    return kinds


KINDS = all_kinds()
MAY_ROUND = {
    kind
    for kind in KINDS
    if "fuzzy" in KINDS[kind]
    and (
        kind.data == "sparse"
        or (kind.solver == "hals" and kind.loss != "truncated")
        or (kind.loss, kind.structure, kind.data) == ("huber", "free", "missing")
        or kind[:1] + kind[2:] == ("truncated", "free", "missing", "mu")
    )
}
"""Kinds for which fits of fuzzy weights can depend on rounding; these are not compared."""


def each(names, cells, extra=lambda *cell: False):
    """Cases of a law; the first value of a cell is a kind of batch."""
    return law_over(names, cells, extra, group=lambda kind, *rest: str(kind))


every_kind = each("kind", [(kind,) for kind in KINDS])


def test_few_fits_are_not_compared():
    assert len(MAY_ROUND) <= 0.05 * sum(map(len, KINDS.values()))


def test_a_few_kinds_include_every_pair_of_settings():
    def pairs(kinds):
        return {pair for kind in kinds for name in KINDS[kind] for pair in pairs_of((kind, name))}

    few = pairwise(KINDS)
    assert len(few) < 0.3 * len(KINDS)
    assert pairs(few) == pairs(KINDS)


def given(data):
    """The table of this kind as users give it."""
    return scipy.sparse.csr_array(TABLES[data]) if data == "sparse" else TABLES[data]


@cache
def fits(
    kind, *, seed=1, factors=SOFT, rows=EVERY_ROW, unit=1.0, as_dense=False, namespace="numpy",
    **options,
) -> list[Member]:  # fmt: skip
    """Fit every weighting of this kind to some rows as one batch, scaled by a unit."""
    weightings = [
        weighting.rescaled(unit ** LOSSES[kind.loss]().degree)
        for name in KINDS[kind]
        for weighting in variants(name, TYPICAL, factors)
    ]
    codes, basis = (
        np.repeat(factor[None], len(weightings), axis=0) for factor in positive_start(N, M, K, seed)
    )
    table = unit * TABLES[kind.data][list(rows)]
    if kind.data == "sparse" and not as_dense:
        table = scipy.sparse.csr_array(table)
    fitted = run(
        table, weightings, codes[:, rows], unit * basis, xp=NAMESPACES[namespace],
        loss=loss_of(kind.loss, unit), structure=kind.structure, solver=kind.solver, **options,
    )  # fmt: skip
    return list(map(Member, weightings, fitted))


def pairs_beyond_rounding(kind, one, other):
    """Pairs of two lists of fits that do not depend on rounding."""
    pairs = []
    for left, right in zip(one, other, strict=True):
        if not made_of_rounding(left.fitted):
            pairs.append((left.fitted, right.fitted))
        else:
            assert kind in MAY_ROUND
            assert isinstance(left.weighting, WEIGHTINGS["fuzzy"])
    return pairs


def same(solver):
    """Tolerance for two orders of summation.

    Extrapolation amplifies the rounding errors of one pass in the next.
    """
    return 1e-7 if SOLVERS[solver].extrapolates else 1e-10


def rounding(weighting, energies, dtype, loss="frobenius", table=X):
    """Bound of the increase that rounding errors alone can cause.

    An energy is a difference of terms of the size of its row (|x_i|^2 in the Gram identity,
    sum x_ij^degree in a divergence), so its error is a few eps times that. The error of phi is
    multiplied by its slope: sum_i w_i eps size_i. A factor of eight covers the length of the sums.
    """
    degree = LOSSES[loss]().degree
    some = np.where(table > 0, table, 1.0)
    sizes = (np.where(table > 0, some**degree, 0.0)).sum(axis=1) + energies
    # Rows of zeros have no weight, though a divergence can leave 1e-20 of its floor as energy.
    counts = (energies > 0) & (table > 0).any(axis=1)
    sizes, energies = sizes[counts], energies[counts]
    weights = np.ones(len(sizes)) if weighting.per_entry else weighting.weights(energies)
    # Samples without weight are still terms of the sum.
    beyond = 0.0 if weighting.per_entry else abs(float(weighting.value(energies)))
    return 8 * float(np.finfo(dtype).eps) * (float(weights @ sizes) + beyond)


@each(
    "kind, dtype, seed",
    [(kind, dtype, seed) for kind in KINDS for dtype in ("float64", "float32") for seed in (1, 2)],
)
def test_the_objective_never_rises(kind, dtype, seed):
    found = fits(kind, seed=seed, factors=(0.5, 1.0, 3.0), dtype=dtype, max_iter=60)
    for weighting, fitted in found:
        values = numbers(fitted)
        assert len(values.history) == 61
        slack = rounding(weighting, values.energies, dtype, kind.loss, TABLES[kind.data])
        assert np.all(np.diff(values.history) <= slack), weighting
        assert values.history[-1] < values.history[0], weighting


@every_kind
def test_the_final_codes_do_not_raise_the_objective(kind):
    for weighting, fitted in fits(kind, factors=(1.0, 3.0), max_iter=40, tol=1e-4):
        values = numbers(fitted)
        slack = rounding(weighting, values.energies, "float64", kind.loss, TABLES[kind.data])
        assert values.history[-1] <= values.history[-2] + slack, weighting


# 40 rows, so that the last of four blocks has one row.
@each("kind, block_rows", [(kind, rows) for kind in KINDS for rows in (13, 1)])
def test_block_size_never_changes_the_result(kind, block_rows):
    whole = fits(kind, max_iter=15)
    blocks = fits(kind, block_rows=block_rows, max_iter=15)
    for one, other in pairs_beyond_rounding(kind, whole, blocks):
        assert_same_fit(one, other, same(kind.solver))


@each("kind", [(kind,) for kind in KINDS if kind.data == "sparse"])
def test_sparse_data_give_the_same_numbers_as_dense_data(kind):
    dense = fits(kind, as_dense=True, max_iter=15)
    sparse = fits(kind, max_iter=15)
    for one, other in pairs_beyond_rounding(kind, dense, sparse):
        assert_same_fit(one, other, same(kind.solver))


@every_kind
def test_a_batch_of_members_equals_its_single_fits(kind):
    factors = (3.0, 10.0, 30.0, 90.0) if kind.per_entry else SOFT
    weightings = [one for name in KINDS[kind] for one in variants(name, TYPICAL, factors)]
    starts = [positive_start(N, M, K, seed) for seed, _ in enumerate(weightings)]
    codes, basis = (np.stack(factor) for factor in zip(*starts, strict=True))
    options = {"loss": kind.loss, "structure": kind.structure, "solver": kind.solver}
    options |= {"max_iter": 60, "tol": 5e-3}
    together = run(given(kind.data), weightings, codes, basis, **options)
    if kind.data == "dense" and kind.structure == "free":
        assert len({one.n_iter for one in together}) > 1, "they should converge at different times"
    left_out, compared = 0, list(enumerate(together))[::2]
    for i, member in compared:
        pick = slice(i, i + 1)
        (single,) = run(given(kind.data), weightings[pick], codes[pick], basis[pick], **options)
        if made_of_rounding(single):
            assert isinstance(single.weighting, WEIGHTINGS["fuzzy"])
            left_out += 1
            continue
        slack = 10 if LOSSES[kind.loss].weighs_entries else 1  # flat if entries lose weight
        assert_same_fit(single, member, slack * same(kind.solver))
        assert single.n_iter == member.n_iter
    assert left_out <= 0.2 * len(compared)


@every_kind
def test_permuting_samples_permutes_the_result(kind):
    plain = fits(kind, max_iter=15)
    shuffled = fits(kind, rows=SHUFFLED, max_iter=15)
    order = list(SHUFFLED)
    for one, other in pairs_beyond_rounding(kind, plain, shuffled):
        expected, found = numbers(one), numbers(other)
        # An entry that is a small difference of large numbers has their rounding error.
        for field, values in expected._asdict().items():
            wanted = values if field in ("basis", "history") else values[order]
            slack = 0.0 if field == "importances" else 1e-12 * np.abs(values).max()
            rtol = 1e-8 if SOLVERS[kind.solver].extrapolates else 1e-9
            np.testing.assert_allclose(getattr(found, field), wanted, rtol=rtol, atol=slack)


@each("kind, factor", [(kind, factor) for kind in KINDS for factor in (1e-3, 1e4)])
def test_scaled_data_with_scaled_parameters_give_the_same_product(kind, factor):
    plain = fits(kind, max_iter=15)
    scaled = fits(kind, unit=factor, max_iter=15)
    for one, other in pairs_beyond_rounding(kind, plain, scaled):
        expected, found = numbers(one), numbers(other)
        degree = LOSSES[kind.loss]().degree * one.weighting.degree
        product = factor * (expected.codes @ expected.basis)
        # An entry close to its cutoff amplifies rounding errors.
        rtol = 1e-8 if kind.loss == "truncated" else 1e-9
        np.testing.assert_allclose(found.codes @ found.basis, product, rtol=rtol)
        np.testing.assert_allclose(found.importances, expected.importances, rtol=1e-8)
        np.testing.assert_allclose(found.history, factor**degree * expected.history, rtol=1e-8)


OF_ONE_SOLVER = [(kind,) for kind in KINDS if kind.data != "sparse" and kind.solver == "mu"]


@each("kind", OF_ONE_SOLVER)
def test_every_namespace_gives_the_same_numbers(kind):
    options = {"factors": (1.0, 3.0), "block_rows": 16, "max_iter": 6, "tol": 0.0}
    plain, strict = fits(kind, **options), fits(kind, namespace="strict", **options)
    for one, other in pairs_beyond_rounding(kind, plain, strict):
        assert_same_fit(one, other, rtol=1e-11)


@each(
    "kind",
    [(kind,) for (kind,) in OF_ONE_SOLVER if kind.data == "dense" and kind.structure == "free"],
    # With array calls, encoding with weights of entries takes up to a minute.
    extra=lambda kind: LOSSES[kind.loss].weighs_entries,
)
def test_final_codes_are_the_same_in_every_namespace(kind):
    options = {"factors": (3.0,), "max_iter": 10, "tol": 1e-6}
    plain, strict = fits(kind, **options), fits(kind, namespace="strict", **options)
    for one, other in pairs_beyond_rounding(kind, plain, strict):
        assert_same_fit(one, other, rtol=1e-11)


def test_an_automatic_parameter_is_estimated_and_then_frozen(xp):
    weighting = WEIGHTINGS["entropy"]()
    assert weighting.has_auto
    (fitted,) = run(X, [weighting], CODES[None], BASIS[None], xp=xp, max_iter=400, tol=1e-5)
    _, _, energies, importances, history = numbers(fitted)
    assert not fitted.weighting.has_auto
    floor = 0.01 * np.median((X**2).sum(axis=1))
    assert fitted.weighting.gamma == pytest.approx(2 * max(floor, np.median(energies)), rel=0.3)
    assert np.all(np.diff(history) <= rounding(fitted.weighting, energies, "float64"))
    assert len(history) < fitted.n_iter + 2
    # Half of the samples have a weight within a factor e of the largest (here with some slack).
    assert np.mean(importances > importances.max() / np.e**1.3) >= 0.5


def test_automatic_parameters_of_members_are_independent(xp):
    weighting = WEIGHTINGS["entropy"]()
    starts = [positive_start(N, M, K, seed) for seed in (1, 2, 3)]
    codes, basis = (np.stack(factors) for factors in zip(*starts, strict=True))
    batch = run(X, [weighting] * 3, codes, basis, xp=xp, max_iter=200, tol=1e-4)
    for i, member in enumerate(batch):
        (single,) = run(X, [weighting], codes[[i]], basis[[i]], xp=xp, max_iter=200, tol=1e-4)
        assert member.weighting.gamma == pytest.approx(single.weighting.gamma, rel=1e-9)
        np.testing.assert_allclose(member.history[-1], single.history[-1], rtol=1e-9)


def test_without_iterations_the_start_is_evaluated(xp):
    (fitted,) = run(X, [WEIGHTINGS["uniform"]()], CODES[None], BASIS[None], xp=xp, max_iter=0)
    np.testing.assert_array_equal(numbers(fitted).codes, CODES)
    assert fitted.history == pytest.approx([((X - CODES @ BASIS) ** 2).sum()])
