"""The file of trials: nothing twice, nothing half, nothing of somebody else."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import robustnmf
from robustnmf.experiments.database import PRESENTATION, StoreError
from robustnmf.experiments.database import code_version as code_version_of
from robustnmf.experiments.protocol import PROTOCOL
from robustnmf.experiments.store import Store
from robustnmf.experiments.trial import Scores, Task

PACKAGE = Path(robustnmf.__file__).parent
TASK = Task("wdbc", "EWRNMF", 0.05, starts=99, values=(1.0, 2.0, "auto"))


def scores(value=1.0, start=0, accuracy=0.5):
    return Scores(value, start, accuracy, 0.25, 10.0, 0.5, 2, -1.5, 0.1, "CPU")


def test_added_trials_are_found(tmp_path):
    store = Store(tmp_path / "new" / "trials.sqlite")
    assert store.finished(TASK) == {}
    added = [scores(), scores("auto", 3)]
    store.add(TASK, added)
    assert Store(store.path).finished(TASK) == {(s.value, s.start): s for s in added}
    assert [trial for _, trial in store.rows([TASK])].count(added[0]) == 1


@pytest.mark.parametrize(
    "other",
    [
        replace(TASK, dataset="balance"),
        replace(TASK, method="FWRNMF"),
        replace(TASK, noise=0.1),
        replace(TASK, subset=(2, 0)),
        replace(TASK, protocol=replace(PROTOCOL, iterations=7)),
        replace(TASK, protocol=replace(PROTOCOL, codes="raw")),
        replace(TASK, protocol=replace(PROTOCOL, scaling=(("wdbc", "raw"),))),
    ],
)
def test_trials_of_another_specification_are_others(tmp_path, other):
    store = Store(tmp_path / "trials.sqlite")
    store.add(TASK, [scores()])
    assert store.finished(other) == {}


def test_more_starts_or_values_are_the_same_task(tmp_path):
    store = Store(tmp_path / "trials.sqlite")
    store.add(TASK, [scores()])
    more = replace(TASK, starts=2, values=(1.0, 5.0))
    assert list(store.finished(more)) == [(1.0, 0)]


def test_only_trials_of_the_task_are_returned(tmp_path):
    store = Store(tmp_path / "trials.sqlite")
    store.add(TASK, [scores(value, start) for value in (1.0, 2.0) for start in range(5)])
    fewer = replace(TASK, starts=2, values=(2.0,))
    assert set(store.finished(fewer)) == {(2.0, 0), (2.0, 1)}
    assert len(list(store.rows([fewer]))) == 2


ADD_OR_LIST = """
import sys
from robustnmf.experiments.store import Store
from robustnmf.experiments.trial import Scores, Task

store = Store(sys.argv[1])
task = Task("wdbc", "EWRNMF", 0.05, starts=99, values=(1.0,))
print(len(store.finished(task)))
store.add(task, [Scores(1.0, 0, 0.5, 0.25, 10.0, 0.5, 2, -1.5, 0.1, "CPU")])
"""


@pytest.fixture
def copied_package(tmp_path):
    root = tmp_path / "copy" / "robustnmf"
    shutil.copytree(PACKAGE, root, ignore=shutil.ignore_patterns("__pycache__"))
    return root


def change(path):
    path.write_bytes(path.read_bytes() + b"\n# changed\n")


@pytest.mark.extra  # three processes that import a copy of the package
def test_trials_of_changed_code_are_not_known(copied_package, tmp_path):
    def known():
        done = subprocess.run(
            [sys.executable, "-c", ADD_OR_LIST, str(tmp_path / "trials.sqlite")],
            env=os.environ | {"PYTHONPATH": str(copied_package.parent)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return int(done.stdout)

    assert known() == 0
    change(copied_package / "cli" / "fit.py")
    assert known() == 1
    change(copied_package / "loop" / "auto_parameters.py")
    assert known() == 0


def test_every_file_that_numbers_come_from_is_in_the_version(copied_package):
    """Whatever is added to the package is, unless it is known to show results only."""
    names = ("experiments/trial.py",)
    (copied_package / "added.py").write_text("x = 1\n")

    def version():
        code_version_of.cache_clear()
        return code_version_of(*names, root=copied_package)

    versions, unseen = [version()], set()
    for path in sorted(copied_package.rglob("*.py")):
        change(path)
        versions.append(version())
        if versions[-1] == versions[-2]:
            unseen.add(path.relative_to(copied_package).as_posix())
    experiments = {name for name in unseen if name.startswith("experiments/")}
    shows = unseen - experiments
    assert all(name.startswith(PRESENTATION) for name in shows)
    assert all(any(name.startswith(part) for name in shows) for part in PRESENTATION)
    assert not experiments & {"experiments/protocol.py", "experiments/trial.py"}
    assert len(set(versions)) > 80


def test_imports_of_an_experiment_are_in_its_version(copied_package):
    names, new = ("experiments/trial.py",), copied_package / "experiments" / "added.py"
    trial = copied_package / "experiments" / "trial.py"
    trial.write_text(trial.read_text() + "\nfrom robustnmf.experiments import added\n")
    versions = set()
    for content in ("x = 1\n", "x = 2\n"):
        new.write_text(content)
        code_version_of.cache_clear()
        versions.add(code_version_of(*names, root=copied_package))
    assert len(versions) == 2


def test_arrays_are_kept_by_value(tmp_path):
    store = Store(tmp_path / "trials.sqlite")
    task = replace(TASK, values=(1.0,), starts=1)
    assert store.arrays(task) is None
    store.add_arrays(task, {"codes": np.arange(3.0)})
    np.testing.assert_array_equal(store.arrays(task)["codes"], np.arange(3.0))
    assert store.arrays(replace(task, values=(2.0,))) is None


def test_two_runs_at_once_do_not_get_in_the_way(tmp_path):
    path = tmp_path / "trials.sqlite"

    def write(start):
        Store(path).add(TASK, [scores(start=start, value=v) for v in (1.0, 2.0)])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(24)))
    assert len(Store(path).finished(TASK)) == 48


def test_a_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "trials.sqlite"
    path.write_bytes(b"this is no database, whatever its name says" * 40)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="cannot be used for trials"):
        Store(path)
    assert path.read_bytes() == before
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE people (name TEXT)")
    with pytest.raises(StoreError, match="another program"):
        Store(other)


def test_a_file_that_breaks_later_is_one_error(tmp_path):
    store = Store(tmp_path / "trials.sqlite")
    store.add(TASK, [scores(start=start) for start in range(99)])
    content = bytearray(store.path.read_bytes())
    content[4096:] = b"x" * (len(content) - 4096)
    store.path.write_bytes(bytes(content))
    with pytest.raises(StoreError, match="cannot be used for trials"):
        store.finished(TASK)


def test_a_full_disk_loses_the_batch_and_nothing_else(tmp_path, monkeypatch):
    store = Store(tmp_path / "trials.sqlite")
    store.add(TASK, [scores()])
    connect = sqlite3.connect

    def small(*arguments, **options):
        connection = connect(*arguments, **options)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(StoreError, match="full"):
        store.add(TASK, [scores(start=start) for start in range(1, 2000)])
    monkeypatch.setattr(sqlite3, "connect", connect)
    assert list(store.finished(TASK)) == [(1.0, 0)]
