"""What is known of a score beyond its value: which way is better, and where it can lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

S = TypeVar("S", bound=Callable[..., float])

_SHARES = {
    "accuracy_score",
    "average_precision_score",
    "balanced_accuracy_score",
    "f1_score",
    "fbeta_score",
    "jaccard_score",
    "precision_score",
    "recall_score",
    "roc_auc_score",
    "top_k_accuracy_score",
}
_AT_MOST_ONE = {"d2_absolute_error_score", "explained_variance_score", "r2_score"}
_ERRORS = {
    "log_loss",
    "max_error",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_squared_error",
    "mean_squared_log_error",
    "median_absolute_error",
    "root_mean_squared_error",
    "root_mean_squared_log_error",
}
_RATES_OF_ERRORS = {"balanced_error_rate", "weighted_balanced_error_rate", "zero_one_loss"}
#: Where a scorer gives one of these with the sign it has, smaller is better.
_LOSSES = _ERRORS | _RATES_OF_ERRORS | {"brier_score_loss"}
#: Arguments that make something else of a share.
_RESCALING = {"adjusted", "normalize"}


@dataclass(frozen=True)
class ScoreKind:
    """Which values of a score are better, and which are possible.

    Attributes
    ----------
    smaller_is_better : True, False, or None where nobody says.
    low, high : between which every value lies; infinite where there is no end.
    """

    smaller_is_better: bool | None = None
    low: float = -np.inf
    high: float = np.inf


def smaller_is_better(scorer: S) -> S:
    """Declare that of a scorer ``(estimator, X, y)`` smaller values are better; a decorator.

    Only then can an assessment say whether leave-one-out flatters: of a plain function it does
    not know which way is better. A scorer of ``sklearn.metrics.make_scorer`` says it itself.

    Examples
    --------
    >>> import numpy as np
    >>> from looms.assessment import smaller_is_better
    >>> @smaller_is_better
    ... def largest_error(model, X, y):
    ...     return float(np.max(np.abs(y - model.predict(X))))
    >>> largest_error.smaller_is_better
    True
    """
    scorer.smaller_is_better = True  # type: ignore[attr-defined]
    return scorer


def kind_of(scorer: Any) -> ScoreKind:
    """What is known of a scorer ``(estimator, X, y)``.

    One of scikit-learn gives a loss with its sign turned, so that larger is better, unless it
    is told to leave the sign alone, as ours for rates and sizes of errors are.
    """
    declared = getattr(scorer, "smaller_is_better", None)
    if declared is not None:
        return ScoreKind(bool(declared))
    function = getattr(scorer, "_score_func", None)
    if function is None:
        return ScoreKind()
    name, sign = getattr(function, "__name__", ""), getattr(scorer, "_sign", 1)
    low, high = _range(name, set(getattr(scorer, "_kwargs", {})))
    if sign < 0:
        low, high = -high, -low
    return ScoreKind(sign > 0 and name in _LOSSES, low, high)


def _range(function: str, arguments: set[str]) -> tuple[float, float]:
    if arguments & _RESCALING:
        return -np.inf, np.inf
    if function in _SHARES | _RATES_OF_ERRORS:
        return 0.0, 1.0
    if function in _AT_MOST_ONE:
        return -np.inf, 1.0
    return (0.0, np.inf) if function in _ERRORS else (-np.inf, np.inf)
