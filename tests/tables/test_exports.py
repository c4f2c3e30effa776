"""Tables as spreadsheets and instruments export them, and files that are no tables."""

import gzip
import os

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from robustnmf.cli import main
from robustnmf.tables import read_table, to_number
from robustnmf.tables._text import detect_separator
from tests.problems import noisy_low_rank

pytest.importorskip("pandas", reason="tables need the packages of the extra cli")


def read(tmp_path, text, name="t.csv", **options):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return read_table(tmp_path / name, **options)


@pytest.mark.parametrize("separator", [",", ";"])
def test_rows_of_separators_alone_are_left_out(tmp_path, separator):
    text = "id,a,b\ns1,1.5,2\n,,\ns2,3,4\n,,\n,,\n\n\n".replace(",", separator)
    table = read(tmp_path, text)
    assert table.ids == ["s1", "s2"]
    assert table.data.tolist() == [[1.5, 2], [3, 4]]
    assert "3 empty rows were left out" in table.notes


def test_a_repeated_symbol_names_features_of_a_transposed_table(tmp_path, capsys):
    text = "gene,s1,s2\nTP53,1,2\nMT,3,4\nMT,5,6\n"
    table = read(tmp_path, text, transpose=True)
    assert (table.features, table.ids) == (["TP53", "MT", "MT.1"], ["s1", "s2"])
    assert read(tmp_path, text).left_out == ["gene"]
    pytest.importorskip("plotly", reason="tables need the packages of the extra cli")
    read(tmp_path, text.replace("s2", "s2,kind").replace("\n", ",x\n").replace("kind,x", "kind"))
    arguments = ["fit", str(tmp_path / "t.csv"), "-k", "1", "-o", str(tmp_path / "out")]
    assert main([*arguments, "--transpose"]) == 0
    assert "--color-by" not in capsys.readouterr().out


def test_samples_without_values_stay(tmp_path):
    assert len(read(tmp_path, "a,b\n1,2\n,\n3,4\n").data) == 3  # samples are numbered by rows
    table = read(tmp_path, "id,a,b\ns1,1,2\ns2,,\ns3,3,4\n")
    assert table.ids == ["s1", "s2", "s3"]
    assert np.isnan(table.data[1]).all()


def test_the_sign_of_typeset_texts_is_a_minus():
    assert to_number("\u22121,234.5") == -1234.5
    assert to_number("1e\u22123") == 1e-3
    assert to_number("\u2212") is None


@pytest.mark.parametrize(
    "text", ["x  y\n1.5 2\n  3   4\n", "   1.50     2.00\n   3.00     4.00\n", "s1 1.5 2\ns2 3 4\n"]
)
def test_spaces_separate_where_nothing_else_does(tmp_path, text):
    table = read(tmp_path, text, "t.txt")
    assert table.data.tolist() == [[1.5, 2], [3, 4]]
    assert any("separated by spaces" in note for note in table.notes)


def test_spaces_within_words_do_not_separate():
    assert detect_separator(["my name\n", "first one\n", "second one\n"], ",") == ","
    assert detect_separator(["mass of it\n", "1\n", "2\n"], ",") == ","
    assert detect_separator(["a;b c\n", "1 000;2\n", "3 000;4\n"], ",") == ";"


def test_repeated_names_in_texts_are_noted_and_refused_where_they_matter(tmp_path, capsys):
    X = noisy_low_rank(30, 3, 2)
    np.savetxt(tmp_path / "t.csv", X, delimiter=",", header="a,b,c", comments="")
    np.savetxt(tmp_path / "new.csv", X, delimiter=",", header="a,c,c", comments="")
    table = read_table(tmp_path / "new.csv")
    assert table.features == ["a", "c", "c.1"]
    assert table.repeated == {"c"}
    assert "1 name stands for several features, which are numbered" in table.notes
    pytest.importorskip("plotly", reason="tables need the packages of the extra cli")
    out = str(tmp_path / "out")
    assert main(["fit", str(tmp_path / "t.csv"), "-k", "2", "-o", out, "--quiet"]) == 0
    arguments = [f"{out}/model.rnmf", str(tmp_path / "new.csv"), "-o", str(tmp_path / "codes.csv")]
    capsys.readouterr()
    assert main(["transform", *arguments]) == 1
    assert "several features that are called 'c'" in capsys.readouterr().err


