"""Imports go one way: a module knows only modules on lower floors, and the core only numerics."""

import ast
import re
import sys
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

import looms

ROOT = Path(looms.__file__).parent

#: From the ground up; rooms of one floor do not know each other. Rooms may be missing.
FLOORS = [
    {"_advice", "_typing", "_version"},
    {
        "_threads",
        "_recording",
        "_memory",
        "_files",
        "_optional",
        "_classes",
        "_words",
        "_number_text",
        "_kernel_matrix",
    },
    {"_speed", "_html", "_checks", "_times"},
    {"kernels", "duplicates", "folds", "blocks"},
    {"units"},
    {"criteria"},
    {"_scores"},
    {"held_out"},
    {"lssvm", "calibration", "dask"},
    {"optimize", "svm", "conformal"},
    {"selection"},
    {"threshold", "scores"},
    {"tables"},
    {"fitted"},
    {"estimators"},
    {"nonconformity", "datasets", "assessment", "diagnostics"},
    {"model_files", "report", "onnx"},
    {"cli"},
]
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
CORE = set(chain(*FLOORS[: FLOOR_OF["tables"]]))
CORE_MAY_IMPORT = {"numpy", "scipy", "threadpoolctl"}
NOT_IN_THE_CORE = {"print", "open", "input", "exec", "eval"}


def path_of(module):
    return ".".join(("looms", *module.relative_to(ROOT).with_suffix("").parts))


def room_of(module):
    """The room a dotted name or a file belongs to; the package itself is none."""
    name = path_of(module) if isinstance(module, Path) else module
    parts = name.removesuffix(".__init__").split(".")
    return parts[1] if len(parts) > 1 else None


MODULES = sorted(ROOT.rglob("*.py"))
#: Imports of a floor above that are right if they are late: a model writes its own report and file,
#: by methods, so that users need not know the rooms that do it.
METHODS = {
    ("looms.estimators._model", "looms.report.write_html"),
    ("looms.estimators._model", "looms.model_files.save_model"),
}
#: Packages of a clone that are not installed with looms.
BESIDE = {"papers", "benchmarks", "tests"}


def imports_of(tree, package):
    """Dotted names of what the source imports, and whether it does so inside a function."""
    late = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in late
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*(above if node.level else []), *filter(None, [node.module])])
            for alias in node.names:
                yield f"{base}.{alias.name}", id(node) in late


@cache
def tree_of(module):
    return ast.parse(module.read_text(encoding="utf-8"))


@cache
def imports_of_module(module):
    return list(imports_of(tree_of(module), path_of(module).rpartition(".")[0]))


def up_or_across(room, imported):
    """Whether a module of ``room`` may not import the dotted name ``imported``."""
    if imported.split(".")[0] != "looms" or room is None:
        return False
    other = room_of(imported)
    if other == room:
        return False
    if other not in FLOOR_OF:  # names of the package itself are for users and the cli
        return room != "cli"
    return FLOOR_OF[other] >= FLOOR_OF[room]


def test_every_room_has_a_floor():
    rooms = {room_of(module) for module in MODULES}
    assert rooms - {None, "__init__", "__main__"} == set(FLOOR_OF)


def test_the_list_of_rooms_for_contributors_is_that_of_the_floors():
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = text.split("    src/looms/\n")[1].split("\n\n")[0]
    lines = [re.split(r"\s{2,}", line.strip(), maxsplit=1)[0] for line in block.splitlines()]
    rooms = [room.rstrip("/") for line in lines for room in line.split()]
    assert sorted(rooms) == sorted(FLOOR_OF)
    assert rooms == sorted(rooms, key=FLOOR_OF.__getitem__)


@pytest.mark.slow
def test_imports_go_down():
    offenders = [
        f"{path_of(module)} imports {name}"
        for module in MODULES
        if room_of(module) not in ("__init__", "__main__")  # these open the house
        for name, late in imports_of_module(module)
        if up_or_across(room_of(module), name) and not (late and (path_of(module), name) in METHODS)
    ]
    assert offenders == []


@pytest.mark.slow
def test_what_is_installed_imports_nothing_beside_it():
    offenders = [
        f"{path_of(module)} imports {name}"
        for module in MODULES
        for name, _ in imports_of_module(module)
        if name.split(".")[0] in BESIDE
    ]
    assert offenders == []


CORE_MODULES = [module for module in MODULES if room_of(module) in CORE]


def test_the_core_imports_only_numerics():
    allowed = {"looms", *CORE_MAY_IMPORT, *sys.stdlib_module_names}
    of_sklearn = (
        *("sklearn.base.", "sklearn.metrics.pairwise.", "sklearn.model_selection."),
        "sklearn.svm.",  # the refits that certificates compare with
    )
    offenders = [
        f"{path_of(module)} imports {name}"
        for module in CORE_MODULES
        for name, _ in imports_of_module(module)
        if name.split(".")[0] not in allowed and not name.startswith(of_sklearn)
    ]
    assert offenders == []


def test_the_core_imports_its_own_at_the_top():
    offenders = [
        f"{path_of(module)} imports {name}"
        for module in CORE_MODULES
        for name, late in imports_of_module(module)
        if late and name.startswith("looms")
    ]
    assert offenders == []


@pytest.mark.slow
def test_the_core_neither_prints_nor_reads_nor_logs():
    offenders = []
    for module in CORE_MODULES:
        called = {
            node.func.id
            for node in ast.walk(tree_of(module))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        imported = {name.split(".")[0] for name, _ in imports_of_module(module)}
        offenders += [
            f"{path_of(module)} uses {name}"
            for name in (called & NOT_IN_THE_CORE) | (imported & {"logging"})
        ]
    assert offenders == []
