"""Saved models: they are restored exactly, and bad files are refused."""

import io
import json
import pickle
import struct
import zipfile

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.utils._testing import ignore_warnings

import robustnmf
from robustnmf import (
    EWRNMF,
    FWRNMF,
    NMFL2,
    Beta,
    ConvexNMF,
    Entropy,
    EucNMF,
    HuberRNMF,
    Orthogonal,
    RobustNMF,
    RobustNMFDetector,
)
from robustnmf.files import archive
from tests.problems import noisy_low_rank

X = noisy_low_rank(60, 8, 2, outliers=3)
FIXED = np.abs(np.random.default_rng(0).normal(size=(1, 8)))
MODELS = {
    "RobustNMF": RobustNMF(2),
    "parts": RobustNMF(2, weighting=Entropy(3.0), loss=Beta(1.5), init="random"),
    "orthogonal": RobustNMF(2, structure=Orthogonal(0.5), init="random"),
    "penalties": RobustNMF(2, alpha_W=0.01, alpha_H=0.02, l1_ratio=0.5),
    "fixed": RobustNMF(2, fixed_components=FIXED, init="random"),
    **{kind.__name__: kind(2) for kind in (EucNMF, ConvexNMF, NMFL2, HuberRNMF, FWRNMF, EWRNMF)},
    "detector": RobustNMFDetector(2),
}


@ignore_warnings
def fitted(name):
    return MODELS[name].set_params(random_state=0, max_iter=20).fit(X)


def assert_same(one, other):
    """Equal in all they are made of."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    elif hasattr(one, "__dict__"):
        assert vars(one).keys() - vars(other).keys() == set()
        for name, value in vars(one).items():
            assert_same(value, vars(other)[name])
    else:
        assert one == other


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_as_it_was(name, tmp_path):
    model = fitted(name)
    model.save(tmp_path / "model.rnmf")
    again = robustnmf.load(tmp_path / "model.rnmf")
    assert_same(model, again)
    assert str(again) == str(model)
    score = "score_samples"
    np.testing.assert_array_equal(getattr(again, score)(X), getattr(model, score)(X))


def test_names_of_features_float32_and_streams(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X.astype(np.float32), columns=[f"<b>{i}" for i in range(8)])
    model = RobustNMF(2, random_state=0).partial_fit(frame).partial_fit(frame)
    model.save(tmp_path / "m")
    again = robustnmf.load(tmp_path / "m")
    assert list(again.feature_names_in_) == list(frame.columns)
    assert again.components_.dtype == np.float32
    np.testing.assert_array_equal(
        again.partial_fit(frame).components_, model.partial_fit(frame).components_
    )


@ignore_warnings
def test_pickles_work_as_for_any_estimator(tmp_path):
    model = fitted("RobustNMF")
    assert_same(model, pickle.loads(pickle.dumps(model)))
    joblib.dump(model, tmp_path / "m.joblib")
    assert_same(model, joblib.load(tmp_path / "m.joblib"))


def test_models_that_cannot_be_saved_are_refused(tmp_path):
    with pytest.raises(NotFittedError):
        RobustNMF(2).save(tmp_path / "m")
    with pytest.raises(FileNotFoundError, match="a file in a folder"):
        fitted("RobustNMF").save(tmp_path)

    class Mine(Entropy):
        pass

    with ignore_warnings():
        model = RobustNMF(2, weighting=Mine(1.0), max_iter=3).fit(X)
    with pytest.raises(TypeError, match="classes of this library"):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []
    with ignore_warnings():
        model = RobustNMF(2, random_state=np.random.RandomState(0), max_iter=3).fit(X)
    with pytest.warns(UserWarning, match="RandomState"):
        model.save(tmp_path / "m")
    assert robustnmf.load(tmp_path / "m").random_state is None


def rewritten(path, change):
    """The file with its entries changed, digest and all made to fit: a forger's work."""
    arrays, told = archive.read(path)
    change(arrays, told)
    archive.write(path, arrays, told)