def write_csv(folder, X, names):
    np.savetxt(folder / "t.csv", X, delimiter=",", header=",".join(names), comments="")
    return folder / "t.csv"


def write_cell_ranger(folder, X, names):
    folder = folder / "10x"
    folder.mkdir()
    scipy.io.mmwrite(folder / "matrix.mtx", scipy.sparse.coo_array(X.T))
    genes = "".join(f"ENSG{i}\t{name}\n" for i, name in enumerate(names))
    (folder / "features.tsv").write_text(genes)
    (folder / "barcodes.tsv").write_text("".join(f"C{i}\n" for i in range(len(X))))
    return folder


def write_anndata(folder, X, names):
    pandas, anndata = pytest.importorskip("pandas"), pytest.importorskip("anndata")
    adata = anndata.AnnData(X, var=pandas.DataFrame(index=[f"{i}" for i in range(len(names))]))
    adata.var_names = names
    adata.write_h5ad(folder / "t.h5ad")
    return folder / "t.h5ad"


def write_parquet(folder, X, names):
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet needs pyarrow")
    columns = [pyarrow.array(column) for column in X.T]
    parquet.write_table(pyarrow.table(columns, names=names), folder / "t.parquet")
    return folder / "t.parquet"


@pytest.mark.filterwarnings("ignore:Variable names are not unique")
@pytest.mark.parametrize("write", [write_csv, write_cell_ranger, write_anndata, write_parquet])
def test_a_model_of_repeated_names_is_applied_to_the_same_features(write, tmp_path, capsys):
    pytest.importorskip("plotly", reason="tables need the packages of the extra cli")
    file, out = str(write(tmp_path, noisy_low_rank(30, 3, 2), ["a", "a", "b"])), tmp_path / "out"
    assert main(["fit", file, "-k", "2", "-o", str(out), "--quiet"]) == 0
    arguments = [str(out / "model.rnmf"), file, "-o", str(tmp_path / "codes.csv")]
    assert main(["transform", *arguments]) == 0, capsys.readouterr().err
    learned, applied = (
        np.loadtxt(path, delimiter=",", skiprows=1, usecols=[1, 2])
        for path in (out / "codes.csv", tmp_path / "codes.csv")
    )
    np.testing.assert_allclose(learned, applied, rtol=1e-6, atol=1e-6)


def test_genes_with_the_same_symbol_are_matched_by_their_identifiers(tmp_path):
    pytest.importorskip("plotly", reason="tables need the packages of the extra cli")
    file, out = write_cell_ranger(tmp_path, noisy_low_rank(30, 3, 2), ["a", "a", "b"]), tmp_path
    assert main(["fit", str(file), "-k", "2", "-o", f"{out}/fit", "--quiet"]) == 0
    apply = ["transform", f"{out}/fit/model.rnmf", str(file), "-o"]
    assert main([*apply, f"{out}/first.csv"]) == 0
    genes = (file / "features.tsv").read_text().splitlines()[::-1]
    (file / "features.tsv").write_text("\n".join(genes) + "\n")
    counts = scipy.sparse.coo_array(scipy.io.mmread(file / "matrix.mtx").toarray()[::-1])
    scipy.io.mmwrite(file / "matrix.mtx", counts)
    assert main([*apply, f"{out}/second.csv"]) == 0
    assert (out / "first.csv").read_bytes() == (out / "second.csv").read_bytes()


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a,b,c\n1,2,3\n4,5\n6,7,8\n9\n", [3, 5]),
        ("# from a spectrometer\nsep=;\na;b;c\n\n1;2;3\n4;5\n   \n", [6]),
        ("1,2,3\n4,5\n6,7,8\n", [2]),
        ("a,b\ns1,1,2\ns2,3\n", [3]),  # as R writes names of samples
        ("a,b,c\n1,2,3,\n4,5,6\n7,8,\n9,1\n", [5]),  # lines that end with a separator
        ("a,b,\n1,2,\n3,4\n5,\n6\n", [5]),
        ('id,a,b\n"two\nlines",1,2\ns2,3\n', [4]),
        ("a,b,c\n1,2\n3,4\n", [2, 3]),
        ("a,b\n1,\n,2\n", []),
    ],
)
def test_lines_with_too_few_fields_are_noted(tmp_path, text, lines):
    table = read(tmp_path, text)
    assert table.short_lines == lines
    notes = [note for note in table.losses if f"(first: line {lines[0]})" in note] if lines else []
    assert len(notes) == bool(lines)


