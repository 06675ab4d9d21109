"""Comparison of several estimators on the same splits."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from inspect import signature
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from looms import _html
from looms._advice import setting
from looms._checks import check_known, check_share
from looms._optional import require
from looms._scores import scale_of
from looms._words import aligned, estimate_text, interval_text, score_text
from looms.assessment._assess import Progress, assess, finished
from looms.assessment._experiment import Experiment, checked_seed
from looms.assessment._result import Assessment, corrected_error
from looms.estimators._warnings import warn_of_order

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Several assessments on the same splits, and their differences.

    Attributes
    ----------
    results : dict of str to Assessment
        The assessments, by the names of the estimators.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import looms
    >>> X, y = load_iris(return_X_y=True)
    >>> comparison = looms.compare(
    ...     {kernel: looms.KernelClassifier(kernel) for kernel in ("linear", "rbf")},
    ...     X, y, n_splits=5, scoring="accuracy", random_state=0,
    ... )
    >>> comparison.table.index.to_list(), comparison.differences().index.to_list()
    (['linear', 'rbf'], [('linear', 'rbf', 'accuracy')])
    """

    results: dict[str, Assessment]

    @property
    def table(self) -> pd.DataFrame:
        """Mean of every score (column) of every estimator (row)."""
        pandas = require("pandas", "The table of a comparison")
        return pandas.DataFrame({name: r.mean for name, r in self.results.items()}).T

    def differences(self, level: float = 0.95) -> pd.DataFrame:
        r"""Paired differences by the corrected resampled t-test.

        .. math:: t = \frac{\bar d}{\sqrt{\left(\tfrac{1}{J}
                  + \tfrac{n_{test}}{n_{train}}\right) S_d^2}},

        with J − 1 degrees of freedom, where d are the differences of the score in the J splits
        in which neither estimator raised [1]_.

        The level holds for estimators that learn alike from the same columns. Of two equally good
        ones with columns of their own, 60 rows and 100 splits, up to 11 of 100 tests find a
        difference at p < 0.05 (benchmarks/assess_intervals.py).

        Parameters
        ----------
        level : float, default=0.95
            Confidence of the intervals.

        Returns
        -------
        differences : DataFrame
            A row per pair and score, indexed by "first", "second" and "score", with columns
            "difference" (first − second), "standard_error" (corrected), "low", "high",
            "t", "p_value" (two-sided, each pair by itself) and "n_splits".

        References
        ----------
        .. [1] Nadeau & Bengio (2003), Inference for the generalization error, Machine
           Learning 52.
        """
        check_share(level, "level")
        pandas = require("pandas", "The table of a comparison")
        rows = self._tests(level)
        index = pandas.MultiIndex.from_tuples(rows, names=["first", "second", "score"])
        return pandas.DataFrame(list(rows.values()), index=index)

    def _tests(self, level: float = 0.95) -> dict[tuple[str, str, str], dict[str, float]]:
        """Test of every pair and score."""
        names = next(iter(self.results.values())).scores
        return {
            (first, second, name): paired(self.results[first], self.results[second], name, level)
            for first, second in combinations(self.results, 2)
            for name in names
        }

    def _cells(self) -> Iterator[tuple[str, float, str, dict[str, float]]]:
        """Name, scale of the score, 95 % interval and test of every difference."""
        for (first, second, name), test in self._tests().items():
            scale = scale_of(name, self.results[first].mean[name])
            interval = interval_text(test["low"], test["high"], scale)
            yield f"{name}, {first} − {second}", scale, interval, test

    def summary(self) -> str:
        """Every estimator's scores, then every difference."""
        parts = [
            result.summary() if name == result.estimator else f"{name}: {result.summary()}"
            for name, result in self.results.items()
        ]
        rows = [["difference", "mean", "s.e.", "95 % interval", "p"]]
        for name, scale, interval, test in self._cells():
            mean, error = (score_text(test[key], scale) for key in ("difference", "standard_error"))
            p = "< 0.001" if test["p_value"] < 0.001 else f"{test['p_value']:.3f}"
            rows.append([name, mean, error, interval, p])
        return "\n\n".join([*parts, "\n".join(aligned(rows))])

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        first = next(iter(self.results.values()))
        rows = []
        for estimator, result in self.results.items():
            estimates = [result.estimate(name) for name in first.scores]
            rows.append((estimator, *(estimate_text(e.value, e.standard_error) for e in estimates)))
        means = _html.table(["mean ± s.e.", *first.scores], rows, first._design())
        head = ["difference", "mean ± s.e.", "95 % interval", "t", "p", "splits"]
        tests = []
        for name, _, interval, test in self._cells():
            mean = estimate_text(test["difference"], test["standard_error"])
            t, p = f"{test['t']:.2f}", f"{test['p_value']:.2g}"
            tests.append((name, mean, interval, t, p, str(test["n_splits"])))
        note = "Corrected resampled t-test, two-sided, each pair by itself."
        remarks = [f"{name}: {text}" for name, r in self.results.items() for text in r._remarks()]
        return means + _html.table(head, tests, notes=[note, *remarks])


