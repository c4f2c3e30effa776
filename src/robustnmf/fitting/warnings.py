"""Warnings about a fit: collapsed weights, too few samples, many outliers, wrong entries."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from robustnmf.arrays import Array, namespace, to_numpy
from robustnmf.engine import Engine
from robustnmf.exceptions import OutlierWarning, WeightCollapseWarning, warn
from robustnmf.fitting.plan import FitPlan, FitResult
from robustnmf.fitting.runs import Runs
from robustnmf.losses import Frobenius
from robustnmf.screening import UNDECIDED, enough_components
from robustnmf.solvers import nonnegative_least_squares
from robustnmf.weightings import Weighting, effective_sample_size
from robustnmf.weightings.trimmed import FEWEST_SAMPLES

MANY = 0.2
"""Warn if a larger share of the samples is left out."""

SOME, DESCRIBED = 0.05, 5.0
"""Warn of a smaller share if the error of the outliers would be less than 5 times that of the other
samples when kept, unless leaving them out improves the prediction by more than their share."""

FEWEST_SIMILAR, SIMILAR = 5, 0.02
"""Number and share of outliers to warn about if they are similar to each other, or if the other
samples are predicted worse without them."""

LARGER = 3.0
"""Mention that the values of outliers are larger than others by this factor."""

BAD_ENTRIES = 0.01
"""Warn if a larger share of the entries looks wrong."""

FENCES, UNEXPLAINED, SCATTERED, CHECKED_ROWS = (1.5, 6.0), 0.5, 1 / 3, 500
"""An entry is large if it is 1.5 interquartile ranges above the positive entries of its feature. It
looks bad above 6 ranges if the approximation is less than half of it. Samples in which more than a
third of the entries are large are skipped: they are bad as a whole. 500 rows are checked."""

FACTOR, LARGEST_KNOB = 4.0, 1e300
"""Factor between the values of a parameter that are tried against a collapse, and the largest."""

SOFTER = "EWRNMF or RobustNMF (weighting='entropy' or 'trimmed')"
SOFTEN = "Use the default weighting of RobustNMF, 'trimmed', or soften this one."
"""Advice for weights that collapsed, for users of Python and of the shell."""


def warn_of_fit(plan: FitPlan, result: FitResult, penalised_energies: Array) -> None:
    """Warn of collapsed weights, of too few samples, and of outliers.

    ``penalised_energies`` (samples,), in the user's units, determine the weights.
    """
    warn_if_collapsed(plan, result, penalised_energies)
    needs_screening = plan.settings.spec.weighting.needs_screening
    if needs_screening:
        warn_of_few_samples(plan)
    if needs_screening or plan.screening is not None:
        warn_of_outliers(plan, result)


def warn_if_not_converged(plan: FitPlan, converged: bool, result: FitResult) -> None:
    """Warn if a fit ended before it converged."""
    settings = plan.settings
    if settings.tol > 0 and not converged:
        warn(
            f"{settings.name} did not converge: after {result.n_iter} iterations, the relative "
            f"decrease of the objective is still above tol={settings.tol:g}. Raise max_iter or "
            "tol.",
            ConvergenceWarning,
        )


def warn_of_stopped_runs(plan: FitPlan, runs: Runs) -> None:
    """Warn if some runs of a consensus ended before they converged."""
    settings = plan.settings
    stopped = int((runs.n_iter >= settings.max_iter).sum())
    if settings.tol > 0 and stopped:
        warn(
            f"{stopped} of {len(runs.n_iter)} runs of {settings.name} did not converge within "
            f"max_iter={settings.max_iter} iterations. Raise max_iter or tol of its estimator.",
            ConvergenceWarning,
        )


def warn_if_collapsed(plan: FitPlan, result: FitResult, penalised_energies: Array) -> None:
    """Warn if the effective sample size is below the number of components."""
    engine, size, rank = plan.engine, result.effective_sample_size, plan.rank
    counted = float(namespace(engine.full_row_weight).sum(engine.full_row_weight))
    bound = rank if rank < counted else counted / 2
    if size >= bound * (1 - 1e-6):
        return
    wanted = min(2 * bound, (bound + counted) / 2)
    warn(
        f"the weights of {plan.settings.name} collapsed: the effective sample size is {size:.3g}, "
        f"below {'the number of components,' if rank < counted else 'half of the samples,'} "
        f"{bound:g}. The components describe only a few of the {counted:g} samples. "
        + _remedy(result.weighting, penalised_energies, engine, wanted),
        WeightCollapseWarning,
    )


def warn_of_outliers(plan: FitPlan, result: FitResult) -> None:
    """Warn if outliers are many, similar to each other, or if leaving them out helps little.

    If samples were not screened (penalties, fixed components), only their number is known.
    """
    engine, rank, screening = plan.engine, plan.rank, plan.screening
    weight, xp = engine.full_row_weight, namespace(engine.full_row_weight)
    total = engine.sample_count
    unit = float(xp.sum(weight)) / total  # weights that sum to one are still many samples
    left_out = float(xp.sum(xp.where(result.outliers, weight, 0 * weight))) / unit
    similar = 0.0 if screening is None else min(screening.similar / unit, left_out)
    decision = UNDECIDED if screening is None else screening.decision
    gain = decision.gain  # NaN if unknown
    fewest = max(FEWEST_SIMILAR, SIMILAR * total)
    helps_little = decision.ratio < DESCRIBED and left_out > max(SOME, gain) * total
    what = f"{left_out:.0f} of {total:.0f} samples"
    if similar >= fewest:
        which = "" if similar > 0.9 * left_out else f"{similar:.0f} of "
        what += f", {which}which resemble each other"
    elif left_out <= MANY * total:
        if not helps_little and not (gain < 0 and left_out >= fewest):
            return
        what += ", which can be a group of good ones"
    facts = ""
    if gain > 0:
        facts = f" The others are predicted {min(gain, 0.99):.0%} better without them."
    if gain < 0:
        facts = " The others are not predicted better without them."
    larger = _size_ratio(plan, result.outliers)
    if larger >= LARGER:
        facts += (
            f" Their values are about {larger:.0f} times as large; if only proportions matter, "
            "divide each sample by its sum."
        )
    if decision.isolated:
        facts += " Samples far from all others were not used to learn the components."
    enough = None
    if screening is not None:
        enough = enough_components(screening, plan.problem, engine.scale)
    advice = f"raise n_components (now {rank}" + (
        ")" if enough is None else f"; with {enough} components none is left out)"
    )
    warn(
        f"{plan.settings.name} left out {what}; they are marked in outliers_.{facts} If they "
        f"belong to the data, {advice}, or use weighting='uniform' for equal weights.",
        OutlierWarning,
    )


def _size_ratio(plan: FitPlan, outliers: Array) -> float:
    """Return how many times as large the values of typical outliers are as those of the others."""
    degree, is_outlier = plan.problem.loss.degree, to_numpy(outliers)
    sizes = to_numpy(plan.engine.row_sizes(degree))
    others = sizes[~is_outlier & (sizes > 0)]
    if degree <= 0 or not len(others) or not is_outlier.any():
        return 1.0
    return float(np.median(sizes[is_outlier]) / np.median(others)) ** (1.0 / degree)


def warn_of_few_samples(plan: FitPlan) -> None:
    """Warn if there are too few samples to find outliers."""
    count = plan.engine.sample_count
    if count < FEWEST_SAMPLES:
        not_counted = " (blank ones do not count)" if count < plan.engine.shape[0] else ""
        warn(
            f"{count:.0f} sample{'s are' if count > 1 else ' is'} too few to find outliers"
            f"{not_counted}: "
            f"{plan.settings.name} weights all of them equally, as plain NMF does. It needs at "
            f"least {FEWEST_SAMPLES} samples. With fewer, use a weighting with a parameter of your "
            "own in Python, such as weighting=Cauchy(...).",
            OutlierWarning,
        )


def warn_of_bad_entries(plan: FitPlan, result: FitResult) -> None:
    """Warn if many samples contain a few entries that look wrong."""
    if plan.screening is None or type(plan.problem.loss) is not Frobenius:
        return
    sample = plan.screening.sample
    if scipy.sparse.issparse(sample.rows) or len(sample) < FEWEST_SAMPLES:
        return
    rows = np.asarray(sample.rows[:CHECKED_ROWS], dtype=np.float64)
    basis = to_numpy(result.components).astype(np.float64)
    known = ~np.isnan(rows)
    filled = np.where(known, rows, 0.0)
    approximation = nonnegative_least_squares(filled @ basis.T, basis @ basis.T) @ basis
    positive = rows > 0
    ordered = np.sort(np.where(positive, rows, np.nan), axis=0)
    count = positive.sum(axis=0)
    low, high = (ordered[np.minimum(share * count // 4, len(rows) - 1), np.arange(rows.shape[1])]
                 for share in (1, 3))  # fmt: skip
    with np.errstate(invalid="ignore"):
        large, far = (positive & (rows > high + reach * (high - low)) for reach in FENCES)
    bad = far & (approximation < UNEXPLAINED * filled)
    is_scattered = large.sum(axis=1) <= np.maximum(SCATTERED * known.sum(axis=1), 1)
    share = bad[is_scattered].sum() / known.sum()
    if share > BAD_ENTRIES:
        warn(
            f"{share:.1%} of the entries are far above the other values of their feature, and the "
            f"components of {plan.settings.name} do not explain them. If many samples have a few "
            "wrong entries each, use loss='truncated': it ignores wrong entries and reports them "
            "(entry_weights).",
            OutlierWarning,
        )


def _remedy(weighting: Weighting, energies: Array, engine: Engine, wanted: float) -> str:
    """Return advice against a collapse, with a number if possible."""
    knob = weighting.knob
    if knob is None:
        return f"This weighting has no parameter to soften it; use {SOFTER}."
    now = getattr(weighting, knob)
    share = getattr(weighting, "share", float("inf"))
    if share < float("inf"):
        weighting = clone(weighting).set_params(share=float("inf"))
        if _size(weighting, energies, engine) >= wanted:
            return f"{SOFTEN} Raise share (now {share:.3g}) by a factor of 10 or more."
    if weighting.per_entry:
        return f"{SOFTEN} Raise {knob} (now {now:.3g}) by a factor of 10 or more."
    value = float(now)
    while value < LARGEST_KNOB:
        value *= FACTOR
        softer = clone(weighting).set_params(**{knob: value})
        if _size(softer, energies, engine) >= wanted:
            return f"{SOFTEN} Raise {knob} from {now:.3g} to {value:.3g}."
    return (
        f"The reconstruction errors are too uneven for any {knob} (now {now:.3g}). Start the fit "
        f"with a much larger one, or use {SOFTER}."
    )


def _size(weighting: Weighting, energies: Array, engine: Engine) -> float:
    """Return the effective sample size of the weights for these energies."""
    weights = weighting.weigh(energies[None, :], engine.row_weight).weights[0, :]
    total = namespace(weights).sum(weights)
    return (
        float(effective_sample_size(weights / total, engine.full_row_weight)) if total > 0 else 0.0
    )
