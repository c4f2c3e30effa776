"""Laws of the loop, over the product weighting x structure x solver x dtype x namespace.

A cell is one such combination, and every law has one case for it. Members of all weightings that
read X alike are fitted as one batch, and laws that look at the same fits share them; that a batch
is its single fits is a law itself.
"""

import itertools
from functools import cache
from typing import NamedTuple

import array_api_compat.numpy as xnp
import array_api_strict
import numpy as np
import pytest
import scipy.sparse

from robustnmf import combinations
from robustnmf.compatibility import unsupported_solver_reason
from robustnmf.losses import LOSSES
from robustnmf.solvers import SOLVERS
from robustnmf.state import Fitted
from robustnmf.structures import STRUCTURES
from robustnmf.weightings import WEIGHTINGS, Weighting
from tests.problems import (
    KINDS,
    assert_same_fit,
    loss_of,
    made_of_rounding,
    noisy_low_rank,
    numbers,
    positive_start,
    run,
    variants,
)

N, M, K = 40, 12, 3
X = noisy_low_rank(N, M, K, outliers=4)
CODES, BASIS = positive_start(N, M, K)
TYPICAL = 5.0  # about the median energy of X once fitted
# Soft enough that no sample is fitted to the last digit: the importances and the objective of
# FWRNMF would then be made of rounding, and nothing could be compared.
SOFT = (10.0, 30.0)

TABLES = {kind: make(X) for kind, make in KINDS.items()}
NAMESPACES = {"numpy": xnp, "strict": array_api_strict}
EVERY_ROW = tuple(range(N))
SHUFFLED = tuple(np.random.default_rng(5).permutation(N).tolist())


class Kind(NamedTuple):
    """What the members of a batch have in common."""

    loss: str
    per_entry: bool
    structure: str
    data: str
    solver: str


class Cell(NamedTuple):
    """One combination of parts and data."""

    loss: str
    weighting: str
    structure: str
    data: str
    solver: str

    @property
    def kind(self) -> Kind:
        return Kind(
            self.loss, WEIGHTINGS[self.weighting].per_entry, self.structure, self.data, self.solver
        )


class Member(NamedTuple):
    """A weighting that was asked for, and its fit."""

    weighting: Weighting
    fitted: Fitted


CELLS = [
    Cell(part.loss, part.weighting, part.structure, part.data, solver)
    for part in combinations()
    if part.supported
    for solver in SOLVERS
    if unsupported_solver_reason(LOSSES[part.loss](), STRUCTURES[part.structure](), solver) is None
]
MAY_ROUND = {
    cell
    for cell in CELLS
    if cell.weighting == "fuzzy"
    and (
        cell.data == "sparse"
        or cell.solver == "hals"
        or (cell.loss, cell.structure, cell.data) == ("huber", "free", "missing")
    )
}
"""Where fits may be made of rounding after all, and laws on their numbers are skipped."""


def is_variant(cell):
    """Return whether the parts of a cell, each for itself, are in other cells of make test too."""
    plain = cell.data == "dense" and not LOSSES[cell.loss].weighs_entries
    return cell.structure != "free" and not plain


def each(cells, extra=lambda cell: False):
    """One case for every cell, those of a batch in one process, some in make test-all only."""

    def case(cell):
        marks = [pytest.mark.xdist_group(str(cell.kind))]
        marks += [pytest.mark.extra] if is_variant(cell) or extra(cell) else []
        return pytest.param(cell, id="-".join(cell), marks=marks)

    return pytest.mark.parametrize("cell", [case(cell) for cell in cells])


every_cell = each(CELLS)
every_structure = pytest.mark.parametrize("structure", STRUCTURES)
every_loss = pytest.mark.parametrize("loss", LOSSES)


def members(names, seeds, factors):
    """Every variant of these weightings from every seed, as one batch."""
    weightings, codes, basis = [], [], []
    for name, seed in itertools.product(names, seeds):
        for weighting in variants(name, TYPICAL, factors):
            start = positive_start(N, M, K, seed)
            weightings.append(weighting)
            codes.append(start[0])
            basis.append(start[1])
    return weightings, np.stack(codes), np.stack(basis)


