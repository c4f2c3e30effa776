"""Consensus of many runs: what comes back, and how it is found."""

import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import silhouette_samples
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from robustnmf import ConsensusNMF, ConvexNMF, RobustNMF, load
from robustnmf.fitting import runs
from robustnmf.fitting.consensus import group_components, group_silhouettes
from robustnmf.fitting.runs import draw_counts
from robustnmf.metrics import cophenetic_correlation, dispersion, match_components
from robustnmf.sources import source_for

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def matched_cosines(truth, components):
    """Return the cosines of true components with their matches."""
    assert components.shape == truth.shape
    return match_components(truth, components)[2]


def planted(seed=0, n=90, m=20, k=3, bad=0):
    """A table of k components with a little noise, and the components; the first rows are bad."""
    rng = np.random.default_rng(seed)
    parts = rng.gamma(0.3, size=(k, m))
    X = rng.gamma(0.4, size=(n, k)) @ parts + 0.01 * rng.random((n, m))
    X[:bad] = 20 * X.max() * rng.dirichlet(np.full(m, 0.1), bad)
    return X, parts


def small(**parameters):
    return ConsensusNMF(
        RobustNMF(3, tol=1e-3, max_iter=200), n_runs=12, random_state=0, **parameters
    )


@pytest.fixture(scope="module")
def fitted():
    X, _ = planted()
    return small().fit(X)


def test_planted_components_are_found_despite_outliers():
    X, parts = planted(1, bad=6)
    model = small().fit(X)
    assert matched_cosines(parts, model.components_).min() > 0.98
    assert model.stability_.min() > 0.95
    assert model.outliers_[:6].all()
    plain = ConsensusNMF(RobustNMF(3, weighting="uniform"), n_runs=12, random_state=0).fit(X)
    assert matched_cosines(parts, plain.components_).min() < 0.9


def test_a_run_gives_one_component_to_each_group(fitted):
    assert fitted.labels_.shape == (12, 3)
    for labels in fitted.labels_:
        given = labels[labels >= 0]
        assert len(set(given)) == len(given)
    assert fitted.n_runs_kept_ == (fitted.labels_ >= 0).any(axis=1).sum()


def test_shapes_and_attributes_are_those_of_a_fitted_estimator(fitted):
    X, _ = planted()
    assert fitted.components_.shape == fitted.spread_.shape == (3, 20)
    assert fitted.stability_.shape == fitted.silhouette_.shape == (3,)
    assert fitted.objectives_.shape == (12,)
    assert list(fitted.get_feature_names_out()) == [f"consensusnmf{i}" for i in range(3)]
    inner = fitted.estimator_
    assert isinstance(inner, RobustNMF)
    np.testing.assert_array_equal(inner.transform(X), fitted.transform(X))
    np.testing.assert_allclose(-fitted.score_samples(X), fitted.energies_, rtol=1e-6)
    np.testing.assert_allclose(np.abs(fitted.explain(X)).sum(axis=1), fitted.energies_, rtol=1e-5)
    assert fitted.sample_importances_.sum() == pytest.approx(1)
    assert fitted.reconstruction_err_ == pytest.approx(
        np.linalg.norm(X - fitted.transform(X) @ fitted.components_), rel=1e-5
    )


def test_stray_components_are_left_out():
    rng = np.random.default_rng(0)
    truth = rng.gamma(0.3, size=(3, 30))
    bases = truth + 0.02 * truth.mean() * rng.random((10, 3, 30))
    bases = np.stack([basis[rng.permutation(3)] for basis in bases])
    bases[4, 1] = rng.random(30)
    everything = np.ones(10, dtype=bool)
    groups = group_components(bases, np.arange(10.0), everything, 0.3, 0.3)
    assert groups.labels[4, 1] == -1
    assert (groups.labels < 0).sum() == 1
    assert matched_cosines(truth, groups.medians).min() > 0.999
    kept = group_components(bases, np.arange(10.0), everything, 2.0, 0.3)
    assert (kept.labels >= 0).all()
    assert kept.stability.min() < groups.stability.min()


def test_spread_is_the_deviation_of_entries_over_runs():
    rng = np.random.default_rng(1)
    truth = rng.gamma(1.0, size=(2, 40)) + 1
    bases = truth * (1 + 0.05 * rng.standard_normal((400, 2, 40)))
    groups = group_components(bases, np.zeros(400), np.ones(400, dtype=bool), 2.0, 0.3)
    order = np.argmax(groups.medians @ truth.T, axis=1)
    np.testing.assert_allclose(groups.spread, 0.05 * truth[order], rtol=0.4)
    np.testing.assert_allclose(groups.medians, truth[order], rtol=0.03)


