"""Texts and Parquet files that are too large for memory give what memory gives."""

import gzip
import json

import numpy as np
import pytest

from robustnmf.cli import main
from robustnmf.tables import StoredRows, _frame, _table, read_table
from tests.problems import noisy_low_rank

pd = pytest.importorskip("pandas", reason="tables need the packages of the extra cli")


@pytest.fixture
def small_memory(monkeypatch):
    """Make every table too large for memory, and blocks of four rows."""
    monkeypatch.setattr(_table, "memory_of_machine", lambda: 100)
    monkeypatch.setattr(_frame, "BLOCK_CELLS", 1)
    monkeypatch.setattr(_frame, "MIN_ROWS", 4)


@pytest.fixture
def frame():
    frame = pd.DataFrame(noisy_low_rank(30, 4, 2).round(3), columns=list("abca"))
    frame.insert(0, "id", [f"{i:03}" for i in range(30)])
    frame["kind"] = ["x", "y"] * 15
    frame["day"] = "2020-01-01"
    return frame


def texts(frame):
    """Return several forms of a table by the name of its file."""
    plain = frame.to_csv(index=False)
    lines = plain.splitlines()
    lines[12] = lines[12].replace(lines[12].split(",")[1], "<LOD")
    return {
        "plain.csv": plain,
        "no_ids.csv": frame.drop(columns="id").to_csv(index=False),
        "rows.tsv": frame.set_index("id").to_csv(sep="\t").replace("id\t", "", 1),
        "german.csv": frame.to_csv(index=False, sep=";", decimal=","),
        "empty.csv": plain + "\n,,,,,,\n,,,,,,\n",
        "missing.csv": "\n".join(lines),
        "short.csv": "\n".join([*lines[:20], "s,1.5", *lines[20:]]),
        "numbers.csv": frame[["b", "c"]].to_csv(index=False, header=False),
        "quotes.txt": '# a "b\n# c\n' + frame[["b", "c"]].to_csv(index=False, sep=" "),
        "spaces.txt": frame[["b", "c"]].to_csv(index=False, sep=" "),
    }


NAMES = ["plain.csv", "no_ids.csv", "rows.tsv", "german.csv", "empty.csv", "missing.csv",
         "short.csv", "numbers.csv", "spaces.txt", "quotes.txt"]  # fmt: skip


def check_same(path, request, **options):
    whole = read_table(path, **options)
    request.getfixturevalue("small_memory")
    table = read_table(path, scratch=path.parent, **options)
    assert isinstance(table.data, StoredRows)
    np.testing.assert_array_equal(np.concatenate(list(table.data.blocks())), whole.data)
    assert list(table.ids) == list(whole.ids)
    assert list(table.features) == list(whole.features)
    for name in ("left_out", "made_missing", "short_lines", "text_format", "repeated", "named"):
        assert getattr(table, name) == getattr(whole, name)
    assert table.notes[0] == whole.notes[0]
    assert "the first 4 rows decided which columns hold numbers" in " ".join(table.notes)
    if whole.colors is not None:
        np.testing.assert_array_equal(table.colors, whole.colors)
    return table


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("compressed", [False, True])
def test_texts(name, compressed, frame, tmp_path, request):
    path = tmp_path / (name + ".gz" * compressed)
    content = texts(frame)[name].encode()
    path.write_bytes(gzip.compress(content, mtime=0) if compressed else content)
    check_same(path, request)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("index", [False, True])
def test_parquet(index, frame, tmp_path, request):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    frame.columns = ["id", "a", "b", "c", "d", "kind", "day"]
    frame.loc[20, "b"] = np.nan
    frame = frame.set_index("id") if index else frame
    frame.to_parquet(tmp_path / "t.parquet")
    check_same(tmp_path / "t.parquet", request, color_by="kind")


def test_parquet_with_a_range_as_index(frame, tmp_path, request):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    frame.columns = ["id", "a", "b", "c", "d", "kind", "day"]
    frame.index = pd.RangeIndex(10, 70, 2)
    frame.drop(columns="id").to_parquet(tmp_path / "t.parquet")
    assert list(check_same(tmp_path / "t.parquet", request).ids[:2]) == ["10", "12"]


@pytest.mark.parametrize("line", ['# a 5 "b', '"sep= '])
def test_quotes_before_a_table_hide_no_samples(line, tmp_path):
    path = tmp_path / "t.txt"
    path.write_text(f"{line}\n1 2\n3 4\n5 6.5\n")
    assert read_table(path).data.tolist() == [[1, 2], [3, 4], [5, 6.5]]


def test_lines_are_counted_from_the_beginning_of_the_file(tmp_path):
    lines = ["# a", "# b", "a,b", *["1,2"] * 200, "1,2,3"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=f"in line {len(lines)}"):
        read_table(tmp_path / "t.csv")


def test_colours_and_columns(frame, tmp_path, request):
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = check_same(tmp_path / "t.csv", request, color_by="kind", columns=["a*", "c"])
    assert table.features == ["a", "c", "a.1"]
    assert table.data.take(np.array([2])).shape == (1, 3)


def test_a_turned_table_is_read_whole(frame, tmp_path, small_memory):
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert read_table(tmp_path / "t.csv", transpose=True).data.shape == (4, 30)


def test_texts_without_numbers_or_rows(tmp_path, small_memory):
    for text in ("a,b\nx,y\nx,y\n", "a,b\n"):
        (tmp_path / "t.csv").write_text(text)
        with pytest.raises(ValueError, match="holds no numbers"):
            read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("scale", ["none", "robust"])
def test_the_commands_give_what_memory_gives(scale, tmp_path, request):
    pytest.importorskip("plotly", reason="tables need the packages of the extra cli")
    X = noisy_low_rank(60, 5, 2, outliers=4)
    pd.DataFrame(X, columns=list("abcde")).to_csv(tmp_path / "t.csv", index=False)
    pd.DataFrame(X[:, ::-1], columns=list("edcba")).to_csv(tmp_path / "new.csv", index=False)
    results = []
    for name in ("memory", "blocks"):
        if name == "blocks":
            request.getfixturevalue("small_memory")
        out = tmp_path / name
        arguments = [str(tmp_path / "t.csv"), "-k", "2", "--scale", scale, "-o", str(out)]
        assert main(["fit", *arguments, "--quiet"]) == 0
        arguments = [str(out / "model.rnmf"), str(tmp_path / "new.csv"), "-o", str(out / "n.csv")]
        assert main(["transform", *arguments]) == 0
        assert any("temporary file" in note
                   for note in json.loads((out / "run.json").read_text())["notes"]) == (
            name == "blocks")  # fmt: skip
        results.append([pd.read_csv(out / file)["energy"] for file in ("samples.csv", "n.csv")])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-9)
