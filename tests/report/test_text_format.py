"""Tables in texts of all kinds: separators, decimal marks, thousands, encodings; old AnnData."""

import json

import numpy as np
import pytest

from robustnmf.cli import main
from robustnmf.tables import read_table, to_number
from robustnmf.tables._frame import detect_decimal
from robustnmf.tables._text import detect_encoding, detect_separator
from tests.problems import noisy_low_rank

pd = pytest.importorskip("pandas", reason="tables need the packages of the extra cli")
pytest.importorskip("plotly", reason="tables need the packages of the extra cli")


@pytest.mark.parametrize(
    ("text", "point", "comma"),
    [
        ("1.5", 1.5, None),
        ("2,5", None, 2.5),
        ("1,234", 1234, 1.234),
        ("1.234", 1.234, 1234),
        ("1,234.5", 1234.5, None),
        ("1.234,5", None, 1234.5),
        ("1,234,567", 1234567, None),
        ("1 234,5", None, 1234.5),
        ("1\u202f234.5", 1234.5, None),
        ("1'234.5", 1234.5, None),
        ("0,123", None, 0.123),
        ("-12", -12, -12),
        ("1e-3", 1e-3, 1e-3),
        ("1,688E+04", None, 16880),
        (".5", 0.5, None),
        ("1,23,4", None, None),
        ("1,234 567", None, None),
        ("12,34.5", None, None),
        ("1_000", None, None),
        ("<0.5", None, None),
        ("01.02.2020", None, None),
        ("", None, None),
        ("-inf", -np.inf, -np.inf),
    ],
)
def test_numbers_in_texts(text, point, comma):
    assert to_number(text, ".") == point
    assert to_number(text, ",") == comma


def test_what_is_in_doubt_is_decided_by_the_separator():
    assert detect_decimal(["a", "1.5", "1,234"], ";") == (".", False)
    assert detect_decimal(["a", "2,5", "1.234"], ",") == (",", False)
    assert detect_decimal(["1,234"], ";") == (",", True)
    assert detect_decimal(["1,234"], ",") == (".", True)
    assert detect_decimal(["1.234"], ";") == (".", True)


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2,5\n", ";"),
        ("1,5;2,5\n3,5;4,5\n", ";"),
        ("a\tb\n1,5\t2\n", "\t"),
        ("a|b\n1|2\n", "|"),
        ('name,b\n"x;y",2\n"z;w",3\n', ","),
        ("a\n1\n2\n", ","),
    ],
)
def test_separators_are_detected(text, separator):
    assert detect_separator(text.splitlines(keepends=True), ",") == separator


def test_encodings_are_detected():
    text = "größe,b\n1,2\n" * 1000
    assert detect_encoding([text.encode()[:2], text.encode()[2:]]) == "utf-8-sig"
    assert detect_encoding([text.encode(), b"\xc3"]) == "cp1252"  # ends within a character
    assert detect_encoding([text.encode("cp1252")]) == "cp1252"
    assert detect_encoding([text.encode("latin-1"), b"\x81"]) == "latin-1"
    assert detect_encoding([text.encode("utf-16")]) == "utf-16"
    with pytest.raises(ValueError, match="not text"):
        detect_encoding([b"a,b\n", b"1,\x002\n"])


