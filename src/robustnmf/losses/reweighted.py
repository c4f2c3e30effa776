"""Losses of entries that grow more slowly than squared residuals: Huber and truncated squares."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from robustnmf.arrays import Array, Block, at_least, at_most, namespace, on_device_of
from robustnmf.losses._base import Loss

LEAST_WEIGHT = 1e-3
"""Least second derivative of an entry's majorant, relative to the second derivative of a square."""

EFFICIENT = 1.345
"""Cutoff of Huber's loss in standard deviations: 95% efficient for normal residuals."""

WIDEST, NARROWEST = 6.6, 2.5
"""Automatic cutoffs of truncated squares in robust standard deviations, for few and for many bad
entries."""

FEW_BAD, MANY_BAD = 0.01, 0.05
"""Shares of bad entries: the widest cutoff is used up to the first, the narrowest above the second.
In good tables about 1% of the entries are beyond six deviations, or beyond three if the noise grows
with the entries."""


class ReweightedLoss(Loss):
    r"""Concave, increasing function :math:`\rho` of the squared residual of every entry.

    The tangent of a concave function lies above it. So weighted squares, with weights
    :math:`\omega = \rho'(r^2) \le 1` at the current approximation y_0, are a majorant of the loss.
    :math:`(y_0 + \omega (x - y_0) - y)^2` is another one; it has the same Gram matrices as plain
    least squares. An entry of weight zero has no influence, like a missing value.

    A subclass defines ``rho`` and ``weight`` of squared residuals, and ``deviations``: the
    automatic cutoff in robust standard deviations of the residuals.
    """

    degree = 2.0
    unit = 2.0
    weighs_entries = True
    residual_loop: str
    _parameter_constraints = {
        "cutoff": [Interval(Real, 0, None, closed="neither"), "array-like", StrOptions({"auto"})],
        "highest": ["array-like", None],
        "usual": ["array-like", None],
    }
    spares_usual: bool = False
    """Whether "auto" also estimates the usual values of features."""

    ignores_higher: bool = False
    """Whether entries above ``highest`` have weight zero for any residual."""

    def __init__(self, cutoff: Any = "auto", highest: Any = None, usual: Any = None):
        self.cutoff = cutoff
        self.highest = highest
        self.usual = usual

    @abstractmethod
    def rho(self, squares: Array, cutoffs: Array | float) -> Array:
        """Compute the loss of squared residuals (..., features)."""

    @abstractmethod
    def weight(self, squares: Array, cutoffs: Array | float) -> Array:
        """Compute the derivative of rho at squared residuals (..., features)."""

    @classmethod
    @abstractmethod
    def deviations(cls, bad_share: float) -> float:
        """Return the automatic cutoff in robust standard deviations, for a share of bad entries."""

    @property
    def has_auto(self) -> bool:
        return isinstance(self.cutoff, str)

    def check_features(self, features: int) -> None:
        for name in ("cutoff", "highest", "usual"):
            given = getattr(self, name)
            if given is None or isinstance(given, (str, Real)):
                continue
            values = np.asarray(given)
            problem = None
            if values.shape != ((2, features) if name == "usual" else (features,)):
                problem = f"has the shape {values.shape}, but X has {features} features"
            elif values.dtype.kind not in "iuf" or not np.all(np.isfinite(values)):
                problem = "holds values that are not finite numbers"
            elif name == "cutoff" and not np.all(values > 0):
                problem = f"holds {values.min():g}, but cutoffs are positive"
            if problem is not None:
                numbers = "two rows with one number" if name == "usual" else "one number"
                other = "a single number for all of them" if name == "cutoff" else "leave it out"
                raise ValueError(
                    f"{name} of {type(self).__name__} {problem}. Give {numbers} for every "
                    f"feature, or {other}."
                )

    def with_cutoff(self, cutoff: Any) -> Self:
        """Return the loss with a cutoff: one number, or one per feature (features,)."""
        loss = copy(self)
        loss.cutoff = cutoff
        return loss

    def rescaled(self, factor: float) -> Self:
        loss = self._with_arrays(lambda values: values * factor)
        if isinstance(self.cutoff, Real):
            loss.cutoff = float(self.cutoff) * factor
        return loss

    def of_features(self, features: np.ndarray) -> Self:
        return self._with_arrays(lambda values: values[..., features])

    def _with_arrays(self, change: Callable[[np.ndarray], np.ndarray]) -> Self:
        """Return the loss with its per-feature parameters changed; "auto" stays as it is."""
        loss = copy(self)
        for name in () if self.has_auto else ("cutoff", "highest", "usual"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, Real):
                setattr(loss, name, change(np.asarray(value, dtype=np.float64)))
        return loss

    def cutoffs_like(self, data: Array) -> Array | float:
        """Return the cutoff as a number, or as an array (features,) on the device of the data."""
        if self.has_auto:
            raise ValueError(
                f'{self!r} has no cutoff yet: "auto" is estimated during a fit. Use loss_ of a '
                "fitted estimator, or give a number."
            )
        if isinstance(self.cutoff, Real):
            return float(self.cutoff)
        cutoffs = np.asarray(self.cutoff, dtype=np.float64)
        return on_device_of(data, cutoffs, data.dtype)

    def entries(self, data: Array, approximation: Array) -> Array:
        squares = (data - approximation) ** 2
        losses = self.rho(squares, self.cutoffs_like(approximation))
        return self._without_higher(data, self._unless_usual(data, squares, losses))

    def entry_weights(self, data: Array, approximation: Array) -> Array:
        """Compute the weight of every entry, from 1 for good entries to 0 for bad ones."""
        weights = self.weight((data - approximation) ** 2, self.cutoffs_like(approximation))
        weights = self._unless_usual(data, namespace(weights).ones_like(weights), weights)
        return self._without_higher(data, weights)

    def _unless_usual(self, data: Array, usual: Array, others: Array) -> Array:
        """Take ``usual`` for entries that are usual for their feature, ``others`` elsewhere."""
        if self.usual is None:
            return others
        xp = namespace(others)
        bounds = on_device_of(data, np.asarray(self.usual, dtype=np.float64), data.dtype)
        return xp.where((data >= bounds[0, ...]) & (data <= bounds[1, ...]), usual, others)

    def _without_higher(self, data: Array, values: Array) -> Array:
        """Set values of entries above ``highest`` to zero, if the loss ignores these."""
        if not self.ignores_higher or self.highest is None:
            return values
        xp = namespace(values)
        highest = on_device_of(data, np.asarray(self.highest, dtype=np.float64), data.dtype)
        return xp.where(data <= highest, values, xp.zeros_like(values))

    def split(self, data: Array, approximation: Array) -> tuple[Array, Array]:
        # Adding the same to both parts leaves the gradient unchanged. It avoids 0 / 0 in
        # multiplicative updates, so that a row or feature without weight keeps its factor.
        weights, raised = self.entry_weights(data, approximation), LEAST_WEIGHT * approximation
        return weights * data + raised, weights * approximation + raised

    def curvature(self, data: Array, approximation: Array) -> Array:
        return at_least(self.entry_weights(data, approximation), LEAST_WEIGHT)

    def weighted_residuals(self, block: Block, approximation: Array) -> tuple[Array, Array]:
        """Compute weighted residuals (members, rows, features), and sums of rho over rows.

        The sums (members, rows) are float64. Missing entries contribute zero.
        """
        self.cutoffs_like(approximation)  # raises an error if there are no cutoffs yet
        by_feature = np.empty((3, approximation.shape[-1]))
        by_feature[0] = self.cutoff
        by_feature[1:] = np.array([[np.inf], [-np.inf]]) if self.usual is None else self.usual
        compiled = None
        if block.is_complete_table:
            compiled = block.kernels.weighted_residuals(
                self.residual_loop, block.rows, block.unit, approximation, by_feature
            )
        if compiled is not None:
            return compiled
        data = block.values()
        residuals = self.entry_weights(data, approximation) * (data - approximation)
        return residuals, block.row_sums(self.entries(data, approximation))


