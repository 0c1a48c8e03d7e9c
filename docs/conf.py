"""Settings of the site, which `make site` builds from the pages that docs/made/stage.py writes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from made.inventory import aliases, write_inventories
from made.reference import public_names
from sphinx.application import Sphinx

import firstpage

project = "Firstpage"
author = "The Firstpage contributors"
copyright = author
release = firstpage.__version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["files"]
suppress_warnings = ["misc.highlighting_failure"]  # commands over several lines

# Pages link to headings as on GitHub.
myst_heading_anchors = 6
myst_enable_extensions = ["attrs_inline", "colon_fence"]

# Docstrings: single backticks are code, and a link where a public name is meant.
default_role = "py:obj"
nitpick_ignore_regex = [("py:obj", ".*")]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = {each.name: each.target for each in public_names()} | aliases()
intersphinx_mapping = write_inventories(Path(__file__).parents[1] / ".site" / "inventories")

sphinx_gallery_conf = {
    "examples_dirs": str(Path(__file__).with_name("gallery")),
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": "^$",
    "image_scrapers": ("made.gallery.save_charts",),
    "reset_modules": (),
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "show_signature": False,
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "Firstpage"
smartquotes = False  # docstrings write options and values in plain text
html_theme_options = {
    "header_links_before_dropdown": 9,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": []}
html_show_sourcelink = False
html_static_path = ["made/site.css"]
html_css_files = ["site.css"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", escape_text, priority=400)  # before numpydoc
    app.connect("autodoc-skip-member", skip_scikit_learn)
    app.connect("doctree-read", show_measures_as_text)


def escape_text(*event: Any) -> None:
    """Escape |w|, which would be a substitution."""
    lines = event[-1]
    text = lines[: lines.index("Examples")] if "Examples" in lines else list(lines)
    for number, line in enumerate(text):
        if "`" not in line and "min |w|" not in line:  # literal text stays as it is
            lines[number] = line.replace("|w|", r"\|w\|")


def show_measures_as_text(app: Sphinx, page: nodes.document) -> None:
    """Show NDCG@10 as text: docutils makes it a link, as of an address of mail."""
    for link in list(page.findall(nodes.reference)):
        if link.get("refuri", "").startswith("mailto:"):
            link.replace_self(nodes.Text(link.astext()))


def skip_scikit_learn(app: Sphinx, what: str, name: str, value: Any, skip: bool, _: Any) -> bool:
    """Leave out the methods that scikit-learn adds to every estimator."""
    return skip or bool(re.fullmatch("set_.*_request", name))
