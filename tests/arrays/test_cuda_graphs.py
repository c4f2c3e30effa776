"""Passes repeated on the device give the same results as passes in the host's loop."""

import numpy as np
import pytest

import robustnmf.loop.iteration
from robustnmf import Entropy, Huber, RobustNMF, Trimmed
from robustnmf.arrays import repeat_on_device, residuals

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

ENOUGH = 5
"""Least number of repeated passes, so that the comparison is meaningful."""


def table():
    rng = np.random.default_rng(0)
    return torch.as_tensor(rng.random((80, 3)) @ rng.random((3, 30)) + 0.1 * rng.random((80, 30)))


def fitted(weighting, **options):
    options = {"solver": "mu", "init": "random", "random_state": 0, "tol": 0} | options
    return RobustNMF(3, weighting=weighting, max_iter=40, **options).fit(table())


@pytest.mark.parametrize("structure", ["free", "convex", "orthogonal"])
@pytest.mark.parametrize(
    "weighting", ["uniform", "l21", Entropy(0.1), Entropy("auto"), Trimmed(1.0), Huber(0.1)],
    ids=str,
)  # fmt: skip
def test_passes_repeated_on_the_device_are_the_same(weighting, structure, monkeypatch):
    repeated = []

    def counted(step, arrays, times):
        result = repeat_on_device(step, arrays, times)
        repeated.append(0 if result is None else times)
        return result

    monkeypatch.setattr(robustnmf.loop.iteration, "repeat_on_device", counted)
    on_device = fitted(weighting, structure=structure)
    assert sum(repeated) >= ENOUGH  # otherwise two fits in the host's loop are compared
    repeated.clear()
    monkeypatch.setattr(robustnmf.loop.iteration, "WORTH_RECORDING", 10**9)
    on_host = fitted(weighting, structure=structure)
    assert repeated == []
    assert on_device.n_iter_ == on_host.n_iter_
    np.testing.assert_allclose(
        on_device.objective_history_, on_host.objective_history_, rtol=1e-10, atol=1e-12
    )
    np.testing.assert_allclose(on_device.components_, on_host.components_, rtol=1e-8, atol=1e-12)


def test_a_fit_with_overflow_runs_in_the_host_loop(monkeypatch):
    on_device = fitted(Entropy(0.1))
    calls = []
    monkeypatch.setattr(
        robustnmf.loop.iteration, "repeat_on_device", lambda *arguments: calls.append(arguments)
    )
    np.testing.assert_allclose(
        fitted(Entropy(0.1)).objective_history_, on_device.objective_history_, rtol=1e-10
    )
    assert calls


def test_few_recomputed_rows_equal_recomputing_all_rows():
    rng = np.random.default_rng(0)
    arrays = (
        rng.random((3, 50)),
        rng.random((3, 50)) < 0.3,
        rng.random((3, 50, 2)),
        rng.random((3, 2, 6)),
    )
    block = robustnmf.arrays.DenseBlock(torch.as_tensor(rng.random((50, 6))))
    arrays = [torch.as_tensor(array) for array in arrays]
    expected = residuals.recompute_cancelled(block, *arrays)

    def step(_):
        return [arrays[0]], residuals.recompute_cancelled(block, *arrays)

    _, notes = repeat_on_device(step, [arrays[0]], 2)
    np.testing.assert_allclose(notes[1], expected)


def test_too_many_doubtful_rows_return_none():
    block = robustnmf.arrays.DenseBlock(torch.rand(100, 6))
    arrays = (
        torch.rand(1, 100),
        torch.ones(1, 100, dtype=torch.bool),
        torch.rand(1, 100, 2),
        torch.rand(1, 2, 6),
    )
    assert (
        repeat_on_device(
            lambda _: (arrays[:1], residuals.recompute_cancelled(block, *arrays)), arrays[:1], 2
        )
        is None
    )
