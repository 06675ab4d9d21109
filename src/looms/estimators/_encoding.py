"""Classes as ±1 targets, class weights, and the threshold that decides between two classes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from looms._checks import check_flag
from looms._classes import class_indices, class_targets
from looms._scores import class_scores
from looms._typing import AnyArray, Array, Matrix
from looms.calibration._calibrators import Calibrator, output_at
from looms.calibration._softmax import Softmax
from looms.conformal import prediction_sets
from looms.conformal._jackknife import required_rank
from looms.conformal._sets import class_margins
from looms.criteria._error_rates import balanced_error_rate
from looms.dask._predict import lazy_for_dask
from looms.estimators._kernel_model import KernelModel
from looms.estimators._prevalence import ScoredClassifier
from looms.held_out import HeldOut
from looms.scores import Scores
from looms.selection._decisions import Decisions
from looms.selection._nested import Nested
from looms.threshold import as_rule, find_threshold


class ThresholdedClassifier(ScoredClassifier, KernelModel):
    """Base class of the classifiers, which decide by one threshold or one for each class."""

    classes_: AnyArray
    threshold_: float | Array

    @abstractmethod
    def _decision(self, X: Matrix) -> Array:
        """(n,) or (n, n_classes) decision values before the threshold, for validated samples."""

    @lazy_for_dask
    def decision_function(self, X: Any) -> Array:
        """Outputs of the model less the threshold, so that 0 is the boundary.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples; for a precomputed kernel (n_samples, n_training_samples)
            kernel values. For a dask collection the values are a dask array.

        Returns
        -------
        decision : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes, positive for ``classes_[1]``; for more, one column per class, less its
            threshold: the largest wins. With a hinge loss those of several classes are logarithms
            of the coupled probabilities of the pairs.
        """
        return self._decision(self._checked_new_data(X)) - self.threshold_

    @lazy_for_dask
    def predict(self, X: Any) -> AnyArray:
        """Class of each sample, by the decision values.

        With ``threshold=0.5`` it is the class of the largest `predict_proba`. Only another
        threshold or ``class_weight`` makes them differ.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples. For a dask collection the classes are a dask array.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Members of ``classes_``.
        """
        decision = self.decision_function(X)
        return np.asarray(self.classes_[class_indices(decision)])

    def predict_set(
        self, X: Any, confidence_level: float = 0.9, class_conditional: bool = False
    ) -> AnyArray:
        """Conformal prediction set for each sample: the classes that it may belong to.

        A class is in the set unless the margin of the sample, if it belonged to that class, is
        below the leave-one-out margins of almost all training samples, each compared under the
        model trained without that sample. No other samples are needed.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples; for a precomputed kernel (n_samples, n_training_samples)
            kernel values.
        confidence_level : float, default=0.9
            Nominal share of new samples whose class is in their set, between 0 and 1.
        class_conditional : bool, default=False
            Whether margins are compared within each class, so that each class, even a rare one,
            has that share. The sets get larger.

        Returns
        -------
        sets : ndarray of bool, of shape (n_samples, n_classes)
            Columns as in ``classes_``. A set of several classes means that the sample may belong
            to any of them; an empty one, that it is typical of none.

        Raises
        ------
        ValueError
            If the coverage is not between 0 and 1, or needs more samples of non-zero weight
            than there are, 1 / (1 − confidence_level) − 1 (in some class, if `class_conditional`).
        sklearn.exceptions.NotFittedError
            Before `evaluate`, or if its models in closed form were lost, as in a file.

        Notes
        -----
        The models are those of `evaluate`; call it first. Each was trained without a sample, its
        group, or, if scores are nested, the fold that it was selected without. The margin of a
        class is its output less the largest of the others, whatever the threshold. If training and
        new samples are exchangeable, and everything but the coefficients (kernel and its values,
        regularization, weights) was fixed beforehand, the class of a new sample is in its set with
        a probability of at least 2 c − 1 for a confidence level of c, mostly about c; with
        `class_conditional`, within each class [B21, RSC20]. The same holds for the models of nested
        scores, each of which was selected without the sample, group or fold that it holds out.
        After any other search, or if a kernel took its width from the samples, nothing is
        guaranteed.

        Samples of weight zero take no part. The cost is that of
        `KernelRegressor.predict_interval`.

        References
        ----------
        Romano, Sesia & Candès (2020), Classification with valid and adaptive coverage,
        NeurIPS.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from looms import KernelClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = KernelClassifier(mu=1e-3).fit(X[::2], y[::2])
        >>> model.evaluate().kind
        'leave-one-out'
        >>> sets = model.predict_set(X[1::2], confidence_level=0.95)
        >>> float(sets[range(75), y[1::2]].mean().round(2))
        0.97
        """
        X = self._checked_new_data(X)
        self._check_coverage(confidence_level, class_conditional)
        models = self._models_without_rows(X, "predict_set")
        return self._sets(X.shape[0], *models, confidence_level, class_conditional)

    def _check_coverage(self, confidence_level: float, class_conditional: bool) -> None:
        """ValueError for a coverage that the rows of the fit cannot give."""
        check_flag("class_conditional", class_conditional)
        labels = class_indices(self.loo_.y[self.fit_weight_ > 0])
        if class_conditional:
            for name, count in zip(self.classes_.tolist(), np.bincount(labels), strict=True):
                try:
                    required_rank(confidence_level, int(count))
                except ValueError as error:
                    raise ValueError(f"Class {name!r}: {error}") from None
        else:
            required_rank(confidence_level, len(labels))

    def _sets(
        self,
        n_rows: int,
        r: Array,
        blocks: Iterable[tuple[slice, Array]],
        confidence_level: float,
        class_conditional: bool,
    ) -> AnyArray:
        """Sets of new rows, from held-out residuals and the outputs of the models without rows."""
        targets = self.loo_.y[self.fit_weight_ > 0]
        labels, loo = class_indices(targets), targets - r
        loo_scores = class_margins(loo.reshape(len(loo), -1))[np.arange(len(labels)), labels]
        sets = np.empty((n_rows, len(self.classes_)), dtype=bool)
        for rows, F in blocks:
            scores = class_margins(F.reshape(*F.shape[:2], -1))
            sets[rows] = prediction_sets(
                loo_scores, scores, confidence_level, labels if class_conditional else None
            )
        return sets

    @abstractmethod
    def _decided(self, weight: Array) -> tuple[Decisions, tuple[float, Array]]:
        """Decisions on held-out outputs, and the area under the ROC curve of `_area`."""

    def _area(self, weight: Array) -> tuple[float, Array]:
        """Area under the ROC curve at the chosen values, and what each row adds to its deviation.

        It compares held-out rows under one model that has seen neither; ``weight``, (m,), has
        the weights of the rows of the fit.
        """
        return self._decided(weight)[1]

    def _scored(self, nested: Nested | None) -> Scores:
        train, known = np.flatnonzero(self.fit_weight_), nested and nested.of_classes
        weight, labels = self.loo_.sample_weight[train], class_indices(self.loo_.y[train])
        decisions, auc = known or self._decided(weight)
        clusters = self._units.clusters
        pairs = class_scores(labels, decisions.wrong, auc, weight, clusters, decisions.losses)
        return self._as_scores(pairs, decisions, nested)


def encoded(y: AnyArray, weight: Array) -> tuple[AnyArray, AnyArray, Array]:
    """Classes, index of each sample's class, and targets ±1.

    Targets are (n,) for two classes, +1 for the second, and (n, k) for k classes, one
    against the rest. ValueError unless two classes have samples of positive weight.
    """
    check_classification_targets(y)
    classes, labels = np.unique(y, return_inverse=True)
    present = classes[np.unique(labels[weight > 0])]
    if len(present) < 2:
        only = f"; the only one is {present.tolist()[0]!r}" if len(present) else ""
        raise ValueError(
            "Classifier can't train when only one class is present: the number of classes has to "
            f"be greater than one, got {len(present)} class{only}. Samples of weight zero do not "
            "count."
        )
    if len(present) < len(classes):
        missing = sorted(set(classes.tolist()) - set(present.tolist()))
        raise ValueError(
            f"All samples of class {missing} have weight zero; leave these samples out instead."
        )
    return classes, labels, class_targets(labels, len(classes))


def class_weights(
    class_weight: Any,
    labels: AnyArray,
    classes: AnyArray,
    sample_weight: Array,
    name: str = "class_weight",
    same: str = "",
) -> Array:
    """(n,) weight of each sample's class.

    Parameters
    ----------
    class_weight : None for ones; "balanced" to give every class the same total,
        counting samples by their weight; or a dict from class to weight, one for
        classes it does not name.
    labels : (n,) indices into ``classes``.
    classes : the classes.
    sample_weight : (n,) weights of the samples.
    name : what the parameter is called in errors.
    same : value for the weights of the fit, which errors name too; "" if there is none.
    """
    if class_weight is None:
        return np.ones(len(labels))
    if isinstance(class_weight, str) and class_weight == "balanced":
        mass = np.bincount(labels, weights=sample_weight, minlength=len(classes))
        return np.asarray((mass.sum() / (len(classes) * mass))[labels])
    if not isinstance(class_weight, dict):
        known = f"{same!r}, None" if same else "None"
        raise ValueError(f"{name} must be {known}, 'balanced' or a dict, got {class_weight!r}.")
    unknown = [label for label in class_weight if label not in list(classes)]
    if unknown:
        raise ValueError(
            f"{name} names {unknown}, which are not classes of y: {np.asarray(classes).tolist()}."
        )
    try:
        weights = np.array([float(class_weight.get(label, 1.0)) for label in classes])
    except (TypeError, ValueError):
        weights = np.array([np.nan])
    if not ((weights > 0) & np.isfinite(weights)).all():
        raise ValueError(f"{name} must be positive numbers, got {class_weight!r}.")
    return np.asarray(weights[labels])


def check_threshold(threshold: Any, calibrated: bool) -> None:
    """ValueError unless ``threshold`` is a probability or a rule.

    Without a calibrator there are no probabilities but 0.5, which is then the sign of the output.
    """
    if not _is_probability(threshold):
        as_rule(threshold)
    elif threshold != 0.5 and not calibrated:
        raise ValueError(
            f"threshold={threshold!r} is a probability, but calibration=None gives none: use "
            "another calibration, or a rule such as 'balanced'."
        )


def threshold_and_loss(
    threshold: Any, calibrator: Calibrator | None, loo: HeldOut, positive_first: bool = False
) -> tuple[float | Array, float]:
    """Threshold of the outputs, and the loss of its rule; of probabilities the balanced error rate.

    Parameters
    ----------
    threshold : probability of the positive class above which it is predicted, or a rule.
    calibrator : of the outputs; None for none: 0 is then where classes change. For several classes
        with a softmax the threshold is (n_classes,) numbers; with another one the largest output
        wins, and it is 0.
    loo : outputs that the threshold is set by.
    positive_first : whether the first of two classes is the positive one.
    """
    if not _is_probability(threshold):
        if not positive_first:
            return find_threshold(loo, threshold)
        of_first, loss = find_threshold(HeldOut(-loo.y, -loo.outputs, loo.sample_weight), threshold)
        return -of_first, loss
    cut: float | Array = 0.0
    if isinstance(calibrator, Softmax):
        cut = calibrator.thresholds(loo.outputs[loo.sample_weight > 0])
    elif calibrator is not None and loo.y.ndim == 1:
        probability = 1.0 - threshold if positive_first else float(threshold)
        cut = output_at(calibrator, loo.outputs, probability)
    return cut, balanced_error_rate(*loo, threshold=cut)


def is_positive_first(pos_label: Any, classes: AnyArray) -> bool:
    """True if the first of two classes is the positive one; ValueError for a label of no two."""
    if pos_label is None:
        return False
    labels = classes.tolist()
    if pos_label not in labels:
        raise ValueError(f"pos_label={pos_label!r} is not a class of y: {labels}.")
    if len(labels) != 2:
        raise ValueError(
            f"pos_label={pos_label!r} is for two classes, and y has {len(labels)}: leave it out, "
            "or put the others together in y."
        )
    return bool(labels.index(pos_label) == 0)


def _is_probability(value: Any) -> bool:
    """True for a number; ValueError for one that is not between 0 and 1."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    if not 0 < float(value) < 1:
        raise ValueError(
            f"threshold={value!r} is not a probability between 0 and 1. To cut outputs elsewhere, "
            "compare decision_function with a number."
        )
    return True
