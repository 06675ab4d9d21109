"""Prediction by the member of a pool with the largest margin (SVM-L∞) [H10 section 5]."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from looms._classes import class_indices
from looms._typing import AnyArray, Array
from looms.nonconformity._pool import PooledClassifier, pool_plan


class LargestMarginClassifier(PooledClassifier):
    """Classifier that predicts by the pool member with the largest margin at a sample (SVM-L∞).

    All members are trained once, on all samples, and kept. A new sample x gets the label
    sign f_k(x) with k = argmax_k |f_k(x)|; for more than two classes |f_k(x)| is the margin
    between the best label and the second best.

    Parameters
    ----------
    pool, tol, n_jobs
        As for `looms.NonconformityClassifier`, but margins are compared as they are, so
        classifiers should be on one scale.

    Attributes
    ----------
    classes_, pool_, n_features_in_, feature_names_in_
        As for `looms.NonconformityClassifier`.

    References
    ----------
    Özöğür-Akyüz, Hussain & Shawe-Taylor, Prediction with the SVM using test point margins, as
    described by Hardoon, Hussain & Shawe-Taylor, A nonconformity approach to model selection
    for SVMs, Section 5 [H10].

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from papers.largest_margin import LargestMarginClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LargestMarginClassifier({"C": [1, 10], "gamma": [0.1, 1.0]}).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2)
    0.96
    """

    def __init__(self, pool: Any = None, *, tol: float = 1e-2, n_jobs: int | None = None) -> None:
        self.pool = pool
        self.tol = tol
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Self:
        """Train all members.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Class of each sample.

        Returns
        -------
        self : LargestMarginClassifier
            The fitted classifier.
        """
        X, classes, labels = self._checked_training_data(X, y)
        pool = pool_plan(self.pool, classes, self.tol).fit(
            X, labels, np.arange(len(labels)), self.n_jobs
        )
        self.classes_, self._pool, self.pool_ = classes, pool, pool.members
        return self

    def decision_function(self, X: Any) -> Array:
        """Margins of the labels under the member chosen for each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        decision : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes the output of the member, positive for ``classes_[1]``; for more,
            the margin of each label against the strongest other one: the largest wins.
        """
        _, margins = self._decided(X)
        return margins[:, 1] if len(self.classes_) == 2 else margins

    def _chosen(self, X: Any) -> tuple[AnyArray, AnyArray]:
        models, margins = self._decided(X)
        return models, class_indices(margins)

    def _decided(self, X: Any) -> tuple[AnyArray, Array]:
        """Member for every sample, and its margins (n_samples, n_classes)."""
        models, margins = [], []
        for outputs in self._blocks(X):
            of_all = self._pool.margins(outputs)
            models.append(of_all.max(axis=-1).argmax(axis=0))
            margins.append(of_all[models[-1], np.arange(of_all.shape[1])])
        return np.concatenate(models), np.concatenate(margins)
