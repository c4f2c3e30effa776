"""Runs of ``robustnmf fit``: units, records, what is replaced, and advice."""

import json
from dataclasses import replace

import numpy as np
import pytest

import robustnmf
from robustnmf.cli import main
from robustnmf.cli.fit import class_note, edge_note, units_ratio
from robustnmf.estimators import RankSelection
from robustnmf.estimators.encoding import find_outliers
from robustnmf.report.fitted import encode_samples
from robustnmf.tables import Table
from tests.problems import noisy_low_rank

pd = pytest.importorskip("pandas", reason="tables need the packages of the extra cli")
pytest.importorskip("plotly", reason="tables need the packages of the extra cli")

UNITS = np.array([1.0, 1.0, 5000.0, 1.0, 0.01, 1.0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    X = noisy_low_rank(80, 6, 2, outliers=5) * UNITS
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["kind"] = ["x", "y"] * 40
    frame.to_csv(folder / "t.csv", index=False)
    return folder


def fit(folder, out, *more):
    data = str(folder / "t.csv")
    return main(["fit", data, "-k", "2", "-o", str(folder / out), "--quiet", *more])


def column(path, name):
    return pd.read_csv(path)[name].to_numpy()


def test_parts_are_in_the_units_of_the_file(folder, capsys):
    assert fit(folder, "scaled", "--scale", "robust") == 0
    assert "--scale" not in capsys.readouterr().err
    codes = pd.read_csv(folder / "scaled" / "codes.csv").iloc[:, 1:].to_numpy()
    basis = pd.read_csv(folder / "scaled" / "basis.csv").iloc[:, 1:].to_numpy()
    X = pd.read_csv(folder / "t.csv").iloc[:, :6].to_numpy()
    inside = column(folder / "scaled" / "samples.csv", "outlier") == 0
    error = np.abs(codes @ basis - X)[inside].mean(axis=0) / X[inside].mean(axis=0)
    assert error.max() < 0.25  # in every unit
    record = json.loads((folder / "scaled" / "run.json").read_text())
    model = robustnmf.load(folder / "scaled" / "model.rnmf")
    np.testing.assert_allclose(list(record["scale"].values()), model.feature_scale_)
    np.testing.assert_allclose(model.components_ * model.feature_scale_, basis)


def test_new_samples_are_scaled_and_marked_as_those_of_the_fit(folder):
    assert fit(folder, "apply", "--scale", "robust") == 0
    arguments = [str(folder / "apply" / "model.rnmf"), str(folder / "t.csv")]
    assert main(["transform", *arguments, "-o", str(folder / "new.csv"), "--json"]) == 0
    for name, file in (("component1", "codes.csv"), ("energy", "samples.csv")):
        before = column(folder / "apply" / file, name)
        np.testing.assert_allclose(column(folder / "new.csv", name), before, rtol=1e-5, atol=1e-8)
    outliers = column(folder / "apply" / "samples.csv", "outlier")
    assert outliers[:5].all()
    np.testing.assert_array_equal(column(folder / "new.csv", "outlier"), outliers)


@pytest.mark.parametrize("weighting", robustnmf.weightings.WEIGHTINGS)
def test_outliers_of_new_data_are_those_of_the_fit(weighting):
    X = noisy_low_rank(80, 6, 2, outliers=5)
    model = robustnmf.RobustNMF(2, weighting=weighting, random_state=0, max_iter=100).fit(X)
    _, energies, outliers = encode_samples(model, X)
    assert (outliers == model.outliers_).mean() > 0.97
    far = np.full(3, 1e6 * energies.max())
    found = find_outliers(model, far, np.full(3, 1e-9))
    assert found.all() or weighting in ("uniform", "huber", "l21")  # which never lose all weight


def test_forged_scales_are_refused(folder):
    model = robustnmf.RobustNMF(1).fit(np.ones((25, 3)))
    for scale in (np.array([1.0, 0.0, 1.0]), np.ones(2), np.array([1.0, np.nan, 1.0])):
        model.feature_scale_ = scale
        with pytest.raises(ValueError, match="not positive numbers"):
            encode_samples(model, np.ones((2, 3)))


def test_features_of_several_units_are_scaled_by_default(folder, capsys):
    arguments = [str(folder / "t.csv"), "-k", "2", "-o"]
    assert main(["fit", *arguments, str(folder / "auto")]) == 0
    text = "times the median one (--scale none keeps the units): every feature is divided by its"
    assert text in capsys.readouterr().out
    assert text in (folder / "auto" / "report.html").read_text()
    assert fit(folder, "chosen", "--scale", "robust") == 0
    assert fit(folder, "plain", "--scale", "none") == 0
    codes = [(folder / out / "codes.csv").read_bytes() for out in ("auto", "chosen", "plain")]
    assert codes[0] == codes[1] != codes[2]
    assert units_ratio(np.ones((5, 3))) == 1.0


@pytest.mark.parametrize("kind", ["counts", "spectra", "divergence"])
def test_features_of_one_unit_are_not_scaled_by_default(kind, folder, capsys):
    X = 100 * noisy_low_rank(40, 24, 2) * np.where(np.arange(24) == 5, 3000.0, 1.0)
    names = [f"f{j}" for j in range(24)] if kind != "spectra" else [f"{j}.5" for j in range(24)]
    pd.DataFrame(X.round() if kind == "counts" else X, columns=names).to_csv(
        folder / f"{kind}.csv", index=False
    )
    out = folder / f"unit_{kind}"
    loss = "kullback-leibler" if kind == "divergence" else "frobenius"
    arguments = [str(folder / f"{kind}.csv"), "-k", "2", "-o", str(out), "--loss", loss]
    assert main(["fit", *arguments]) == 0
    assert json.loads((out / "run.json").read_text())["scale"] is None
    assert ("use --scale robust" in capsys.readouterr().err) == (kind != "divergence")


def test_columns_of_texts_and_classes_are_offered_as_colours(folder, capsys):
    data = str(folder / "t.csv")
    assert main(["fit", data, "-k", "2", "-o", str(folder / "offer")]) == 0
    assert "--color-by kind" in capsys.readouterr().out
    assert main(["fit", data, "-k", "2", "-o", str(folder / "taken"), "--color-by", "kind"]) == 0
    assert "--color-by" not in capsys.readouterr().out
    frame = pd.read_csv(data).drop(columns="kind")
    frame["wine class"] = np.arange(80) % 3
    frame.to_csv(folder / "class.csv", index=False)
    data = str(folder / "class.csv")
    assert main(["fit", data, "-k", "2", "-o", str(folder / "asked"), "--quiet"]) == 0
    error = capsys.readouterr().err
    assert "'wine class' holds 3 different integers" in error
    assert "use --color-by 'wine class'" in error
    arguments = ["-o", str(folder / "known"), "--quiet", "--color-by", "wine class"]
    assert main(["fit", data, "-k", "2", *arguments]) == 0
    assert "different integers" not in capsys.readouterr().err


def test_one_of_many_small_integers_is_a_class_by_its_name_alone():
    rows = np.arange(40)[:, None] % [2, 3, 4] + 0.0
    table = Table(rows, [str(i) for i in range(40)], ["a", "b", "c"])
    assert class_note(rows, table) == ""
    assert "'Class' holds 3 " in class_note(rows, replace(table, features=["a", "Class", "c"]))


def test_results_are_replaced_only_by_force(folder, capsys):
    assert fit(folder, "twice") == 0
    before = {p.name: p.read_bytes() for p in (folder / "twice").iterdir()}
    assert fit(folder, "twice") == 1
    assert "overwrite with --force" in capsys.readouterr().err
    assert {p.name: p.read_bytes() for p in (folder / "twice").iterdir()} == before
    assert fit(folder, "twice", "--force") == 0
    assert main(["fit", str(folder / "t.csv"), "-k", "2"]) == 2
    assert "-o FOLDER" in capsys.readouterr().err


def test_the_run_is_recorded(folder):
    assert fit(folder, "record", "--n-init", "2", "--init", "random", "--weighting", "cauchy") == 0
    record = json.loads((folder / "record" / "run.json").read_text())
    assert record["command"][0] == "fit"
    assert record["version"] == robustnmf.__version__
    assert record["parameters"]["weighting"] == "cauchy"
    assert record["parameters"]["n_init"] == 2
    assert record["left_out"]["columns_left_out"] == ["kind"]
    assert record["results"]["samples"] == 80
    assert record["options"]["scale"] == "auto"
    assert len(record["scale"]) == 6


def test_a_single_part_is_in_the_singular(folder, capsys):
    arguments = [str(folder / "t.csv"), "-k", "1", "-o", str(folder / "single")]
    assert main(["fit", *arguments, "--max-iter", "1"]) == 0
    assert "1 component in 1 iteration, " in capsys.readouterr().out
    assert "1 component in 1 iteration." in (folder / "single" / "report.html").read_text()


def test_missing_values_are_counted(folder, capsys):
    frame = pd.read_csv(folder / "t.csv")
    frame.loc[3:5, "b"] = np.nan
    frame.to_csv(folder / "missing.csv", index=False)
    out = folder / "missing"
    assert main(["fit", str(folder / "missing.csv"), "-k", "2", "-o", str(out)]) == 0
    assert "3 of 480 values are missing (0.6%)" in capsys.readouterr().out
    record = json.loads((out / "run.json").read_text())
    assert record["results"]["missing_values"] == 3


def test_a_rank_at_the_edge_is_noted():
    def selected(best, count):
        errors = np.abs(np.arange(1, count + 1) - best) + np.zeros((3, 1))
        return RankSelection(np.arange(1, count + 1), errors)

    assert "raise --max-ranks" in edge_note(selected(5, 5), 5)
    assert "a table of this shape" in edge_note(selected(5, 5), 15)
    assert "the least there is" in edge_note(selected(1, 5), 5)
    assert edge_note(selected(3, 5), 5) == ""


def test_the_benchmark_has_two_names(capsys):
    helps = []
    for name in ("benchmark", "contaminate"):
        with pytest.raises(SystemExit):
            main([name, "--help"])
        helps.append(capsys.readouterr().out)
    assert all("-o FOLDER, --output FOLDER" in text for text in helps)


@pytest.mark.parametrize("scale", ["none", "robust"])
def test_a_file_larger_than_memory_is_fitted_as_such(scale, tmp_path, monkeypatch, capsys):
    X = noisy_low_rank(120, 6, 2, outliers=5) * UNITS
    np.save(tmp_path / "x.npy", X)
    results = {}
    for name, memory in (("memory", 2**40), ("file", 100)):
        monkeypatch.setattr("robustnmf.tables._table.memory_of_machine", lambda m=memory: m)
        out = tmp_path / name
        arguments = [str(tmp_path / "x.npy"), "-k", "2", "--scale", scale, "-o", str(out)]
        assert main(["fit", *arguments, "--quiet"]) == 0
        arguments = [str(out / "model.rnmf"), str(tmp_path / "x.npy"), "-o", str(out / "new.csv")]
        assert main(["transform", *arguments]) == 0
        results[name] = [column(out / "samples.csv", "energy"), column(out / "new.csv", "energy")]
        outliers = column(out / "samples.csv", "outlier")
        np.testing.assert_array_equal(column(out / "new.csv", "outlier"), outliers)
        notes = json.loads((out / "run.json").read_text())["notes"]
        assert any("block by block" in note for note in notes) == (name == "file")
    for one, other in zip(results["memory"], results["file"], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("weighting", robustnmf.weightings.WEIGHTINGS)
def test_a_blank_sample_does_not_make_outliers_of_new_data(weighting):
    X = noisy_low_rank(80, 6, 2)
    X[5] = 0.0
    model = robustnmf.RobustNMF(2, weighting=weighting, random_state=0, max_iter=200).fit(X)
    assert encode_samples(model, X)[2].mean() <= model.outliers_.mean() + 0.03


@pytest.mark.parametrize("weighting", ["l21", "fuzzy", "trimmed"])
def test_models_of_minibatches_encode_files(weighting, tmp_path):
    X = noisy_low_rank(80, 6, 2)
    pd.DataFrame(X).to_csv(tmp_path / "t.csv", index=False)
    model = robustnmf.RobustNMF(2, weighting=weighting, random_state=0).partial_fit(X)
    model.save(tmp_path / "m.rnmf")
    paths = [str(tmp_path / name) for name in ("m.rnmf", "t.csv", "codes.csv")]
    assert main(["transform", *paths[:2], "-o", paths[2]]) == 0
    assert len(pd.read_csv(paths[2])) == 80


def test_a_model_that_is_fitted_again_forgets_the_scales_of_its_file(folder):
    assert fit(folder, "again", "--scale", "robust") == 0
    model = robustnmf.load(folder / "again" / "model.rnmf").fit(noisy_low_rank(80, 6, 2))
    assert not hasattr(model, "feature_scale_")


def test_outliers_in_silent_features_are_not_blank(tmp_path):
    X = np.c_[noisy_low_rank(60, 8, 3), np.zeros((60, 2))]
    X[[7, 23]] = 0.0
    X[[7, 23], 8] = 50.0, 40.0
    pd.DataFrame(X, columns=list("abcdefghij")).to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "out"
    arguments = [str(tmp_path / "t.csv"), "-k", "3", "--weighting", "entropy", "-o", str(out)]
    assert main(["fit", *arguments, "--quiet"]) == 0
    assert column(out / "samples.csv", "outlier")[[7, 23]].all()


def test_half_precision_can_be_scaled(tmp_path):
    rng = np.random.default_rng(0)
    X = np.c_[0.001 * rng.random((100, 4)), 10 * rng.random((100, 3))]
    X[3, 0] = 100.0
    np.save(tmp_path / "t.npy", X.astype(np.float16))
    arguments = [str(tmp_path / "t.npy"), "-k", "2", "-o", str(tmp_path / "out"), "--quiet"]
    assert main(["fit", *arguments]) == 0


@pytest.mark.parametrize("shape", ["1x60", "60x1"])
def test_images_can_be_lines(shape, tmp_path):
    np.save(tmp_path / "t.npy", noisy_low_rank(20, 60, 2))
    arguments = [str(tmp_path / "t.npy"), "-k", "2", "-o", str(tmp_path / "out"), "--quiet"]
    assert main(["fit", *arguments, "--image-shape", shape]) == 0
