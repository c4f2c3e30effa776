"""What is told of a fit while it runs: printed lines, and scikit-learn's callbacks.

Callbacks came with scikit-learn 1.9; with an older one, estimators do not have them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from robustnmf.estimators._plan import FitPlan
from robustnmf.fit import Callback
from robustnmf.state import State

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Any) -> Any:
        """The method as it is."""
        return method


def progress_of(model: Any, plan: FitPlan) -> Callback | None:
    """What to call after every pass of a fit, if anybody wants to know."""
    listeners = []
    if model.verbose:
        listeners.append(_printer(model, plan.unit))
    if getattr(model, "_skl_callbacks", None):
        listeners.append(_caller(model, plan))
    if not listeners:
        return None

    def tell_all(iteration: int, state: State) -> bool:
        answers = [tell(iteration, state) for tell in listeners]
        return any(answers)

    return tell_all


def _printer(model: Any, unit: float) -> Callback:
    """Print the objective of every member in the user's units."""

    def tell(iteration: int, state: State) -> bool:
        if iteration % max(1, 10 // int(model.verbose)) == 0:
            values = ", ".join(
                f"{member.values[-1] * unit**member.weighting.degree:.6g}"
                + (" (settling)" if member.requested_weighting.has_auto else "")
                for member in state.members
            )
            print(f"{type(model).__name__}: iteration {iteration}, objective {values}")
        return False

    return tell


def _caller(model: Any, plan: FitPlan) -> Callback:
    """Every pass is a task of the fit; its estimator is the first member still in the batch."""
    root = model._init_callback_context(max_subtasks=model.max_iter + 1)
    root.call_on_fit_task_begin(estimator=model)

    def tell(iteration: int, state: State) -> bool:
        def encoder() -> dict[str, Any]:
            return plan.encoder(state.basis[0, ...], state.members[0].weighting)

        task = root.subcontext(task_name="pass")
        task.call_on_fit_task_begin(estimator=model)
        return task.call_on_fit_task_end(estimator=model, reconstruction_attributes=encoder)

    return tell


def finished(model: Any) -> None:
    """Tell callbacks that the fit is over, while the estimator is fitted."""
    root = getattr(model, "_callback_fit_ctx", None)
    if root is not None:
        root.call_on_fit_task_end(estimator=model, reconstruction_attributes=dict)


def runs_progress_of(
    model: Any, batches: int
) -> Callable[[int, Callable[[], dict[str, Any]]], bool]:
    """Return what to call after every batch of runs, with the number of runs done.

    The second argument gives the fitted attributes of the best run so far. The function returns
    whether the runs are to stop.
    """
    root = None
    if getattr(model, "_skl_callbacks", None):
        root = model._init_callback_context(max_subtasks=batches)
        root.call_on_fit_task_begin(estimator=model)

    def tell(done: int, attributes: Callable[[], dict[str, Any]]) -> bool:
        if model.verbose:
            print(f"{type(model).__name__}: {done} of {model.n_runs} runs")
        if root is None:
            return False
        task = root.subcontext(task_name="batch of runs")
        task.call_on_fit_task_begin(estimator=model)
        return task.call_on_fit_task_end(estimator=model, reconstruction_attributes=attributes)

    return tell
