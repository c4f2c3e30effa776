"""The reproduction: complete, resumable, honest."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from robustnmf.cli import main
from robustnmf.datasets import DATASETS, VARIABLE, DatasetNotFoundError
from robustnmf.experiments.paper import ITEMS, tables
from robustnmf.experiments.paper._base import best_on_grid, summarise
from robustnmf.experiments.protocol import METHODS, PROTOCOL, SCALINGS
from robustnmf.experiments.reproduce import plan, reproduce, scope_of
from robustnmf.experiments.store import Store
from robustnmf.experiments.trial import Scores, Task, fit_points, run
from tests.oracles import paper
from tests.problems import needs_cli

SHORT = replace(PROTOCOL, iterations=5, starts=2)


@pytest.fixture
def bare(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def small(bare):
    """A scope that takes seconds."""
    return replace(scope_of(["balance", "wdbc"], quick=True), protocol=SHORT)


def scores(value, start, accuracy, **more):
    settings = {"effective_sample_size": 50.0, "largest_cluster": 0.5, **more}
    return Scores(value, start, accuracy, accuracy, clusters=2, objective=0.0, **settings)


def test_the_paper_has_three_tables_and_nine_figures():
    assert list(ITEMS) == [f"table{n}" for n in (1, 2, 3)] + [f"figure{n}" for n in range(1, 10)]
    assert [len(cells) for cells in tables.PUBLISHED.values()] == [54, 54]
    assert METHODS["FWRNMF"].grid == tuple(np.arange(1.5, 11.01, 0.5))
    assert METHODS["EWRNMF"].grid == METHODS["HuberRNMF"].grid == tuple(10.0 ** np.arange(-4, 5))


def test_a_full_run_needs_as_many_fits_as_the_paper(monkeypatch):
    monkeypatch.setattr("robustnmf.experiments.reproduce.is_available", lambda name, data_dir: True)
    run_plan = plan(["table2", "table3"], scope_of())
    assert run_plan.fits == 9 * 10 * (1 + 1 + 1 + (9 + 1) + (20 + 1) + (9 + 1))
    everything = plan(ITEMS, scope_of())
    assert everything.fits > run_plan.fits
    assert len(set(everything.tasks)) == len(everything.tasks)


def test_trials_run_the_equations_of_the_paper():
    task = Task("wdbc", "FWRNMF", 0.05, starts=1, values=(3.0,), protocol=SHORT)
    X, _ = task.table()
    start, end = (
        fit_points([(replace(task, protocol=p), 3.0)], X, 3)[0]
        for p in (replace(SHORT, iterations=0), SHORT)
    )
    base, representation, _ = paper.fwrnmf(X.T, start.components.T, start.codes.T, 3.0, 5)
    np.testing.assert_allclose(end.codes, representation.T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(end.components, base.T, rtol=1e-9, atol=1e-12)


def test_scores_do_not_depend_on_the_batch():
    task = Task("wdbc", "EWRNMF", 0.05, values=(0.1, 1.0, 10.0), protocol=SHORT)
    other = Task("wdbc", "EucNMF", 0.05, protocol=SHORT)
    points = [(task, value) for value in task.parameter_values]
    together = [trial for part in run([*points, (other, None)]) for _, trial in part]
    alone = [trial for point in points for part in run([point]) for _, trial in part]
    strip = {"seconds": 0.0, "objective": 0.0, "effective_sample_size": 0.0}
    assert [replace(t, **strip) for t in together[:6]] == [replace(t, **strip) for t in alone]
    np.testing.assert_allclose(
        [t.objective for t in together[:6]], [t.objective for t in alone], rtol=1e-9
    )


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("noise_on", ["raw", "scaled"])
def test_every_scaling_gives_a_table_for_nmf(scaling, noise_on):
    X = np.random.default_rng(0).normal(size=(40, 5)) * [1, 10, 100, 0, 1]
    protocol = replace(PROTOCOL, scaling=(("any", scaling),), noise_on=noise_on)
    table = protocol.table("any", X, 0.05)
    assert np.isfinite(table).all()
    assert table.min() >= 0


def test_all_methods_have_the_same_subsets():
    one, other = (
        Task("digits", method, 0.05, subset=(3, 1)).table()[1] for method in ("EucNMF", "EWRNMF")
    )
    np.testing.assert_array_equal(one, other)
    assert len(np.unique(one)) == 3
    assert set(one) != set(Task("digits", "EucNMF", 0.05, subset=(3, 2)).table()[1])


def test_the_best_value_is_chosen_on_the_grid_and_the_default_without_labels():
    method = METHODS["EWRNMF"]
    summaries = summarise(
        [scores(v, s, a) for v, a in ((0.1, 0.6), (1.0, 0.7), ("auto", 0.9)) for s in (0, 1)],
        "accuracy",
    )
    assert best_on_grid(summaries, method).value == 1.0
    assert summaries[method.default].value == "auto"


def test_cells_with_a_meaningless_accuracy_are_marked():
    def summarised(**more):
        return summarise([scores(None, s, 0.9, **more) for s in (0, 1)], "accuracy")[None]

    assert tables.marks(summarised(), "accuracy", 0.5, 5) == ()
    assert tables.marks(summarised(largest_cluster=0.96), "accuracy", 0.5, 5) == ("one",)
    assert tables.marks(summarised(), "accuracy", 0.8953, 5) == ("class",)
    assert tables.marks(summarised(), "information", 0.8953, 5) == ()
    assert tables.marks(summarised(effective_sample_size=4.9), "accuracy", 0.5, 5) == ("few",)
    once = [scores(None, 0, 0.9, largest_cluster=0.99), scores(None, 1, 0.9, largest_cluster=0.3)]
    collapsed_once = summarise(once, "accuracy")[None]
    assert tables.marks(collapsed_once, "accuracy", 0.5, 5) == ("one",)
    assert collapsed_once.one_cluster_starts == 1


def test_finished_trials_are_not_run_again(small, tmp_path, monkeypatch):
    store = Store(tmp_path / "trials.sqlite")
    run_plan = plan(["table2", "figure7"], small)
    first = reproduce(run_plan, store)
    monkeypatch.setattr(
        "robustnmf.experiments.reproduce.fit_points", lambda *a, **k: pytest.fail("fitted again")
    )
    monkeypatch.setattr(
        "robustnmf.experiments.trial.fit_points", lambda *a, **k: pytest.fail("fitted again")
    )
    calls = []
    again = reproduce(
        run_plan, store, progress=lambda what, done, total: calls.append((done, total))
    )
    assert again == first
    assert calls[-1] == (run_plan.fits, run_plan.fits)


def test_other_rows_of_the_store_change_nothing(small, tmp_path):
    small = replace(small, datasets=("balance",))
    store = Store(tmp_path / "trials.sqlite")
    run_plan = plan(["table2"], small)
    first = reproduce(run_plan, store)
    more = replace(small, quick=False, protocol=replace(SHORT, starts=3))
    reproduce(plan(["table2"], more), store)
    assert reproduce(run_plan, store) == first


def test_a_device_that_is_not_there_is_one_line(tmp_path, capsys):
    pytest.importorskip("torch")
    arguments = ["--quick", "--tables", "2", "--datasets", "balance", "--device", "nonsense"]
    assert main(["reproduce", "--out", str(tmp_path), *arguments]) == 1
    assert "PyTorch cannot use device='nonsense'" in capsys.readouterr().err


def test_a_dataset_named_twice_is_used_once(bare):
    assert scope_of(["balance", "balance"]).datasets == ("balance",)


def test_requested_data_must_exist(bare):
    with pytest.raises(DatasetNotFoundError, match=r"gtfd\.npz"):
        scope_of(["wdbc", "gtfd"])
    with pytest.raises(ValueError, match="unknown dataset"):
        scope_of(["wine"])
    scope = scope_of()
    assert set(scope.datasets) == {"balance", "wdbc"}
    assert "gtfd" in scope.missing


def command(out, *more):
    return [
        sys.executable, "-m", "robustnmf", "reproduce", "--quick", "--tables", "2", "--datasets",
        "wdbc", "balance", "--jobs", "1", "--out", str(out), *more,
    ]  # fmt: skip


def count(path):
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            return connection.execute("SELECT count(*) FROM trials").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


@pytest.mark.extra
@needs_cli
def test_a_killed_run_resumes_and_ends_the_same(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    environment = {k: v for k, v in os.environ.items() if k != VARIABLE}
    subprocess.run(command(whole), check=True, env=environment, capture_output=True)
    process = subprocess.Popen(
        command(killed), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    while count(killed / "trials.sqlite") < 20 and process.poll() is None:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = count(killed / "trials.sqlite")
    assert 0 < done < count(whole / "trials.sqlite")
    with sqlite3.connect(killed / "trials.sqlite") as connection:
        before = set(connection.execute("SELECT key, created, seconds FROM trials"))
    subprocess.run(command(killed), check=True, env=environment, capture_output=True)
    with sqlite3.connect(killed / "trials.sqlite") as connection:
        after = set(connection.execute("SELECT key, created, seconds FROM trials"))
    assert before <= after
    for name in ("table2.csv", "table2_without_labels.csv"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()


@needs_cli
def test_the_command_line_speaks_of_mistakes_in_one_line(bare, tmp_path, capsys):
    for arguments, message, code in (
        (["--datasets", "gtfd"], "gtfd.npz", 1),
        (["--data-dir", str(tmp_path), "--datasets", "nonsense"], "unknown dataset", 1),
        (["--figures", "1"], "Figure 1", 1),
        (["--quick", "--datasets", "balance", "--figures", "2"], "Figure 2", 1),
    ):
        assert main(["reproduce", "--out", str(tmp_path / "out"), *arguments]) == code
        error = capsys.readouterr().err
        assert error.startswith("robustnmf: ")
        assert message in error
        assert error.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--figures", "12"], ["--tables", "0"], ["--tables"]])
def test_tables_and_figures_are_those_of_the_paper(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        main(["reproduce", *arguments])
    assert end.value.code == 2
    assert f"argument {arguments[0]}" in capsys.readouterr().err


@needs_cli
def test_datasets_are_listed(bare, capsys):
    assert main(["datasets", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(rows) == set(DATASETS)
    assert rows["wdbc"]["largest class"] == "62.7%"
    assert rows["gtfd"]["here"] == "no"
    assert rows["page_blocks"]["here"].startswith("no, but")
    assert main(["datasets"]) == 0
    assert "yale" in capsys.readouterr().out
