"""One-against-one support vector machines for several classes and their leave-one-out.

Two classes are the case of one pair. In a pair (a, b), a < b, class b is the positive one.
Leaving out a sample changes only the models of pairs with its class, since the others are
trained without it anyway. Leaving out a fold changes the models of every class in it.

Sources are cited by the keys of docs/references.md.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import log_expit

from looms._classes import class_targets
from looms._typing import AnyArray, Array
from looms.calibration._coupling import couple
from looms.calibration._sigmoid import (
    Sigmoid,
    fit_increasing_sigmoid,
    fit_increasing_sigmoids,
)
from looms.held_out import HeldOut
from looms.svm._problem import Loss
from looms.svm.dual import DualSolution, SolutionsWithout, solve
from looms.units import Units

_FIRST = 1.0 + 8 * np.finfo(float).eps
#: With more than two classes, an SVC takes the first class of a pair as the positive one: its
#: outputs for the pairs, and their coefficients, are those here times this.
SVC_SIGN = -1.0
Labels: TypeAlias = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Machine:
    """Solved model for two classes.

    Attributes
    ----------
    samples : (m,) indices of the samples of these classes.
    y : (m,) -1 for the first class, 1 for the second.
    solution : solution of their dual problem.
    """

    samples: Labels
    y: Array
    solution: DualSolution


@dataclass(frozen=True, eq=False)
class Machines:
    """Solved models of all pairs, in lexicographic order.

    Attributes
    ----------
    machines : model of each pair.
    K : (n, n) kernel matrix of all samples.
    labels : (n,) classes 0 to k - 1.
    sample_weight : (n,) weights of the samples in sigmoids.
    folds : (n,) numbers, equal for samples held out together; below zero for samples that stay.
    known : (n, n_pairs) held-out outputs, if they are not those without the ``folds`` alone, as
        where a gap leaves with a fold; None to compute them.
    """

    machines: tuple[Machine, ...]
    K: Array
    labels: Labels
    sample_weight: Array
    folds: Labels
    known: Array | None = None

    @property
    def targets(self) -> Array:
        """(n,) or (n, k) targets ±1."""
        return class_targets(self.labels, int(self.labels.max()) + 1)

    @property
    def coefficients(self) -> Array:
        """(n, n_pairs) y α of each model, zero for samples of other classes."""
        coefficients = np.zeros((len(self.K), len(self.machines)))
        for q, machine in enumerate(self.machines):
            coefficients[machine.samples, q] = machine.solution.alpha * machine.y
        return coefficients

    @property
    def intercepts(self) -> Array:
        """(n_pairs,) intercepts."""
        return np.array([machine.solution.intercept for machine in self.machines])

    def outputs(self) -> Array:
        """(n, n_pairs) outputs of all models for all samples."""
        return self.K @ self.coefficients + self.intercepts

    @cached_property
    def left_out(self) -> tuple[SolutionsWithout, ...]:
        """Models of each pair without each sample, or fold, that changes them."""
        return tuple(m.solution.left_out(self.folds[m.samples]) for m in self.machines)

    @cached_property
    def held_out_outputs(self) -> Array:
        """Outputs of all pairs without each sample, or its fold, (n, n_pairs); read-only."""
        if self.known is not None:
            return self.known
        outputs = self.outputs()
        for q, (machine, without) in enumerate(zip(self.machines, self.left_out, strict=True)):
            own, place = machine.samples, _places(without.numbers, self.folds)
            others = np.setdiff1d(np.flatnonzero(place >= 0), own)
            coefficients = without.coefficients[place[others]]
            expanded = np.einsum("ij,ij->i", self.K[np.ix_(others, own)], coefficients)
            outputs[others, q] = expanded + without.intercepts[place[others]]
            rows = np.vstack([without.outputs, machine.solution.outputs])  # -1 is the last
            outputs[own, q] = rows[place[own], np.arange(len(own))]
        outputs.flags.writeable = False
        return outputs

    def seeing(self, known: Array) -> Machines:
        """The same models, whose sigmoids are fitted to other held-out outputs (n, n_pairs)."""
        other = copy(self)
        vars(other).pop("held_out_outputs", None)
        vars(other)["known"] = known
        return other

    def passes(self, units: Units) -> list[tuple[Machines, Labels]]:
        """The models with the folds of each pass over the samples, and those that it tests."""
        if units.shape[0] == 1:
            (folds,) = units.number
            same = np.array_equal(folds, self.folds)
            return [(self if same else replace(self, folds=folds), np.flatnonzero(units.tested[0]))]
        single = [replace(self, folds=number).held_out_outputs for number in units.number]
        passes = []
        for repetition, rows in units.passes:
            folds, known = np.full(len(self.K), -1), self.outputs()
            folds[rows] = units.number[repetition, rows]
            known[rows] = np.array(single)[repetition, rows]
            passes.append((replace(self, folds=folds, known=known), rows))
        return passes

    def outputs_without(self, K: Array, ids: Labels) -> Array:
        """Outputs for new samples of the models without each of some folds.

        Parameters
        ----------
        K : (m, n) kernel values between the new samples and those of the models.
        ids : (k,) numbers of folds.

        Returns
        -------
        outputs : (m, k, n_pairs).
        """
        outputs = np.empty((len(K), len(ids), len(self.machines)))
        for q, (machine, without) in enumerate(zip(self.machines, self.left_out, strict=True)):
            coefficients = np.vstack([without.coefficients, machine.solution.alpha * machine.y])
            intercepts = np.append(without.intercepts, machine.solution.intercept)
            f = K[:, machine.samples] @ coefficients.T + intercepts
            outputs[:, :, q] = f[:, _places(without.numbers, ids)]
        return outputs

    def sigmoids(self) -> tuple[Sigmoid, ...]:
        """Sigmoids of the pairs for new samples, fitted to held-out outputs, nowhere decreasing."""
        samples = [machine.samples for machine in self.machines]
        outputs = self.held_out_outputs
        return tuple(
            fit_increasing_sigmoid(outputs[own, q], self.machines[q].y, self.sample_weight[own])
            for q, own in enumerate(samples)
        )

    def held_out_sigmoids(self) -> tuple[Array, Array]:
        """Slopes and intercepts, (n, n_pairs), of the sigmoids without each sample, or its fold.

        They are fitted to the held-out outputs of the other samples, whose models were trained
        with the sample: to exclude it there too would take a path for every two samples.

        Raises
        ------
        looms.svm.NotConvergedError
            If the KKT conditions of a model without a sample cannot be met.

        Notes
        -----
        All sigmoids of a model of m samples come from one Newton iteration over an (m, m)
        array. Memory: a few such arrays for the largest pair.
        """
        slopes, intercepts = np.empty((2, len(self.K), len(self.machines)))
        for q, machine in enumerate(self.machines):
            own = machine.samples
            numbers = np.unique(self.folds[own])
            numbers = numbers[numbers >= 0]
            leaves = np.zeros((len(numbers) + 1, len(own)), dtype=bool)  # the last leaves none
            leaves[:-1] = self.folds[own] == numbers[:, None]
            fitted = np.broadcast_to(self.held_out_outputs[own, q], leaves.shape)
            others = np.where(leaves, 0.0, self.sample_weight[own])
            sigmoids = fit_increasing_sigmoids(fitted, machine.y, others)
            place = _places(numbers, self.folds)  # -1 is the last
            slopes[:, q], intercepts[:, q] = (values[place] for values in sigmoids)
        return slopes, intercepts

    def held_out_log_odds(self) -> Array:
        """(n, n_pairs) log-odds of the second class, from models and sigmoids without the sample.

        It raises as `held_out_sigmoids` does.
        """
        slopes, intercepts = self.held_out_sigmoids()
        return -(slopes * self.held_out_outputs + intercepts)

    def held_out(self) -> HeldOut:
        """Decision values of the classes without each sample, or its fold, with unit weights.

        For two classes these are the outputs of the model. For more classes they are the
        logarithms of the coupled probabilities, from models and sigmoids without the sample;
        the largest wins.
        """
        n_classes = int(self.labels.max()) + 1
        if n_classes == 2:
            values = self.held_out_outputs[:, 0]
        else:
            values = class_log_probabilities(self.held_out_log_odds())
        return HeldOut(self.targets, values)


def _places(members: Labels, numbers: Labels) -> Labels:
    """Position of each number among the members, (n,); -1 for a number that is not a member."""
    place = np.full(int(max(numbers.max(), members.max(initial=0))) + 1, -1)
    place[members] = np.arange(len(members))
    return np.where(numbers >= 0, place[numbers], -1)


def solved_pairs(
    K: Array,
    labels: Labels,
    C: float,
    sample_weight: Array,
    folds: Labels,
    start: Machines | None = None,
    loss: Loss = "hinge",
) -> Machines:
    """Models of all pairs.

    Parameters
    ----------
    K : (n, n) kernel matrix.
    labels : (n,) classes 0 to k - 1, each with a sample.
    C : factor of the loss for samples of weight one.
    sample_weight : (n,) positive factors of C, and weights in sigmoids.
    folds : (n,) numbers, equal for samples held out together.
    start : models of the same samples at another C, from which to start.
    loss : as for `solve`.

    Raises
    ------
    looms.svm.NotConvergedError
        If the KKT conditions of a model cannot be met.
    """
    machines = []
    for q, (a, b) in enumerate(combinations(range(int(labels.max()) + 1), 2)):
        own = np.flatnonzero((labels == a) | (labels == b))
        y = np.where(labels[own] == b, 1.0, -1.0)
        # Another C changes nearly all coefficients of the squared hinge, of the hinge few.
        near = start.machines[q].solution if start and loss == "hinge" else None
        part = K if len(own) == len(K) else K[np.ix_(own, own)]
        solution = solve(part, y, C * sample_weight[own], near, loss=loss)
        machines.append(Machine(own, y, solution))
    return Machines(tuple(machines), K, labels, sample_weight, folds)


def pairs_of_svc(
    dual_coef: Array, intercept: Array, support: Labels, labels: AnyArray
) -> tuple[Array, Array]:
    """Coefficients (n, n_pairs) and intercepts (n_pairs,) of the models inside an SVC.

    Parameters
    ----------
    dual_coef, intercept, support : ``dual_coef_``, ``intercept_`` and ``support_`` of the SVC.
    labels : (n,) classes that it was fitted to, 0 to k - 1.
    """
    n_classes = len(dual_coef) + 1
    pairs = list(combinations(range(n_classes), 2))
    sign = 1.0 if n_classes == 2 else SVC_SIGN
    coefficients = np.zeros((len(labels), len(pairs)))
    for q, (a, b) in enumerate(pairs):
        # Row r of dual_coef_ holds the r-th duel of the class of each support vector.
        for label, row in ((a, b - 1), (b, a)):
            own = labels[support] == label
            coefficients[support[own], q] = sign * dual_coef[row, own]
    return coefficients, sign * intercept


def coupled(f: Array, slopes: Array, intercepts: Array) -> Array:
    """Logarithms of the class probabilities, (..., k), from outputs of pairs, (..., n_pairs)."""
    log_odds = -(slopes * f + intercepts)
    values = class_log_probabilities(log_odds.reshape(-1, f.shape[-1]))
    return values.reshape(*f.shape[:-1], -1)


def class_log_probabilities(log_odds: Array) -> Array:
    """(n, k) logarithms of class probabilities from (n, n_pairs) log-odds of the pairs.

    With more than two classes the probabilities are coupled [WLW04, second method].
    """
    if log_odds.shape[1] == 1:
        return np.column_stack([log_expit(-log_odds[:, 0]), log_expit(log_odds[:, 0])])
    n_classes = (1 + math.isqrt(1 + 8 * log_odds.shape[1])) // 2
    pairwise = np.full((len(log_odds), n_classes, n_classes), 0.5)
    positive = np.exp(log_expit(log_odds))
    for q, (a, b) in enumerate(combinations(range(n_classes), 2)):
        pairwise[:, b, a] = positive[:, q]
        pairwise[:, a, b] = 1.0 - positive[:, q]
    p = np.maximum(couple(pairwise), np.finfo(float).tiny)
    p[np.arange(len(p)), p.argmax(axis=1)] *= _FIRST  # so that no rounding makes others equal
    return np.log(p)
