"""Support vector machines without each unit of rows, by exact paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from looms._threads import one_blas_thread
from looms._typing import AnyArray, Array, Matrix
from looms.lssvm._system import targets_as_columns
from looms.lssvm.left_out import LeftOut
from looms.svm._one_against_one import Machines, coupled, solved_pairs
from looms.svm._problem import Loss
from looms.units import Batch, Units


class Paths(LeftOut):
    """Support vector machines without each unit, whose coefficients are driven to zero.

    Outputs are those of the model for two classes; for more they are logarithms of the coupled
    probabilities, by sigmoids without the unit.

    Parameters
    ----------
    machines : solved models of all pairs of classes, with each row by itself held out.
    C, loss : of the models, for samples of weight one.
    cross : function of new rows that gives their kernel values with those of the fit, (b, n).
    sigmoids : (2, n_pairs) slopes and intercepts of the model of all rows; by default fitted to
        its leave-one-out outputs.
    """

    def __init__(
        self,
        machines: Machines,
        C: float,
        loss: Loss,
        cross: Callable[[Matrix], Array],
        sigmoids: Array | None = None,
    ) -> None:
        self.machines, self.C, self.loss = machines, C, loss
        self.cross, self.sigmoids = cross, sigmoids
        self.y = targets_as_columns(machines.targets)
        self.weight = machines.sample_weight
        self._last = machines
        self._known: tuple[Machines, tuple[Array, Array]] | None = None

    def outputs(self, units: Units) -> Array:
        with one_blas_thread():
            F = [one.held_out().outputs for one in self.without(units)]
        return units.only_tested(np.stack([targets_as_columns(f) for f in F]))

    def without(self, units: Units) -> list[Machines]:
        """The models without the units of each repetition.

        Sigmoids of several classes are fitted to the outputs that all repetitions of a pass over
        the rows hold out.
        """
        each = [self._without(number) for number in units.number]
        if len(each) == 1 or self.y.shape[1] == 1:
            return each
        single, joined = np.array([one.held_out_outputs for one in each]), list(each)
        for repetition, rows in units.passes:
            known = self.machines.outputs()
            known[rows] = single[repetition, rows]
            for r in np.unique(repetition):
                joined[r] = each[r].seeing(known)
        return joined

    def fitted(self) -> Array:
        f = self.machines.outputs()
        if f.shape[1] == 1:
            return f
        if self.sigmoids is None:
            fitted = self.machines.sigmoids()
            self.sigmoids = np.array([(one.slope, one.intercept) for one in fitted]).T
        return coupled(f, *self.sigmoids)

    def of_own(self, rows: AnyArray) -> Array:
        F, known = [], self.machines.held_out_outputs
        for G in rows:
            folds = np.full(len(self.y), -1)
            folds[G] = 0
            without = replace(self.machines, folds=folds, known=known)
            F.append(self._at(without, self.machines.K[G], np.array([0]))[:, 0])
        return np.stack(F)

    def of_rows(self, batch: Batch, units: Units, inner: Units | None = None) -> Array:
        K, F = self.machines.K, np.empty((len(batch.ids), *self.y.shape))
        machines = self.without(units)
        for r in np.unique(batch.repetition):
            which = batch.repetition == r
            F[which] = self._at(machines[r], K, batch.ids[which]).swapaxes(0, 1)
        if inner is not None:
            for k, G in enumerate(batch.rows):
                rest = np.delete(np.arange(len(self.y)), G)
                F[k, rest] = self._of_rest(rest, inner.number[0, rest])
        return F

    def at(self, X: Matrix, units: Units) -> Array:
        K = self.cross(X)
        F = np.empty((len(K), units.n_units, self.y.shape[1]))
        for r, machines in enumerate(self.without(units)):
            ids = np.flatnonzero(units.repetition == r)
            F[:, ids] = self._at(machines, K, ids)
        return F

    def own(self, X: Matrix, rows: AnyArray, units: Units) -> Array:
        K, F, number = self.cross(X), np.empty((len(rows), self.y.shape[1])), units.own[rows]
        for r, machines in enumerate(self.without(units)):
            which = np.flatnonzero(units.repetition[number] == r)
            if not len(which):
                continue
            ids, place = np.unique(number[which], return_inverse=True)
            with one_blas_thread():
                f = machines.outputs_without(K[which], ids)[np.arange(len(which)), place]
                if f.shape[1] > 1:
                    slopes, intercepts = self._sigmoids_without(machines)
                    f = coupled(f, slopes[rows[which]], intercepts[rows[which]])
            F[which] = f
        return F

    def _sigmoids_without(self, machines: Machines) -> tuple[Array, Array]:
        """`Machines.held_out_sigmoids`, kept until other models are asked for theirs."""
        if self._known is None or self._known[0] is not machines:
            self._known = machines, machines.held_out_sigmoids()
        return self._known[1]

    def _without(self, folds: AnyArray) -> Machines:
        """The models with other folds, of which those below zero stay."""
        for known in (self.machines, self._last):
            if np.array_equal(folds, known.folds):
                return known
        machines = self._last = replace(self.machines, folds=folds)
        return machines

    def _at(self, machines: Machines, K: Array, ids: AnyArray) -> Array:
        """Outputs for rows of kernel values (b, n), without each of some folds, (b, k, t)."""
        with one_blas_thread():
            f = machines.outputs_without(K, ids)
            if f.shape[2] == 1:
                return f
            first = [int(np.flatnonzero(machines.folds == k)[0]) for k in ids]
            slopes, intercepts = self._sigmoids_without(machines)
        return coupled(f, slopes[first], intercepts[first])

    def _of_rest(self, rest: AnyArray, folds: AnyArray) -> Array:
        """Held-out outputs of the model of some rows; NaN if these lack a class."""
        known = self.machines
        labels = known.labels[rest]
        if len(np.unique(labels)) <= known.labels.max():
            return np.full((len(rest), self.y.shape[1]), np.nan)
        data = known.K[np.ix_(rest, rest)], labels, self.C, known.sample_weight[rest], folds
        with one_blas_thread():
            held_out = solved_pairs(*data, loss=self.loss).held_out()
        return targets_as_columns(held_out.outputs)


def mean_of_passes(values: Sequence[Array], rows: Sequence[AnyArray]) -> Array:
    """Mean of (n, ...) values over the passes that test a row."""
    total, count = np.zeros(values[0].shape), np.zeros(len(values[0]))
    for each, tested in zip(values, rows, strict=True):
        total[tested] += each[tested]
        count[tested] += 1
    return np.asarray((total.T / count).T)
