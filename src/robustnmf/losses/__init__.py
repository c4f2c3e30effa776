"""Losses by name; a new one is a file beside these and a line in the dict."""

from robustnmf.losses._base import Loss
from robustnmf.losses.alpha import Alpha
from robustnmf.losses.beta import Beta, Frobenius, ItakuraSaito, KullbackLeibler
from robustnmf.losses.reweighted import Biweight, HuberLoss, ReweightedLoss

LOSSES: dict[str, type[Loss]] = {
    "frobenius": Frobenius,
    "kullback-leibler": KullbackLeibler,
    "itakura-saito": ItakuraSaito,
    "beta": Beta,
    "alpha": Alpha,
    "huber": HuberLoss,
    "biweight": Biweight,
}

__all__ = [
    "LOSSES",
    "Alpha",
    "Beta",
    "Biweight",
    "Frobenius",
    "HuberLoss",
    "ItakuraSaito",
    "KullbackLeibler",
    "Loss",
    "ReweightedLoss",
]
