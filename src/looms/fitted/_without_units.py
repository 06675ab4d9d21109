"""Models without each unit of rows, of any fitted model, and intervals and sets from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import gen_batches
from sklearn.utils.validation import _num_samples

from looms._advice import setting
from looms._classes import rounding, tie_width
from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import blocks_of, rows_in_memory
from looms.conformal import jackknife_minmax, jackknife_plus, prediction_sets
from looms.conformal._jackknife import (
    checked_ratio,
    intervals_of_ends,
    order_statistic,
    outwards,
    required_rank,
)
from looms.conformal._local_scale import LocalScale
from looms.fitted._fitted import Fitted, output_of
from looms.fitted._outcome import Numbers, Outcome
from looms.fitted._rows import rows_at
from looms.kernels._samples import training_rows
from looms.lssvm._system import targets_as_columns
from looms.lssvm.conditioning import largest_of, spread_of
from looms.lssvm.fit import Member, cross_of
from looms.lssvm.left_out import Chosen
from looms.scores import WithoutUnits
from looms.selection._nested import Nested
from looms.units import Units

#: Intervals from residuals and the outputs of the models without each row.
INTERVALS = {"plus": jackknife_plus, "minmax": jackknife_minmax, "scaled": jackknife_plus}
_LEAST = np.array([-np.inf])  # end of an interval that holds all small targets, transformed
_NUMBERS = 1 << 20  # in the outputs of a block of rows, with one of each row of the fit
_OUTPUTS = 1 << 22  # of models without each fold, in memory at once


class FoldModels:
    """Models that were fitted anew without each fold, of any kind: a `LeftOut` for new rows alone.

    Parameters
    ----------
    models : outputs of new rows, (b, t), by the model without each of the units.
    y : as for `LeftOut`.
    """

    def __init__(self, models: Sequence[Callable[[Any], Array]], y: Array) -> None:
        self.models, self.y = models, y

    def at(self, X: Any, units: Units) -> Array:
        """As of `LeftOut`."""
        return np.stack([outputs(X) for outputs in self.models], axis=1)

    def parts(self, n: int) -> Iterator[slice]:
        """Positions of n new rows: all at once, if the outputs are not too many."""
        step = max(1, _OUTPUTS // (len(self.models) * self.y.shape[1]))
        return (slice(start, min(start + step, n)) for start in range(0, n, step))


def models_without(model: Fitted, nested: Nested | None) -> WithoutUnits:
    """Models without each unit: those that ``nested`` selected, or those of the fit.

    In closed form they take n³ flops, once, and ValueError if the rows are not at hand.
    """
    rows, tables = model.rows, tuple[Fitted, ...]()
    features = rows.train if model.pairwise else None
    left_out: Any = None
    if nested is None:
        left_out, units, tie = model.left_out, model.units_of_intervals, model.tie
        first = blocks_of(model.X).rows(np.arange(1))
        first = first if features is None else first[:, features]
        n = len(left_out.y)
        with blas_threads(n):
            outputs = left_out.outputs(units)[units.repetition[units.own], np.arange(n)]
            left_out.at(first, units)  # which keeps what new rows need
        residuals = (left_out.y - outputs).reshape(-1, *model.loo.y.shape[1:])
    else:
        units, residuals, tie = nested.units, nested.residuals, nested.tie
        Y, weight = targets_as_columns(rows.own(rows.targets)), nested.held_out.sample_weight
        if nested.in_closed_form:
            solved = [model.system_of(member) for member in nested.models]
            left_out = Chosen(solved, units, nested.model_of_fold, Y, weight)
        elif isinstance(nested.models[0], Fitted):
            features, tables = None, nested.models
            rests = [np.delete(rows.train, left) for left in units]
            pairs = zip(tables, rests, strict=True)
            left_out = FoldModels([partial(_outputs_of_table, *pair) for pair in pairs], Y)
        else:
            # Of which landmarks take nothing: rows in blocks stay there.
            X = None if rows.X is None else training_rows(rows.X, rows.train, model.pairwise)
            of_folds = [partial(_outputs_of_members, members, X) for members in nested.models]
            left_out = FoldModels(of_folds, Y)
    tie = max(tie, rounding(len(rows.train)))  # that of estimators included
    return WithoutUnits(left_out, units, residuals, tie, features, tables)


def models_at_hand(model: Fitted, nested: Nested | None) -> WithoutUnits | None:
    """The same if that takes no solution of a system."""
    at_hand = model.has_left_out if nested is None else not nested.in_closed_form
    return models_without(model, nested) if at_hand else None


def _outputs_of_table(table: Fitted, rest: AnyArray, X: Any) -> Array:
    """Outputs of rows as they were passed, by a model of the rows ``rest``."""
    return targets_as_columns(table.outputs_of_table(X[:, rest] if table.pairwise else X))


def _outputs_of_members(members: Sequence[Member], X_fit: Any, X: Matrix) -> Array:
    """Outputs of samples by the members of a model."""
    return targets_as_columns(output_of(members, X, X_fit))


def outputs_without(models: WithoutUnits, X: Any) -> Iterator[tuple[slice, Array]]:
    """Blocks of new rows, and their outputs without the unit of each row of the fit, (rows, n, ...)

    ``X`` are samples, or rows as they were passed if the models are of tables.
    """
    left_out, units, shape = models.left_out, models.units, models.residuals.shape
    new = X if models.features is None else X[:, models.features]
    n = _num_samples(X)
    for part in left_out.parts(n):
        places = np.arange(part.start, part.stop)
        some = rows_in_memory(new if len(places) == n else rows_at(new, places))
        with blas_threads(len(left_out.y)):
            F = left_out.at(some, units)
        for rows in gen_batches(len(F), max(1, _NUMBERS // models.residuals.size)):
            block = slice(part.start + rows.start, part.start + rows.stop)
            yield block, F[rows][:, units.own].reshape(-1, *shape)


def predictions_without(model: Fitted, X: Any) -> Array:
    """Predictions of new rows by the model, and by that without each unit, (b, 1 + n_units, k).

    They are probabilities or decision values of k classes, or numbers in units of the target. Units
    are `Fitted.units_of_intervals`.
    """
    units, X, predicted = model.units_of_intervals, rows_in_memory(X), list[Array]()
    of_classes = partial(model.outcome.of_classes, rule=model.rule)
    values_of = of_classes if model.outcome.decides else model.predicted
    with blas_threads(len(model.rows.train)):
        f, left_out = model.outputs(X), model.left_out
        new = X[:, model.rows.train] if model.pairwise else X
        for part in left_out.parts(len(f)):
            whole = f[part].reshape(part.stop - part.start, 1, -1)
            outputs = np.concatenate([whole, left_out.at(new[part], units)], axis=1)
            values = values_of(outputs.reshape(-1, *f.shape[1:]))
            predicted.append(np.asarray(values).reshape(*outputs.shape[:2], -1))
    return np.concatenate(predicted)


def jackknife_errors(model: Fitted, values: Array) -> Array:
    """Standard errors √((m − 1) / m Σ_k (v_k − v̄)²) of values without each unit, (..., m, k).

    NaN where the units are windows that earlier rows test, which are no jackknife.
    """
    m = values.shape[-2]
    away = values - values.mean(axis=-2, keepdims=True)
    scale = np.nan if model.units_of_intervals.forward else (m - 1) / m
    return np.asarray(np.sqrt(scale * np.square(away).sum(axis=-2)))


def check_intervals(model: Fitted, confidence_level: float, method: str) -> None:
    """ValueError for intervals that the rows of the fit cannot give."""
    required_rank(confidence_level, len(model.rows.train))
    n_units = model.units_of_fit.draws.n_units
    if method == "scaled" and model.closed is None:
        raise ValueError(f"{setting('method', 'scaled')} needs a kernel, to find the nearest rows.")
    if method == "scaled" and n_units < 3:
        word = "groups" if model.units_of_fit.grouped else "samples"
        raise ValueError(
            f"{setting('method', 'scaled')} needs three {word} of non-zero weight, got {n_units}."
        )


def ratio_of_rows(
    density_ratio: Any, train: AnyArray, n: int, m: int, method: str
) -> tuple[Array, Array] | None:
    """Density ratios at the rows ``train`` of n, and at m new ones; ValueError for others."""
    if density_ratio is None:
        return None
    if method == "minmax":
        advice = f"take {setting('method', 'plus')} or {setting('method', 'scaled')}."
        raise ValueError(f"{setting('method', 'minmax')} does not weight rows: {advice}")
    of_fit, of_new = checked_ratio(density_ratio, n, m)
    return of_fit[train], of_new


def intervals(
    models: WithoutUnits,
    X: Any,
    confidence_level: float,
    method: str,
    outcome: Numbers,
    model: Fitted | None = None,
    ratio: tuple[Array, Array] | None = None,
) -> Array:
    """Prediction intervals of new rows, (m, 2) or (m, t, 2), in units of the target.

    Parameters
    ----------
    models : without each unit, of targets on the scale of the ``outcome``, or tables that were
        fitted anew, each with its own.
    X : samples, or rows as they were passed if the models are of tables.
    confidence_level, method : "plus" or "minmax", as of `looms.conformal`; or "scaled", "plus" with
        residuals scaled by those of the nearest rows of the fit of a ``model``.
    ratio : as of `ratio_of_rows`.
    """
    r = models.residuals
    ends = np.empty((_num_samples(X), *r.shape[1:], 2))
    if models.tables:
        away = _distances(models, outcome, confidence_level, method)
        for rows, F in outputs_without(models, X):
            at = None if ratio is None else (ratio[0], ratio[1][rows])
            ends[rows] = _table_intervals(models, F, away, confidence_level, method, at)
        return ends
    error = models.tie * largest_of(models.left_out.y.reshape(r.shape))
    for rows, F in outputs_without(models, X):
        more: dict[str, Any] = {}
        if ratio is not None:
            more["density_ratio"] = ratio[0], ratio[1][rows]
        if method == "scaled" and model is not None:
            some = blocks_of(X).rows(np.arange(rows.start, rows.stop))
            more |= _scales(model, some, F.shape)
        ends[rows] = INTERVALS[method](r, F, confidence_level, rounding_error=error, **more)
    if outcome.plain:
        return ends
    ends = np.where(np.isposinf(ends), np.inf, outcome.function.inverse(ends))
    if outcome.function.keeps_scale:
        return ends
    return outwards(ends[..., 0], ends[..., 1], 0.0, len(r))


def _distances(
    models: WithoutUnits, outcome: Numbers, confidence_level: float, method: str
) -> Array:
    """Distance of each target from its output that counts for an interval, rounding included.

    With "minmax" it is a quantile over models that may be of different transforms of the target,
    so that each residual is relative to the spread of the transformed targets.
    """
    away = np.abs(models.residuals)
    error, of_units = np.empty(away.shape), models.units.tested_by
    for tested, table in zip(of_units, models.tables, strict=True):
        error[tested] = models.tie * largest_of(table.loo.y)
    if method == "minmax":
        targets, spread = outcome.function.inverse(models.left_out.y), np.empty(away.shape)
        for tested, table in zip(of_units, models.tables, strict=True):
            of_transform = spread_of(table.outcome.function.forward(targets))
            spread[tested] = of_transform.reshape(away.shape[1:])
        rank = required_rank(confidence_level, len(away))
        away = order_statistic(away / spread, rank, 0) * spread
    return np.asarray(away + error)


def _table_intervals(
    models: WithoutUnits,
    F: Array,
    away: Array,
    confidence_level: float,
    method: str,
    ratio: tuple[Array, Array] | None,
) -> Array:
    """Intervals from models with transforms of their own, each of whose ends goes back by its."""
    lower, upper = np.empty((2, *F.shape))
    for tested, table in zip(models.units.tested_by, models.tables, strict=True):
        inverse = table.outcome.function.inverse
        lower[:, tested] = inverse(F[:, tested] - away[tested])
        upper[:, tested] = inverse(F[:, tested] + away[tested])
    if method == "minmax":
        return outwards(lower.min(axis=1), upper.max(axis=1), 0.0, len(away))
    ends = intervals_of_ends(lower, upper, confidence_level, density_ratio=ratio)
    least = min(float(table.outcome.function.inverse(_LEAST)[0]) for table in models.tables)
    return np.where(np.isneginf(ends), least, ends)


def _scales(model: Fitted, X: Matrix, shape: tuple[int, ...]) -> dict[str, Array]:
    """Scale of the noise under each leave-one-out model, at the rows of the fit and new ones.

    Near are rows in the space of the kernel, of a stack that of its largest member. Of a stack
    with members that have no kernel it is the scale of the noise about its kernels.
    """
    train, units, closed = model.rows.train, model.units_of_fit.draws, model.closed
    assert closed is not None
    assert closed.leading is not None
    (number,) = units.number
    X_fit = training_rows(rows_in_memory(model.X), train, model.pairwise)
    cross = cross_of(closed.leading.kernel, X_fit)
    scales: list[LocalScale] | None = model.computed.get("local scales")
    if scales is None:
        left_out = closed.left_out
        R = np.empty((units.n_units, *left_out.y.shape))
        with blas_threads(len(train)):
            for ids, F in left_out.everywhere(units, inner=units):
                R[ids] = left_out.y - F
            K = cross(X_fit)
        residuals = (np.ascontiguousarray(values.T) for values in np.moveaxis(R, 2, 0))
        scales = model.computed["local scales"] = [LocalScale(r, K, number) for r in residuals]
    K = cross(X[:, train] if model.pairwise else X)
    loo = np.stack([scale.loo for scale in scales], axis=-1)
    new = np.stack([scale.at(K)[:, number] for scale in scales], axis=-1)
    return {"loo_scales": loo.reshape(shape[1:]), "scales": new.reshape(shape)}


def sets(
    models: WithoutUnits, X: Any, confidence_level: float, class_conditional: bool, outcome: Outcome
) -> AnyArray:
    """Prediction sets of new rows, (m, n_classes) of bool; parameters as of `intervals`."""
    targets = models.left_out.y.reshape(models.residuals.shape)
    labels, loo = outcome.codes(targets), targets - models.residuals
    loo_scores = outcome.margins(loo.reshape(len(loo), -1))[np.arange(len(labels)), labels]
    tie = models.tie * float(largest_of(targets).max())
    members = np.empty((_num_samples(X), len(outcome.classes)), dtype=bool)
    for rows, F in outputs_without(models, X):
        scores = outcome.margins(F.reshape(*F.shape[:2], -1))
        members[rows] = prediction_sets(
            *(loo_scores, scores, confidence_level),
            labels if class_conditional else None,
            rounding_error=tie_width(loo_scores, 2.0 * tie),  # of differences
        )
    return members
