"""RobustNMF: the estimator that combines any weighting, loss and structure."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self, TypeVar

from sklearn.utils._param_validation import Interval, StrOptions

from robustnmf.estimators.base import REGISTRIES, BaseRobustNMF, documented
from robustnmf.fitting import FitSettings
from robustnmf.loop.compatibility import ModelSpec
from robustnmf.losses import FORMER_NAMES, LOSSES, Beta, Loss
from robustnmf.structures import STRUCTURES, Structure
from robustnmf.weightings import WEIGHTINGS, Weighting

Estimator = TypeVar("Estimator")

NAMED_BETAS: dict[Any, str] = {2.0: "frobenius", 1.0: "kullback-leibler", 0.0: "itakura-saito"}
"""Values of ``beta_loss`` that have a name, in scikit-learn and here."""

IN_MINIBATCHES = (
    "fit reads all samples in every pass, block by block if X is a file, a Dask array or a "
    "function. Call partial_fit (for the squared error) with one minibatch after the other"
)
REPLACED = {
    "batch_size": f"{IN_MINIBATCHES}, each of batch_size samples.",
    "max_no_improvement": f"{IN_MINIBATCHES}, and stop when the score of held-out samples no "
    "longer rises; fit stops by tol.",
    "fresh_restarts": "codes are solved exactly in every minibatch, as with "
    "fresh_restarts=True. Leave it out.",
    "fresh_restarts_max_iter": "codes are solved exactly in every minibatch. Leave it out.",
    "transform_max_iter": "transform returns the best codes, without a limit. Leave it out.",
}
"""Parameters of scikit-learn's MiniBatchNMF, and their replacements."""


def explain_replaced(cls: type[Estimator]) -> type[Estimator]:
    """Refuse parameters of MiniBatchNMF in ``__init__``, and name their replacements."""
    init = cls.__init__

    @functools.wraps(init)
    def checked(self: Estimator, *args: Any, **parameters: Any) -> None:
        for name in parameters:
            if name in REPLACED:
                raise TypeError(f"{type(self).__name__} has no {name}: {REPLACED[name]}")
        init(self, *args, **parameters)

    cls.__init__ = checked  # type: ignore[assignment]
    return cls