class HuberLoss(ReweightedLoss):
    r"""Huber's loss of every entry: squared up to a cutoff, linear beyond it.

    .. math::

        z_i = \sum_j \rho(r_{ij}), \qquad
        \rho(r) = \begin{cases} r^2 & |r| \le c_j \\ 2 c_j |r| - c_j^2 & |r| > c_j \end{cases},
        \qquad \omega = \min\left(1, \frac{c_j}{|r|}\right)

    Use it for heavy-tailed noise of single entries, with any weighting of samples. The loss is
    convex in each factor. Large residuals have a bounded influence, but not zero as with
    :class:`TruncatedLoss`.

    Parameters
    ----------
    cutoff : float > 0, array-like (n_features,) or "auto", default="auto"
        Residual, in the units of X, above which the loss of an entry is linear; one number for all
        features or one per feature. "auto" is 1.345 robust standard deviations of the residuals of
        each feature, estimated from a robust fit of at most 1,000 samples.
    highest : array-like (n_features,) or None, default=None
        Largest good value of every feature; see :class:`TruncatedLoss`.
    usual : array-like (2, n_features) or None, default=None
        Smallest and largest usual value of every feature. Entries between them have the loss
        :math:`r^2`; see :class:`TruncatedLoss`.

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import HuberLoss
    >>> HuberLoss(1.0).entries(np.array([1.5, 4.0]), np.array([1.0, 1.0]))
    array([0.25, 5.  ])
    """

    residual_loop = "huber_residuals"

    @classmethod
    def deviations(cls, bad_share: float) -> float:
        return EFFICIENT

    def rho(self, squares: Array, cutoffs: Array | float) -> Array:
        residuals = namespace(squares).sqrt(squares)
        capped = at_most(residuals, cutoffs)
        return capped * (2 * residuals - capped)

    def weight(self, squares: Array, cutoffs: Array | float) -> Array:
        xp = namespace(squares)
        residuals = xp.sqrt(squares)
        is_small = residuals <= cutoffs
        one = xp.ones_like(residuals)
        return xp.where(is_small, one, cutoffs / xp.where(is_small, one, residuals))


