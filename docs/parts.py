r"""Text on weightings, losses and structures that pages show, from the registries.

A part says all of it in its own file: the name of its class, and in the docstring what it does, the
formula of its weights after ``\qquad``, and a sentence that begins with "Use it for".
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping

from robustnmf import RobustNMF
from robustnmf.losses import LOSSES
from robustnmf.structures import STRUCTURES
from robustnmf.weightings import WEIGHTINGS


def weightings_table() -> list[list[str]]:
    """Return a row for every weighting: its name, the weight of a sample, what to use it for."""
    default = inspect.signature(RobustNMF).parameters["weighting"].default
    rows = []
    for name, kind in WEIGHTINGS.items():
        note = " (default)" if name == default else ""
        entries = "entries: " if kind.per_entry else ""
        rows.append([f'`"{name}"`{note}', entries + _weight_formula(kind), _use(kind)])
    return rows


def reference_of_weightings() -> str:
    """Return the list of weightings of the reference."""
    return _summary(WEIGHTINGS)


def reference_of_losses_and_structures() -> str:
    """Return the list of losses and structures of the reference."""
    return _summary(LOSSES, STRUCTURES)


def _summary(*registries: Mapping[str, type]) -> str:
    """Return the directive that lists the classes of registries, with a page for each."""
    names = [kind.__name__ for registry in registries for kind in registry.values()]
    return "\n   ".join([".. autosummary::", ":toctree: generated\n", *names])


def _weight_formula(kind: type) -> str:
    """Return the formula of the weights in the docstring of a weighting."""
    found = re.search(r"\.\. math::(.*?)\n\n(?=\S|$)", f"{inspect.getdoc(kind)}\n\n", re.DOTALL)
    _, _, formula = (found[1] if found else "").partition(r"\qquad")
    formula = " ".join(formula.replace(r"\qquad", r"\;").split()).replace("|", r"\vert{}")
    return f"${formula}$" if formula else ""


def _use(kind: type) -> str:
    """Return what to use a weighting for, or what it does where its docstring does not say."""
    text = inspect.getdoc(kind) or ""
    found = re.search(r"^Use it for\s(.*?)\.$", text, re.DOTALL | re.MULTILINE)
    use = found[1] if found else text.partition("\n")[0].rstrip(".")
    return " ".join(use.replace("``", "`").split())
