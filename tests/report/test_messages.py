"""Messages of estimators serve in the shell too; the user's own words stay as they are."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse

from robustnmf import RobustNMF, combinations
from robustnmf.cli import main
from robustnmf.cli._shared import name_places
from robustnmf.tables import Table
from tests.problems import noisy_low_rank

pd = pytest.importorskip("pandas", reason="tables need the packages of the extra cli")
pytest.importorskip("plotly", reason="tables need the packages of the extra cli")

PYTHON = re.compile(r"X\.|[a-z]\((?!s\))")
"""Methods of arrays, and calls."""


def fit(*arguments):
    return main(["fit", *map(str, arguments), "--quiet"])


@pytest.mark.parametrize("reason", sorted({c.reason for c in combinations() if c.reason}))
def test_reasons_of_combinations_are_advice_for_the_shell(reason):
    if "Convex" in reason or "Orthogonal" in reason:
        pytest.skip("the command has no structures")
    without_parts = re.sub(r"\b[A-Z]\w+\([^()]*\)", "", reason)
    assert not PYTHON.search(without_parts)


X = noisy_low_rank(60, 6, 2)
SPOTS = np.random.default_rng(0).random(X.shape) < 0.15
GROUP = np.arange(60)[:, None] < 15
CASES = {
    "few samples": (X[:8], {}),
    "many samples": (np.where(GROUP, 9 * np.random.default_rng(1).random(X.shape), X), {}),
    "bad entries": (np.where(SPOTS, 8 * X.max(), X), {}),
    "iterations": (X, {"max_iter": 2}),
    "one start": (X, {"n_init": 3, "init": "nndsvd"}),
    "collapse": (np.where(np.arange(60)[:, None] < 1, 1e4 * X, X), {"weighting": "l21"}),
}


@pytest.mark.parametrize("shape", [(1, 3), (3, 1)])
def test_the_advice_on_a_single_row_or_column_is_the_same_and_works(shape, tmp_path, capsys):
    pd.DataFrame(np.ones(shape)).to_csv(tmp_path / "t.csv", index=False)
    for components in ("2", "auto"):
        assert fit(tmp_path / "t.csv", "-k", components, "-o", tmp_path / "out") == 1
        assert capsys.readouterr().err.endswith(". Use -k 1.\n")
    assert fit(tmp_path / "t.csv", "-k", "1", "-o", tmp_path / "out") == 0


@pytest.mark.parametrize("name", CASES)
def test_warnings_are_advice_for_the_shell(name):
    data, parameters = CASES[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        RobustNMF(5 if name == "collapse" else 2, random_state=0, **parameters).fit(data)
    assert caught
    for warning in caught:
        message = str(warning.message)
        assert not PYTHON.search(message) or "in Python" in message, message


def test_samples_and_features_are_named():
    table = Table(X[:2, :2], ["s1", "tol"], ["g1", "init"])
    assert name_places("first at [1, 1] = -2; lower tol", table) == (
        "first in sample 'tol', feature 'init' = -2; lower tol"
    )
    text = "no value is known of 2 features of X, first feature 1: they are zero"
    assert "first feature 'init': they" in name_places(text, table)


def test_values_are_those_of_the_file_and_features_those_of_the_model(tmp_path, capsys):
    frame, out = pd.DataFrame(1000 * X, columns=list("abcdef")), tmp_path / "out"
    frame.to_csv(tmp_path / "good.csv", index=False)
    frame.loc[3, "b"] = -5
    frame.to_csv(tmp_path / "bad.csv", index=False)
    frame[list("fabcde")].to_csv(tmp_path / "turned.csv", index=False)
    for k in (2, "auto"):
        assert fit(tmp_path / "bad.csv", "-k", k, "-o", out, "--scale", "max") == 1
        assert "first in sample '3', feature 'b' = -5;" in capsys.readouterr().err
    assert fit(tmp_path / "good.csv", "-k", 2, "-o", out, "--scale", "max") == 0
    for name in ("bad", "turned"):
        files = [out / "model.rnmf", tmp_path / f"{name}.csv", "-o", tmp_path / "codes.csv"]
        assert main(["transform", *map(str, files)]) == 1
        assert "first in sample '3', feature 'b' = -5;" in capsys.readouterr().err


def test_words_of_the_user_stay(tmp_path, capsys):
    frame = pd.DataFrame(X, columns=["tol", "init", "loss", "max_iter", "n_init", "weighting"])
    folder = tmp_path / "init tol=1"
    folder.mkdir()
    out = tmp_path / "out"
    frame.to_csv(folder / "tol.csv", index=False)
    assert fit(folder / "tol.csv", "-k", 2, "-o", out, "--columns", "random_state") == 1
    error = capsys.readouterr().err
    assert "names 'random_state', but the features are 'tol', 'init', 'loss'" in error
    assert fit(folder / "max_iter.csv", "-k", 2, "-o", out) == 1
    assert f"there is no file {folder / 'max_iter.csv'}." in capsys.readouterr().err
    np.savetxt(folder / "tol.txt", [["init", "tol"]], fmt="%s")
    assert fit(folder / "tol.txt", "-k", 2, "-o", out) == 1
    assert f"{folder / 'tol.txt'} holds no numbers" in capsys.readouterr().err
    frame.iloc[3, 0] = -1
    frame.to_csv(folder / "tol.csv", index=False)
    assert fit(folder / "tol.csv", "-k", 2, "-o", out) == 1
    assert "1 negative value, first in sample '3', feature 'tol' = -1" in capsys.readouterr().err


def test_sparse_tables_that_a_loss_cannot_read(tmp_path, capsys):
    scipy.sparse.save_npz(
        tmp_path / "x.npz", scipy.sparse.csr_array(np.where(SPOTS, 0.0, np.abs(X)))
    )
    assert fit(tmp_path / "x.npz", "-k", 2, "-o", tmp_path / "o", "--loss", "truncated") == 1
    error = capsys.readouterr().err
    assert "Use loss='frobenius' or 'kullback-leibler', or dense X" in error
