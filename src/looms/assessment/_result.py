"""What an assessment found, ready to be read, tabulated and compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from looms._optional import require
from looms.assessment._bootstrap import plus_632
from looms.assessment._kinds import ScoreKind, kind_of
from looms.assessment._run import SplitResult
from looms.assessment._scoring import OWN

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ScoreFigures:
    """All that an assessment says of one score.

    Attributes
    ----------
    value : the estimate, as in `Assessment.mean`.
    standard_error : of the mean over these splits.
    low, high : ends of the interval.
    loo : mean of the leave-one-out scores of the splits; NaN without them.
    optimism, optimism_error : mean of leave-one-out score less test score, and its standard
        error; NaN without leave-one-out scores.
    smaller_is_better : None where nobody says.
    """

    value: float
    standard_error: float
    low: float
    high: float
    loo: float
    optimism: float
    optimism_error: float
    smaller_is_better: bool | None

    @property
    def flattered_by(self) -> float | None:
        """The optimism, positive if leave-one-out flatters; None where nobody says what is better.

        NaN without leave-one-out scores.
        """
        if self.smaller_is_better is None:
            return None
        return -self.optimism if self.smaller_is_better else self.optimism


@dataclass(frozen=True, eq=False, repr=False)
class Assessment:
    """Performance of an estimator, the whole selection repeated in every split.

    Printed, it is a summary. The result of `assess`.

    Attributes
    ----------
    splits : tuple of SplitResult
        What every split gave, in split order: scores, leave-one-out scores, what was
        chosen, warnings, seconds, and the error of one that raised.
    whole : SplitResult or None
        The fit to all rows, which the bootstrap needs.
    scores : tuple of str
        Names of the scores.
    method : str
        "shuffle", "kfold" or "bootstrap".
    random_state : int
        The seed; with it the same splits come again.
    estimator : str
        The estimator as text.
    kinds : mapping of str to ScoreKind, or None
        Of every score, which way is better and where it can lie.
    classification : bool or None
        Whether the estimator is a classifier; None if that is not known.
    """

    splits: tuple[SplitResult, ...]
    whole: SplitResult | None
    scores: tuple[str, ...]
    method: str
    random_state: int
    estimator: str
    kinds: Mapping[str, ScoreKind] | None = None
    classification: bool | None = None

    @property
    def table(self) -> pd.DataFrame:
        """A row a split, in split order.

        Index "split"; columns: "n_train" and "n_test"; every score of the test part under
        its name; for machines of looms the same score of their leave-one-out outputs
        under "loo_" and the name; what was chosen; and "failure", the reason of a split that
        raised, whose other values are missing. Times are not in it (see `seconds`): the
        same splits give the same table, to the last digit.
        """
        pandas = require("pandas", "The table of an assessment")
        rows = [_row(split) for split in self.splits]
        chosen = dict.fromkeys(name for split in self.splits for name in split.chosen)
        columns = ["n_train", "n_test", *self.scores]
        if any(split.loo_scores for split in self.splits):
            columns += [f"loo_{name}" for name in self.scores]
        columns += [*(name for name in chosen if name not in columns), "failure"]
        index = pandas.Index([split.index for split in self.splits], name="split")
        return pandas.DataFrame(rows, index=index, columns=columns)

    @property
    def seconds(self) -> pd.Series:
        """Seconds that each split took, fit and scores; of a stored one, when it ran."""
        index = [split.index for split in self.splits]
        return _series([split.seconds for split in self.splits], index, "seconds", "split")

    @property
    def mean(self) -> pd.Series:
        """Every score: the mean over the splits, or for the bootstrap the .632+ estimate."""
        return self._series([self._estimate(name) for name in self.scores], "mean")

    @property
    def standard_error(self) -> pd.Series:
        """Standard deviation over the splits / √(number of splits), of every score.

        How far the mean over these splits is from that over all splits of these data, as
        published tables print it. Splits share rows, so it understates how far the mean
        is from the performance on new data: for that see `interval`.
        """
        return self._series([_standard_error(self._values(n)) for n in self.scores], "error")

    @property
    def optimism(self) -> pd.Series:
        """Mean of leave-one-out score − test score, for machines of looms; else NaN.

        Where larger is better a positive value means that leave-one-out, by which the
        machine was chosen, flatters it; where smaller is, as for "ber", "error" and "rmse",
        a negative one does. `figures` has it with the sign that tells.
        """
        return self._series([self._optimism(name)[0] for name in self.scores], "optimism")

    @property
    def failures(self) -> dict[int, str]:
        """Type and message of the exception of every split that raised, by its index."""
        return {split.index: split.error for split in self.splits if split.error is not None}

    def interval(self, level: float = 0.95) -> pd.DataFrame:
        r"""Confidence interval of every score.

        For "shuffle" and "kfold" Student's t with the corrected resampled variance

        .. math:: \left(\tfrac{1}{J} + \tfrac{n_{test}}{n_{train}}\right) S^2,

        J splits with sample variance S², which allows for the rows that training parts
        share [1]_. For "bootstrap" the quantiles over the resamples of the .632+ estimate
        of each, which tends to be wide. Where a score has a range, as an area from 0 to 1,
        the interval ends with it.

        Parameters
        ----------
        level : float, default=0.95
            Confidence.

        Returns
        -------
        interval : DataFrame
            A row a score, columns "low" and "high".

        References
        ----------
        .. [1] Nadeau & Bengio (2003), Inference for the generalization error, Machine
           Learning 52.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, got {level!r}.")
        pandas = require("pandas", "The interval of an assessment")
        rows = [self._limits(name, level) for name in self.scores]
        return pandas.DataFrame(rows, index=list(self.scores), columns=["low", "high"])

    def figures(self, score: str, level: float = 0.95) -> ScoreFigures:
        """All figures of one score as plain numbers, without pandas.

        Parameters
        ----------
        score : str
            One of ``scores``.
        level : float, default=0.95
            Confidence of the interval.
        """
        if score not in self.scores:
            raise ValueError(f"score must be one of {', '.join(self.scores)}; got {score!r}.")
        loo = self._loo(score)
        low, high = self._limits(score, level)
        optimism, error = self._optimism(score)
        return ScoreFigures(
            value=self._estimate(score),
            standard_error=_standard_error(self._values(score)),
            low=low,
            high=high,
            loo=float(np.mean(loo)) if len(loo) else float("nan"),
            optimism=optimism,
            optimism_error=error,
            smaller_is_better=self._kind(score).smaller_is_better,
        )

    def summary(self) -> str:
        """Every score with standard error, interval and optimism, and what went wrong."""
        n = len(self.splits) - len(self.failures)
        of = {"shuffle": "random splits", "kfold": "folds", "bootstrap": "bootstrap resamples"}
        lines = [f"{self.estimator}", f"{n} {of[self.method]}, seed {self.random_state}"]
        header = f"{'':<12}{'mean':>10}{'s.e.':>9}{'95 % interval':>20}{'LOO':>10}"
        lines.append(header.rstrip())
        for name in self.scores:
            low, high = self._limits(name, 0.95)
            error = _standard_error(self._values(name))
            line = f"{name:<12}{self._estimate(name):>10.4f}{error:>9.4f}"
            line += f"{f'{low:.4f} to {high:.4f}':>20}"
            loo = self._loo(name)
            lines.append(line + (f"{np.mean(loo):>10.4f}" if len(loo) else ""))
        return "\n".join([*lines, *self._remarks()])

    def __repr__(self) -> str:
        return self.summary()

    def _remarks(self) -> list[str]:
        remarks = []
        if self.method == "bootstrap" and any(len(self._loo(name)) for name in self.scores):
            remarks.append("Resamples hold copies of rows, which flatter leave-one-out.")
        for name in self.scores:
            found = self.figures(name)
            if np.isfinite(found.optimism):
                flattered = found.flattered_by
                word = (
                    ("is higher" if found.optimism >= 0 else "is lower")
                    if flattered is None
                    else ("flatters" if flattered >= 0 else "is harder on it")
                )
                by = f"{abs(found.optimism):.4f} ± {found.optimism_error:.4f}"
                remarks.append(f"Leave-one-out {word} by {by} ({name}).")
        if self.failures:
            first = next(iter(self.failures.items()))
            remarks.append(
                f"{len(self.failures)} of {len(self.splits)} splits raised; split {first[0]}: "
                f"{first[1]}"
            )
        warned = [split for split in self.splits if split.warnings]
        if warned:
            remarks.append(
                f"{len(warned)} of {len(self.splits)} splits warned; split {warned[0].index}: "
                f"{warned[0].warnings[0]}"
            )
        return remarks

    def _kind(self, name: str) -> ScoreKind:
        if self.kinds is not None:
            return self.kinds[name]
        return kind_of(OWN.get(name))

    def _done(self) -> list[SplitResult]:
        return [split for split in self.splits if split.error is None]

    def _values(self, name: str) -> Any:
        """Test scores of the splits that went well; for the bootstrap each as .632+."""
        values = np.array([split.scores[name] for split in self._done()])
        if self.whole is None:
            return values
        return plus_632(name, self.whole.scores[name], values, self.whole.no_information[name])

    def _estimate(self, name: str) -> float:
        if self.whole is None:
            return float(np.mean(self._values(name)))
        out_of_bag = float(np.mean([split.scores[name] for split in self._done()]))
        none = self.whole.no_information[name]
        return float(plus_632(name, self.whole.scores[name], out_of_bag, none))

    def _loo(self, name: str) -> Any:
        return np.array([s.loo_scores[name] for s in self._done() if name in s.loo_scores])

    def _optimism(self, name: str) -> tuple[float, float]:
        """Mean and standard error of leave-one-out score less test score."""
        loo = self._loo(name)
        if not len(loo):
            return float("nan"), float("nan")
        test = np.array([s.scores[name] for s in self._done() if name in s.loo_scores])
        return float(np.mean(loo - test)), _standard_error(loo - test)

    def _limits(self, name: str, level: float) -> tuple[float, float]:
        values = self._values(name)
        if self.whole is not None:
            low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
            return self._within(name, float(low), float(high))
        error = corrected_error(values, test_over_train(self._done()))
        half = float(stats.t.ppf((1 + level) / 2, len(values) - 1)) * error
        return self._within(name, self._estimate(name) - half, self._estimate(name) + half)

    def _within(self, name: str, low: float, high: float) -> tuple[float, float]:
        """Ends of an interval in the range of a score; NaN stays NaN."""
        kind = self._kind(name)
        return float(np.maximum(low, kind.low)), float(np.minimum(high, kind.high))

    def _series(self, values: list[float], name: str) -> pd.Series:
        return _series(values, list(self.scores), name)


def corrected_error(values: Any, ratio: float) -> float:
    """Corrected resampled standard error of a mean over splits; NaN for fewer than two.

    Parameters
    ----------
    values : (n_splits,) scores, or differences of scores.
    ratio : rows that test over rows that train.
    """
    n = len(values)
    return float(np.sqrt((1 / n + ratio) * np.var(values, ddof=1))) if n > 1 else float("nan")


def test_over_train(splits: list[SplitResult]) -> float:
    """Mean ratio of the sizes of the two parts."""
    return float(np.mean([split.n_test / split.n_train for split in splits]))


def _standard_error(values: Any) -> float:
    return corrected_error(values, 0.0)


def _series(values: Any, index: Any, name: str, index_name: str | None = None) -> pd.Series:
    pandas = require("pandas", "The figures of an assessment")
    return pandas.Series(values, index=pandas.Index(index, name=index_name), name=name)


def _row(split: SplitResult) -> dict[str, Any]:
    loo = {f"loo_{name}": score for name, score in split.loo_scores.items()}
    sizes = {"n_train": split.n_train, "n_test": split.n_test}
    return {**split.chosen, **sizes, **split.scores, **loo, "failure": split.error}
