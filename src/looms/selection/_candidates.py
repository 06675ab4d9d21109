"""Selection of a kernel and a criterion among tuned candidates."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from looms import _html
from looms._typing import Array
from looms._words import count, estimate_text
from looms.calibration._calibrators import Calibrator
from looms.criteria import Criterion
from looms.held_out import HeldOut
from looms.kernels import Linear, Weighted
from looms.kernels._hyperparameters import CLOSE_TO_LINEAR
from looms.kernels._names import KernelLike, as_kernel, is_estimator, kernel_name
from looms.lssvm import NotPositiveDefiniteError
from looms.lssvm.fit import Fit, KernelMember
from looms.optimize._search import Outcome, Point
from looms.selection._objective import HeldOutCriterion
from looms.selection._tuning import BoundMet, Tuning

#: Landmarks of the model that weights of features are learned from, at most.
_LANDMARKS_FOR_WEIGHTS = 512


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
    n_evaluations, n_failures, seconds : evaluations and time of the tuning, and the number of
        points at which the kernel matrix plus ridge was not positive definite.
    outcome : reason why the tuning stopped; its value is the advice.
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
    outcome: Outcome
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
                candidate.outcome.name.lower().replace("_", " "),
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


#: Loss of the leave-one-out outputs of a candidate.
LossOf: TypeAlias = Callable[[HeldOut], HeldOutLoss]


@dataclass(frozen=True, eq=False)
class Choice:
    """Candidates, and the model of the best one.

    Attributes
    ----------
    candidates : candidates in the order in which they were tried.
    models : tuning of each candidate, and its model or None.
    index : of the candidate with the smallest loss, or the largest weight in a stack.
    loss : loss, threshold and calibrator of the selected candidate.
    weights : (n_candidates,) weights of their outputs, which may all be one's; None if they were
        not stacked.
    """

    candidates: list[Candidate]
    models: list[tuple[Tuning, Fit | None]]
    index: int
    loss: HeldOutLoss
    weights: Array | None = None

    @property
    def best(self) -> Candidate:
        """The selected candidate."""
        return self.candidates[self.index]

    @property
    def tuning(self) -> Tuning:
        """Its tuning."""
        return self.models[self.index][0]

    @property
    def fit(self) -> Fit:
        """Its model."""
        fit = self.models[self.index][1]
        if fit is None:
            raise ValueError(f"{self.best} has no model and cannot be the best.")
        return fit

    @property
    def fits(self) -> dict[int, Fit]:
        """Models of the candidates that could be evaluated, by place."""
        return {k: fit for k, (_, fit) in enumerate(self.models) if fit is not None}

    def combined(self, weights: Array, losses: Array, loss: HeldOutLoss, stacked: bool) -> Choice:
        """The same candidates with other losses; stacked, or the one with all the weight."""
        candidates = [
            replace(candidate, loss=float(own))
            for candidate, own in zip(self.candidates, losses, strict=True)
        ]
        k = int(np.argmax(weights))
        candidates[k] = replace(candidates[k], threshold=loss.threshold)
        return Choice(candidates, self.models, k, loss, weights if stacked else None)


class Watcher(Protocol):
    """Callbacks of the selection; a true return value stops it."""

    def candidate_begins(self, name: str) -> None: ...

    def stage_begins(self, objective: HeldOutCriterion) -> None: ...

    def evaluation_done(self, objective: HeldOutCriterion, point: Point) -> None: ...

    def iteration_done(self, objective: HeldOutCriterion, iteration: int, point: Point) -> bool: ...

    def candidate_ends(self, candidate: Candidate) -> bool: ...


@dataclass(frozen=True, eq=False)
class Tried:
    """A kernel, or an estimator of scikit-learn, to be tuned under a criterion.

    Attributes
    ----------
    kernel, criterion : as they were passed.
    objective_of : objective of a kernel, or of the estimator; on ``at_most`` landmarks if given.
    search : `looms.selection._tune.tune` or a scan with its options, without the objective, its
        callbacks and random state.
    """

    kernel: KernelLike | Any
    criterion: str | Criterion
    objective_of: Callable[..., Any]
    search: Callable[..., tuple[Tuning, Fit | None]]

    def objective_for_weights(self, kernel: Weighted) -> Any:
        """Objective of the kernel without weights of features, which these are learned from."""
        return self.objective_of(kernel.kernel, at_most=_LANDMARKS_FOR_WEIGHTS)


def choose(
    tried: Sequence[Tried],
    *,
    loss_of: LossOf,
    watcher: Watcher,
    random_state: int,
    by_value: bool = False,
) -> Choice:
    """Candidate with the smallest loss, among kernels tuned under criteria, and estimators.

    The first of equally good candidates is selected. If ``watcher`` stops the selection after a
    candidate, the rest are skipped, provided that one could be evaluated. Feature weights that
    are to be learned are those of the kernel tuned without them, under the same criterion.

    Parameters
    ----------
    tried : the candidates.
    loss_of : loss by which candidates are compared; it also sets the threshold.
    by_value : whether they are compared by the criterion instead, as the points of a grid are.
    watcher : callbacks.
    random_state : seed of the subsamples, which are the same for every candidate.

    Raises
    ------
    ValueError
        If no candidate could be evaluated anywhere; the message has the reason for the first.
    """
    candidates: list[Candidate] = []
    models: list[tuple[Tuning, Fit | None]] = []
    best: tuple[int, HeldOutLoss] | None = None
    objective: Any = None
    reason = ""
    for one in tried:
        kernel, criterion, name = one.kernel, one.criterion, kernel_name(one.kernel)
        opened: Any = kernel if is_estimator(kernel) else as_kernel(kernel)
        searched = partial(_searched, one.search, watcher, random_state)
        before = 0, 0
        learns = isinstance(opened, Weighted) and opened.weights is None and not by_value
        objective = None  # the matrices of a kernel go before those of the next come
        watcher.candidate_begins(f"{name}, {criterion}")
        began = time.perf_counter()
        objective = one.objective_for_weights(opened) if learns else one.objective_of(opened)
        tuning, fit = objective.tuned(searched)
        if learns and fit is not None:
            before = tuning.n_evaluations, tuning.n_failures
            assert isinstance(fit.member, KernelMember)
            weighted = opened.learned(
                objective.kernel_at(tuning.theta), objective.samples, fit.member.dual_coef
            )
            objective = None
            objective = one.objective_of(weighted)
            tuning, fit = objective.tuned(searched)
        seconds = time.perf_counter() - began
        loss = HeldOutLoss(np.inf) if fit is None else loss_of(fit.decided)
        tuned = objective.kernel_at(tuning.theta) if fit is None else fit.member.kernel
        compared = loss._replace(value=tuning.value) if by_value else loss
        candidate = Candidate(
            name,
            tuned,
            objective.mu_at(tuning.theta),
            criterion,
            tuning.value,
            tuning.standard_error,
            compared.value,
            compared.threshold,
            before[0] + tuning.n_evaluations,
            before[1] + tuning.n_failures,
            seconds,
            tuning.outcome,
            tuning.at_bounds,
        )
        candidates.append(candidate)
        models.append((tuning, fit))
        if fit is None:
            reason = reason or f"{objective.kernel!r}: {_failure(objective, tuning)}"
        elif best is None or candidate.loss < candidates[best[0]].loss:
            best = len(candidates) - 1, loss
        if watcher.candidate_ends(candidate) and best is not None:
            break
    if best is None:
        raise ValueError(f"No candidate could be evaluated. {reason}")
    return Choice(candidates, models, *best)


def _searched(
    search: Callable[..., tuple[Tuning, Fit | None]],
    watcher: Watcher,
    random_state: int,
    objective: Any,
) -> tuple[Tuning, Fit | None]:
    """The search of an objective, with its callbacks and a random state of its own."""
    return search(
        objective,
        random_state=np.random.RandomState(random_state),
        progress=watcher.iteration_done,
        evaluated=watcher.evaluation_done,
        begun=watcher.stage_begins,
    )


def _failure(objective: Any, tuning: Tuning) -> str:
    """Message about a tuning that ended without a model or a finite criterion."""
    known: str = getattr(objective, "failure", "")
    if known:
        return known
    try:
        objective.fit(tuning.theta)
    except NotPositiveDefiniteError as error:
        return str(error)
    return f"the criterion is not finite at mu = {objective.mu_at(tuning.theta):.3g}."
