"""Codes in a file give the same results as codes in memory."""

import os

import numpy as np
import pytest
from sklearn.utils._testing import ignore_warnings

from robustnmf import ConvexNMF, HuberRNMF, RobustNMF
from robustnmf.engine import stored
from tests.problems import noisy_low_rank

X = noisy_low_rank(300, 20, 4, outliers=15)
MODELS = {
    "trimmed": RobustNMF(4),
    "random": RobustNMF(4, init="random"),
    "several starts": RobustNMF(4, weighting="entropy", init="random", n_init=3, tol=1e-3),
    "multiplicative": RobustNMF(4, solver="mu", weighting="l21", init="random"),
    "extrapolated": RobustNMF(4, loss="kullback-leibler", weighting="l21", init="random"),
    "entries": HuberRNMF(4),
}


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(stored, "BLOCK_BYTES", 70 * 20 * 8)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, X)
    return path


@pytest.fixture
def slots(monkeypatch):
    """How many slots a block has after each of its visits."""
    counts = []
    put = stored.CodesStore._put

    def counted(self, block, *arguments):
        handle = put(self, block, *arguments)
        counts.append(len(self.taken[block]))
        return handle

    monkeypatch.setattr(stored.CodesStore, "_put", counted)
    return counts


@ignore_warnings
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", MODELS)
def test_codes_equal_codes_in_memory_and_take_at_most_three_slots(name, table, tmp_path, slots):
    """Codes of a pass, of the pass before, and new codes; starts need no more."""
    model = MODELS[name].set_params(random_state=0, max_iter=30)
    expected, components = model.fit_transform(table), model.components_
    assert not slots
    codes = model.fit_transform(table, codes_path=tmp_path / "codes.npy")
    assert isinstance(codes, np.memmap)
    np.testing.assert_allclose(model.components_, components, rtol=1e-10)
    np.testing.assert_allclose(codes, expected, rtol=1e-10)
    np.testing.assert_array_equal(np.load(tmp_path / "codes.npy"), codes)
    assert sorted(os.listdir(tmp_path)) == ["codes.npy", "x.npy"]
    assert 1 < max(slots) <= 3


@ignore_warnings
@pytest.mark.usefixtures("small_blocks")
def test_no_codes_remain_in_memory(table, tmp_path, monkeypatch):
    largest = []
    visited = stored.CodesStore.visited

    def spied(self, *arguments):
        kept, part = visited(self, *arguments)
        found = []
        stored.mapped(kept, lambda x: isinstance(x, np.ndarray), found.append)
        largest.extend(array.shape for array in found)
        return kept, part

    monkeypatch.setattr(stored.CodesStore, "visited", spied)
    RobustNMF(4, random_state=0, max_iter=30).fit(table, codes_path=tmp_path / "codes.npy")
    assert largest
    assert not any(len(shape) == 3 or shape[-1] == 4 for shape in largest)


def test_slots_are_reused(tmp_path):
    places = stored.CodesStore(tmp_path, [3, 2], 16)

    def store(block, codes, local=None):
        return places.visited(block, lambda block, local: (codes, None), None, local)[0]

    codes = np.arange(6.0).reshape(1, 3, 2)
    handle, other = store(0, codes), store(1, 10 * codes[:, :2])
    back, again = places.loaded((handle, other))
    np.testing.assert_array_equal(back, codes)
    np.testing.assert_array_equal(again, 10 * codes[:, :2])
    assert places.visited(0, lambda block, local: (local, None), None, handle)[0] is handle
    assert places.taken == [{0}, {0}]
    new = store(0, codes + 1)
    assert places.taken[0] == {0, 1}
    del handle
    assert places.taken[0] == {1}
    assert store(0, codes + 2).slot == 0
    np.testing.assert_array_equal(places.loaded(new), codes + 1)
    places.close()


@ignore_warnings
def test_codes_of_x_in_memory_are_written_as_well(tmp_path):
    model = RobustNMF(4, random_state=0)
    expected = model.fit_transform(X)
    codes = model.fit_transform(X, codes_path=str(tmp_path / "codes.npy"))
    np.testing.assert_array_equal(codes, expected)


@ignore_warnings
@pytest.mark.usefixtures("small_blocks")
def test_with_a_checkpoint(table, tmp_path):
    model = RobustNMF(4, random_state=0, max_iter=30)
    expected = model.fit_transform(table)
    places = {"codes_path": tmp_path / "codes.npy", "checkpoint": tmp_path / "c"}
    codes = model.fit_transform(table, checkpoint_every=0.0, **places)
    np.testing.assert_allclose(codes, expected, rtol=1e-10)


@ignore_warnings
def test_fit_with_as_many_members_as_rows(tmp_path, monkeypatch):
    """Energies (members, rows) must not be confused with codes (rows, k)."""
    monkeypatch.setattr(stored, "BLOCK_BYTES", 20 * 8 * 6)
    np.save(tmp_path / "x.npy", X[:12])
    for model in (RobustNMF(2, n_init=6, init="random"), HuberRNMF(3)):
        model.set_params(random_state=0, max_iter=20)
        expected = model.fit_transform(X[:12])
        np.testing.assert_allclose(model.fit_transform(tmp_path / "x.npy"), expected, rtol=1e-6)
    np.save(tmp_path / "one.npy", X[:1])
    RobustNMF(1, init="random", random_state=0).fit(tmp_path / "one.npy")


@ignore_warnings
def test_codes_do_not_overwrite_data(table, tmp_path):
    for data in (table, np.load(table, mmap_mode="r")):
        with pytest.raises(ValueError, match="the file of X"):
            RobustNMF(4).fit(data, codes_path=table)
    with pytest.raises(ValueError, match="the file of the checkpoint"):
        RobustNMF(4).fit(table, codes_path=tmp_path / "c", checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(np.load(table), X)


@ignore_warnings
def test_bad_paths_raise_errors(tmp_path):
    with pytest.raises(FileNotFoundError, match="codes_path is"):
        RobustNMF(4).fit(X, codes_path=tmp_path / "nowhere" / "codes.npy")
    with pytest.raises(FileNotFoundError, match="a file in a folder"):
        RobustNMF(4).fit(X, codes_path=tmp_path)
    with pytest.raises(TypeError, match="the path of a file"):
        RobustNMF(4).fit(X, codes_path=3)
    with pytest.raises(ValueError, match="mix all samples"):
        ConvexNMF(4).fit(X, codes_path=tmp_path / "codes.npy")


@ignore_warnings
@pytest.mark.usefixtures("small_blocks")
def test_a_failed_write_leaves_the_file_unchanged(table, tmp_path, monkeypatch):
    (tmp_path / "codes.npy").write_text("precious")

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(stored, "in_parts", full)
    model = RobustNMF(4, random_state=0, max_iter=5)
    with pytest.raises(OSError, match="no space"):
        model.fit(table, codes_path=tmp_path / "codes.npy")
    assert (tmp_path / "codes.npy").read_text() == "precious"
    assert sorted(os.listdir(tmp_path)) == ["codes.npy", "x.npy"]
    assert not hasattr(model, "components_")
