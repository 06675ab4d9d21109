"""Result of one split: scores, leave-one-out scores, selection, warnings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from looms._typing import Array
from looms.assessment._scoring import judges_order, score_all
from looms.estimators._metrics import Scorer, StandIn, own_name, scorer_takes_weights
from looms.fitted._fitted import Fitted
from looms.fitted._scores import decided
from looms.held_out import HeldOut
from looms.kernels._names import kernel_name

#: Values that estimators may choose, as JSON stores them.
Value = float | int | str | bool | None


@dataclass(frozen=True)
class SplitResult:
    """Result of one split.

    Attributes
    ----------
    index : index of the split in its plan.
    n_train, n_test : number of rows in each part. A row that the bootstrap drew several times
        counts once if `fit` takes weights, else as often as it was drawn.
    scores : scores of the test part, by name.
    loo_scores : scores of the leave-one-out outputs of the fitted model, if it has them. The
        area under the ROC curve compares rows under one model that has seen neither; other
        scores that rank rows are NaN.
    chosen : kernel, hyper-parameters and threshold selected; for a stack, the weight and the
        hyper-parameters "of" each model.
    no_information : scores expected for these predictions if the targets had nothing to do
        with them; only for the fit to all rows.
    predictions : predictions for the test part, in its order; only for a bootstrap resample.
    warnings : warnings of the fit and the scorers; of those that differ only in numbers, the
        first.
    seconds : wall time of the fit and the scores.
    error : type and message of the exception that the split raised, or None.
    """

    index: int
    n_train: int
    n_test: int
    scores: dict[str, float] = field(default_factory=dict)
    loo_scores: dict[str, float] = field(default_factory=dict)
    chosen: dict[str, Value] = field(default_factory=dict)
    no_information: dict[str, float] = field(default_factory=dict)
    predictions: tuple[Value, ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    error: str | None = None


#: Names with a value of each, as warnings list them.
_NAMED_VALUES = re.compile(r"(?:(?:, )?(['\"])[^'\"]*\1 \((['\"])[^'\"]*\2\))+(?: and \d+ more)?")


def without_values(text: str) -> str:
    """Text with a placeholder for every number, and for names with a value of each, to compare
    warnings of several splits."""
    text = _NAMED_VALUES.sub("#", text)
    return re.sub(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?", "#", text)


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Texts in order, without those that differ from an earlier one only in values."""
    return tuple({without_values(text): text for text in reversed(list(texts))}.values())[::-1]


def seeded(estimator: Any, seed: int) -> Any:
    """Estimator with ``seed`` for every random_state in it that is None."""
    parameters = estimator.get_params(deep=True)
    unseeded = [
        name
        for name, value in sorted(parameters.items())
        if value is None and name.split("__")[-1] == "random_state"
    ]
    return estimator.set_params(**dict.fromkeys(unseeded, seed)) if unseeded else estimator


def loo_scores(
    fitted: Any, scorers: Mapping[str, Scorer], weight: Array | None = None
) -> dict[str, float]:
    """Scores of the leave-one-out outputs, by the scorers of the test part.

    If rows were held out together, by group or fold, those held-out outputs are scored. Each
    output is from a model that was not trained on the row. For classes, outputs of a
    least-squares model with given hyper-parameters are means over pairs of held-out rows, as for
    ``evaluate``: those of single rows lean away from their class. The area under the ROC curve
    compares rows under one model that has seen neither. Both take n³ flops. Scores
    are weighted by the (n_train,) ``weight``, if given.

    NaN for scores that cannot be computed from these outputs: those of probabilities, and those
    that would rank outputs of different models (one per row, group or fold), which are biased
    away from the class of the row, such as the average precision.
    """
    loo: HeldOut = getattr(fitted, "held_out_", fitted.loo_)
    value: Fitted = fitted.fitted_
    y, outputs, rows, classes = loo.y, loo.outputs, np.arange(loo.n_samples)[:, None], None
    if value.outcome.decides:
        classes, y = value.outcome.classes, value.outcome.values(loo.y)
        if not value.tuned:  # those that decide for the rows of the fit
            outputs, train = outputs.copy(), value.rows.train
            outputs[train] = decided(value, np.ones(len(train)))[0].outputs
        outputs = value.outcome.decision(outputs, value.rule)
    stand_in = StandIn(outputs, classes, threshold_=value.rule.threshold)
    scores: dict[str, float] = {}
    for name, scorer in scorers.items():
        scores[name] = float("nan")
        with suppress(Exception):  # of any scorer, whatever it asks for
            if not judges_order(scorer):
                scores |= score_all({name: scorer}, stand_in, rows, y, weight)
            elif own_name(scorer) == "roc_auc":
                own = weight if scorer_takes_weights(scorer) else None
                own = np.ones(len(loo.y)) if own is None else own
                area = decided(value, own[value.rows.fit_weight != 0])[1]
                scores[name] = float("nan") if area is None else area[0]
    return scores


def chosen_by(model: Any, fitted: Any) -> dict[str, Value]:
    """Selection of a fitted model, as plain values."""
    if fitted is None:
        last = model.steps[-1][1] if isinstance(model, Pipeline) else model
        params = getattr(last, "best_params_", {})
        return {str(name): _plain(value) for name, value in sorted(params.items())}
    values: dict[str, Value]
    if hasattr(fitted, "cv_results_"):
        table, best = fitted.cv_results_, fitted.best_index_
        criterion = table["criterion"][best] if "criterion" in table else str(fitted.criterion)
        values = {"kernel": table["kernel"][best], "criterion": criterion, **table["params"][best]}
        shares = getattr(fitted, "candidate_weights_", None)
        if shares is not None and np.count_nonzero(shares) > 1:
            taken = np.flatnonzero(shares).tolist()
            names = {k: f"{table['kernel'][k]}, {table['criterion'][k]}" for k in taken}
            values = {"kernel": " + ".join(names.values())}
            for k, name in names.items():
                each = {"weight": float(shares[k]), **table["params"][k]}
                values |= {f"{key} of {name}": value for key, value in each.items()}
    else:
        values = {"kernel": kernel_name(fitted.kernel)}
        values |= {h.name: h.value for h in fitted.kernel_.hyperparameters}
        values["mu"] = float(fitted.mu_)
    value: Fitted = fitted.fitted_
    return values | value.outcome.thresholds(value.rule)


def _plain(value: Any) -> Value:
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, float | int | str | bool | None) else repr(value)
