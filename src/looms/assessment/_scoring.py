"""Scores of test parts, with their direction and range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn import config_context
from sklearn.base import is_classifier
from sklearn.metrics import average_precision_score, check_scoring, roc_auc_score

from looms._typing import Array
from looms.estimators._metrics import Scorer, is_scikit_learns, roc_auc, scorer_takes_weights
from looms.estimators._targets import order_of

S = TypeVar("S", bound=Scorer)

#: Functions of scores that are shares, and so between 0 and 1: of all rows, of those of each class
#: as a mean, and of those of one class, perhaps averaged.
_OF_ROWS = {"accuracy_score", "top_k_accuracy_score", "zero_one_loss"}
_OF_CLASSES = {"balanced_accuracy", "balanced_accuracy_score", "roc_auc", "roc_auc_score"}
_OF_ONE_CLASS = {
    "average_precision_score",
    "f1_score",
    "fbeta_score",
    "jaccard_score",
    "precision_score",
    "recall_score",
}
_SHARES = _OF_ROWS | _OF_CLASSES | _OF_ONE_CLASS
_AT_MOST_ONE = {
    "cohen_kappa_score",
    "d2_absolute_error_score",
    "explained_variance_score",
    "quadratic_kappa",
    "r2_score",
}
#: Name endings by which scikit-learn marks functions whose smaller values are better.
_SMALLER_IS_BETTER = ("_error", "_loss", "_deviance")
#: Arguments that turn a share into something else.
_RESCALING = {"adjusted", "normalize"}


@dataclass(frozen=True)
class ScoreKind:
    """Direction and range of a score.

    Attributes
    ----------
    smaller_is_better : True, False, or None if the scorer does not tell.
    low, high : smallest and largest possible value; infinite if there is no limit.
    share_of : "rows", "classes" if all classes count alike, or "class" if it is of one of them,
        which is taken for the rarest.
    """

    smaller_is_better: bool | None = None
    low: float = -np.inf
    high: float = np.inf
    share_of: str = "rows"

    def n_rows(self, n: int, of_classes: Sequence[int]) -> int:
        """Largest number of independent rows that the score is a share of.

        ``n`` is the number of rows, or of groups, and ``of_classes`` those that have each class.

        Examples
        --------
        >>> ScoreKind(share_of="classes").n_rows(60, [5, 55])
        10
        """
        if self.share_of == "rows" or not of_classes:
            return n
        least = min(of_classes)
        return least if self.share_of == "class" else min(n, len(of_classes) * least)

    def interval(self, value: float, error: float, t: float, n: float) -> tuple[float, float]:
        r"""Confidence interval that stays within the range.

        Between two ends it is Wilson's [1]_ of N rows,

        .. math:: \left\{p : |v - p| \le t \sqrt{(p - low) (high - p) / N}\right\}, \quad
            N = \min\left(n, \frac{(v - low) (high - v)}{\mathrm{error}^2}\right),

        so that it has a width even if all rows are right. With one end it is v ± t error by the
        delta method for the logarithm of the distance to that end; without ends, v ± t error.

        Parameters
        ----------
        value, error : estimate v and its standard error.
        t : quantile, standard errors to either side.
        n : number of independent rows, or infinity.

        References
        ----------
        .. [1] Wilson (1927), Probable inference, the law of succession, and statistical
           inference, JASA 22.

        Examples
        --------
        >>> low, high = ScoreKind(False, 0.0, 1.0).interval(1.0, 0.0, 2.0, 60)
        >>> round(low, 4), round(high, 4)
        (0.9375, 1.0)
        """
        if np.isnan(error):
            return error, error
        ends = [end for end in (self.low, self.high) if np.isfinite(end)]
        if not ends:
            return value - t * error, value + t * error
        if len(ends) == 1:
            distance = value - ends[0]
            with np.errstate(over="ignore"):
                factor = float(np.exp(t * error / abs(distance))) if distance else 1.0
            near, far = ends[0] + distance / factor, ends[0] + distance * factor
            return min(near, far), max(near, far)
        product = (value - self.low) * (self.high - value)
        k = t**2 * np.maximum(error**2 / product if product else 0.0, 1.0 / n)
        center = value + k * (self.low + self.high) / 2.0
        half = np.sqrt(k * product + (k * (self.high - self.low) / 2.0) ** 2)
        low, high = (float((center + side * half) / (1.0 + k)) for side in (-1, 1))
        return max(low, self.low), min(high, self.high)  # despite rounding


def smaller_is_better(scorer: S) -> S:
    """Decorator for scorers ``(estimator, X, y)`` whose smaller values are better.

    The optimism of a plain function has a sign only with this mark. Scorers made by
    ``sklearn.metrics.make_scorer`` already have a direction.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.assessment._scoring import smaller_is_better
    >>> @smaller_is_better
    ... def largest_error(model, X, y):
    ...     return float(np.max(np.abs(y - model.predict(X))))
    >>> largest_error.smaller_is_better
    True
    """
    scorer.smaller_is_better = True  # type: ignore[attr-defined]
    return scorer


def kind_of(scorer: Any) -> ScoreKind:
    """Direction and range of a scorer ``(estimator, X, y)``, as far as known.

    Scorers of scikit-learn negate a loss, so that larger is better. A scorer that keeps the sign
    of a loss is recognized by the end of its function's name.
    """
    declared = getattr(scorer, "smaller_is_better", None)
    if declared is not None:
        return ScoreKind(bool(declared))
    if not is_scikit_learns(scorer):
        return ScoreKind()
    name, options = getattr(scorer._score_func, "__name__", ""), scorer._kwargs
    is_loss, average = name.endswith(_SMALLER_IS_BETTER), options.get("average", "binary")
    low, high = -np.inf, np.inf
    if not _RESCALING & set(options):
        low = 0.0 if is_loss or name in _SHARES else low
        high = 1.0 if name in _SHARES | _AT_MOST_ONE else high
    share_of = "classes" if name in _OF_CLASSES or average == "macro" else "rows"
    if name in _OF_ONE_CLASS and average == "binary":
        share_of = "class"
    if scorer._sign < 0:
        return ScoreKind(False, -high, -low, share_of)
    return ScoreKind(is_loss, low, high, share_of)


def default_scoring(estimator: Any, y: npt.ArrayLike, *, stratified: bool = True) -> list[str]:
    """Names of the scores of an assessment that asks for none.

    They are "rmse" and "r2" for a regressor, "balanced_accuracy" and "roc_auc" for two classes,
    "mean_rank_error" and "accuracy" for ordered ones, and "balanced_accuracy" and "accuracy" for
    others or without a decision function and probabilities; with probabilities also "log_loss",
    if splits are ``stratified`` or there are two classes: without a class in the training part
    there is none.
    """
    if not is_classifier(estimator):
        return ["rmse", "r2"]
    sizes = np.unique(np.asarray(y), return_counts=True)[1]
    two, ordered = len(sizes) == 2, len(sizes) > 2 and order_of(y) is not None
    likely = hasattr(estimator, "predict_proba")
    ranks = two and (likely or hasattr(estimator, "decision_function"))
    trained = two or (stratified and min(sizes, default=0) > 1)
    names = ["mean_rank_error" if ordered else "balanced_accuracy"]
    names += ["roc_auc" if ranks else "accuracy"]
    return [*names, "log_loss"] if likely and trained else names


def score_all(
    scorers: Mapping[str, Scorer], estimator: Any, X: Any, y: Any, weight: Array | None = None
) -> dict[str, float]:
    """Every score of a fitted estimator; predictions are made once.

    Parameters
    ----------
    weight : (n_samples,) weights for the scorers that take them, or None.
    """
    scores: dict[str, float] = {}
    plain: dict[str, Scorer] = {}
    weighing: dict[str, Scorer] = {}
    for name, scorer in scorers.items():
        if weight is None or not scorer_takes_weights(scorer):
            plain[name] = scorer
        elif is_scikit_learns(scorer):
            weighing[name] = scorer
        else:
            scores[name] = scorer(estimator, X, y, sample_weight=weight)
    if plain:
        scores |= check_scoring(estimator, scoring=plain)(estimator, X, y)
    if weighing:
        # Weights are meant for all scorers, and scorers by name cannot request them.
        with config_context(enable_metadata_routing=False):
            scorer = check_scoring(estimator, scoring=weighing)
            scores |= scorer(estimator, X, y, sample_weight=weight)
    return {name: float(scores[name]) for name in scorers}


def judges_order(scorer: Any) -> bool:
    """True for scorers that compare outputs of different rows."""
    of_order = (roc_auc, roc_auc_score, average_precision_score)
    return getattr(scorer, "_score_func", None) in of_order
