"""Files of datasets made from those of their publishers, which are written here in their forms."""

import numpy as np
import pytest
from scipy.io import savemat

from robustnmf.cli import main
from robustnmf.datasets import DATASETS, VARIABLE, DatasetError, DatasetNotFoundError, load_dataset
from robustnmf.datasets._base import content_digest
from robustnmf.datasets._publisher_files import from_face_images

FILED = [name for name, dataset in DATASETS.items() if dataset.sha256]


def numbers(row):
    return [f"{value:g}" if value == float(f"{value:g}") else repr(float(value)) for value in row]


def lines(rows, separator):
    return "".join(separator.join(row) + "\n" for row in rows)


def write_files(name, bunch, folder):
    """Write data in the form of the publisher; return the paths."""
    X, y = bunch.data, bunch.target
    names = DATASETS[name].files.split()
    paths = [folder / file for file in names]
    if name in ("yale", "orl"):
        savemat(paths[0], {"fea": X.astype(np.uint8), "gnd": (y + 1)[:, None]})
    elif name == "dimdata":
        savemat(paths[0], {"A": X, "d": np.where(y == 1, 1, -1)[:, None], "scalefac": 575.0})
    elif name.startswith("winequality"):
        head = ";".join(f'"feature {i}"' for i in range(12)) + "\n"
        rows = ([*numbers(x), str(label + 3)] for x, label in zip(X, y, strict=True))
        paths[0].write_text(head + lines(rows, ";"))
    elif name == "balance":
        rows = (["BLR"[label], *numbers(x)] for x, label in zip(X, y, strict=True))
        paths[0].write_text(lines(rows, ","))
    elif name == "wdbc":
        rows = ([f"84{i}", "BM"[y[i]], *numbers(x)] for i, x in enumerate(X))
        paths[0].write_text(lines(rows, ","))
    elif name == "page_blocks":
        rows = (["", *numbers(x), str(label + 1)] for x, label in zip(X, y, strict=True))
        paths[0].write_text(lines(rows, "   "))
    else:
        assert name == "thyroid"
        for path, part in zip(paths, (slice(3772), slice(3772, None)), strict=True):
            rows = (
                [*numbers(x), f"{label + 1} "] for x, label in zip(X[part], y[part], strict=True)
            )
            path.write_text(lines(rows, " "))
    return paths


@pytest.mark.parametrize("name", [name for name in FILED if name != "gtfd"])
def test_files_of_publishers_become_the_dataset(name, tmp_path, monkeypatch, capsys):
    if DATASETS[name].made is None and DATASETS[name].path() is None:
        pytest.skip(f"{name}.npz is not in ROBUSTNMF_DATA")
    bunch = load_dataset(name, download=False)
    paths = write_files(name, bunch, tmp_path)
    out = tmp_path / "out"
    # Whatever the order of the files.
    arguments = ["datasets", "convert", name, *map(str, reversed(paths)), "-o", str(out)]
    assert main(arguments) == 0
    assert capsys.readouterr().out.strip() == str(out / f"{name}.npz")
    monkeypatch.delenv(VARIABLE, raising=False)
    converted = load_dataset(name, out)
    assert converted.origin == str(out / f"{name}.npz")
    np.testing.assert_array_equal(converted.data, bunch.data)
    np.testing.assert_array_equal(converted.target, bunch.target)


def test_other_data_are_refused(tmp_path):
    path = tmp_path / "balance-scale.data"
    path.write_text("B,1,1,1,1\nL,2,1,1,1\n")
    with pytest.raises(DatasetError, match="2 samples with 4 features, but their digest"):
        DATASETS["balance"].convert([path], tmp_path)
    path.write_text("B,1,1,1,1\nL,2,1,1\n")
    with pytest.raises(DatasetError, match="different numbers of columns"):
        DATASETS["balance"].convert([path], tmp_path)
    path.write_text("X,1,1,1,1\n")
    with pytest.raises(DatasetError, match="not the original file"):
        DATASETS["balance"].convert([path], tmp_path)
    path.write_text("B,1\n")
    with pytest.raises(DatasetError, match="digest"):
        DATASETS["balance"].convert([path], tmp_path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DatasetError, match="not a text file"):
        DATASETS["balance"].convert([path], tmp_path)
    with pytest.raises(DatasetError, match="not the original MATLAB file"):
        DATASETS["yale"].convert([path], tmp_path)
    with pytest.raises(DatasetError, match="one file is needed, but 2"):
        DATASETS["yale"].convert([path, path], tmp_path)
    (tmp_path / "page-blocks.data.Z").write_bytes(b"")
    with pytest.raises(DatasetError, match="Unpack it first"):
        DATASETS["page_blocks"].convert([tmp_path / "page-blocks.data.Z"], tmp_path)
    with pytest.raises(DatasetNotFoundError, match="there is no file"):
        DATASETS["wdbc"].convert([tmp_path / "wdbc.data"], tmp_path)
    with pytest.raises(DatasetError, match="needs no file"):
        DATASETS["digits"].convert([path], tmp_path)
    assert not list(tmp_path.glob("*.npz"))


def test_faces_are_sorted_by_person_and_number(tmp_path):
    Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    folder = tmp_path / "crops"
    (folder / "s02").mkdir(parents=True)
    for place, grey in (("s10_01.png", 40), ("s02/01.png", 20), ("s02/02.png", 30)):
        Image.fromarray(np.full((60, 50, 3), grey, dtype=np.uint8)).save(folder / place)
    data, labels = from_face_images(8, 6)([folder])
    assert data.shape == (3, 48)
    assert data[:, 0].tolist() == [20, 30, 40]
    assert labels.tolist() == [0, 0, 1]
    ramp = np.repeat(np.arange(0, 240, 4, dtype=np.uint8)[:, None], 50, axis=1)
    Image.fromarray(ramp).save(folder / "s01_01.png")
    first = from_face_images(8, 6)([folder])[0][0].reshape((8, 6), order="F")
    assert (np.diff(first, axis=0) > 0).all()
    Image.fromarray(ramp).save(folder / "face.png")
    with pytest.raises(DatasetError, match="does not have a person and a number"):
        from_face_images(8, 6)([folder])
    with pytest.raises(DatasetError, match="is an image"):
        from_face_images(8, 6)([tmp_path / "out"])


def test_digests_are_of_content():
    one = content_digest(np.ones((2, 3), dtype=np.uint8), np.array([0, 1], dtype=np.uint8))
    assert one == content_digest(np.ones((2, 3)), np.array([0, 1]))
    assert one != content_digest(np.ones((3, 2)), np.array([0, 1]))


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "balance.npz", X=np.zeros((2**21, 5)), y=np.zeros(1))
    with pytest.raises(DatasetError, match="is not the file of the dataset"):
        load_dataset("balance", tmp_path)
