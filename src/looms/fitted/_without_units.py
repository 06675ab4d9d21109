"""Models without each unit of rows, of any fitted model, and intervals and sets from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import gen_batches
from sklearn.utils.validation import _num_samples

from looms._classes import tie_width
from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import blocks_of, rows_in_memory
from looms.conformal import jackknife_minmax, jackknife_plus, prediction_sets
from looms.conformal._jackknife import (
    intervals_of_ends,
    order_statistic,
    outwards,
    required_rank,
)
from looms.conformal._local_scale import LocalScale
from looms.fitted._fitted import Fitted, output_of
from looms.fitted._outcome import Numbers
from looms.kernels._samples import training_rows
from looms.lssvm._system import targets_as_columns
from looms.lssvm.conditioning import largest_of
from looms.lssvm.fit import KernelMember, cross_of
from looms.lssvm.left_out import Chosen, LeftOut, Refits
from looms.scores import WithoutUnits
from looms.selection._nested import Nested
from looms.units import Batch, Units

#: Intervals from residuals and the outputs of the models without each row.
INTERVALS = {"plus": jackknife_plus, "minmax": jackknife_minmax}
METHODS = (*INTERVALS, "scaled")
_NUMBERS = 1 << 20  # in the outputs of a block of rows


class Tables(LeftOut):
    """Models of tables that were fitted anew without each fold, each with its columns and outcome.

    Parameters
    ----------
    models : without each of the units.
    rows : (m,) rows of the table that take part.
    y, weight : as for `LeftOut`.
    """

    def __init__(self, models: Sequence[Fitted], rows: AnyArray, y: Array, weight: Array) -> None:
        self.models, self.rows, self.y, self.weight = models, rows, y, weight

    def at(self, X: Any, units: Units) -> Array:
        """Outputs of new rows as they were passed, on the scale of each model."""
        outputs = []
        for model, left in zip(self.models, units, strict=True):
            table = X[:, np.delete(self.rows, left)] if model.pairwise else X
            outputs.append(targets_as_columns(model.outputs_of_table(table)))
        return np.stack(outputs, axis=1)

    def outputs(self, units: Units) -> Array:
        raise NotImplementedError("Rows of the fit are not at hand.")

    def fitted(self) -> Array:
        raise ValueError("The model of all rows was fitted to all of them.")

    def of_own(self, rows: AnyArray) -> Array:
        raise NotImplementedError("Rows of the fit are not at hand.")

    def of_rows(self, batch: Batch, units: Units, inner: Units | None = None) -> Array:
        raise NotImplementedError("Rows of the fit are not at hand.")


def models_without(model: Fitted, nested: Nested | None) -> WithoutUnits:
    """Models without each unit: those that ``nested`` selected, or those of the fit.

    In closed form they take n³ flops, once, and ValueError if the rows are not at hand.
    """
    if nested is None:
        left_out, units = model.left_out, model.units_of_intervals
        first = blocks_of(model.X).rows(np.arange(1))
        first = first[:, model.rows.train] if model.pairwise else first
        n = len(left_out.y)
        with blas_threads(n):
            outputs = left_out.outputs(units)[units.repetition[units.own], np.arange(n)]
            left_out.at(first, units)  # which keeps what new rows need
        residuals = (left_out.y - outputs).reshape(-1, *model.loo.y.shape[1:])
        return WithoutUnits(left_out, units, residuals, model.tie_without_rows(model.tie))
    y, _, weight = nested.held_out
    made = nested.units, nested.residuals, model.tie_without_rows(nested.tie)
    if nested.in_closed_form:
        settings = (KernelMember(1.0, one.kernel, one.mu) for one in nested.models)
        solved = [model.system_of(member) for member in settings]
        Y = targets_as_columns(y)
        return WithoutUnits(Chosen(solved, nested.units, nested.model_of_fold, Y, weight), *made)
    return _models_of_folds(model, nested)


def models_at_hand(model: Fitted, nested: Nested | None) -> WithoutUnits | None:
    """The same if that takes no solution of a system."""
    if nested is None:
        return models_without(model, None) if "left_out" in vars(model) else None
    return None if nested.in_closed_form else _models_of_folds(model, nested)


def _models_of_folds(model: Fitted, nested: Nested) -> WithoutUnits:
    y, _, weight = nested.held_out
    Y, tie = targets_as_columns(y), model.tie_without_rows(nested.tie)
    if isinstance(nested.models[0], Fitted):
        tables = Tables(nested.models, nested.rows, Y, weight)
        return WithoutUnits(tables, nested.units, nested.residuals, tie, of_tables=True)
    X = training_rows(rows_in_memory(model.X), nested.rows, model.pairwise)
    every = np.arange(len(y))
    without = {
        np.delete(every, rows).tobytes(): members
        for rows, members in zip(nested.units, nested.models, strict=True)
    }

    def outputs(members: Any, X_new: Matrix) -> Array:
        return targets_as_columns(output_of(members, X_new, X))

    def fit(rest: AnyArray) -> Any:
        return partial(outputs, without[rest.tobytes()])

    refits = Refits(fit, X, Y, weight)
    return WithoutUnits(refits, nested.units, nested.residuals, tie)


def outputs_without(model: Fitted, models: WithoutUnits, X: Any) -> Iterator[tuple[slice, Array]]:
    """Blocks of new rows, and their outputs without the unit of each row of the fit, (rows, n, ...)

    ``X`` are samples, or rows as they were passed if the models are of tables.
    """
    left_out, units, shape = models.left_out, models.units, models.residuals.shape
    if models.of_tables:
        F = left_out.at(X, units)
        for rows in gen_batches(len(F), max(1, _NUMBERS // models.residuals.size)):
            yield rows, F[rows][:, units.own].reshape(-1, *shape)
        return
    new = blocks_of(X[:, model.rows.train] if model.pairwise else X)
    for rows in left_out.parts(new.shape[0]):
        with blas_threads(len(left_out.y)):
            F = left_out.at(new.rows(np.arange(rows.start, rows.stop)), units)
        yield rows, F[:, units.own].reshape(len(F), *shape)


def check_intervals(model: Fitted, confidence_level: float, method: str) -> None:
    """ValueError for intervals that the rows of the fit cannot give."""
    required_rank(confidence_level, len(model.rows.train))
    n_units = model.units_of_fit.draws.n_units
    if method == "scaled" and model.closed is None:
        raise ValueError("method='scaled' needs a kernel, to find the nearest rows.")
    if method == "scaled" and n_units < 3:
        word = "groups" if model.units_of_fit.grouped else "samples"
        raise ValueError(f"method='scaled' needs three {word} of non-zero weight, got {n_units}.")


def intervals(
    model: Fitted, models: WithoutUnits, X: Any, confidence_level: float, method: str
) -> Array:
    """Prediction intervals of new rows, (m, 2) or (m, t, 2), in units of the target."""
    r, outcome = models.residuals, model.outcome
    assert isinstance(outcome, Numbers)
    ends = np.empty((_num_samples(X), *r.shape[1:], 2))
    blocks = outputs_without(model, models, X)
    if models.of_tables:
        away = _distances(models, confidence_level, method)
        for rows, F in blocks:
            ends[rows] = _of_tables(models, F, away, confidence_level, method)
        return ends
    error = models.tie * largest_of(model.rows.own(model.rows.targets))
    for rows, F in blocks:
        scales = {}
        if method == "scaled":
            some = blocks_of(X).rows(np.arange(rows.start, rows.stop))
            scales = _scales(model, some, F.shape)
        made = INTERVALS.get(method, jackknife_plus)
        ends[rows] = made(r, F, confidence_level, rounding_error=error, **scales)
    if outcome.plain:
        return ends
    ends = outcome.function.inverse(ends)
    if outcome.function.keeps_scale:
        return ends
    return outwards(ends[..., 0], ends[..., 1], 0.0, len(r))


def _distances(models: WithoutUnits, confidence_level: float, method: str) -> Array:
    """Distance of each target from its output that counts for an interval, rounding included."""
    away = np.abs(models.residuals)
    if method == "minmax":
        rank = required_rank(confidence_level, len(away))
        away = np.broadcast_to(order_statistic(away, rank, 0), away.shape)
    tables = models.left_out
    assert isinstance(tables, Tables)
    widened = np.empty(away.shape)
    for tested, table in zip(models.units.tested_by, tables.models, strict=True):
        widened[tested] = away[tested] + models.tie * largest_of(table.loo.y)
    return widened


def _of_tables(
    models: WithoutUnits, F: Array, away: Array, confidence_level: float, method: str
) -> Array:
    """Intervals from models with transforms of their own, each of whose ends goes back by its."""
    lower, upper = np.empty((2, *F.shape))
    tables = models.left_out
    assert isinstance(tables, Tables)
    for tested, table in zip(models.units.tested_by, tables.models, strict=True):
        outcome = table.outcome
        assert isinstance(outcome, Numbers)
        lower[:, tested] = outcome.function.inverse(F[:, tested] - away[tested])
        upper[:, tested] = outcome.function.inverse(F[:, tested] + away[tested])
    if method == "minmax":
        return outwards(lower.min(axis=1), upper.max(axis=1), 0.0, len(away))
    return intervals_of_ends(lower, upper, confidence_level)


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
    scales: list[LocalScale] | None = vars(model).get("local_scales")
    if scales is None:
        left_out = closed.left_out
        R = np.empty((units.n_units, *left_out.y.shape))
        with blas_threads(len(train)):
            for ids, F in left_out.everywhere(units, inner=units):
                R[ids] = left_out.y - F
            K = cross(X_fit)
        residuals = (np.ascontiguousarray(values.T) for values in np.moveaxis(R, 2, 0))
        scales = vars(model)["local_scales"] = [LocalScale(r, K, number) for r in residuals]
    K = cross(X[:, train] if model.pairwise else X)
    loo = np.stack([scale.loo for scale in scales], axis=-1)
    new = np.stack([scale.at(K)[:, number] for scale in scales], axis=-1)
    return {"loo_scales": loo.reshape(shape[1:]), "scales": new.reshape(shape)}


def sets(
    model: Fitted,
    models: WithoutUnits,
    X: Any,
    confidence_level: float,
    class_conditional: bool,
) -> AnyArray:
    """Prediction sets of new rows, (m, n_classes) of bool."""
    targets, outcome = model.rows.own(model.rows.targets), model.outcome
    labels, loo = outcome.codes(targets), targets - models.residuals
    loo_scores = outcome.margins(loo.reshape(len(loo), -1))[np.arange(len(labels)), labels]
    tie = models.tie * float(largest_of(targets).max())
    members = np.empty((_num_samples(X), len(outcome.classes)), dtype=bool)
    for rows, F in outputs_without(model, models, X):
        scores = outcome.margins(F.reshape(*F.shape[:2], -1))
        members[rows] = prediction_sets(
            *(loo_scores, scores, confidence_level),
            labels if class_conditional else None,
            rounding_error=tie_width(loo_scores, 2.0 * tie),  # of differences
        )
    return members
