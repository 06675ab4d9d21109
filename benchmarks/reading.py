"""Time and memory of reading a CSV file of numbers, of deciding its columns, and of preparing them.

Each in a process of its own; with the source of another commit as well, in turn, and the ratios.

    python benchmarks/reading.py --other OTHER_CLONE/src
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from _report import write_table
from pyarrow import csv

#: Rows that are written at once.
_BLOCK = 50_000
ONE = """
import resource, sys, time
from looms import tables
from looms.datasets import read_table
began = time.process_time()
X = read_table(sys.argv[1]).X
if hasattr(tables, "Columns"):
    tables.Columns.of(X).read(X)
values = time.process_time() - began
tables.TablePreprocessor().fit(X)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(values, time.process_time() - began, peak)
"""


def measured(source, path):
    """CPU seconds until columns have values, and until they are prepared, and peak in GB."""
    given = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", ONE, str(path)]
    result = subprocess.run(command, env=given, capture_output=True, text=True, check=True)
    return [float(number) for number in result.stdout.split()]


def main():
    """Write and read the file; each source three times, in turn."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--other", type=Path, required=True, help="folder src of another clone")
    parser.add_argument("--rows", type=int, default=10**6)
    arguments = parser.parse_args()
    own, rng = Path(__file__).parents[1] / "src", np.random.default_rng(0)
    with TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        schema = pa.schema([(f"c{k}", pa.float64()) for k in range(20)])
        with csv.CSVWriter(path, schema) as file:
            for _ in range(
                0, arguments.rows, _BLOCK
            ):  # a child has at least the peak of its parent
                numbers = rng.normal(size=(20, _BLOCK)).round(6)
                file.write_table(pa.table([*numbers], schema))
        runs = [(measured(arguments.other, path), measured(own, path)) for _ in range(3)]
    before, after = np.min(runs, axis=0)
    names = ("read and values, s", "and fit of the preparation, s", "peak, GB")
    rows = zip(names, before, after, after / before, strict=True)
    write_table("reading", ("quantity", "other", "this", "ratio"), [*rows])


if __name__ == "__main__":
    main()
