"""Names of scikit-learn's NMF, and what they are called here."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from robustnmf.compatibility import ModelSpec, fastest_solver, unsupported_solver_reason
from robustnmf.losses import LOSSES, Beta, Loss
from robustnmf.solvers import SOLVERS, Solver

SOLVER_ALIASES = {"cd": "hals"}
"""Solvers under scikit-learn's names."""

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


def init_of(model: Any) -> str:
    """Return the name of the start of an estimator, where None is the default of its class."""
    return model._default_init if model.init is None else model.init


def solver_of(model: Any, parts: ModelSpec) -> Solver:
    """Return the solver of an estimator, or raise if it does not go with these parts."""
    name = SOLVER_ALIASES.get(model.solver, model.solver)
    if name == "auto":
        return SOLVERS[fastest_solver(parts)]()
    reason = unsupported_solver_reason(parts.loss, parts.structure, name)
    if reason is not None:
        alias = "" if name == model.solver else f"solver={model.solver!r} is {name!r} here: "
        raise ValueError(alias + reason)
    return SOLVERS[name]()


def loss_of_beta(beta_loss: str | float) -> Loss:
    """Return the loss that a value of scikit-learn's ``beta_loss`` stands for."""
    if isinstance(beta_loss, str):
        return LOSSES[beta_loss]()
    name = NAMED_BETAS.get(float(beta_loss))
    return Beta(float(beta_loss)) if name is None else LOSSES[name]()


def check_aliases(loss: Any, beta_loss: Any, shuffle: bool) -> None:
    """Refuse two losses at once, and what scikit-learn's NMF has and this library has not."""
    if beta_loss is not None and loss != "frobenius":
        raise ValueError(
            f"loss={loss!r} and beta_loss={beta_loss!r} are both given, but there is one loss. "
            "Leave out beta_loss, which is scikit-learn's name for it."
        )
    if shuffle:
        raise ValueError(
            "shuffle=True is not offered: coordinate descent goes through the components in order. "
            "For several starts use init='random' with n_init."
        )


def explain_replaced(init: Callable[..., None]) -> Callable[..., None]:
    """Wrap ``__init__``: parameters of MiniBatchNMF are refused with what replaces them."""

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **parameters: Any) -> None:
        for name in parameters:
            if name in REPLACED:
                raise TypeError(f"{type(self).__name__} has no {name}: {REPLACED[name]}")
        init(self, *args, **parameters)

    return checked
