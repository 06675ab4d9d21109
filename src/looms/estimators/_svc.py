"""The fitted support vector classifier: predictions, and held-out predictions."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.svm import SVC
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from looms._classes import class_indices, class_shares, rounding
from looms._recording import recorded_warnings
from looms._threads import one_blas_thread
from looms._typing import AnyArray, Array, Matrix
from looms.calibration._calibrators import class_probabilities
from looms.calibration._coupling import at_prevalence
from looms.calibration._sigmoid import Sigmoid
from looms.dask._predict import lazy_for_dask
from looms.estimators._certificate import Certificate
from looms.estimators._encoding import ThresholdedClassifier
from looms.estimators._folds import (
    RowsOfFit,
    as_rest_of,
    folds_of_area,
    predicted_without,
    refits_of,
    tuned_without,
    unfitted,
)
from looms.folds import left_out_with
from looms.held_out import HeldOut
from looms.kernels import Kernel
from looms.kernels._samples import training_rows
from looms.lssvm._system import targets_as_columns
from looms.lssvm.fit import LandmarkMember, cross_of
from looms.lssvm.left_out import LeftOut
from looms.scores import area_within
from looms.selection import _svm_search as svm_search
from looms.selection._decisions import Decided, Decisions
from looms.selection._nested import Nested
from looms.svm._one_against_one import (
    FittedTo,
    Machines,
    class_log_probabilities,
    solved_pairs,
)
from looms.svm._problem import KKT_TOLERANCE, Loss
from looms.svm.dual import solve
from looms.svm.left_out import Paths
from looms.units import Units

_ITERATIONS = 100_000  # of LIBSVM


def _has_probabilities(model: SupportVectorClassifier) -> bool:
    return model.probability is not None


def mean_of_passes(values: Sequence[Array], rows: Sequence[AnyArray]) -> Array:
    """Mean of (n, ...) values over the passes that test a row."""
    total, count = np.zeros(values[0].shape), np.zeros(len(values[0]))
    for each, tested in zip(values, rows, strict=True):
        total[tested] += each[tested]
        count[tested] += 1
    return np.asarray((total.T / count).T)


def nested_machines(estimator: Any, machine: Any, rows: RowsOfFit, outer: Units) -> Nested:
    """Models tuned without each fold, from an unfitted ``machine``, and their predictions."""
    cv, n_jobs = machine.cv, machine.n_jobs
    alone = unfitted(machine)
    (machines,) = tuned_without(estimator, [alone], outer, rows, cv, n_jobs)
    values = predicted_without(machines, outer, rows, lambda one, X: one._decision(X))
    parts = zip(machines, outer.tested_by, strict=True)
    rounds = [machine._decided_at(out, values[out]) for machine, out in parts]
    held_out = HeldOut(rows.own(rows.targets), values, rows.own(rows.weight))
    return Nested.of_folds(rows.train, outer, held_out, rounds, machines)


class SupportVectorClassifier(ThresholdedClassifier):
    """Base class of the support vector classifiers: decisions, probabilities, scores, sets."""

    _milder = "smaller C"
    loss: Loss
    probability: str | None
    cv: Any
    C_: float
    calibrators_: tuple[Sigmoid, ...] | None
    support_: AnyArray
    support_vectors_: Matrix
    intercept_: float | Array

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @lazy_for_dask
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples; for a dask collection the values are a dask array.

        Returns
        -------
        log_p : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        log_p = self._log_probabilities(self._checked_new_data(X))
        shares = self._shares
        if shares is None:
            return log_p
        log_p = log_p + np.log(shares[1] / shares[0])
        return np.asarray(log_p - logsumexp(log_p, axis=1, keepdims=True))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @lazy_for_dask
    def predict_proba(self, X: Any) -> Array:
        """Probability of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples; for a dask collection the values are a dask array.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``. With more than two classes, the sigmoids of the pairs
            are coupled by the second method of Wu, Lin & Weng (2004). With ``class_weight``, which
            the sigmoids count, Bayes' rule leads back to the classes as they are in the samples.
        """
        X = self._checked_new_data(X)
        if self.calibrators_ is not None and len(self.calibrators_) == 1:
            return self._unweighted(
                class_probabilities(self.calibrators_[0], self._pair_outputs(X))
            )
        return self._unweighted(np.exp(self._log_probabilities(X)))

    @property
    def _calibrators(self) -> tuple[Sigmoid, ...]:
        return self.calibrators_ or ()

    @property
    def _shares(self) -> tuple[Array, Array] | None:
        labels, (_, _, weight) = class_indices(self.loo_.y), self.loo_
        of_fit, own = (np.bincount(labels, weights=w) for w in (self.fit_weight_, weight))
        of_fit, own = of_fit / of_fit.sum(), own / own.sum()
        return None if np.allclose(of_fit, own, rtol=1e-12, atol=0) else (of_fit, own)

    def _unweighted(self, p: Array) -> Array:
        """Probabilities for the classes as they are, of those with the weights of the classes."""
        shares = self._shares
        return np.asarray(p) if shares is None else at_prevalence(p, *shares)

    @property
    def _summed(self) -> tuple[LandmarkMember]:
        """The machine of all pairs of classes, with support vectors as its landmarks."""
        values = self.kernel_, self.C_, self.dual_coef_, self.intercept_
        return (LandmarkMember(1.0, *values, landmarks=self.support_vectors_),)

    def _pair_outputs(self, X: Matrix) -> Array:
        """(n, n_pairs) outputs for validated samples."""
        X = X[:, self.support_] if self.kernel_.pairwise else X
        values = self._summed[0].outputs(X, self.X_fit_)
        return values.reshape(len(values), -1)

    def _log_probabilities(self, X: Matrix) -> Array:
        """(n, n_classes) logarithms of class probabilities for validated samples."""
        sigmoids = np.array([(one.slope, one.intercept) for one in self.calibrators_ or ()])
        return class_log_probabilities(-(sigmoids[:, 0] * self._pair_outputs(X) + sigmoids[:, 1]))

    def _decision(self, X: Matrix) -> Array:
        if self.dual_coef_.ndim == 1:
            return self._pair_outputs(X)[:, 0]
        return self._log_probabilities(X)

    def _decided_at(self, rows: AnyArray, values: Array) -> Decided:
        """Decisions on held-out decision values of some rows."""
        tie = rounding(len(self.fit_weight_))
        if values.ndim == 1:
            calibrator = None if self.calibrators_ is None else self.calibrators_[0]
            made = Decided.of(rows, values, self.threshold_, calibrator, tie)
            p = made.probabilities
            return made if p is None else made._replace(probabilities=self._unweighted(p))
        p = None if self.probability is None else self._unweighted(np.exp(values))
        return Decided(rows, values, class_shares(values, 0.0, tie), p)

    @property
    def _fitted_to(self) -> FittedTo:
        """Which outputs the sigmoids of several classes are fitted to."""
        return "single" if self.probability == "single" else "loo"

    def _machine(
        self,
        X: Matrix,
        targets: Array,
        weight: Array,
        cost: Array,
        sample: svm_search.Sample,
        kernel: Kernel,
        C: float,
    ) -> dict[str, Any]:
        """Fitted attributes of the machine of a sample, the rows of positive weight."""
        train, others = np.flatnonzero(weight), np.flatnonzero(weight == 0)
        with one_blas_thread():
            K, folds = svm_search.kernel_matrix(kernel, sample.X), sample.units.number[0]
            machines = solved_pairs(K, sample.labels, C, sample.weight, folds, loss=self.loss)
            passes, tested = zip(*machines.passes(sample.units), strict=True)
            held_out = mean_of_passes(
                [one.held_out(self._fitted_to).outputs for one in passes], tested
            )
            loo = held_out
            if not sample.units.alone:
                alone = replace(machines, folds=np.arange(len(train)))
                loo = alone.held_out(self._fitted_to).outputs
            # The coupling of several classes needs sigmoids even without probabilities.
            needed = self.probability is not None or targets.ndim > 1
            pairs = replace(
                machines, known=mean_of_passes([one.held_out_outputs for one in passes], tested)
            )
            calibrators = pairs.sigmoids(self._fitted_to) if needed else None
        coefficients, intercepts = machines.coefficients, machines.intercepts
        support, one_pair = np.flatnonzero(coefficients.any(axis=1)), len(intercepts) == 1
        fitted = {
            "C_": C,
            "kernel_": kernel,
            "X_fit_": X,
            "fit_weight_": cost,
            "support_": train[support],
            "support_vectors_": X[train[support]],
            "dual_coef_": coefficients[support, 0] if one_pair else coefficients[support],
            "intercept_": float(intercepts[0]) if one_pair else intercepts,
            "calibrators_": calibrators,
        }
        machine = copy(self)
        machine._set_fitted(**fitted)  # this one changes when all is done
        for name, one in (("loo_", loo), ("held_out_", held_out)):
            values = np.empty(targets.shape)
            values[train] = one
            if len(others):  # these never were in the machine
                values[others] = machine._decision(X[others])
            fitted[name] = HeldOut(targets, values, weight)
        return fitted

    def _decided(self, weight: Array) -> tuple[Decisions, tuple[float, Array]]:
        train = np.flatnonzero(self.fit_weight_)
        y, outputs, _ = (each[train] for each in self.held_out_)
        made = self._decided_at(np.arange(len(train)), outputs)
        return Decisions.of([made], class_indices(y)), self._area(weight)

    def _area(self, weight: Array) -> tuple[float, Array]:
        # within the folds, drawn where each row or group is held out
        train, units = np.flatnonzero(self.fit_weight_), self._units
        y, outputs, _ = (each[train] for each in self.held_out_)
        held_out = HeldOut(y, outputs, weight)
        within = area_within(held_out, units if units.shape[0] == 1 else units.draws)
        tens = folds_of_area(class_indices(y), units)
        if np.isfinite(within[0]) or tens is units:
            return within
        values = replace(self._machines(), folds=tens.own).held_out(self._fitted_to).outputs
        return area_within(HeldOut(y, values, weight), tens)

    def _machines(self) -> Machines:
        """The machines of all pairs, and those without each sample, or group.

        The first call computes them from the training samples, and caches them.
        """
        cached: Machines | None = vars(self).get("_machine_models")
        if cached is None:
            train = np.flatnonzero(self.fit_weight_)
            X = training_rows(self.X_fit_, train, self.kernel_.pairwise)
            data = class_indices(self.loo_.y[train]), self.C_, self.fit_weight_[train]
            folds = self._units.draws.number[0]
            with one_blas_thread():
                K = svm_search.kernel_matrix(self.kernel_, X)
                cached = solved_pairs(K, *data, folds, loss=self.loss)
            self._machine_models = cached
        return cached

    def _compared(self, places: AnyArray, train: AnyArray, X: Any) -> Certificate:
        samples = training_rows(self.X_fit_, train, self.kernel_.pairwise)
        K, targets = svm_search.kernel_matrix(self.kernel_, samples), self.loo_.y[train]
        C, labels = self.C_ * self.fit_weight_[train], class_indices(targets)
        everything = np.full(len(train), True)
        whole, exactness = _refitted_pairs(K, labels, everything, places, C, self.loss)
        differences = [np.abs(self._pair_outputs(self.X_fit_[train[places]]) - whole).ravel()]
        steepest = 1.0
        passes = self._passes(places, train)
        if self._units.shape[0] > 1:  # means over repetitions are not outputs of one machine
            passes = passes[:1]
        for held_out, (numbers,) in passes:
            f = np.zeros((len(train), whole.shape[1]))
            for number in np.unique(numbers[numbers >= 0]):
                out = left_out_with(numbers) == number
                f[out], to = _refitted_pairs(K, labels, ~out, out, C, self.loss)
                exactness = max(exactness, to)
            values = f[:, 0]
            if f.shape[1] > 1:  # coupled by the sigmoids of the fit
                alone = held_out is self.loo_
                folds = np.arange(len(train)) if alone else self._units.number[0]
                machines = replace(self._machines(), folds=folds)
                with one_blas_thread():
                    slopes, intercepts = machines.held_out_sigmoids(self._fitted_to)
                steepest = max(steepest, float(np.abs(slopes).sum(axis=1).max()))
                values = class_log_probabilities(-(slopes * f + intercepts))
            differences.append(np.abs(held_out.outputs[train] - values)[places].ravel())
        return Certificate.of(
            train[places],
            np.concatenate(differences),
            targets,
            condition=None,
            bound=exactness * steepest,
            solver="scikit-learn's SVC, polished",
        )

    def left_out(self) -> Paths:
        """The model without any of the rows of its fit, by exact paths.

        Returns
        -------
        left_out : looms.lssvm.left_out.LeftOut
            Of the rows with positive weight, in their order; targets and outputs in columns. It is
            cached with the model, but not pickled or saved.
        """
        check_is_fitted(self)
        cached: Paths | None = vars(self).get("_left_out")
        if cached is None:
            train = np.flatnonzero(self.fit_weight_)
            cross = cross_of(self.kernel_, training_rows(self.X_fit_, train, self._pairwise))
            options = self.C_, self.loss, self._fitted_to, cross
            cached = self._left_out = Paths(self._machines(), *options)
        return cached

    def _refits_of(self, nested: Nested) -> LeftOut:
        X_fit = training_rows(self.X_fit_, nested.rows, self._pairwise)
        return refits_of(nested, X_fit, _decision_without)


def _decision_without(machine: Any, rest: AnyArray, X: Matrix) -> Array:
    """Decision values, in columns, of a machine of the rows ``rest`` of a fit."""
    return targets_as_columns(machine._decision(as_rest_of(machine, X, rest)))


def _refitted_pairs(
    K: Array, labels: AnyArray, fitted: AnyArray, rows: AnyArray, C: Array, loss: Loss
) -> tuple[Array, float]:
    """Outputs at some rows, (r, n_pairs), of machines of the rows ``fitted``, and how exact."""
    outputs, exactness = [], 0.0
    for pair in combinations(range(int(labels.max()) + 1), 2):
        own = np.flatnonzero(fitted & np.isin(labels, pair))
        y = np.where(labels[own] == pair[1], 1.0, -1.0)
        f, to = _refitted_pair(K[np.ix_(own, own)], y, C[own], K[rows][:, own], loss)
        outputs.append(f)
        exactness = max(exactness, to)
    return np.column_stack(outputs), exactness


def _refitted_pair(K: Array, y: Array, C: Array, K_new: Array, loss: Loss) -> tuple[Array, float]:
    """Outputs of a machine of two classes at new samples, and how exact they are.

    LIBSVM, whose kernel values are float32, finds the margin; its solution is then polished until
    the KKT conditions hold to machine precision. The squared hinge is the hinge for a kernel with
    1 / 2C on its diagonal, without upper bound.
    """
    if (y == y[0]).all():
        return np.full(len(K_new), y[0]), 0.0
    squared, largest = loss == "squared_hinge", C.max()
    svc = SVC(kernel="precomputed", C=1e9 * largest if squared else largest, max_iter=_ITERATIONS)
    added = np.diag(0.5 / C) if squared else 0.0
    with recorded_warnings():  # that it is not converged: it is the start of a solution
        svc.fit(K + added, y, sample_weight=None if squared else C / largest)
    start = np.zeros(len(y))
    start[svc.support_] = np.abs(svc.dual_coef_[0])
    solution = solve(K, y, C, start, loss=loss)
    f = K_new @ (solution.alpha * y) + solution.intercept
    return f, max(KKT_TOLERANCE, 2.0 * solution.exactness) * float(1.0 + np.abs(f).max())