def test_a_text_of_names_of_columns_alone_has_them_as_features(tmp_path):
    with pytest.raises(ValueError, match="holds no numbers: 0 samples, 3 features"):
        read(tmp_path, "a,b,c\n")


def test_one_long_line_does_not_shift_the_names(tmp_path):
    lines = [f"{i},1,2,3" for i in range(24)]
    with pytest.raises(ValueError, match="expected 4 fields in line 2, saw 5"):
        read(tmp_path, "\n".join(["id,a,b,c", "x,1,2,3,4", *lines]))
    table = read(tmp_path, "\n".join(["a,b,c", "x,1,2,", *lines]))  # as R writes it
    assert (table.features, table.ids[:2]) == (["a", "b", "c"], ["x", "0"])
    ended = [f"{i},1,2," for i in range(24)]
    assert read(tmp_path, "\n".join(["a,b,c", "1,2,3,4", *ended])).features[:3] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("first", "features"),
    [
        ("4000,3996,3992,3988,3984", ["4000", "3996", "3992", "3988", "3984"]),
        ("sample,1,2,3", ["1", "2", "3"]),
        (",7,5,6", ["7", "5", "6"]),
        ("country,2010,2011", ["2010", "2011"]),
        ("s0,1,2", ["1", "2"]),  # a sample
    ],
)
def test_numbers_of_the_first_line_name_features(tmp_path, first, features):
    cells = first.split(",")
    rows = [["0.5"] * len(cells) for _ in range(3)]
    for i, row in enumerate(rows):
        row[0] = row[0] if cells[0] == "4000" else f"s{i + 1}"
    table = read(tmp_path, "\n".join([first, *map(",".join, rows)]))
    if cells[0] == "s0":
        assert table.data.shape == (4, 2)
    else:
        assert (table.data.shape, table.features) == ((3, len(features)), features)


@pytest.mark.parametrize(
    ("text", "ids", "features"),
    [
        ("# BIOM\n#OTU ID\tS1\tS2\no1\t0\t3\no2\t1\t0\n", ["o1", "o2"], ["S1", "S2"]),
        ("#OTU\tS1\tS2\ttaxa\no1\t0\t3\tx\no2\t1\t0\ty\n", ["o1", "o2"], ["S1", "S2"]),
        ("# x y\n1.5 2\n3 4\n", ["0", "1"], ["x", "y"]),  # as numpy.savetxt writes it
        ("# a\tb\nx\ty\n3\t4\n", ["0"], ["x", "y"]),
        ("# May\tfirst\nid\t400\ns\t1.5\n", ["s"], ["400"]),
        ("#s1\t1\t2\ns2\t3\t4\n", ["s2"], ["0", "1"]),  # a sample that was left out
    ],
)
def test_the_last_comment_can_name_the_columns(tmp_path, text, ids, features):
    table = read(tmp_path, text, "t.txt")
    assert (list(table.ids), table.features) == (ids, features)
    assert table.short_lines == []
    assert table.data[-1, 0] in (1, 3, 1.5)


def test_numbers_of_rows_are_noted(tmp_path):
    table = read(tmp_path, "patient,a\n7,1.5\n8,2.5\n9,1\n")
    assert table.features == ["patient", "a"]
    assert any("'patient' holds consecutive integers" in note for note in table.notes)
    table = read(tmp_path, "patient,a\n7,1.5\n8,2.5\n9,1\n", id_column="patient")
    assert table.ids == ["7", "8", "9"]
    assert read(tmp_path, "x,a\n7,1.5\n9,2.5\n8,1\n").notes == ["3 samples, 2 features"]


