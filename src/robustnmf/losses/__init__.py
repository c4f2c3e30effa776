"""Dictionary of losses by name. To add a loss, add a file here and an entry to the dictionary."""

from robustnmf.losses._base import Loss
from robustnmf.losses.alpha import Alpha
from robustnmf.losses.beta import Beta, Frobenius, ItakuraSaito, KullbackLeibler
from robustnmf.losses.reweighted import HuberLoss, ReweightedLoss, TruncatedLoss

LOSSES: dict[str, type[Loss]] = {
    "frobenius": Frobenius,
    "kullback-leibler": KullbackLeibler,
    "itakura-saito": ItakuraSaito,
    "beta": Beta,
    "alpha": Alpha,
    "huber": HuberLoss,
    "truncated": TruncatedLoss,
}

FORMER_NAMES: dict[str, type[Loss]] = {"biweight": TruncatedLoss}
"""Former names of losses, which are still accepted."""

__all__ = ["FORMER_NAMES", "LOSSES", "Loss", "ReweightedLoss"]
__all__ += [kind.__name__ for kind in LOSSES.values()]
