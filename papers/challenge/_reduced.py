"""Training without the rows that a single feature classifies, as for SYLVA [C06 III]."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_array, check_is_fitted

from looms._classes import class_indices
from looms._typing import AnyArray, Array, Matrix
from looms.held_out import HeldOut
from looms.threshold import find_threshold


class ReducedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier of two classes, trained without the rows that a single feature classifies.

    A binary feature that some negative training row has, but no positive one, settles the class
    of the rows that have it: they are negative. They are left out of the fit, and count as
    right when the threshold is chosen [C06 III, SYLVA].

    Parameters
    ----------
    estimator : KernelClassifier
        The machine for the other rows. Its ``threshold`` is the rule that sets the threshold of the
        whole classifier; with 0.5 the sign of the output decides.

    Attributes
    ----------
    model_ : the machine, fitted to the other rows, whose signs decide.
    settling_ : ndarray of int
        Indices of the features that settle.
    floor_ : float
        Output of settled rows: below the threshold and all leave-one-out outputs of the others.
    threshold_ : float
        The threshold.
    loo_ : HeldOut
        Leave-one-out outputs of the rule and the machine together, settled rows at ``floor_``.
    X_fit_ : array or sparse array
        The training rows, including settled ones.
    classes_ : ndarray of shape (2,)
        The classes; the second is the positive one.

    Notes
    -----
    With few rows a feature may miss the positive class by chance, and settle wrongly, which shows
    in outer splits but not in leave-one-out figures. If settling leaves fewer than three rows, or
    only positive rows, no row is left out.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the machine to the rows that no feature settles.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Two classes; the second in order is the positive one.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights.

        Returns
        -------
        self : ReducedClassifier
            The fitted classifier.
        """
        X = check_array(X, accept_sparse="csr", dtype=np.float64)
        classes = np.unique(y)
        if len(classes) != 2:
            raise ValueError(f"Rows are settled for two classes; y has {len(classes)}.")
        positive = np.asarray(y) == classes[1]
        weight = np.ones(len(positive)) if sample_weight is None else np.asarray(sample_weight)
        settling, settled = settled_rows(X, positive, weight > 0)
        rule = self.estimator.threshold
        signs = isinstance(rule, Real) and rule == 0.5
        if isinstance(rule, Real) and not signs:
            raise ValueError(
                f"Rows are settled without probabilities: threshold must be a rule, or 0.5 for the "
                f"sign of the output, got {rule!r}."
            )
        machine = clone(self.estimator).set_params(threshold=0.5, calibration=None)
        machine.fit(X, y, np.where(settled, 0.0, weight))
        outputs = machine.loo_.outputs
        floor = float(min(outputs[~settled].min(), 0.0)) - 1.0
        loo = HeldOut(machine.loo_.y, np.where(settled, floor, outputs), weight)
        threshold = 0.0 if signs else find_threshold(loo, rule)[0]
        fitted = machine.fitted_
        self.fitted_ = replace(fitted, rule=replace(fitted.rule, threshold=float(threshold)))
        self.model_, self.settling_, self.floor_ = machine, settling, floor
        self.threshold_, self.loo_, self.classes_ = float(threshold), loo, classes
        self.X_fit_, self.n_features_in_ = machine.X_fit_, X.shape[1]
        return self

    def decision_function(self, X: Any) -> Array:
        """Outputs minus the threshold, positive for the second class; settled rows are negative.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples.
        """
        check_is_fitted(self, "model_")
        outputs = self.model_.decision_function(X)
        return np.where(_has(X, self.settling_), self.floor_, outputs) - self.threshold_

    def predict(self, X: Any) -> AnyArray:
        """Class of each sample.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples.
        """
        return np.asarray(self.classes_[class_indices(self.decision_function(X))])


def settled_rows(X: Matrix, positive: AnyArray, used: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Columns of zeros and ones that are one only in negative rows, and rows that have a one.

    Parameters
    ----------
    X : (n, d) validated samples.
    positive : (n,) True for rows of the positive class.
    used : (n,) rows that count.
    """
    columns = sparse.csc_array(X)
    binary = np.array(
        [
            bool((columns.data[low:high] == 1).all())
            for low, high in zip(columns.indptr[:-1], columns.indptr[1:], strict=True)
        ]
    )
    counts = np.asarray(columns[used].sum(axis=0)).ravel()
    among_positive = np.asarray(columns[used & positive].sum(axis=0)).ravel()
    settling = np.flatnonzero(binary & (counts > 0) & (among_positive == 0))
    settled = _has(X, settling)
    left = used & ~settled
    if left.sum() < 3 or not (left & ~positive).any():
        return np.array([], dtype=int), np.zeros(len(positive), dtype=bool)
    return settling, settled


def _has(X: Any, columns: AnyArray) -> AnyArray:
    """True for rows with a one in any of the columns."""
    part = sparse.csr_array(check_array(X, accept_sparse="csr", dtype=np.float64))[:, columns]
    return np.asarray((part > 0).sum(axis=1)).ravel() > 0
