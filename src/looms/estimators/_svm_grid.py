"""RBF support vector machines on a grid: a kernel matrix for every gamma, shared by all C."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.spatial.distance import cdist
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.svm import SVC

from looms._threads import one_blas_thread
from looms._typing import AnyArray, Array
from looms.conformal import margin_scores, pairwise_margin_scores


@dataclass(frozen=True)
class SVMGridPlan:
    """The machines to be trained."""

    gammas: Array
    Cs: Array
    tol: float
    n_classes: int

    def fit(self, X: Array, labels: AnyArray, n_jobs: int | None) -> SVMGrid:
        distances = cdist(X, X, "sqeuclidean")
        # SVC trains outside the interpreter's lock, and all of them read one matrix.
        parallel = Parallel(n_jobs=n_jobs, prefer="threads")
        columns = parallel(delayed(self._column)(distances, labels, g) for g in self.gammas)
        coef, intercept = (np.stack(parts) for parts in zip(*columns, strict=True))
        return SVMGrid(X, self.gammas, self.Cs, coef, intercept, self.n_classes)

    def _column(self, distances: Array, labels: AnyArray, gamma: float) -> tuple[Array, Array]:
        """Coefficients and intercepts for all C at one gamma, C ascending.

        Where no coefficient is at its bound C, a larger C changes nothing: the rest is copied.
        """
        K = np.exp(-gamma * distances)
        n_pairs = self.n_classes * (self.n_classes - 1) // 2
        coef = np.zeros((len(self.Cs), len(labels), n_pairs))
        intercept = np.zeros((len(self.Cs), n_pairs))
        for index, C in enumerate(self.Cs):
            svc = SVC(C=C, kernel="precomputed", tol=self.tol).fit(K, labels)
            coef[index:] = _dense_coefficients(svc, labels)
            intercept[index:] = svc.intercept_
            if np.abs(svc.dual_coef_).max() < C:
                break
        return coef, intercept

    def fit_loo(
        self, X: Array, labels: AnyArray, n_jobs: int | None
    ) -> tuple[SVMGrid, list[Array]]:
        machines = [
            SVC(C=C, gamma=gamma, tol=self.tol, decision_function_shape="ovo")
            for gamma in self.gammas
            for C in self.Cs
        ]
        parallel = Parallel(n_jobs=n_jobs)
        outputs = parallel(delayed(_loo_outputs)(svc, X, labels) for svc in machines)
        return self.fit(X, labels, n_jobs), list(outputs)


@dataclass(frozen=True)
class SVMGrid:
    """Trained machines.

    Attributes
    ----------
    X : (n, d) training samples.
    gammas, Cs : the grid.
    coef : (n_gammas, n_Cs, n, n_pairs) coefficients, a column for every pair of classes.
    intercept : (n_gammas, n_Cs, n_pairs).
    n_classes : number of classes.
    """

    X: Array
    gammas: Array
    Cs: Array
    coef: Array
    intercept: Array
    n_classes: int

    @property
    def members(self) -> list[dict[str, float]]:
        return [{"C": float(C), "gamma": float(gamma)} for gamma in self.gammas for C in self.Cs]

    def outputs(self, X: Array) -> list[Array]:
        distances = cdist(X, self.X, "sqeuclidean")
        _, n_Cs, n_fit, n_pairs = self.coef.shape
        outputs = []
        with one_blas_thread():
            for gamma, coef, intercept in zip(self.gammas, self.coef, self.intercept, strict=True):
                flat = np.exp(-gamma * distances) @ coef.transpose(1, 0, 2).reshape(n_fit, -1)
                for C, values in enumerate(np.split(flat, n_Cs, axis=1)):
                    shifted = values + intercept[C]
                    outputs.append(shifted[:, 0] if n_pairs == 1 else shifted)
        return outputs

    def margins(self, outputs: list[Array]) -> Array:
        stacked = np.stack(outputs)
        if self.n_classes == 2:
            return margin_scores(stacked)
        return pairwise_margin_scores(stacked, self.n_classes)


def _dense_coefficients(svc: Any, labels: AnyArray) -> Array:
    """(n_samples, n_pairs) coefficients of the one-against-one machines inside an SVC."""
    n_classes = len(svc.classes_)
    pairs = list(combinations(range(n_classes), 2))
    coef = np.zeros((len(labels), len(pairs)))
    of_support = labels[svc.support_]
    for pair, (first, second) in enumerate(pairs):
        # Row r of dual_coef_ holds the r-th duel of the class of each support vector.
        for label, row in ((first, second - 1), (second, first)):
            ours = of_support == label
            coef[svc.support_[ours], pair] = svc.dual_coef_[row, ours]
    return coef


def _loo_outputs(svc: Any, X: Array, labels: AnyArray) -> Array:
    outputs = cross_val_predict(svc, X, labels, cv=LeaveOneOut(), method="decision_function")
    return np.asarray(outputs)
