"""The HTML report: how long it takes beyond the fit, and how large the page is.

For each data set one `looms fit` with a few candidates and then the report of what was fitted,
in a process of its own, so that what is imported for it counts. Limits: 5 s and 3 MB.

    python benchmarks/report.py                     # ada, credit, concrete, liver
    python benchmarks/report.py liver --splits 5    # with the outer estimate on the page
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from _report import data_or_exit, write_table
from sklearn.base import is_regressor
from sklearn.pipeline import make_pipeline
from stacks import stacked_classifier, stacked_regressor

from looms import KernelClassifier, Search, assess
from looms.datasets import read_table
from looms.tables import TablePreprocessor

FILES = {
    "ada": "ada.csv.gz",
    "credit": "credit.csv",
    "concrete": "concrete.csv",
    "liver": "liver.csv",
}
MACHINES = {
    "ada": lambda: KernelClassifier("rbf", threshold="balanced"),
    "credit": lambda: stacked_classifier(
        [
            KernelClassifier(k, search=Search(c))
            for k in ["rbf", "linear", "ard"]
            for c in ["press", "hinge"]
        ],
        combine="best",
    ),
    "concrete": lambda: stacked_regressor(["rbf", "ard"], combine="best"),
    "liver": lambda: stacked_classifier(["rbf", "linear", "cubic"], combine="best"),
}
HEADER = ["data", "samples", "columns", "fit s", "report s", "report CPU s", "kB", "pictures"]


def measured(name: str, splits: int, folder: Path | None) -> dict[str, float]:
    """Fit, report, and what that took; in the calling process."""
    table = read_table(data_or_exit(FILES[name]), "target")
    y = np.asarray(table.y, dtype=object).astype(float if is_regressor(MACHINES[name]()) else str)
    model = make_pipeline(TablePreprocessor(), MACHINES[name]())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        model.fit(table.X, y)
        fit = time.perf_counter() - began
        outer = assess(model, table.X, y, n_splits=splits, random_state=0) if splits else None
        with tempfile.TemporaryDirectory() as temporary:
            path = (folder or Path(temporary)) / f"{name}.html"
            began, worked = time.perf_counter(), time.process_time()
            from looms import report  # with matplotlib and jinja2: part of the price

            report.write_html(model, path, X=table.X, assessment=outer, title=name)
            seconds, worked = time.perf_counter() - began, time.process_time() - worked
            page = path.read_bytes()
    n, columns = table.X.shape
    return {
        "samples": n,
        "columns": columns,
        "fit s": fit,
        "report s": seconds,
        "report CPU s": worked,
        "kB": len(page) / 1e3,
        "pictures": page.count(b"<figure>"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", help=f"of {', '.join(FILES)}; all by default")
    parser.add_argument("--splits", type=int, default=0, help="outer splits; none by default")
    parser.add_argument("--folder", type=Path, help="keep the pages here")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        print(json.dumps(measured(arguments.data[0], arguments.splits, arguments.folder)))
        return
    rows = []
    for name in arguments.data or FILES:
        command = [sys.executable, __file__, name, "--here", "--splits", str(arguments.splits)]
        if arguments.folder is not None:
            command += ["--folder", str(arguments.folder)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout)
        rows.append([name, *(found[column] for column in HEADER[1:])])
    write_table("report", HEADER, rows)


if __name__ == "__main__":
    main()