def given(data):
    """The table of this kind as users give it."""
    return scipy.sparse.csr_array(TABLES[data]) if data == "sparse" else TABLES[data]


@cache
def batch(
    kind, seeds, factors, *, rows=EVERY_ROW, unit=1.0, as_dense=False, namespace="numpy", **options
) -> list[Member]:
    """Fits of every weighting of this kind to some rows, with X and all that scales in a unit."""
    names = [cell.weighting for cell in CELLS if cell.kind == kind]
    weightings, codes, basis = members(names, seeds, factors)
    table = unit * TABLES[kind.data][list(rows)]
    if kind.data == "sparse" and not as_dense:
        table = scipy.sparse.csr_array(table)
    weightings = [w.rescaled(unit ** LOSSES[kind.loss]().degree) for w in weightings]
    fitted = run(
        table, weightings, codes[:, rows], unit * basis, xp=NAMESPACES[namespace],
        loss=loss_of(kind.loss, unit), structure=kind.structure, solver=kind.solver, **options,
    )  # fmt: skip
    return list(map(Member, weightings, fitted))


def fits(cell, seeds=(1,), factors=SOFT, **options) -> list[Member]:
    """The members of this cell, out of the batch in which they are fitted."""
    together = batch(cell.kind, seeds, factors, **options)
    found = [one for one in together if type(one.weighting) is WEIGHTINGS[cell.weighting]]
    assert found
    return found


def test_few_laws_may_be_skipped():
    assert len(MAY_ROUND) <= 0.05 * len(CELLS)


def pairs_beyond_rounding(cell, one, other):
    """Pairs of two lists of fits that are not made of rounding; skips a law that has none left."""
    pairs = [
        (left.fitted, right.fitted)
        for left, right in zip(one, other, strict=True)
        if not made_of_rounding(left.fitted)
    ]
    assert len(pairs) == len(one) or cell in MAY_ROUND
    if not pairs:
        pytest.skip("a sample is fitted to the last digit, and weighed by it")
    return pairs


def same(solver):
    """How closely two orders of summation must agree.

    Factors that run on carry the rounding of one pass further into the next.
    """
    return 1e-7 if SOLVERS[solver].extrapolates else 1e-10


def rounding(weighting, energies, dtype, degree=2.0, table=X):
    """How much of a rise rounding alone explains.

    An energy is a difference of terms of the size of its row (|x_i|^2 in the Gram identity,
    sum x_ij^degree in a divergence), so a few eps of that is left in it, and phi carries it
    on with its slope: sum_i w_i eps size_i. Eight covers the length of the sums.
    """
    some = np.where(table > 0, table, 1.0)
    sizes = (np.where(table > 0, some**degree, 0.0)).sum(axis=1) + energies
    # Rows of zeros do not count, though a divergence may leave 1e-20 of its floor in their energy.
    counts = (energies > 0) & (table > 0).any(axis=1)
    sizes, energies = sizes[counts], energies[counts]
    weights = np.ones(len(sizes)) if weighting.per_entry else weighting.weights(energies)
    # Samples without weight still are terms of the sum.
    beyond = 0.0 if weighting.per_entry else abs(float(weighting.value(energies)))
    return 8 * float(np.finfo(dtype).eps) * (float(weights @ sizes) + beyond)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.extra)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@every_cell
def test_the_objective_never_rises(cell, dtype, seed):
    found = fits(cell, seeds=(seed,), factors=(0.5, 1.0, 3.0), dtype=dtype, max_iter=60)
    for weighting, fitted in found:
        values = numbers(fitted)
        assert len(values.history) == 61
        degree = LOSSES[cell.loss]().degree
        slack = rounding(weighting, values.energies, dtype, degree, TABLES[cell.data])
        assert np.all(np.diff(values.history) <= slack)
        assert values.history[-1] < values.history[0]


