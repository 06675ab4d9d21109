"""Least-squares machines: fits with given values, and figures from held-out outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from looms._classes import class_indices
from looms._memory import GIVEN, check_memory
from looms._scores import class_scores, number_scores
from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import RowBlocks
from looms.estimators._base import KernelMachine, check_flag
from looms.estimators._certificate import CertifiedSystem
from looms.estimators._fits import fitted_machine, outputs, projection_of
from looms.estimators._folds import refits_of, units_of_fit
from looms.folds import group_numbers
from looms.held_out import HeldOut
from looms.kernels import Kernel
from looms.kernels._samples import Samples, center_of, check_scale, training_rows
from looms.lssvm._system import targets_as_columns
from looms.lssvm.features import has_few_features
from looms.lssvm.fit import Fit
from looms.lssvm.left_out import Chosen, LeftOut, Linear, Sum
from looms.lssvm.projection import Projection
from looms.scores import Scored, area_within, held_out_decisions
from looms.selection._decisions import Decided, Decisions
from looms.selection._nested import Nested, Setting
from looms.units import Units


class Given(NamedTuple):
    """Values of a machine before it is fitted, named as those of a `Member`."""

    weight: float
    kernel: Kernel
    mu: float
    landmarks: Matrix | None = None


@dataclass(frozen=True, eq=False)
class Member:
    """A least-squares machine in a stack, whose output is the weighted sum of its members' outputs.

    Attributes
    ----------
    weight : positive weight of its outputs; the weights of all members sum to one.
    kernel, mu : kernel with its values, and regularization.
    dual_coef : (n,) or (n, t) coefficients of the training samples.
    intercept : float or (t,)
    coef : (n_features,) or (n_features, t) feature weights of a linear machine that was solved for
        them, otherwise None.
    landmarks : (m, n_features) samples that the coefficients belong to; None if these are
        the training samples.
    """

    weight: float
    kernel: Kernel
    mu: float
    dual_coef: Array
    intercept: Any
    coef: Array | None = None
    landmarks: Matrix | None = None

    def outputs(self, X: Matrix, X_fit: Matrix) -> Array:
        """w f(x) for validated samples; ``X_fit`` are the training samples."""
        basis = X_fit if self.landmarks is None else self.landmarks
        f = outputs(self.kernel, X, basis, self.dual_coef, self.intercept, self.coef)
        return np.asarray(self.weight * f)

    def among(self, rest: AnyArray, n: int) -> Member:
        """The machine of the rows ``rest`` of n samples, with coefficients of all n."""
        if self.landmarks is not None:
            return self
        dual_coef = np.zeros((n, *self.dual_coef.shape[1:]))
        dual_coef[rest] = self.dual_coef
        return replace(self, dual_coef=dual_coef)


def member_of(weight: float, fitted: Mapping[str, Any]) -> Member:
    """A fit as a member of a stack, from its fitted attributes."""
    names = ("kernel_", "mu_", "dual_coef_", "intercept_", "coef_", "landmarks_")
    values: list[Any] = [fitted.get(name) for name in names]
    return Member(float(weight), *values)


def sum_of(weights: Sequence[float], members: Sequence[Linear]) -> Linear | Sum:
    """The only member, or the weighted sum of several."""
    return members[0] if len(members) == 1 else Sum(weights, members)


def summed(shares: Sequence[float], fits: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Fitted attributes of a stack of fits, or of the only one.

    A stack has kernel, coefficients and intercept of its largest member.
    """
    fitted = dict(fits[int(np.argmax(shares))])
    if len(fits) == 1:
        return fitted
    for name in ("loo_", "held_out_"):
        y, _, weight = fitted[name]
        outputs = sum(share * one[name].outputs for share, one in zip(shares, fits, strict=True))
        fitted[name] = HeldOut(y, np.asarray(outputs), weight)
    fitted["members_"] = tuple(map(member_of, shares, fits))
    fitted["_tie"] = max(one["_tie"] for one in fits)
    return fitted


def output_of(members: Sequence[Member], X: Matrix, X_fit: Matrix) -> Array:
    """Output of a stack, or of one machine, for validated samples."""
    return reduce(np.add, (one.outputs(X, X_fit) for one in members))


