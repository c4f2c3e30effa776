"""Options of the command line: wrong values, advice in their terms, packages that are missing."""

import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from robustnmf import RobustNMF, inits, losses, weightings
from robustnmf.cli import EXTRAS, main
from robustnmf.cli.fit import FORMER_NAMES, INITS, LOSSES, SCALES, WEIGHTINGS
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
        (["-k", "0"], "'0' is not an integer of 1 or more"),
        (["-k", "none"], "'none' is not an integer of 1 or more, nor \"auto\""),
        (["-k", "2", "--max-ranks", "0"], "'0' is not an integer"),
        (["-k", "2", "--loss", "hinge"], "invalid choice: 'hinge' (choose from"),
        (["-k", "2", "--weighting", "heavy"], "invalid choice: 'heavy'"),
        (["-k", "2", "--scale", "log"], "invalid choice: 'log'"),
        (["-k", "2", "--n-init", "0"], "'0' is not an integer"),
        (["-k", "2", "--columns", " , "], "names no columns"),
        (["-k", "2", "--init", "custom"], "invalid choice: 'custom'"),
        (["-k", "2", "--max-iter", "0"], "'0' is not an integer"),
        (["-k", "2", "--tol", "-1"], "argument --tol"),
        (["-k", "2", "--tol", "nan"], "not a number of zero or more"),
        (["-k", "2", "--seed", "-1"], "argument --seed"),
        (["-k", "2", "--seed", "4294967296"], "not an integer from 0"),
        (["-k", "2", "--image-shape", "3"], "not HEIGHTxWIDTH"),
        (["-k", "2", "--sep", ";;"], "not one character"),
        (["-k", "2", "--decimal", ";"], "invalid choice"),
    ],
)
def test_wrong_values_exit_with_2(arguments, message, table, capsys):
    with pytest.raises(SystemExit) as end:
        fit(table, *arguments)
    assert end.value.code == 2
    assert message in capsys.readouterr().err


def test_parameters_in_advice_are_options_or_named_in_the_help(table, capsys):
    assert fit(table, "-k", "5", "--max-iter", "25", "--tol", "0.00001", "--init", "random") == 0
    error = capsys.readouterr().err
    assert "after 25 iterations" in error
    assert "above tol=1e-05" in error
    assert "Raise max_iter or tol." in error
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    text = capsys.readouterr().out
    options = re.findall(r"(?<![\w-])--[a-z-]+", text)
    for name in ("max_iter", "tol", "init", "n_init", "weighting", "loss"):
        assert f"--{name.replace('_', '-')}" in options
    assert "n_components" in text  # of those with other names the help says it
    assert "random_state" in text


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
    for module in ("pandas", "plotly", "rich", "matplotlib", "jinja2"):
        assert any(line.startswith(module) for line in extras["cli"])


def test_former_names_of_losses_are_those_of_the_library():
    names = {kind: name for name, kind in losses.LOSSES.items()}
    assert {old: names[kind] for old, kind in losses.FORMER_NAMES.items()} == FORMER_NAMES
