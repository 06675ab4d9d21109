"""Choices among experiments, and guesses of their error rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from looms._typing import AnyArray
from looms.assessment._assess import Progress
from looms.assessment._result import Assessment
from looms.assessment._split_run import SplitResult
from papers.challenge._plans import PaperExperiment
from papers.challenge._run import Announce, Nested, Results, Runs, with_figures

#: Splits of the training rows of a choice, the fewest that are assessed.
_INNER = 2


@dataclass(frozen=True)
class Entry:
    """Submission: the experiment chosen, its guessed error rate and its result.

    Attributes
    ----------
    held_out : number of the split whose test part stands for the test set.
    choice_by, guess_by : rules of the choice and of the guess.
    experiment : the chosen experiment.
    guess : guess of the balanced error rate on the test part.
    ber_train : balanced error rate on the training rows.
    ber_valid : balanced error rate on the test part of the first split of the training rows, which
        stands for the validation set, with the same experiment trained without that part; NaN
        if it has not been run.
    ber_test : balanced error rate on the test part.
    guess_error : guess − ber_test; negative if the guess was too good.
    test_score : test score of the challenge.
    """

    held_out: int
    choice_by: str
    guess_by: str
    experiment: PaperExperiment
    guess: float
    ber_train: float
    ber_valid: float
    ber_test: float
    guess_error: float
    test_score: float


def loo_choices(results: Results) -> dict[int, tuple[PaperExperiment, SplitResult]]:
    """Experiment with the smallest leave-one-out balanced error rate in every split.

    The first one in case of ties. The selection among all candidates is repeated in every split,
    so it does not bias the test rate of the chosen experiment; it does bias its leave-one-out rate.

    Parameters
    ----------
    results : dict of PaperExperiment to Assessment
        Results on the same splits. Splits that some experiment lacks are left out, and so are
        experiments that raised in every split.

    Returns
    -------
    choices : dict
        The experiment and its result, by number of the split.
    """
    by_split = {e: _by_index(result) for e, result in with_figures(results).items()}
    if not by_split:
        return {}
    common = sorted(set.intersection(*(set(results) for results in by_split.values())))
    choices = {}
    for index in common:
        chosen = min(by_split, key=lambda e: by_split[e][index].loo_scores["ber"])
        choices[index] = chosen, by_split[chosen][index]
    return choices


def run_validation(
    runs: Runs,
    results: Results,
    n_splits: int,
    *,
    announce: Announce | None = None,
    progress: Progress | None = None,
) -> Nested:
    """Results of a plan, and of the choices by leave-one-out on two splits of their training rows.

    Parameters
    ----------
    runs, n_splits, announce, progress
        As for `run_plan`.
    results : dict of PaperExperiment to Assessment
        Result of `run_plan`.

    Notes
    -----
    The test part of the first of the two splits stands for the validation set.
    """

    def run(k: int, within: Runs, chosen: PaperExperiment) -> Assessment:
        if announce is not None:
            announce(f"{chosen.name}, validation part of split {k}", k + 1, n_splits)
        return within.run(chosen, _INNER, progress)

    return _with_validation(runs, results, n_splits, run)


def stored_validation(runs: Runs, results: Results, n_splits: int) -> Nested:
    """Stored results of `run_validation`; training rows that were not split have none."""
    return _with_validation(
        runs, results, n_splits, lambda k, within, chosen: within.stored(chosen, _INNER)
    )


def _with_validation(
    runs: Runs,
    results: Results,
    n_splits: int,
    result_of: Callable[[int, Runs, PaperExperiment], Assessment | None],
) -> Nested:
    parts, choices = runs.parts(n_splits), loo_choices(results)
    inner: list[Results] = []
    for k, (train, _) in enumerate(parts):
        chosen = choices[k][0] if k in choices else None
        result = None if chosen is None else result_of(k, runs.within(train), chosen)
        inner.append({} if chosen is None or result is None else {chosen: result})
    return Nested(results, tuple(inner), tuple(runs.data.y[test] for _, test in parts))


def loo_entries(nested: Nested) -> list[Entry]:
    """Choice and guess by leave-one-out, tested on the test part of each split [C06 Table V].

    Parameters
    ----------
    nested : Nested
        Result of `run_validation` or `stored_validation`.
    """
    entries = []
    for k, (chosen, split) in loo_choices(nested.outer).items():
        figures = split.loo_scores["ber"], split, nested.tests[k], _valid(nested.inner[k], chosen)
        entries.append(_entry(k, ("loo_ber", "loo"), chosen, *figures))
    return entries


def nested_entries(nested: Nested) -> list[Entry]:
    """Choice by leave-one-out, guess by it and by splits of the training part [C06 V, VI].

    Parameters
    ----------
    nested : Nested
        Result of `run_nested` or `stored_nested`. Held-out parts that lack results are
        left out.
    """
    entries = []
    for k, (chosen, split) in loo_choices(nested.outer).items():
        inner, y = _complete(nested, k), nested.tests[k]
        if inner is None:
            continue
        again = loo_choices(inner)
        guess = float(np.mean([result.scores["ber"] for _, result in again.values()]))
        loo = split.loo_scores["ber"]
        valid = _valid(inner, chosen)
        for rule, figure in (("loo", loo), (f"validation{len(again)}", guess)):
            entries.append(_entry(k, ("loo_ber", rule), chosen, figure, split, y, valid))
    return entries


def game_entries(nested: Nested) -> list[Entry]:
    """Entries by the three strategies of the Model Selection Game [G06].

    For every held-out part, an experiment is chosen by the mean test rate over splits of the
    training part; by the test rate in the first of these splits, which stands for the validation
    set; and by the leave-one-out rate. The guess is the figure that decided the choice.

    Parameters
    ----------
    nested : Nested
        As for `nested_entries`.
    """
    entries = []
    for k in loo_choices(nested.outer):
        inner = _complete(nested, k)
        if inner is None:
            continue
        outer = {e: _by_index(result)[k] for e, result in with_figures(nested.outer).items()}
        splits = {e: _by_index(result) for e, result in inner.items()}
        strategies = {  # the good, the bad and the ugly of [G06]
            f"validation{max(map(len, splits.values()))}": {
                e: float(result.mean["ber"]) for e, result in inner.items()
            },
            "validation_set": {e: each[0].scores["ber"] for e, each in splits.items()},
            "loo_ber": {e: split.loo_scores["ber"] for e, split in outer.items()},
        }
        for name, guesses in strategies.items():
            chosen = min(guesses, key=guesses.__getitem__)
            valid = strategies["validation_set"].get(chosen, np.nan)
            figures = guesses[chosen], outer[chosen], nested.tests[k], valid
            entries.append(_entry(k, (name, name), chosen, *figures))
    return entries


def _complete(nested: Nested, k: int) -> Results | None:
    """Results on splits of a training part, if every experiment has the first one.

    Experiments that raised in every split, here or on the held-out parts, are left out.
    """
    run, able = nested.inner[k], with_figures(nested.outer)
    inner = {e: result for e, result in with_figures(run).items() if e in able}
    whole = set(run) >= set(able) and all(0 in _by_index(r) for r in inner.values())
    return inner if whole and inner else None


def _valid(inner: Results, chosen: PaperExperiment) -> float:
    """Rate of an experiment on the test part of the first split; NaN if it has none."""
    first = _by_index(inner[chosen]).get(0) if chosen in inner else None
    return float("nan") if first is None else first.scores["ber"]


def _by_index(result: Assessment) -> dict[int, SplitResult]:
    return {split.index: split for split in result.splits if split.error is None}


def _entry(
    k: int,
    rules: tuple[str, str],
    experiment: PaperExperiment,
    guess: float,
    split: SplitResult,
    y: AnyArray,
    ber_valid: float,
) -> Entry:
    """Entry by the given rules of choice and guess, tested on rows with labels ``y``."""
    ber = split.scores["ber"]
    n_positive = int(np.sum(np.asarray(y) > 0))
    sigma = ber_standard_error(
        split.scores["miss"], split.scores["false_alarm"], n_positive, len(y) - n_positive
    )
    # Without an error on the test part σ is 0, and any wrong guess is wrong by many of it.
    score = challenge_score(ber, guess, sigma) if sigma else ber + abs(guess - ber)
    rates = split.scores["ber_train"], ber_valid, ber
    return Entry(k, *rules, experiment, guess, *rates, guess - ber, score)


def challenge_score(ber: float, guess: float, sigma: float) -> float:
    r"""Test score of an entry: its balanced error rate plus a penalty for a wrong guess.

    .. math:: \mathrm{ber} + e\,(1 - \exp(-e/\sigma)), \quad e = |\mathrm{guess} - \mathrm{ber}|

    Parameters
    ----------
    ber : balanced error rate on the test set.
    guess : guess of ``ber`` by the entry.
    sigma : standard error of ``ber``, positive; see `ber_standard_error`.

    Examples
    --------
    >>> round(challenge_score(0.1845, 0.1683, 0.002), 4)   # ADA [C06 Table V]
    0.2007
    """
    error = abs(guess - ber)
    return float(ber + error * -np.expm1(-error / sigma)) if error else float(ber)


def ber_standard_error(miss: float, false_alarm: float, n_positive: int, n_negative: int) -> float:
    """Standard error of a balanced error rate, ½ √(p₊(1−p₊)/m₊ + p₋(1−p₋)/m₋).

    Parameters
    ----------
    miss, false_alarm : error rates p₊, p₋ of the positive and the negative class.
    n_positive, n_negative : numbers m₊, m₋ of test rows in each.
    """
    positive = miss * (1 - miss) / n_positive
    negative = false_alarm * (1 - false_alarm) / n_negative
    return float(0.5 * np.sqrt(positive + negative))
