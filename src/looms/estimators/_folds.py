"""Models tuned anew without each of some folds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn import config_context, get_config
from sklearn.base import clone
from sklearn.utils import get_tags

from looms._checks import take_rows
from looms._scores import number_scores
from looms._typing import AnyArray, Array
from looms.blocks import rows_in_memory
from looms.estimators._callbacks import say, tell
from looms.estimators._warnings import kept_warnings
from looms.fitted._fitted import Fitted
from looms.fitted._outcome import Outcome
from looms.fitted._rows import Rows, few_choice_folds, rows_at
from looms.folds import is_forward, is_number_of_folds, windows_among
from looms.selection._nested import Nested
from looms.units import Units

#: Parameters of a model that is fitted beside others.
_ALONE = {"verbose": 0, "n_jobs": None}
#: Held-out R² of numbers above which errors are less of noise than of rows and searches, so that
#: evaluations have ten folds, with searches on all rows. On two smooth functions with R² of 0.975
#: and 0.996 on 1052 rows, evaluations by the shortcuts for several candidates had 1.10 and 1.19 ×
#: the root mean square error of ten whole fits, 2.5 and 3.2 standard errors more; at R² = 0.9
#: searches on all rows gain 0.1 of a standard error.
_LEAST_R2 = 0.95


def unfitted(model: Any, **parameters: Any) -> Any:
    """Unfitted copy of the model, for a fit beside others."""
    known = model.get_params(deep=False)
    alone = {name: value for name, value in _ALONE.items() if name in known}
    model = clone(copy(model).set_params(**alone, **parameters))
    vars(model).pop("_skl_callbacks", None)
    return model


def tuned_without(
    estimator: Any,
    model: Any,
    outer: Units,
    rows: Rows,
    cv: Any,
    units: Units,
    n_jobs: int | None = None,
) -> list[Fitted]:
    """A model, tuned anew without each of the outer units.

    Parameters
    ----------
    estimator : its callbacks with a method ``on_outer_fold`` are told the estimator, the number of
        models tuned, and their total.
    model : from `unfitted`.
    outer : units of the rows that take part.
    rows : of the fit.
    cv, units : of the fit; units that ``cv`` makes for these rows are kept inside of each outer
        one, a number of folds and windows that earlier rows test are made anew.
    n_jobs : number of models tuned at once.
    """
    stay = [np.flatnonzero(rows) for rows in outer.stays(np.arange(outer.n_units))]

    config = get_config()  # here, for joblib makes the tasks in other threads
    y, groups = rows.outcome.passed(rows.y), rows.groups if rows.grouped else None
    run = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_model_without)(
            config,
            clone(model).set_params(cv=cv_without(cv, units, rows, rest)),
            rows.train[rest],
            (rows.X, y, weight_without(rows, rows.train[rest]), groups),
        )
        for rest in stay
    )
    tuned: list[Any] = []
    for one in run:
        tuned.append(one)
        say(estimator, f"fold {len(tuned)} of {len(stay)}")
        tell(estimator, "on_outer_fold", len(tuned), len(stay))
    return tuned


def cv_without(cv: Any, units: Units, rows: Rows, places: AnyArray) -> Any:
    """``cv`` of a fit to some of the rows, whose places among those that take part are given."""
    if is_number_of_folds(cv):
        return cv
    if is_forward(cv):
        return windows_among(cv, rows.train[places], rows.y, rows.groups, rows.outcome.stratified)
    return units.among(places).codes


def nearly_noiseless(in_folds: Nested | None, outcome: Outcome) -> bool:
    """True if predictions of numbers, in folds that compared candidates, miss hardly anything."""
    if in_folds is None or outcome.decides:
        return False
    y, outputs, weight = in_folds.held_out
    return number_scores(y, outputs[None], weight)["r2"][0] > _LEAST_R2


def weight_without(rows: Rows, rest: AnyArray) -> Array:
    """Weights of the rows ``rest`` that give each class its proportion in all rows.

    Otherwise a class would be rarer by the rows left out, and the model biased against it. The
    rows keep their weights if the threshold is set by a metric that takes none, and before windows
    of time, where the shares of later rows are not known.
    """
    weight = rows.weight[rest]
    if not rows.weighs:
        return weight
    kept = weight * rows.outcome.factors(rows.targets, rows.weight, rest)
    kept *= weight.sum() / kept.sum()  # C counts in units of them
    return np.asarray(kept)


def _model_without(
    config: dict[str, Any],
    model: Any,
    rest: AnyArray,
    data: tuple[Any, Any, Array, AnyArray | None],
) -> Fitted:
    """The model, tuned anew on the rows ``rest``, with weights of these.

    ``config`` is that of scikit-learn for the caller, which workers do not have.
    """
    X, y, weight, groups = data
    pairwise = get_tags(model).input_tags.pairwise
    # The model of all rows has warned of the same.
    with few_choice_folds(), kept_warnings(), config_context(**config):
        tuned = clone(model).fit(
            rows_at(X, rest, pairwise),
            y[rest],
            sample_weight=weight,
            groups=take_rows(groups, rest),
        )
    fitted: Fitted = tuned.fitted_
    return replace(fitted, table=None, recipe=None)


def tested_rows(
    models: Sequence[Fitted], outer: Units, rows: Rows
) -> Iterator[tuple[Fitted, AnyArray, AnyArray, Any]]:
    """For each model without an outer unit, places of the rows tested, and of those it has.

    And the rows tested, as it takes them: kernel values at columns that it has.
    """
    every = np.arange(len(rows.train))
    for model, tested, left in zip(models, outer.tested_by, outer, strict=True):
        rest, X = np.delete(every, left), rows_in_memory(rows_at(rows.X, rows.train[tested]))
        yield model, tested, rest, X[:, rows.train[rest]] if model.pairwise else X
