"""Where the commands write to: files, FIFOs, standard output; and what they refuse to replace."""

import errno
import json
import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

import robustnmf
from robustnmf import RobustNMF
from robustnmf.cli import main
from robustnmf.files.archive import whole_file
from robustnmf.report.fitted import Fit, summary
from robustnmf.report.fitted_page import MAX_SAMPLES, write
from robustnmf.report.fitted_plots import MAX_POINTS
from robustnmf.tables import Table
from robustnmf.weightings import L21
from tests.problems import noisy_low_rank

pd = pytest.importorskip("pandas", reason="tables need the packages of the extra cli")
pytest.importorskip("plotly", reason="tables need the packages of the extra cli")

needs_fifos = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")
X = noisy_low_rank(40, 6, 2)


@pytest.fixture
def model(tmp_path):
    RobustNMF(2, random_state=0).fit(X).save(tmp_path / "model.rnmf")
    np.savetxt(tmp_path / "data.csv", X, delimiter=",")
    return tmp_path / "model.rnmf"


def transform(model, output, *more):
    data = str(model.parent / "data.csv")
    return main(["transform", str(model), data, "-o", str(output), "--no-header", *more])


class CountedModel(SimpleNamespace):
    """What a fit learns; counts how often arrays over all samples are read."""

    reads = 0

    @property
    def sample_importances_(self):
        type(self).reads += 1
        return self.importances


def fit_of_size(n):
    rng = np.random.default_rng(0)
    model = CountedModel(
        components_=rng.random((2, 6)), importances=rng.random(n), energies_=rng.random(n),
        outliers_=rng.random(n) < 0.1, n_iter_=3, objective_history_=np.ones(3),
        effective_sample_size_=float(n), weighting_=L21(), weighting="l21", loss="frobenius",
        init="robust", random_state=0,
        explain=lambda rows: rows, _write_to=lambda file: None,
    )  # fmt: skip
    table = Table(rng.random((n, 6)), [f"{i:07}" for i in range(n)], list("abcdef"), ["a note"])
    return Fit(model, table, rng.random((n, 2)), 1.0)


def test_the_page_does_not_grow_with_samples_nor_is_anything_computed_for_each(tmp_path):
    sizes = {}
    for n in (2 * MAX_POINTS, 20 * MAX_POINTS):
        CountedModel.reads = 0
        fit = fit_of_size(n)
        paths = write(fit, tmp_path / str(n))
        assert len(summary(fit)["outliers"]) == fit.outliers.sum() > MAX_SAMPLES
        assert CountedModel.reads <= 5  # arrays over all samples: once for each table or plot
        sizes[n] = paths["report.html"].stat().st_size
    small, large = sizes.values()
    assert large == pytest.approx(small, rel=0.01)


@needs_fifos
def test_a_fifo_is_written_to_and_stays(model, tmp_path):
    fifo, received = tmp_path / "fifo", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: received.append(fifo.read_bytes()), daemon=True)
    reader.start()
    assert transform(model, fifo, "--json") == 0
    reader.join(timeout=30)
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    assert transform(model, tmp_path / "file.csv", "--json") == 0
    assert received == [(tmp_path / "file.csv").read_bytes()]


