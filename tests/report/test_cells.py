"""Cells in the shell: which values of AnnData files are read, counts, words of the report."""

import json
import re

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from robustnmf.cli import main
from robustnmf.tables import read_table

reason = "needs the extra anndata"
ad = pytest.importorskip("anndata", reason=reason)
pd = pytest.importorskip("pandas", reason=reason)
pytest.importorskip("plotly", reason="tables need the packages of the extra cli")

HOSTILE = "<b onmouseover=alert(1)>"
CHOSEN = np.arange(24) % 3 > 0


def counts(n=90, m=24, k=3):
    rng = np.random.default_rng(0)
    programs = rng.dirichlet(np.full(m, 0.3), k)
    main_program = np.arange(n) % k
    usages = 0.9 * np.eye(k)[main_program] + 0.1 / k
    return rng.poisson(300 * usages @ programs).astype(np.float32)


@pytest.fixture(scope="module")
def adata():
    """Cells with scaled X, logarithms in ``.raw`` and in a layer, and counts."""
    X = counts()
    kinds = np.array(["a", "b", HOSTILE])[np.arange(90) % 3]
    obs = pd.DataFrame({"kind": pd.Categorical(kinds), "depth": X.sum(axis=1)})
    obs.index = [f"cell{i}" for i in range(90)]
    var = pd.DataFrame({"chosen": CHOSEN}, index=[f"gene{j}" for j in range(24)])
    data = ad.AnnData(np.log1p(X), obs=obs, var=var)
    data.raw = data
    data.layers["log"], data.layers["the counts"] = np.log1p(X), scipy.sparse.csr_matrix(X)
    data.X = data.X - data.X.mean(axis=0)
    return data


@pytest.fixture(scope="module")
def file(adata, tmp_path_factory):
    path = tmp_path_factory.mktemp("cells") / "in.h5ad"
    adata.write_h5ad(path)
    return path


def fit(path, *more):
    return main(["fit", str(path), "-k", "3", *map(str, more)])


def record(folder):
    return json.loads((folder / "run.json").read_text())


def test_raw_and_masks_choose_what_is_read(adata, file):
    raw = read_table(file, raw=True)
    np.testing.assert_allclose(raw.data, adata.raw.X)
    chosen = read_table(file, layer="the counts", mask_var="chosen")
    np.testing.assert_array_equal(chosen.data.toarray(), counts()[:, CHOSEN])
    assert list(chosen.features) == list(adata.var_names[CHOSEN])
    fewer = read_table(file, layer="log", mask_var="chosen", columns=["gene1*"])
    assert [f"gene{j}" for j in fewer.positions] == list(fewer.features)


def test_raw_has_its_own_variables(adata, tmp_path, capsys):
    other = adata[:, :10].copy()
    other.raw = adata.raw.to_adata()
    other.write_h5ad(tmp_path / "x.h5ad")
    assert read_table(tmp_path / "x.h5ad", raw=True).features == list(adata.var_names)
    assert fit(tmp_path / "x.h5ad", "--raw", "--write-h5ad", tmp_path / "o.h5ad") == 1
    error = capsys.readouterr().err
    assert "24" in error
    assert "10" in error
    assert not (tmp_path / "o.h5ad").exists()
    assert fit(tmp_path / "x.h5ad", "--raw", "-o", tmp_path / "o", "--quiet") == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mask_var": "depth"}, "columns of var are 'chosen'"),
        ({"mask_var": "none"}, "bool values, of which 0 are true"),
        ({"mask_var": "score"}, "float64"),
        ({"raw": True}, "no .raw"),
        ({"raw": True, "layer": "log"}, "choose one"),
    ],
)
def test_wrong_choices_are_refused(adata, tmp_path, options, message):
    data = adata.copy()
    data.raw = None
    if options.get("mask_var") != "depth":
        data.var["none"], data.var["score"] = False, 1.0
    data.write_h5ad(tmp_path / "x.h5ad")
    with pytest.raises(ValueError, match=re.escape(message)):
        read_table(tmp_path / "x.h5ad", **options)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"only AnnData files|choose one"):
        read_table(tmp_path / "t.csv", **options)


