"""``robustnmf fit`` and ``transform``: what is read, written and shown."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse

import robustnmf
from robustnmf.cli import main
from robustnmf.files.page import display_name
from robustnmf.report.fitted import escape_formula
from robustnmf.tables import read_table
from tests.browsing import (
    complaints,
    narrow,
    on_paper,
    overflow,
    printed_pages,
    reached_by_tab,
    wait_until,
)
from tests.problems import noisy_low_rank

pd = pytest.importorskip("pandas", reason="tables need the packages of the extra cli")
pytest.importorskip("plotly", reason="tables need the packages of the extra cli")

HOSTILE = [
    "<script>document.title='hacked'</script>",
    '=HYPERLINK("http://evil","x")',
    "\u202egnp.exe",
    "@SUM(1)",
    "a" * 10_000,
    "</script><img src=x onerror=alert(1)>",
    'quote"comma,newline\nend',
    "-1+1",
]


@pytest.fixture(scope="module")
def frame():
    """A table with an id, a text column, a missing value and hostile names."""
    X = noisy_low_rank(80, 8, 2, outliers=6)
    table = pd.DataFrame(X, columns=HOSTILE)
    table.iloc[3, 2] = np.nan
    ids = [HOSTILE[i] if i < len(HOSTILE) else f"s{i}" for i in range(80)]
    table.insert(0, "sample", ids)
    table["kind"] = ["good", "bad"] * 40
    return table


@pytest.fixture(scope="module")
def written(frame, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fit")
    frame.to_csv(folder / "data.csv", index=False)
    code = main(["fit", str(folder / "data.csv"), "-k", "2", "-o", str(folder / "out"), "--quiet"])
    assert code == 0
    return folder


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_all_files_are_written(written, frame):
    out = written / "out"
    names = {"basis.csv", "codes.csv", "samples.csv", "model.rnmf", "report.html", "run.json"}
    assert {path.name for path in out.iterdir()} == names
    samples = rows_of(out / "samples.csv")
    assert samples[0] == ["id", "importance", "energy", "outlier"]
    assert [row[0] for row in samples[1:]] == [escape_formula(name) for name in frame["sample"]]
    assert sum(float(row[1]) for row in samples[1:]) == pytest.approx(1.0)
    basis, codes = rows_of(out / "basis.csv"), rows_of(out / "codes.csv")
    model = robustnmf.load(out / "model.rnmf")
    np.testing.assert_array_equal(np.array(basis[1:])[:, 1:].astype(float), model.components_)
    assert len(codes) == 81
    assert list(model.feature_names_in_) == HOSTILE


def test_no_cell_is_a_formula(written):
    for name in ("basis.csv", "codes.csv", "samples.csv"):
        for row in rows_of(written / "out" / name):
            for cell in row:
                assert cell[:1] not in ("=", "+", "@", "\t", "\r")
                assert not cell.startswith("-") or float(cell) <= 0
    assert escape_formula("-3.5") == "-3.5"
    assert escape_formula("=1") == "'=1"
    assert display_name("\u202eabc") == "\ufffdabc"
    assert len(display_name("a" * 10_000)) == 60


def test_a_model_is_applied_to_new_rows(written, frame, capsys):
    columns = ["sample", *HOSTILE[::-1]]  # another order
    frame[columns].iloc[:5].to_csv(written / "new.csv", index=False)
    output = written / "codes_of_new.csv"
    arguments = [str(written / "out" / "model.rnmf"), str(written / "new.csv"), "-o", str(output)]
    assert main(["transform", *arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["samples"] == 5
    new, before = rows_of(output), rows_of(written / "out" / "codes.csv")
    np.testing.assert_allclose(
        np.array(new[1:])[:, 1:3].astype(float), np.array(before[1:6])[:, 1:].astype(float),
        rtol=1e-6, atol=1e-9,
    )  # fmt: skip
    frame[["sample", *HOSTILE[:3]]].to_csv(written / "less.csv", index=False)
    arguments[1] = str(written / "less.csv")
    assert main(["transform", *arguments, "--force"]) == 1
    assert "5 of the 8 features of the model are not in the table" in capsys.readouterr().err


def test_scripts_get_json_and_the_rank_is_chosen(written, capsys):
    arguments = [str(written / "data.csv"), "-k", "auto", "--max-ranks", "3"]
    assert main(["fit", *arguments, "-o", str(written / "auto"), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["components"] == 2
    assert summary["samples"], summary["features"] == (80, 8)
    assert len(summary["outliers"]) >= 6
    assert "Number of components" in (written / "auto" / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.csv", "-k", "2"], "there is no file"),
        (["{data}", "-k", "2", "--id", "nobody"], "there is no column 'nobody'"),
        (["{data}", "-k", "2", "--image-shape", "3x3"], "HEIGHTxWIDTH of 8 pixels"),
        (["{negative}", "-k", "2"], "Negative values"),
        (["{text}", "-k", "2"], "holds no numbers"),
        (["{empty}", "-k", "2"], "is empty; a table is needed"),
        (["{binary}", "-k", "2"], "not a table that can be read"),
        (["{odd}", "-k", "2"], "has the suffix '.xyz'"),
        (["{object}", "-k", "2"], "Python objects, which are never read"),
    ],
)
def test_user_errors_are_told_in_a_line(arguments, message, written, tmp_path, capsys):
    files = {"data": written / "data.csv"}
    files |= {name: tmp_path / f"{name}.csv" for name in ("negative", "text", "empty", "binary")}
    files |= {"odd": tmp_path / "x.xyz", "object": tmp_path / "o.npy"}
    files["negative"].write_text("a,b\n1,-2\n3,4\n")
    files["text"].write_text("a,b\nx,y\nz,w\n")
    files["empty"].write_text("")
    files["binary"].write_bytes(bytes(range(256)) * 4)
    files["odd"].write_text("1")
    np.save(files["object"], np.array([{}], dtype=object), allow_pickle=True)
    arguments = [word.format(**files) for word in arguments]
    assert main(["fit", *arguments, "-o", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("robustnmf: ")
    assert message in error
    assert not (tmp_path / "out").exists()


def test_the_command_has_no_traceback_and_help_with_examples(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "robustnmf", "fit", "nothing.csv", "-k", "2", "-o", str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    done = subprocess.run(
        [sys.executable, "-m", "robustnmf", "fit", "--help"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "examples:" in done.stdout


DATA = np.arange(12.0).reshape(4, 3)


def anndata(path, sparse):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        if sparse:
            table = scipy.sparse.csr_array(DATA)
            group = file.create_group("X")
            group.attrs["shape"] = table.shape
            group.attrs["encoding-type"] = "csr_matrix"
            for name in ("data", "indices", "indptr"):
                group[name] = getattr(table, name)
        else:
            file["X"] = DATA
        for axis, names in (("obs", "wxyz"), ("var", "abc")):
            group = file.create_group(axis)
            group.attrs["_index"] = "names"
            group["names"] = np.array(list(names), dtype="S")


def test_every_kind_of_file(tmp_path):
    frame = pd.DataFrame(DATA, columns=list("abc"), index=list("wxyz"))
    frame.to_csv(tmp_path / "t.csv")
    frame.to_csv(tmp_path / "t.tsv.gz", sep="\t")
    np.save(tmp_path / "t.npy", DATA)
    np.savez(tmp_path / "t.npz", X=DATA, labels=np.arange(4))
    scipy.sparse.save_npz(tmp_path / "s.npz", scipy.sparse.csr_array(DATA))
    scipy.io.mmwrite(tmp_path / "t.mtx", scipy.sparse.coo_array(DATA))
    anndata(tmp_path / "t.h5ad", sparse=False)
    anndata(tmp_path / "s.h5ad", sparse=True)
    files = ["t.csv", "t.tsv.gz", "t.npy", "t.npz", "s.npz", "t.mtx", "t.h5ad", "s.h5ad"]
    if pytest.importorskip("pyarrow", reason="Parquet needs pyarrow"):
        frame.to_parquet(tmp_path / "t.parquet")
        files.append("t.parquet")
    for name in files:
        table = read_table(tmp_path / name)
        data = table.data.toarray() if scipy.sparse.issparse(table.data) else table.data
        np.testing.assert_array_equal(data, DATA)
        named = name.endswith(("csv", "gz", "h5ad", "parquet"))
        assert table.named == named
        assert table.ids == (list("wxyz") if named else list("0123")), name
        assert table.features == (list("abc") if named else list("012")), name


def test_what_is_data_and_what_is_not(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("1,2\n3,4\n")
    table = read_table(path)
    assert table.data.tolist() == [[1, 2], [3, 4]]
    assert "the first line is data" in table.notes[1]
    path.write_text("id,a,note,b\n7,1,x,2\n8,NA,y,oops\n9,3,z,4\n10,5,z,6\n")
    table = read_table(path)
    assert table.ids == ["7", "8", "9", "10"]
    assert table.features == ["a", "b"]
    assert np.isnan(table.data[1]).all()
    assert table.made_missing == {"b": 1}
    assert table.left_out == ["note"]
    assert table.losses == [
        "skipped non-numeric columns: 'note'",
        "texts that were read as missing values: 1 (1 in 'b')",
    ]  # fmt: skip
    table = read_table(path, id_column="note")
    assert table.ids == ["x", "y", "z", "z"]
    assert table.features == ["id", "a", "b"]
    np.savez(tmp_path / "two.npz", A=DATA, B=DATA + 1)
    with pytest.raises(ValueError, match="name one with --dataset"):
        read_table(tmp_path / "two.npz")
    assert read_table(tmp_path / "two.npz", dataset="B").data[0, 0] == 1


READ = {
    "zeros twice": ("0.0,0.0,3.5\n1,2,3\n", 2, ["0", "1"], ["0", "1", "2"]),
    "a gap": ("1,,3\n4,5,6\n", 2, ["0", "1"], ["0", "1", "2"]),
    "ids, no header": ("s1,1,2\ns2,3,4\n", 2, ["s1", "s2"], ["0", "1"]),
    "numbered": ("0,1,2\n4,5,6\n", 1, ["0"], ["0", "1", "2"]),
    "wavelengths": ("id,400,410,420,430,440\na,1,2,3,4,5\n", 1, ["a"],
                    ["400", "410", "420", "430", "440"]),
    "commas at ends": ("a,b\n1,2,\n3,4,\n", 2, ["0", "1"], ["a", "b"]),
    "comma in header": ("a,b,\n1,2,\n3,4,\n", 2, ["0", "1"], ["a", "b"]),
    "as R writes": ("g1,g2\ns1,1,2\ns2,3,4\n", 2, ["s1", "s2"], ["g1", "g2"]),
    "ids of digits": ("id,a\n007,1\nNA,2\n12345678901234567,3\n", 3,
                      ["007", "NA", "12345678901234567"], ["a"]),
    "same names": ("a,a,,\n1,2,3,4\n5,6,7,8\n", 2, ["0", "1"],
                   ["a", "a.1", "column 3", "column 4"]),
    "a comment": ("# made by X\na,b\n1,2\n", 1, ["0"], ["a", "b"]),
    "a mark": ("\ufeffa,b\n1,2\n", 1, ["0"], ["a", "b"]),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_lines_are_what_they_seem(name, tmp_path):
    text, samples, ids, features = READ[name]
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    table = read_table(tmp_path / "t.csv")
    assert table.data.shape == (samples, len(features))
    assert table.ids == ids
    assert table.features == features
    assert not np.isnan(table.data).all(axis=0).any()


def test_the_header_can_be_said(tmp_path):
    (tmp_path / "t.csv").write_text("1,2,3,4,5\n6,7,8,9,10\n")
    assert read_table(tmp_path / "t.csv").data.shape == (1, 5)
    assert read_table(tmp_path / "t.csv", header=False).data.shape == (2, 5)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"a,b\n1,2,3,4\n", "its lines have 4 fields"),
        ("t.csv", b"a,b\n\x00,1\n", "bytes that are not text"),
        ("t.npz", b"PK\x03\x04abc", "not a table that can be read"),
        ("t.csv.xz", b"nonsense", "not a table that can be read"),
        ("t.mtx", b"%%MatrixMarket matrix coordinate real general\n3000000000 9 1\n1 1 1\n",
         "too large"),
    ],
)  # fmt: skip
def test_damaged_files_are_told(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises((ValueError, OSError), match=message):
        read_table(tmp_path / name)


def test_forged_sparse_files_are_refused(tmp_path):
    places = np.array([10**8, 2, -(5 * 10**7)], np.int32)
    np.savez(tmp_path / "s.npz", format=b"csr", indices=places, data=np.ones(3),
             indptr=np.array([0, 1, 2, 3], np.int32), shape=np.array([3, 4]))  # fmt: skip
    with pytest.raises(ValueError, match=r"ind(ex|ices)"):
        read_table(tmp_path / "s.npz")


def test_dates_and_indices_are_no_features(tmp_path):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    index = pd.Index([1001, 1002], name="patient")
    frame = pd.DataFrame({"a": [1.0, 2.0], "when": pd.to_datetime(["2020", "2021"])}, index=index)
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert (table.ids, table.features) == (["1001", "1002"], ["a"])


def test_sparse_tables_are_aligned_by_name(tmp_path):
    anndata(tmp_path / "a.h5ad", sparse=True)
    assert main(["fit", str(tmp_path / "a.h5ad"), "-k", "1", "-o", str(tmp_path), "--quiet"]) == 0
    frame = pd.DataFrame(DATA[:, ::-1], columns=list("cba"), index=list("wxyz"))
    frame.to_csv(tmp_path / "b.csv")
    for name in ("a.h5ad", "b.csv"):
        arguments = [str(tmp_path / "model.rnmf"), str(tmp_path / name)]
        assert main(["transform", *arguments, "-o", str(tmp_path / f"{name}.out"), "--json"]) == 0
    one, other = (rows_of(tmp_path / f"{name}.out") for name in ("a.h5ad", "b.csv"))
    np.testing.assert_allclose(
        np.array(one[1:])[:, 1:].astype(float), np.array(other[1:])[:, 1:].astype(float), atol=1e-6
    )


def test_blank_samples_are_no_outliers(tmp_path, capsys):
    X = noisy_low_rank(60, 8, 2, outliers=3)
    X[5], X[6] = 0.0, np.nan
    pd.DataFrame(X, columns=list("abcdefgh")).to_csv(tmp_path / "t.csv", index=False)
    assert (
        main(["fit", str(tmp_path / "t.csv"), "-k", "2", "-o", str(tmp_path / "o"), "--json"]) == 0
    )
    summary = json.loads(capsys.readouterr().out)
    assert summary["blank"] == 2
    assert not {"5", "6"} & set(summary["outliers"])
    samples = rows_of(tmp_path / "o" / "samples.csv")
    arguments = [str(tmp_path / "o" / "model.rnmf"), str(tmp_path / "t.csv")]
    assert main(["transform", *arguments, "-o", str(tmp_path / "new.csv"), "--json"]) == 0
    again = rows_of(tmp_path / "new.csv")
    energies = [
        np.array([float(row[at]) for row in rows[1:]]) for rows, at in ((samples, 2), (again, -2))
    ]
    np.testing.assert_allclose(*energies, rtol=1e-5, atol=1e-9)
    assert [row[-1] for row in again] == [row[-1] for row in samples]  # outliers


DRAWN = (
    "const all = [...document.querySelectorAll('.plot')];"
    "return all.length > 0 && all.every(p => p.querySelector('svg'))"
)


def test_the_page_works_in_a_browser(written, browser):
    complaints(browser)
    browser.get((written / "out" / "report.html").as_uri())
    wait_until(browser, DRAWN)
    assert complaints(browser) == []
    assert browser.title == "robustnmf: data.csv"
    assert browser.execute_script("return document.querySelectorAll('img[src=x]').length") == 0
    focus = reached_by_tab(browser)
    assert "BUTTON" in focus
    assert not [tag for tag in focus if "unseen" in tag]
    with narrow(browser):
        assert overflow(browser) <= 1
    with on_paper(browser):
        assert browser.find_element("css selector", "h1").is_displayed()
    assert printed_pages(browser) >= 1
