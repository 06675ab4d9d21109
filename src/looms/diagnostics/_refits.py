"""Refits by sample weight, many of them in parallel, and the likelihood of each.

A training set is a vector of weights: a bootstrap replicate weights each sample by how often it
was drawn, and a held-out sample has weight zero. So one function serves all the statistics.
"""

from __future__ import annotations

import copy
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, TypeAlias, TypeVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, NuSVC
from sklearn.utils import _safe_indexing, get_tags

from looms._recording import recorded_warnings
from looms._threads import one_blas_thread, openmp_threads
from looms._typing import AnyArray, Array
from looms.calibration._sigmoid import fit_sigmoid
from looms.diagnostics._problem import GivenMembers, Problem
from looms.estimators._in_pipelines import parts_of
from looms.svm._one_against_one import class_log_probabilities
from looms.svm._svc import kernel_matrix

#: Called with the number of refits done and their total.
Progress: TypeAlias = Callable[[int, int], None]
Result = TypeVar("Result")

#: Largest number of samples for which n×n matrices are kept, 800 MB each: the kernel matrix,
#: unscaled and scaled, the tableau of the paths, and twice the outputs of all models.
LARGEST = 10_000

#: Types for which a weight of two is the same as a repeated row; subclasses may differ.
_WEIGHT_IS_REPETITION = (SVC, LogisticRegression)


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Log likelihoods of the model of all samples and of those without each.

    Every model has the sigmoid fitted to its own training samples, unless it gives
    probabilities itself.

    Attributes
    ----------
    fitted : (n_samples,) log p̂ of each sample's class by the model of all samples.
    held_out : (n_samples, n_classes) log p̂ of every class by the model without the sample.
    left_out : (n_samples,) log p̂ of each sample's class by the model without it.
    rest : (n_samples,) sum of log p̂ over the n − 1 other samples by the model without sample i;
        with groups (n_groups,), over the samples of other groups by the model without the group.
    """

    fitted: Array
    held_out: Array
    left_out: Array
    rest: Array


def refit(problem: Problem, weight: Array) -> tuple[Any, Any]:
    """The model fitted to the samples by weight, and its input for all samples.

    Parameters
    ----------
    problem : model and samples.
    weight : (n_samples,) whole numbers, the multiplicity of each sample in the training set.
        It becomes a sample weight if that gives the same model, else repeated rows.

    Returns
    -------
    model : fitted model.
    X : all samples; a kernel matrix has the columns of the training rows.
    """
    estimator, y = clone(problem.estimator), problem.y
    options = {}
    # Balanced weights count rows, and the steps of a pipeline see rows.
    if type(estimator) in _WEIGHT_IS_REPETITION and estimator.class_weight != "balanced":
        rows = np.flatnonzero(weight)
        if weight.max() > 1:
            options["sample_weight"] = weight[rows]
    else:
        rows = np.repeat(np.arange(problem.n_samples), weight.astype(int))
    X = problem.X[:, rows] if get_tags(estimator).input_tags.pairwise else problem.X
    return estimator.fit(_safe_indexing(X, rows), y[rows], **options), X


def with_kernel_matrix(problem: Problem) -> Problem:
    """The problem of an SVC on its kernel matrix, computed once for many refits.

    Other models are unchanged, and so is an SVC in a pipeline that is refitted, because its
    kernel matrix differs in every refit.
    """
    estimator = problem.estimator
    small = problem.n_samples <= LARGEST
    if not (type(estimator) is SVC and estimator.kernel != "precomputed" and small):
        return problem
    K = kernel_matrix(clone(estimator).fit(problem.X, problem.y), problem.X)
    return replace(problem, estimator=clone(estimator).set_params(kernel="precomputed"), X=K)


def in_parallel(
    task: Callable[[int], Result],
    cases: Sequence[int],
    n_jobs: int | None,
    progress: Progress | None,
) -> list[Result]:
    """``task(case)`` for each case, in order, by the configured joblib backend.

    Every warning is issued once, with the number of cases that issued it.
    """
    results: list[Result] = []
    total, times = len(cases), Counter[tuple[type[Warning], str]]()
    run = Parallel(n_jobs=n_jobs, return_as="generator")
    for result, caught in run(delayed(_recorded)(task, case) for case in cases):
        results.append(result)
        times.update(caught)
        if progress is not None:
            progress(len(results), total)
    for (category, message), count in times.items():
        of = "" if count == 1 == total else f" (in {count} of {total} refits)"
        warnings.warn(message + of, category, stacklevel=4)
    return results


def _recorded(
    task: Callable[[int], Result], case: int
) -> tuple[Result, set[tuple[type[Warning], str]]]:
    """The result of a task and its warnings; BLAS and OpenMP have one thread, for many refits."""
    with recorded_warnings() as recorded, one_blas_thread(), openmp_threads(0):
        result = task(case)
    return result, {(type(warning), str(warning)) for warning in recorded}


def by_refits(
    problem: Problem,
    likelihood: bool,
    group: AnyArray,
    n_jobs: int | None,
    progress: Progress | None,
) -> tuple[AnyArray, AnyArray, Likelihood | None]:
    """Classes by the model of all samples and by those without each group; their likelihood."""
    n = problem.n_samples
    everything = np.ones(n)
    with openmp_threads(n):
        estimator, X = refit(problem, everything)
        predicted = np.asarray(estimator.predict(X))
        if likelihood:
            log_p = log_probabilities(estimator, X, problem.labels, everything)
            fitted = own_class(log_p, problem.labels, everything)  # refused before other refits
    task = partial(_refit_without, problem, likelihood, group)
    refits = in_parallel(task, range(int(group.max()) + 1), n_jobs, progress)
    predicted_without, held_out = np.empty_like(predicted), np.empty((n, len(problem.classes)))
    for k, (labels, log_p, _) in enumerate(refits):
        predicted_without[group == k], held_out[group == k] = labels, log_p
    if not likelihood:
        return predicted, predicted_without, None
    left_out = held_out[np.arange(n), problem.labels]
    rest = np.array([one for _, _, one in refits])
    return predicted, predicted_without, Likelihood(fitted, held_out, left_out, rest)


def _refit_without(
    problem: Problem, likelihood: bool, group: AnyArray, k: int
) -> tuple[AnyArray, Array, float]:
    """Classes and log probabilities of group k by the model without it; sum over the others."""
    out = group == k
    weight = np.where(out, 0.0, 1.0)
    estimator, X = refit(problem, weight)
    predicted = np.asarray(estimator.predict(_safe_indexing(X, np.flatnonzero(out))))
    if not likelihood:
        return predicted, np.array(np.nan), np.nan
    log_p = log_probabilities(estimator, X, problem.labels, weight)
    own = own_class(log_p, problem.labels, weight)
    return predicted, log_p[out], float(own[~out].sum())


def check_likelihood(problem: Problem) -> None:
    """ValueError unless the model has probabilities, or decision values to make them of."""
    estimator = problem.estimator
    model = parts_of(estimator).last
    name = "The model" if isinstance(model, GivenMembers) else type(model).__name__
    if not (hasattr(estimator, "decision_function") or hasattr(estimator, "predict_proba")):
        raise ValueError(
            f"{name} has neither decision_function nor predict_proba, so it has no deviance; "
            "wrap it in sklearn.calibration.CalibratedClassifierCV."
        )
    several = len(problem.classes) > 2
    if several and not (hasattr(estimator, "predict_proba") or _is_libsvm(estimator)):
        raise ValueError(
            f"{name} has no predict_proba, and a sigmoid needs two classes; y has "
            f"{len(problem.classes)}. Wrap it in sklearn.calibration.CalibratedClassifierCV."
        )


def log_probabilities(estimator: Any, X: Any, labels: AnyArray, weight: Array) -> Array:
    """Log probability of every class for every sample, (n_samples, n_classes).

    A support vector classifier gets Platt's sigmoid, fitted to its decision values, whatever its
    ``probability``, because its own predict_proba comes from other models, on folds
    [T11 section 2.4]. So do models without predict_proba. Others give the probabilities
    themselves.

    Parameters
    ----------
    model : model fitted to the samples of positive `weight`.
    X : (n_samples, n_features) all samples.
    labels : (n_samples,) index of each sample's class.
    weight : (n_samples,) how often each sample counts for the sigmoid.
    """
    if hasattr(estimator, "predict_proba") and not _is_libsvm(estimator):
        with np.errstate(divide="ignore"):  # log 0, refused by `check_possible`
            return np.log(np.asarray(estimator.predict_proba(X), dtype=np.float64))
    if labels.max() == 1:
        return sigmoid_log_probabilities(estimator.decision_function(X)[:, None], labels, weight)
    one_against_one = copy.copy(parts_of(estimator).last).set_params(decision_function_shape="ovo")
    if isinstance(estimator, Pipeline):
        one_against_one = Pipeline([*estimator.steps[:-1], ("model", one_against_one)])
    # LIBSVM's output of a pair is positive for its first class.
    return sigmoid_log_probabilities(-one_against_one.decision_function(X), labels, weight)


def sigmoid_log_probabilities(outputs: Array, labels: AnyArray, weight: Array) -> Array:
    """Log probability of every class, (n, k), by the sigmoids of the outputs of every pair.

    Parameters
    ----------
    outputs : (n, n_pairs), positive for the second class, as in `looms.svm._one_against_one`.
    labels : (n,) index of each sample's class.
    weight : (n,) how often each sample counts for the sigmoids, whose own weights are only ratios.
    """
    log_odds, times = np.empty(outputs.shape), weight.astype(int)
    for q, (a, b) in enumerate(combinations(range(int(labels.max()) + 1), 2)):
        rows = np.repeat(np.arange(len(labels)), times * ((labels == a) | (labels == b)))
        sigmoid = fit_sigmoid(outputs[rows, q], np.where(labels[rows] == b, 1, -1))
        log_odds[:, q] = -(sigmoid.slope * outputs[:, q] + sigmoid.intercept)
    return class_log_probabilities(log_odds)


def own_class(log_p: Array, labels: AnyArray, weight: Array) -> Array:
    """Log probability of each sample's class, (n,); ValueError as in `check_possible`."""
    own = log_p[np.arange(len(labels)), labels]
    check_possible(own[weight > 0])
    return np.asarray(own)


def check_possible(log_likelihood: Array) -> None:
    """ValueError if the class of a sample has probability zero."""
    n_impossible = np.count_nonzero(~np.isfinite(log_likelihood))
    if n_impossible:
        raise ValueError(
            f"{n_impossible} samples have probability 0 of their own class, so the "
            "deviance is infinite; use an estimator with smoother probabilities, or wrap it in "
            "sklearn.calibration.CalibratedClassifierCV."
        )


def _is_libsvm(estimator: Any) -> bool:
    return isinstance(parts_of(estimator).last, SVC | NuSVC)
