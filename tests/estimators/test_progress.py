"""Progress reports and callbacks of a fit."""

import numpy as np
import pytest

from robustnmf import EWRNMF, RobustNMF
from tests.problems import noisy_low_rank

callback = pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")
X = noisy_low_rank(50, 12, 3)


class Recorder:
    """Records its calls, and stops the fit after some passes."""

    def __init__(self, stop_after=None):
        self.events, self.scores, self.stop_after = [], [], stop_after

    def setup(self, estimator, context):
        self.events.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.events.append(f"end {context.task_name}")
        if context.task_name == "pass":
            self.scores.append(fitted_estimator.score(X))
            return context.task_id == self.stop_after
        return False

    def teardown(self, estimator, context):
        self.events.append("teardown")


def test_a_fit_tells_every_pass_and_hands_over_a_usable_estimator():
    recorder = Recorder()
    model = RobustNMF(3, weighting="entropy", random_state=0).set_callbacks(recorder).fit(X)
    assert recorder.events[:2] == ["setup", "begin fit"]
    assert recorder.events[-2:] == ["end fit", "teardown"]
    assert recorder.events.count("end pass") == model.n_iter_ + 1
    assert recorder.scores[-1] == pytest.approx(model.score(X), rel=1e-3)
    assert recorder.scores[0] < recorder.scores[-1]


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_a_callback_can_stop_a_fit():
    model = EWRNMF(3, gamma=10.0, random_state=0).set_callbacks(Recorder(stop_after=4))
    codes = model.fit_transform(X)
    assert model.n_iter_ == 4
    np.testing.assert_allclose(codes, model.transform(X), rtol=1e-6)


def test_callbacks_are_torn_down_after_an_error():
    recorder = Recorder()
    model = RobustNMF(3, init="custom").set_callbacks(recorder)
    with pytest.raises(ValueError, match="W"):
        model.fit(X)
    assert recorder.events == []  # refused before anything began

    class Failing(Recorder):
        def on_fit_task_end(self, estimator, context):
            raise RuntimeError("told too much")

    failing = Failing()
    with pytest.raises(RuntimeError, match="told too much"):
        RobustNMF(3).set_callbacks(failing).fit(X)
    assert failing.events[-1] == "teardown"


def test_the_progress_bar_of_scikit_learn_works(capsys):
    pytest.importorskip("rich")
    RobustNMF(3, random_state=0, max_iter=15, tol=1e-2).set_callbacks(callback.ProgressBar()).fit(X)


def test_verbose_prints_the_objective_in_the_units_of_x(capsys):
    model = RobustNMF(3, weighting="uniform", verbose=10, max_iter=4, tol=0, random_state=0).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert float(lines[-1].split()[-1]) == pytest.approx(model.objective_history_[-1], rel=1e-4)
