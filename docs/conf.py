"""Sphinx configuration."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from gallery import SECTIONS, wrap_pictures
from measured import write_tables

from robustnmf import __version__

project = "robustnmf"
author = "The robustnmf developers"
copyright = "2026, The robustnmf developers"
release = __version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
]
html_theme = "pydata_sphinx_theme"
html_title = "robustnmf"
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}
html_theme_options = {
    "show_prev_next": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 9,
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {page: [] for page in ("index", "install", "guide/start", "faq")}
html_static_path = ["_static"]
html_css_files = ["pages.css"]
numpydoc_show_class_members = False
autodoc_typehints = "none"  # docstrings say it in words
autosummary_generate = True
toc_object_entries_show_parents = "hide"
templates_path = ["_templates"]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "generated/*.md", "auto_examples/**/*.ipynb"]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "subsection_order": [f"../examples/{name}" for name in SECTIONS],
    "within_subsection_order": "gallery.ReadingOrder",
    "remove_config_comments": True,
    "capture_repr": (),  # what is printed, not what the last line returns
    "download_all_examples": False,
    "min_reported_time": 1,
    "write_computation_times": False,  # its page needs the network
    "doc_module": ("robustnmf",),
    "reference_url": {"robustnmf": None},
    "backreferences_dir": None,
}


def setup(app):
    """Write the tables of results before the build, and let pictures of examples scroll."""
    app.connect("doctree-read", wrap_pictures)
    app.connect("builder-inited", lambda app: write_tables(Path(app.srcdir) / "generated"))