@needs_fifos
def test_what_cannot_be_read_again_is_no_place_for_codes_or_checkpoints(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(ValueError, match="a FIFO or a device"):
        RobustNMF(2).fit(X, checkpoint=fifo)
    with pytest.raises(ValueError, match="a FIFO or a device"), whole_file(fifo):
        pass
    with pytest.raises(ValueError, match="a FIFO or a device"):
        RobustNMF(2, random_state=0).fit(X, codes_path=fifo)
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["fifo"]


KILLED = """
import sys
from pathlib import Path
from robustnmf.files.archive import whole_file
with whole_file(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    sys.stdin.read()
"""


def start_writing(path):
    """Return a process that is in the middle of writing a file."""
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"writing\n"
    return process


def test_the_next_write_deletes_what_a_killed_process_left(tmp_path):
    target, mine = tmp_path / "codes.csv", tmp_path / ".codes.csv.original"
    mine.write_text("not a temporary file")
    killed = start_writing(target)
    killed.kill()
    killed.wait()
    assert len([*tmp_path.iterdir()]) == 2
    with whole_file(target) as file:
        file.write(b"whole")
    assert target.read_bytes() == b"whole"
    assert sorted(tmp_path.iterdir()) == [mine, target]


def test_files_that_others_are_writing_are_not_deleted(tmp_path):
    target = tmp_path / "codes.csv"
    other = start_writing(target)
    with whole_file(target) as file:
        file.write(b"whole")
    other.communicate()
    assert other.returncode == 0
    assert target.read_bytes() == b"half"  # the last one to finish
    assert [*tmp_path.iterdir()] == [target]


def test_a_finished_fit_deletes_what_a_killed_write_of_its_checkpoint_left(tmp_path):
    killed = start_writing(tmp_path / "state")
    killed.kill()
    killed.wait()
    RobustNMF(2, random_state=0).fit(X, checkpoint=tmp_path / "state")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("output", "redirected"),
    [
        ("-", "pipe"),
        ("/dev/stdout", "file"),
        pytest.param("-", "file", marks=pytest.mark.extra),
        pytest.param("/dev/stdout", "pipe", marks=pytest.mark.extra),
    ],
)
def test_standard_output_holds_the_codes_and_nothing_else(model, output, redirected, tmp_path):
    if output != "-" and not os.path.exists(output):
        pytest.skip("this system has no /dev/stdout")
    assert transform(model, tmp_path / "file.csv", "--json") == 0
    command = [sys.executable, "-m", "robustnmf", "transform", str(model),
               str(tmp_path / "data.csv"), "--no-header", "-o", output]  # fmt: skip
    with (tmp_path / "redirected.csv").open("w+b") as file:
        file.write(b"before\n")
        file.flush()
        done = subprocess.run(
            command, stdout=file if redirected == "file" else subprocess.PIPE,
            stderr=subprocess.PIPE, check=True,
        )  # fmt: skip
    expected = (tmp_path / "file.csv").read_bytes()
    if redirected == "pipe":
        assert done.stdout == expected
    else:
        assert (tmp_path / "redirected.csv").read_bytes() == b"before\n" + expected
    assert b"40 samples, 6 features" in done.stderr
    assert not (tmp_path / "-").exists()


def test_json_and_codes_do_not_share_standard_output(model, capsys):
    assert transform(model, "-", "--json") == 2
    assert "--json prints to standard output" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_is_no_error(model):
    done = subprocess.run(
        f"'{sys.executable}' -m robustnmf transform '{model}' '{model.parent / 'data.csv'}' "
        "--no-header -o - | true",
        shell=True, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "Broken pipe" not in done.stderr
    assert "Traceback" not in done.stderr


def test_no_command_writes_over_what_it_reads(model, tmp_path, capsys):
    data = tmp_path / "data.csv"
    (tmp_path / "link.csv").symlink_to(data)
    for output in (data, tmp_path / "link.csv", model):
        before = output.read_bytes()
        assert transform(model, output) == 1
        assert "which is read" in capsys.readouterr().err
        assert output.read_bytes() == before
    table = tmp_path / "out" / "codes.csv"
    table.parent.mkdir()
    table.write_bytes(data.read_bytes())
    assert main(["fit", str(table), "-k", "2", "-o", str(table.parent)]) == 1
    assert "which is read" in capsys.readouterr().err
    assert table.read_bytes() == data.read_bytes()


def test_models_are_written_through_pipes(model, tmp_path):
    if not os.path.exists("/dev/fd"):  # /dev/stdout is one of these
        pytest.skip("this system has no /dev/fd")
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as source, ThreadPoolExecutor(1) as pool:
        received = pool.submit(source.read)
        robustnmf.load(model).save(f"/dev/fd/{writing}")
        os.close(writing)
        (tmp_path / "copy.rnmf").write_bytes(received.result(timeout=30))
    copy = robustnmf.load(tmp_path / "copy.rnmf")
    np.testing.assert_array_equal(copy.components_, robustnmf.load(model).components_)


def test_a_fit_that_cannot_be_written_leaves_the_files_of_the_one_before(
    model, monkeypatch, capsys
):
    data, out = str(model.parent / "data.csv"), model.parent / "out"
    command = ["fit", data, "--no-header", "-o", str(out), "--force", "--quiet", "-k"]
    assert main([*command, "2"]) == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}

    def write_to(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("robustnmf.files.archive.write_to", write_to)
    assert main([*command, "3"]) == 1
    assert f"{out}: {os.strerror(errno.ENOSPC)}" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_doubts_are_told_if_nothing_else_is(tmp_path, capsys):
    rows = np.sort(np.random.default_rng(0).random((30, 6)), axis=1)
    np.savetxt(tmp_path / "t.csv", rows, delimiter=",", fmt="%.4f")
    command = ["fit", str(tmp_path / "t.csv"), "-k", "2", "-o", str(tmp_path / "out"), "--json"]
    assert main(command) == 0
    printed = capsys.readouterr()
    assert "the first line holds numbers, which name the features" in printed.err
    assert "the first line holds numbers" in json.loads(printed.out)["notes"][-1]
