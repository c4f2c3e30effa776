"""Sphinx configuration."""

from robustnmf import __version__

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
exclude_patterns = ["_build"]