READ = {
    "semicolons, commas": ("id;a;b\ns1;1,5;1.234,5\ns2;2;0,25\n", [[1.5, 1234.5], [2, 0.25]]),
    "semicolons, points": ("id;a;b\ns1;1.5;3\ns2;2.25;4\n", [[1.5, 3], [2.25, 4]]),
    "semicolons, in doubt": ("id;a;b\ns1;1,500;3\ns2;2,250;4\n", [[1.5, 3], [2.25, 4]]),
    "no header": ("s1;1,5;2\ns2;2,5;3\n", [[1.5, 2], [2.5, 3]]),
    "thousands": ('id,a,b\ns1,"1,500",3\ns2,"2,250",4\n', [[1500, 3], [2250, 4]]),
    "quoted decimals": ('id,a,b\ns1,"1,5",3\ns2,"0,25",4\n', [[1.5, 3], [0.25, 4]]),
    "thousands of a comma": ("id;a;b\ns1;1.500;3,5\ns2;2.250;4\n", [[1500, 3.5], [2250, 4]]),
    "tabs in a .csv": ("id\ta\tb\ns1\t1,5\t3\ns2\t2,25\t4\n", [[1.5, 3], [2.25, 4]]),
    "a separator is named": ("sep=;\nid;a;b\ns1;1,5;3\ns2;2,25;4\n", [[1.5, 3], [2.25, 4]]),
    "own marks": ('id,a,b\ns1,"1,500.5","1,5"\ns2,2,"0,25"\n', [[1500.5, 1.5], [2, 0.25]]),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_numbers_are_read(name, tmp_path):
    text, expected = READ[name]
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    table = read_table(tmp_path / "t.csv")
    np.testing.assert_array_equal(table.data, expected)
    assert table.ids == ["s1", "s2"]
    assert table.losses == []


def test_marks_that_only_later_lines_show(tmp_path):
    lines = [f"s{i};{i};1.{i:03}" for i in range(200)] + ["s200;2,5;1.200"]
    (tmp_path / "t.csv").write_text("\n".join(["id;a;b", *lines]))
    table = read_table(tmp_path / "t.csv")
    assert table.text_format == {"separator": ";", "decimal": ",", "encoding": "utf-8"}
    assert table.data[200].tolist() == [2.5, 1200]
    assert table.data[7].tolist() == [7, 1007]


def test_options_override_what_is_detected(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id;a;b\ns1;1,500;3\ns2;2,250;4\n")
    assert read_table(path, decimal=".").data[:, 0].tolist() == [1500, 2250]
    path.write_text("a b;c\n1 2;3\n4 5;6\n")
    assert read_table(path, separator=" ").features == ["a"]
    with pytest.raises(ValueError, match="one character"):
        read_table(path, separator=";;")
    with pytest.raises(ValueError, match="or ',' is needed"):
        read_table(path, decimal=";")


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8", "utf-8-sig"])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_encodings(encoding, suffix, tmp_path):
    frame = pd.DataFrame({"Größe": [1.5, 2.5], "b": [3.0, 4.0]}, index=["é", "ü"])
    frame.to_csv(tmp_path / f"t{suffix}", encoding=encoding)
    table = read_table(tmp_path / f"t{suffix}")
    assert (table.ids, table.features) == (["é", "ü"], ["Größe", "b"])
    has_note = any("not UTF-8" in note for note in table.notes)
    assert has_note == (not encoding.startswith("utf-8"))


def test_the_json_names_what_was_left_out(tmp_path, capsys):
    X = noisy_low_rank(30, 3, 1)
    table = pd.DataFrame(X, columns=list("abc")).astype(object)
    table.iloc[3, 2], table.iloc[5, 2], table.iloc[4, 0] = "<0.5", "n/a ", "?"
    table["kind"] = ["x", "y"] * 15
    table.to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    arguments = ["fit", str(tmp_path / "t.csv"), "-k", "1", "-o", str(tmp_path / "out"), "--json"]
    assert main(arguments) == 0
    printed = capsys.readouterr()
    summary = json.loads(printed.out)
    assert summary["columns_left_out"] == ["kind"]
    assert summary["cells_made_missing"] == {"a": 1, "c": 1}
    assert summary["text_format"]["separator"] == ";"
    assert "skipped non-numeric columns: 'kind'" in printed.err
    assert "texts that were read as missing values: 2 (1 in 'a', 1 in 'c')" in printed.err
    assert "skipped non-numeric columns" in (tmp_path / "out" / "report.html").read_text()
    table["more"] = 1.0
    table.to_csv(tmp_path / "t.csv", index=False)
    arguments = [str(tmp_path / "out" / "model.rnmf"), str(tmp_path / "t.csv"), "--json"]
    assert main(["transform", *arguments, "-o", str(tmp_path / "codes.csv")]) == 0
    printed = capsys.readouterr()
    summary = json.loads(printed.out)
    assert summary["columns_left_out"] == ["kind"]
    assert summary["columns_not_in_model"] == ["more"]
    assert "not features of the model: 'more'" in printed.err


def read_as_fitted(tmp_path, capsys, new):
    """Fit a table with decimal commas; return what ``transform`` of another table reads."""
    X = noisy_low_rank(30, 3, 1)
    pd.DataFrame(X, columns=list("abc")).to_csv(tmp_path / "t.csv", index=False, decimal=",")
    out = tmp_path / "out"
    assert main(["fit", str(tmp_path / "t.csv"), "-k", "1", "-o", str(out), "--quiet"]) == 0
    (tmp_path / "new.csv").write_text(new)
    capsys.readouterr()
    arguments = [str(out / "model.rnmf"), str(tmp_path / "new.csv"), "-o", str(out / "new.csv")]

    def run():
        assert main(["transform", *arguments, "--force"]) == 0
        return np.loadtxt(
            out / "new.csv", delimiter=",", skiprows=1, usecols=1
        ), capsys.readouterr()

    return out, run


def test_numbers_in_doubt_have_the_decimal_mark_of_the_fit(tmp_path, capsys):
    row = '"1,563","1,125","2,375"\n'
    out, run = read_as_fitted(tmp_path, capsys, "a,b,c\n" + 2 * row)
    codes, printed = run()
    assert "note: numbers can be read in two ways; their decimal mark is a comma" in printed.err
    (tmp_path / "new.csv").write_text("a,b,c\n1,2,3\n")
    assert "read in two ways" not in run()[1].err
    (tmp_path / "new.csv").write_text("a,b,c\n" + 2 * row)
    (out / "run.json").unlink()
    without, printed = run()
    np.testing.assert_allclose(without, 1000 * codes, rtol=1e-3)
    assert "have separators of thousands: '1,563' is 1563 (else: --decimal)" in printed.err


def test_features_of_the_model_may_be_texts_in_small_tables(tmp_path, capsys):
    _, run = read_as_fitted(tmp_path, capsys, "a,b,c\n<0.5,1.25,<0.5\n<0.6,1.5,2.5\n<0.7,1,<0.5\n")
    codes, printed = run()
    assert np.isfinite(codes).all()
    assert "read as missing values: 5 (3 in 'a', 2 in 'c')" in printed.err


def test_losses_of_many_columns_are_short(tmp_path):
    table = pd.DataFrame(np.ones((4, 500)), columns=[f"c{i}" for i in range(500)]).astype(object)
    table.iloc[0] = "?"
    table.to_csv(tmp_path / "t.csv", index=False)
    read = read_table(tmp_path / "t.csv")
    assert len(read.made_missing) == 500
    assert sum(map(len, read.losses)) < 200


@pytest.mark.parametrize("sparse", [True, False])
def test_anndata_from_before_0_7(sparse, tmp_path):
    h5py = pytest.importorskip("h5py")
    data = np.arange(12.0).reshape(4, 3)
    with h5py.File(tmp_path / "t.h5ad", "w") as file:
        if sparse:
            import scipy.sparse

            table = scipy.sparse.csc_array(data)
            group = file.create_group("X")
            group.attrs["h5sparse_format"], group.attrs["h5sparse_shape"] = b"csc", table.shape
            for name in ("data", "indices", "indptr"):
                group[name] = getattr(table, name)
        else:
            file["X"] = data
        for axis, names in (("obs", "wxyz"), ("var", "abc")):
            records = [(name.encode(), 7) for name in names]
            file[axis] = np.array(records, dtype=[("index", "S1"), ("count", "i4")])
    table = read_table(tmp_path / "t.h5ad")
    np.testing.assert_array_equal(table.data.toarray() if sparse else table.data, data)
    assert (table.ids, table.features) == (list("wxyz"), list("abc"))


@pytest.mark.parametrize("kind", ["categories", "values"])
def test_names_of_anndata_that_are_encoded(kind, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "t.h5ad", "w") as file:
        file["X"] = np.ones((3, 2))
        for axis, names in (("obs", "xyx"), ("var", "ab")):
            index = file.create_group(axis).create_group("names")
            file[axis].attrs["_index"] = "names"
            different = sorted(set(names))
            if kind == "categories":
                index["categories"] = np.array(different, dtype="S")
                index["codes"] = np.array([different.index(name) for name in names])
            else:
                index["values"] = np.array(list(names), dtype="S")
    table = read_table(tmp_path / "t.h5ad")
    assert (table.ids, table.features) == (list("xyx"), list("ab"))
