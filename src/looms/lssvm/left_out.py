"""Models without each unit of rows: all that criteria, choices, scores and intervals see.

A `LeftOut` gives the outputs of rows by the model without their unit, and those of all rows and
of new rows without each unit. Whatever reads it does not ask what kind of model it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from looms._typing import AnyArray, Array, Matrix
from looms.units import Batch, Units

_NUMBERS = 1 << 22  # in the outputs that are in memory at once


class Spread(NamedTuple):
    """Standard deviations of targets, given the targets of the rows of the fit.

    Attributes
    ----------
    residuals : (n, t) y_i − f⁽⁻ᴳ⁾(x_i), each of a row without its unit.
    held_out : (n, t) standard deviations of these.
    at : standard deviations of the targets of new rows, (b, t), of weight one.
    """

    residuals: Array
    held_out: Array
    at: Callable[[Matrix], Array]

    def scaled(self) -> Spread:
        """The same times the root mean square of the residuals in these standard deviations."""
        z = np.divide(self.residuals, self.held_out, where=self.held_out > 0, out=0 * self.held_out)
        s = np.sqrt((z**2).mean(axis=0))
        return Spread(self.residuals, self.held_out * s, lambda X: self.at(X) * s)


class LeftOut(ABC):
    """Models without each unit.

    Attributes
    ----------
    y : (n, t) targets.
    weight : (n,) weights of the rows in the fit.
    """

    y: Array
    weight: Array

    @property
    def members(self) -> Sequence[LeftOut]:
        """The models whose weighted outputs are summed; itself, if it is no sum."""
        return [self]  # a property, for a model that held itself would be freed late

    @abstractmethod
    def outputs(self, units: Units) -> Array:
        """Output of each row by the model without its unit, (n_repetitions, n, t).

        NaN for rows that are not tested.
        """

    @abstractmethod
    def fitted(self) -> Array:
        """Outputs of the model of all rows, (n, t)."""

    @abstractmethod
    def of_own(self, rows: AnyArray) -> Array:
        """Outputs of the rows of some units, (k, s), by the model without the unit, (k, s, t).

        Units may have rows in common.
        """

    @abstractmethod
    def of_rows(self, batch: Batch, units: Units, inner: Units | None = None) -> Array:
        """Outputs of all rows by the model without each unit of a batch, (k, n, t).

        Parameters
        ----------
        batch : some of the units.
        units : rows that leave together.
        inner : units of one repetition, in which every row is; a row outside of the unit then gets
            the output of the model that is without its inner unit as well.
        """

    @abstractmethod
    def at(self, X: Matrix, units: Units) -> Array:
        """Outputs of new rows by the model without each unit, (b, n_units, t)."""

    def own(self, X: Matrix, rows: AnyArray, units: Units) -> Array:
        """Outputs of changed rows by the model without their unit, (b, t).

        Parameters
        ----------
        X : (b, n_features) changed rows.
        rows : (b,) numbers of the rows of the fit that they were; each of them is tested.
        units : rows that leave together.
        """
        F = np.empty((len(rows), self.y.shape[1]))
        for some in self.parts(len(rows)):
            ids, place = np.unique(units.own[rows[some]], return_inverse=True)
            F[some] = self.at(X[some], units.only(ids))[np.arange(len(place)), place]
        return F

    def spread(self, units: Units) -> Spread:
        """Standard deviations of targets; ``units`` test each row once.

        Raises
        ------
        NotImplementedError
            If the model is not that of a Gaussian process.
        """
        raise NotImplementedError("This model has no standard deviations.")

    def leverage(self) -> Array:
        """∂f(x_i) / ∂y_i, (n,); NaN for a model that is not linear in the targets."""
        return np.full(len(self.y), np.nan)

    def energies(self, units: Units) -> Array:
        """e_Gᵀ (ζ (1 − H))_GG e_G of the residuals e without each unit, (n_units, t).

        H is the smoother, f = H y, so that ζ (1 − H) is n μ P for a single model.
        """
        e, energies = self.y - self.outputs(units), np.empty((units.n_units, self.y.shape[1]))
        for batch in units.parts(_NUMBERS // self.y.size):
            energies[batch.ids] = self.quadratic(batch, e[batch.places])
        return energies

    def quadratic(self, batch: Batch, e: Array) -> Array:
        """e_Gᵀ (ζ (1 − H))_GG e_G for (k, s, t) numbers e, (k, t).

        NaN for a model that is not linear in the targets.
        """
        return np.full((len(e), e.shape[2]), np.nan)

    def mean_square_changes(self, units: Units) -> Array:
        """Mean over rows outside of each unit, and targets, of (f⁽⁻ᴳ⁾ − f)², (n_units,)."""
        changes, fitted = np.empty(units.n_units), self.fitted()
        for ids, F in self.everywhere(units):
            stays = units.stays(ids)
            squares = ((F - fitted) ** 2).mean(axis=2) * stays
            changes[ids] = squares.sum(axis=1) / stays.sum(axis=1)
        return changes

    def everywhere(
        self, units: Units, inner: Units | None = None
    ) -> Iterator[tuple[AnyArray, Array]]:
        """Numbers of some units, (k,), and their `of_rows`, until all are done."""
        for batch in units.parts(_NUMBERS // self.y.size):
            yield batch.ids, self.of_rows(batch, units, inner)

    def parts(self, n: int) -> Iterator[slice]:
        """Positions of n new rows, some at a time, for `at`."""
        step = max(1, _NUMBERS // self.y.size)
        return (slice(start, min(start + step, n)) for start in range(0, n, step))


class Sum(LeftOut):
    """A stack: Σ w_k f_k, and so are all its outputs.

    Parameters
    ----------
    weights : of the members.
    members : models of the same rows.
    """

    def __init__(self, weights: Sequence[float], members: Sequence[LeftOut]) -> None:
        self.weights, self._members = list(weights), list(members)
        self.y, self.weight = members[0].y, members[0].weight

    @property
    def members(self) -> Sequence[LeftOut]:
        return self._members

    def outputs(self, units: Units) -> Array:
        return self._sum(member.outputs(units) for member in self.members)

    def fitted(self) -> Array:
        return self._sum(member.fitted() for member in self.members)

    def leverage(self) -> Array:
        return self._sum(member.leverage() for member in self.members)

    def quadratic(self, batch: Batch, e: Array) -> Array:
        return self._sum(member.quadratic(batch, e) for member in self.members)

    def of_own(self, rows: AnyArray) -> Array:
        return self._sum(member.of_own(rows) for member in self.members)

    def of_rows(self, batch: Batch, units: Units, inner: Units | None = None) -> Array:
        return self._sum(member.of_rows(batch, units, inner) for member in self.members)

    def at(self, X: Matrix, units: Units) -> Array:
        return self._sum(member.at(X, units) for member in self.members)

    def own(self, X: Matrix, rows: AnyArray, units: Units) -> Array:
        return self._sum(member.own(X, rows, units) for member in self.members)

    def spread(self, units: Units) -> Spread:
        """Σ w_k s_k, of one scale: as if the errors of the members were the same but for scale.

        Σ w_k s_k is the standard deviation of a sum with errors of correlation one, and not below
        it with others; the residuals of the stack scale it.
        """
        residuals, held_out, at = zip(*(one.spread(units) for one in self.members), strict=True)
        return Spread(
            self._sum(residuals), self._sum(held_out), lambda X: self._sum(each(X) for each in at)
        ).scaled()

    def _sum(self, outputs: Iterable[Array]) -> Array:
        weighted = (w * F for w, F in zip(self.weights, outputs, strict=True))
        return reduce(np.add, weighted)


class Chosen(LeftOut):
    """Candidates, of which one was selected without each unit.

    Parameters
    ----------
    candidates : fixed beforehand, models of the same rows.
    units : the only units that these models are without.
    chosen : (n_units,) number of the candidate that was selected without each unit.
    y, weight : as for `LeftOut`.
    """

    def __init__(
        self,
        candidates: Sequence[LeftOut],
        units: Units,
        chosen: AnyArray,
        y: Array,
        weight: Array,
    ) -> None:
        self.candidates, self.units, self.chosen = candidates, units, chosen
        self.y, self.weight = y, weight

    def outputs(self, units: Units) -> Array:
        F = np.full((*units.shape, self.y.shape[1]), np.nan)
        for _, own, one in self._each(units):
            F[own.tested] = one.outputs(own)[own.tested]
        return F

    def fitted(self) -> Array:
        raise ValueError("The model of all rows was selected on all of them: select it first.")

    def of_own(self, rows: AnyArray) -> Array:
        raise ValueError("The selection was made without other rows: select anew without these.")

    def of_rows(self, batch: Batch, units: Units, inner: Units | None = None) -> Array:
        F = np.empty((len(batch.ids), *self.y.shape))
        for ids, own, one in self._each(units, batch.ids):
            which = np.isin(batch.ids, ids)
            F[which] = one.of_rows(batch.some(which), own, inner)
        return F

    def everywhere(
        self, units: Units, inner: Units | None = None
    ) -> Iterator[tuple[AnyArray, Array]]:
        for ids, own, one in self._each(units):
            for some, F in one.everywhere(own, inner):
                yield ids[some], F

    def at(self, X: Matrix, units: Units) -> Array:
        F = np.empty((X.shape[0], len(self.chosen), self.y.shape[1]))
        for ids, own, one in self._each(units):
            F[:, ids] = one.at(X, own)
        return F

    def own(self, X: Matrix, rows: AnyArray, units: Units) -> Array:
        F, number = np.empty((len(rows), self.y.shape[1])), units.own[rows]
        for ids, own, one in self._each(units):
            changed = np.isin(number, ids)
            F[changed] = one.own(X[changed], rows[changed], own)
        return F

    def _each(
        self, units: Units, ids: AnyArray | None = None
    ) -> Iterator[tuple[AnyArray, Units, LeftOut]]:
        """For each candidate chosen, numbers of its units, these units alone, and the candidate."""
        ids = np.arange(units.n_units) if ids is None else ids
        for c in np.unique(self.chosen[ids]):
            own = ids[self.chosen[ids] == c]
            yield own, units.only(own), self.candidates[c]


class Refits(LeftOut):
    """Models of any kind by refits: a fit for each unit, always right.

    Parameters
    ----------
    fit : takes (m,) rows to train on, and returns a function of rows X with outputs (b, t).
    X : (n, n_features) rows.
    y, weight : as for `LeftOut`.
    known : models that ``fit`` need not make again, each with the rows that it is without.
    """

    def __init__(
        self,
        fit: Callable[[AnyArray], Callable[[Matrix], Array]],
        X: Matrix,
        y: Array,
        weight: Array,
        known: Iterable[tuple[AnyArray, Callable[[Matrix], Array]]] = (),
    ) -> None:
        self.fit, self.X, self.y, self.weight = fit, X, y, weight
        every = np.arange(len(y))
        self._known = {np.delete(every, rows).tobytes(): model for rows, model in known}

    def outputs(self, units: Units) -> Array:
        F = np.full((*units.shape, self.y.shape[1]), np.nan)
        for k, rows in enumerate(units):
            r = units.repetition[k]
            tested = rows[units.tested[r, rows]]
            if len(tested):
                F[r, tested] = self._without(rows)(self.X[tested])
        return F

    def fitted(self) -> Array:
        return self._without(np.empty(0, dtype=np.intp))(self.X)

    def of_own(self, rows: AnyArray) -> Array:
        return np.stack([self._without(G)(self.X[G]) for G in rows])

    def of_rows(self, batch: Batch, units: Units, inner: Units | None = None) -> Array:
        F = np.stack([self._without(G)(self.X) for G in batch.rows])
        for outputs, G in zip(F, batch.rows, strict=True):
            for H in inner or ():
                H = np.setdiff1d(H, G)
                if len(H):
                    outputs[H] = self._without(np.append(G, H))(self.X[H])
        return F

    def at(self, X: Matrix, units: Units) -> Array:
        return np.stack([self._without(G)(X) for G in units], axis=1)

    def own(self, X: Matrix, rows: AnyArray, units: Units) -> Array:
        F, number = np.empty((len(rows), self.y.shape[1])), units.own[rows]
        for k, G in enumerate(units):
            changed = number == k
            if changed.any():
                F[changed] = self._without(G)(X[changed])
        return F

    def _without(self, rows: AnyArray) -> Callable[[Matrix], Array]:
        rest = np.setdiff1d(np.arange(len(self.y)), rows)
        known = self._known.get(rest.tobytes())
        if known is None:
            known = self.fit(rest)
            if len(self._known) < len(self.y):  # as many as there are rows
                self._known[rest.tobytes()] = known
        return known
