"""Groups of methods for bad samples: ours, plain NMF, two steps, the paper's, detectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import NMF
from sklearn.metrics import roc_auc_score

from robustnmf.arrays import is_foreign, to_numpy
from robustnmf.estimators import ConvexNMF, RobustNMF, RobustNMFDetector, fit_path
from robustnmf.estimators.path import PathMember
from robustnmf.experiments.contamination.first_steps import (
    DETECTORS,
    ELLIPTIC,
    FACTOR,
    FLAGGING,
    FOREST,
    OUR_DETECTOR,
    basis_without,
    detect,
    flagged,
    most_outlying,
    outside_fences,
)
from robustnmf.experiments.contamination.judge import (
    BEST_DESCRIBED,
    Groups,
    Judge,
    Score,
    attempt,
    plain_basis,
    timed,
)
from robustnmf.experiments.protocol import METHODS
from robustnmf.metrics import squared_errors
from robustnmf.weightings import L21, Entropy, Fuzzy, Huber, Uniform, Weighting

BEST = "best of grid"
"""Suffix of a method with the value of the paper's grid that has the smallest error."""

CEILING = "plain NMF of the good ones"
"""A detector that is fitted to the good samples only, as an upper limit for the others."""

OURS, PLAIN, SCIKIT = "RobustNMF", "EucNMF", "scikit-learn NMF"

FOREST_FIRST = f"{FOREST}, plain NMF"
FACTOR_FIRST = f"{FACTOR}, plain NMF"
FENCES_FIRST = "entries outside Tukey's fences missing, plain NMF"
ORACLE_FIRST = "best detector by oracle, plain NMF"
"""The best of all detectors by held-back error, each with the true share of bad samples."""

Find = Callable[[Judge, str], np.ndarray]
"""Returns the mask of samples or entries that a detector (by name) or other rule finds."""

FIRST_STEPS: dict[str, tuple[Find, str]] = {
    FOREST_FIRST: (flagged, FOREST),
    FACTOR_FIRST: (flagged, FACTOR),
    FENCES_FIRST: (lambda judge, _: outside_fences(judge.data.dirty), ""),
}
TWO_STEP = tuple(FIRST_STEPS)
"""Baselines without knowledge of the bad samples."""

ROWWISE = {
    "NMFL2": L21(),
    "FWRNMF p=11": Fuzzy(11.0),
    "FWRNMF auto": Fuzzy("auto"),
    "EWRNMF auto": Entropy("auto"),
}
ENTRYWISE = {"HuberRNMF cutoff=1": Huber(1.0), "HuberRNMF auto": Huber("auto")}

SETTINGS: dict[str, Any] = {"init": "nndsvda", "max_iter": 200, "tol": 0.0, "random_state": 0}
"""Settings of the paper's methods: as many iterations as in the reproduction of its tables."""


def methods(judge: Judge) -> Iterator[Score]:
    """Score RobustNMF with its defaults, and plain NMF of this library and of scikit-learn."""
    rank = judge.data.rank
    yield from _scores_of_members(judge, {PLAIN: Uniform()})
    yield _score_of_model(judge, OURS, RobustNMF(rank, random_state=0))
    yield _score_of_model(judge, SCIKIT, NMF(rank, init="nndsvda", random_state=0))


def paper(judge: Judge) -> Iterator[Score]:
    """Score the paper's other methods, with their defaults and automatic values."""
    for group in (ROWWISE, ENTRYWISE):
        yield from _scores_of_members(judge, group)
    convex = ConvexNMF(judge.data.rank, max_iter=SETTINGS["max_iter"], random_state=0)
    yield _score_of_model(judge, "ConvexNMF", convex)


def best_of_grid(judge: Judge) -> Iterator[Score]:
    """Score the paper's grids, each with the value that is best on held-back samples."""
    grids = {name: method for name, method in METHODS.items() if method.grid}
    for per_entry in (False, True):
        batch = {n: m for n, m in grids.items() if m.make(m.grid[0]).per_entry == per_entry}
        members = _fit_members(judge, [m.make(value) for m in batch.values() for value in m.grid])
        for name, method in batch.items():
            of_grid, members = members[: len(method.grid)], members[len(method.grid) :]
            best = judge.best_of([member.components for member in of_grid])
            yield _score_of_member(judge, f"{name} {BEST}", of_grid[best], value=method.grid[best])