def test_negative_values_name_the_options_that_read_others(adata, file, tmp_path, capsys):
    assert fit(file, "-o", tmp_path / "o") == 1
    error = capsys.readouterr().err
    assert "--layer 'the counts' (counts), --layer log, --raw" in error
    assert "lip" not in error  # neither clip nor clipped
    data = adata.copy()
    data.raw = None
    data.layers["log"] = data.X
    del data.layers["the counts"]
    data.write_h5ad(tmp_path / "x.h5ad")
    assert fit(tmp_path / "x.h5ad", "-o", tmp_path / "o") == 1
    assert "--layer" not in capsys.readouterr().err


def test_variables_that_were_not_chosen_have_zeros(adata, file, tmp_path):
    out = tmp_path / "o.h5ad"
    arguments = ["--layer", "the counts", "--mask-var", "chosen", "--write-h5ad", out, "--quiet"]
    assert fit(file, *arguments) == 0
    done = ad.read_h5ad(out)
    components = done.varm["nmf_components"]
    assert components.shape == (24, 3)
    np.testing.assert_array_equal(components.any(axis=1), CHOSEN)
    assert done.uns["nmf"]["params"]["mask_var"] == "chosen"
    assert fit(file, "--raw", "--write-h5ad", out, "--force", "--quiet") == 0
    assert ad.read_h5ad(out).uns["nmf"]["params"]["use_raw"]


@pytest.mark.parametrize("choice", [["--layer", "the counts", "--mask-var", "chosen"], ["--raw"]])
def test_new_files_are_read_as_those_of_the_fit(file, tmp_path, choice):
    out = tmp_path / "out"
    assert fit(file, *choice, "-o", out, "--quiet") == 0
    arguments = ["transform", str(out / "model.rnmf"), str(file), "-o"]
    assert main([*arguments, str(tmp_path / "new.csv")]) == 0
    new, codes = (
        np.loadtxt(path, delimiter=",", skiprows=1, usecols=[1, 2, 3])
        for path in (tmp_path / "new.csv", out / "codes.csv")
    )
    np.testing.assert_allclose(new, codes, rtol=1e-3, atol=1e-3)
    assert main([*arguments, str(tmp_path / "x.csv"), "--layer", "X"]) == 1  # which is negative
    (out / "run.json").write_text('{"options": [1]}')
    assert main([*arguments, str(tmp_path / "x.csv")]) == 1


@pytest.mark.parametrize("kind", ["h5ad", "npz", "folder", "csv", "dense npz", "logarithms"])
def test_counts_are_recognised(kind, adata, tmp_path, capsys):
    X = counts()
    path = tmp_path / {"folder": "10x", "dense npz": "t.npz", "logarithms": "t.h5ad"}.get(
        kind, f"t.{kind}"
    )
    if kind == "folder":
        path.mkdir()
        scipy.io.mmwrite(path / "matrix.mtx", scipy.sparse.coo_array(X.T.astype(int)))
        (path / "genes.tsv").write_text("".join(f"E{j}\tg{j}\n" for j in range(24)))
        (path / "barcodes.tsv").write_text("".join(f"c{i}\n" for i in range(90)))
    elif kind == "npz":
        scipy.sparse.save_npz(path, scipy.sparse.csr_array(X))
    elif kind == "csv":
        pd.DataFrame(X).to_csv(path, index=False)
    elif kind == "dense npz":
        np.savez(path, X=X)
    else:
        ad.AnnData(np.log1p(X) if kind == "logarithms" else X).write_h5ad(path)
    is_counted = kind in ("h5ad", "npz", "folder")
    assert fit(path, "-o", tmp_path / "o") == 0
    printed = capsys.readouterr().out
    assert ("holds counts: --loss kullback-leibler" in printed) == is_counted
    run = record(tmp_path / "o")
    loss = "kullback-leibler" if is_counted else "frobenius"
    assert run["parameters"]["loss"] == loss
    assert run["counts"] == is_counted
    assert run["scale"] is None
    assert fit(path, "-o", tmp_path / "p", "--loss", "frobenius", "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["loss"], summary["counts"]) == ("frobenius", is_counted)
    words = " ".join(re.findall(r"<h2[^>]*>(.*?)</h2>", (tmp_path / "o/report.html").read_text()))
    is_cells = kind in ("h5ad", "folder", "logarithms")
    assert ("Programs" in words, "cells" in words) == (is_cells, is_cells)
    assert ("Components" in words, "samples" in words) == (not is_cells, not is_cells)


def page_of(path):
    html = (path / "report.html").read_text()
    return re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)


