"""The least-squares SVM classifier with given hyper-parameters."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from looms._classes import class_indices, class_targets, with_ties
from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.calibration import class_probabilities, fit_calibrator
from looms.calibration._calibrators import as_calibration
from looms.dask._predict import lazy_for_dask
from looms.estimators._encoding import (
    ThresholdedClassifier,
    check_threshold,
    class_weights,
    encoded,
    number_or_rule,
    threshold_and_loss,
)
from looms.estimators._least_squares import GivenMachine
from looms.estimators._updates import UpdatableMachine
from looms.estimators._warnings import warn_of_missed_precision
from looms.held_out import HeldOut
from looms.scores import area_within, held_out_decisions
from looms.selection._candidates import Score
from looms.selection._decisions import Decided, Decisions


def _has_probabilities(classifier: Classifier) -> bool:
    # What is asked for may have changed since the fit.
    if vars(classifier).get("calibrator_", classifier.calibration) is None:
        raise AttributeError(
            "There are no probabilities with calibration=None; fit with calibration='sigmoid'."
        )
    return True


class Classifier(ThresholdedClassifier, UpdatableMachine):
    """Base of the least-squares classifiers: probabilities from leave-one-out outputs."""

    threshold: Any
    calibration: str | None
    calibrator_: Any

    @property
    def _calibrators(self) -> tuple[Any, ...]:
        return () if self.calibrator_ is None else (self.calibrator_,)

    def _decision(self, X: Matrix) -> Array:
        return self._outputs(X)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @lazy_for_dask
    def predict_proba(self, X: Any) -> Array:
        """Probability of each class.

        The calibrator that turns outputs into probabilities was fitted to the leave-one-out
        outputs, which resemble the outputs for new samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples. For the training samples, whose outputs are nearer to their labels,
            use `looms.calibration.loo_probabilities` of ``loo_``.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``; rows sum to one. With more than two classes, the softmax
            of the outputs if ``calibration="sigmoid"``, otherwise one-against-rest probabilities
            divided by their sum.

        Notes
        -----
        With ``threshold=None``, `predict` returns the most probable class: for two classes
        `decision_function` is positive exactly where the probability of the second is above ½.
        With more than two classes `decision_function` is largest for the most probable one. A
        threshold that was given, or set for another purpose, makes them differ, and so does
        ``class_weight``: it weights the fit and the decisions, which are those for a population
        with such classes, but probabilities are those of the classes as they are in the samples.
        """
        outputs = self._outputs(self._checked_new_data(X))
        return class_probabilities(self.calibrator_, outputs)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @lazy_for_dask
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the probability of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        log_p : ndarray of shape (n_samples, n_classes)
            The logarithm of `predict_proba`; finite, since probabilities of zero count as 2.2e-308.
        """
        return np.asarray(np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny)))

    def _decided(self, weight: Array) -> tuple[Decisions, tuple[float, Array]]:
        """Decisions on held-out outputs at the values chosen, and the area of `_area`."""
        train, rule = np.flatnonzero(self.fit_weight_), (self.threshold_, self.calibrator_)
        y = self.loo_.y[train]
        if self._scored_in is None:
            with blas_threads(len(train)):
                left_out = self.left_out()
                return held_out_decisions(left_out, self._units, weight, *rule, y.shape, self._tie)
        units, outputs = self._scored_in
        decided = Decided.of(np.arange(len(y)), outputs, *rule, self._tie)
        area = area_within(HeldOut(y, outputs, weight), units, self._tie)
        return Decisions.of([decided], class_indices(y)), area

    def _encoded(self, y: AnyArray, weight: Array) -> tuple[AnyArray, AnyArray, Array]:
        """Classes, index of each label, targets ±1; ValueError if unsuitable."""
        if self.calibration is not None:
            as_calibration(self.calibration)  # an unknown name is an error before any work
        classes, labels, targets = encoded(y, weight)
        check_threshold(self.threshold, targets)
        return classes, labels, targets

    def _score(self, loo: HeldOut, fit_weight: Array) -> Score:
        """Loss of the threshold rule on leave-one-out outputs, the threshold and the calibrator.

        Probabilities are those of the classes as they are, whatever their weights. Without a rule
        the threshold is where a calibrator with the weights of the fit has ½: otherwise it would
        undo them.
        """
        calibrator = weighted = None
        if self.calibration is not None:
            calibrator = weighted = fit_calibrator(loo, self.calibration)
            if self.threshold is None and self.class_weight is not None:
                weighted = fit_calibrator(HeldOut(loo.y, loo.outputs, fit_weight), self.calibration)
        threshold, loss = threshold_and_loss(number_or_rule(self.threshold, weighted, loo), loo)
        return Score(loss, threshold, calibrator)

    def _as_targets(self, y: AnyArray) -> Array:
        number = {label: k for k, label in enumerate(self.classes_.tolist())}
        unknown = sorted({label for label in y.tolist() if label not in number}, key=str)
        if unknown:
            raise ValueError(
                f"y has {unknown}, which are not classes of this machine: {list(number)}. Fit a "
                "machine to all rows."
            )
        return class_targets(np.array([number[label] for label in y.tolist()]), len(number))

    def _given(self, mu: float, factors: Array) -> LSSVMClassifier:
        alike = np.allclose(factors, factors[0], rtol=1e-12, atol=0)
        return LSSVMClassifier(
            self.kernel_,
            mu=mu,
            fit_intercept=self.fit_intercept_,
            class_weight=None if alike else dict(zip(self.classes_.tolist(), factors, strict=True)),
            threshold=self.threshold,
            calibration=self.calibration,
        )


