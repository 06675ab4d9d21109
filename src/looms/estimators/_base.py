"""Samples, targets and weights as models with kernels take them."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.utils import check_array, check_X_y, column_or_1d
from sklearn.utils.validation import validate_data

from looms._advice import setting
from looms._checks import squeeze_column
from looms._kernel_matrix import check_kernel_matrix
from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import ArrayBlocks, RowBlocks, rows_in_memory
from looms.dask._blocks import blocks_and_arrays
from looms.estimators._targets import plain_targets
from looms.fitted._fitted import SAMPLES
from looms.kernels._samples import as_matrix
from looms.lssvm._system import checked_weights

#: What NumPy, pandas and scikit-learn say of columns that are no numbers, and what it means.
_NO_NUMBERS = {
    "could not convert string to float": "There is text where numbers should be",
    "Cannot cast": "There is text where numbers should be",
    "could not be promoted": "There are dates or durations among the numbers",
    "contains NaN": "There are gaps",
}

# Beside weights larger than this by its inverse, too few digits of a sample's ridge are left
# for the model without one of the heavy samples.
_NEGLIGIBLE = 1e-10


def name_of(y: Any) -> str | None:
    """Name of targets that are a series with one, or the one column of a frame."""
    columns = list(getattr(y, "columns", ()))
    name = getattr(y, "name", None) if getattr(y, "ndim", 1) == 1 else None
    name = columns[0] if len(columns) == 1 else name
    return None if name in (None, "") else str(name)


def validated(
    model: Any, X: Any, y: Any, sample_weight: Any, **options: Any
) -> tuple[Matrix, AnyArray, Array]:
    """Samples that all kernels of a model take, targets, and weights as given.

    Rows in blocks stay as they are, and dask collections become such; their X is not checked here.
    """
    fits = options.get("reset", True)  # else parameters may have been set since the fit
    if fits:
        pairwise = {kernel.pairwise for kernel in model._kernels()}
        prepared = model._prepares  # by a transformer, of whose columns it is not to keep the names
    else:
        pairwise, prepared = {model.fitted_.pairwise}, model.fitted_.columns is not None
    if len(pairwise) > 1:
        raise ValueError(
            "Precomputed kernels and kernels of features cannot be candidates for the same X."
        )
    if getattr(model, "n_jobs", None) == 0:
        raise ValueError(
            f"{setting('n_jobs', 0)} is no number of fits at once: 1 is one, and -1 all cores."
        )
    X, y, sample_weight = blocks_and_arrays(X, y, sample_weight)
    y = plain_targets(y, is_classifier(model))
    if isinstance(X, np.memmap) and X.ndim == 2:
        X = ArrayBlocks(X)
    names = getattr(X, "feature_names", None)
    if fits:
        model._target = name_of(y)
    if model._whole_matrix:
        X = rows_in_memory(X)
    if isinstance(X, RowBlocks):
        several = options.get("multi_output", False)
        y = check_array(y, ensure_2d=False, dtype=None) if several else column_or_1d(y)
        if len(y) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, and y has {len(y)}.")
        if fits:
            model.n_features_in_ = X.shape[1]
            model.__dict__.pop("feature_names_in_", None)
            if names is not None:
                model.feature_names_in_ = np.array(names, dtype=object)
        return X, np.asarray(y), checked_sample_weight(sample_weight, len(y))
    try:
        options = SAMPLES | {"ensure_min_samples": 2} | options
        if prepared:
            options.pop("reset", None)
            X, y = check_X_y(X, y, estimator=model, **options)
        else:
            X, y = validate_data(model, X, y, **options)
    except (TypeError, ValueError) as error:
        meanings = [what for said, what in _NO_NUMBERS.items() if said in str(error)]
        if pairwise == {True} or not meanings:
            raise
        raise ValueError(
            f"{meanings[0]}: {str(error).splitlines()[0].rstrip('.')}. TabularClassifier and "
            "TabularRegressor prepare columns with text, dates and gaps, with preprocess='auto'."
        ) from error
    X = as_matrix(X)
    if names is not None and fits and not prepared:
        model.feature_names_in_ = np.array(names, dtype=object)
    weight = checked_sample_weight(sample_weight, len(y))
    if pairwise == {True}:
        with blas_threads(len(y)):
            check_kernel_matrix(X.toarray() if sp.issparse(X) else X)
    return X, y, weight


def checked_sample_weight(sample_weight: Any, n: int) -> Array:
    """(n,) weights, default ones; ValueError if any is negative or not finite, or all are zero."""
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n, sample_weight)
    elif sample_weight is not None:
        sample_weight = squeeze_column(sample_weight)
    weight = checked_weights(sample_weight, n, zeros=True)
    if not weight.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    with np.errstate(over="ignore"):
        total = float(weight.sum())
        representable = np.isfinite([total, n / total]).all()
    if not representable:
        raise ValueError(
            f"{setting('sample_weight')} is out of range: its largest value is "
            f"{weight.max():.3g}. Multiply all weights by a constant; only their ratios count."
        )
    least, largest = weight[weight > 0].min(), weight.max()
    if least < _NEGLIGIBLE * largest:
        raise ValueError(
            f"{setting('sample_weight')} ranges from {least:.3g} to {largest:.3g}, beyond double "
            f"precision: set negligible weights, below {_NEGLIGIBLE:g} times the largest, to zero."
        )
    return weight
