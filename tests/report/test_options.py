"""Options of the command line: wrong values, advice in their terms, packages that are missing."""

import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from robustnmf import RobustNMF, inits, losses, weightings
from robustnmf.cli import EXTRAS, main
from robustnmf.cli._messages import OPTIONS, in_options
from robustnmf.cli.fit import INITS, LOSSES, SCALES, WEIGHTINGS
from robustnmf.tables._table import KINDS
from tests.problems import noisy_low_rank

pytest.importorskip("pandas", reason="tables need the packages of the extra cli")
pytest.importorskip("plotly", reason="tables need the packages of the extra cli")

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


@pytest.fixture
def table(tmp_path):
    np.savetxt(tmp_path / "t.csv", noisy_low_rank(30, 6, 2), delimiter=",")
    return str(tmp_path / "t.csv")


def fit(table, *more):
    return main(["fit", table, "--no-header", "-o", table + ".out", "--quiet", *more])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-k", "0"], "'0' is no integer of 1 or more"),
        (["-k", "none"], "'none' is no integer of 1 or more, nor is it \"auto\""),
        (["-k", "2", "--max-ranks", "0"], "'0' is no integer"),
        (["-k", "2", "--loss", "hinge"], "invalid choice: 'hinge' (choose from"),
        (["-k", "2", "--weighting", "heavy"], "invalid choice: 'heavy'"),
        (["-k", "2", "--scale", "log"], "invalid choice: 'log'"),
        (["-k", "2", "--n-init", "0"], "'0' is no integer"),
        (["-k", "2", "--columns", " , "], "names no columns"),
        (["-k", "2", "--init", "custom"], "invalid choice: 'custom'"),
        (["-k", "2", "--max-iter", "0"], "'0' is no integer"),
        (["-k", "2", "--tol", "-1"], "argument --tol"),
        (["-k", "2", "--tol", "nan"], "no number of zero or more"),
        (["-k", "2", "--seed", "-1"], "argument --seed"),
        (["-k", "2", "--seed", "4294967296"], "no integer from 0"),
        (["-k", "2", "--image-shape", "3"], "no HEIGHTxWIDTH"),
        (["-k", "2", "--sep", ";;"], "not one character"),
        (["-k", "2", "--decimal", ";"], "invalid choice"),
    ],
)
def test_wrong_values_exit_with_2(arguments, message, table, capsys):
    with pytest.raises(SystemExit) as end:
        fit(table, *arguments)
    assert end.value.code == 2
    assert message in capsys.readouterr().err


def test_advice_names_options_that_there_are(table, capsys):
    assert fit(table, "-k", "5", "--max-iter", "25", "--tol", "0.00001", "--init", "random") == 0
    error = capsys.readouterr().err
    assert "after 25 iterations" in error
    assert "--tol 1e-05 of itself" in error
    assert "Raise --max-iter or --tol." in error
    text = "n_components=9 is too large for init='robust'. Lower n_components or use init='random'."
    assert in_options(text) == (
        "-k 9 is too large for --init robust. Lower -k or use --init random."
    )
    assert "dense table" in in_options("Use X.toarray() where memory allows.")
    parameters = RobustNMF().get_params()
    assert set(OPTIONS) <= set(parameters)
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    options = re.findall(r"(?<![\w-])--?[a-z-]+", capsys.readouterr().out)
    assert set(OPTIONS.values()) <= set(options)


def test_options_reach_the_estimator(table, monkeypatch):
    parameters = {}
    monkeypatch.setattr(
        RobustNMF, "fit_transform", lambda self, X: parameters.update(self.get_params()) or 1 / 0
    )
    arguments = ["--max-iter", "7", "--tol", "0.5", "--init", "random", "--seed", "3"]
    arguments += ["--n-init", "4", "--weighting", "cauchy", "--loss", "huber"]
    with pytest.raises(ZeroDivisionError):
        fit(table, "-k", "2", *arguments)
    expected = {
        "max_iter": 7, "tol": 0.5, "init": "random", "random_state": 3, "n_components": 2,
        "n_init": 4, "weighting": "cauchy", "loss": "huber",
    }  # fmt: skip
    assert {name: parameters[name] for name in expected} == expected


def test_choices_are_those_of_the_registries():
    assert tuple(losses.LOSSES) == LOSSES
    assert tuple(weightings.WEIGHTINGS) == WEIGHTINGS
    assert tuple(inits.INITS) == INITS
    assert {"auto", "none", *KINDS} == set(SCALES)


@pytest.mark.parametrize(
    ("suffix", "module", "extra"),
    [(".h5ad", "h5py", "files"), (".parquet", "pyarrow", "files"), (".csv", "pandas", "cli")],
)
def test_missing_packages_are_named_with_their_extra(
    suffix, module, extra, tmp_path, monkeypatch, capsys
):
    (tmp_path / f"t{suffix}").write_bytes(b"1,2\n3,4\n")
    monkeypatch.setitem(sys.modules, module, None)
    arguments = [str(tmp_path / f"t{suffix}"), "-k", "1", "-o", str(tmp_path / "out")]
    assert main(["fit", *arguments]) == 1
    error = capsys.readouterr().err
    assert error == f"robustnmf: this needs {module}; install it with pip install " + (
        f"'robustnmf[{extra}]'\n"
    )


@pytest.mark.skipif(not PROJECT.exists(), reason="needs the repository")
def test_extras_are_those_of_the_project():
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    for module, extra in EXTRAS.items():
        assert any(re.match(rf"{module}\b", line) for line in extras[extra]), module
    for module in ("pandas", "plotly", "rich", "matplotlib"):
        assert any(line.startswith(module) for line in extras["cli"])
