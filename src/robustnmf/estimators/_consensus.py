"""Steps of a consensus fit: all runs, the attributes of the consensus parts, warnings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from robustnmf._warn import warn
from robustnmf.arrays import host_dtype, on_device_of
from robustnmf.checkpoint import Checkpoint
from robustnmf.compatibility import ModelSpec
from robustnmf.encoding import encoded_start
from robustnmf.estimators._plan import FitPlan
from robustnmf.estimators._progress import runs_progress_of
from robustnmf.estimators._resampling import resampled_plans
from robustnmf.estimators._runs import (
    Runs,
    Settled,
    fitting_members,
    restore_runs,
    run_batch,
    write_runs,
)
from robustnmf.estimators._warnings import (
    warn_if_collapsed,
    warn_of_few_samples,
    warn_of_outliers,
)
from robustnmf.fit import fit
from robustnmf.structures import Free


def run_all(
    consensus: Any,
    model: Any,
    plan: FitPlan,
    settled: Settled,
    most: int,
    checkpoint: Checkpoint | None,
) -> Runs:
    """Fit all runs, batch by batch; those that a checkpoint has are done already."""
    rank = plan.start.basis.shape[1]
    resamples = 1 if consensus.resample is None else min(consensus.n_resamples, consensus.n_runs)
    shape, dtype = (rank, plan.engine.shape[1]), host_dtype(plan.engine.like)
    rng = check_random_state(consensus.random_state)
    runs = Runs.planned(consensus.n_runs, shape, dtype, rng, resamples)
    if checkpoint is not None:
        restore_runs(checkpoint, runs)
    model.set_params(init="random")
    plan_runs = resampled_plans(model, plan.source, settled, consensus.resample, most)
    batches = list(runs.batches(fitting_members(plan, rank, most)))
    tell = runs_progress_of(consensus, len(batches))
    for batch in batches:
        run_batch(model, plan_runs(int(runs.resamples[batch[0]])), runs, batch)
        if checkpoint is not None:
            write_runs(checkpoint, runs)
        if tell(int(runs.done.sum()), lambda: best_encoder(plan, settled.parts, runs)):
            break
    return runs.finished()


def learn(
    plan: FitPlan, parts: ModelSpec, components: np.ndarray
) -> tuple[np.ndarray, dict[str, Any]]:
    """Return the codes for components (k, features) in the user's units, and fitted attributes."""
    # Medians of components are no mixtures of samples: given a basis, structures do not matter.
    problem = plan.problem
    if problem.structure.mixes_samples:
        problem = replace(problem, structure=Free())
    plan = replace(plan, problem=problem)
    engine = plan.engine
    basis = on_device_of(engine.like, components / engine.scale, engine.like.dtype)
    start = encoded_start(engine, problem, basis[None, ...])
    weighting = parts.weighting.rescaled(1.0 / plan.unit)
    (member,) = fit(engine, problem, [weighting], start, max_iter=0, tol=1.0)
    return plan.codes(member), plan.learned(member)


def best_encoder(plan: FitPlan, parts: ModelSpec, runs: Runs) -> dict[str, Any]:
    """Return what ``transform`` needs, with the components of the best run so far."""
    best = int(np.argmin(np.where(runs.done, runs.objectives, np.inf)))
    basis = on_device_of(plan.engine.like, runs.components[best] / plan.engine.scale)
    return plan.encoder(basis, parts.weighting.rescaled(1.0 / plan.unit))


def warn_of_fit(name: str, model: Any, plan: FitPlan, runs: Runs, learned: dict[str, Any]) -> None:
    """Warn of runs that did not converge, of weights that collapsed and of many outliers."""
    stopped = int((runs.n_iter >= model.max_iter).sum())
    if model.tol > 0 and stopped:
        warn(
            f"{stopped} of {len(runs.n_iter)} runs of {name} did not converge within "
            f"max_iter={model.max_iter} iterations. Raise max_iter or tol of its estimator.",
            ConvergenceWarning,
        )
    energies = learned["energies_"]
    size, rank = learned["effective_sample_size_"], learned["components_"].shape[0]
    warn_if_collapsed(name, learned["weighting_"], energies, plan.engine, size, rank)
    if plan.parts.weighting.needs_screening:
        warn_of_few_samples(name, plan.engine)
    if plan.screening is not None:
        warn_of_outliers(name, learned, plan.engine, plan.screening, plan.problem)