def test_silhouettes_are_those_of_scikit_learn():
    rng = np.random.default_rng(2)
    unit = rng.random((8, 3, 10))
    unit /= np.linalg.norm(unit, axis=2, keepdims=True)
    labels = np.stack([rng.permutation(3) for _ in range(8)])
    labels[3, 1] = -1
    chosen = labels.ravel() >= 0
    samples = silhouette_samples(
        unit.reshape(24, 10)[chosen], labels.ravel()[chosen], metric="cosine"
    )
    expected = [samples[labels.ravel()[chosen] == g].mean() for g in range(3)]
    np.testing.assert_allclose(group_silhouettes(unit, labels, 3), expected, atol=1e-12)


def test_batches_of_any_size_give_the_same(fitted, monkeypatch):
    X, _ = planted()
    monkeypatch.setattr(runs, "CODES_BYTES", 5 * 90 * 3 * 8 * runs.CODES_ARRAYS)
    other = small().fit(X)
    np.testing.assert_allclose(other.components_, fitted.components_, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(other.labels_, fitted.labels_)


@pytest.mark.parametrize("resample", [None, "rows"])
def test_a_fit_continues_from_its_checkpoint(resample, tmp_path, monkeypatch):
    X, _ = planted()
    path = tmp_path / "runs.npz"
    monkeypatch.setattr(runs, "CODES_BYTES", 5 * 90 * 3 * 8 * runs.CODES_ARRAYS)
    whole = small(resample=resample, n_resamples=3).fit(X)
    run_batch, calls = runs.run_batch, []

    def interrupted(plan, done, batch):
        if len(calls) == 2:
            raise RuntimeError("interrupted")
        calls.append(len(batch))
        run_batch(plan, done, batch)

    monkeypatch.setattr("robustnmf.fitting.consensus.run_batch", interrupted)
    with pytest.raises(RuntimeError, match="interrupted"):
        small(resample=resample, n_resamples=3).fit(X, checkpoint=path)
    assert path.exists()
    with pytest.raises(ValueError, match="belongs to another fit"):
        small(resample=resample, n_resamples=3).fit(2 * X, checkpoint=path)
    monkeypatch.setattr("robustnmf.fitting.consensus.run_batch", run_batch)
    resumed = small(resample=resample, n_resamples=3).fit(X, checkpoint=path)
    assert not path.exists()
    np.testing.assert_array_equal(resumed.components_, whole.components_)
    np.testing.assert_array_equal(resumed.objectives_, whole.objectives_)


KILLED = """
import os, signal, sys
import numpy as np
from robustnmf import ConsensusNMF, RobustNMF
from robustnmf.fitting import consensus, runs

runs.CODES_BYTES = 5 * 90 * 3 * 8 * runs.CODES_ARRAYS
run_batch, left = consensus.run_batch, [int(sys.argv[3])]
def killed(*arguments):
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    run_batch(*arguments)
consensus.run_batch = killed
model = ConsensusNMF(RobustNMF(3, tol=1e-3, max_iter=200), n_runs=12, random_state=0)
model.fit(np.load(sys.argv[1]), checkpoint=sys.argv[2])
"""


@pytest.mark.parametrize("batches", [pytest.param(0, marks=pytest.mark.extra), 1])
def test_a_fit_that_is_killed_early_continues(batches, tmp_path, monkeypatch):
    """Before the first batch is done there is no checkpoint, and the fit starts over."""
    X, _ = planted()
    np.save(tmp_path / "X.npy", X)
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    path = folder / "runs.npz"
    command = [sys.executable, "-c", KILLED, str(tmp_path / "X.npy"), str(path), str(batches)]
    assert subprocess.run(command, timeout=300).returncode == -signal.SIGKILL
    assert list(folder.iterdir()) == [path] * batches
    monkeypatch.setattr(runs, "CODES_BYTES", 5 * 90 * 3 * 8 * runs.CODES_ARRAYS)
    run_batch, runs_done = runs.run_batch, []

    def counted(plan, done, batch):
        runs_done.extend(batch)
        run_batch(plan, done, batch)

    monkeypatch.setattr("robustnmf.fitting.consensus.run_batch", counted)
    resumed = small().fit(X, checkpoint=path)
    assert len(runs_done) == 12 - 5 * batches
    assert not any(folder.iterdir())
    whole = small().fit(X)
    np.testing.assert_allclose(resumed.objectives_, whole.objectives_, rtol=1e-9)
    np.testing.assert_allclose(resumed.components_, whole.components_, rtol=1e-6, atol=1e-9)


def test_sparse_x_is_dense_x(fitted):
    X, _ = planted()
    X = np.where(X > 0.1, X, 0.0)
    dense = small().fit(X)
    sparse = small().fit(scipy.sparse.csr_array(X))
    np.testing.assert_allclose(sparse.components_, dense.components_, rtol=1e-3, atol=1e-4)


def test_files_and_dask_arrays_give_the_same(fitted, tmp_path):
    X, _ = planted()
    path = tmp_path / "X.npy"
    np.save(path, X)
    from_file = small().fit(path)
    np.testing.assert_allclose(from_file.components_, fitted.components_, rtol=1e-5, atol=1e-7)
    dask = pytest.importorskip("dask.array")
    lazy = small().fit(dask.from_array(X, chunks=(30, 20)))
    np.testing.assert_allclose(lazy.components_, fitted.components_, rtol=1e-5, atol=1e-7)


def test_tensors_give_tensors():
    torch = pytest.importorskip("torch")
    X, _ = planted()
    model = small().fit(torch.asarray(X))
    for name in ("components_", "spread_", "stability_", "labels_", "energies_"):
        assert isinstance(getattr(model, name), torch.Tensor), name
    expected = small().fit(X)
    np.testing.assert_allclose(
        model.components_.numpy(), expected.components_, rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("resample", ["rows", "poisson"])
def test_resampled_runs_find_the_components(resample):
    X, parts = planted(3)
    counts = np.rint(200 * X)
    for table in (counts, scipy.sparse.csr_array(counts)):
        model = small(resample=resample, n_resamples=4).fit(table)
        assert matched_cosines(parts, model.components_).min() > 0.97
        assert model.spread_.max() > 0
    plain = small().fit(counts)
    assert np.median(model.spread_) > np.median(plain.spread_)


def test_huge_counts_are_resampled():
    """Also those that NumPy's Poisson distribution refuses, and beside missing values."""
    means = np.array([[np.nan, 0.0, 9.0], [1e17, 1e19, 1e30]])
    source = source_for(means, "test").checked(RobustNMF(1)._spec())
    drawn = np.stack([draw_counts(source, np.random.default_rng(i)) for i in range(300)])
    assert np.isnan(drawn[:, 0, 0]).all()
    known = means[1:]
    errors = (drawn[:, 1:] - known) / np.sqrt(known)
    assert np.abs(errors.mean(axis=0)).max() < 0.3
    np.testing.assert_allclose(errors.std(axis=0), 1.0, atol=0.2)
    X, parts = planted(3)
    for table in (np.rint(1e19 * X), scipy.sparse.csr_array(np.rint(1e19 * X))):
        model = small(resample="poisson", n_resamples=2).fit(table)
        assert matched_cosines(parts, model.components_).min() > 0.97


def test_other_estimators_can_be_run():
    X, parts = planted(4)
    for estimator in (
        ConvexNMF(3, max_iter=50),
        RobustNMF(3, loss="kullback-leibler", weighting="entropy", max_iter=60),
        RobustNMF(3, fixed_components=parts[:1]),
    ):
        model = ConsensusNMF(estimator, n_runs=4, random_state=0).fit(X)
        assert model.components_.shape == (3, 20)
        assert model.transform(X).shape == (90, 3)
    np.testing.assert_allclose(model.components_[0], parts[0], rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-28, 1e20])
def test_float32_data_of_any_unit_have_the_same_stability(unit):
    X, _ = planted()
    one, other = (small().fit((X * u).astype(np.float32)) for u in (1.0, unit))
    np.testing.assert_allclose(other.stability_, one.stability_, atol=1e-3)


def test_bad_input_is_refused():
    X, _ = planted()
    with pytest.raises(ValueError, match="needs counts"):
        small(resample="poisson").fit(X)
    with pytest.raises(ValueError, match="n_runs"):
        ConsensusNMF(RobustNMF(2), n_runs=0).fit(X)
    with pytest.raises(ValueError, match="estimator"):
        ConsensusNMF(MinMaxScaler()).fit(X)
    with pytest.raises(ValueError, match="negative"):
        small().fit(-X)


def test_saved_models_are_read_again(fitted, tmp_path):
    X, _ = planted()
    fitted.save(tmp_path / "model.rnmf")
    again = load(tmp_path / "model.rnmf")
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
    np.testing.assert_array_equal(again.labels_, fitted.labels_)
    assert repr(again) == repr(fitted)


def test_it_is_a_step_of_a_pipeline():
    X, _ = planted()
    pipeline = make_pipeline(MinMaxScaler(), small())
    pipeline.set_params(consensusnmf__estimator__n_components=2, consensusnmf__n_runs=4)
    assert pipeline.fit_transform(X).shape == (90, 2)
    copy = clone(pipeline)
    assert copy.get_params()["consensusnmf__estimator__n_components"] == 2


def test_callbacks_are_called_after_every_batch(monkeypatch):
    pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")
    X, _ = planted()
    monkeypatch.setattr(runs, "CODES_BYTES", 5 * 90 * 3 * 8 * runs.CODES_ARRAYS)
    events = []

    class Recorder:
        def setup(self, estimator, context):
            events.append("setup")

        def on_fit_task_begin(self, estimator, context):
            events.append("begin")

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            if context.task_name == "batch of runs":
                events.append(fitted_estimator.transform(X).shape)
                return len(events) > 5
            return False

        def teardown(self, estimator, context):
            events.append("teardown")

    model = small().set_callbacks(Recorder()).fit(X)
    assert events.count((90, 3)) == 2
    assert model.labels_.shape == (10, 3)  # stopped before the last batch


def test_progress_is_printed(capsys):
    X, _ = planted()
    small(verbose=1).fit(X)
    assert "ConsensusNMF: 12 of 12 runs" in capsys.readouterr().out


def test_resamples_are_drawn_from_samples_with_weight():
    X = np.vstack([np.arange(1.0, 7.0), np.zeros(6)])
    model = ConsensusNMF(RobustNMF(1), n_runs=6, resample="rows", random_state=0).fit(X)
    assert model.components_.shape == (1, 6)


def test_components_of_zeros_have_no_silhouette():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ConsensusNMF(RobustNMF(3), n_runs=5, random_state=0).fit(np.zeros((10, 5)))
    np.testing.assert_array_equal(model.silhouette_, 0)


@pytest.mark.parametrize("resample", [None, "rows"])
def test_runs_with_a_truncated_loss_find_the_components(resample):
    rng = np.random.default_rng(0)
    X = rng.random((200, 3)) @ rng.random((3, 30)) + 0.01 * rng.random((200, 30))
    model = ConsensusNMF(
        RobustNMF(3, loss="truncated"), n_runs=5, resample=resample, n_resamples=2, random_state=0
    )
    residuals = X - model.fit_transform(X) @ model.components_
    assert np.linalg.norm(residuals) < 0.01 * np.linalg.norm(X)
    assert model.silhouette_.min() > 0.9


def test_consensus_matrix_and_its_measures():
    rng = np.random.default_rng(0)
    X = np.kron(np.eye(3), np.ones((8, 5))) * rng.uniform(1, 2, (24, 1)) + 0.01
    model = ConsensusNMF(RobustNMF(3, weighting="uniform"), n_runs=6, random_state=0)
    with pytest.raises(ValueError, match="keep_runs=True"):
        model.fit(X).consensus_matrix(X)
    model.set_params(keep_runs=True).fit(X)
    assert model.run_components_.shape == (6, 3, 15)
    shares = model.consensus_matrix(X)
    np.testing.assert_allclose(shares, np.kron(np.eye(3), np.ones((8, 8))))
    assert cophenetic_correlation(shares) == pytest.approx(1.0)
    assert dispersion(shares) == pytest.approx(1.0)
    assert not hasattr(model.set_params(keep_runs=False).fit(X), "run_components_")
    noise = np.corrcoef(rng.random((24, 50))) / 2 + 0.5
    assert cophenetic_correlation(noise) < 0.9


def test_consensus_matrices_do_not_depend_on_the_output_of_transform():
    X = np.random.default_rng(0).random((20, 6))
    model = ConsensusNMF(RobustNMF(2), n_runs=3, keep_runs=True, random_state=0).fit(X)
    expected = model.consensus_matrix(X)
    with config_context(transform_output="pandas"):
        np.testing.assert_array_equal(model.consensus_matrix(X), expected)