@every_cell
def test_the_final_codes_do_not_raise_the_objective(cell):
    for weighting, fitted in fits(cell, factors=(1.0, 3.0), max_iter=40, tol=1e-4):
        values = numbers(fitted)
        degree = LOSSES[cell.loss]().degree
        slack = rounding(weighting, values.energies, "float64", degree, TABLES[cell.data])
        assert values.history[-1] <= values.history[-2] + slack


@pytest.mark.parametrize(
    "block_rows",
    [13, pytest.param(1, marks=pytest.mark.extra)],  # of 40 rows: the last block has one
)
@every_cell
def test_block_size_never_changes_the_result(cell, block_rows):
    whole = fits(cell, max_iter=15)
    blocks = fits(cell, block_rows=block_rows, max_iter=15)
    for one, other in pairs_beyond_rounding(cell, whole, blocks):
        assert_same_fit(one, other, same(cell.solver))


@each([cell for cell in CELLS if cell.data == "sparse"])
def test_sparse_data_give_the_numbers_of_dense_data(cell):
    dense = fits(cell, as_dense=True, max_iter=40, tol=1e-3)
    sparse = fits(cell, block_rows=16, max_iter=40, tol=1e-3)
    for one, other in pairs_beyond_rounding(cell, dense, sparse):
        assert_same_fit(one, other, same(cell.solver))


def batches():
    """Every kind of batch that there is; solvers other than the plain one in make test-all only."""
    return [
        pytest.param(
            kind,
            id="-".join(map(str, kind)),
            marks=[pytest.mark.extra] * (kind.solver != "mu" or is_variant(kind)),
        )
        for kind in dict.fromkeys(cell.kind for cell in CELLS)
    ]


@pytest.mark.parametrize("kind", batches())
def test_a_batch_of_members_is_its_single_fits(kind):
    names = [cell.weighting for cell in CELLS if cell.kind == kind]
    factors = (3.0, 10.0, 30.0, 90.0) if kind.per_entry else SOFT
    weightings = [one for name in names for one in variants(name, TYPICAL, factors)]
    starts = [positive_start(N, M, K, seed) for seed, _ in enumerate(weightings)]
    codes, basis = (np.stack(factor) for factor in zip(*starts, strict=True))
    options = {"loss": kind.loss, "structure": kind.structure, "solver": kind.solver}
    options |= {"max_iter": 60, "tol": 5e-3}
    together = run(given(kind.data), weightings, codes, basis, **options)
    if kind.data == "dense" and kind.structure == "free":
        assert len({one.n_iter for one in together}) > 1, "they should leave at different times"
    left_out = 0
    for i, member in enumerate(together):
        pick = slice(i, i + 1)
        (single,) = run(given(kind.data), weightings[pick], codes[pick], basis[pick], **options)
        if made_of_rounding(single):
            assert isinstance(single.weighting, WEIGHTINGS["fuzzy"])
            left_out += 1
            continue
        slack = 10 if LOSSES[kind.loss].weighs_entries else 1  # flat where entries lose weight
        assert_same_fit(single, member, slack * same(kind.solver))
        assert single.n_iter == member.n_iter
    assert left_out <= 0.2 * len(together)


@every_cell
def test_permuting_samples_permutes_the_result(cell):
    plain = fits(cell, max_iter=15)
    shuffled = fits(cell, rows=SHUFFLED, max_iter=15)
    order = list(SHUFFLED)
    for one, other in pairs_beyond_rounding(cell, plain, shuffled):
        expected, found = numbers(one), numbers(other)
        # An entry that is the small difference of large ones has their rounding.
        for field, values in expected._asdict().items():
            wanted = values if field in ("basis", "history") else values[order]
            slack = 0.0 if field == "importances" else 1e-12 * np.abs(values).max()
            rtol = 1e-8 if SOLVERS[cell.solver].extrapolates else 1e-9
            np.testing.assert_allclose(getattr(found, field), wanted, rtol=rtol, atol=slack)


