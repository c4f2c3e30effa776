"""Robust nonnegative matrix factorisation: outliers lose their say."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from robustnmf import corruptions, datasets, displays, metrics
    from robustnmf.compatibility import combinations
    from robustnmf.estimators import (
        EWRNMF,
        FWRNMF,
        NMFL2,
        ConvexNMF,
        EucNMF,
        HuberRNMF,
        PathMember,
        RankSelection,
        RobustNMF,
        RobustNMFDetector,
        fit_path,
        load,
        select_rank,
    )
    from robustnmf.exceptions import WeightCollapseWarning
    from robustnmf.losses import Alpha, Beta, Frobenius, ItakuraSaito, KullbackLeibler
    from robustnmf.structures import Convex, Free, Orthogonal
    from robustnmf.weightings import L21, Cauchy, Entropy, Fuzzy, Huber, Trimmed, Uniform

__version__ = "0.1.0"

__all__ = [
    "EWRNMF",
    "FWRNMF",
    "L21",
    "NMFL2",
    "Alpha",
    "Beta",
    "Cauchy",
    "Convex",
    "ConvexNMF",
    "Entropy",
    "EucNMF",
    "Free",
    "Frobenius",
    "Fuzzy",
    "Huber",
    "HuberRNMF",
    "ItakuraSaito",
    "KullbackLeibler",
    "Orthogonal",
    "PathMember",
    "RankSelection",
    "RobustNMF",
    "RobustNMFDetector",
    "Trimmed",
    "Uniform",
    "WeightCollapseWarning",
    "combinations",
    "corruptions",
    "datasets",
    "displays",
    "fit_path",
    "load",
    "metrics",
    "select_rank",
]

# Names are found when they are first asked for: scikit-learn takes a second to import, and
# ``robustnmf --help`` need not.
_FOLDERS = ("corruptions", "datasets", "displays", "metrics")
_HOMES = ("exceptions", "losses", "structures", "weightings", "compatibility", "estimators")
_REGISTRIES = {"losses": "LOSSES", "structures": "STRUCTURES", "weightings": "WEIGHTINGS"}


def __getattr__(name: str) -> Any:
    if name in _FOLDERS:
        return import_module(f"robustnmf.{name}")
    if name in __all__:
        for home in _HOMES:
            attribute = getattr(import_module(f"robustnmf.{home}"), name, None)
            if attribute is not None:
                globals()[name] = attribute
                return attribute
    if name[:1].isupper():  # a loss, structure or weighting that is registered but not listed above
        for home, registry in _REGISTRIES.items():
            for part in getattr(import_module(f"robustnmf.{home}"), registry).values():
                if part.__name__ == name:
                    return part
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
