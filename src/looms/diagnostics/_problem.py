"""A classifier with frozen hyper-parameters, and the samples it is diagnosed on.

All statistics here are based on refits at fixed hyper-parameters, so whatever an estimator learns
from the data to set a hyper-parameter is learned once, from all samples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, NuSVC
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from looms._advice import setting
from looms._checks import check_estimator, check_known
from looms._threads import openmp_threads
from looms._typing import AnyArray, Array
from looms.estimators import KernelClassifier
from looms.estimators._in_pipelines import parts_of
from looms.estimators._targets import check_labels, plain_targets
from looms.fitted._changes import class_weight
from looms.fitted._fitted import Fitted
from looms.folds import group_numbers
from looms.kernels._samples import training_rows
from looms.tables import TablePreprocessor
from looms.units import Units

#: What is said of the kernels of a stack that has other members, too, and of the best candidate
#: with a kernel if none has weight.
BY_KERNELS, BY_BEST = ", by the kernels of the stack", ", by the best kernel, which has no weight"


@dataclass(frozen=True, eq=False)
class Problem:
    """A model and the samples it is diagnosed on.

    Attributes
    ----------
    model : unfitted, with frozen hyper-parameters; never changed.
    X : (n_samples, n_features) input of `model`; the kernel matrix if it is pairwise.
    y : (n_samples,) labels as given.
    labels : (n_samples,) index of each label in `classes`.
    classes : (n_classes,) sorted labels.
    names : (n_samples,) the index of a data frame, else 0 to n − 1.
    preprocessing : "none"; "held", if the steps before the model were fitted once to all
        samples; "refitted", if they are refitted with the model.
    by_kernels : as `by_kernels` says it of the model.
    """

    estimator: Any
    X: Any
    y: AnyArray
    labels: AnyArray
    classes: AnyArray
    names: AnyArray
    preprocessing: str
    by_kernels: str = ""

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.y)


def pose(estimator: Any, X: Any, y: Any, preprocessing: str) -> Problem:
    """The problem of a classifier and its samples; ValueError if it cannot be diagnosed.

    Only the hyper-parameters of a fitted estimator are used; an unfitted one is fitted first, to
    choose them. With "auto" the steps of a pipeline are held unless one of them learns from `y`.
    """
    check_known(preprocessing, "preprocessing", ("auto", "held", "refitted"))
    check_estimator(estimator)
    if not is_classifier(estimator):
        raise ValueError(
            f"Deviance and error rate are of classes, and {type(estimator).__name__} is not a "
            "classifier. looms.diagnostics.case_deletion has the influence of each row on a "
            "regression of looms."
        )
    y = column_or_1d(plain_targets(y, classes=True, known=getattr(estimator, "classes_", None)))
    check_consistent_length(X, y)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    check_labels(y)
    check_classification_targets(y)
    classes, labels = classes_and_labels(y)
    names = np.asarray(X.index) if hasattr(X, "iloc") else np.arange(len(y))
    if not (sparse.issparse(X) or hasattr(X, "columns")):
        X = np.asarray(X)
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        with openmp_threads(len(y)):
            estimator = clone(estimator).fit(X, y)
    steps, fitted = parts_of(estimator)
    own = getattr(fitted, "preprocessor_", None)  # of a model of tables
    if isinstance(fitted, BaseSearchCV):
        raise ValueError(
            f"{type(fitted).__name__} has no best_estimator_: use refit=True, or pass the "
            "estimator with the parameters that it selected."
        )
    by, value = "", getattr(fitted, "fitted_", None)  # which means other things elsewhere
    if not isinstance(value, Fitted):
        estimator = frozen(fitted)
    elif value.outcome.labeled:
        estimator, by = GivenMembers.of(value.closed or value), by_kernels(value)
    else:
        raise ValueError(
            "Deviance and error rate are of classes without order: "
            f"{setting('no order', text='give y.astype(str)')} in its fit. "
            "looms.diagnostics.case_deletion has the influence of each row on any model of looms."
        )
    problem = Problem(estimator, X, y, labels, classes, names, "none", by)
    if not steps:
        return problem
    before = clone(Pipeline(steps))
    for (_, one), (_, new) in zip(steps, before.steps, strict=True):
        if isinstance(one, TablePreprocessor) and one.kinds_:  # X may have other columns, too
            new.set_params(kinds=one.kinds_)
        if isinstance(one, TablePreprocessor) and one is own:
            new.set_output(transform="default")
    with openmp_threads(len(y)):
        Z = before.fit_transform(X, y)
        if preprocessing == "auto":
            preprocessing = "refitted" if _learns_from_targets(before, X, Z) else "held"
    if preprocessing == "held":
        return replace(problem, X=Z, preprocessing="held")
    estimator = Pipeline([*clone(before).steps, ("model", estimator)])
    return replace(problem, estimator=estimator, preprocessing="refitted")


def by_kernels(fitted: Fitted) -> str:
    """Words for what is told of the kernels of a model alone; empty if it is all of kernels."""
    if fitted.closed in (None, fitted):
        return ""
    return BY_KERNELS if fitted.kernel_members else BY_BEST


def model_without_rows(model: Any, purpose: str) -> tuple[Fitted, str]:
    """The fitted model of looms inside ``model``, which has its models without any rows.

    Of a stack with estimators of scikit-learn, which have none, it is the model of its kernels
    alone, as the words beside it say.
    """
    fitted = model
    if not isinstance(model, Fitted):
        estimator = parts_of(model).last
        if not hasattr(estimator, "left_out"):
            raise TypeError(
                f"{purpose} needs a fitted looms model, such as KernelClassifier, or a "
                f"pipeline or search that ends in one; got {type(model).__name__}. "
                "looms.diagnostics.influence takes other classifiers."
            )
        check_is_fitted(estimator)
        fitted = estimator.fitted_
    if fitted.closed is None:
        raise ValueError(
            f"{purpose} needs models without single rows, which are refits for estimators of "
            "scikit-learn, and this model has no kernel: give a kernel among its candidates."
        )
    return fitted.closed.on_scale, by_kernels(fitted)


def classes_and_labels(y: AnyArray) -> tuple[AnyArray, AnyArray]:
    """The classes, and each sample's class index; ValueError for too few classes or sizes."""
    classes, labels, sizes = np.unique(y, return_inverse=True, return_counts=True)
    if len(classes) < 2:
        raise ValueError(
            f"y has one class only, {classes.tolist()[0]!r}: there is nothing to diagnose."
        )
    if sizes.min() < 2:
        raise ValueError(
            f"Class {classes.tolist()[int(sizes.argmin())]!r} has one member, and cannot be "
            "learned without it: leave it out, or merge it with another."
        )
    return classes, labels


