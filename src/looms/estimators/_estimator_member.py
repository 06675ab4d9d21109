"""Estimators of scikit-learn as members of a model.

Whatever has no closed form is refitted: held-out outputs of an estimator are of at most a few
folds, and its models without single rows are as many fits as there are rows.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.ensemble import VotingClassifier
from sklearn.utils import get_tags
from sklearn.utils.validation import _num_samples

from looms._checks import take_rows
from looms._threads import openmp_threads
from looms._typing import AnyArray, Array, Matrix
from looms._words import one_line
from looms.blocks import RowBlocks, rows_in_memory
from looms.estimators._fit_routing import all_parts, check_fit, fit_arguments, ready
from looms.fitted._outcome import Outcome
from looms.fitted._rows import OUTER_FOLDS, Rows
from looms.folds import fold_numbers
from looms.held_out import HeldOut
from looms.kernels import Kernel
from looms.lssvm._system import targets_as_columns
from looms.lssvm.fit import Fit, Member
from looms.lssvm.left_out import Refits
from looms.selection._problem import Given, Problem
from looms.tables import TablePreprocessor
from looms.units import Units

#: Folds for held-out outputs of single rows or groups.
FOLDS = 5
One = TypeVar("One")
#: Messages of scikit-learn, and of functions of a table, about an array without names of columns.
_OF_NAMES = re.compile(r"(?i)dataframe|feature names|valid indices|ndarray' object has no attr")


def check_estimators(estimators: list[Any], classes: bool, kernels: list[Kernel]) -> None:
    """ValueError for an estimator that cannot stand among the kernels of a model."""
    for estimator in estimators:
        if not (is_classifier if classes else is_regressor)(estimator):
            wanted = "classifier" if classes else "regressor"
            raise ValueError(f"{one_line(estimator)} is no {wanted}: give one, or leave it out.")
        if classes and hasattr(estimator, "predict"):  # others get their methods by the fit
            _check_values(estimator)
        if get_tags(estimator).input_tags.pairwise or any(one.pairwise for one in kernels):
            raise ValueError(
                f"{one_line(estimator)} takes features, and a precomputed kernel takes kernel "
                "values: X cannot be both."
            )


def _check_values(estimator: Any) -> None:
    """ValueError for a classifier without an output for each class."""
    if not any(hasattr(estimator, name) for name in _VALUES):
        votes = any(isinstance(part, VotingClassifier) for part in all_parts(estimator))
        remedy = "set voting='soft'" if votes else "leave it out"
        raise ValueError(
            f"{one_line(estimator)} has neither predict_proba nor decision_function: {remedy}."
        )
    if one_against_one(estimator) and not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{one_line(estimator)} has an output for each pair of classes: use "
            "decision_function_shape='ovr'."
        )


def unequal(weight: Array) -> Array | None:
    """Weights of mean one; None if all are one."""
    return None if np.allclose(weight, 1.0) else weight


def one_against_one(estimator: Any) -> bool:
    """True if an SVC, perhaps inside a pipeline or search, gives an output for each pair."""
    return any(
        name.rpartition("__")[2] == "decision_function_shape" and value == "ovo"
        for name, value in estimator.get_params().items()
    )


_VALUES = ("predict_proba", "decision_function")


@dataclass(frozen=True, eq=False, repr=False)
class EstimatorMember(Member):
    """An estimator of scikit-learn.

    Its output is the prediction of a number; of classes what the outcome makes of their
    probabilities, or of the decision values if it has none.

    Attributes
    ----------
    weight : as for `Member`.
    estimator : fitted; not yet before a fit.
    outcome : of the targets as they are fitted.
    shape : () or (t,), of the target of a row.
    held_out : (n,) or (n, t) outputs of the rows of the fit by estimators without their fold; None
        before a fit.
    units : these folds, and ``without`` the members without each of them, which the fit keeps.
    keeps_shares : True if classes weigh in fits without a fold as they do in all rows.
    by_groups : True if fits get the groups of their rows.
    columns : preparation whose inverse the estimator takes, or None for prepared rows.
    """

    closed = False
    weight: float
    estimator: Any
    outcome: Outcome
    shape: tuple[int, ...]
    held_out: Array | None = None
    units: Units | None = None
    without: tuple[EstimatorMember, ...] = ()
    keeps_shares: bool = False
    by_groups: bool = False
    columns: TablePreprocessor | None = None

    def __repr__(self) -> str:
        return f"EstimatorMember({self.estimator!r}, weight={self.weight:.3g})"

    @property
    def kernel(self) -> Any:
        """The estimator, where candidates name their kernels."""
        return self.estimator

    def outputs(self, X: Matrix | RowBlocks, X_fit: Any) -> Array:
        if isinstance(X, RowBlocks):
            _, (f,) = X.sweep(lambda rows: ((), (self.values(rows),)))
        else:  # at once, as its own predict takes them
            f = self.values(X)
        return self.weight * f.reshape(len(f), *self.shape)

    def values(self, X: Matrix) -> Array:
        """Outputs in columns, (b, t), of the fitted estimator for prepared rows."""
        X = self._taken(X)
        if not self.outcome.decides:
            return predicted(self.estimator, X)
        likely = hasattr(self.estimator, "predict_proba")
        values = predicted(self.estimator, X, _VALUES[not likely])
        return self.outcome.outputs_of_estimator(values, self.estimator.classes_, likely)

    def left_out(
        self, X: Matrix, y: Array, zeta: Array, fit_intercept: bool, known: Iterable[Any] = ()
    ) -> Refits:
        X, groups = rows_in_memory(X), self._groups_in(self.units)

        def without(rest: AnyArray) -> Callable[[Matrix], Array]:
            return self.trained(X[rest], y[rest], zeta[rest], take_rows(groups, rest)).values

        return Refits(without, X, targets_as_columns(y), zeta, known)

    def left_out_of_fit(self, X: Matrix, y: Array, zeta: Array, fit_intercept: bool) -> Refits:
        pairs, none = zip(self.units or (), self.without, strict=True), np.empty(0, dtype=np.intp)
        kept = [(none, self.values), *((rows, one.values) for rows, one in pairs)]
        return self.left_out(X, y, zeta, fit_intercept, kept)

    def _taken(self, X: Matrix) -> Any:
        """Prepared rows as the estimator takes them."""
        return X if self.columns is None else self.columns.inverse_transform(X)

    def _groups_in(self, units: Units | None) -> AnyArray | None:
        """Groups of rows that fits get, of the units of these rows."""
        return units.clusters if self.by_groups and units is not None else None

    def trained(
        self, X: Matrix, y: Array, zeta: Array, groups: AnyArray | None = None
    ) -> EstimatorMember:
        """A clone of the estimator, fitted to some prepared rows."""
        X = self._taken(X)
        estimator = fitted(self.estimator, X, self.outcome.values(y), unequal(zeta), groups)
        if self.outcome.decides:
            _check_values(estimator)
        return replace(self, estimator=estimator, held_out=None, units=None, without=())

    def fit(self, left_out: Refits, units: Units, y: Array, tie: float | None = None) -> Fit:
        """The outputs are of the units if these are folds or at most ten, else of five folds."""
        X, zeta, n = left_out.X, left_out.weight, len(y)
        folds = _few_folds(self.outcome.codes(y), units, self.outcome.stratified)
        groups = self._groups_in(units)
        F, without = np.full((*folds.shape, left_out.y.shape[1]), np.nan), []
        for k, out in enumerate(folds):
            rest = np.delete(np.arange(n), out)
            weight = zeta[rest]
            if self.keeps_shares:
                factors = self.outcome.factors(y, zeta, rest)
                weight = weight * factors * (weight.sum() / (weight @ factors))
            r = folds.repetition[k]
            tested = out[folds.tested[r, out]]
            one, values = checked(
                *(self.estimator, f"without fold {k + 1} of {folds.n_units}"),
                partial(self.trained, X[rest], y[rest], weight, take_rows(groups, rest)),
                partial(EstimatorMember.values, X=X[tested]),
            )
            F[r, tested] = values
            without.append(one)
        F = F.reshape(-1, *y.shape)
        held_out = np.nanmean(F, axis=0)
        kept = {"held_out": held_out, "units": folds, "without": tuple(without)}
        whole, _ = checked(
            *(self.estimator, "on all rows"),
            partial(self.trained, X, y, zeta, groups),
            partial(EstimatorMember.values, X=X[:1]),
        )
        return Fit(replace(whole, **kept), HeldOut(y, held_out, zeta), F, folds)

    def weighing(self, weight: float) -> EstimatorMember:
        return replace(self, weight=float(weight))


def checked(
    estimator: Any, where: str, fit: Callable[[], One], outputs: Callable[[One], Array]
) -> tuple[One, Array]:
    """What a fit gives, and its outputs of some rows.

    Raises
    ------
    ValueError, or TypeError where the estimator raises one
        If either fails, or outputs are not finite, in one line that names the estimator and says
        ``where``: "on all rows".
    """
    try:
        one = fit()
        values = outputs(one)
        if not np.isfinite(values).all():
            raise ValueError("Its predictions contain NaN or infinity.")
    except MemoryError:
        raise
    except Exception as error:  # of any estimator
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{one_line(estimator)} fails {where}: {_words(error)}") from error
    return one, values


def _words(error: Exception) -> str:
    """The line of a message that has the cause, of a search the last; a remedy for names."""
    lines = [line for line in str(error).split("\n") if line.strip()] or [type(error).__name__]
    cause = lines[-1] if "fits failed" in lines[0] else lines[0]
    if not _OF_NAMES.search(cause):
        return cause
    return (
        f"{cause.rstrip('.')}. Candidates get prepared columns without names: set columns='raw', "
        "or choose columns by name in preprocess=."
    )


def _few_folds(labels: AnyArray, units: Units, classes: bool) -> Units:
    """Folds in the place of many rows or groups; a rare class may be in some of them only."""
    if units.in_folds or units.n_units <= OUTER_FOLDS:
        return units
    for stratified in (True, False) if classes else (False,):
        with suppress(ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a class with fewer rows than there are folds
            (numbers,) = fold_numbers(f"1x{FOLDS}", labels, units.clusters, classes=stratified)
            return Units.partition(numbers, units.clusters)
    return units


def estimator_problem(
    estimator: Any,
    rows: Rows,
    X: Matrix | RowBlocks,
    units: Units,
    outer: Units | None,
    columns: TablePreprocessor | None,
) -> Problem:
    """An estimator as it is, on the rows of a fit; in the folds ``outer`` if they are given.

    It takes the rows before their preparation by ``columns``, if that is given.
    """
    y = rows.own(rows.targets)
    member = EstimatorMember(
        weight=1.0,
        estimator=estimator,
        outcome=rows.outcome.on_scale,
        shape=y.shape[1:],
        keeps_shares=outer is not None and rows.outcome.decides and rows.weighs,
        by_groups=rows.grouped,
        columns=columns,
    )
    weights = rows.own(rows.fit_weight), rows.own(rows.selection_weight)
    problem = Problem(Given(estimator, "press", member), X, y, *weights, True, outer or units)
    check_fit(estimator, unequal(problem.zeta), rows.own(rows.groups) if rows.grouped else None)
    return problem


def fitted(
    estimator: Any,
    X: Any,
    y: AnyArray,
    sample_weight: Array | None = None,
    groups: AnyArray | None = None,
) -> Any:
    """A clone of the estimator, fitted; ValueError if there are weights, and it takes none."""
    with openmp_threads(len(y)), ready(estimator) as one:
        one.fit(X, y, **fit_arguments(one, sample_weight=sample_weight, groups=groups))
        return one  # some fits return nothing


def predicted(estimator: Any, X: Any, method: str = "predict") -> Array:
    """(n_samples, t) numbers that a method of a fitted estimator gives, in columns."""
    n = _num_samples(X)
    with openmp_threads(n):
        values = np.asarray(getattr(estimator, method)(X), dtype=np.float64)
    if values.shape[:1] != (n,):
        shape = f"an array of shape {values.shape}"
        raise ValueError(f"{type(estimator).__name__}.{method} gives {shape} for {n} rows.")
    return targets_as_columns(values)
