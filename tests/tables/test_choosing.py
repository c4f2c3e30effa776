"""What of a file is data: columns, colours, layers, transposed and large tables, scales."""

import os

import numpy as np
import pytest
import scipy.sparse

from robustnmf import RobustNMF
from robustnmf.tables import StoredRows, _table, read_table, scale_features
from robustnmf.tables._table import NumberedNames, Table, feature_scales, make_unique
from tests.problems import noisy_low_rank

pytest.importorskip("pandas", reason="tables need the packages of the extra cli")

TEXT = "id,mz_1,mz_2,rt,kind,dose\na,1,2,3,x,0.5\nb,4,5,6,y,1\nc,7,8,9,x,2\n"


@pytest.fixture
def path(tmp_path):
    (tmp_path / "t.csv").write_text(TEXT)
    return tmp_path / "t.csv"


@pytest.mark.parametrize(
    ("columns", "features"),
    [
        (["mz_*"], ["mz_1", "mz_2"]),
        (["rt", "mz_1"], ["mz_1", "rt"]),
        (["mz_?", "dose"], ["mz_1", "mz_2", "dose"]),
    ],
)
def test_features_are_chosen_by_name(path, columns, features):
    table = read_table(path, columns=columns)
    assert table.features == features
    assert table.data.shape == (3, len(features))
    assert table.losses == []
    assert f"{len(features)} of 4 features, by --columns" in table.notes


@pytest.mark.parametrize(
    ("columns", "message"), [(["kind"], "holds no numbers"), (["mass"], "the features are 'mz_1'")]
)
def test_columns_that_are_no_features_are_refused(path, columns, message):
    with pytest.raises(ValueError, match=message):
        read_table(path, columns=columns)


def test_repeated_names_are_numbered_with_numbers_that_are_free(tmp_path):
    assert make_unique(["g", "g", "g.1"])[0] == ["g", "g.2", "g.1"]
    assert make_unique(["g", "g.1", "g", "g.1", "g"])[0] == ["g", "g.1", "g.2", "g.1.1", "g.3"]
    assert make_unique(["g", "g", "g.1"])[1] == {"g"}
    (tmp_path / "r.csv").write_text("g,g,g.1\n1,2,3\n4,5,6\n")
    table = read_table(tmp_path / "r.csv", columns=["g.1"])
    assert table.data.tolist() == [[3], [6]]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_is_no_table(tmp_path):
    os.mkfifo(tmp_path / "t.csv")
    with pytest.raises(ValueError, match="a regular file is needed"):
        read_table(tmp_path / "t.csv")


def test_the_column_of_colours_is_no_feature(path):
    table = read_table(path, color_by="kind")
    assert list(table.colors) == ["x", "y", "x"]
    table = read_table(path, color_by="dose")
    assert table.colors.tolist() == [0.5, 1.0, 2.0]
    assert table.features == ["mz_1", "mz_2", "rt"]
    with pytest.raises(ValueError, match="there is no column 'sex'"):
        read_table(path, color_by="sex")
    np.save(path.with_suffix(".npy"), np.ones((3, 2)))
    with pytest.raises(ValueError, match="have no names"):
        read_table(path.with_suffix(".npy"), color_by="kind")


def test_a_table_is_transposed(path):
    table = read_table(path, transpose=True)
    assert table.data.shape == (4, 3)
    assert list(table.ids) == ["mz_1", "mz_2", "rt", "dose"]
    assert list(table.features) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="columns are samples"):
        read_table(path, transpose=True, color_by="kind")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("t.xlsx", "save the sheet as CSV"), ("t.pkl", "may run code"), ("t.rds", "write.csv"),
        ("t.mat", "writematrix"),
    ],
)  # fmt: skip
def test_files_that_are_not_read_are_named_with_what_to_do(tmp_path, name, message):
    (tmp_path / name).write_bytes(b"PK\x03\x04")
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / name)


