"""Selection of a kernel and a criterion among tuned candidates."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from looms import _html
from looms._typing import Array
from looms._words import count, estimate_text
from looms.calibration._calibrators import Calibrator
from looms.criteria import Criterion
from looms.kernels import Linear, Weighted
from looms.kernels._hyperparameters import CLOSE_TO_LINEAR
from looms.kernels._names import as_kernel, is_estimator, kernel_name
from looms.lssvm.fit import Fit, KernelMember
from looms.optimize._search import StopReason
from looms.selection._decisions import Rule
from looms.selection._low_rank import SAMPLE_ROWS
from looms.selection._problem import Problem, Tuned
from looms.selection._tuning import BoundMet, Tuning

#: Share of a sample of the rows that a search ends on for weights of features. With 5100 and 8000
#: rows a stack has 1.001 and 0.999 × the error of weights by 512 landmarks at tuned values.
_SHARE_FOR_WEIGHTS = 0.25


@dataclass(frozen=True, eq=False)
class Candidate:
    """A kernel tuned under a criterion, or an estimator of scikit-learn as it is.

    A list of candidates makes a pandas DataFrame.

    Attributes
    ----------
    kernel_name : name of the kernel as passed, or the repr of an object.
    kernel : kernel with the tuned hyper-parameters, or the fitted estimator.
    mu : tuned regularization; NaN for an estimator.
    criterion : name or object as passed.
    value, standard_error : value of the criterion, and its standard error.
    loss : what candidates are compared by, smaller is better: the balanced error rate for classes,
        or the loss of another threshold rule; the mean squared error for regression. With
        several candidates it is computed on folds that each was tuned without; if there are no
        such folds, on held-out outputs. Infinite if the candidate could not be evaluated anywhere.
    threshold : threshold of the outputs; (n_classes,) for several classes with a softmax.
    n_evaluations, n_failures : evaluations of the tuning on all rows, and the number of points at
        which the kernel matrix plus ridge was not positive definite.
    seconds : time of the tuning, on parts of the rows and on all.
    stop_reason : reason why the tuning stopped; its value is the advice.
    at_bounds : hyper-parameters that ended at a bound, with advice.
    """

    kernel_name: str
    kernel: Any
    mu: float
    criterion: str | Criterion
    value: float
    standard_error: float
    loss: float
    threshold: float | Array
    n_evaluations: int
    n_failures: int
    seconds: float
    stop_reason: StopReason
    at_bounds: tuple[BoundMet, ...]

    @property
    def params(self) -> dict[str, float]:
        """Tuned hyper-parameters by name; none of an estimator."""
        if is_estimator(self.kernel):
            return {}
        return {h.name: h.value for h in self.kernel.hyperparameters} | {"mu": self.mu}

    @property
    def name(self) -> str:
        """Kernel and criterion, as callbacks get them when the candidate begins."""
        return f"{self.kernel_name}, {self.criterion}"

    def __repr__(self) -> str:
        return f"Candidate({self.name}, loss={self.loss:.4g})"


def bounds_to_tell(one: Candidate, others: Sequence[Candidate]) -> list[BoundMet]:
    """Bounds that a candidate ended at, but for those that ask for a kernel among the others."""
    linear = any(isinstance(each.kernel, Linear) for each in others)
    return [met for met in one.at_bounds if not (linear and met.advice == CLOSE_TO_LINEAR)]


class Candidates(list[Candidate]):
    """Candidates in the order in which they were tried; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        rows = [
            (
                candidate.kernel_name,
                str(candidate.criterion),
                estimate_text(candidate.value, candidate.standard_error),
                estimate_text(candidate.loss),
                estimate_text(candidate.mu),
                str(candidate.n_evaluations),
                f"{candidate.seconds:.2f}",
                candidate.stop_reason.name.lower().replace("_", " "),
            )
            for candidate in self
        ]
        value = ("value ± s.e.", "held-out loss", "mu")
        head = ["kernel", "criterion", *value, "evaluations", "seconds", "stopped"]
        return _html.table(head, rows, count(len(self), "candidate"))


class HeldOutLoss(NamedTuple):
    """Loss of leave-one-out outputs, with the threshold and calibrator used.

    Attributes
    ----------
    value : the loss, smaller is better.
    threshold : threshold of the outputs; (n_classes,) for several classes with a softmax.
    calibrator : calibrator of the outputs, which may have set the threshold, or None.
    """

    value: float
    threshold: float | Array = 0.0
    calibrator: Calibrator | None = None

    def rule(self, tie: float) -> Rule:
        """Threshold and calibrator with a tie."""
        return Rule(self.threshold, self.calibrator, tie)


@dataclass(frozen=True, eq=False)
class Choice:
    """Candidates, and the model of the best one.

    Attributes
    ----------
    candidates : candidates in the order in which they were tried.
    tunings : of each candidate.
    fits : models of the candidates that could be evaluated, by place.
    index : of the candidate with the smallest loss, or the largest weight in a stack.
    loss : loss, threshold and calibrator of the selected candidate.
    weights : (n_candidates,) weights of their outputs, which may all be one's; None if they were
        not stacked.
    parts : what each candidate was tuned to on the parts of the rows of its problem.
    """

    candidates: list[Candidate]
    tunings: list[Tuning]
    fits: dict[int, Fit]
    index: int
    loss: HeldOutLoss
    weights: Array | None = None
    parts: list[tuple[Tuned, ...]] = field(default_factory=list)

    @property
    def summed(self) -> list[tuple[float, Fit]]:
        """Weights of the models that are summed, or one of the best, and their fits."""
        if self.weights is None:
            return [(1.0, self.fits[self.index])]
        return [(w, self.fits[k]) for k, w in enumerate(self.weights.tolist()) if w]

    def combined(self, weights: Array, losses: Array, loss: HeldOutLoss, stacked: bool) -> Choice:
        """The same candidates with other losses; stacked, or the one with all the weight."""
        candidates = [
            replace(candidate, loss=float(own))
            for candidate, own in zip(self.candidates, losses, strict=True)
        ]
        k = int(np.argmax(weights))
        candidates[k] = replace(candidates[k], threshold=loss.threshold)
        kept = weights if stacked else None
        return replace(self, candidates=candidates, index=k, loss=loss, weights=kept)