class LSSVMClassifier(Classifier, GivenMachine):
    """Least-squares support vector machine for classification, with given hyper-parameters.

    Minimizes ½‖w‖² + 1/(2 mu n) Σ_i ζ_i (t_i − w·φ(x_i) − b)² for targets t = ±1 and
    weights ζ of mean one. Fitting also gives all exact leave-one-out outputs, at the
    cost of one matrix inversion and no refit. `LSSVMClassifierCV` uses them to choose the
    hyper-parameters.

    Parameters
    ----------
    kernel : str, looms.kernels.Kernel or callable, default="rbf"
        "linear", "quadratic", "cubic", "boolean", "rbf", "laplacian", "ard", "matern12",
        "matern32", "matern52", "powexp", "powexp_ard", "polynomial4" (or another degree), any
        of these prefixed with "normalized_" or "ranked_", or "precomputed"; a kernel object, whose
        unset values are taken from the data; or a function of two matrices of samples that returns
        their kernel matrix.
    mu : float, default=1e-3
        Regularization, positive; the ridge added to the kernel matrix is
        ``n_samples * mu / weight``.
    fit_intercept : bool, default=True
        Whether to fit an (unregularized) intercept.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the fit and in the threshold None; they multiply
        ``sample_weight``. Probabilities are those of the classes as they are, without them; but
        isotonic regression and beta calibration, of which one serves several classes, cannot
        allow for their weights.
    threshold : None, float, str, looms.threshold.ThresholdRule or callable, default=None
        Outputs above it belong to the second class. None puts it where the probability of that
        class is ½, so that decisions agree with probabilities (with ``class_weight``, in a
        population with such classes); with more than two classes, each
        class has a threshold, subtracted so that the most probable class has the largest value;
        with ``calibration=None`` it is 0. More than two classes admit only None or 0. For two
        classes it may also be another number, in units of the outputs, which are near ±1 (not
        between 0 and 1, so that none is taken for a probability), or a rule that sets it from the
        leave-one-out outputs: "ber" for the smallest balanced error rate, "f1",
        ``looms.threshold.FBeta(beta)``, ``Cost(false_positive, false_negative)``,
        ``RequiredPrecision(precision)``,
        ``RequiredRecall(recall)``, or a metric of ``(y_true, y_pred[, sample_weight])``, coded
        ±1, where larger is better.
    calibration : {"sigmoid", "isotonic", "beta"} or None, default="sigmoid"
        How probabilities are fitted to the leave-one-out outputs: Platt's sigmoid (with more than
        two classes a softmax with one slope and a constant per class), isotonic regression
        (for thousands of samples) or beta calibration. With None there is no `predict_proba`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    loo_ : HeldOut
        Exact leave-one-out outputs, before the threshold; targets ±1, one column per class
        for more than two. A sample of weight zero has its ordinary output.
    threshold_ : float or ndarray of shape (n_classes,)
        The threshold, which `decision_function` subtracts; for several classes with a softmax one
        per class, −constant / slope. With ``threshold=None`` it comes from the calibrator, fitted
        to ``loo_``, so errors counted on ``loo_`` are slightly optimistic. If no output has a
        probability on the other side of ½, as with a flat sigmoid or softmax, it lies beyond all
        outputs (`looms.calibration.output_at_half`), and all samples get one class.
    calibrator_ : looms.calibration.Calibrator or None
        Turns outputs into probabilities.
    kernel_ : Kernel
        The kernel with all its values.
    mu_ : float
        The regularization.
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Coefficients of the kernel expansion.
    intercept_ : float or ndarray of shape (n_classes,)
        The intercept.
    X_fit_ : ndarray or sparse matrix of shape (n_samples, n_features)
        The training samples.
    fit_weight_ : ndarray of shape (n_samples,)
        Weights of the samples in the fit.
    fit_intercept_ : bool
        Whether it was fitted with an intercept.
    units_ : looms.units.Units
        Samples that were held out together: each by itself, or its group if `without` made the
        machine from one with groups.
    certificate_ : Certificate
        Result of the last `certify`, `without` or `with_rows`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had names.

    Notes
    -----
    Fitting costs 2n³/3 flops beside the kernel matrix. Memory: one n×n array, in which the matrix
    is factorized. With ``kernel="precomputed"`` the given matrix is also kept, in ``X_fit_``, and
    checked to be positive semi-definite, for another n³/3 flops.

    References
    ----------
    Cawley (2006), Leave-one-out cross-validation based model selection criteria for
    weighted LS-SVMs, IJCNN.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from looms import LSSVMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LSSVMClassifier(mu=1e-3)).fit(X, y)
    >>> loo = model[-1].loo_
    >>> float(((loo.outputs > 0) == (y == 1)).mean().round(3))   # accuracy, leave-one-out
    0.979
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        mu: float = 1e-3,
        fit_intercept: bool = True,
        class_weight: Any = None,
        threshold: Any = None,
        calibration: str | None = "sigmoid",
    ) -> None:
        self.kernel = kernel
        self.mu = mu
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.threshold = threshold
        self.calibration = calibration

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the machine and compute its leave-one-out outputs.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix.
        y : array-like of shape (n_samples,)
            Class of each sample.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights; only their ratios count. A sample of weight zero takes no
            part in the fit but still gets an output in ``loo_``.
        groups : array-like of shape (n_samples,), default=None
            Label of the group of each sample, such as the patient that was measured; samples of a
            group are held out together.

        Returns
        -------
        self : LSSVMClassifier
            The fitted machine.

        Raises
        ------
        MemoryError
            If the kernel matrix, with arrays of its size beside it, takes more memory than is free.
        """
        X, y, weight = self._validated(X, y, sample_weight)
        classes, labels, targets = self._encoded(y, weight)
        fit_weight = weight * class_weights(self.class_weight, labels, classes, weight)
        fitted = self._fitted(X, y, targets, weight, fit_weight, groups)
        self._set_given({"classes_": classes, **fitted})
        return self

    def _set_given(self, fitted: dict[str, Any]) -> None:
        y, outputs, weight = fitted["held_out_"]
        held_out = HeldOut(y, with_ties(outputs, fitted["_tie"]), weight)
        score = self._score(held_out, fitted["fit_weight_"])
        self._set_fitted(threshold_=score.threshold, calibrator_=score.calibrator, **fitted)
        warn_of_missed_precision(self.threshold, score.value)
