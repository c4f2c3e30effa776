"""Every supported combination: fit, transform and score of the estimator agree."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from robustnmf import RobustNMF, combinations
from tests.problems import KINDS, law_over, noisy_low_rank

X = noisy_low_rank(40, 12, 3, outliers=4)


PENALTIES = {"alpha_W": 0.01, "alpha_H": 0.02, "l1_ratio": 0.5}
PARTS = [cell[:4] for cell in combinations() if cell.supported]
CELLS = [(*parts, "plain") for parts in PARTS] + [
    (*parts, option)
    for parts in PARTS
    if parts[2:] == ("free", "dense")
    for option in ("penalties", "sample weights")
]


@law_over("loss, weighting, structure, data, option", CELLS)
def test_fit_transform_score_and_objective_agree(loss, weighting, structure, data, option):
    table = KINDS[data](X)
    table = sp.csr_array(table) if data == "sparse" else table
    weights = None
    if option == "sample weights":
        weights = np.random.default_rng(0).integers(1, 4, size=len(X))
    model = RobustNMF(
        3, loss=loss, weighting=weighting, structure=structure, random_state=0, max_iter=60,
        **(PENALTIES if option == "penalties" else {}),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        codes = model.fit_transform(table, sample_weight=weights)
    rest = np.abs(model.transform(table) - codes).max(axis=1) <= 1e-6 * codes.max()
    # Where the loss of a row has several minima, iterating may have found a better one.
    convex = structure != "orthogonal" and loss not in ("itakura-saito", "truncated")
    both = structure == "orthogonal" and loss == "truncated"  # two reasons for several minima
    assert rest.all() if convex else rest.mean() >= (0.5 if both else 0.85)
    assert model.objective(table, sample_weight=weights) == pytest.approx(
        model.objective_history_[-1], rel=1e-9 if convex else 0.15 if both else 0.05
    )
    scores = model.score_samples(table)
    assert np.isfinite(scores).all()
    if rest.all():
        np.testing.assert_allclose(-scores, model.energies_, rtol=1e-5, atol=1e-9)


REFUSED = [cell for cell in combinations() if not cell.supported]


def test_all_combinations_support_dense_data_and_some_sparse_data():
    dense = [cell for cell in REFUSED if cell.data != "sparse"]
    assert {cell.weighting for cell in dense} == {"huber"}  # two sets of weights of entries
    assert {cell.loss for cell in dense} == {"huber", "truncated"}
    assert {cell.data for cell in combinations() if cell.supported} == set(KINDS)


@pytest.mark.parametrize("cell", REFUSED, ids=lambda cell: "-".join(cell[:4]))
def test_reasons_are_the_messages_of_estimators(cell):
    model = RobustNMF(2, loss=cell.loss, weighting=cell.weighting, structure=cell.structure)
    table = KINDS[cell.data](X)
    with pytest.raises(ValueError, match="cannot read") as error:
        model.fit(sp.csr_array(table) if cell.data == "sparse" else table)
    assert cell.reason in str(error.value)