@documented
@explain_replaced
@dataclass(repr=False, eq=False, kw_only=True)
class RobustNMF(BaseRobustNMF):
    r"""Robust nonnegative matrix factorisation: NMF that leaves outliers out of the fit.

    A drop-in replacement for scikit-learn's NMF. Use it if some samples can be outliers: it leaves
    out samples whose reconstruction error is far above the error of the majority, and marks them in
    ``outliers_``. All other samples have the same weight, so that data without outliers are fitted
    as by plain NMF. If many samples have a few wrong entries each, use ``loss="truncated"``.

    Parameters
    ----------
    <n_components>
    weighting : str or Weighting, default="trimmed"
        How the weight of a sample depends on its reconstruction error (energy). The parameters of
        a weighting given by name are estimated from X.
        <weighting>
    loss : str or Loss, default="frobenius"
        Loss between a sample and its approximation.
        <loss>
    beta_loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float, optional
        scikit-learn's name for ``loss``: 2 is "frobenius", 1 "kullback-leibler", 0
        "itakura-saito", and any other number b is ``Beta(b)``. Give either this or ``loss``.
    structure : str or Structure, default="free"
        Constraint on the factors.
        <structure>
    fixed_components : array-like (n_fixed, n_features), optional
        Known components. They come first in ``components_`` and are not changed by the fit.
    alpha_W : float, default=0.0
        Elastic-net penalty on the codes, scaled as in scikit-learn's NMF: ``n_features *
        alpha_W`` times ``l1_ratio sum(a) + (1 - l1_ratio) / 2 sum(a**2)`` is added to the loss of
        a sample (half the squared error) before weighting.
    alpha_H : float or "same", default="same"
        Elastic-net penalty on the components: ``n_samples * alpha_H`` times the same expression of
        their entries is added to the objective. "same" is ``alpha_W``.
    l1_ratio : float in [0, 1], default=0.0
        Share of the L1 norm in the penalty; the rest is the squared L2 norm. A large L1 penalty
        can set a component to zero in the first iterations of "hals", later with "mu".
    forget_factor : float in (0, 1], default=0.9
        Factor by which ``partial_fit`` discounts earlier minibatches; 1 weights all equally.
    <common>
    shuffle : bool, default=False
        Only for compatibility with scikit-learn's NMF; True (a random order of the components in
        coordinate descent) is not supported.

    <attributes>

    Notes
    -----
    The objective is :math:`\phi(z)`, minimised over nonnegative codes A and components C. Here
    :math:`z_i` is the loss between row i of X and row i of :math:`A C`, and :math:`\phi` is the
    concave function of the weighting; its gradient gives the weights of the samples.

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import RobustNMF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(1.0, size=(60, 3)) @ rng.gamma(1.0, size=(3, 8))
    >>> X += rng.random(X.shape)
    >>> X[:6] = 50 * rng.random((6, 8))  # six outliers
    >>> model = RobustNMF(n_components=3, random_state=0).fit(X)
    >>> np.flatnonzero(model.outliers_)
    array([0, 1, 2, 3, 4, 5])
    """

    _parameter_constraints: ClassVar[dict[str, list]] = {
        **BaseRobustNMF._parameter_constraints,
        "weighting": [StrOptions(set(WEIGHTINGS)), Weighting],
        "loss": [StrOptions({*LOSSES, *FORMER_NAMES}), Loss],
        "beta_loss": [StrOptions(set(NAMED_BETAS.values())), Real, None],
        "structure": [StrOptions(set(STRUCTURES)), Structure],
        "fixed_components": ["array-like", None],
        "alpha_W": [Interval(Real, 0, None, closed="left")],
        "alpha_H": [Interval(Real, 0, None, closed="left"), StrOptions({"same"})],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "forget_factor": [Interval(Real, 0, 1, closed="right")],
        "shuffle": ["boolean"],
    }

    weighting: str | Weighting = "trimmed"
    loss: str | Loss = "frobenius"
    beta_loss: str | float | None = None
    structure: str | Structure = "free"
    fixed_components: Any = None
    alpha_W: float = 0.0
    alpha_H: float | str = "same"
    l1_ratio: float = 0.0
    forget_factor: float = 0.9
    shuffle: bool = False

    def _spec(self) -> ModelSpec:
        spec = {name: _part(name, getattr(self, name)) for name in REGISTRIES}
        if self.beta_loss is not None:
            name = NAMED_BETAS.get(self.beta_loss, self.beta_loss)
            spec["loss"] = LOSSES[name]() if isinstance(name, str) else Beta(float(name))
        return ModelSpec(**spec)

    def _settings(self) -> FitSettings:
        settings = super()._settings()
        if self.beta_loss is not None and self.loss != "frobenius":
            raise ValueError(
                f"loss={self.loss!r} and beta_loss={self.beta_loss!r} are both given, but they are "
                "two names for the same parameter. Leave out beta_loss, scikit-learn's name."
            )
        if self.shuffle:
            raise ValueError(
                "shuffle=True is not supported: coordinate descent updates the components in "
                "order. For several starts, use init='random' with n_init."
            )
        return settings

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the estimator, and nested ones as ``weighting__gamma=3.0``.

        Setting a parameter of a weighting, loss or structure that was given by name replaces the
        name by an instance.

        Parameters
        ----------
        **params
            Parameters of the estimator, or nested ones: ``weighting__``, ``loss__`` or
            ``structure__`` and the name of the parameter.

        Returns
        -------
        self : the estimator
        """
        for name, registry in REGISTRIES.items():
            part = params.get(name, getattr(self, name))
            is_name = isinstance(part, str) and part in registry
            if is_name and any(key.startswith(f"{name}__") for key in params):
                params[name] = _part(name, part)
        return super().set_params(**params)


def _part(name: str, part: Any) -> Any:
    """Return the instance for the name of a weighting, loss or structure, or the given instance."""
    return REGISTRIES[name][part]() if isinstance(part, str) else part
