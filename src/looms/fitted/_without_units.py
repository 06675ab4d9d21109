"""Models without each unit of rows, of any fitted model, and intervals and sets from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import gen_batches
from sklearn.utils.validation import _num_samples

from looms._classes import tie_width
from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import RowBlocks, blocks_of, rows_in_memory
from looms.conformal import jackknife_minmax, jackknife_plus, prediction_sets
from looms.conformal._jackknife import (
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
from looms.lssvm.conditioning import largest_of
from looms.lssvm.fit import KernelMember, Member, cross_of
from looms.lssvm.left_out import Chosen, LeftOut
from looms.scores import WithoutUnits
from looms.selection._nested import Nested
from looms.units import Batch, Units

#: Intervals from residuals and the outputs of the models without each row.
INTERVALS = {"plus": jackknife_plus, "minmax": jackknife_minmax}
METHODS = (*INTERVALS, "scaled")
_NUMBERS = 1 << 20  # in the outputs of a block of rows, with one of each row of the fit
_ONLY_NEW = "Models without a fold are kept for new rows: the rows of their fit are not."
_OUTPUTS = 1 << 22  # of models without each fold, in memory at once


class FoldModels(LeftOut):
    """Models that were fitted anew without each fold, of any kind.

    Parameters
    ----------
    models : outputs of new rows, (b, t), by the model without each of the units.
    y, weight : as for `LeftOut`.
    """

    def __init__(self, models: Sequence[Callable[[Any], Array]], y: Array, weight: Array) -> None:
        self.models, self.y, self.weight = models, y, weight

    def at(self, X: Any, units: Units) -> Array:
        return np.stack([outputs(X) for outputs in self.models], axis=1)

    def parts(self, n: int) -> Iterator[slice]:
        """Positions of n new rows: all at once, if the outputs are not too many."""
        step = max(1, _OUTPUTS // (len(self.models) * self.y.shape[1]))
        return (slice(start, min(start + step, n)) for start in range(0, n, step))

    def own(self, X: Any, rows: AnyArray, units: Units) -> Array:
        F, number = np.empty((len(rows), self.y.shape[1])), units.own[rows]
        for k, outputs in enumerate(self.models):
            changed = np.flatnonzero(number == k)
            if len(changed):
                F[changed] = outputs(rows_at(X, changed))
        return F

    def outputs(self, units: Units) -> Array:
        raise ValueError(_ONLY_NEW)

    def fitted(self) -> Array:
        raise ValueError(_ONLY_NEW)

    def of_own(self, rows: AnyArray) -> Array:
        raise ValueError(_ONLY_NEW)

    def of_rows(self, batch: Batch, units: Units, inner: Units | None = None) -> Array:
        raise ValueError(_ONLY_NEW)


def models_without(model: Fitted, nested: Nested | None) -> WithoutUnits:
    """Models without each unit: those that ``nested`` selected, or those of the fit.

    In closed form they take n³ flops, once, and ValueError if the rows are not at hand.
    """
    features = model.rows.train if model.pairwise else None
    if nested is None:
        left_out, units = model.left_out, model.units_of_intervals
        first = blocks_of(model.X).rows(np.arange(1))
        first = first if features is None else first[:, features]
        n = len(left_out.y)
        with blas_threads(n):
            outputs = left_out.outputs(units)[units.repetition[units.own], np.arange(n)]
            left_out.at(first, units)  # which keeps what new rows need
        residuals = (left_out.y - outputs).reshape(-1, *model.loo.y.shape[1:])
        tie = model.tie_without_rows(model.tie)
        return WithoutUnits(left_out, units, residuals, tie, features)
    if not nested.in_closed_form:
        return _models_of_folds(model, nested)
    y, _, weight = nested.held_out
    settings = (KernelMember(1.0, one.kernel, one.mu) for one in nested.models)
    solved = [model.system_of(member) for member in settings]
    chosen = Chosen(solved, nested.units, nested.model_of_fold, targets_as_columns(y), weight)
    tie = model.tie_without_rows(nested.tie)
    return WithoutUnits(chosen, nested.units, nested.residuals, tie, features)


def models_at_hand(model: Fitted, nested: Nested | None) -> WithoutUnits | None:
    """The same if that takes no solution of a system."""
    if nested is None:
        return models_without(model, None) if model.has_left_out else None
    return None if nested.in_closed_form else _models_of_folds(model, nested)


def _models_of_folds(model: Fitted, nested: Nested) -> WithoutUnits:
    (y, _, weight), train = nested.held_out, model.rows.train
    tables = tuple(one for one in nested.models if isinstance(one, Fitted))
    if tables:
        rests = (np.delete(train, left) for left in nested.units)
        pairs = zip(tables, rests, strict=True)
        outputs = [partial(_outputs_of_table, table, rest) for table, rest in pairs]
    else:
        X = model.rows.X  # of which landmarks take nothing: rows in blocks stay there
        X = None if X is None else training_rows(X, train, model.pairwise)
        outputs = [partial(_outputs_of_members, members, X) for members in nested.models]
    return WithoutUnits(
        FoldModels(outputs, targets_as_columns(y), weight),
        nested.units,
        nested.residuals,
        model.tie_without_rows(nested.tie),
        train if model.pairwise and not tables else None,
        tables,
    )


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
    models: WithoutUnits,
    X: Any,
    confidence_level: float,
    method: str,
    outcome: Numbers,
    scales: Callable[[slice, tuple[int, ...]], dict[str, Array]] | None = None,
) -> Array:
    """Prediction intervals of new rows, (m, 2) or (m, t, 2), in units of the target.

    Parameters
    ----------
    models : without each unit, of targets on the scale of the ``outcome``, or tables that were
        fitted anew, each with its own.
    X : samples, or rows as they were passed if the models are of tables.
    confidence_level, method : "plus" or "minmax", as of `looms.conformal`.
    scales : of "plus", scales of the residuals and of a block of new rows.
    """
    r = models.residuals
    ends = np.empty((_num_samples(X), *r.shape[1:], 2))
    if models.tables:
        away = _distances(models, confidence_level, method)
        for rows, F in outputs_without(models, X):
            ends[rows] = _table_intervals(models, F, away, confidence_level, method)
        return ends
    error = models.tie * largest_of(models.left_out.y.reshape(r.shape))
    for rows, F in outputs_without(models, X):
        more = {} if scales is None else scales(rows, F.shape)
        ends[rows] = INTERVALS[method](r, F, confidence_level, rounding_error=error, **more)
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
    widened = np.empty(away.shape)
    for tested, table in zip(models.units.tested_by, models.tables, strict=True):
        widened[tested] = away[tested] + models.tie * largest_of(table.loo.y)
    return widened


def _table_intervals(
    models: WithoutUnits, F: Array, away: Array, confidence_level: float, method: str
) -> Array:
    """Intervals from models with transforms of their own, each of whose ends goes back by its."""
    lower, upper = np.empty((2, *F.shape))
    for tested, table in zip(models.units.tested_by, models.tables, strict=True):
        inverse = table.outcome.function.inverse
        lower[:, tested] = inverse(F[:, tested] - away[tested])
        upper[:, tested] = inverse(F[:, tested] + away[tested])
    if method == "minmax":
        return outwards(lower.min(axis=1), upper.max(axis=1), 0.0, len(away))
    return intervals_of_ends(lower, upper, confidence_level)


def scaled_intervals(
    model: Fitted, models: WithoutUnits, X: Matrix | RowBlocks, confidence_level: float
) -> Array:
    """`intervals` with residuals scaled by those of the nearest rows of the fit."""
    outcome, blocks = model.outcome, blocks_of(X)
    assert isinstance(outcome, Numbers)

    def scales(rows: slice, shape: tuple[int, ...]) -> dict[str, Array]:
        return _scales(model, blocks.rows(np.arange(rows.start, rows.stop)), shape)

    return intervals(models, X, confidence_level, "plus", outcome, scales)


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
