"""Density ratio of new rows to those of a fit, by the odds of a classifier of the two."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from looms._advice import setting
from looms._checks import readable_table
from looms._optional import require
from looms._scores import effective_size
from looms._typing import Array
from looms._words import one_line
from looms.blocks import joined_rows
from looms.dask._blocks import is_dask
from looms.estimators._classifier import Classifier
from looms.estimators._tabular_classifier import TabularClassifier
from looms.estimators._warnings import kept_warnings


class DensityRatio(NamedTuple):
    """Density of new rows over that of the rows of a fit, at each of both.

    Attributes
    ----------
    fit : (n,) at the rows of the fit.
    new : (m,) at the new rows.
    """

    fit: Array
    new: Array

    @property
    def effective_rows(self) -> float:
        """Rows of the fit that tell as much of a new one as rows that are distributed like it.

        (Σ w)² / Σ w² of ``fit``, but at most Σ w over the median of ``new``, the number of rows
        with the weight of a new one. Where that is less than c / (1 − c), intervals for a share c
        are infinite for half of the new rows.
        """
        return min(effective_size(self.fit), float(self.fit.sum() / np.median(self.new)))

    def __repr__(self) -> str:
        rows = f"{len(self.fit)} rows of the fit, {len(self.new)} new"
        return f"DensityRatio({rows}; effective_rows={self.effective_rows:.0f})"


def density_ratio(X: Any, X_new: Any, classifier: Any = None, clip: float = 0.01) -> DensityRatio:
    """Fit a classifier of old and new rows; its odds tell where new rows are denser.

    For `looms.KernelRegressor.predict_interval`, if the columns of new rows are distributed
    otherwise than those of the fit (covariate shift).

    Parameters
    ----------
    X : array-like, sparse matrix or DataFrame
        Rows of the fit, without their targets.
    X_new : as ``X``
        New rows, with the same columns.
    classifier : classifier of looms, default=None
        To be fitted, with probabilities; None for ``TabularClassifier("rbf")``.
    clip : float, default=0.01
        Probabilities are at least this, and at most 1 minus this.

    Returns
    -------
    ratio : DensityRatio
        A pair of arrays, for the rows of ``X`` and of ``X_new``; ``effective_rows`` tells how many
        rows of the fit resemble the new ones, next to none where the classifier tells them all
        apart. Only ratios of its values count.

    Raises
    ------
    TypeError
        If the classifier is none of looms, or rows are in blocks.
    ValueError
        If there are no rows, the columns or the libraries are not the same, probabilities are
        lacking, or ``clip`` is not between 0 and 0.5.

    Notes
    -----
    With the held-out probability p of being new, the ratio is p / (1 − p) · n / m [TBCR19]. Ratios
    of rows that belong together, such as those of a patient, are too far from 1, for the classifier
    recognizes them. Nothing is told of targets that depend otherwise on the columns.

    References
    ----------
    Tibshirani, Barber, Candès & Ramdas (2019), Conformal prediction under covariate shift, Advances
    in Neural Information Processing Systems 32.

    Examples
    --------
    >>> import numpy as np
    >>> from looms import density_ratio
    >>> rng = np.random.default_rng(0)
    >>> X, X_new = rng.normal(size=(200, 1)), rng.normal(1.0, size=(100, 1))
    >>> ratio = density_ratio(X, X_new)
    >>> round(ratio.effective_rows)  # 105 by the true ratios, exp(x - 1 / 2)
    128
    >>> float(np.corrcoef(np.log(ratio.fit), X[:, 0])[0, 1].round(2))
    0.98
    """
    if not (isinstance(clip, Real) and 0 < float(clip) < 0.5):
        raise ValueError(f"{setting('clip')} must be between 0 and 0.5, got {clip!r}.")
    classifier = TabularClassifier("rbf") if classifier is None else classifier
    if not isinstance(classifier, Classifier):
        raise TypeError(f"{one_line(classifier)} is no classifier of looms: give one, or None.")
    both = _together(X, X_new)
    n, m = _num_samples(X), _num_samples(X_new)
    is_new = np.repeat([False, True], [n, m])
    with kept_warnings():  # of rows that are alike, or unlike, which is what the ratio tells
        decisions = clone(classifier).fit(both, is_new)._scored().decisions
    if decisions is None or decisions.probabilities is None:
        raise ValueError(f"{one_line(classifier)} has no probabilities: give it a calibration.")
    p = np.clip(decisions.probabilities[:, 1], clip, 1.0 - clip)
    return DensityRatio(*np.split(p / (1.0 - p) * n / m, [n]))


def _together(X: Any, X_new: Any) -> Any:
    """Rows of two tables, one below the other."""
    if is_dask(X) or is_dask(X_new):
        raise TypeError("density_ratio takes rows in memory: give X.compute().")
    both = [readable_table(X), readable_table(X_new)]
    old, new = ((hasattr(one, "iloc"), list(getattr(one, "columns", ()))) for one in both)
    if old != new:
        raise ValueError("X and X_new must have the same columns, in order, and be of one library.")
    a, b = map(np.shape, both)
    if not (len(a) == len(b) == 2 and a[0] and b[0] and a[1] == b[1]):
        raise ValueError(f"X and X_new must have rows, and equal columns, but are of {a} and {b}.")
    of_pandas, columns = old
    if columns:
        library: Any = require("pandas" if of_pandas else "polars", "A table of both")
        how = {"ignore_index": True} if of_pandas else {"how": "vertical_relaxed"}
        return library.concat(both, **how)
    return joined_rows(both)