def test_layers_need_anndata(path):
    with pytest.raises(ValueError, match="only AnnData files have layers"):
        read_table(path, layer="counts")


@pytest.mark.parametrize("suffix", [".npy", ".h5"])
def test_a_table_larger_than_memory_stays_in_its_file(tmp_path, monkeypatch, suffix):
    X = noisy_low_rank(60, 8, 2, outliers=4)
    path = tmp_path / f"x{suffix}"
    if suffix == ".npy":
        np.save(path, X)
    else:
        h5py = pytest.importorskip("h5py", reason="HDF5 needs h5py")
        with h5py.File(path, "w") as file:
            file["x"] = X
    whole = read_table(path)
    monkeypatch.setattr(_table, "memory_of_machine", lambda: 1000)
    table = read_table(path)
    assert isinstance(table.data, StoredRows)
    np.testing.assert_array_equal(table.data.take(np.array([5, 2, 5])), X[[5, 2, 5]])
    models = [RobustNMF(2, random_state=0).fit(data) for data in (whole.data, table.data)]
    np.testing.assert_allclose(models[0].components_, models[1].components_, rtol=1e-6)
    scaled, scale = scale_features(table, "robust", 0)
    np.testing.assert_allclose(scale, feature_scales(X, "robust"))
    np.testing.assert_allclose(np.concatenate(list(scaled.data.blocks())), X / scale)
    np.testing.assert_allclose(scaled.data.take(np.array([3])), X[[3]] / scale)
    with pytest.raises(ValueError, match="needs the table in memory"):
        read_table(path, transpose=True)
    chosen = read_table(path, columns=["1", "5"])
    blocks = list(scale_features(chosen, "max", 0)[0].data.choose([1, 0]).blocks())
    np.testing.assert_allclose(np.concatenate(blocks), (X / X.max(axis=0))[:, [5, 1]])


@pytest.mark.parametrize("kind", ["max", "std", "robust"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_scales_are_those_of_dense_columns(kind, is_sparse):
    X = noisy_low_rank(50, 5, 2) * [1, 10, 100, 0, 1]
    X[:, 4] = 0
    X[7, 4] = 3  # mostly zero
    expected = {
        "max": X.max(axis=0), "std": X.std(axis=0),
        "robust": np.quantile(X, 0.75, axis=0) - np.quantile(X, 0.25, axis=0),
    }[kind]  # fmt: skip
    expected = np.where(expected > 0, expected, [1, 1, 1, 1, 3])
    data = scipy.sparse.csr_array(X) if is_sparse else X.copy()
    names = NumberedNames(range(5))
    table, scale = scale_features(Table(data, NumberedNames(range(50)), names), kind, 0)
    np.testing.assert_allclose(scale, expected)
    scaled = table.data.toarray() if is_sparse else table.data
    np.testing.assert_allclose(scaled, X / scale)


def test_missing_values_do_not_change_scales():
    X = noisy_low_rank(40, 3, 2)
    X[::7, 1] = np.nan
    X[:, 2] = np.nan
    scales = feature_scales(X, "robust")
    low, high = np.nanquantile(X[:, 1], [0.25, 0.75])
    assert scales[1] == pytest.approx(high - low)
    assert scales[2] == 1


def test_numbered_names_are_a_sequence():
    names = NumberedNames(range(4))
    assert names == list("0123")
    assert names[1:3] == ["1", "2"]
    assert "3" in names
    assert names != 5


def test_losses_of_a_transposed_table_are_those_of_its_samples(tmp_path):
    (tmp_path / "a.csv").write_text("gene,s1,s2,s3,s4\nA,1,<0.5,3,x\nB,4,5,6,y\nC,7,8,9,z\n")
    whole, chosen = (
        read_table(tmp_path / "a.csv", transpose=True, columns=columns) for columns in (None, ["*"])
    )
    assert chosen.left_out == whole.left_out
    assert chosen.made_missing == whole.made_missing
