"""Robust nonnegative matrix factorisation: outliers are down-weighted."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from robustnmf._version import __version__ as __version__

if TYPE_CHECKING:
    # For type checkers and editors, which cannot read registries. A loss, structure or weighting
    # that is not listed here is still public, but has no static type. "as" exports names.
    # isort: off
    from robustnmf import (
        benchmark as benchmark,
        corruptions as corruptions,
        datasets as datasets,
        displays as displays,
        losses as losses,
        metrics as metrics,
        structures as structures,
        tables as tables,
        weightings as weightings,
    )
    from robustnmf.loop.compatibility import combinations as combinations
    from robustnmf.estimators import (
        EWRNMF as EWRNMF,
        FWRNMF as FWRNMF,
        NMFL2 as NMFL2,
        ConsensusNMF as ConsensusNMF,
        ConvexNMF as ConvexNMF,
        EucNMF as EucNMF,
        HuberRNMF as HuberRNMF,
        PathMember as PathMember,
        RankSelection as RankSelection,
        RobustNMF as RobustNMF,
        RobustNMFDetector as RobustNMFDetector,
        TopFeature as TopFeature,
        fit_path as fit_path,
        load as load,
        non_negative_factorization as non_negative_factorization,
        select_rank as select_rank,
        top_features as top_features,
    )
    from robustnmf.exceptions import (
        OutlierWarning as OutlierWarning,
        WeightCollapseWarning as WeightCollapseWarning,
    )
    from robustnmf.losses import (
        Alpha as Alpha,
        Beta as Beta,
        Frobenius as Frobenius,
        ItakuraSaito as ItakuraSaito,
        KullbackLeibler as KullbackLeibler,
    )
    from robustnmf.structures import Convex as Convex, Free as Free, Orthogonal as Orthogonal
    from robustnmf.weightings import (
        L21 as L21,
        Cauchy as Cauchy,
        Entropy as Entropy,
        Fuzzy as Fuzzy,
        Huber as Huber,
        Trimmed as Trimmed,
        Uniform as Uniform,
    )
    # isort: on

# Names, including ``__all__``, are imported when they are first used: importing scikit-learn takes
# a second, and ``robustnmf --help`` does not need it.
_FOLDERS = (
    "benchmark", "corruptions", "datasets", "displays", "losses", "metrics", "structures", "tables",
    "weightings",
)  # fmt: skip
# Not in ``__all__``, because it has the same name as the package that it supports.
_UNLISTED = ("anndata",)
_HOMES = {
    "loop.compatibility": ["combinations"],
    "estimators": [
        "EWRNMF", "FWRNMF", "NMFL2", "ConsensusNMF", "ConvexNMF", "EucNMF", "HuberRNMF",
        "PathMember", "RankSelection", "RobustNMF", "RobustNMFDetector", "TopFeature", "fit_path",
        "load", "non_negative_factorization", "select_rank", "top_features",
    ],
    "exceptions": ["OutlierWarning", "WeightCollapseWarning"],
}  # fmt: skip
_REGISTRIES = {"losses": "LOSSES", "structures": "STRUCTURES", "weightings": "WEIGHTINGS"}


def __getattr__(name: str) -> Any:
    if name in (*_FOLDERS, *_UNLISTED):
        return import_module(f"robustnmf.{name}")
    if name == "__all__":
        named = (name for names in _HOMES.values() for name in names)
        return sorted([*_FOLDERS, *named, *_parts()])
    for home, names in _HOMES.items():
        if name in names:
            return globals().setdefault(name, getattr(import_module(f"robustnmf.{home}"), name))
    if name[:1].isupper() and name in _parts():
        return globals().setdefault(name, _parts()[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _parts() -> dict[str, type]:
    """Return all registered losses, structures and weightings by the names of their classes."""
    registries = (
        getattr(import_module(f"robustnmf.{home}"), name) for home, name in _REGISTRIES.items()
    )
    return {part.__name__: part for registry in registries for part in registry.values()}


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
