"""Losses by name; a new one is a file beside these and a line in the dict."""

from robustnmf.losses._base import Loss
from robustnmf.losses._reweighted import ReweightedLoss
from robustnmf.losses.alpha import Alpha
from robustnmf.losses.beta import Beta
from robustnmf.losses.biweight import Biweight
from robustnmf.losses.frobenius import Frobenius
from robustnmf.losses.huber import HuberLoss
from robustnmf.losses.itakura_saito import ItakuraSaito
from robustnmf.losses.kullback_leibler import KullbackLeibler

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
