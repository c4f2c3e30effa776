"""Messages of the library in the terms of the command line: options, names, what can be done."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from robustnmf.tables import Table

OPTIONS = {
    "n_components": "-k", "max_iter": "--max-iter", "tol": "--tol", "init": "--init",
    "random_state": "--seed", "n_init": "--n-init", "weighting": "--weighting", "loss": "--loss",
}  # fmt: skip
"""Options of ``robustnmf fit`` by the parameters they set."""

WORDS = {"weighting", "loss"}
"""Parameters whose names are words of a sentence where no value follows."""

PARAMETER = re.compile(
    rf"\b(?P<name>{'|'.join(OPTIONS)})\b(?:=(?P<quote>'?)(?P<value>[\w.+-]*\w)(?P=quote))"
    rf"|\b(?P<bare>{'|'.join(name for name in OPTIONS if name not in WORDS)})\b"
)

ADVICE = {
    r"X\.toarray\(\)": "a file with a dense table",
    r"a weighting with a parameter of your own, such as weighting=Cauchy\(\.\.\.\), works with "
    r"fewer": "with fewer, use a weighting with a parameter of its own in Python",
    r"outliers_ says which": "the results say which",
    r", and entry_weights\(X\) says which": "",
    r"\bFrobenius or KullbackLeibler\b": "--loss frobenius or kullback-leibler",
    r"\buse KullbackLeibler\b": "use --loss kullback-leibler",
    r"or the squared error with this one": "or --loss frobenius with this one",
    r"\buse EWRNMF or RobustNMF": "use --weighting entropy or trimmed",
    r"No \w+ \(now [^)]*\) is enough for energies as uneven as these; fit with a much larger one "
    r"from the start, or use": "Use",
    r"Raise \w+ (?:\(now|from) .*":
        "Use --weighting trimmed, or set the parameter of the weighting in Python.",
    r"scale its features to comparable sizes": "divide its features by their scales (--scale max)",
}  # fmt: skip
"""Advice that needs Python, as regular expressions, and what replaces it here."""

POSITION = re.compile(r"\bfirst at \[(\d+), (\d+)\]")
AXIS = re.compile(r"\bfirst (sample|feature) (\d+)")


@contextmanager
def errors_in_options(table: Table | None, file: Path) -> Iterator[None]:
    """Reword what an estimator raises about a table, which was read from a file.

    Without a table its samples and features stay numbered.
    """
    try:
        yield
    except ValueError as error:
        raise ValueError(in_options(str(error), table, file)) from error


def in_options(text: str, table: Table | None = None, file: Path | None = None) -> str:
    """Return a message of an estimator with options in place of parameters.

    For messages of the library alone: other texts may hold words such as "tol" that are no
    parameters. The path of the file, which the message may hold, stays as it is.
    """
    parts = [text] if file is None else text.split(str(file))
    return str(file).join(_reword(part, table) for part in parts)


def _reword(text: str, table: Table | None) -> str:
    """Replace advice, parameters, parts of a method, and numbers of samples and features."""
    for pattern, replacement in ADVICE.items():
        text = re.sub(pattern, replacement, text, flags=re.DOTALL)
    text = PARAMETER.sub(_option, text)
    options = _options_of_parts()
    names = "|".join(options)
    text = re.sub(rf"\b({names})\([^()]*\)", lambda match: options[match[1]], text)
    if table is not None:
        text = POSITION.sub(
            lambda match: (
                f"first in sample {table.ids[int(match[1])]!r}, feature "
                f"{table.features[int(match[2])]!r}"
            ),
            text,
        )
        axes = {"sample": table.ids, "feature": table.features}
        text = AXIS.sub(lambda match: f"first {match[1]} {axes[match[1]][int(match[2])]!r}", text)
    return text


def _option(match: re.Match[str]) -> str:
    """Return the option for a parameter, with its value if it has one."""
    if match["bare"]:
        return OPTIONS[match["bare"]]
    return f"{OPTIONS[match['name']]} {match['value']}"


def _options_of_parts() -> dict[str, str]:
    """Return the options that choose losses and weightings, by the names of their classes."""
    from robustnmf.losses import LOSSES
    from robustnmf.weightings import WEIGHTINGS

    return {
        part.__name__: f"{option} {name}"
        for option, parts in (("--loss", LOSSES), ("--weighting", WEIGHTINGS))
        for name, part in parts.items()
    }
