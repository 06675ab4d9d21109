"""Training on the rows that are in doubt: the trick for SYLVA [C06 III]."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from looms._typing import AnyArray, Array
from looms.estimators import LSSVMClassifierCV
from looms.leave_one_out import LeaveOneOut


class ReducedLSSVMClassifierCV(LSSVMClassifierCV):
    """Self-tuning LS-SVM classifier that leaves out rows which one feature settles.

    A binary feature that no positive training row has, and some negative one, settles the
    class of the rows that have it: they are negative. They take no part in the fit nor in its
    criterion, and count as right wherever the threshold is set and candidates compete, by
    whatever rule [C06 III, SYLVA].

    Parameters
    ----------
    kernel, criterion, optimizer, fit_intercept, class_weight, selection_weight, threshold, \
calibration, prior, max_iter, n_restarts, tol, random_state
        As for `LSSVMClassifierCV`.

    Attributes
    ----------
    settling_ : ndarray of int
        The features that settle.
    floor_ : float
        Output of settled rows: below the threshold and all leave-one-out outputs of the others.
    loo_ : LeaveOneOut
        Of the machine: settled rows have the weight zero, as they had in the fit, and the output
        ``floor_``.
    whole_loo_ : LeaveOneOut
        The same outputs with all rows at their own weights: of the rule and the machine together.

    Notes
    -----
    On few rows features miss the positive class by chance, and settle wrongly: the
    leave-one-out figures do not see that, those of outer splits do. If settling leaves fewer
    than three rows, or positive rows alone, no row is left out.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the features that settle, and fit the machine to the other rows.

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
        self : ReducedLSSVMClassifierCV
            The fitted machine.
        """
        checked, _, weight, _, _, targets = self._checked_classes(X, y, sample_weight)
        settling, settled = settled_rows(checked, targets, weight > 0)
        self._settling = settling, settled, weight
        try:
            super().fit(X, y, np.where(settled, 0.0, weight) if len(settling) else sample_weight)
        finally:
            del self._settling
        return self

    def predict_set(
        self, X: Any, coverage: float = 0.9, class_conditional: bool = False
    ) -> AnyArray:
        """Conformal prediction set for each sample: the classes that it may belong to.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples.
        coverage, class_conditional
            As for `LSSVMClassifierCV.predict_set`.

        Returns
        -------
        sets : ndarray of bool, of shape (n_samples, n_classes)
            Columns as in ``classes_``. Settled samples have the negative class alone; what is
            said of the coverage is of the others.
        """
        sets = super().predict_set(X, coverage, class_conditional)
        if len(self.settling_):
            sets[_has(X, self.settling_)] = True, False
        return sets

    def _judged(self, loo: LeaveOneOut, threshold: Any) -> LeaveOneOut:
        """The settled rows too, as right: the rate of false alarms is over all negative rows."""
        _, settled, weight = self._settling
        weight = weight[settled]
        if not len(weight):
            return loo
        given = [float(threshold)] if isinstance(threshold, Real) else []
        floor = _below(loo.outputs, *given)
        return LeaveOneOut(
            np.append(loo.y, np.full(len(weight), -1.0)),
            np.append(loo.outputs, np.full(len(weight), floor)),
            np.append(loo.sample_weight, weight),
        )

    def _set_fitted(self, **attributes: Any) -> None:
        """What the parent found, with the settled rows in it; callbacks see it whole."""
        settling, settled, weight = self._settling
        loo: LeaveOneOut = attributes.pop("loo_")
        floor = _below(loo.outputs[~settled], attributes["threshold_"])
        if len(settling):
            outputs = np.where(settled, floor, loo.outputs)
            loo = LeaveOneOut(loo.y, outputs, loo.sample_weight)
        whole = LeaveOneOut(loo.y, loo.outputs, weight)
        super()._set_fitted(
            settling_=settling, floor_=floor, loo_=loo, whole_loo_=whole, **attributes
        )

    def _outputs(self, X: Any) -> Any:
        """Outputs of the machine; of settled rows the floor, for decisions and probabilities."""
        outputs = super()._outputs(X)
        if not len(self.settling_):
            return outputs
        return np.where(_has(X, self.settling_), self.floor_, outputs)


def _below(outputs: Array, *others: float) -> float:
    """A number below all of these."""
    return float(min([outputs.min(), *others])) - 1.0


def settled_rows(X: Any, targets: Any, seen: Any) -> tuple[Any, Any]:
    """Columns of zeros and ones that negative rows alone have, and which rows have one.

    Parameters
    ----------
    X : (n, d) validated samples.
    targets : (n,) ±1, or a column a class, which have nothing to settle.
    seen : (n,) rows that count.
    """
    none = np.array([], dtype=int), np.zeros(len(targets), dtype=bool)
    if targets.ndim != 1:
        return none
    columns = sparse.csc_array(X)
    binary = np.array(
        [
            bool((columns.data[low:high] == 1).all())
            for low, high in zip(columns.indptr[:-1], columns.indptr[1:], strict=True)
        ]
    )
    counts = np.asarray(columns[seen].sum(axis=0)).ravel()
    among_positive = np.asarray(columns[seen & (targets > 0)].sum(axis=0)).ravel()
    settling = np.flatnonzero(binary & (counts > 0) & (among_positive == 0))
    settled = _has(X, settling)
    left = seen & ~settled
    if left.sum() < 3 or not (left & (targets < 0)).any():
        return none
    return settling, settled


def _has(X: Any, columns: Any) -> Any:
    """Which rows have a one in any of the columns."""
    part = sparse.csr_array(check_array(X, accept_sparse="csr", dtype=np.float64))[:, columns]
    return np.asarray((part > 0).sum(axis=1)).ravel() > 0
