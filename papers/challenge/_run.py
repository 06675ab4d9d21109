"""Runs experiments on a data set, through `looms.assess` and its store.

All experiments of a data set are run on the same splits, and every part of a plan reads what it
needs from these runs. The choice by leave-one-out in a split is the experiment whose
leave-one-out balanced error rate is smallest there, as if all candidates had been tuned and one
chosen in that split. So a plan can be run in parts and in any order, and it can grow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score, make_scorer
from sklearn.pipeline import Pipeline

from looms import Search
from looms._typing import AnyArray
from looms.assessment import AllSplitsRaisedError, assess
from looms.assessment._assess import Progress, stored
from looms.assessment._result import Assessment
from looms.assessment._scoring import smaller_is_better
from looms.assessment._splits import Rows
from looms.assessment._splits import plan as plan_splits
from looms.criteria._error_rates import balanced_error_rate
from looms.estimators import KernelClassifier
from looms.estimators._metrics import Scorer
from looms.held_out import HeldOut
from looms.threshold import find_threshold
from papers.challenge._data import ChallengeData
from papers.challenge._plans import PaperExperiment
from papers.challenge._preparation import preparation
from papers.challenge._reduced import ReducedClassifier
from papers.optimizers import SearchBy

#: Share of the test rows, as in the papers.
TEST_SIZE = 0.1

#: Called when a part begins, with a text, its number, and the number of parts.
Announce = Callable[[str, int, int], object]


def balanced_error(
    y: AnyArray, predicted: AnyArray, sample_weight: AnyArray | None = None
) -> float:
    """Balanced error rate, the mean over classes of their error rates."""
    return 1.0 - float(balanced_accuracy_score(y, predicted, sample_weight=sample_weight))


@smaller_is_better
def miss(model: Any, X: Any, y: AnyArray) -> float:
    """Scorer: share of the positive rows that are classified as negative."""
    return float(np.mean(np.asarray(model.predict(X))[np.asarray(y) > 0] < 0))


@smaller_is_better
def false_alarm(model: Any, X: Any, y: AnyArray) -> float:
    """Scorer: share of the negative rows that are classified as positive."""
    return float(np.mean(np.asarray(model.predict(X))[np.asarray(y) < 0] > 0))


@smaller_is_better
def ber_at_zero(model: Any, X: Any, y: AnyArray) -> float:
    """Scorer: balanced error rate with the threshold at 0."""
    threshold = -_machine(model).threshold_
    return balanced_error_rate(y, model.decision_function(X), threshold=threshold)


@smaller_is_better
def ber_train(model: Any, X: Any, y: AnyArray) -> float:
    """Scorer: balanced error rate on the training rows."""
    return balanced_error_rate(*_of_training_rows(model))


@smaller_is_better
def ber_train_threshold(model: Any, X: Any, y: AnyArray) -> float:
    """Scorer: balanced error rate with the threshold that is best on the training rows.

    [G06] calls this threshold ineffective, most of all if it separates those rows.
    """
    threshold, _ = find_threshold(_of_training_rows(model))
    return balanced_error_rate(y, model.decision_function(X), threshold=threshold)


@smaller_is_better
def ber_best_on_test(model: Any, X: Any, y: AnyArray) -> float:
    """Scorer: balanced error rate with the threshold that is best on these very rows.

    It is optimistic; the printed rates of [C06 Table III] are near it.
    """
    return max(find_threshold(HeldOut(y, model.decision_function(X)))[1], 0.0)


def _machine(model: Any) -> Any:
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def _of_training_rows(model: Any) -> HeldOut:
    """Labels and outputs of the training rows, in the form of held-out outputs."""
    machine = _machine(model)
    return HeldOut(machine.loo_.y, machine.decision_function(machine.X_fit_))


#: Scores of every experiment.
SCORING: dict[str, str | Scorer] = {
    "ber": make_scorer(balanced_error),
    "auc": "roc_auc",
    "miss": miss,
    "false_alarm": false_alarm,
    "ber_train": ber_train,
    "ber_train_threshold": ber_train_threshold,
    "ber_at_zero": ber_at_zero,
    "ber_best_on_test": ber_best_on_test,
}


def estimator_of(
    data: ChallengeData, experiment: PaperExperiment, optimizer: str = "lbfgs"
) -> Pipeline:
    """Unfitted pipeline of the preprocessing of a data set and the machine of an experiment.

    The threshold is the one with the smallest leave-one-out balanced error rate [G06].

    Parameters
    ----------
    data : ChallengeData
        The data set.
    experiment : PaperExperiment
        The experiment.
    optimizer : {"lbfgs", "scg", "nelder-mead"}, default="lbfgs"
        Optimizer of the hyper-parameters. [C06] uses Nelder-Mead, [G06] scaled conjugate gradients.
    """
    class_weight = "balanced" if experiment.weighting == "both" else None
    search = Search(experiment.criterion, class_weight=class_weight)
    if optimizer != "lbfgs":
        search = SearchBy(optimizer, experiment.criterion, class_weight=class_weight)
    machine: Any = KernelClassifier(
        experiment.kernel,
        class_weight=None if experiment.weighting == "none" else "balanced",
        threshold="balanced",
        search=search,
    )
    if data.preparation == "sylva":
        machine = ReducedClassifier(machine)
    prepared = preparation(data.preparation, data.X)
    return Pipeline([("prepare", prepared), ("machine", machine)])


@dataclass(frozen=True, eq=False)
class Runs:
    """Data, splits and store for runs of experiments.

    Attributes
    ----------
    data : the data set.
    store : folder of finished splits, or None.
    n_jobs : number of splits to run in parallel.
    random_state : seed of the splits.
    optimizer : optimizer of the hyper-parameters, as for `estimator_of`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from papers.challenge._data import ChallengeData
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> runs = Runs(ChallengeData("breast", X, 2 * y - 1, "standardize"))
    >>> [(len(train), len(test)) for train, test in runs.parts(2)]
    [(512, 57), (512, 57)]
    """

    data: ChallengeData
    store: str | os.PathLike[str] | None = None
    n_jobs: int | None = None
    random_state: int = 0
    optimizer: str = "lbfgs"

    def run(
        self, experiment: PaperExperiment, n_splits: int, progress: Progress | None = None
    ) -> Assessment:
        """Assessment of an experiment on the first ``n_splits`` random 90/10 splits.

        If all splits raise, the result has their reasons and no figures.
        """
        estimator = estimator_of(self.data, experiment, self.optimizer)
        try:
            return assess(
                *(estimator, self.data.X, self.data.y, n_splits),
                **self._options,
                n_jobs=self.n_jobs,
                progress=progress,
            )
        except AllSplitsRaisedError as error:  # the others of the plan go on
            return error.result

    def stored(self, experiment: PaperExperiment, n_splits: int) -> Assessment | None:
        """Assessment from stored splits of an experiment, or None."""
        if self.store is None:
            raise ValueError("Without a store there are no stored results.")
        estimator = estimator_of(self.data, experiment, self.optimizer)
        return stored(estimator, self.data.X, self.data.y, n_splits=n_splits, **self._options)

    @property
    def _options(self) -> dict[str, Any]:
        return {
            "test_size": TEST_SIZE,
            "scoring": SCORING,
            "store": self.store,
            "random_state": self.random_state,
        }

    def parts(self, n_parts: int) -> list[tuple[Rows, Rows]]:
        """Training rows and test rows of the first splits."""
        splits = plan_splits(
            self.data.y,
            method="shuffle",
            n_splits=n_parts,
            test_size=TEST_SIZE,
            random_state=self.random_state,
            stratified=True,
        )
        return [split.rows(self.data.y) for split in splits]

    def within(self, rows: Rows) -> Runs:
        """Runs on some of the rows."""
        return replace(self, data=self.data.of_rows(rows))


Results = dict[PaperExperiment, Assessment]


def with_figures(results: Results) -> Results:
    """Results without the experiments that raised in every split."""
    return {e: r for e, r in results.items() if len(r.failures) < len(r.splits)}


@dataclass(frozen=True, eq=False)
class Nested:
    """Results on all splits, and on splits of each training part.

    Attributes
    ----------
    outer : every experiment, on splits whose test parts stand for the challenge's test set.
    inner : for each of these splits, every experiment on splits of its training part.
    tests : for each of these splits, the labels of its test part.
    """

    outer: Results
    inner: tuple[Results, ...]
    tests: tuple[AnyArray, ...]


def run_plan(
    runs: Runs,
    experiments: Sequence[PaperExperiment],
    n_splits: int = 100,
    *,
    announce: Announce | None = None,
    progress: Progress | None = None,
) -> Results:
    """Results of every experiment on the same splits.

    Parameters
    ----------
    runs : Runs
        The data, and where results are kept.
    experiments : sequence of PaperExperiment
        The plan, or a part of it.
    n_splits : int, default=100
        Number of random 90/10 splits; the first ones do not depend on it.
    announce : callable, optional
        Called with the name of each experiment, its number and how many there are.
    progress : callable, optional
        As for `looms.assess`.

    Returns
    -------
    results : dict of PaperExperiment to Assessment
        In the order of ``experiments``. Splits that raised are in ``failures``, even if an
        experiment has no other splits.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from papers import challenge
    >>> from papers.challenge._data import ChallengeData
    >>> from papers.challenge._plans import only
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> data = ChallengeData("breast", X[::3], 2 * y[::3] - 1, "standardize")
    >>> some = only(challenge.experiments_of("table3"), ["press-linear,press-rbf"])
    >>> results = challenge.run_plan(challenge.Runs(data), some, n_splits=3)
    >>> [bool(result.mean["ber"] < 0.1) for result in results.values()]
    [True, True]
    """
    results = {}
    for number, experiment in enumerate(experiments, start=1):
        if announce is not None:
            announce(experiment.name, number, len(experiments))
        results[experiment] = runs.run(experiment, n_splits, progress)
    return results


def run_nested(
    runs: Runs,
    experiments: Sequence[PaperExperiment],
    n_splits: int = 100,
    n_held_out: int = 10,
    *,
    announce: Announce | None = None,
    progress: Progress | None = None,
) -> Nested:
    """Results of every experiment, and for every held-out tenth also on splits of the other nine.

    Parameters
    ----------
    runs, experiments, announce, progress
        As for `run_plan`.
    n_splits : int, default=100
        Number of splits of each training part, from which performance is guessed.
    n_held_out : int, default=10
        Number of random tenths that are held out, one after another, as the test set.

    Returns
    -------
    results : Nested
        Results from which choices, guesses and test scores are computed.

    Notes
    -----
    The cost is ``len(experiments) * n_held_out * (1 + n_splits)`` fits.
    """
    announce = announce or (lambda name, number, total: None)
    total = len(experiments) * (1 + n_held_out)

    def announced(done: int, part: str) -> Announce:
        return lambda name, number, _: announce(f"{name}, {part}", done + number, total)

    outer = run_plan(
        runs, experiments, n_held_out, announce=announced(0, "held-out tenths"), progress=progress
    )
    inner, tests = [], []
    for k, (train, test) in enumerate(runs.parts(n_held_out)):
        announcer = announced((k + 1) * len(experiments), f"guess for tenth {k + 1}")
        results = run_plan(
            runs.within(train), experiments, n_splits, announce=announcer, progress=progress
        )
        inner.append(results)
        tests.append(runs.data.y[test])
    return Nested(outer, tuple(inner), tuple(tests))


def stored_plan(runs: Runs, experiments: Sequence[PaperExperiment], n_splits: int = 100) -> Results:
    """Stored results of every experiment that has any."""
    results = {experiment: runs.stored(experiment, n_splits) for experiment in experiments}
    return {experiment: result for experiment, result in results.items() if result is not None}


def stored_nested(
    runs: Runs, experiments: Sequence[PaperExperiment], n_splits: int = 100, n_held_out: int = 10
) -> Nested:
    """Stored results of `run_nested`."""
    parts = runs.parts(n_held_out)
    return Nested(
        stored_plan(runs, experiments, n_held_out),
        tuple(stored_plan(runs.within(train), experiments, n_splits) for train, _ in parts),
        tuple(runs.data.y[test] for _, test in parts),
    )
