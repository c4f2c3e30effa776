"""Outputs that cannot be written are refused before anything is computed."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from robustnmf import RobustNMF
from robustnmf.cli import main
from robustnmf.files.output import unwritable_reason
from tests.problems import noisy_low_rank

pytest.importorskip("pandas", reason="tables need the packages of the extra cli")
pytest.importorskip("plotly", reason="tables need the packages of the extra cli")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    X = noisy_low_rank(30, 6, 2)
    np.savetxt(tmp_path / "t.csv", X, delimiter=",")
    RobustNMF(2, random_state=0).fit(X).save(tmp_path / "model.rnmf")
    monkeypatch.chdir(tmp_path)

    def compute(*arguments, **options):
        raise AssertionError("the fit has begun")

    monkeypatch.setattr("robustnmf.cli.fit.read", compute)
    monkeypatch.setattr("robustnmf.cli.transform.read", compute)
    monkeypatch.setattr("robustnmf.experiments.contamination.study.Study.run", compute)
    monkeypatch.setattr("robustnmf.experiments.reproduce.reproduce", compute)
    monkeypatch.setattr("robustnmf.experiments.demo.fit_figures", compute)
    return tmp_path


COMMANDS = {
    "fit": ["fit", "t.csv", "-k", "2", "-o", "{}"],
    "fit, AnnData": ["fit", "t.csv", "-k", "2", "--write-h5ad", "{}/x.h5ad"],
    "transform": ["transform", "model.rnmf", "t.csv", "-o", "{}/codes.csv"],
    "benchmark": ["benchmark", "--quick", "-o", "{}"],
    "reproduce": ["reproduce", "--quick", "-o", "{}"],
    "demo": ["demo", "-o", "{}"],
    "convert": ["datasets", "convert", "wdbc", "wdbc.data", "-o", "{}"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_is_no_folder(name, folder, capsys):
    if name == "fit, AnnData":
        pytest.importorskip("anndata", reason="needs the extra anndata")
    files = sorted(folder.iterdir())
    assert main([part.format("t.csv/out") for part in COMMANDS[name]]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert " is t.csv/out" in error
    assert "but t.csv is not a folder. Name another output." in error
    assert sorted(folder.iterdir()) == files


@pytest.mark.parametrize("name", ["fit", "transform"])
def test_folders_that_nothing_can_be_written_to(name, folder, capsys, monkeypatch):
    def refuse(**options):
        raise PermissionError(13, "Permission denied", "x")

    monkeypatch.setattr("robustnmf.files.output.tempfile.TemporaryFile", refuse)
    assert main([part.format("out") for part in COMMANDS[name]]) == 1
    assert "nothing can be written there (Permission denied)" in capsys.readouterr().err
    assert not Path("out").exists()


def test_outputs_that_are_folders_or_links_to_nowhere(folder, capsys):
    Path("out/report.html").mkdir(parents=True)
    assert main(["fit", "t.csv", "-k", "2", "-o", "out", "--force"]) == 1
    assert f"but {Path('out/report.html')} is a folder" in capsys.readouterr().err
    Path("lost.csv").symlink_to(folder / "nowhere" / "codes.csv")
    assert main(["transform", "model.rnmf", "t.csv", "-o", "lost.csv"]) == 1
    assert "whose folder does not exist" in capsys.readouterr().err
    assert main(["fit", "t.csv", "-k", "2", "-o", "-"]) == 2
    assert "a folder is needed" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, and names of 255 bytes at most")
def test_reasons_of_the_system(tmp_path):
    assert "nothing can be written there" in (unwritable_reason(Path("/proc/out/codes.csv")) or "")
    assert "too long" in (unwritable_reason(tmp_path / ("x" * 300)) or "")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    assert unwritable_reason(tmp_path / "circle" / "codes.csv") is not None
    assert unwritable_reason(tmp_path / "new" / "folders" / "codes.csv") is None
    assert os.listdir(tmp_path) == ["circle"]


def test_a_folder_is_no_file_of_a_publisher(tmp_path, capsys):
    assert main(["datasets", "convert", "wdbc", str(tmp_path), "-o", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        f"robustnmf: {tmp_path} is a folder. Pass the text files in it.\n"
    )


def test_errors_of_the_system_name_the_file(tmp_path, capsys, monkeypatch):
    def refuse(self, *arguments, **options):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_text", refuse)
    (tmp_path / "wdbc.data").write_text("1,2\n")
    data = str(tmp_path / "wdbc.data")
    assert main(["datasets", "convert", "wdbc", data, "-o", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"robustnmf: {data}: Permission denied\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_full_device_is_one_line(tmp_path, capsys):
    X = noisy_low_rank(30, 6, 2)
    np.savetxt(tmp_path / "t.csv", X, delimiter=",")
    RobustNMF(2, random_state=0).fit(X).save(tmp_path / "model.rnmf")
    arguments = [str(tmp_path / "model.rnmf"), str(tmp_path / "t.csv"), "-o", "/dev/full"]
    assert main(["transform", *arguments, "--no-header"]) == 1
    assert capsys.readouterr().err == "robustnmf: No space left on device\n"