class LeastSquaresMachine(CertifiedSystem, KernelMachine):
    """Base class of the least-squares machines: the fitted machine and its outputs."""

    #: Members of a stack; empty for a single machine.
    members_: tuple[Member, ...] = ()
    #: Folds without which candidates were tuned anew, to be compared; None if by ``units_``.
    choice_units_: Units | None = None
    #: Samples that the coefficients belong to; None if these are all samples.
    landmarks_: Matrix | None = None
    #: Feature weights of a linear machine that was solved for them.
    coef_: Array | None = None
    #: True for a machine made from a tuned one by adding or removing rows.
    _tuned_before: bool = False
    #: Units, and outputs without them, that scores are of if the rows, in blocks, are not kept.
    _scored_in: tuple[Units, Array] | None = None
    #: Difference up to which held-out outputs for labels are equal up to rounding.
    _tie: float = 0.0
    fit_intercept: bool
    mu_: float
    intercept_: Any
    fit_intercept_: bool

    def _set_fitted(self, **attributes: Any) -> None:
        super()._set_fitted(fit_intercept_=bool(self.fit_intercept), **attributes)

    def left_out(self) -> Linear | Sum:
        """The machine, or stack, without any of the rows of its fit.

        A fit keeps coefficients only: the system that these machines need has up to n² numbers,
        too many to keep in memory after every fit and in every model file. The first call solves
        it from the training rows, for n³ flops, or n q² for a machine of q landmarks or features.
        It is cached with the machine, but not pickled or saved, until the machine is fitted again.

        Returns
        -------
        left_out : looms.lssvm.left_out.LeftOut
            Of the rows with positive weight, in their order; targets and outputs in columns.
        """
        check_is_fitted(self, "dual_coef_")
        cached: Linear | Sum | None = vars(self).get("_left_out")
        if cached is None:
            members = self._members
            each = [Linear(self._projection(one.kernel, one.mu, one.landmarks)) for one in members]
            cached = self._left_out = sum_of([one.weight for one in members], each)
        return cached

    @property
    def _members(self) -> tuple[Member, ...]:
        """Members of a stack, or the machine as the only one."""
        return self.members_ or (member_of(1.0, vars(self)),)

    @property
    def _kept_rows(self) -> Matrix:
        """All rows of the fit; ValueError if they were in blocks."""
        if self.X_fit_ is None:
            raise ValueError(
                "Intervals, sets, case deletion and removal of rows need the training rows, but a "
                "machine fitted to rows in blocks does not keep them: fit it to rows in memory."
            )
        return self.X_fit_

    def _projection(self, kernel: Kernel, mu: float, landmarks: Matrix | None = None) -> Projection:
        """Solved system with a kernel and μ on the rows of the fit, or on landmarks."""
        train = np.flatnonzero(self.fit_weight_)
        X = training_rows(self._kept_rows, train, kernel.pairwise)
        y, zeta = self.loo_.y[train], self.fit_weight_[train]
        return projection_of(kernel, X, y, mu, zeta, self.fit_intercept_, landmarks)

    def _models_without_rows(self, X: Matrix) -> tuple[Array, Iterator[tuple[slice, Array]]]:
        if self.landmarks_ is not None and isinstance(X, RowBlocks):
            raise ValueError("Intervals and sets need samples in memory, not rows in blocks.")
        nested: Nested | None = self.nested_
        if nested is None:
            return self._without_each(X)
        left_out = self._chosen_without(nested)
        return nested.held_out.residuals, self._held_out_at(X, left_out, nested.units)

    def _without_each(self, X: Matrix) -> tuple[Array, Iterator[tuple[slice, Array]]]:
        """`_models_without_rows` at the values chosen, whether or not they were chosen anew."""
        left_out, units = self.left_out(), self._units.draws
        with blas_threads(len(left_out.y)):
            residuals = left_out.y - left_out.outputs(units)[0]
        shape = self.loo_.y.shape[1:]
        return residuals.reshape(-1, *shape), self._held_out_at(X, left_out, units)

    def _held_out_at(
        self, X: Matrix, left_out: LeftOut, units: Units
    ) -> Iterator[tuple[slice, Array]]:
        """Some new samples at a time, and their output by the machine without each row's unit."""
        train, shape = np.flatnonzero(self.fit_weight_), self.loo_.y.shape[1:]
        columns = X[:, train] if self.kernel_.pairwise else X
        for rows in left_out.parts(X.shape[0]):
            with blas_threads(len(train)):
                F = left_out.at(columns[rows], units)
            yield rows, F[:, units.number[0]].reshape(len(F), -1, *shape)

    def _chosen_without(self, nested: Nested) -> LeftOut:
        """Machines that were chosen without each fold: points of a grid, or tuned anew."""
        if isinstance(nested.machines[0], Setting):
            y, _, weight = nested.held_out

            def candidate(k: int) -> LeftOut:
                one = nested.machines[k]
                return Linear(self._projection(one.kernel, one.mu))

            return Chosen(candidate, nested.units, nested.machine, targets_as_columns(y), weight)
        X_fit = training_rows(self.X_fit_, nested.rows, self.kernel_.pairwise)

        def outputs_of(machine: Any, rest: AnyArray, X: Matrix) -> Array:
            return targets_as_columns(output_of(machine, X, X_fit))

        return refits_of(nested, X_fit, outputs_of)

    def _outputs_by_repetition(self) -> Array:
        """Held-out outputs that are scored, (n_repetitions, n) or (n_repetitions, n, t).

        Of the rows of the fit; NaN where a row is not tested. Those of ``nested_`` are one
        repetition.
        """
        nested: Nested | None = self.nested_
        if nested is not None:
            return nested.held_out.outputs[None]
        train, units = np.flatnonzero(self.fit_weight_), self._units
        if units.shape[0] == 1:
            return self.held_out_.outputs[None, train]
        with blas_threads(len(train)):
            outputs = self.left_out().outputs(units)
        return outputs.reshape(len(outputs), *self.loo_.y[train].shape)

    def _scored_anew(self) -> Scored:
        train = np.flatnonzero(self.fit_weight_)
        y, weight = self.loo_.y[train], self.loo_.sample_weight[train]
        groups = self._units.clusters
        if not is_classifier(self):
            outputs = self._outputs_by_repetition()
            return Scored(number_scores(y, outputs, weight, groups), train, None)
        nested: Nested | None = self.nested_
        of_nested = None if nested is None else nested.of_classes
        decisions, auc = of_nested or self._decided(weight)
        labels = class_indices(y)
        scores = class_scores(labels, decisions.wrong, auc, weight, groups, decisions.losses)
        return Scored(scores, train, decisions)

    def _area(self, weight: Array) -> tuple[float, Array]:
        return self._decided(weight)[1]

    def _decided(self, weight: Array) -> tuple[Decisions, tuple[float, Array]]:
        """Decisions on held-out outputs at the values chosen, and the area of `_area`."""
        train, rule = np.flatnonzero(self.fit_weight_), (self.threshold_, self.calibrator_)
        y = self.loo_.y[train]
        kept = self._scored_in
        if self.choice_units_ is not None:  # by machines tuned anew, which are not kept
            kept = self.choice_units_.among(train), self.held_out_.outputs[train]
        if kept is None:
            with blas_threads(len(train)):
                left_out = self.left_out()
                return held_out_decisions(left_out, self._units, weight, *rule, y.shape, self._tie)
        units, outputs = kept
        decided = Decided.of(np.arange(len(y)), outputs, *rule, self._tie)
        area = area_within(HeldOut(y, outputs, weight), units, self._tie)
        return Decisions.of([decided], class_indices(y)), area

    def _outputs(self, X: Matrix) -> Array:
        """f(x) = Σ_j α_j k(x_j, x) + b for validated samples, or the weighted sum of a stack."""
        return output_of(self._members, X, self.X_fit_)


