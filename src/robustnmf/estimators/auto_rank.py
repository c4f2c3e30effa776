"""The number of components where no number is given: chosen from the data, or a rule of thumb."""

from __future__ import annotations

import warnings
from typing import Any

from robustnmf._warn import warn
from robustnmf.compatibility import ModelSpec
from robustnmf.engine import draw_rows
from robustnmf.estimators._aliases import init_of, solver_of
from robustnmf.estimators.rank_selection import RankSelection
from robustnmf.problem import Problem
from robustnmf.sources import Source, source_for

MAX_RANK = 15
"""Largest number of components that is compared."""

MAX_ROWS = 2000
"""Samples by which the number of components is chosen; more do not choose better ones."""

RUNS = 10
"""Random starts of every number of components, to see whether components come back."""

DEFAULT_RANK = 10
FEATURES_PER_COMPONENT = 3
"""Most components of the rule of thumb, and how many features there are for each."""

PASSED_ON = ("solver", "alpha_W", "alpha_H", "l1_ratio", "fixed_components")
"""Parameters that a comparison takes from the estimator, where it has them."""


def default_rank(shape: tuple[int, int]) -> int:
    """Return the number of components for ``n_components=None`` and X of a shape.

    With as many components as features, outliers would have components of their own.
    """
    samples, features = shape
    return max(1, min(DEFAULT_RANK, features // FEATURES_PER_COMPONENT, samples))


def choose_rank(
    rows: Any,
    parameters: dict[str, Any],
    random_state: Any,
    max_rank: int = MAX_RANK,
    verbose: int = 0,
) -> RankSelection:
    """Compare numbers of components on rows (rows, features), for ``n_components="auto"``.

    Parameters
    ----------
    rows : ndarray or CSR array (rows, features)
        Some of X, see :func:`draw_rank_rows`.
    parameters : dict
        Of :class:`RobustNMF`.
    random_state : int, RandomState or None
        None is zero: the number is the same for every fit of the same X.
    max_rank : int, default=15
        Largest number that is compared, if X allows so many.
    verbose : int, default=0
        Whether to print how far the comparison is.
    """
    # It fits models itself, which import this file.
    from robustnmf.estimators.rank import largest_rank, select_rank

    if min(rows.shape) < 2:
        raise ValueError(
            "n_components='auto' needs at least two samples and two features, but X has "
            f"n_samples={rows.shape[0]}, n_features={rows.shape[1]}. Use n_components=1."
        )
    fixed = parameters.get("fixed_components")
    least = 1 if fixed is None else max(1, len(fixed))
    ranks = range(least, max(least, min(max_rank, largest_rank(rows))) + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the fits of other numbers than the one chosen
            return select_rank(
                rows, ranks, stability=True, n_runs=RUNS,
                random_state=0 if random_state is None else random_state, verbose=verbose,
                **parameters,
            )  # fmt: skip
    except ValueError as error:
        raise ValueError(
            f"n_components='auto' cannot compare numbers of components: {error} Give a number."
        ) from error


def draw_rank_rows(
    source: Source, problem: Problem, parts: ModelSpec, sample_weight: Any = None
) -> Any:
    """Return the rows (rows, features) of checked X by which the number is chosen, on the host.

    All that have a weight, in their order, up to ``MAX_ROWS``; of more, the same ones for every
    kind of X.
    """
    engine = source.engine(problem, parts.weighting, 1, sample_weight=sample_weight)
    with engine.thread_pool():
        rows = draw_rows(engine, MAX_ROWS).rows
    engine.close()
    return rows


def draw_rank_rows_of(model: Any, X: Any) -> Any:
    """Return the rows (rows, features) of X by which ``model.fit(X)`` chooses the number."""
    parts = model._checked_parts()
    source = source_for(X, type(model).__name__).checked(parts)
    problem = Problem(parts.loss, parts.structure, solver_of(model, parts))
    return draw_rank_rows(source, problem, parts)


def choose_rank_of(model: Any, parts: ModelSpec, rows: Any) -> RankSelection:
    """Choose the number of components of an estimator; warn if it is the largest compared."""
    parameters = {"init": init_of(model), **parts._asdict()}
    parameters |= {name: getattr(model, name) for name in PASSED_ON if hasattr(model, name)}
    selection = choose_rank(
        rows, parameters, model.random_state, verbose=getattr(model, "verbose", 0)
    )
    if selection.at_edge and selection.recommended == MAX_RANK:
        warn(
            f"n_components='auto' chose {MAX_RANK} components, the most that it compares; more may "
            "be better. Compare more of them with select_rank(X, ranks) and give a number.",
            UserWarning,
        )
    return selection
