"""Losses by name; a new one is a file beside these and a line in the dict."""

from robustnmf.losses._base import Loss
from robustnmf.losses.frobenius import Frobenius

LOSSES: dict[str, type[Loss]] = {
    "frobenius": Frobenius,
}

__all__ = ["LOSSES", "Frobenius", "Loss"]