class GivenMachine(LeastSquaresMachine):
    """Base of the machines with given hyper-parameters."""

    mu: float

    @property
    def _remedy_of_optimism(self) -> str | None:
        return "fit the self-tuning machine anew to these rows" if self._tuned_before else None

    def _fitted(
        self,
        X: Matrix,
        targets: Array,
        weight: Array,
        fit_weight: Array,
        groups: Any,
        labels: AnyArray | None = None,
    ) -> dict[str, Any]:
        """Fitted attributes of the machine on samples of positive weight.

        ``fit_weight`` is rescaled to mean one over these, so that integer weights are copies.
        ``labels`` are classes.
        """
        check_flag("fit_intercept", self.fit_intercept)
        if not (isinstance(self.mu, Real) and 0 < float(self.mu) < np.inf):
            raise ValueError(f"mu must be a positive number, got {self.mu!r}.")
        if isinstance(self.kernel, (list, tuple)):
            name = type(self).__name__
            raise ValueError(
                f"{name} takes one kernel, got a list of {len(self.kernel)}; {name}CV chooses "
                "among several."
            )
        (kernel,) = self._kernels()
        if not kernel.pairwise:
            check_scale(X)
        train, mu = np.flatnonzero(fit_weight), float(self.mu)
        n = len(train)
        if n < 2:
            raise ValueError(
                f"Leave-one-out needs two samples of non-zero weight or more, got {n}."
            )
        numbers = group_numbers(groups, len(targets))
        units = units_of_fit(None, targets, numbers, labels, train, seed=0)
        zeta = fit_weight[train] * (n / fit_weight[train].sum())
        X_train = training_rows(X, train, kernel.pairwise)
        if not has_few_features(kernel, X_train):
            check_memory(n, GIVEN, f"{type(self).__name__}CV(rank='auto'), a machine on landmarks")
        kernel = kernel.started(Samples(X_train, center=center_of(X_train), weight=zeta))
        members, y, fits = self._given_members(kernel, mu), targets[train], []
        for one in members:
            options = zeta, self.fit_intercept, one.landmarks
            projection = projection_of(one.kernel, X_train, y, one.mu, *options)
            fit = Fit.of(projection, Linear(projection).outputs(units), y)
            fits.append(fitted_machine(X, weight, targets, one.kernel, one.mu, fit))
        fitted = summed([one.weight for one in members], fits)
        return fitted | {"units_": units.spread(train, numbers)}

    def _given_members(self, kernel: Kernel, mu: float) -> Sequence[Given | Member]:
        """Values of the machines that are summed; here of one."""
        return [Given(1.0, kernel, mu)]

    def _set_given(self, fitted: dict[str, Any]) -> None:
        """Set the attributes of a fit, and what follows from its held-out outputs."""
        self._set_fitted(**fitted)