@pytest.mark.parametrize(
    ("header", "numbers", "names"),
    [
        ("Sample ID", "7,7,9", True),
        ("patient_id", "7,5,9", True),
        ("PatientID", "7,5,9", True),
        ("Entrez.ID", "7,5,9", True),
        ("Entrez.ID", "7,7,9", False),
        ("citric acid", "7,5,9", False),
        ("-", "7,5,9", False),
    ],
)
def test_numbers_below_a_name_of_ids_name_samples(tmp_path, header, numbers, names):
    lines = [f"{number},1,2" for number in numbers.split(",")]
    table = read(tmp_path, "\n".join([f"{header},a,b", *lines]))
    assert (table.features == ["a", "b"]) is names
    assert (list(table.ids) == numbers.split(",")) is names


def test_a_text_in_the_first_cell_of_numbers_is_a_missing_value(tmp_path):
    table = read(tmp_path, "<0.5,1,2\n0.7,3,4\n0.8,5,6\n")
    assert table.data.shape == (3, 3)
    assert table.made_missing == {"0": 1}
    assert any(
        "which name the features" in n for n in read(tmp_path, "s,1,2,3,4,5\nt,6,7,8,9,1").notes
    )


def test_a_column_without_a_name(tmp_path):
    table = read(tmp_path, ",a,b\ns1,1,2\ns2,3,4\n")
    assert table.ids == ["s1", "s2"]
    assert "samples are named by the first column, which has no name" in table.notes


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "is empty; a table is needed"),
        ("t.csv", b"A" * 200_000, "has a field that is too long"),
        ("t.csv", b"PK\x03\x04\x00\x00", "a spreadsheet or another ZIP archive; save the sheet"),
        ("t.csv", gzip.compress(b"a,b\n1,2\n", mtime=0), r"by gzip; let its name end with \.gz"),
        ("t.csv", "a,b\n1,2\n".encode("utf-16-le"), "not text; save it as UTF-8"),
        ("t.csv", b"a,b\n1%,2%\n1%,4%\n", r"no numbers: 2 samples, .*Columns of texts: 'a', 'b'\."),
        ("t.csv", b"Run of May\n\na,b,c\n1,2,3\n4,5,6\n", "or begin them with #"),
        ("t.csv", b"a,b\n1,2\n3,4,5,6\n", r"line 3, saw 4\)\.$"),
        ("t.npy", b"\x93NUMPY\x01\x00", r"t\.npy is not an array of numbers"),
        ("t.parquet", b"a,b\n1,2\n", r"t\.parquet is not a Parquet file that can be read"),
        ("t.csv.gz", b"a,b\n1,2\n", r"t\.csv\.gz is not a \.gz file .*another kind, rename it"),
        ("t.csv.bz2", b"a,b\n1,2\n", r"t\.csv\.bz2 is not a \.bz2 file .*another kind, rename it"),
        ("t.h5ad", b"a,b\n1,2\n", r"t\.h5ad is not a \.h5ad file .*another kind, rename it"),
        ("t.mtx", b"1,2\n3,4\n", r"t\.mtx is not a Matrix Market file .*another kind, rename it"),
        ("t.mtx.gz", b"1,2\n3,4\n", r"t\.mtx\.gz is not a .*another kind, rename it"),
        ("t.dat", b"a,b\n1,2\n", r"Rename a text to \.csv or \.txt"),
    ],
)
def test_files_that_cannot_be_read_say_why(tmp_path, name, content, message):
    if name == "t.parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    if name == "t.h5ad":
        pytest.importorskip("h5py", reason="AnnData needs h5py")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        read_table(tmp_path / name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("t.npy", {"id_column": "a"}),
        ("t.npy", {"decimal": ","}),
        ("t.npz", {"header": False}),
        ("t.npz", {"separator": ";"}),
        ("t.csv.gz", {"dataset": "X"}),
        ("folder", {"id_column": "a"}),
    ],
)
def test_options_that_mean_nothing_for_a_file_are_refused(tmp_path, name, options):
    (tmp_path / "folder").mkdir()
    (tmp_path / name).touch()
    with pytest.raises(ValueError, match=r"is given, but .* is of another kind than .*Leave it"):
        read_table(tmp_path / name, **options)
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / f"no.{name}.npy", **options)


