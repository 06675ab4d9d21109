"""RBF support vector machines on a grid: one kernel matrix for every gamma, shared by all C."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.svm import SVC

from looms._threads import one_blas_thread
from looms._typing import AnyArray, Array
from looms.conformal._sets import class_margins
from looms.kernels import RBF
from looms.kernels._samples import Pairs, samples_of
from looms.nonconformity._choice import pairwise_margins
from looms.svm._one_against_one import SVC_SIGN, Labels, pairs_of_svc, solved_pairs

#: The grid of the nonconformity paper [H10 Table 2], 110 models.
PAPER_GRID = {
    "gamma": tuple(2.0**power for power in range(-15, 4, 2)),
    "C": tuple(2.0**power for power in range(-5, 16, 2)),
}


def grid_plan(grid: Mapping[str, Any], tol: Any, n_classes: int) -> SVMGridPlan:
    """The models with the values of "C" and "gamma" of a grid; ValueError if one is invalid."""
    if not (isinstance(tol, Real) and 0 < float(tol) < np.inf):
        raise ValueError(f"tol must be a positive number, got {tol!r}.")
    if set(grid) != {"C", "gamma"}:
        raise ValueError(
            f"A grid of SVMs needs values of 'C' and 'gamma', got {sorted(map(str, grid))}; "
            "for other models give a list of classifiers."
        )
    Cs, gammas = (_positive_values(name, grid[name]) for name in ("C", "gamma"))
    return SVMGridPlan(gammas, Cs, float(tol), n_classes)


def _positive_values(name: str, values: Any) -> Array:
    """The values of a parameter to try, increasing."""
    try:
        array = np.unique(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        array = np.empty(0)
    if not (len(array) and (array > 0).all() and np.isfinite(array).all()):
        raise ValueError(
            f"The values of {name} must be positive numbers, one or more, got {values!r}."
        )
    return array


@dataclass(frozen=True)
class SVMGridPlan:
    """The models to be trained."""

    gammas: Array
    Cs: Array
    tol: float
    n_classes: int

    def fit(self, X: Array, labels: Labels, rows: AnyArray, n_jobs: int | None) -> SVMGrid:
        """The pool trained on some rows of samples with labels 0 to n_classes - 1."""
        X, labels = X[rows], labels[rows]
        # SVC trains outside the interpreter's lock, and all of them read one matrix.
        run = Parallel(n_jobs=n_jobs, prefer="threads")
        return self._grid(X, self._columns(self._column, X, labels, run))

    def fit_loo(self, X: Array, labels: Labels, n_jobs: int | None) -> tuple[SVMGrid, list[Array]]:
        """The pool trained on all rows, and the leave-one-out outputs of every member."""
        columns = self._columns(self._loo_column, X, labels, Parallel(n_jobs=n_jobs))
        outputs = [values for *_, column in columns for values in column]
        return self._grid(X, [models for *models, _ in columns]), outputs

    def _columns(self, column: Any, X: Array, labels: Labels, run: Parallel) -> list[Any]:
        samples, _ = samples_of(X, None)
        distances = Pairs(samples, samples).squared_distances
        pairs = Pairs(samples, samples, squared_distances=distances)  # the same for all gammas
        return list(run(delayed(column)(pairs, labels, gamma) for gamma in self.gammas))

    def _grid(self, X: Array, columns: list[Any]) -> SVMGrid:
        coef, intercept = (np.stack(parts) for parts in zip(*columns, strict=True))
        return SVMGrid(X, self.gammas, self.Cs, coef, intercept, self.n_classes)

    def _column(self, pairs: Pairs, labels: Labels, gamma: float) -> tuple[Array, Array]:
        """Coefficients and intercepts for all C at one gamma, C ascending.

        Once no coefficient is at its bound C, a larger C changes nothing: the rest is copied.
        """
        K = RBF(gamma).values(pairs)
        n_pairs = self.n_classes * (self.n_classes - 1) // 2
        coef = np.zeros((len(self.Cs), len(labels), n_pairs))
        intercept = np.zeros((len(self.Cs), n_pairs))
        for index, C in enumerate(self.Cs):
            svc = SVC(C=C, kernel="precomputed", tol=self.tol).fit(K, labels)
            coef[index:], intercept[index:] = pairs_of_svc(
                svc.dual_coef_, svc.intercept_, svc.support_, labels
            )
            if np.abs(svc.dual_coef_).max() < C:
                break
        return coef, intercept

    def _loo_column(
        self, pairs: Pairs, labels: Labels, gamma: float
    ) -> tuple[Array, Array, list[Array]]:
        """The same to machine precision, with the leave-one-out outputs of each model."""
        columns, models = [], None
        with one_blas_thread():
            K = RBF(gamma).values(pairs)
            for C in self.Cs:
                models = solved_pairs(
                    K, labels, C, np.ones(len(labels)), np.arange(len(labels)), models
                )
                outputs = models.held_out_outputs
                values = outputs[:, 0] if self.n_classes == 2 else outputs
                columns.append((models.coefficients, models.intercepts, values))
        coef, intercept, loo = zip(*columns, strict=True)
        return np.stack(coef), np.stack(intercept), list(loo)


@dataclass(frozen=True)
class SVMGrid:
    """Trained models.

    Attributes
    ----------
    X : (n, d) training samples.
    gammas, Cs : the grid.
    coef : (n_gammas, n_Cs, n, n_pairs) coefficients, a column for every pair of classes,
        positive for the second.
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
        """The "C" and "gamma" of each model."""
        return [{"C": float(C), "gamma": float(gamma)} for gamma in self.gammas for C in self.Cs]

    def only(self, k: int) -> SVMGrid:
        """The pool of member ``k`` alone."""
        g, c = divmod(k, len(self.Cs))
        return replace(
            self,
            gammas=self.gammas[[g]],
            Cs=self.Cs[[c]],
            coef=self.coef[[g]][:, [c]],
            intercept=self.intercept[[g]][:, [c]],
        )

    def outputs(self, X: Array) -> list[Array]:
        """For every member (n_samples,) for two classes, otherwise (n_samples, n_outputs)."""
        pairs = Pairs(*samples_of(X, self.X))
        _, n_Cs, n_fit, n_pairs = self.coef.shape
        outputs = []
        with one_blas_thread():
            for gamma, coef, intercept in zip(self.gammas, self.coef, self.intercept, strict=True):
                flat = RBF(gamma).values(pairs) @ coef.transpose(1, 0, 2).reshape(n_fit, -1)
                for C, values in enumerate(np.split(flat, n_Cs, axis=1)):
                    shifted = values + intercept[C]
                    outputs.append(shifted[:, 0] if n_pairs == 1 else shifted)
        return outputs

    def margins(self, outputs: list[Array]) -> Array:
        """(n_members, n_samples, n_classes) margins of every label."""
        stacked = np.stack(outputs)
        if self.n_classes == 2:
            return class_margins(stacked[..., None])
        return pairwise_margins(SVC_SIGN * stacked, self.n_classes)