def _learns_from_targets(before: Pipeline, X: Any, Z: Any) -> bool:
    """True if steps that transform `X` to `Z` when fitted with targets differ without targets."""
    try:
        alone = clone(before).fit_transform(X)
    except Exception:  # in whatever way a step says that it needs targets
        return True
    if alone.shape != Z.shape or sparse.issparse(alone) != sparse.issparse(Z):
        return True
    if sparse.issparse(Z):
        return bool((alone != Z).nnz)
    return not np.array_equal(np.asarray(alone), np.asarray(Z))


def frozen(fitted: Any) -> Any:
    """Unfitted copy whose parameters are the tuned hyper-parameters of the estimator.

    Estimators of other types are cloned: those that tune while they are fitted, such
    as `LogisticRegressionCV`, tune again in every refit.
    """
    estimator = clone(fitted)
    if not isinstance(fitted, SVC | NuSVC):
        return estimator
    if fitted.probability is True:  # trains five more models, which are not used
        estimator.set_params(probability=type(fitted)().probability)
    if fitted.kernel in ("rbf", "poly", "sigmoid"):
        estimator.set_params(gamma=float(fitted._gamma))
    if isinstance(fitted.class_weight, str):
        weights = zip(fitted.classes_.tolist(), fitted.class_weight_.tolist(), strict=True)
        estimator.set_params(class_weight=dict(weights))
    return estimator


class GivenMembers(KernelClassifier):
    """Stack, or model on landmarks, with given members: kernels, μ, weights and landmarks."""

    given: Fitted

    @classmethod
    def of(cls, fitted: Fitted) -> GivenMembers:
        """Unfitted, with the members of a fitted model."""
        outcome, recipe = fitted.outcome, fitted.recipe
        estimator = cls(
            "rbf" if fitted.leading is None else fitted.leading.kernel,
            mu=1.0,  # of none
            fit_intercept=fitted.fit_intercept,
            class_weight=class_weight(fitted) if recipe is None else recipe.class_weight,
            # The sigmoid of T11 serves two classes. The model's own probabilities are for new
            # samples: calibrated on leave-one-out outputs, they are no likelihood of those it has
            # seen.
            calibration=outcome.calibration if len(outcome.classes) > 2 else None,
        )
        estimator.given = fitted
        return estimator

    def __sklearn_clone__(self) -> GivenMembers:
        estimator: GivenMembers = super().__sklearn_clone__()
        estimator.given = self.given
        return estimator

    def decision_function(self, X: Any) -> Array:
        """Outputs, from which no threshold is subtracted."""
        return self._outputs(X)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> GivenMembers:
        """Solve each member anew, with the threshold that the model had."""
        X, y, weight = self._validated(X, y, sample_weight)
        rows = self._rows(X, y, weight, group_numbers(groups, len(y)))
        Y, zeta = rows.own(rows.targets), rows.own(rows.fit_weight)
        zeta = zeta * (len(zeta) / zeta.sum())
        units = Units.of(None, rows.y, rows.groups, classes=True, rows=rows.train)
        samples = training_rows(X, rows.train, self.given.pairwise)
        summed = [
            (one.weight, one.fit(one.left_out(samples, Y, zeta, self.fit_intercept), units, Y))
            for one in self.given.members
        ]
        fitted = Fitted.of(rows, units, summed, self.fit_intercept)
        rule = replace(fitted.rule, threshold=self.given.rule.threshold)
        self._set_fitted(replace(fitted, rule=rule))
        return self
