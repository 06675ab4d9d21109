"""What is judged: a machine with its hyper-parameters held, and the sample it is judged on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets

from looms._typing import AnyArray
from looms.diagnostics._held import fitted_on, held, threshold_of

PREPROCESSING = ("auto", "held", "refitted")


@dataclass(frozen=True, eq=False)
class Problem:
    """A machine and a sample.

    Attributes
    ----------
    machine : not fitted, hyper-parameters held; never changed.
    X : (n_samples, n_features) what `machine` takes; its kernel matrix if it is pairwise.
    y : (n_samples,) labels as given.
    labels : (n_samples,) index of each label in `classes`.
    classes : (n_classes,) sorted labels.
    names : (n_samples,) names of the samples: the index of a data frame, else 0 to n − 1.
    preprocessing : "none"; "held", if what comes before the machine was fitted once to all
        samples; "refitted", if it is refitted with the machine.
    threshold : output of a support vector machine of two classes above which a sample is of the
        second; zero for machines that decide by themselves.
    """

    machine: Any
    X: Any
    y: AnyArray
    labels: AnyArray
    classes: AnyArray
    names: AnyArray
    preprocessing: str
    threshold: float = 0.0

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.y)


def posed(estimator: Any, X: Any, y: Any, preprocessing: str) -> Problem:
    """The problem that an estimator and a sample make, checked.

    Parameters
    ----------
    estimator : a classifier, fitted or not. A fitted one gives its hyper-parameters only; one
        that is not is fitted if it chooses any.
    X, y : the sample.
    preprocessing : "held", "refitted", or "auto": held unless a step learns from `y`.

    Raises
    ------
    ValueError
        For anything that is no classifier, targets that are not finite classes, one class, a
        class with one member, or another `preprocessing`.
    """
    if preprocessing not in PREPROCESSING:
        raise ValueError(
            f"preprocessing must be one of {', '.join(PREPROCESSING)}, got {preprocessing!r}."
        )
    if not is_classifier(estimator):
        raise ValueError(
            f"Deviance and error rate are of classes, and {type(estimator).__name__} is not a "
            "classifier."
        )
    check_consistent_length(X, y)
    y = column_or_1d(y)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    classes, labels = np.unique(y, return_inverse=True)
    _check_classes(classes, np.bincount(labels))
    names = np.asarray(X.index) if hasattr(X, "iloc") else np.arange(len(y))
    if not (sparse.issparse(X) or hasattr(X, "iloc")):
        X = np.asarray(X)
    estimator, steps = _divided(fitted_on(estimator, X, y))
    threshold = threshold_of(estimator)
    if not steps:
        return Problem(held(estimator, X), X, y, labels, classes, names, "none", threshold)
    before = clone(Pipeline(steps))
    Z = before.fit_transform(X, y)
    machine = held(estimator, Z)
    if preprocessing == "auto":
        preprocessing = "refitted" if learns_from_targets(before, X, Z) else "held"
    if preprocessing == "held":
        return Problem(machine, Z, y, labels, classes, names, "held", threshold)
    whole = Pipeline([*clone(before).steps, ("machine", machine)])
    return Problem(whole, X, y, labels, classes, names, "refitted", threshold)


def last_step(machine: Any) -> Any:
    """The machine itself, where it is the last step of a pipeline."""
    return machine[-1] if isinstance(machine, Pipeline) else machine


def learns_from_targets(before: Pipeline, X: Any, Z: Any) -> bool:
    """Whether steps that make `Z` of `X` and targets make anything else of `X` alone."""
    try:
        alone = clone(before).fit_transform(X)
    except Exception:  # however it says that it needs targets
        return True
    if alone.shape != Z.shape or sparse.issparse(alone) != sparse.issparse(Z):
        return True
    if sparse.issparse(Z):
        return bool((alone != Z).nnz)
    return not np.array_equal(np.asarray(alone), np.asarray(Z))


def is_pairwise(machine: Any) -> bool:
    """Whether it takes a kernel matrix."""
    return bool(get_tags(machine).input_tags.pairwise)


def _divided(estimator: Any) -> tuple[Any, list[tuple[str, Any]]]:
    """The last step, and the steps before it."""
    if not isinstance(estimator, Pipeline):
        return estimator, []
    steps = [
        (name, step) for name, step in estimator.steps[:-1] if step not in ("passthrough", None)
    ]
    last, inner = _divided(estimator.steps[-1][1])
    return last, [*steps, *((f"inner_{name}", step) for name, step in inner)]


def _check_classes(classes: AnyArray, members: AnyArray) -> None:
    if len(classes) < 2:
        raise ValueError(
            f"y has one class only, {classes.tolist()[0]!r}: there is nothing to diagnose."
        )
    if members.min() < 2:
        alone = classes.tolist()[int(members.argmin())]
        raise ValueError(
            f"Class {alone!r} has one member, and without it there is no such class to learn: "
            "leave it out, or merge it with another."
        )
