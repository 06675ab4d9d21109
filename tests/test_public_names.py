"""The names of the package, which are imported when they are first used."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import looms

ROOMS = sorted(name for name in dir(looms) if name.islower() and name not in looms.__all__)


def public_names(room):
    return import_module(f"looms.{room}").__all__


def test_all_names_are_there():
    for name in looms.__all__:
        assert getattr(looms, name) is not None
    assert set(looms.__all__) <= set(dir(looms))
    assert looms.HeldOut.__module__ == "looms.held_out"
    assert looms.KernelClassifier.__module__.startswith("looms.estimators")


def test_unknown_names():
    with pytest.raises(AttributeError, match="module 'looms' has no attribute 'nothing'"):
        looms.nothing  # noqa: B018
    with pytest.raises(ImportError):
        from looms import nothing  # noqa: F401


@pytest.mark.slow
def test_rooms_are_attributes():
    """In a fresh process, where nothing has imported a room yet."""
    code = (
        "import sys, looms\n"
        "rooms = [name for name in dir(looms) if name.islower() and name not in looms.__all__]\n"
        "assert {'estimators', 'selection', 'lssvm', 'cli'} <= set(rooms), rooms\n"
        "for room in rooms:\n"
        "    assert getattr(looms, room) is sys.modules[f'looms.{room}']\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("room", ROOMS)
def test_public_names_have_examples(room):
    module = import_module(f"looms.{room}")
    docs = {name: getattr(module, name).__doc__ or "" for name in public_names(room)}
    assert [name for name, doc in docs.items() if ">>>" not in doc] == []


def test_pages_import_public_names():
    """Others only from modules that are private by their names."""
    root = Path(__file__).parents[1]
    pages = [root / "README.md", *root.glob("docs/**/*.md"), *root.glob("examples/**/*.py")]
    imports = re.compile(r"^[> .]*from (looms(?:\.[a-z]\w*)*) import ([\w, ]+)$", re.MULTILINE)
    found = [
        (module, name.split()[0])
        for page in pages
        for module, names in imports.findall(page.read_text(encoding="utf-8"))
        for name in names.split(",")
    ]
    assert len(found) > 50
    assert [(m, name) for m, name in found if name not in import_module(m).__all__] == []


def test_every_room_stands_in_the_pages_of_the_interface():
    """Its page then lists its names, each with a page: ``docs/_templates/autosummary``."""
    page = Path(__file__).parents[1] / "docs/reference/api/index.md"
    listed = re.findall(r"^   looms\.(\w+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    own = [room for room in ROOMS if set(public_names(room)) - set(looms.__all__)]
    assert sorted(listed) == own


def test_every_name_of_the_package_stands_there_with_its_task():
    page = Path(__file__).parents[1] / "docs/reference/api/index.md"
    listed = re.findall(r"^   ~looms\.(\w+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(set(looms.__all__) - {"__version__"})
