"""Configuration of the documentation, built by `python -m sphinx -n -W docs build/site`.

``-D plot_gallery=0`` does not run the examples of the gallery; pages show the figures of the last
build that did.
"""

import os
import re
import sys
import tomllib
from dataclasses import is_dataclass
from importlib import import_module
from inspect import isfunction
from pathlib import Path
from pkgutil import iter_modules

import looms

# one thread of BLAS, as small problems want
os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "looms"
author = "The looms developers"
copyright = author
release = version = looms.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "command_line",
    "docstrings",
    "llms_txt",
    "mathml",
    "sample_reports",
    "whole_site",
]
exclude_patterns = ["build", "_*"]
templates_path = ["_templates"]
html_static_path = ["_static"]
default_role = "autolink"

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# A page for each public name: `_templates/autosummary`.
autosummary_generate = True
ROOMS = [f"looms.{room.name}" for room in iter_modules(looms.__path__) if room.name[0] != "_"]
autosummary_context = {
    "public": {
        "looms": [name for name in looms.__all__ if name != "__version__"],
        **{room: set(import_module(room).__all__) - set(looms.__all__) for room in ROOMS},
    }
}
# Names that differ by the case of letters alone are one file on some disks.
autosummary_filename_map = {
    f"{room}.{name}": f"{room}.{name}_function"
    for room, names in autosummary_context["public"].items()
    for name in names
    if name.islower() and any(name != other and name == other.lower() for other in names)
}
named = [
    f"{room}.{name}" for room, names in autosummary_context["public"].items() for name in names
]


def results_of(room: str, name: str) -> list[str]:
    """Classes without a page of their own, of which a public function returns a value."""
    function = getattr(import_module(room), name)
    if not isfunction(function):
        return []
    words = re.findall(r"\w+", function.__annotations__["return"])
    known = [vars(sys.modules[function.__module__]).get(word) for word in words]
    own = [each for each in known if is_dataclass(each) and each.__module__[:6] == "looms."]
    return [f"{each.__module__}.{each.__name__}" for each in own if each.__name__ not in PUBLIC]


# They stand below the function.
PUBLIC = {name for names in autosummary_context["public"].values() for name in names}
autosummary_context["results"] = {
    f"{room}.{name}": results_of(room, name)
    for room, names in autosummary_context["public"].items()
    for name in names
}
pages = {*ROOMS, "looms", *(autosummary_filename_map.get(name, name) for name in named)}
generated = list((Path(__file__).parent / "reference" / "api").glob("*.rst"))
if {page.stem for page in generated} - pages:  # a name is no longer public: all are made anew
    for page in generated:
        page.unlink()
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False

# What docstrings refer to and is documented elsewhere.
nitpick_ignore_regex = [("py:.*", r"(sklearn|numpy|scipy|pandas|joblib|matplotlib|dask)\..*")]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("looms",),
    "download_all_examples": False,
    "remove_config_comments": True,
    "reset_modules": ("matplotlib", "seaborn", "gallery_pictures.sharp"),
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "looms"
html_math_renderer = "mathml"
html_css_files = ["looms.css"]
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}

# A site of several versions: each in a folder of its own, listed in versions.json beside them.
PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
SITE = PROJECT["project"]["urls"]["Documentation"]
if "//example.org/" not in SITE:
    html_baseurl = f"{SITE}/{version}/"
    html_theme_options |= {
        "check_switcher": False,
        "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
        "switcher": {"json_url": f"{SITE}/versions.json", "version_match": version},
    }

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
