"""Sphinx builds the documentation site: ``sphinx-build -W docs build/site``; it asks no network."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # For docs/reference.py and the checkout.

from docs import reference
from libra_planner import __version__

project = "libra-planner"
author = "the authors of libra-planner"
release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["search.md"]  # strategies.md has it: search.html is Sphinx's own.
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]

napoleon_google_docstring = False
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = "libra-planner"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]


def setup(app: object) -> None:
    """Parts of pages that the code writes."""
    reference.connect(app)