class TruncatedLoss(ReweightedLoss):
    r"""Squared error up to a cutoff, and a constant beyond it, for every entry.

    .. math::

        z_i = \sum_j \rho(r_{ij}), \qquad \rho(r) = \min(r^2, c_j^2), \qquad
        \omega = \begin{cases} 1 & |r| \le c_j \\ 0 & |r| > c_j \end{cases}

    Use it if single entries are wrong: typing errors, spikes, dead pixels. An entry is
    ignored like a missing value if its residual exceeds the cutoff of its feature and its value is
    unusual for the feature. The rest of the row is used. Any weighting of samples can be added.

    Parameters
    ----------
    cutoff : float > 0, array-like (n_features,) or "auto", default="auto"
        Residual, in the units of X, above which an entry has no weight; one number for all features
        or one per feature. "auto" is 2.5 to 6.6 robust standard deviations of the residuals of each
        feature in a robust fit of at most 1,000 samples, less if more entries are bad; six in a fit
        with Huber's loss; or three in fits of the entries inside Tukey's fences. The cutoffs that
        predict hidden entries of these samples best are taken, if this is clearly better than to
        ignore no entry.
    highest : array-like (n_features,) or None, default=None
        Largest good value of every feature. Entries above it are ignored in the first estimate of
        the codes of a row. With ``cutoff="auto"`` it is estimated from the same fit.
    usual : array-like (2, n_features) or None, default=None
        Smallest and largest usual value of every feature. Entries between them have full weight and
        the loss :math:`r^2` for any residual. With ``cutoff="auto"`` they lie half an interquartile
        range outside the quartiles of each feature, so that an entry is bad only if it does not fit
        *and* is unusual for its feature.

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import TruncatedLoss
    >>> TruncatedLoss(2.0).entry_weights(np.array([1.0, 2.0, 9.0]), np.ones(3))
    array([1., 1., 0.])
    """

    residual_loop = "truncated_residuals"
    spares_usual = True

    @classmethod
    def deviations(cls, bad_share: float) -> float:
        narrowing = (bad_share - FEW_BAD) / (MANY_BAD - FEW_BAD)
        return WIDEST - min(max(narrowing, 0.0), 1.0) * (WIDEST - NARROWEST)

    def rho(self, squares: Array, cutoffs: Array | float) -> Array:
        return at_most(squares, cutoffs * cutoffs)

    def weight(self, squares: Array, cutoffs: Array | float) -> Array:
        return namespace(squares).astype(squares <= cutoffs * cutoffs, squares.dtype)

    def encoding_path(self) -> tuple[Loss, ...]:
        """Return Huber's loss without gross entries, which has one minimum, and then this loss."""
        first = HuberLoss(self.cutoff, self.highest, self.usual)
        first.ignores_higher = True
        return (first, self)
