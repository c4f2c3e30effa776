"""The estimator that puts any weighting, loss and structure together."""

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

NAMED_BETAS = {2.0: "frobenius", 1.0: "kullback-leibler", 0.0: "itakura-saito"}
"""Values of ``beta_loss`` that have a loss of their own, and its name in both libraries."""

IN_MINIBATCHES = (
    "fit reads all samples in every pass, block by block where X is a file, a Dask array or a "
    "function. Call partial_fit (of the squared error) with one minibatch after the other"
)
REPLACED = {
    "batch_size": f"{IN_MINIBATCHES}, of as many samples as batch_size.",
    "max_no_improvement": f"{IN_MINIBATCHES}, and stop when score of held-out samples no longer "
    "rises; fit stops by tol.",
    "fresh_restarts": "codes are solved for to the end in every minibatch, which is "
    "fresh_restarts=True. Leave it out.",
    "fresh_restarts_max_iter": "codes are solved for to the end in every minibatch. Leave it out.",
    "transform_max_iter": "transform returns the best codes, with no limit to set. Leave it out.",
}
"""Parameters of scikit-learn's MiniBatchNMF, and what replaces them."""


def explain_replaced(cls: type[Estimator]) -> type[Estimator]:
    """Refuse parameters of MiniBatchNMF in ``__init__`` with what replaces them."""
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
    r"""Robust nonnegative matrix factorisation, any weighting with any loss and structure.

    Minimises :math:`\phi(z)` over nonnegative codes A and basis C, where
    :math:`z_i` is the loss between row i of X and row i of :math:`A C` and
    :math:`\phi` the concave function of the weighting. Samples that fit badly lose
    their say. With no arguments but the rank, weights adapt to the data: samples count in full
    unless their energies lie far above those of the majority.

    Parameters
    ----------
    <n_components>
    weighting : str or Weighting, default="trimmed"
        Name or instance: <weighting>.
        By name, parameters are automatic: they are read off the energies, whatever the units
        of X.
    loss : str or Loss, default="frobenius"
        Name or instance: <loss>.
    beta_loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float, optional
        scikit-learn's name for ``loss``: 2 is "frobenius", 1 "kullback-leibler", 0
        "itakura-saito", and any other number b is ``Beta(b)``. One of the two can be given.
    structure : str or Structure, default="free"
        Name or instance: <structure>.
    fixed_components : array-like (n_fixed, n_features), optional
        The first components, held as given while the others are learned.
    alpha_W : float, default=0.0
        Elastic-net penalty on the codes, scaled as in scikit-learn's NMF: ``n_features *
        alpha_W`` times ``l1_ratio sum(a) + (1 - l1_ratio) / 2 sum(a**2)`` is added to the loss of
        a sample (half the squared error) before weighting.
    alpha_H : float or "same", default="same"
        Penalty on the basis, ``n_samples * alpha_H`` times the same of its entries, added to the
        sum over samples. "same" is ``alpha_W``.
    l1_ratio : float in [0, 1], default=0.0
        Share of absolute values in the penalty; the rest are squares. Large penalties on absolute
        values may empty a component in the first passes of "hals", "mu" takes longer to.
    forget_factor : float in (0, 1], default=0.9
        Factor of the sums of earlier minibatches when ``partial_fit`` adds one more. One forgets
        nothing.
    <common>
    shuffle : bool, default=False
        Accepted as in scikit-learn's NMF; True, a random order of the components in coordinate
        descent, is refused.

    <attributes>

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import RobustNMF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(1.0, size=(60, 3)) @ rng.gamma(1.0, size=(3, 8))
    >>> X += rng.random(X.shape)
    >>> X[:6] = 50 * rng.random((6, 8))  # six bad samples
    >>> model = RobustNMF(n_components=3, random_state=0).fit(X)
    >>> np.sort(np.argsort(model.energies_)[-6:])
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

    def _parts(self) -> ModelSpec:
        parts = {name: _part(name, getattr(self, name)) for name in REGISTRIES}
        if self.beta_loss is not None:
            parts["loss"] = _loss_of_beta(self.beta_loss)
        return ModelSpec(**parts)

    def _settings(self) -> FitSettings:
        settings = super()._settings()
        if self.beta_loss is not None and self.loss != "frobenius":
            raise ValueError(
                f"loss={self.loss!r} and beta_loss={self.beta_loss!r} are both given, but there is "
                "one loss. Leave out beta_loss, which is scikit-learn's name for it."
            )
        if self.shuffle:
            raise ValueError(
                "shuffle=True is not offered: coordinate descent goes through the components in "
                "order. For several starts use init='random' with n_init."
            )
        return settings

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of parts: ``set_params(weighting__gamma=3.0)``.

        A part that is given by its name is replaced by the instance that the name stands for.

        Parameters
        ----------
        **params
            Parameters of the estimator, and of its parts after their name and two underscores.

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
    """The instance that the name of a part stands for, or the instance that is given."""
    return REGISTRIES[name][part]() if isinstance(part, str) else part


def _loss_of_beta(beta_loss: str | float) -> Loss:
    """Return the loss that a value of scikit-learn's ``beta_loss`` stands for."""
    if isinstance(beta_loss, str):
        return LOSSES[beta_loss]()
    name = NAMED_BETAS.get(float(beta_loss))
    return Beta(float(beta_loss)) if name is None else LOSSES[name]()
