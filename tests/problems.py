"""Small problems, and the pieces of the core put together for tests."""

import itertools
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse

from robustnmf.arrays import to_numpy
from robustnmf.loop.fit import fit
from robustnmf.loop.problem import Problem
from robustnmf.loop.state import Start
from robustnmf.losses import LOSSES, Loss
from robustnmf.solvers import SOLVERS
from robustnmf.sources import in_memory_engine
from robustnmf.structures import STRUCTURES
from robustnmf.weightings import WEIGHTINGS, EnergyHistogram, Weighting

needs_cli = pytest.mark.skipif(find_spec("rich") is None, reason="needs robustnmf[cli]")


def pairs_of(cell):
    """Pairs of values of two axes of a cell: a tuple of values, or of tuples of them."""
    parts = (part if isinstance(part, tuple) else (part,) for part in cell)
    return frozenset(itertools.combinations(enumerate(itertools.chain(*parts)), 2))


def pairwise(cells):
    """Return few cells that have every pair of values of two axes that any of the cells has.

    Combinations that do not exist are not among the cells. Always the first of those cells with
    most pairs that are still missing is taken.
    """
    pairs = {cell: pairs_of(cell) for cell in cells}
    missing = frozenset().union(*pairs.values())
    chosen = []
    while missing:
        chosen.append(max(pairs, key=lambda cell: len(pairs[cell] & missing)))
        missing -= pairs[chosen[-1]]
    return chosen


def law_over(names, cells, extra=lambda *cell: False, group=lambda *cell: None):
    """Parametrise a law: a pairwise cover of the cells in make test, the rest in make test-all.

    Cells for which `extra` is true are left to make test-all, too. Cells with the same `group`
    share their fits, and run in one process.
    """
    cells = list(cells)
    quick = set(pairwise([cell for cell in cells if not extra(*cell)]))

    def case(cell):
        marks = [] if cell in quick else [pytest.mark.extra]
        marks += [pytest.mark.xdist_group(group(*cell))] if group(*cell) else []
        words = ("-".join(map(str, p)) if isinstance(p, tuple) else str(p) for p in cell)
        return pytest.param(*cell, id="-".join(words), marks=marks)

    return pytest.mark.parametrize(names, [case(cell) for cell in cells])


def noisy_low_rank(n=40, m=12, k=3, seed=0, noise=0.3, outliers=0):
    """Gamma factors and gamma noise; the first rows may be replaced by junk."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.0, size=(n, k)) @ rng.gamma(1.0, size=(k, m))
    X += noise * rng.gamma(1.0, size=(n, m))
    X[:outliers] = 4 * X.mean() * rng.random((outliers, m))
    return X


def narrow_table(n=300, bad=45, seed=0, size=2.0):
    """Samples of two components with four features, and uniform noise; which ones are bad."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(4.0, size=(n, 2)) @ np.array([[1.0, 0.8, 0.1, 0.0], [0.0, 0.2, 0.9, 1.0]])
    X *= 1 + 0.05 * rng.standard_normal(X.shape)
    is_bad = rng.permutation(n) < bad
    X[is_bad] = size * X.max() * rng.random((bad, 4))
    return X, is_bad


def with_holes(X, share=0.15, seed=2):
    """The same with a share of the entries unknown, and half of one row."""
    holes = np.random.default_rng(seed).random(X.shape) < share
    holes[-1] = np.arange(X.shape[1]) % 2 == 1
    return np.where(holes, np.nan, X)


def with_zeros(X, share=0.4, seed=3):
    """A sparse table: the same with many of its entries zero, and one row of zeros."""
    zeros = np.random.default_rng(seed).random(X.shape) < share
    zeros[-1] = True
    return np.where(zeros, 0.0, X)


KINDS = {"dense": lambda X: X, "sparse": with_zeros, "missing": with_holes}


def positive_start(n, m, k, seed=1):
    """Codes (n, k) and basis (k, m), positive throughout."""
    rng = np.random.default_rng(seed)
    return 0.1 + rng.random((n, k)), 0.1 + rng.random((k, m))


def profile_of(energies, sizes=None, row_weight=None, features=1, unit=1.0) -> EnergyHistogram:
    """The profile of some energies; all samples are of the size of a unit by default."""
    energies = np.asarray(energies, dtype=float)
    ones = np.ones_like(energies)
    sizes = unit * ones if sizes is None else np.asarray(sizes, dtype=float)
    row_weight = ones if row_weight is None else np.asarray(row_weight, dtype=float)
    return EnergyHistogram.of(energies, sizes, row_weight, unit=unit, features=features)


