"""The site: `make docs` builds it, with warnings as errors."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import steelyard

project = "Steelyard"
author = "The Steelyard developers"
project_copyright = author
release = steelyard.__version__
version = release

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "blocks",  # this one and the next five: _ext
    "cells",
    "commands",
    "mathml",
    "pictures",
    "paper_results",
]
exclude_patterns = ["_build", "_templates", "**sg_execution_times*"]  # the last: they fetch scripts from the network
templates_path = ["_templates"]
highlight_language = "none"

# Markdown: headings are targets, so that a link to one that is gone is a warning.
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4

# The API: each public name on a page of its own, from its docstring.
autosummary_generate = True
autosummary_imported_members = False
autodoc_mock_imports = ["river"]  # the classes for River are shown without it
nitpicky = True  # every name that a docstring links to is there
autodoc_default_options = {"members": True}
toc_object_entries_show_parents = "hide"  # the contents of a page are narrow
autodoc_typehints = "none"  # docstrings say it in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Copied without prompts and without what is printed.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# The gallery: every example runs at each build; only those that changed run again.
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 10,
    "matplotlib_animations": False,
    "image_srcset": ["2x"],
    "reset_modules": ("look.reset",),
    "subsection_order": [f"../examples/gallery/{name}" for name in ("weights", "rates", "losses", "scale")],
    "plot_gallery": "True",
    "default_thumb_file": None,
    "show_signature": False,
}
suppress_warnings = [
    "config.cache",  # settings with functions
    "ref.python",  # a name that several classes have
]

html_theme = "pydata_sphinx_theme"
html_title = f"Steelyard {release}"
html_static_path = ["_static"]
html_css_files = ["steelyard.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_nav_level": 2,
    "show_prev_next": True,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": ["page-toc"],
    "logo": {"text": "Steelyard"},
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {page: [] for page in ("index", "start", "paper", "theory", "benchmarks", "contributing", "commands")}
