"""Sphinx configuration."""

from pathlib import Path

from robustnmf import __version__, combinations

project = "robustnmf"
author = "The robustnmf developers"
release = __version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
html_theme = "pydata_sphinx_theme"
html_theme_options = {"show_prev_next": False}
html_sidebars = {"**": []}
numpydoc_show_class_members = False
autosummary_generate = True
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "generated/combinations.md"]


def setup(app):
    """The table of combinations is what the library itself says."""
    app.connect("builder-inited", lambda app: _write_combinations(Path(app.srcdir)))


def _write_combinations(folder: Path) -> None:
    cells = combinations()
    reasons = list(dict.fromkeys(c.reason for c in cells if c.reason))
    weightings = list(dict.fromkeys(c.weighting for c in cells))
    lines = [f"| loss | structure | data | {' | '.join(weightings)} |"]
    lines.append("|---" * (3 + len(weightings)) + "|")
    for key in dict.fromkeys((c.loss, c.structure, c.data) for c in cells):
        row = [c for c in cells if (c.loss, c.structure, c.data) == key]
        marks = ["yes" if c.supported else f"no ({reasons.index(c.reason) + 1})" for c in row]
        lines.append(f"| {' | '.join(key)} | {' | '.join(marks)} |")
    lines += ["", *(f"{number}. {reason}" for number, reason in enumerate(reasons, start=1)), ""]
    (folder / "generated").mkdir(exist_ok=True)
    (folder / "generated" / "combinations.md").write_text("\n".join(lines))
