"""Result of an assessment: estimates, tables and a summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from looms import _html
from looms._checks import check_share
from looms._optional import require
from looms._scores import scale_of
from looms._typing import Array
from looms._words import aligned, count, digits, interval_text, score_text
from looms.assessment._bootstrap632 import LEAST, OutOfBag, plus_632, standard_error_632
from looms.assessment._scoring import ScoreKind
from looms.assessment._split_run import SplitResult, without_values

if TYPE_CHECKING:
    import pandas as pd

#: With fewer splits, an interval of Student's t is more than half as wide again as a normal one.
_FEWEST = 5


@dataclass(frozen=True)
class ScoreEstimate:
    """Estimate of one score of an assessment.

    Attributes
    ----------
    value : estimate, as in `Assessment.mean`.
    standard_error : standard error of the estimate, as in `Assessment.standard_error`.
    low, high : ends of the interval.
    loo : mean of the leave-one-out scores of the splits; NaN without them.
    optimism, optimism_error : mean of leave-one-out score minus test score, and its corrected
        standard error; NaN without leave-one-out scores.
    discernible : whether the 95 % interval of the optimism, by Student's t, excludes 0.
    smaller_is_better : direction of the score; None if it is unknown.
    """

    value: float
    standard_error: float
    low: float
    high: float
    loo: float = np.nan
    optimism: float = np.nan
    optimism_error: float = np.nan
    discernible: bool = False
    smaller_is_better: bool | None = None

    @property
    def signed_optimism(self) -> float | None:
        """LOO score minus test score, signed so that positive means that LOO is optimistic.

        None if the score's direction is unknown.
        NaN without leave-one-out scores.
        """
        if self.smaller_is_better is None:
            return None
        return -self.optimism if self.smaller_is_better else self.optimism


@dataclass(frozen=True, eq=False, repr=False)
class Assessment:
    """Performance of an estimator, with the whole selection repeated in every split.

    The result of `looms.assess`; printing it shows a summary.

    Attributes
    ----------
    splits : tuple of SplitResult
        Results in split order: scores, leave-one-out scores, selection, warnings, seconds, and
        the error of a split that raised.
    whole : SplitResult or None
        The fit to all rows, which the bootstrap needs.
    scores : tuple of str
        Names of the scores.
    method : str
        "shuffle", "kfold", "bootstrap" or "forward".
    random_state : int
        The seed, which gives the same splits again.
    estimator : str
        The estimator as text.
    estimator_key : str or None
        Digest of the estimator, the same for one of equal parameters; None if that is not known.
    kinds : mapping of str to ScoreKind, or None
        Direction and range of every score; None if they are not known.
    classification : bool or None
        Whether the estimator is a classifier; None if that is not known.
    grouped : bool
        Whether rows of one label in ``groups`` were on one side of every split.
    out_of_bag : mapping of str to OutOfBag, or None
        For the bootstrap, ``score`` and ``standard_error`` on the rows outside each resample,
        averaged over each row's mean loss; see `looms.assess`.
    n_samples : int or None
        Number of rows that were split; None if that is not known.
    n_units : mapping of str to int, or None
        Largest number of independent rows that each score is of, among those that splits tested;
        of groups, if any were kept together. Where each class counts alike it is the number of
        classes times the rows of the rarest.
    n_rows : mapping of str to int, or None
        The same of rows, though groups were kept together.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import looms
    >>> X, y = load_iris(return_X_y=True)
    >>> result = looms.assess(looms.KernelClassifier(), X, y, n_splits=5, random_state=0)
    >>> result.scores, len(result.table)
    (('balanced_accuracy', 'accuracy', 'log_loss'), 5)
    >>> bool(result.mean["balanced_accuracy"] > 0.9)
    True
    """

    splits: tuple[SplitResult, ...]
    whole: SplitResult | None
    scores: tuple[str, ...]
    method: str
    random_state: int
    estimator: str
    kinds: Mapping[str, ScoreKind] | None = None
    classification: bool | None = None
    out_of_bag: Mapping[str, OutOfBag] | None = None
    n_samples: int | None = None
    estimator_key: str | None = None
    grouped: bool = False
    n_units: Mapping[str, int] | None = None
    n_rows: Mapping[str, int] | None = None

    @property
    def table(self) -> pd.DataFrame:
        """Table with a row for each split, in split order.

        The index is "split". The columns are "n_train" and "n_test"; every score of the test
        part under its name; for models of looms the same score of their leave-one-out outputs,
        which come from many models (see the notes of `looms.assess`), under "loo_" and the
        name; what was selected; and "failure", the reason why a split raised, whose other values
        are missing. Times are in `seconds` instead, so that the same splits give the same table
        to the last digit.
        """
        pandas = require("pandas", "The table of an assessment")
        rows = [
            {
                **split.chosen,
                "n_train": split.n_train,
                "n_test": split.n_test,
                **split.scores,
                **{f"loo_{name}": score for name, score in split.loo_scores.items()},
                "failure": split.error,
            }
            for split in self.splits
        ]
        chosen = dict.fromkeys(name for split in self.splits for name in split.chosen)
        columns = ["n_train", "n_test", *self.scores]
        if any(split.loo_scores for split in self.splits):
            columns += [f"loo_{name}" for name in self.scores]
        columns += [*(name for name in chosen if name not in columns), "failure"]
        index = pandas.Index([split.index for split in self.splits], name="split")
        return pandas.DataFrame(rows, index=index, columns=columns)

    @property
    def seconds(self) -> pd.Series:
        """Seconds that each split took to fit and score; for stored ones, when they were run."""
        pandas = require("pandas", "The table of an assessment")
        index = pandas.Index([split.index for split in self.splits], name="split")
        return pandas.Series([split.seconds for split in self.splits], index, name="seconds")

    @property
    def mean(self) -> pd.Series:
        """Mean of every score over the splits; for the bootstrap, the .632+ estimate."""
        return self._series([self.estimate(name).value for name in self.scores], "mean")

    @property
    def standard_error(self) -> pd.Series:
        r"""Standard error of every score, used by `interval`.

        For "shuffle", "kfold" and "forward" it is the square root of

        .. math:: \left(\tfrac{1}{J} + 2 \tfrac{n_{test}}{n_{train}}\right) S^2,

        where S² is the sample variance over J splits. Once, as in [1]_, the ratio allows for rows
        that are tested in several splits. It counts twice because two rows err together twice:
        tested on the one a model trained on the other, and the other way around
        (docs/references.md, Scores of splits). In simulations with 60 rows and 100 splits that
        was 1.05 to 1.45 times the spread over new data, and once 0.75 to 1.05 times; more for
        "r2" and where hardly any row is wrong (benchmarks/assess_intervals.py).

        For "bootstrap" it is the standard error of the out-of-bag error by the delta method [2]_,
        times the derivative of the .632+ error with respect to the out-of-bag error. For areas
        under a curve, the standard deviation over the resamples, which tends to be large,
        replaces the former. NaN for fewer than two splits or 20 resamples.

        References
        ----------
        .. [1] Nadeau & Bengio (2003), Inference for the generalization error, Machine
           Learning 52.
        .. [2] Efron & Tibshirani (1997), Improvements on cross-validation: the .632+
           bootstrap method, JASA 92, section 5.
        """
        return self._series([self.estimate(name).standard_error for name in self.scores], "error")

    @property
    def optimism(self) -> pd.Series:
        """Mean of leave-one-out score − test score, for models of looms; else NaN.

        Leave-one-out is optimistic if this is positive and larger scores are better, or if it is
        negative and smaller scores are better, as for "rmse". `estimate` has
        it with the same sign for both.
        """
        return self._series([self.estimate(name).optimism for name in self.scores], "optimism")

    @property
    def failures(self) -> dict[int, str]:
        """Type and message of the exception of each split that raised, by index of the split."""
        return {split.index: split.error for split in self.splits if split.error is not None}

    def interval(self, level: float = 0.95) -> pd.DataFrame:
        """Confidence interval of every score.

        It is of the expected score of models trained on other rows, as many as in a split, and
        follows from `mean` and `standard_error` by the quantile of Student's distribution with
        one degree of freedom less than there are splits; for "bootstrap" of the normal
        distribution. It is Wilson's for shares, from at most as many rows (at 0 and 1, groups) as
        there are, and where classes count alike, as there would be if all were as rare as the
        rarest; on a logarithmic scale where the range has one end, as that of "rmse"; and symmetric
        otherwise. NaN for fewer than two splits or 20 resamples.

        In simulations of random splits and folds of 30 to 120 rows, with least-squares models of
        given values, at most 6 of 100 intervals of 95 % missed it, often 2 or 3
        (benchmarks/assess_intervals.py), but up to 9 of 100 for areas and recalls in test parts
        with one or two rows of a class, and for "r2" in test parts of three rows 45 of 100 with ten
        splits and 8 with a hundred: its mean over such parts does not settle.

        Parameters
        ----------
        level : float, default=0.95
            Confidence.

        Returns
        -------
        interval : DataFrame
            A row per score, with columns "low" and "high".
        """
        check_share(level, "level")
        pandas = require("pandas", "The interval of an assessment")
        estimates = [self.estimate(name, level) for name in self.scores]
        rows = [(estimate.low, estimate.high) for estimate in estimates]
        return pandas.DataFrame(rows, index=list(self.scores), columns=["low", "high"])

    def estimate(self, score: str, level: float = 0.95) -> ScoreEstimate:
        """Estimate of one score as plain numbers, without pandas.

        Parameters
        ----------
        score : str
            One of ``scores``.
        level : float, default=0.95
            Confidence of the interval.
        """
        if score not in self.scores:
            raise ValueError(f"score must be one of {', '.join(self.scores)}; got {score!r}.")
        done = self._done()
        if self.whole is None or self.out_of_bag is None:
            values = np.array([split.scores[score] for split in done])
            value = float(np.mean(values)) if done else float("nan")
            error, degrees = corrected_error(values, done, 2.0), len(done) - 1.0
        else:
            apparent, none = self.whole.scores[score], self.whole.no_information[score]
            out_of_bag, degrees = self.out_of_bag[score], np.inf
            value = float(plus_632(score, apparent, out_of_bag.score, none))
            error = standard_error_632(score, apparent, out_of_bag, none)
        kind = ScoreKind() if self.kinds is None else self.kinds[score]
        # At an end of the range nothing tells whether rows of a group are right or wrong together.
        most = self.n_rows if kind.low < value < kind.high else self.n_units
        n = np.inf if most is None else most[score]
        ends = kind.interval(value, error, float(stats.t.ppf((1 + level) / 2, degrees)), n)
        estimate = ScoreEstimate(value, error, *ends, smaller_is_better=kind.smaller_is_better)
        pairs = [split for split in done if score in split.loo_scores]
        if not pairs:
            return estimate
        held_out, test = np.array([(s.loo_scores[score], s.scores[score]) for s in pairs]).T
        same = np.isclose(held_out, test, rtol=1e-12, atol=0.0)
        difference = np.where(same, 0.0, held_out - test)
        optimism, error = float(np.mean(difference)), corrected_error(difference, pairs)
        return replace(
            estimate,
            loo=float(np.mean(held_out)),
            optimism=optimism,
            optimism_error=error,
            discernible=bool(abs(optimism) > stats.t.ppf(0.975, len(pairs) - 1) * error),
        )

    def _table(self) -> list[list[str]]:
        """Rows of cells, the headings first."""
        rows = [["", "mean", "s.e.", "95 % interval", "own"]]
        for name in self.scores:
            f = self.estimate(name)
            scale = scale_of(name, f.value)
            mean, error = score_text(f.value, scale), score_text(f.standard_error, scale)
            loo = "" if np.isnan(f.loo) else score_text(f.loo, scale)
            rows.append([name, mean, error, interval_text(f.low, f.high, scale), loo])
        return rows

    def summary(self) -> str:
        """Text with every score, its standard error, interval and optimism, and failures."""
        lines = [self.estimator, self._caption(), *aligned(self._table()), *self._remarks()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        head, *rows = self._table()
        return _html.table(head, rows, f"{self.estimator}: {self._caption()}", self._remarks())

    def optimism_text(self, score: str, method: str = "the fit's own score") -> str:
        """Sentence about the optimism of the held-out scores by which models are chosen.

        It names a direction only if that is discernible (see `estimate`). Empty without
        such scores.

        Parameters
        ----------
        score : str
            One of ``scores``.
        method : str, default="the fit's own score"
            Name of these scores, such as the way in which the models held samples out.
        """
        estimate = self.estimate(score)
        if np.isnan(estimate.optimism):
            return ""
        signed, error = estimate.signed_optimism, digits(estimate.optimism_error, 2)
        size = estimate.optimism if signed is None else signed
        if estimate.discernible:
            words = ("lower", "higher") if signed is None else ("pessimistic", "optimistic")
            by = f"{words[size > 0]} by {digits(abs(size), 2)} ± {error}"
            return f"{method[0].upper()}{method[1:]} is {by} ({score})."
        what = f"{'difference' if signed is None else 'optimism'} of {method}"
        by = f"{score}: {digits(size, 2)} ± {error}" if size else score
        if len(self._done()) < _FEWEST:
            return f"{self._count()} cannot tell the {what} ({by}): take ten or more."
        return f"No clear {what} in {self._count()} ({by})."

    def _design(self) -> str:
        resampled, forward = self.method == "bootstrap", self.method == "forward"
        error = "delta method" if resampled else "corrected for the rows they share"
        what = "rows of one time or group" if forward else "groups"
        groups = f", {what} kept together" if self.grouped else ""
        return f"{self._count()}, seed {self.random_state}{groups}; s.e.: {error}"

    def _caption(self) -> str:
        has_own = any(split.loo_scores for split in self._done())
        return f"{self._design()}{'; own: of the training rows, held out in the fit' * has_own}"

    def _count(self) -> str:
        names = {
            "shuffle": "random split",
            "kfold": "fold",
            "bootstrap": "bootstrap resample",
            "forward": "forward split",
        }
        return count(len(self._done()), names[self.method])

    def _remarks(self) -> list[str]:
        remarks = [text for text in map(self.optimism_text, self.scores) if text]
        done, n = self._done(), len(self.splits)
        if self.whole is not None:
            if any(split.n_train + split.n_test > self.whole.n_train for split in done):
                remarks.append(
                    "Resamples contained duplicate rows: cross-validation inside the estimator is "
                    "optimistic."
                )
            if len(done) < LEAST:
                remarks.append(f"An interval needs {LEAST} resamples.")
        if self.failures:
            index, text = next(iter(self.failures.items()))
            remarks.append(f"{len(self.failures)} of {n} splits raised; split {index}: {text}")
        warned: dict[str, list[str]] = {}
        for split in self.splits:
            for text in split.warnings:
                warned.setdefault(without_values(text), []).append(f"split {split.index}: {text}")
        return remarks + [
            f"{len(same)} of {n} splits warned; {same[0]}" for same in warned.values()
        ]

    def _done(self) -> list[SplitResult]:
        return [split for split in self.splits if split.error is None]

    def _series(self, values: list[float], name: str) -> pd.Series:
        pandas = require("pandas", "The table of an assessment")
        return pandas.Series(values, list(self.scores), name=name)


def corrected_error(values: Array, splits: Sequence[SplitResult], times: float = 1.0) -> float:
    """Corrected resampled standard error of a mean over splits; NaN for fewer than two.

    Parameters
    ----------
    values : (n_splits,) scores, or differences of scores.
    splits : splits whose mean ratio of test to training rows corrects for the rows that they
        share.
    times : how often this ratio counts: once in differences of two scores, from which most of the
        errors that rows make together cancel.
    """
    if len(values) < 2:
        return float("nan")
    ratio = np.mean([split.n_test / split.n_train for split in splits])
    return float(np.sqrt((1 / len(values) + times * ratio) * np.var(values, ddof=1)))
