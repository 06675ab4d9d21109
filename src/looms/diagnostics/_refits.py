"""Refits: a machine fitted to samples by weight, many of them in parallel."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any, TypeAlias

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from sklearn.utils import _safe_indexing

from looms._threads import one_blas_thread
from looms._typing import AnyArray, Array
from looms.diagnostics._problem import Problem, is_pairwise
from looms.estimators import LSSVMClassifier

#: Called with the number of refits done and their total.
Progress: TypeAlias = Callable[[int, int], None]

#: Types for which a weight of two is the same as the row twice: subclasses may differ.
_WEIGHT_IS_REPETITION = (SVC, LogisticRegression, LSSVMClassifier)


def refitted(problem: Problem, weight: Array, y: AnyArray | None = None) -> tuple[Any, Any]:
    """The machine fitted to the samples by weight, and all samples in the form that it takes.

    Parameters
    ----------
    problem : machine and sample.
    weight : (n_samples,) whole numbers: how often each sample is in the training set.
        Repeated rows become sample weights where that is the same, and rows where not.
    y : (n_samples,) other labels than those of `problem`.

    Returns
    -------
    machine : fitted.
    X : all samples; for a kernel matrix with the columns of the training rows.
    """
    options = {}
    if folds(problem.machine):
        rows = np.flatnonzero(weight)
        if weight.max() > 1:
            options["sample_weight"] = weight[rows]
    else:
        rows = np.repeat(np.arange(problem.n_samples), weight.astype(int))
    y = problem.y if y is None else y
    X = problem.X
    if is_pairwise(problem.machine):
        X = X[:, rows]
    machine = clone(problem.machine).fit(_safe_indexing(X, rows), y[rows], **options)
    return machine, X


def folds(machine: Any) -> bool:
    """Whether repeated rows may become sample weights: not of a pipeline, whose steps see rows."""
    if type(machine) not in _WEIGHT_IS_REPETITION:
        return False
    return bool(machine.class_weight != "balanced")  # which counts rows


def all_of(
    task: Callable[..., Any],
    cases: Iterable[Any],
    total: int,
    n_jobs: int | None,
    progress: Progress | None,
) -> list[Any]:
    """``task(case)`` of every case, in order, by joblib; warnings are given once each.

    Parameters
    ----------
    task : function of a case alone, that can be sent to a worker.
    cases : of `total` number.
    n_jobs : as joblib takes it; the backend is whatever is configured.
    progress : called after every case.
    """
    several = effective_n_jobs(n_jobs) > 1
    results, said = [], Counter[tuple[type[Warning], str]]()
    parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    with one_blas_thread():
        for result, caught in parallel(delayed(_heard)(task, case, several) for case in cases):
            results.append(result)
            said.update(caught)
            if progress is not None:
                progress(len(results), total)
    for (category, message), times in said.items():
        of = "" if times == 1 == total else f" (in {times} of {total} refits)"
        warnings.warn(message + of, category, stacklevel=3)
    return results


def _heard(
    task: Callable[..., Any], case: Any, capped: bool
) -> tuple[Any, set[tuple[type[Warning], str]]]:
    with warnings.catch_warnings(record=True) as caught, _capped(capped):
        warnings.simplefilter("always")
        result = task(case)
    return result, {(warning.category, str(warning.message)) for warning in caught}


def _capped(capped: bool) -> Any:
    return one_blas_thread() if capped else nullcontext()
