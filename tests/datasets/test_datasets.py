"""Datasets: every way to load their data, and errors if there is none."""

from __future__ import annotations

import os
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.datasets

from robustnmf.datasets import (
    DATASETS,
    VARIABLE,
    DatasetError,
    DatasetNotFoundError,
    load_dataset,
)
from robustnmf.experiments.paper.tables import SIZES

MADE = [name for name, dataset in DATASETS.items() if dataset.made is not None]


@pytest.fixture
def bare(monkeypatch):
    """No files at hand."""
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.mark.parametrize("name", DATASETS)
def test_the_files_agree_with_the_catalogue(name):
    dataset = DATASETS[name]
    if dataset.made is None and dataset.path() is None:
        pytest.skip(f"{name}.npz is not in ROBUSTNMF_DATA")
    bunch = load_dataset(name, download=False)
    assert bunch.data.shape == (dataset.samples, dataset.features)
    assert bunch.data.dtype == np.float64
    assert sorted(set(bunch.target.tolist())) == list(range(dataset.classes))
    assert dataset.title in bunch.DESCR
    assert dataset.licence in bunch.DESCR
    if dataset.image_shape is not None:
        assert np.prod(dataset.image_shape) == dataset.features


def test_the_paper_has_nine_and_we_have_them_all():
    assert len(SIZES) == 9
    assert set(SIZES) <= set(DATASETS)


@pytest.mark.parametrize("name", MADE)
def test_some_need_no_file(name, bare):
    assert load_dataset(name, download=False).origin == "made here"


@pytest.mark.parametrize("name", [name for name in MADE if DATASETS[name].sha256])
def test_generated_data_agree_with_the_file(name):
    path = DATASETS[name].path()
    if path is None:
        pytest.skip(f"{name}.npz is not in ROBUSTNMF_DATA")
    from_file = load_dataset(name)
    assert from_file.origin == str(path)
    data, target = DATASETS[name].made()
    np.testing.assert_array_equal(from_file.data, data)
    np.testing.assert_array_equal(from_file.target, target)


def test_a_folder_goes_before_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    (tmp_path / "balance.npz").write_bytes(b"not this one")
    with pytest.raises(DatasetError, match="is not the file of the dataset balance"):
        load_dataset("balance")
    own = tmp_path / "own"
    own.mkdir()
    (own / "balance.npz").write_bytes(b"nor this one")
    with pytest.raises(DatasetError, match="own"):
        load_dataset("balance", own)


def test_data_that_are_not_here_are_explained(bare):
    with pytest.raises(DatasetNotFoundError) as raised:
        load_dataset("gtfd")
    message = str(raised.value)
    for part in ("gtfd.npz", "750 x 1024", DATASETS["gtfd"].source, VARIABLE, "data_dir"):
        assert part in message
    assert isinstance(raised.value, FileNotFoundError)


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="unknown dataset 'wine'"):
        load_dataset("wine")


def write_balance(tmp_path, **arrays):
    np.savez(tmp_path / "balance.npz", **arrays)


def test_a_pickle_is_never_loaded(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    write_balance(tmp_path, X=np.array([Trap()], dtype=object), y=np.zeros(1))
    with pytest.raises(DatasetError, match="allow_pickle"):
        load_dataset("balance", tmp_path)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.ones((625, 4))}, "y is not a file"),
        ({"X": np.ones((625, 4)), "y": np.zeros(625)}, "the digest of its content is"),
        ({"X": np.array([["a"]]), "y": np.zeros(625)}, "could not convert"),
        ({"X": np.zeros((2**20, 9)), "y": np.zeros(1)}, "it unpacks to 7549"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, arrays, message):
    write_balance(tmp_path, **arrays)
    with pytest.raises(DatasetError, match=f"is not the file of the dataset balance.*{message}"):
        load_dataset("balance", tmp_path)


def test_a_truncated_file_is_refused(tmp_path):
    write_balance(tmp_path, X=np.ones((625, 4)), y=np.zeros(625))
    path = tmp_path / "balance.npz"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DatasetError, match="is not the file of the dataset balance"):
        load_dataset("balance", tmp_path)


@pytest.mark.parametrize("shapes", [((625, 3), 625), ((625, 4), 624)])
def test_data_of_another_shape_are_refused(bare, shapes):
    data, target = map(np.ones, shapes)
    other = replace(DATASETS["balance"], made=lambda: (data, target))
    with pytest.raises(DatasetError, match="has shape"):
        other.load()


def test_tables_are_fetched_from_openml(bare, monkeypatch):
    def fetch(**arguments):
        assert arguments["data_id"] == 30
        labels = np.array(["5", "1", "2", "3", "4"])[np.arange(5473) % 5]
        return SimpleNamespace(data=np.ones((5473, 10)), target=labels)

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    bunch = load_dataset("page_blocks")
    assert bunch.origin == "downloaded"
    assert bunch.target[:5].tolist() == [4, 0, 1, 2, 3]


def test_faces_come_from_olivetti_and_are_halved(bare, monkeypatch):
    images = np.random.default_rng(0).random((400, 64, 64))
    faces = SimpleNamespace(images=images, target=np.repeat(np.arange(40), 10))
    monkeypatch.setattr(sklearn.datasets, "fetch_olivetti_faces", lambda **arguments: faces)
    bunch = load_dataset("orl")
    face = bunch.data[3].reshape(bunch.image_shape, order="F")
    assert face[5, 7] == np.rint(255 * images[3, 10:12, 14:16].mean())


def test_a_failed_download_names_the_source(bare, monkeypatch):
    def fetch(**arguments):
        raise ConnectionError("no route")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    with pytest.raises(DatasetNotFoundError, match="no route"):
        load_dataset("winequality_red")
    with pytest.raises(DatasetNotFoundError, match=r"winequality_red\.npz"):
        load_dataset("winequality_red", download=False)
