"""Damaged files and random problems, thousands of them: nothing may end in another way than said.

A file is read in bounded time and memory, or refused by a `TableError`; a whole one has the values
that pandas, SciPy or scikit-learn read. Leave-one-out outputs are those of own refits, or the
problem is refused; they are finite and come without a warning. Everything else is a finding, whose
identity is the seed and its number: ``--case files:17`` runs that one again, and keeps its file.
"""

from __future__ import annotations

import argparse
import faulthandler
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _fuzz_files import read_case
from _fuzz_problems import run_problem

Run = Callable[[np.random.Generator], tuple[str, str, str]]

#: In the identity of a case, so that files and problems of one number have nothing in common.
STREAMS = {"files": 0, "problems": 1}


def run_all(what: str, run: Run, seed: int, numbers: range) -> int:
    """Run the cases, print findings as they come and a table in the end; how many there were."""
    endings: Counter[tuple[str, str]] = Counter()
    for k, number in enumerate(numbers, start=1):
        kind, ending, finding = run(np.random.default_rng([seed, STREAMS[what], number]))
        endings[kind, ending] += 1
        if finding:
            print(f"FINDING --seed {seed} --case {what}:{number}: {kind}: {finding}", flush=True)
        if k % 500 == 0:
            print(f"{k} of {len(numbers)} {what}", file=sys.stderr, flush=True)
    kinds = sorted({kind for kind, _ in endings})
    ends = sorted({ending for _, ending in endings})
    print(",".join([what, *ends]))
    for kind in kinds:
        print(",".join([kind, *(str(endings[kind, ending]) for ending in ends)]))
    return sum(count for (_, ending), count in endings.items() if ending == "finding")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--problems", type=int, default=5_000)
    parser.add_argument("--case", help="one case, as files:17 or problems:17")
    arguments = parser.parse_args()
    faulthandler.enable()  # a crash of a compiled reader says where
    numbers = {"files": range(arguments.files), "problems": range(arguments.problems)}
    if arguments.case:
        what, _, number = arguments.case.partition(":")
        numbers = {what: range(int(number), int(number) + 1)}
    folder = Path(tempfile.mkdtemp())
    runs: dict[str, Run] = {"files": lambda rng: read_case(rng, folder), "problems": run_problem}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas, about dates; problems make them errors
        n_findings = sum(
            run_all(what, runs[what], arguments.seed, numbers[what]) for what in numbers
        )
    if arguments.case:
        print(f"its files are in {folder}")
    else:
        shutil.rmtree(folder)
    raise SystemExit(1 if n_findings else 0)


if __name__ == "__main__":
    main()