def choose(
    problems: Sequence[Problem],
    *,
    loss_of: Callable[[Array], HeldOutLoss],
    watcher: Any,
    by_value: bool = False,
) -> Choice:
    """Candidate with the smallest loss, among kernels tuned under criteria, and estimators.

    The first of equally good candidates is selected. If ``watcher`` stops the selection after a
    candidate, the rest are skipped, provided that one could be evaluated.

    Parameters
    ----------
    problems : a problem for each candidate.
    loss_of : loss of held-out outputs by which candidates are compared; it sets the threshold, too.
    watcher : its methods are called as those of `CallbackWatcher` of the estimators; a true value
        stops the selection.
    by_value : whether they are compared by the criterion instead, as the points of a grid are.

    Raises
    ------
    ValueError
        If no candidate could be evaluated anywhere; the message has the reason for the first.
    """
    callbacks = {
        "begun": watcher.stage_begins,
        "evaluated": watcher.evaluation_done,
        "progress": watcher.iteration_done,
    }
    candidates: list[Candidate] = []
    tunings: list[Tuning] = []
    parts: list[tuple[Tuned, ...]] = []
    fits: dict[int, Fit] = {}
    losses: dict[int, HeldOutLoss] = {}
    failures: list[str] = []
    for problem in problems:
        candidate = problem.candidate
        watcher.candidate_begins(f"{kernel_name(candidate.kernel)}, {candidate.criterion}")
        began = time.perf_counter()
        tuned = _tuned(problem, not by_value, **callbacks)
        seconds = time.perf_counter() - began
        loss = HeldOutLoss(np.inf) if tuned.fit is None else loss_of(tuned.fit.decided.outputs)
        compared = loss._replace(value=tuned.tuning.value) if by_value else loss
        candidates.append(_candidate(problem, tuned, compared, seconds))
        tunings.append(tuned.tuning)
        parts.append(tuned.parts)
        if tuned.fit is None:
            failures.append(tuned.failure)
        else:
            fits[len(tunings) - 1], losses[len(tunings) - 1] = tuned.fit, loss
        del tuned  # its samples go before those of the next problem come
        if watcher.candidate_ends(candidates[-1]) and fits:
            break
    if not fits:
        raise ValueError(f"No candidate could be evaluated. {failures[0]}")
    best = min(fits, key=lambda k: candidates[k].loss)
    return Choice(candidates, tunings, fits, best, losses[best], parts=parts)


def _tuned(problem: Problem, learns_weights: bool, **callbacks: Any) -> Tuned:
    """Values tuned on the parts of the rows, if there are any, and then on all.

    Weights of features that the kernel leaves open are learned first: those of the kernel tuned
    without them, under the same criterion. Of many rows they are learned from a sample, and the
    search ends on a share of it.
    """
    parts = tuple(_tuned(part, learns_weights)._replace(samples=None) for part in problem.parts)
    of_parts = [part.tunings for part in parts if part.fit is not None]
    candidate = problem.candidate
    kernel = None if is_estimator(candidate.kernel) else as_kernel(candidate.kernel)
    problem = replace(problem, starts=tuple(tunings[-1] for tunings in of_parts))
    if not (learns_weights and isinstance(kernel, Weighted) and kernel.weights is None):
        return problem.tune(**callbacks)._replace(parts=parts)
    some, starts = problem.sampled(SAMPLE_ROWS), tuple(tunings[0] for tunings in of_parts)
    unweighted = candidate.with_kernel(
        kernel.kernel, None if some is problem else _SHARE_FOR_WEIGHTS
    )
    plain = replace(some, candidate=unweighted, starts=starts).tune(**callbacks)
    if plain.fit is None:
        return plain._replace(parts=parts)
    assert isinstance(plain.fit.member, KernelMember)
    assert plain.samples is not None
    weighted = kernel.learned(plain.kernel, plain.samples, plain.fit.member.dual_coef)
    tuned = replace(problem, candidate=replace(candidate, kernel=weighted)).tune(**callbacks)
    return tuned._replace(tunings=plain.tunings + tuned.tunings, parts=parts)


def _candidate(problem: Problem, tuned: Tuned, loss: HeldOutLoss, seconds: float) -> Candidate:
    """Record of a candidate."""
    return Candidate(
        kernel_name=kernel_name(problem.candidate.kernel),
        kernel=tuned.kernel if tuned.fit is None else tuned.fit.member.kernel,
        mu=tuned.mu,
        criterion=problem.candidate.criterion,
        value=tuned.tuning.value,
        standard_error=tuned.tuning.standard_error,
        loss=loss.value,
        threshold=loss.threshold,
        n_evaluations=sum(tuning.n_evaluations for tuning in tuned.tunings),
        n_failures=sum(tuning.n_failures for tuning in tuned.tunings),
        seconds=seconds,
        stop_reason=tuned.tuning.stop_reason,
        at_bounds=tuned.tuning.at_bounds,
    )
