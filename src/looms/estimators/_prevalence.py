"""A fitted classifier, moved to stated prevalences of its classes."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from looms._advice import setting
from looms._classes import class_indices
from looms._optional import require
from looms._threads import openmp_threads
from looms._typing import AnyArray, Array
from looms.calibration._coupling import adjust_prevalence
from looms.estimators._in_pipelines import parts_of
from looms.estimators._known_targets import KnownTargets
from looms.fitted._fitted import Fitted
from looms.fitted._outcome import column_of_sets, columns_of_classes

_ROUNDING = 1e-6  # of prevalences that are to sum to one


def at_prevalence(
    model: Any, prevalence: Any, training_prevalence: Any = None
) -> PrevalenceClassifier:
    """Fitted classifier with probabilities and decisions moved to stated prevalences.

    Use it if classes are rarer, or more common, than in the training samples, and samples within a
    class look the same: for example a test that was developed on as many patients
    as healthy people, and is applied to everyone. Nothing is refitted: Bayes' rule moves the log
    odds, and so the threshold [G06].

    Parameters
    ----------
    model : estimator
        A fitted classifier, or pipeline, with `predict_proba`. Models of looms also have a method
        ``at_prevalence``.
    prevalence : dict
        Share of each class, or of some: the others have the rest, in their training proportions.
        Equal shares minimize the balanced error rate.
    training_prevalence : dict or None, default=None
        Shares that the classifier's probabilities refer to. A looms model records them: the shares
        of the samples, by ``sample_weight``, that its probabilities were fitted to. For other
        classifiers they must be given.

    Returns
    -------
    moved : PrevalenceClassifier
        A fitted classifier around ``model``, with `predict`, `predict_proba` and
        `decision_function`. The predicted class is the most probable one, whatever the threshold of
        the model. Scores of the model's ``evaluate`` are still for its training prevalences.

    Raises
    ------
    TypeError, ValueError
        If shares are no shares of the classes.

    References
    ----------
    Saerens, Latinne & Decaestecker (2002), Adjusting the outputs of a classifier to new a priori
    probabilities, Neural Computation 14.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from looms import KernelClassifier, at_prevalence
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = KernelClassifier("normalized_linear", mu=1e-3).fit(X, y)
    >>> rare = at_prevalence(model, {0: 0.01})         # 37 % of the samples
    >>> rare.prevalence_
    array([0.01, 0.99])
    >>> bool((rare.predict_proba(X)[:, 0] <= model.predict_proba(X)[:, 0]).all())
    True
    """
    moved = PrevalenceClassifier(model, prevalence, training_prevalence)
    check_is_fitted(model)
    moved.prevalence_  # noqa: B018 (an error for shares that are none)
    return moved


class PrevalenceClassifier(KnownTargets, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What `at_prevalence` makes; there is no `fit`.

    Parameters
    ----------
    classifier, prevalence, training_prevalence
        As for `at_prevalence`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes of the classifier.
    prevalence_, training_prevalence_ : ndarray of shape (n_classes,)
        The shares of all classes, in the order of ``classes_``.
    """

    def __init__(self, classifier: Any, prevalence: Any, training_prevalence: Any = None) -> None:
        self.classifier = classifier
        self.prevalence = prevalence
        self.training_prevalence = training_prevalence

    def __sklearn_is_fitted__(self) -> bool:
        check_is_fitted(self.classifier)
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.classifier).input_tags
        return tags

    @property
    def classes_(self) -> AnyArray:
        return np.asarray(self.classifier.classes_)

    @property
    def training_prevalence_(self) -> Array:
        given = self.training_prevalence
        if given is not None:
            return _shares("training_prevalence", given, self.classes_, None)
        fitted = getattr(parts_of(self.classifier).last, "fitted_", None)
        if not isinstance(fitted, Fitted):
            raise ValueError(
                f"training_prevalence must be given: {type(self.classifier).__name__} does not "
                "record the shares of the classes that its probabilities refer to."
            )
        codes = fitted.outcome.codes(fitted.rows.targets)
        totals = np.bincount(codes, weights=fitted.rows.weight)
        return np.asarray(totals / totals.sum())

    @property
    def prevalence_(self) -> Array:
        return _shares(
            setting("prevalence"), self.prevalence, self.classes_, self.training_prevalence_
        )

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class at the stated prevalences.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``; rows sum to one.
        """
        with openmp_threads(_num_samples(X)):
            p = self.classifier.predict_proba(X)
        return adjust_prevalence(p, self.training_prevalence_, self.prevalence_)

    def predictions(
        self, X: Any, confidence_level: float | None = None, class_conditional: bool = False
    ) -> Any:
        """Predictions at the stated prevalences as a data frame, as of `KernelClassifier`.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            New samples.
        confidence_level, class_conditional
            As of `KernelClassifier.predictions`, for sets of a model of looms. They hold for the
            shares of the fit; with ``class_conditional`` for any.

        Returns
        -------
        predictions : pandas.DataFrame
            ``prediction``, ``decision_CLASS`` and ``probability_CLASS``, with the index of ``X``,
            and ``set``.
        """
        pandas: Any = require("pandas", "A table of predictions")
        index = X.index if hasattr(X, "iloc") else None
        columns = self._columns(self.classifier.predict_proba(X))
        if confidence_level is not None:
            members = self.classifier.predict_set(X, confidence_level, class_conditional)
            columns |= column_of_sets(self.classes_, members)
        return pandas.DataFrame(columns, index=index)

    def _columns(self, p: Array) -> dict[str, AnyArray]:
        """Predictions by names of columns, of probabilities that the classifier gives."""
        p = adjust_prevalence(p, self.training_prevalence_, self.prevalence_)
        decision = _log_odds(p)
        outcome = getattr(getattr(parts_of(self.classifier).last, "fitted_", None), "outcome", None)
        first = bool(getattr(outcome, "positive_first", False))
        of_classes = self.classes_, class_indices(decision), decision, p, first
        return columns_of_classes(*of_classes, np.arange(len(self.classes_)))

    def decision_function(self, X: Any) -> Array:
        """Log odds of the second of two classes, or the log probability of each of several.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        decision : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive for ``classes_[1]``, or largest for the predicted class. Probabilities of zero
            count as 2.2e-308.
        """
        return _log_odds(self.predict_proba(X))

    def predict(self, X: Any) -> AnyArray:
        """Most probable class of each sample at the stated prevalences.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Members of ``classes_``.
        """
        return np.asarray(self.classes_[class_indices(self.decision_function(X))])


def _log_odds(p: Array) -> Array:
    """(m,) log odds of the second of two classes, or (m, k) logarithms of probabilities."""
    logarithms = np.log(np.maximum(p, np.finfo(np.float64).tiny))
    if logarithms.shape[1] > 2:
        return np.asarray(logarithms)
    return np.asarray(logarithms[:, 1] - logarithms[:, 0])


def _shares(name: str, given: Any, classes: AnyArray, training: Array | None) -> Array:
    """(k,) shares of all classes; those not named share the rest as in ``training``."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{name} must be a dict of the shares of classes, got {given!r}.")
    labels = classes.tolist()
    unknown = [label for label in given if label not in labels]
    if unknown:
        raise ValueError(f"{name} has {unknown}, which are not classes: {labels}.")
    for label, share in given.items():
        if not (isinstance(share, Real) and 0 < float(share) < 1):
            raise ValueError(
                f"{name} must be numbers between 0 and 1, both excluded, got {share!r} for "
                f"{label!r}."
            )
    shares = np.array([float(given.get(label, 0.0)) for label in labels])
    unnamed, rest = shares == 0, 1.0 - float(shares.sum())
    if unnamed.any() and training is None:
        missing = [label for label in labels if label not in given]
        raise ValueError(f"{name} must have the share of every class; {missing} are missing.")
    if unnamed.any() and training is not None and rest > 0:
        shares[unnamed] = rest * training[unnamed] / training[unnamed].sum()
    elif unnamed.any() or abs(rest) > _ROUNDING:
        raise ValueError(
            f"{name} must sum to 1, got {shares.sum():.6g}: a class without a share gets the rest."
        )
    return shares