def test_the_report_has_the_mean_usage_of_programs_by_group(adata, file, tmp_path):
    out = tmp_path / "o"
    arguments = ["--layer", "the counts", "--color-by", "kind", "--quiet", "-o", out]
    assert fit(file, *arguments) == 0
    html = page_of(out)
    assert HOSTILE not in html
    (section,) = re.findall(r'<h2 id="usage">.*?<h2', html, re.DOTALL)
    rows = re.findall(r"<tr>(<td.*?)</tr>", section)
    assert len(rows) == 3
    basis, codes = (pd.read_csv(out / name, index_col=0) for name in ("basis.csv", "codes.csv"))
    usages = codes.to_numpy() * basis.to_numpy().sum(axis=1)
    usages /= usages.sum(axis=1, keepdims=True)
    shown = np.array([re.findall(r'data-sort="([\d.e-]+)"', row)[1:] for row in rows], float)
    expected = [usages[i::3].mean(axis=0) for i in range(3)]
    for mean in expected:
        assert np.abs(shown - mean).sum(axis=1).min() < 1e-6
    np.testing.assert_allclose(shown.sum(axis=1), 1.0)
    assert len(re.findall(r'title="[^"]*program \d: [\d.]+%"', section)) == 9


def test_groups_are_offered_but_not_guessed(file, tmp_path):
    assert fit(file, "--raw", "--quiet", "-o", tmp_path / "o") == 0
    (section,) = re.findall(r'<h2 id="usage">.*?<h2', page_of(tmp_path / "o"), re.DOTALL)
    assert "--color-by" in section
    assert "kind" in section
    assert "<table" not in section
    assert fit(file, "--raw", "--color-by", "depth", "--quiet", "-o", tmp_path / "p") == 0
    (section,) = re.findall(r'<h2 id="usage">.*?<h2', page_of(tmp_path / "p"), re.DOTALL)
    assert "<table" not in section


def test_the_report_says_how_to_repeat_it(file, tmp_path):
    out = tmp_path / "my out"
    assert fit(file, "--raw", "--seed", "7", "--quiet", "-o", out) == 0
    html, run = page_of(out), record(out)
    command = re.search(r'<p class="command">(.*?)</p>', html)[1]
    assert command.startswith("robustnmf fit ")
    assert "&#39;" in command  # the shell's quotes of a folder with a space
    assert f"robustnmf {run['version']}" in html
    assert "seed: 7" in html
    assert "0 of 2,160 values are missing" in html


def test_a_dataset_is_read_as_in_the_fit(file, tmp_path):
    out = tmp_path / "out"
    dataset = ["--dataset", "layers/log"]
    assert main(["fit", str(file), "-k", "3", "-o", str(out), *dataset]) == 0
    assert main(["transform", str(out / "model.rnmf"), str(file), "-o", str(out / "t.csv")]) == 0
    fitted, again = (pd.read_csv(out / name).iloc[:, 1:4] for name in ("codes.csv", "t.csv"))
    np.testing.assert_allclose(fitted, again, rtol=1e-6)
