"""Nested errors on real spectra: the default, and steps for spectra before kernels and PLS.

    OMP_NUM_THREADS=1 python -m benchmarks.spectra

The table is "meats" of `benchmarks/tables`, 215 spectra of 100 wavelengths with the share of fat.
Equal spectra are held out together. The steps are those of the page `docs/guide/spectra.md`, which
were not chosen on this table, of the half for reports: the standard normal variate, then a first
derivative by Savitzky and Golay.

A row of the result is a model: its steps, its candidates, the root mean square error of
`evaluate()` with its standard error, and CPU seconds of the fit and the evaluation.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from benchmarks._report import write_table
from benchmarks.tables._list import TABLES
from benchmarks.tables.prepare import FOLDER
from benchmarks.tables.run import loaded
from scipy.signal import savgol_filter
from sklearn.cross_decomposition import PLSRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from looms import TabularRegressor
from looms.duplicates import duplicate_groups

HEADER = ("steps", "candidates", "rmse", "rmse_se", "seconds")
PLS = GridSearchCV(PLSRegression(scale=False), {"n_components": range(1, 13)}, cv=5)
SMOOTH = {"window_length": 15, "polyorder": 2, "deriv": 1}
CANDIDATES: dict[str, Any] = {
    "default": "auto",
    "pls": [PLS],
    "linear": ["linear"],
    "rbf": ["rbf"],
    "linear rbf pls": ["linear", "rbf", PLS],
}


def snv(X: Any) -> np.ndarray:
    """Standard normal variate of each spectrum."""
    X = np.asarray(X)
    return (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)


def main() -> None:
    X, y = loaded(next(table for table in TABLES if table.name == "meats"), FOLDER)
    groups, rows = duplicate_groups(X.to_numpy()), []
    derivative = FunctionTransformer(savgol_filter, kw_args=SMOOTH)
    steps = {"none": None, "snv derivative": make_pipeline(FunctionTransformer(snv), derivative)}
    for before, transformer in steps.items():
        for name, candidates in CANDIDATES.items():
            model = TabularRegressor(candidates, preprocess=transformer)
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scores = model.fit(X, y, groups=groups).evaluate()
            taken = time.process_time() - start
            rows.append((before, name, scores["rmse"], scores.standard_errors["rmse"], taken))
            print(rows[-1], flush=True)
    write_table("spectra", HEADER, rows)


if __name__ == "__main__":
    main()