def settled(weighting: Weighting, typical=1.0) -> Weighting:
    """A weighting that needs no energies to know its parameters."""
    return weighting.resolve_auto(profile_of([typical])) if weighting.has_auto else weighting


PAPER = {"huber": {"cutoff": 1.0}, "fuzzy": {"p": 11.0}, "cauchy": {"scale": 1.0}}
"""Parameters of weightings for tests of fits under numbers that are given."""


def variants(name: str, typical=1.0, factors=(0.5, 1.0, 3.0)) -> list[Weighting]:
    """The weighting of this name with its knob at multiples of where it comes."""
    first = settled(WEIGHTINGS[name](**PAPER.get(name, {})), typical)
    if first.knob is None:
        return [first]
    value = getattr(first, first.knob)
    return [type(first)(**{first.knob: value * factor}) for factor in factors]


ALL_VARIANTS = [w for name in WEIGHTINGS for w in variants(name)]


CUTOFF = 0.8
"""Cutoff of losses of entries, in the units of the tables of laws: some residuals exceed it."""


def loss_of(name: str, unit: float = 1.0) -> Loss:
    """Return the loss of a name, for X in a unit; with a cutoff where it would be automatic."""
    loss = LOSSES[name]()
    return loss.with_cutoff(CUTOFF).rescaled(unit) if loss.has_auto else loss


PAIRS = [
    (loss, weighting)
    for loss in LOSSES
    for weighting in WEIGHTINGS
    if not (LOSSES[loss].weighs_entries and WEIGHTINGS[weighting].per_entry)
]
"""Losses and weightings that go together: not both give every entry a weight."""


def run(
    X,
    weightings,
    codes,
    basis,
    *,
    xp=None,
    loss="frobenius",
    structure="free",
    solver="mu",
    dtype="float64",
    block_rows=None,
    max_iter=20,
    tol=0.0,
):
    """Fit a batch from given starts: codes (members, n, k) and basis (members, k, m)."""
    if xp is None:
        import array_api_compat.numpy as xp
    codes, basis = (xp.asarray(a, dtype=getattr(xp, dtype)) for a in (codes, basis))
    loss = loss_of(loss) if isinstance(loss, str) else loss
    parts = Problem(loss, STRUCTURES[structure](), SOLVERS[solver]())
    sparse = scipy.sparse.issparse(X)
    table = X.astype(dtype) if sparse else xp.asarray(X, dtype=getattr(xp, dtype))
    rank = basis.shape[1]
    engine = in_memory_engine(table, parts, weightings[0], rank, scale=1.0, block_rows=block_rows)
    start = Start(*parts.structure.start(engine, engine.split(codes, axis=1), basis))
    return fit(engine, parts, weightings, start, max_iter=max_iter, tol=tol)


class Numbers(NamedTuple):
    """What a fit comes to, as NumPy arrays."""

    codes: np.ndarray
    basis: np.ndarray
    energies: np.ndarray
    importances: np.ndarray
    history: np.ndarray


def numbers(fitted) -> Numbers:
    """What a member comes to, as NumPy arrays."""
    arrays = (fitted.codes, fitted.basis, fitted.energies, fitted.importances)
    return Numbers(*(to_numpy(a) for a in arrays), np.array(fitted.history))


def made_of_rounding(fitted):
    """Whether a sample is fitted to the last digits and weighed by them.

    Its energy is then rounding, and weights without bounds are made of it (FWRNMF, NMFL2); no
    two orders of summation agree there.
    """
    if not isinstance(fitted.weighting, WEIGHTINGS["fuzzy"] | WEIGHTINGS["l21"]):
        return False
    energies = to_numpy(fitted.energies)[to_numpy(fitted.importances) > 0]
    return energies.min() < 1e-12 * energies.max()


def assert_same_fit(one, other, rtol=1e-10):
    """Two fits agree; for those made of rounding, which cannot, callers need to say so."""
    assert not made_of_rounding(one)
    for x, y in zip(numbers(one), numbers(other), strict=True):
        np.testing.assert_allclose(y, x, rtol=rtol, atol=rtol * np.abs(x).max())