def two_step(judge: Judge) -> Iterator[Score]:
    """Score every two-step baseline."""
    for name, (find, detector) in FIRST_STEPS.items():
        yield attempt(_score_without, judge, name, find, detector)
    yield _best_by_oracle(judge)


def _score_without(judge: Judge, name: str, find: Find, detector: str) -> Score:
    """Score plain NMF without what a first step finds."""
    bad = find(judge, detector)
    (basis, dropped), seconds = timed(basis_without, judge.data.dirty, bad, judge.data.rank)
    if detector:
        seconds += detect(judge, detector).seconds
    lost, kept = judge.lost(dropped), float(1.0 - dropped.mean())
    return _score(judge, name, basis, lost=lost, seconds=seconds, effective_share=kept)


def _best_by_oracle(judge: Judge) -> Score:
    """Drop as many samples as are bad, ranked by each detector; return the best score."""
    scores = [
        attempt(_score_without, judge, ORACLE_FIRST, most_outlying, detector)
        # Nothing is dropped from clean data, so that all detectors are alike there.
        for detector in ((FOREST, FACTOR, ELLIPTIC) if judge.data.bad.any() else (FOREST,))
    ]
    successes = [score for score in scores if not score.failure]
    return min(successes, key=lambda score: score.relative_error, default=scores[0])


def detectors(judge: Judge) -> Iterator[Score]:
    """Score the ranking of the samples by our detector and by scikit-learn's.

    ``lost`` is the share of the good samples that a detector flags by default. It is the only score
    on clean data, so detectors without flags are skipped there.
    """
    for name in DETECTORS if judge.data.bad.any() else FLAGGING:
        yield attempt(_score_of_detector, judge, name)
    errors = squared_errors(judge.data.dirty, judge.reference_basis)
    yield Score(CEILING, **judge.ranking(errors))


def _score_of_detector(judge: Judge, name: str) -> Score:
    detection = detect(judge, name)
    lost = np.nan if detection.flagged is None else judge.lost(detection.flagged)
    ranking = judge.ranking(detection.outlyingness)
    return Score(name, seconds=detection.seconds, lost=lost, **ranking)


GROUPS: Groups = {
    "methods": methods,
    "two_step": two_step,
    "paper": paper,
    "grids": best_of_grid,
    "detectors": detectors,
}


def score_estimators(
    judge: Judge, estimators: Mapping[str, Any], *, match_rank: bool
) -> Iterator[Score]:
    """Score copies of the user's estimators; an error is stored as the failure of a score."""
    for name, estimator in estimators.items():
        yield attempt(_score_of_copy, judge, name, estimator, match_rank, errors=Exception)


def _score_of_copy(judge: Judge, name: str, estimator: Any, match_rank: bool) -> Score:
    model = clone(estimator)
    if match_rank and "n_components" in model.get_params(deep=False):
        model.set_params(n_components=judge.data.rank)
    return _score_of_model(judge, name, model)


def _fit_members(judge: Judge, weightings: list[Weighting]) -> list[PathMember]:
    """Fit weightings with the paper's settings; those with weights of entries on the device."""
    device = judge.device if weightings[0].per_entry else None
    data = judge.data
    return fit_path(data.dirty, data.rank, weightings=weightings, device=device, **SETTINGS)


def _scores_of_members(judge: Judge, weightings: dict[str, Weighting]) -> Iterator[Score]:
    members, seconds = timed(_fit_members, judge, list(weightings.values()))
    for name, member in zip(weightings, members, strict=True):
        yield _score_of_member(judge, name, member, seconds=seconds / len(weightings))


def _score_of_member(judge: Judge, name: str, member: PathMember, **scores: float) -> Score:
    return _score(
        judge, name, member.components, lost=judge.without_weight(member.sample_importances),
        effective_share=member.effective_sample_size / len(judge.data.dirty), **scores,
    )  # fmt: skip


