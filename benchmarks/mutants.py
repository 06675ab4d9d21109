"""Mutants: mistakes made in the source on purpose, each of which some test must fail on.

Each of `_mutants.MUTANTS` changes one place of a copy of `src/looms`, and runs the test files that
it names, the fast tests before the slow ones, until one fails. A mutant that no test fails on
survives: its answer is as good as the right one, or a test is missing. Rows of the table of mutants
that were not chosen stay, with the commit that they were run with.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from _mutants import MUTANTS, Mutant
from _report import COMMIT, RESULTS, write_table

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "looms"
HEADER = ["mutant", "file", "breaks", "outcome", "test", "seconds", "commit"]


def mutated(mutant: Mutant) -> str:
    """Text of the file that a mutant changes; ValueError unless the old text is there once."""
    text = (SOURCE / mutant.file).read_text(encoding="utf-8")
    n = text.count(mutant.old)
    if n != 1 or mutant.old == mutant.new:
        raise ValueError(f"{mutant.name}: {mutant.file} has {n} times {mutant.old!r}, not once.")
    paths = [test.partition("::")[0] for test in mutant.tests]
    absent = [path for path in paths if not (ROOT / "tests" / path).exists()]
    if absent:
        raise ValueError(f"{mutant.name}: no {', '.join(absent)} in tests/.")
    return text.replace(mutant.old, mutant.new)


def failed_test(tests: Sequence[str], package: Path, limit: float) -> str | None:
    """Name of the first test that fails with the package of a folder, or None."""
    environment = os.environ | {"PYTHONPATH": str(package.parent), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    paths = [str(ROOT / "tests" / path) for path in tests]
    for speed in ("not slow", "slow"):
        try:
            run = subprocess.run(
                [*command, "-m", speed, *paths],
                **{"cwd": ROOT, "env": environment, "capture_output": True, "text": True},
                timeout=limit,
            )
        except subprocess.TimeoutExpired:
            return "none ends"
        found = re.search(r"^(?:FAILED|ERROR) tests/(.+?)(?: - |$)", run.stdout, re.MULTILINE)
        if run.returncode == 1 and found:
            return found[1]
        if run.returncode not in (0, 5):  # passed, or none of this speed
            raise RuntimeError(f"pytest ended with {run.returncode}:\n{run.stdout}{run.stderr}")
    return None


def run_of(mutant: Mutant, package: Path, limit: float) -> list[object]:
    """Row of the table of a mutant, in a copy of the package that is whole again afterwards."""
    path, text = package / mutant.file, mutated(mutant)
    whole = path.read_bytes()
    path.write_text(text, encoding="utf-8")
    began = time.monotonic()
    try:
        test = failed_test(mutant.tests, package, limit)
    finally:
        path.write_bytes(whole)
    outcome = "survived" if test is None else "killed"
    seconds = round(time.monotonic() - began)
    return [mutant.name, mutant.file, mutant.breaks, outcome, test or "", seconds, COMMIT]


def rows_before() -> dict[str, list[object]]:
    """Rows of the table that there is, by the names of the mutants."""
    path = RESULTS / "mutants.csv"
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        next(file)  # the command
        return {row[0]: list(row) for row in csv.reader(file)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="mutants, or files, by name")
    parser.add_argument("--core", action="store_true", help="only those of the numerical core")
    parser.add_argument("--above", action="store_true", help="only those above it")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for a run of tests")
    options = parser.parse_args()
    for mutant in MUTANTS:
        mutated(mutant)  # all are checked before any runs
    chosen = [
        mutant
        for mutant in MUTANTS
        if (options.only is None or not {mutant.name, mutant.file}.isdisjoint(options.only))
        and (options.core == options.above or mutant.core == options.core)
    ]
    rows: dict[str, list[object]] = {}
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "looms"
        shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
        for mutant in chosen:
            rows[mutant.name] = row = run_of(mutant, package, options.limit)
            print(mutant.name, *row[3:], flush=True)
    known = rows_before() | rows
    write_table("mutants", HEADER, [known[m.name] for m in MUTANTS if m.name in known])
    survivors = [name for name, row in rows.items() if row[3] == "survived"]
    print(f"{len(rows)} mutants, {len(survivors)} survived: {', '.join(survivors)}")


if __name__ == "__main__":
    main()