def compare(
    estimators: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    random_state: Any = 0,
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Comparison:
    """Performance of several estimators on the same splits, with their paired differences.

    Parameters
    ----------
    estimators : mapping of str to estimator
        Two or more estimators by name, all classifiers or all regressors.
    X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
        All samples.
    y : array-like of shape (n_samples,)
        Targets.
    random_state : int, RandomState instance or None, default=0
        Seed of the splits, which are the same for all.
    store, n_jobs, progress
        As for `looms.assess`.
    **options
        As for `looms.assess`: ``n_splits``, ``test_size``, ``scoring``, ``method`` ("shuffle" or
        "kfold"), ``sample_weight`` (which every estimator must take), ``groups`` (passed to
        those that take them) and ``duplicates``.

    Returns
    -------
    comparison : Comparison
        Printing it shows a summary. ``results`` has the assessments, ``differences()`` the
        differences with intervals and p-values.

    Warns
    -----
    DuplicatesWarning
        As in `looms.assess`, but only once.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.dummy import DummyClassifier
    >>> import looms
    >>> X, y = load_iris(return_X_y=True)
    >>> comparison = looms.compare(
    ...     {"kernel": looms.KernelClassifier(mu=1e-3), "majority": DummyClassifier()},
    ...     X, y, n_splits=10, scoring="accuracy", random_state=0,
    ... )
    >>> bool(comparison.differences()["low"].iloc[0] > 0.4)
    True
    """
    if not isinstance(estimators, Mapping) or len(estimators) < 2:
        raise ValueError(
            "A comparison needs a dict of two estimators or more, such as {'model': model, "
            "'baseline': DummyClassifier()}, or DummyRegressor(), of sklearn.dummy."
        )
    for name in options:
        check_known(name, "option", signature(assess).parameters)
    if options.get("method") in ("bootstrap", "forward"):
        raise ValueError(
            f'The corrected resampled t-test is for {setting("method", "shuffle")} and "kfold"; '
            f"assess each estimator by itself for {options['method']!r}."
        )
    seed = checked_seed(random_state, store)
    weight, groups = options.get("sample_weight"), options.get("groups")
    warn_of_order(X=X, y=y, sample_weight=weight, groups=groups)
    experiments = {  # all are checked before any of them runs
        str(name): Experiment.of(estimator, X, y, random_state=seed, **options)
        for name, estimator in estimators.items()
    }
    if options.get("scoring") is None:  # those that all have
        scorers_of = [set(experiment.scorers) for experiment in experiments.values()]
        common = set.intersection(*scorers_of)
        if not common:
            raise ValueError("Classifiers and regressors have no score in common; give `scoring`.")
        for name, experiment in experiments.items():
            scorers = {key: experiment.scorers[key] for key in experiment.scorers if key in common}
            experiments[name] = replace(experiment, scorers=scorers)
    next(iter(experiments.values())).warn_of_duplicates()
    results = {
        name: finished(experiment, store, n_jobs, progress)
        for name, experiment in experiments.items()
    }
    return Comparison(results)


def paired(first: Assessment, second: Assessment, name: str, level: float) -> dict[str, float]:
    """Corrected resampled t-test of one score of two assessments on the same splits."""
    pairs = [
        (a, b)
        for a, b in zip(first.splits, second.splits, strict=True)
        if a.error is None and b.error is None
    ]
    d = np.array([a.scores[name] - b.scores[name] for a, b in pairs])
    mean = float(np.mean(d)) if len(d) > 1 else float("nan")
    error = corrected_error(d, [a for a, _ in pairs])
    half = float(stats.t.ppf((1 + level) / 2, len(d) - 1)) * error
    t = mean / error if error else (0.0 if mean == 0 else float(np.copysign(np.inf, mean)))
    return {
        "difference": mean,
        "standard_error": error,
        "low": mean - half,
        "high": mean + half,
        "t": t,
        "p_value": float(2 * stats.t.sf(abs(t), len(d) - 1)),
        "n_splits": len(d),
    }