def _score_of_model(judge: Judge, name: str, model: Any) -> Score:
    """Fit an estimator to the training table, and score its basis."""
    X = judge.data.dirty
    _, seconds = timed(model.fit, X)
    scores = {"seconds": seconds}
    basis = _floats(model.components_)
    if basis.ndim != 2 or basis.shape[1] != X.shape[1]:
        raise ValueError(
            f"components_ has shape {basis.shape}, but (n_components, {X.shape[1]}) is needed."
        )
    if not np.isfinite(basis).all() or basis.min(initial=0.0) < 0:
        raise ValueError("components_ holds negative values, NaN or infinity.")
    if getattr(model, "sample_importances_", None) is not None:
        importances = _floats(model.sample_importances_)
        if importances.shape != X.shape[:1]:
            raise ValueError(
                f"sample_importances_ of {name!r} has shape {importances.shape}, but (n_samples,), "
                f"here ({X.shape[0]},), is needed."
            )
        scores["lost"] = judge.without_weight(importances)
    if hasattr(model, "effective_sample_size_"):
        scores["effective_share"] = float(model.effective_sample_size_) / len(X)
    return _score(judge, name, basis, **scores)


def _floats(array: Any) -> np.ndarray:
    """Return an array of any library as a NumPy array of floats."""
    return np.asarray(to_numpy(array) if is_foreign(array) else array, dtype=np.float64)


def _score(judge: Judge, name: str, basis: np.ndarray, **scores: float) -> Score:
    """Score a basis; training samples are ranked by their squared errors."""
    ranking = judge.ranking(squared_errors(judge.data.dirty, basis))
    return judge.basis(name, basis, **ranking, **scores)


REAL_PLAIN, GIVEN_FIRST = "plain NMF", f"{FOREST} given the share of bad samples, plain NMF"
REAL_FIRST = (FOREST_FIRST, FACTOR_FIRST)
REAL_STEPS: dict[str, tuple[Find, str]] = {
    REAL_PLAIN: (lambda judge, _: np.zeros_like(judge.data.bad), ""),
    **{name: FIRST_STEPS[name] for name in REAL_FIRST},
    GIVEN_FIRST: (most_outlying, FOREST),
}
REAL_METHODS = (OURS, *REAL_STEPS)
"""Methods of the study of real tables, and the first steps before plain NMF."""

RANKED_BY = {OURS: OUR_DETECTOR, FOREST_FIRST: FOREST, FACTOR_FIRST: FACTOR}
"""Detectors whose order of the samples is scored, by the method that they are a part of."""


def real_methods(judge: Judge) -> Iterator[Score]:
    """Score RobustNMF and plain NMF, with and without detectors, and the samples they leave out."""
    for name in REAL_METHODS:
        yield attempt(_score_of_real, judge, name)


def _score_of_real(judge: Judge, name: str) -> Score:
    X, rank = judge.data.dirty, judge.data.rank
    if name == OURS:
        detector = RobustNMFDetector(rank, random_state=0).fit(X)
        model = detector.estimator_  # the one that RobustNMF would have fitted
        outlyingness = -detector.score_samples(X)
        return score_left_out(judge, name, model.components_, model.outliers_, outlyingness)
    dropped = left_out(judge, name)
    ranked = detect(judge, RANKED_BY[name]).outlyingness if name in RANKED_BY else None
    return score_left_out(judge, name, plain_basis(X[~dropped], rank), dropped, ranked)


def left_out(judge: Judge, name: str) -> np.ndarray:
    """Return the mask (n_samples,) that a baseline leaves out; none if too few would be left."""
    find, detector = REAL_STEPS[name]
    dropped = find(judge, detector)
    few = np.sum(~dropped) <= max(judge.data.rank + 1, 10)
    return np.zeros_like(dropped) if few else dropped


def score_left_out(
    judge: Judge,
    name: str,
    basis: np.ndarray,
    dropped: np.ndarray,
    outlyingness: np.ndarray | None = None,
) -> Score:
    """Score a basis (rank, n_features) and the mask (n_samples,) of samples left out.

    ``outlyingness`` (n_samples,) is that of the detector behind the method, if there is one.
    """
    bad = judge.data.bad
    return judge.basis(
        name, basis, lost=judge.lost(dropped),
        found=float(dropped[bad].mean()) if bad.any() else np.nan,
        best_described_error=judge.relative_error(judge.errors(basis), BEST_DESCRIBED),
        auroc=np.nan if outlyingness is None else float(roc_auc_score(bad, outlyingness)),
    )  # fmt: skip
