"""The demo from the command line, on fewer iterations than it takes."""

import pytest

from robustnmf.cli import main
from robustnmf.experiments import demo
from tests.problems import needs_cli


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(demo, "SETTINGS", {"random_state": 0, "max_iter": 60, "tol": 1e-3})


@needs_cli
def test_the_demo_prints_a_table_and_writes_a_page(short, tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    for name in demo.methods():
        assert name in printed
    page = (tmp_path / "report.html").read_text()
    assert str(tmp_path / "report.html") in printed
    assert page.count("<tr>") == len(demo.methods()) + 2
    assert "data:image/png;base64," in page
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo.png", "report.html"]


def test_adaptive_weights_beat_plain_nmf(short):
    rows = {row.method: row for row in demo.run().rows}
    assert rows["EWRNMF"].relative_error < rows["EucNMF"].relative_error
    assert rows["RobustNMF"].auroc > 0.9


def test_a_folder_that_cannot_be_is_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["demo", "--out", str(tmp_path / "file")]) == 1
    assert capsys.readouterr().err.startswith("robustnmf: ")