def test_python_objects_are_never_read(tmp_path):
    np.save(tmp_path / "t.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="Python objects, which are never read"):
        read_table(tmp_path / "t.npy")


def test_standard_input_is_no_file(tmp_path):
    with pytest.raises(ValueError, match="read more than once"):
        read_table("-")


def test_more_parts_than_rows_or_columns_are_refused(tmp_path, capsys):
    pytest.importorskip("plotly", reason="tables need the packages of the extra cli")
    np.savetxt(tmp_path / "t.csv", noisy_low_rank(30, 4, 2), delimiter=",")
    arguments = ["fit", str(tmp_path / "t.csv"), "-o", str(tmp_path / "out"), "--quiet", "-k"]
    assert main([*arguments, "1000"]) == 1
    assert "has at most 4 components. Lower -k, or use -k auto" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(os.name != "posix", reason="names of files are bytes on POSIX alone")
def test_names_of_files_need_not_be_utf_8(tmp_path):
    pytest.importorskip("plotly", reason="tables need the packages of the extra cli")
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv")
    try:
        np.savetxt(path, noisy_low_rank(30, 4, 2), delimiter=",")
    except OSError:
        pytest.skip("this file system has names in UTF-8 alone")
    assert main(["fit", path, "-k", "1", "-o", str(tmp_path / "out"), "--quiet"]) == 0


def test_an_id_column_comes_before_the_index_of_a_parquet_file(tmp_path):
    pandas = pytest.importorskip("pandas", reason="Parquet needs pandas")
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    frame = pandas.DataFrame({"code": ["a", "b"], "x": [1.0, 2.0]}, index=["first", "second"])
    frame.rename_axis("row").to_parquet(tmp_path / "t.parquet")

    def names(**options):
        return list(read_table(tmp_path / "t.parquet", **options).ids)

    assert names() == names(id_column="row") == ["first", "second"]
    assert names(id_column="code") == ["a", "b"]
    with pytest.raises(ValueError, match="there is no column 'cod'"):
        names(id_column="cod")


def test_comments_are_left_out_wherever_they_are(tmp_path):
    table = read(tmp_path, "\n# made by X\nid,a,b\ns1,1,2\n# batch 2\ns2,3,4\n# end\n")
    assert table.ids == ["s1", "s2"]
    assert table.data.tolist() == [[1, 2], [3, 4]]
    assert table.short_lines == []
    table = read(tmp_path, "a,b\n1,2\n# batch 2\n#3,4\n5,6\n")
    assert table.data[:, -1].tolist() == [2, 4, 6]


def test_spaces_separate_numbers_with_decimal_commas(tmp_path):
    text = "1,5 2,5 3,5\n4,5 5,5 6,5\n7,1 8,2 9,3\n"
    assert read(tmp_path, text).data.tolist() == [[1.5, 2.5, 3.5], [4.5, 5.5, 6.5], [7.1, 8.2, 9.3]]
    assert read(tmp_path, f"a b c\n{text}").features == ["a", "b", "c"]


def test_blanks_after_separators_do_not_count(tmp_path):
    table = read(tmp_path, '"id", "f 1", f2\n"a", "1", 2\n"b", "3", 4\n', columns=["f 1"])
    assert (table.ids, table.features) == (["a", "b"], ["f 1"])
    assert table.data.tolist() == [[1], [3]]


def test_a_title_above_the_names_is_refused(tmp_path):
    text = "My experiment,,\nid,a,b\ns1,1,2\ns2,3,4\n"
    with pytest.raises(ValueError, match=r"first line holds only 'My experiment'\. Delete"):
        read(tmp_path, text)


def test_an_empty_feature_called_column_stays(tmp_path):
    assert read(tmp_path, "id,column temp,f\ns1,,2\ns2,,4\n").features == ["column temp", "f"]
    assert read(tmp_path, "id,f,\ns1,2,\ns2,4,\n").features == ["f"]


def test_damaged_arrays_are_named(tmp_path):
    (tmp_path / "t.npz").write_text("<html>404</html>")
    (tmp_path / "t.mtx").write_text("%%MatrixMarket matrix coordinate real general\n3 3 4\n1 1 1\n")
    np.save(tmp_path / "t.npy", np.ones(4))
    np.savez(tmp_path / "objects.npz", b=np.array([{}], dtype=object))
    for name, options in (
        ("t.npz", {}),
        ("t.mtx", {}),
        ("t.npy", {}),
        ("objects.npz", {"dataset": "b"}),
    ):
        with pytest.raises(ValueError, match=name) as raised:
            read_table(tmp_path / name, **options)
        assert "pickle" not in str(raised.value)
