"""Scores of new rows, whose targets must be known."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier

from looms._checks import squeeze_column
from looms.estimators._targets import plain_targets
from looms.estimators._warnings import kept_warnings, warn_of_order


class KnownTargets:
    """Base class of models whose `score` reads targets as `fit` does.

    It stands before the mixin of scikit-learn that has the score.
    """

    def _as_known(self, y: Any) -> Any:
        """Targets of new rows, those of a file read by the classes, or the marks, of the fit."""
        columns = getattr(getattr(self, "preprocessor_", None), "kinds_", None)
        marks = None if columns is None else columns.marks
        return plain_targets(y, is_classifier(self), marks, getattr(self, "classes_", None))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score of the predictions for new rows: accuracy for classes, R² for numbers.

        Parameters
        ----------
        X : as for `predict`
            New rows.
        y : array-like of shape (n_samples,), or (n_samples, n_targets) for several targets
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        score : float
            Larger is better.

        Raises
        ------
        ValueError
            If rows have no target: they are to be left out.
        """
        warn_of_order(X=X, y=y, sample_weight=sample_weight)
        with kept_warnings():  # a column says nothing here that the fit has not said
            y = self._as_known(y)
        weight = None if sample_weight is None else squeeze_column(sample_weight)
        score: float = super().score(X, y, weight)  # type: ignore[misc]
        return score