@pytest.mark.parametrize("factor", [1e-3, 1e4])
@every_cell
def test_scaled_data_with_scaled_parameters_give_the_same_product(cell, factor):
    plain = fits(cell, max_iter=15)
    scaled = fits(cell, unit=factor, max_iter=15)
    for one, other in pairs_beyond_rounding(cell, plain, scaled):
        expected, found = numbers(one), numbers(other)
        degree = LOSSES[cell.loss]().degree * one.weighting.degree
        product = factor * (expected.codes @ expected.basis)
        np.testing.assert_allclose(found.codes @ found.basis, product, rtol=1e-9)
        np.testing.assert_allclose(found.importances, expected.importances, rtol=1e-8)
        np.testing.assert_allclose(found.history, factor**degree * expected.history, rtol=1e-8)


OF_ONE_SOLVER = [cell for cell in CELLS if cell.data != "sparse" and cell.solver == "mu"]


@each(OF_ONE_SOLVER, extra=lambda cell: cell.data == "missing" and cell.structure != "free")
def test_every_namespace_gives_the_same_numbers(cell):
    options = {"factors": (1.0, 3.0), "block_rows": 16, "max_iter": 10, "tol": 0.0}
    plain, strict = fits(cell, **options), fits(cell, namespace="strict", **options)
    for one, other in pairs_beyond_rounding(cell, plain, strict):
        assert_same_fit(one, other, rtol=1e-11)


@each(
    [cell for cell in OF_ONE_SOLVER if cell.data == "dense" and cell.structure == "free"],
    # Newton's method by single array calls takes up to a minute for other losses.
    extra=lambda cell: cell.loss not in ("frobenius", "kullback-leibler"),
)
def test_final_codes_are_the_same_in_every_namespace(cell):
    options = {"factors": (3.0,), "max_iter": 10, "tol": 1e-6}
    plain, strict = fits(cell, **options), fits(cell, namespace="strict", **options)
    for one, other in pairs_beyond_rounding(cell, plain, strict):
        assert_same_fit(one, other, rtol=1e-11)


def test_an_automatic_parameter_settles_and_then_stays(xp):
    weighting = WEIGHTINGS["entropy"]()
    assert weighting.has_auto
    (fitted,) = run(X, [weighting], CODES[None], BASIS[None], xp=xp, max_iter=400, tol=1e-5)
    _, _, energies, importances, history = numbers(fitted)
    assert not fitted.weighting.has_auto
    floor = 0.01 * np.median((X**2).sum(axis=1))
    assert fitted.weighting.gamma == pytest.approx(2 * max(floor, np.median(energies)), rel=0.3)
    assert np.all(np.diff(history) <= rounding(fitted.weighting, energies, "float64"))
    assert len(history) < fitted.n_iter + 2
    # Half of the samples keep a weight within a factor e of the best (here with slack).
    assert np.mean(importances > importances.max() / np.e**1.3) >= 0.5


def test_automatic_members_settle_by_themselves(xp):
    weighting = WEIGHTINGS["entropy"]()
    starts = [positive_start(N, M, K, seed) for seed in (1, 2, 3)]
    codes, basis = (np.stack(factors) for factors in zip(*starts, strict=True))
    batch = run(X, [weighting] * 3, codes, basis, xp=xp, max_iter=200, tol=1e-4)
    for i, member in enumerate(batch):
        (single,) = run(X, [weighting], codes[[i]], basis[[i]], xp=xp, max_iter=200, tol=1e-4)
        assert member.weighting.gamma == pytest.approx(single.weighting.gamma, rel=1e-9)
        np.testing.assert_allclose(member.history[-1], single.history[-1], rtol=1e-9)


def test_no_iterations_measure_the_start(xp):
    (fitted,) = run(X, [WEIGHTINGS["uniform"]()], CODES[None], BASIS[None], xp=xp, max_iter=0)
    np.testing.assert_array_equal(numbers(fitted).codes, CODES)
    assert fitted.history == pytest.approx([((X - CODES @ BASIS) ** 2).sum()])
