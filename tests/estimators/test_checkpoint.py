"""Fits that are interrupted go on as if they had not been."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils._testing import ignore_warnings

from robustnmf import ConvexNMF, HuberRNMF, RobustNMF
from robustnmf.loop.checkpoint import Checkpoint
from tests.problems import law_over, noisy_low_rank

X = noisy_low_rank(300, 20, 3, outliers=10)
MODELS = {
    "trimmed": RobustNMF(3, max_iter=60, tol=0),
    "entropy": RobustNMF(3, weighting="entropy", max_iter=60),
    "several starts": RobustNMF(3, weighting="entropy", init="random", n_init=4, max_iter=200),
    "extrapolated": RobustNMF(
        3, solver="mu-extrapolated", loss="kullback-leibler", weighting="l21", max_iter=60
    ),
    "entries": HuberRNMF(3, max_iter=40),
    "mixtures": ConvexNMF(3, max_iter=40),
    "penalties": RobustNMF(3, weighting="entropy", alpha_W=0.01, max_iter=40),
}


class Interrupted(Exception):
    """Raised by a test to stop a fit."""


def interrupt(monkeypatch, at):
    """Stop the fit that comes next before a pass, once its state is on disk."""
    offer = Checkpoint.offer

    def stopping(self, engine, iteration, state, results):
        offer(self, engine, iteration, state, results)
        if iteration == at:
            raise Interrupted

    monkeypatch.setattr(Checkpoint, "offer", stopping)
    return lambda: monkeypatch.setattr(Checkpoint, "offer", offer)


@cache
def uninterrupted(name):
    """A model of this name, fitted in one go, and its codes."""
    model = clone(MODELS[name]).set_params(random_state=0)
    return model, model.fit_transform(X)


@ignore_warnings
@law_over(
    "name, at",
    [(name, at) for name in MODELS for at in (0, 25, 7, 38)],
    extra=lambda name, at: at in (7, 38),
    group=lambda name, at: f"checkpoint {name}",
)
def test_a_resumed_fit_is_the_fit(name, at, tmp_path, monkeypatch):
    path = tmp_path / "fit.ckpt"
    whole, expected = uninterrupted(name)
    model = clone(whole)
    stop = interrupt(monkeypatch, at)
    with pytest.raises(Interrupted):
        model.fit(X, checkpoint=path, checkpoint_every=0)
    stop()
    assert path.exists()
    codes = model.fit_transform(X, checkpoint=path, checkpoint_every=1000)
    np.testing.assert_allclose(model.objective_history_, whole.objective_history_, rtol=1e-12)
    np.testing.assert_allclose(model.components_, whole.components_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(codes, expected, rtol=1e-9, atol=1e-12)
    assert not path.exists()


SCRIPT = """
import sys, time
import numpy as np
from robustnmf import RobustNMF
from robustnmf.loop.checkpoint import Checkpoint
offer = Checkpoint.offer
def slowly(self, *args):
    offer(self, *args)
    time.sleep(0.02)
