"""Rows of a fit, their folds, and models tuned anew without each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import issparse
from sklearn import config_context, get_config
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing, get_tags

from looms._checks import take_rows
from looms._classes import class_factors
from looms._scores import number_scores
from looms._typing import AnyArray, Array, Matrix
from looms._words import count
from looms.blocks import RowBlocks, rows_in_memory
from looms.estimators._callbacks import say, tell
from looms.estimators._fit_routing import model_takes_weights
from looms.estimators._warnings import kept_warnings, warn_of_time
from looms.folds import fold_numbers, is_grouped, is_number_of_folds, number_of_folds
from looms.held_out import HeldOut
from looms.kernels._samples import training_rows
from looms.lssvm._system import targets_as_columns
from looms.lssvm.left_out import Refits
from looms.selection._candidates import HeldOutLoss
from looms.selection._nested import Nested
from looms.units import Units

#: Outer folds of an evaluation, and of one of several candidates.
OUTER_FOLDS, OUTER_FOLDS_OF_SEVERAL = 10, 5
#: Parameters of a model that is fitted beside others.
_ALONE = {"verbose": 0, "n_jobs": None}
#: Folds without which several candidates are tuned anew, to choose among them or to stack them; and
#: of fits that are without a fold themselves, at two thirds of the time: with 500 rows such stacks
#: have 1.006 × the error, on 19 tables.
CHOICE_FOLDS, FEWER_CHOICE_FOLDS = 5, 3
_choice_folds = ContextVar("choice_folds", default=CHOICE_FOLDS)
#: Time of a fit without a fold of an evaluation, relative to that to all rows: 0.2 to 0.6.
_TIME_OF_SEVERAL = 0.4
#: Share of their rows that searches along gradients end on.
SHARE_IN_FOLDS = 0.25
#: Held-out R² of numbers above which errors are less of noise than of rows and searches, so that
#: evaluations have ten folds, with searches on all rows. On two smooth functions with R² of 0.975
#: and 0.996 on 1052 rows, evaluations by the shortcuts for several candidates had 1.10 and 1.19 ×
#: the root mean square error of ten whole fits, 2.5 and 3.2 standard errors more; at R² = 0.9
#: searches on all rows gain 0.1 of a standard error.
_LEAST_R2 = 0.95
#: With fewer, models are tuned on too few rows to stand for that of all.
LEAST_OUTER_FOLDS = 3


@dataclass(frozen=True, eq=False)
class RowsOfFit:
    """Rows that a model is selected on.

    Attributes
    ----------
    X, y : all rows, of which those of positive weight take part; classes or numbers.
    targets : (n,) or (n, t) numbers, ±1 for classes.
    weight, fit_weight, selection_weight : (n,) as given, in the fit, and in the criterion.
    groups : (n,) numbers, equal for rows of one group.
    classes : whether ``y`` holds classes.
    loss_of : loss of held-out outputs and the weights of the fit; needed to compare candidates.
    weighs : whether the loss takes the factors of classes that some rows lack.
    grouped : whether groups were given, though each may be one row.
    seed : of folds, subsamples and landmarks.
    """

    X: Matrix
    y: AnyArray
    targets: Array
    weight: Array
    fit_weight: Array
    selection_weight: Array
    groups: Any
    classes: bool
    loss_of: Callable[[HeldOut, Array], HeldOutLoss] | None = None
    weighs: bool = True
    grouped: bool = False
    seed: int = 0

    @classmethod
    def of(cls, model: Any, X: Any, y: AnyArray, **more: Any) -> RowsOfFit:
        """Those of a fitted kernel model; ``X`` and ``y`` as they were passed."""
        targets, _, weight = model.loo_
        weights = weight, model.fit_weight_, model.selection_weight_
        data = X, y, targets, *weights, model.units_.clusters, is_classifier(model)
        return cls(*data, grouped=model._grouped, seed=model._outer_seed, **more)

    @cached_property
    def train(self) -> AnyArray:
        """Numbers of the rows that take part."""
        return np.flatnonzero(self.weight)

    def own(self, values: AnyArray) -> AnyArray:
        """Values of the rows that take part."""
        return values[self.train]

    @property
    def data(self) -> tuple[Matrix, AnyArray, Array, AnyArray | None]:
        """X, y, weights and groups, as `fit` takes them."""
        return self.X, self.y, self.weight, self.groups if self.grouped else None

    def units(self, cv: Any) -> Units:
        """Those of the rows that take part, which ``cv`` holds out together."""
        options: dict[str, Any] = {"classes": self.classes, "random_state": self.seed}
        return Units.of(cv, self.y, self.groups, rows=self.train, **options)

    def outer_units(self, cv: Any, units: Units, most: int = OUTER_FOLDS) -> Units:
        """Outer folds of the rows that take part; the ``units`` of ``cv`` if made for these rows.

        ValueError if there are fewer than three, or more than ten of ``cv``, or too few rows
        outside some fold.
        """
        if is_number_of_folds(cv):
            groups = self.own(self.groups)
            folds = outer_folds(cv, self.own(self.y), groups, self.classes, self.seed, most)
            return Units.partition(folds, groups)
        if not LEAST_OUTER_FOLDS <= units.once.n_units <= OUTER_FOLDS:
            raise ValueError(
                f"cv has {units.once.n_units} folds, but {LEAST_OUTER_FOLDS} to {OUTER_FOLDS} are "
                "needed."
            )
        return units.once

    def choice_units(self, cv: Any, units: Units) -> Units:
        """`outer_units` that candidates are compared in; others where a fold has left too few."""
        most = _choice_folds.get()
        if most == CHOICE_FOLDS:
            return self.outer_units(cv, units, most)
        try:
            return self.outer_units(cv, units, most)
        except ValueError:  # three folds leave fewer rows than five; two of cv are too few
            return self.outer_units(cv if is_number_of_folds(cv) else None, units, CHOICE_FOLDS)

    def loss(
        self, held_out: HeldOut, rows: AnyArray | slice = slice(None), factor: Any = 1.0
    ) -> HeldOutLoss:
        """Loss of held-out outputs of some of the rows that take part."""
        places, factor = self.train[rows], factor if self.weighs else 1.0
        own = HeldOut(held_out.y, held_out.outputs, factor * self.weight[places])
        assert self.loss_of is not None
        return self.loss_of(own, factor * self.fit_weight[places])


def outer_folds(
    cv: Any, y: AnyArray, groups: AnyArray, classes: bool, seed: int, most: int = OUTER_FOLDS
) -> AnyArray:
    """Number of the outer fold of each row, at most ``most`` folds, stratified by class.

    ValueError if there are fewer than three folds, or too few rows outside some fold for ``cv``.
    """
    grouped = is_grouped(groups)
    unit = "group" if grouped else "row"
    codes = np.unique(y, return_inverse=True)[1] if classes else np.zeros(len(y), dtype=int)
    sizes = units_of_classes(codes, groups)
    n_folds = min(sizes)
    if n_folds < LEAST_OUTER_FOLDS:
        name = np.unique(y).tolist()[sizes.index(n_folds)] if classes else None
        what = f"Class {name!r} has" if classes else "There are"
        raise ValueError(
            f"{what} fewer than {LEAST_OUTER_FOLDS} {unit}s, but folds need as many: give more"
            f"{', join it with another class, or leave the class out' * classes}."
        )
    n_folds = min(most, n_folds)
    (numbers,) = fold_numbers(f"1x{n_folds}", y, groups, classes=classes, random_state=seed)
    inner = number_of_folds(cv) or 2
    for number in np.unique(numbers):
        rest = numbers != number
        n_units = len(np.unique(groups[rest]))
        of_classes = units_of_classes(codes, groups, rest)
        least = 2 if grouped or cv is not None else 1
        if classes and min(of_classes) < least:
            name, n = np.unique(y).tolist()[np.argmin(of_classes)], count(min(of_classes), unit)
            raise ValueError(
                f"Class {name!r} has {n} left without an outer fold, too few to tune on: give "
                "more, join it with another class, or leave the class out."
            )
        if rest.sum() < 3 or n_units < max(inner, least):
            left = f"{n_units} {unit}s are left"
            raise ValueError(f"Without an outer fold {left}: too few to tune on.")
    return np.asarray(numbers)


def units_of_classes(codes: AnyArray, groups: AnyArray, rows: AnyArray | bool = True) -> list[int]:
    """Number of groups in each class; of some of the rows, a mask."""
    return [len(np.unique(groups[rows & (codes == c)])) for c in range(codes.max() + 1)]


@contextmanager
def few_choice_folds() -> Iterator[None]:
    """Context of fits that are without a fold themselves: fewer folds compare their candidates."""
    token = _choice_folds.set(FEWER_CHOICE_FOLDS)
    try:
        yield
    finally:
        _choice_folds.reset(token)


def folds_or_units(y: AnyArray, units: Units, classes: bool, most: int) -> Units:
    """Folds in the place of rows or groups; these if some class has too few rows, or groups."""
    try:
        folds = outer_folds(None, y, units.clusters, classes, 0, most)
    except ValueError:
        return units
    return Units.partition(folds, units.clusters)


def unfitted(model: Any, **parameters: Any) -> Any:
    """Unfitted copy of the model, for a fit beside others; None if its folds are used up."""
    known = model.get_params(deep=False)
    if isinstance(parameters.get("cv", known.get("cv")), Iterator):
        return None
    alone = {name: value for name, value in _ALONE.items() if name in known}
    model = clone(copy(model).set_params(**alone, **parameters))
    vars(model).pop("_skl_callbacks", None)
    return model


def tuned_without(
    estimator: Any,
    models: Sequence[Any],
    outer: Units,
    rows: RowsOfFit,
    cv: Any,
    units: Units,
    n_jobs: int | None = None,
) -> list[list[Any]]:
    """Each of some models, tuned anew without each of the outer units.

    Parameters
    ----------
    estimator : its callbacks with a method ``on_outer_fold`` are told the estimator, the number of
        models tuned, and their total.
    models : from `unfitted`.
    outer : units of the rows that take part.
    rows : of the fit.
    cv, units : of the fit; units that ``cv`` makes for these rows are kept inside of each outer
        one, a number of folds is made anew.
    n_jobs : number of models tuned at once.
    """
    n_folds, made_for_rows = outer.n_units, not is_number_of_folds(cv)
    n_models = n_folds * len(models)
    stay = [np.flatnonzero(rows) for rows in outer.stays(np.arange(n_folds))]

    config = get_config()  # here, for joblib makes the tasks in other threads
    run = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_model_without)(
            config,
            model._holding_out(units.among(rest)) if made_for_rows else model,
            rows.train[rest],
            *rows.data,
        )
        for model in models
        for rest in stay
    )
    tuned: list[Any] = []
    for one in run:
        tuned.append(one)
        say(estimator, f"fold {len(tuned)} of {n_models}")
        tell(estimator, "on_outer_fold", len(tuned), n_models)
    return [tuned[k : k + n_folds] for k in range(0, n_models, n_folds)]


def tuned_in_outer_folds(
    estimator: Any, model: Any, fitted: Any, rows: RowsOfFit
) -> tuple[Units, list[Any]]:
    """Outer folds of an evaluation, and a model tuned anew without each of them.

    Parameters
    ----------
    estimator : that is evaluated.
    model : from `unfitted`.
    fitted : kernel model of the ``rows``.

    Raises
    ------
    ValueError
        If the folds cannot be made, or no model can be tuned without one; with advice.
    """
    folds = model.cv, fitted._units
    try:
        outer, rows = evaluation_folds(model.cv, fitted, rows)
        share = _TIME_OF_SEVERAL if has_several(fitted) else 1.0
        warn_of_time(outer.n_units * share * estimator._fit_seconds, estimator.n_jobs)
        (models,) = tuned_without(estimator, [model], outer, rows, *folds, estimator.n_jobs)
    except ValueError as error:
        raise ValueError(
            f"{error} evaluate(nested=False) scores the held-out predictions of the fit instead."
        ) from error
    return outer, models


def evaluation_folds(cv: Any, fitted: Any, rows: RowsOfFit) -> tuple[Units, RowsOfFit]:
    """Outer folds of an evaluation, and the rows with their seed; ValueError for too few rows."""
    most = OUTER_FOLDS
    if has_several(fitted):  # others than those that compared the candidates
        quiet = nearly_noiseless(fitted._in_folds, rows.classes)
        most = OUTER_FOLDS if quiet else OUTER_FOLDS_OF_SEVERAL
        rows = replace(rows, seed=rows.seed + 1)
    return rows.outer_units(cv, fitted._units, most), rows


def nearly_noiseless(in_folds: Nested | None, classes: bool) -> bool:
    """True if predictions of numbers, in folds that compared candidates, miss hardly anything."""
    if in_folds is None or classes:
        return False
    y, outputs, weight = in_folds.held_out
    return number_scores(y, outputs[None], weight)["r2"][0] > _LEAST_R2


def has_several(fitted: Any) -> bool:
    """True if a fitted kernel model tuned several candidates."""
    return len(getattr(fitted, "candidates_", ())) > 1


def _model_without(
    config: dict[str, Any],
    model: Any,
    rest: AnyArray,
    X: Matrix,
    y: AnyArray,
    weight: Array,
    groups: AnyArray | None,
) -> Any:
    """The model, tuned anew on the rows ``rest``, with the class proportions of all rows.

    Otherwise a class would be rarer by the rows left out, and the model biased against it. The
    rows keep their weights if the threshold is set by a metric that takes none. ``config`` is that
    of scikit-learn for the caller, which workers do not have.
    """
    pairwise, own_weight = get_tags(model).input_tags.pairwise, weight[rest]
    if is_classifier(model) and model_takes_weights(model):
        _, labels = np.unique(y, return_inverse=True)
        own_weight = own_weight * class_factors(labels, weight, rest)
        own_weight *= weight[rest].sum() / own_weight.sum()  # C counts in units of them
    # The model of all rows has warned of the same.
    with few_choice_folds(), kept_warnings(), config_context(**config):
        return clone(model).fit(
            rows_at(X, rest, pairwise),
            y[rest],
            sample_weight=own_weight,
            groups=take_rows(groups, rest),
        )


def rows_at(X: Any, rows: AnyArray, pairwise: bool = False) -> Any:
    """Some rows of a matrix, of rows in blocks, or of a table; of a kernel matrix columns too."""
    if isinstance(X, np.ndarray | RowBlocks) or issparse(X):
        return training_rows(X, rows, pairwise)
    return _safe_indexing(X, rows)


def as_rest_of(model: Any, X: Matrix, rest: AnyArray) -> Matrix:
    """Samples as a model of the rows ``rest`` takes them: kernel values at these columns."""
    return X[:, rest] if get_tags(model).input_tags.pairwise else X


def predicted_without(
    models: Sequence[Any],
    outer: Units,
    rows: RowsOfFit,
    outputs: Callable[[Any, Matrix], Array],
) -> Array:
    """Outputs of the m rows that take part, each by the model tuned without its unit."""
    parts, train = outer.tested_by, rows.train

    def some(places: AnyArray) -> Any:
        return rows_in_memory(rows_at(rows.X, places))

    values = [
        outputs(model, as_rest_of(model, some(train[out]), np.delete(train, left)))
        for model, out, left in zip(models, parts, outer, strict=True)
    ]
    return np.concatenate(values)[np.argsort(np.concatenate(parts))]


def refits_of(
    nested: Nested, X: Matrix, outputs: Callable[[Any, AnyArray, Matrix], Array]
) -> Refits:
    """Models that were tuned anew without each fold.

    Parameters
    ----------
    nested : with the models.
    X : (m, n_features) rows of the fit.
    outputs : of a model, the rows it was tuned on and new samples, (b, t).
    """
    y, _, weight = nested.held_out
    every = np.arange(len(y))
    models = zip(nested.units, nested.models, strict=True)
    without = {np.delete(every, rows).tobytes(): model for rows, model in models}

    def fit(rest: AnyArray) -> Callable[[Matrix], Array]:
        return partial(outputs, without[rest.tobytes()], rest)

    return Refits(fit, X, targets_as_columns(y), weight)
