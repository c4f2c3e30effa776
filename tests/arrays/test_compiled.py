"""Compiled loops that are kept in files are those of their signature."""

import numpy as np
import pytest
from numba import config
from numba.core.base import BaseContext
from numba.core.caching import IndexDataCacheFile

from robustnmf.arrays.kernels.compiled import compiled

TABLE = np.arange(8.0)
VIEWS = {"contiguous": TABLE[:4], "strided": TABLE[::2], "float32": TABLE.astype(np.float32)[:4]}


def _copy(values, out):
    for i in range(len(values)):
        out[i] = values[i]


def _call(process, view):
    out = np.empty(4)
    process(view, out)
    return out


@pytest.fixture
def new_process(tmp_path, monkeypatch):
    """Returns a function that compiles the loop as a new process would, with common files."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    return lambda: compiled()(_copy)


@pytest.mark.parametrize("second", ["strided", "float32"])
def test_a_process_that_ends_while_it_writes_leaves_no_wrong_loop(new_process, monkeypatch, second):
    """Both saw no files before; the second ends before its own is written."""

    def end(self, name, data):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(IndexDataCacheFile, "_load_index", lambda self: {})
        _call(new_process(), VIEWS["contiguous"])
        patch.setattr(IndexDataCacheFile, "_save_data", end)
        with pytest.raises(KeyboardInterrupt):
            _call(new_process(), VIEWS[second])
    for view in VIEWS.values():
        np.testing.assert_array_equal(_call(new_process(), view), view)


def test_every_signature_is_compiled_once(new_process, tmp_path):
    for process in (new_process(), new_process()):
        for view in VIEWS.values():
            np.testing.assert_array_equal(_call(process, view), view)
    assert sum(process.stats.cache_hits.values()) == len(VIEWS)
    assert len(list(tmp_path.rglob("*.nbc"))) == len(VIEWS)
    assert not list(tmp_path.rglob("*.nbi"))


def test_kept_loops_need_nothing_of_the_compiler(new_process, monkeypatch):
    _call(new_process(), VIEWS["contiguous"])
    monkeypatch.setattr(BaseContext, "refresh", None)  # a call fails
    np.testing.assert_array_equal(_call(new_process(), VIEWS["contiguous"]), VIEWS["contiguous"])


def test_files_of_another_version_are_removed(new_process, tmp_path, monkeypatch):
    _call(new_process(), VIEWS["contiguous"])
    (old,) = tmp_path.rglob("*.nbc")
    process = new_process()
    files = process._cache._cache_file
    files._prefix = files._prefix[:-1] + "x"  # as if the source had changed
    _call(process, VIEWS["contiguous"])
    (new,) = tmp_path.rglob("*.nbc")
    assert new != old
