"""The result of a comparison of numbers of components, with a recommendation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

STABLE = 0.8
"""A rank is stable if its mean silhouette is at least this (1 if all runs agree)."""

NEAR_LEAST = 0.1
"""The error of a stable rank can exceed the smallest error by this share of the range of errors."""

RISEN_RANKS = 3
"""Larger ranks are skipped if the errors of this many last ranks have clearly risen."""

RISEN = 2.0
"""An error has clearly risen if it is this many standard errors above the smallest error."""

FAR_FROM_STABLE = 0.5
"""Mean silhouette below which a rank is far from stable."""

UNSTABLE_RANKS = 3
"""If this many ranks with the smallest errors are far from stable, no other ranks are run."""


@dataclass(frozen=True, repr=False)
class RankSelection:
    """Errors of hidden entries for each number of components (rank), and a recommendation.

    Attributes
    ----------
    ranks : ndarray (n_ranks,)
        Numbers of components that were compared.
    errors : ndarray (n_folds, n_ranks)
        Capped mean error of the hidden entries.
    silhouette : ndarray (n_ranks,) or None
        Mean silhouette of the components of several runs, with ``stability=True``. NaN for one
        component, and for ranks whose stability cannot change the recommendation.
    left_out : tuple of int
        Larger ranks that were skipped, because the errors had clearly risen.
    best : int
        The rank with the smallest mean error.
    recommended : int
        Without silhouettes, the smallest rank whose mean error is within one standard error of
        the smallest error. With silhouettes, the candidates are ranks that are stable (silhouette
        of at least 0.8) and whose error exceeds the smallest error by at most one standard error or
        a tenth of the range of errors. The smallest candidate is recommended whose error is within
        one standard error of the difference from the best candidate. If there are no candidates,
        the rule without silhouettes is used.
    reason : str
        Why it is recommended.
    at_edge : bool
        Whether the largest rank that was compared is recommended, so larger ranks may be better.
    """

    ranks: np.ndarray
    errors: np.ndarray
    silhouette: np.ndarray | None = None
    left_out: tuple[int, ...] = ()

    def __repr__(self) -> str:
        compared = ", ".join(str(rank) for rank in self.ranks)
        return f"RankSelection: {self.reason} Compared: {compared}."

    @property
    def mean(self) -> np.ndarray:
        """Mean error over folds (n_ranks,)."""
        return self.errors.mean(axis=0)

    @property
    def standard_error(self) -> np.ndarray:
        """Standard error of the mean (n_ranks,)."""
        return _standard_error(self.errors)

    @property
    def best(self) -> int:
        return int(self.ranks[np.argmin(self.mean)])

    @property
    def recommended(self) -> int:
        return self._choice[0]

    @property
    def reason(self) -> str:
        """Why the rank is recommended, in a sentence."""
        reason = self._choice[1]
        if not self.left_out:
            return reason
        return f"{reason} Errors had risen, so more than {self.ranks[-1]} were not tried."

    @property
    def at_edge(self) -> bool:
        """Whether the recommended rank is the largest of several that were compared."""
        return len(self.ranks) > 1 and self.recommended == int(self.ranks[-1])

    @property
    def is_stable(self) -> np.ndarray:
        """Which ranks (n_ranks,) have stable components; all, if stability was not computed."""
        if self.silhouette is None:
            return np.ones(len(self.ranks), dtype=bool)
        # A single component has no silhouette, and cannot be confused with others.
        return (self.ranks == 1) | (self.silhouette >= STABLE)

    @property
    def is_near(self) -> np.ndarray:
        """Which ranks (n_ranks,) have an error near the smallest, so can be recommended."""
        mean, least = self.mean, int(np.argmin(self.mean))
        reach = max(self.standard_error[least], NEAR_LEAST * (mean.max() - mean[least]))
        return mean <= mean[least] + reach

    @property
    def undecided(self) -> int | None:
        """Index of a rank whose silhouette the recommendation depends on; None if it is known."""
        assert self.silhouette is not None
        is_known = (self.ranks == 1) | ~np.isnan(self.silhouette)
        (near,) = np.nonzero(self.is_near)
        ordered = near[np.argsort(self.mean[near], kind="stable")]
        least = self.silhouette[ordered[:UNSTABLE_RANKS]]
        if len(least) == UNSTABLE_RANKS and (least < FAR_FROM_STABLE).all():
            return None
        for best in ordered:
            if not is_known[best]:
                return int(best)
            if self.is_stable[best]:
                as_good = near[self._is_as_good(best)[near]]
                first = next(at for at in as_good if self.is_stable[at] or not is_known[at])
                return None if is_known[first] else int(first)
        return None

    def _is_as_good(self, best: int) -> np.ndarray:
        """Return which ranks (n_ranks,) are within one standard error of the rank at an index."""
        # Folds are hard or easy for all ranks, so differences within folds are more precise.
        differences = self.errors - self.errors[:, [best]]
        return np.asarray(differences.mean(axis=0) <= _standard_error(differences))

    @property
    def _choice(self) -> tuple[int, str]:
        """The recommended rank and the reason."""
        mean, least = self.mean, int(np.argmin(self.mean))
        within = mean <= mean[least] + self.standard_error[least]
        if self.silhouette is not None:
            (stable,) = np.nonzero(self.is_near & self.is_stable)
            if len(stable):
                best = int(stable[np.argmin(mean[stable])])
                rank = int(self.ranks[stable[self._is_as_good(best)[stable]]].min())
                return rank, (
                    f"{rank} is the smallest stable number of components with an error about as "
                    "small as the best of all stable ones."
                )
        rank = int(self.ranks[within].min())
        reason = (
            f"{rank} is the smallest number of components with an error within one standard error "
            "of the smallest error"
        )
        return rank, reason + (
            "." if self.silhouette is None else "; no number with a small error is stable."
        )

    def plot(self, *, ax: Any = None) -> Any:
        """Draw errors with error bars, and silhouettes on a second axis; return the axes.

        Needs matplotlib.
        """
        from sklearn.utils._optional_dependencies import check_matplotlib_support

        check_matplotlib_support("RankSelection.plot")
        from matplotlib.ticker import MaxNLocator

        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.subplots()[1]
        ax.errorbar(self.ranks, self.mean, self.standard_error, marker="o", capsize=3)
        ax.axvline(self.recommended, color="#d6336c", ls="--", lw=1)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel("number of components")
        ax.set_ylabel("error of hidden entries")
        ax.set_title(f"recommended: {self.recommended}")
        if self.silhouette is not None:
            ax.yaxis.label.set_color("C0")
            second = ax.twinx()
            second.plot(self.ranks, self.silhouette, marker="s", color="C1")
            second.set_ylabel("silhouette of the components (stability)", color="C1")
        return ax


def has_risen(errors: np.ndarray) -> bool:
    """Return whether errors (folds, ranks) of the largest ranks are clearly above the smallest.

    They must be larger by one standard error of the smallest error, and by two of the difference.
    """
    mean = errors.mean(axis=0)
    least = int(np.argmin(mean))
    if least >= errors.shape[1] - RISEN_RANKS:
        return False
    differences = errors[:, -RISEN_RANKS:] - errors[:, [least]]
    least_error = _standard_error(errors[:, [least]])
    needed = np.maximum(RISEN * _standard_error(differences), least_error)
    return bool((differences.mean(axis=0) > needed).all())


def _standard_error(values: np.ndarray) -> np.ndarray:
    """Compute the standard error (ranks,) of the mean of values (folds, ranks).

    It is computed in units of a power of two, because squares of large values overflow.
    """
    unit = 2.0 ** np.frexp(np.max(np.abs(values), initial=0.0, where=np.isfinite(values)))[1]
    return unit * (values / unit).std(axis=0, ddof=1) / len(values) ** 0.5
