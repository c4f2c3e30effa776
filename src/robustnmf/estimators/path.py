"""Many fits of one table as one batch: several weightings, each from several starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from robustnmf.estimators.base import progress_of
from robustnmf.estimators.robust import RobustNMF
from robustnmf.fitting import FitPlan, FitSettings, check_source, plan_fit
from robustnmf.loop.state import Fitted
from robustnmf.sources import source_for
from robustnmf.weightings import WEIGHTINGS, Weighting


def check_device(device: str) -> None:
    """Refuse a device that PyTorch cannot use on this machine."""
    import torch

    try:
        torch.empty(1, device=device)
    except (AssertionError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"PyTorch cannot use device={device!r} here: {reason}. Leave device out for NumPy."
        ) from error


@dataclass(frozen=True)
class PathMember:
    """One fit of a path, in the units of X.

    Attributes
    ----------
    weighting : Weighting
        The weighting as given.
    settled : Weighting
        The same with its automatic parameters as estimated from X.
    start : int
        Index of the start, below ``n_init``.
    codes : ndarray (n_samples, n_components)
    components : ndarray (n_components, n_features)
    sample_importances : ndarray (n_samples,)
    energies : ndarray (n_samples,)
    effective_sample_size : float
        As the attribute of :class:`RobustNMF`.
    objective : float
        Last entry of ``objective_history``. Compare it between starts, not between weightings.
    objective_history : ndarray
    n_iter : int
    converged : bool
        Whether ``tol`` was reached within ``max_iter`` iterations.
    """

    weighting: Weighting
    settled: Weighting
    start: int
    codes: np.ndarray = field(repr=False)
    components: np.ndarray = field(repr=False)
    sample_importances: np.ndarray = field(repr=False)
    energies: np.ndarray = field(repr=False)
    effective_sample_size: float
    objective: float
    objective_history: np.ndarray = field(repr=False)
    n_iter: int
    converged: bool


def fit_path(
    X: Any,
    n_components: int | str | None,
    *,
    weightings: Sequence[str | Weighting],
    n_init: int = 1,
    W: Any = None,
    H: Any = None,
    sample_weight: Any = None,
    device: str | None = None,
    **parameters: Any,
) -> list[PathMember]:
    """Fit one table with several weightings, each from several starts, as one batch.

    Use it for grids of parameters and for many random starts. All fits share the products with X,
    so that ten of them cost far less than ten separate fits.

    Parameters
    ----------
    X : array-like or sparse matrix (n_samples, n_features)
        Nonnegative data, samples in rows; NaN is a missing value.
    n_components : int, "auto" or None
        Number of components, as in :class:`RobustNMF`; "auto" only with ``init="custom"``.
    weightings : sequence of str or Weighting
        Weightings, for example ``[Entropy(g) for g in np.logspace(-2, 2, 9)]``; names stand for
        weightings with automatic parameters.
    n_init : int, default=1
        Number of starts, the same ones for all weightings.
    W, H : array-like, optional
        Start for ``init="custom"``, as in :meth:`RobustNMF.fit`.
    sample_weight : array-like (n_samples,), optional
        Weight of each sample, as in :meth:`RobustNMF.fit`.
    device : str, optional
        Device on which PyTorch fits, for example "cuda"; by default NumPy is used. X must be dense
        without missing values. Starts and results are NumPy arrays in any case.
    **parameters
        Further parameters of :class:`RobustNMF`: ``loss``, ``structure``, ``solver``, ``init`` (by
        default "random" if ``n_init > 1``), ``max_iter``, ``tol``, ``random_state``, ``verbose``,
        ``alpha_W`` and so on.

    Returns
    -------
    members : list of PathMember
        One for every weighting and start: all starts of the first weighting, then of the second.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from robustnmf import Entropy, fit_path
    >>> X, _ = load_digits(return_X_y=True)
    >>> grid = [Entropy(gamma) for gamma in (100.0, 1000.0, 10000.0)]
    >>> path = fit_path(X, 5, weightings=grid, n_init=2, random_state=0, tol=1e-3)
    >>> [(member.weighting.gamma, member.start) for member in path]
    [(100.0, 0), (100.0, 1), (1000.0, 0), (1000.0, 1), (10000.0, 0), (10000.0, 1)]
    >>> bool(path[0].effective_sample_size < path[-1].effective_sample_size)
    True
    """
    if "weighting" in parameters:
        raise TypeError("fit_path has no weighting. Pass a list as weightings.")
    if isinstance(weightings, (str, Weighting)) or not len(weightings := list(weightings)):
        raise ValueError(
            f"weightings is {weightings!r}, but a list with at least one weighting is needed, "
            "for example [Entropy(1.0), Entropy(10.0)]."
        )
    for weighting in weightings:
        if not isinstance(weighting, Weighting) and str(weighting) not in WEIGHTINGS:
            raise ValueError(
                f"weightings holds {weighting!r}, which is neither a Weighting nor the name of "
                f"one. Known names are {sorted(WEIGHTINGS)}."
            )
    if device is not None:
        check_device(device)
    requested = [WEIGHTINGS[w]() if isinstance(w, str) else w for w in weightings]
    model = RobustNMF(n_components, n_init=n_init, **parameters)
    settings = model._settings()
    if n_init > 1 and "init" not in parameters:
        settings = replace(settings, init="random")
    if settings.chooses_rank:
        raise ValueError(
            "fit_path needs a number of components, but n_components is 'auto', and each weighting "
            "could choose another number. Set a number; select_rank helps you to choose it."
        )
    if not isinstance(settings.random_state, (int, np.integer)):
        # If there are several batches, all have the same starts.
        drawn = check_random_state(settings.random_state).randint(2**31 - 1)
        settings = replace(settings, random_state=int(drawn))
    source = source_for(X, settings.name)
    there = device is not None or source.on_device

    def of_weighting(i: int) -> FitSettings:
        return replace(settings, spec=settings.spec._replace(weighting=requested[i]))

    def kind(i: int) -> tuple[bool, bool, bool, float, str]:
        """Return the kind of a weighting; weightings of the same kind share a batch."""
        # On a device, members with automatic parameters need the host in every pass; others do not.
        has_auto = there and requested[i].has_auto
        screened = requested[i].needs_screening  # it needs its own start
        # The penalty of the basis is the same for weightings of the same degree.
        degree = requested[i].degree if settings.has_penalty else 1.0
        return requested[i].per_entry, has_auto, screened, degree, of_weighting(i).start_name

    members: dict[tuple[int, int], PathMember] = {}
    for _, group in groupby(sorted(range(len(requested)), key=kind), key=kind):
        places = list(group)
        alike = [requested[i] for i in places]
        for weighting in alike:
            weighting._validate_params()
        of_batch = of_weighting(places[0])
        plan = plan_fit(
            of_batch, check_source(of_batch, source), W=W, H=H, sample_weight=sample_weight,
            weightings=len(alike),
        )  # fmt: skip
        fitted = plan.run(alike, progress_of(model, plan), device)
        starts = len(fitted) // len(alike)
        for number, one in enumerate(fitted):
            at, start = divmod(number, starts)
            members[places[at], start] = _member(plan, alike[at], start, one)
    return [members[place] for place in sorted(members)]


def _member(plan: FitPlan, weighting: Weighting, start: int, fitted: Fitted) -> PathMember:
    result = plan.result(fitted)
    return PathMember(
        weighting, result.weighting, start, plan.codes(fitted), result.components,
        result.sample_importances, result.energies, result.effective_sample_size,
        float(result.objective_history[-1]), result.objective_history, fitted.n_iter,
        fitted.converged,
    )  # fmt: skip