FORGERIES = {
    "another format": lambda a, t: t.update(format="robustnmf model 99"),
    "no model": lambda a, t: t.pop("model"),
    "a number": lambda a, t: t.update(model=3),
    "a part as model": lambda a, t: t.update(model=t["model"]["learned"]["weighting_"]),
    "unknown estimator": lambda a, t: t["model"].update(name="Popen"),
    "unknown kind": lambda a, t: t["model"].update({"is": "eval"}),
    "unknown part": lambda a, t: t["model"]["learned"]["weighting_"].update(name="os.system"),
    "unknown parameter": lambda a, t: t["model"]["fields"].update(shell=True),
    "bad parameter": lambda a, t: t["model"]["fields"].update(n_components=-3),
    "a method": lambda a, t: t["model"]["learned"].update(fit=1.0),
    "a dunder": lambda a, t: t["model"]["learned"].update(__class__="x"),
    "no components": lambda a, t: t["model"]["learned"].pop("components_"),
    "components of text": lambda a, t: t["model"]["learned"].update(components_="x"),
    "other features": lambda a, t: t["model"]["learned"].update(n_features_in_=9),
    "no units": lambda a, t: t["model"]["learned"].update(_scale=0.0),
    "no weighting": lambda a, t: t["model"]["learned"].update(weighting_=None),
    "no loss": lambda a, t: t["model"]["learned"]["_problem"]["fields"].update(loss=None),
    "no pay": lambda a, t: t["model"]["learned"]["_problem"]["fields"].update(codes_penalty=None),
    "tiny units": lambda a, t: t["model"]["learned"].update(_scale=1e-320),
    "features as float": lambda a, t: t["model"]["learned"].update(n_features_in_=8.0),
    "of scikit-learn": lambda a, t: t["model"]["learned"].update(_sklearn_output_config=None),
    "an output": lambda a, t: t["model"].update(output="evil"),
    "no problem": lambda a, t: t["model"]["learned"].update(_problem=None),
    "negative components": lambda a, t: a.update({k: -1.0 - v for k, v in a.items()}),
    "not finite": lambda a, t: a.update({k: v * np.nan for k, v in a.items()}),
    "missing array": lambda a, t: a.clear(),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_files_are_refused(name, tmp_path):
    path = tmp_path / "m.rnmf"
    fitted("RobustNMF").save(path)
    rewritten(path, FORGERIES[name])
    with pytest.raises(ValueError, match="is not a saved model"):
        robustnmf.load(path)


def zip_of(entries, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as z:
        for name, content in entries:
            z.writestr(name, content)
    return file.getvalue()


def npy(array, **options):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, **options)
    return file.getvalue()


def huge():
    """An array of a few bytes whose header claims a petabyte."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (125000000000000,), }\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


HOSTILE = {
    "empty": b"",
    "text": b"not a model",
    "pickle": pickle.dumps({"a": 1}),
    "bare array": npy(np.zeros(3)),
    "empty archive": zip_of([]),
    "foreign archive": zip_of([("a.npy", npy(np.zeros(3)))]),
    "objects": zip_of([("told.npy", npy(np.array([{}], dtype=object), allow_pickle=True))]),
    "a petabyte": zip_of([("told.npy", npy(np.array("{}"))), ("array0.npy", huge())]),
    "a bomb": zip_of([("array0.npy", bytes(10**7))], zipfile.ZIP_DEFLATED),
    "no JSON": zip_of([("told.npy", npy(np.array("{"))), ("digest.npy", npy(np.array("x")))]),
    "deep JSON": zip_of([
        ("told.npy", npy(np.array("[" * 100_000))),
        ("digest.npy", npy(np.array(archive._digest({}, "[" * 100_000)))),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(name, tmp_path):
    path = tmp_path / "m.rnmf"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(ValueError, match="is not a saved model"):
        robustnmf.load(path)


def test_checkpoints_and_missing_files_are_refused(tmp_path):
    archive.write(tmp_path / "c", {}, {"format": "robustnmf checkpoint 1"})
    with pytest.raises(ValueError, match="its format is 'robustnmf checkpoint 1'"):
        robustnmf.load(tmp_path / "c")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        robustnmf.load(tmp_path / "nothing")


CONTENT = {}


def content(tmp_path_factory):
    if not CONTENT:
        path = tmp_path_factory.mktemp("models") / "m.rnmf"
        fitted("RobustNMF").save(path)
        CONTENT["bytes"], CONTENT["path"] = path.read_bytes(), path
    return CONTENT["bytes"], CONTENT["path"]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_truncated_and_changed_files_are_refused_or_the_same(tmp_path_factory, data):
    whole, path = content(tmp_path_factory)
    if data.draw(st.booleans()):
        spoiled = whole[: data.draw(st.integers(0, len(whole) - 1))]
    else:
        at = data.draw(st.integers(0, len(whole) - 1))
        spoiled = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :]
    other = path.with_name("spoiled")
    other.write_bytes(spoiled)
    path.write_bytes(whole)
    try:
        model, told = robustnmf.load(other), None
    except ValueError as error:
        model, told = None, str(error)
    if model is None:
        assert "is not a saved model" in told
    else:  # bytes of the archive that nobody reads
        assert_same(model, robustnmf.load(path))


def test_the_text_is_json(tmp_path):
    fitted("detector").save(tmp_path / "m")
    with np.load(tmp_path / "m", allow_pickle=False) as file:
        told = json.loads(str(file["told"]))
    assert told["format"] == "robustnmf model 2"
    assert told["version"] == robustnmf.__version__
    assert told["model"]["name"] == "RobustNMFDetector"


@pytest.mark.parametrize("name", ["shift_", "offset_", "n_features_in_"])
def test_forged_detectors_are_refused(name, tmp_path):
    fitted("detector").save(tmp_path / "m")
    rewritten(tmp_path / "m", lambda a, t: t["model"]["learned"].update({name: "x"}))
    with pytest.raises(ValueError, match="is not a saved model"):
        robustnmf.load(tmp_path / "m")


@ignore_warnings
def test_frames_outputs_links_and_modes(tmp_path):
    pandas = pytest.importorskip("pandas")
    fixed = pandas.DataFrame(FIXED)
    model = RobustNMF(2, fixed_components=fixed, init="random", random_state=0).fit(X)
    model.set_output(transform="pandas")
    (tmp_path / "real").write_text("old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    model.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o640
    model.save(tmp_path / "new")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o644
    again = robustnmf.load(tmp_path / "real")
    assert isinstance(again.transform(X), pandas.DataFrame)
    np.testing.assert_array_equal(again.fixed_components, FIXED)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        robustnmf.load("~nobody-of-this-name/m.rnmf")

    class Mine(RobustNMF):
        pass

    with pytest.raises(TypeError, match="your own class Mine"):
        Mine(2, max_iter=2).fit(X).save(tmp_path / "mine")


def test_empty_arrays_and_single_numbers_are_restored(tmp_path):
    arrays = {"a": np.empty((0, 3)), "b": np.array(2.5), "c": np.asfortranarray(np.ones((2, 3)))}
    archive.write(tmp_path / "a", arrays, {})
    found, _ = archive.read(tmp_path / "a")
    for name, array in arrays.items():
        assert found[name].shape == array.shape
        np.testing.assert_array_equal(found[name], array)
