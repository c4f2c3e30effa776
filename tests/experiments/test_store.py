"""The file of trials: nothing twice, nothing half, nothing of somebody else."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from robustnmf.experiments import store as stores
from robustnmf.experiments.protocol import PROTOCOL
from robustnmf.experiments.store import Store, StoreError, code_version
from robustnmf.experiments.trial import Scores, Task

TASK = Task("wdbc", "EWRNMF", 0.05, starts=99, values=(1.0, 2.0, "auto"))


def scores(value=1.0, start=0, accuracy=0.5):
    return Scores(value, start, accuracy, 0.25, 10.0, 0.5, 2, -1.5, 0.1, "CPU")


def test_what_is_added_is_known(tmp_path):
    store = Store(tmp_path / "new" / "trials.sqlite")
    assert store.known(TASK) == {}
    added = [scores(), scores("auto", 3)]
    store.add(TASK, added)
    assert Store(store.path).known(TASK) == {(s.value, s.start): s for s in added}
    assert [found for _, found in store.rows([TASK])].count(added[0]) == 1


@pytest.mark.parametrize(
    "other",
    [
        replace(TASK, dataset="balance"),
        replace(TASK, method="FWRNMF"),
        replace(TASK, noise=0.1),
        replace(TASK, subset=(2, 0)),
        replace(TASK, protocol=PROTOCOL.but(iterations=7)),
        replace(TASK, protocol=PROTOCOL.but(codes="raw")),
        replace(TASK, protocol=PROTOCOL.but(scaling=(("wdbc", "raw"),))),
    ],
)
def test_trials_of_another_specification_are_others(tmp_path, other):
    store = Store(tmp_path / "trials.sqlite")
    store.add(TASK, [scores()])
    assert store.known(other) == {}


def test_more_starts_or_values_are_the_same_task(tmp_path):
    store = Store(tmp_path / "trials.sqlite")
    store.add(TASK, [scores()])
    more = replace(TASK, starts=2, values=(1.0, 5.0))
    assert list(store.known(more)) == [(1.0, 0)]


def test_only_what_a_task_asks_for_is_known(tmp_path):
    store = Store(tmp_path / "trials.sqlite")
    store.add(TASK, [scores(value, start) for value in (1.0, 2.0) for start in range(5)])
    fewer = replace(TASK, starts=2, values=(2.0,))
    assert set(store.known(fewer)) == {(2.0, 0), (2.0, 1)}
    assert len(list(store.rows([fewer]))) == 2


def test_trials_of_other_code_are_not_known(tmp_path, monkeypatch):
    store = Store(tmp_path / "trials.sqlite")
    store.add(TASK, [scores()])
    monkeypatch.setattr(stores, "code_version", lambda: "older")
    assert store.known(TASK) == {}
    assert code_version().startswith("0.")


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
    assert len(Store(path).known(TASK)) == 48


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
    with pytest.raises(StoreError, match="something else"):
        Store(other)


def test_a_file_that_breaks_later_is_one_error(tmp_path):
    store = Store(tmp_path / "trials.sqlite")
    store.add(TASK, [scores(start=start) for start in range(99)])
    content = bytearray(store.path.read_bytes())
    content[4096:] = b"x" * (len(content) - 4096)
    store.path.write_bytes(bytes(content))
    with pytest.raises(StoreError, match="cannot be used for trials"):
        store.known(TASK)


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
    assert list(store.known(TASK)) == [(1.0, 0)]
