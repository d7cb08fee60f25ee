"""How the documentation is built: `scripts/docs`."""

from __future__ import annotations

import logging
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import mercer

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "Mercer"
author = "the Mercer developers"
project_copyright = author
version = release = mercer.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
    "house_style",
]
exclude_patterns = ["_build", "_ext", "_tables", "_templates", "examples"]
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]  # the gallery's settings hold a class

# Pages -------------------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "unsrt"
bibtex_reference_style = "author_year"

html_theme = "furo"
html_title = "Mercer"
html_static_path = ["_static"]
html_logo = html_favicon = "_static/logo.svg"
html_css_files = ["mercer.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0b6477",
        "color-brand-content": "#0b6477",
    },
    "dark_css_variables": {
        "color-brand-primary": "#6fd3e6",
        "color-brand-content": "#6fd3e6",
    },
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Reference ---------------------------------------------------------------------------------------

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
add_module_names = False
default_role = "code"

# Gallery -----------------------------------------------------------------------------------------

sphinx_gallery_conf: dict[str, Any] = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": "__init__",
    "within_subsection_order": "FileNameSortKey",
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "write_computation_times": False,
    "min_reported_time": 1,
    "abort_on_example_error": True,
}


def warning_without_path(
    message: Warning | str, category: type[Warning], *where: Any, **line: Any
) -> str:
    """A warning as pages show it: not where this machine keeps the example."""
    return f"{category.__name__}: {message}\n"


warnings.formatwarning = warning_without_path
logging.getLogger("distributed").setLevel(logging.ERROR)  # workers come and go, and say so

# The measured results, as pages ------------------------------------------------------------------

RESULTS = HERE / "results"
RESULTS.mkdir(exist_ok=True)
for path in (HERE.parent / "benchmarks" / "results").iterdir():
    if path.suffix in (".md", ".png"):
        shutil.copy(path, RESULTS)
