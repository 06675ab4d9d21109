"""Selection of a kernel and a criterion among tuned candidates."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol, TypeAlias

import numpy as np

from looms._typing import Array
from looms.criteria import Criterion
from looms.held_out import HeldOut
from looms.kernels import Kernel
from looms.kernels._names import as_kernel, kernel_name
from looms.lssvm import NotPositiveDefiniteError
from looms.lssvm._system import Fit
from looms.optimize import Outcome, Point
from looms.selection._objective import Objective
from looms.selection._tune import BoundMet, Tuning, tune


@dataclass(frozen=True, eq=False)
class Candidate:
    """Kernel tuned under a criterion. A list of these makes a pandas DataFrame.

    Attributes
    ----------
    kernel_name : name of the kernel as passed, or the repr of an object.
    kernel : with the tuned hyper-parameters.
    mu : tuned regularization.
    criterion : name or object as passed.
    value, standard_error : of the criterion.
    score : what candidates compete by, smaller is better: the leave-one-out balanced
        error rate for classes, or what their threshold is set for; PRESS for regression.
        Infinite if the candidate could not be evaluated anywhere.
    threshold : of the outputs, for two classes; else zero.
    n_evaluations, n_failures, seconds : what the tuning took, and at how many points
        the kernel matrix plus ridge was not positive definite.
    outcome : reason why the tuning stopped; its value is the advice.
    at_bounds : hyper-parameters that ended at a bound, with advice.
    """

    kernel_name: str
    kernel: Kernel
    mu: float
    criterion: Any
    value: float
    standard_error: float
    score: float
    threshold: float
    n_evaluations: int
    n_failures: int
    seconds: float
    outcome: Outcome
    at_bounds: tuple[BoundMet, ...]

    def __repr__(self) -> str:
        name = self.criterion if isinstance(self.criterion, str) else repr(self.criterion)
        return f"Candidate({type(self.kernel).__name__}, {name}, score={self.score:.4g})"


@dataclass(frozen=True, eq=False)
class Choice:
    """Candidates, and the machine of the best one."""

    candidates: list[Candidate]
    best: Candidate
    tuning: Tuning
    fit: Fit


#: Score, smaller is better, and threshold of some leave-one-out outputs.
Judge: TypeAlias = Callable[[HeldOut], tuple[float, float]]


class Watcher(Protocol):
    """Callbacks of the selection; a true return value stops it."""

    def candidate_begins(self, kernel: Kernel, criterion: Any) -> None: ...

    def evaluation_done(self, objective: Objective, point: Point) -> None: ...

    def iteration_done(self, objective: Objective, iteration: int, point: Point) -> bool: ...

    def candidate_ends(self, candidate: Candidate) -> bool: ...


def choose(
    X: Any,
    y: Array,
    *,
    kernels: Sequence[Any],
    criteria: Sequence[str | Criterion],
    judge: Judge,
    watcher: Watcher,
    random_state: int,
    objective_options: dict[str, Any],
    tune_options: dict[str, Any],
) -> Choice:
    """Best candidate by ``judge``, of every kernel tuned under every criterion.

    Of equally good candidates the first is chosen. Every candidate is tuned on the
    same subsamples. If ``watcher`` stops the selection after a candidate, the rest are skipped,
    provided that one could be evaluated.

    Raises
    ------
    ValueError
        If no candidate could be evaluated anywhere, with the reason of the first.
    """
    candidates: list[Candidate] = []
    chosen: tuple[Candidate, Tuning, Fit] | None = None
    objective: Objective | None = None
    reason = ""
    for n_tried, (kernel_argument, criterion) in enumerate(product(kernels, criteria)):
        kernel = as_kernel(kernel_argument)
        if n_tried % len(criteria) == 0:
            objective = None  # the matrices of a kernel go before those of the next come
        watcher.candidate_begins(kernel, criterion)
        began = time.perf_counter()
        if objective is None:
            objective = Objective(X, y, kernel=kernel, criterion=criterion, **objective_options)
        else:
            objective = objective.with_criterion(criterion)
        tuning, fit = tune(
            objective,
            random_state=np.random.RandomState(random_state),
            progress=watcher.iteration_done,
            evaluated=watcher.evaluation_done,
            **tune_options,
        )
        seconds = time.perf_counter() - began
        if fit is None and not reason:
            reason = f"{objective.kernel!r}: {_reason(objective, tuning)}"
        candidate = _candidate(
            kernel_name(kernel_argument), objective, criterion, tuning, fit, judge, seconds
        )
        candidates.append(candidate)
        if fit is not None and (chosen is None or candidate.score < chosen[0].score):
            chosen = candidate, tuning, fit
        if watcher.candidate_ends(candidate) and chosen is not None:
            break
    if chosen is None:
        raise ValueError(f"No candidate could be evaluated. {reason}")
    return Choice(candidates, *chosen)


def _reason(objective: Objective, tuning: Tuning) -> str:
    """Message on a tuning that ended without a machine or a finite criterion."""
    try:
        objective.fit(tuning.theta)
    except NotPositiveDefiniteError as error:
        return str(error)
    return f"the criterion is not finite at mu = {objective.mu_at(tuning.theta):.3g}."


def _candidate(
    kernel_name: str,
    objective: Objective,
    criterion: str | Criterion,
    tuning: Tuning,
    fit: Fit | None,
    judge: Judge,
    seconds: float,
) -> Candidate:
    score, threshold = (np.inf, 0.0) if fit is None else judge(fit.mean_held_out)
    return Candidate(
        kernel_name=kernel_name,
        kernel=objective.kernel_at(tuning.theta),
        mu=objective.mu_at(tuning.theta),
        criterion=criterion,
        value=tuning.value,
        standard_error=tuning.standard_error,
        score=score,
        threshold=threshold,
        n_evaluations=tuning.n_evaluations,
        n_failures=tuning.n_failures,
        seconds=seconds,
        outcome=tuning.outcome,
        at_bounds=tuning.at_bounds,
    )
