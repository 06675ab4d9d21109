"""Tables of benchmarks: their headers, and their cells."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def header(folder):
    """Header line written by a process that imports the package `looms` of a folder."""
    code = "import _report; print(_report.header_line('python it.py', '2 cores'))"
    path = f"import sys; sys.path[:0] = [{str(folder)!r}, {str(BENCHMARKS)!r}]; "
    run = subprocess.run(
        [sys.executable, "-c", path + code], capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


@pytest.mark.slow
def test_a_header_has_the_commit_of_the_clone_that_ran(tmp_path):
    package = tmp_path / "src" / "looms"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    plain = "# python it.py; 2 cores"
    assert header(package.parent) == plain

    def git(*arguments):
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        command = ["git", "-C", str(tmp_path), *who, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "Start")
    assert header(package.parent) == plain  # installed inside some other clone
    git("add", "src")
    git("commit", "-q", "-m", "Code")
    commit = git("rev-parse", "--short=7", "HEAD")
    assert header(package.parent) == f"{plain}; commit {commit}"
    (package / "__init__.py").write_text("changed = True\n")
    assert header(package.parent) == f"{plain}; commit {commit}+"


def test_every_table_has_its_command_and_commit_in_the_first_line():
    """Of old tables "committed with" is the commit that brought them, not that of the code."""
    form = re.compile(r"# python \S+.*; (commit|committed with) [0-9a-f]{7,8}\b")
    tables = BENCHMARKS.glob("results/*.csv")
    first = {path.name: path.read_text(encoding="utf-8").partition("\n")[0] for path in tables}
    assert {name: line for name, line in first.items() if not form.match(line)} == {}


def test_every_row_has_a_cell_for_each_column():
    tables = sorted((BENCHMARKS / "results").glob("*.csv"))
    lengths = {}
    for path in tables:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.reader(line for line in file if not line.startswith("#"))
            lengths[path.stem] = {len(row) for row in rows}
    assert len(tables) > 60
    assert [name for name, found in lengths.items() if len(found) != 1] == []
