"""The demo from the command line, on fewer iterations than it takes."""

import numpy as np
import pytest

from robustnmf.cli import main
from robustnmf.experiments import demo
from tests.problems import needs_cli

SHORT = {"random_state": 0, "max_iter": 60, "tol": 1e-3}


@pytest.fixture(scope="module")
def short_run():
    """The demo as it comes, on fewer iterations."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "SETTINGS", SHORT)
        return demo.run()


@pytest.mark.extra
@needs_cli
def test_the_command_runs_the_demo(tmp_path, monkeypatch):
    runs = []
    run = demo.run
    monkeypatch.setattr(demo, "SETTINGS", SHORT)
    monkeypatch.setattr(demo, "run", lambda *given: runs.append(run(*given)) or runs[-1])
    assert main(["demo", "--out", str(tmp_path)]) == 0
    assert [row.method for row in runs[0].rows] == [demo.REFERENCE, *demo.METHODS]


@pytest.mark.extra
@pytest.mark.xdist_group("demo")
@needs_cli
def test_the_demo_prints_a_table_and_writes_a_page(short_run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "run", lambda *given: short_run)
    assert main(["demo", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    for name in demo.METHODS:
        assert name in printed
    page = (tmp_path / "report.html").read_text()
    assert str(tmp_path / "report.html") in printed
    assert page.count("<tr>") == len(demo.METHODS) + 2 + 4  # header and reference; figures
    assert page.count("data:image/png;base64,") == 2
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo.png", "report.html"]


@pytest.mark.extra
@pytest.mark.xdist_group("demo")
def test_adaptive_weights_beat_plain_nmf(short_run):
    rows = {row.method: row for row in short_run.rows}
    assert rows["EWRNMF"].relative_error < rows["EucNMF"].relative_error
    assert rows["RobustNMF"].auroc > 0.9


def test_the_default_finds_more_limbs_than_scikit_learn():
    figures, learned = demo.fit_figures()
    cosines = {method.method: method.cosines.mean() for method in learned}
    assert cosines[demo.ROBUST] > cosines[demo.SCIKIT_LEARN] + 0.1
    np.testing.assert_array_equal(learned[-1].left_out, figures.bad)


def test_figures_are_sums_of_four_limbs():
    figures = demo.draw_figures(3)
    good = figures.X[~figures.bad]
    codes, *_ = np.linalg.lstsq(figures.parts.T, good.T)
    np.testing.assert_allclose(codes.T @ figures.parts, good, atol=1e-12)
    assert ((codes > 0.4).sum(axis=0) == 4).all()


def test_a_folder_that_cannot_be_is_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["demo", "--out", str(tmp_path / "file")]) == 1
    assert capsys.readouterr().err.startswith("robustnmf: ")