Checkpoint.offer = slowly
model = RobustNMF(3, random_state=0, max_iter=150, tol=0)
model.fit(np.load(sys.argv[1]), checkpoint=sys.argv[2], checkpoint_every=0)
"""


@ignore_warnings
def test_a_fit_that_is_killed_goes_on(tmp_path):
    data, path = tmp_path / "x.npy", tmp_path / "fit.ckpt"
    np.save(data, X)
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(data), str(path)]
    process = subprocess.Popen(command, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"})
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    time.sleep(0.5)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert path.exists()
    with np.load(path, allow_pickle=False) as file:
        assert json.loads(str(file["told"]))["iteration"] > 0
    model = RobustNMF(3, random_state=0, max_iter=150, tol=0)
    history = model.fit(X, checkpoint=path).objective_history_
    np.testing.assert_allclose(history, model.fit(X).objective_history_, rtol=1e-12)


def written(path, monkeypatch, data=X, **parameters):
    stop = interrupt(monkeypatch, 5)
    with pytest.raises(Interrupted):
        RobustNMF(3, random_state=0, **parameters).fit(data, checkpoint=path, checkpoint_every=0)
    stop()


def test_checkpoints_of_other_fits_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "fit.ckpt"
    written(path, monkeypatch)
    before = path.read_bytes()
    for model, data, what in (
        (RobustNMF(3, random_state=1), X, "parameter random_state"),
        (RobustNMF(4, random_state=0), X, "parameter n_components"),
        (RobustNMF(3, random_state=0), X[::-1].copy(), "content of X"),
        (RobustNMF(3, random_state=0), X[:, ::-1].copy(), "content of X"),
        (RobustNMF(3, random_state=0), X[:-1], "shape of X"),
        (RobustNMF(3, random_state=0), X.astype(np.float32), "dtype of X"),
        (RobustNMF(3, random_state=0), X + 0.1, "content of X"),
        (HuberRNMF(3, random_state=0), X, "estimator"),
    ):
        with pytest.raises(ValueError, match=f"belongs to another fit: its {what}"):
            model.fit(data, checkpoint=path)
    assert path.read_bytes() == before


def test_starts_and_weights_are_a_part_of_the_fit(tmp_path, monkeypatch):
    path = tmp_path / "fit.ckpt"
    rng = np.random.default_rng(0)
    start = {"W": 0.1 + rng.random((300, 3)), "H": 0.1 + rng.random((3, 20))}
    model = RobustNMF(3, init="custom", solver="mu")
    weights = rng.integers(1, 3, 300).astype(float)
    stop = interrupt(monkeypatch, 5)
    with pytest.raises(Interrupted):
        model.fit(X, **start, sample_weight=weights, checkpoint=path, checkpoint_every=0)
    stop()
    for change, what in (
        ({"W": start["W"] + 0.1}, "W"),
        ({"H": start["H"][::-1]}, "H"),
        ({"sample_weight": weights[::-1].copy()}, "sample_weight"),
    ):
        given = {**start, "sample_weight": weights, **change}
        with pytest.raises(ValueError, match=f"its {what} is"):
            model.fit(X, **given, checkpoint=path)


def test_two_writers_do_not_meet(tmp_path, monkeypatch):
    path = tmp_path / "fit.ckpt"
    written(path, monkeypatch)
    assert [file.name for file in tmp_path.iterdir()] == ["fit.ckpt"]  # nothing is left beside it

    def full(*args, **kwargs):
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="no space left"):
        RobustNMF(3, random_state=0).fit(X, checkpoint=tmp_path / "other", checkpoint_every=0)
    assert [file.name for file in tmp_path.iterdir()] == ["fit.ckpt"]


@pytest.mark.parametrize("change", ["iteration", "nan", "shape", "dtype", "list", "npy"])
def test_checkpoints_that_do_not_fit_are_refused(change, tmp_path, monkeypatch):
    path = tmp_path / "fit.ckpt"
    written(path, monkeypatch)
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    told = json.loads(str(arrays["told"]))
    if change == "iteration":
        told["iteration"] = 10**6
    elif change == "nan":
        arrays["local.codes"][0, 0, 0] = np.nan
    elif change == "shape":
        arrays["local.codes"] = arrays["local.codes"][:, :-1]
    elif change == "dtype":
        arrays["state.basis"] = arrays["state.basis"].astype(np.float32)
    elif change == "list":
        told = [1, 2]
    arrays["told"] = np.array(json.dumps(told))
    with path.open("wb") as file:
        np.save(file, X) if change == "npy" else np.savez(file, **arrays)
    with pytest.raises(ValueError, match="not a readable checkpoint"):
        RobustNMF(3, random_state=0).fit(X, checkpoint=path)


@pytest.mark.parametrize("damage", ["cut", "text", "empty", "foreign", "changed"])
def test_damaged_checkpoints_are_refused(damage, tmp_path, monkeypatch):
    path = tmp_path / "fit.ckpt"
    written(path, monkeypatch)
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "text":
        path.write_text("no checkpoint")
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "foreign":
        with path.open("wb") as file:
            np.savez(file, a=np.ones(3))
    else:
        path.write_bytes(content[:3000] + bytes(500) + content[3500:])
    with pytest.raises(ValueError, match="not a readable checkpoint"):
        RobustNMF(3, random_state=0).fit(X, checkpoint=path)
    assert path.exists()


def test_bad_arguments_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder"):
        RobustNMF(3).fit(X, checkpoint=tmp_path / "absent" / "c")
    with pytest.raises(TypeError, match="path of a file"):
        RobustNMF(3).fit(X, checkpoint=3)
    with pytest.raises(ValueError, match="checkpoint_every"):
        RobustNMF(3).fit(X, checkpoint=tmp_path / "c", checkpoint_every=-1)
    da = pytest.importorskip("dask.array", reason="needs Dask: pip install robustnmf[dask]")
    with pytest.raises(ValueError, match="Leave it out for a Dask array"):
        RobustNMF(3).fit(da.from_array(X, chunks=(100, 20)), checkpoint=tmp_path / "c")


@ignore_warnings
def test_stored_data_have_checkpoints(tmp_path, monkeypatch):
    monkeypatch.setattr("robustnmf.engine.stored.BLOCK_BYTES", 20_000)
    data, path = tmp_path / "x.npy", tmp_path / "fit.ckpt"
    np.save(data, X)
    expected = RobustNMF(3, random_state=0, max_iter=30, tol=0).fit(data).components_
    written(path, monkeypatch, data, max_iter=30, tol=0)
    model = RobustNMF(3, random_state=0, max_iter=30, tol=0).fit(data, checkpoint=path)
    np.testing.assert_array_equal(model.components_, expected)
