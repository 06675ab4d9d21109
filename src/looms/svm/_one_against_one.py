"""One-against-one support vector machines of several classes and their leave-one-out.

Two classes are the case of one pair. Of a pair (a, b), a < b, class b is the positive one.
Leaving out a sample changes the machines of the pairs that hold its class; the machines of
the other pairs are trained without it anyway.

Sources are cited by the keys of docs/references.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import log_expit

from looms._classes import class_targets
from looms._typing import Array
from looms.calibration import couple, fit_sigmoid
from looms.calibration._sigmoid import Sigmoid, fit_increasing_sigmoid, fit_sigmoids
from looms.held_out import HeldOut
from looms.svm.dual import DualSolution, solve

_FIRST = 1.0 + 8 * np.finfo(float).eps
Labels = npt.NDArray[np.intp]
#: What sigmoids are fitted to: leave-one-out outputs, or those for the training samples.
FittedTo: TypeAlias = Literal["loo", "single"]


@dataclass(frozen=True, eq=False)
class Pair:
    """Samples of two classes.

    Attributes
    ----------
    classes : indices (a, b) of the two.
    samples : (m,) indices of their samples.
    y : (m,) -1 for a, 1 for b.
    """

    classes: tuple[int, int]
    samples: Labels
    y: Array


def pairs_of(labels: Labels) -> tuple[Pair, ...]:
    """Pairs of the classes 0 to k - 1 of ``labels``, in lexicographic order."""
    pairs = []
    for a, b in combinations(range(int(labels.max()) + 1), 2):
        samples = np.flatnonzero((labels == a) | (labels == b))
        pairs.append(Pair((a, b), samples, np.where(labels[samples] == b, 1.0, -1.0)))
    return tuple(pairs)


@dataclass(frozen=True, eq=False)
class Machines:
    """Solved machines of all pairs.

    Attributes
    ----------
    pairs : the pairs.
    solutions : the solution of each.
    K : (n, n) kernel matrix of all samples.
    sample_weight : (n,) weights of the samples in sigmoids.
    """

    pairs: tuple[Pair, ...]
    solutions: tuple[DualSolution, ...]
    K: Array
    sample_weight: Array

    @property
    def coefficients(self) -> Array:
        """(n, n_pairs) y α of each machine, zero for the samples of other classes."""
        coefficients = np.zeros((len(self.K), len(self.pairs)))
        for q, (pair, solution) in enumerate(zip(self.pairs, self.solutions, strict=True)):
            coefficients[pair.samples, q] = solution.alpha * pair.y
        return coefficients

    @property
    def intercepts(self) -> Array:
        """(n_pairs,) intercepts."""
        return np.array([solution.intercept for solution in self.solutions])

    def outputs(self) -> Array:
        """(n, n_pairs) outputs of all machines for all samples."""
        return self.K @ self.coefficients + self.intercepts

    @cached_property
    def loo_outputs(self) -> Array:
        """Leave-one-out outputs of all pairs, (n, n_pairs); read only."""
        outputs = self.outputs()
        for q, (pair, solution) in enumerate(zip(self.pairs, self.solutions, strict=True)):
            outputs[pair.samples, q] = solution.leave_one_out().outputs
        outputs.flags.writeable = False
        return outputs

    def sigmoids(self, fitted_to: FittedTo) -> tuple[Sigmoid, ...]:
        """Sigmoids of the pairs for new samples: nowhere decreasing.

        Parameters
        ----------
        fitted_to : "loo", the leave-one-out outputs, or "single", those of each machine for the
            samples that it was trained on.
        """
        outputs = self.loo_outputs if fitted_to == "loo" else self.outputs()
        return tuple(
            fit_increasing_sigmoid(
                outputs[pair.samples, q], pair.y, self.sample_weight[pair.samples]
            )
            for q, pair in enumerate(self.pairs)
        )

    def left_out_log_odds(self, fitted_to: FittedTo) -> Array:
        """(n, n_pairs) log-odds of the second class, by machines and sigmoids without the sample.

        The sigmoids are those of `sigmoids`, without the sample. For "single" that is what a refit
        without it gives. For "loo" they are fitted to the leave-one-out outputs of the others,
        whose machines saw it: without it too, it would take a path for every two samples.
        """
        outputs, own = self.outputs(), self.loo_outputs
        log_odds = np.empty(outputs.shape)
        sigmoids = self.sigmoids(fitted_to)
        for q, (pair, solution) in enumerate(zip(self.pairs, self.solutions, strict=True)):
            log_odds[:, q] = -(sigmoids[q].slope * outputs[:, q] + sigmoids[q].intercept)
            values = own[pair.samples, q]
            rows = np.broadcast_to(values, (len(values), len(values)))
            if fitted_to == "single":
                rows = solution.leave_one_out(all_outputs=True)[1]
            slopes, intercepts = _increasing(rows, pair.y, self.sample_weight[pair.samples])
            log_odds[pair.samples, q] = -(slopes * values + intercepts)
        return log_odds

    def left_out(self) -> LeftOut:
        """Outputs and log-odds for each sample of machines and sigmoids that did not see it.

        Raises
        ------
        looms.svm.NotConvergedError
            If the KKT conditions of a machine without a sample cannot be met.

        Notes
        -----
        The sigmoid of a machine is fitted to its outputs for the very samples that it was
        trained on, as by [T11 section 2.2.1]: one Newton iteration over an (m, m) array gives
        all of those without a sample. Memory: a few such arrays for the largest pair.
        """
        outputs = self.outputs()
        log_odds = np.empty(outputs.shape)
        for q, (pair, solution) in enumerate(zip(self.pairs, self.solutions, strict=True)):
            weight = self.sample_weight[pair.samples]
            sigmoid = fit_sigmoid(solution.outputs, pair.y, weight)
            log_odds[:, q] = -(sigmoid.slope * outputs[:, q] + sigmoid.intercept)
            loo, everywhere = solution.leave_one_out(all_outputs=True)
            slopes, intercepts = fit_sigmoids(everywhere, pair.y, _others(weight))
            outputs[pair.samples, q] = loo.outputs
            log_odds[pair.samples, q] = -(slopes * loo.outputs + intercepts)
        return LeftOut(outputs, log_odds)


def _others(weight: Array) -> Array:
    """Weights (m, m), row i with weight zero for sample i."""
    others = np.tile(weight, (len(weight), 1))
    np.fill_diagonal(others, 0.0)
    return others


def _increasing(outputs: Array, y: Array, weight: Array) -> tuple[Array, Array]:
    """Slopes and intercepts of sigmoids that do not decrease, of each row without its sample."""
    others = _others(weight)
    slopes, intercepts = fit_sigmoids(outputs, y, others)
    for i in np.flatnonzero(slopes > 0):
        constant = fit_increasing_sigmoid(outputs[i], y, others[i])
        slopes[i], intercepts[i] = constant.slope, constant.intercept
    return slopes, intercepts


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Leave-one-out outputs and log-odds of all pairs.

    Attributes
    ----------
    outputs : (n, n_pairs) outputs.
    log_odds : (n, n_pairs) log-odds of the second class of each pair.
    """

    outputs: Array
    log_odds: Array


def solved_pairs(
    K: Array,
    pairs: tuple[Pair, ...],
    bounds: Array,
    sample_weight: Array,
    start: Machines | None = None,
) -> Machines:
    """Machines of all pairs.

    Parameters
    ----------
    K : (n, n) kernel matrix.
    pairs : of `pairs_of`.
    bounds : (n,) upper bounds of the dual coefficients, C_i > 0.
    sample_weight : (n,) weights in sigmoids.
    start : machines of the same pairs at other bounds, from which to start.

    Raises
    ------
    looms.svm.NotConvergedError
        If the KKT conditions of a machine cannot be met.
    """
    solutions = []
    for q, pair in enumerate(pairs):
        own = K if len(pair.samples) == len(K) else K[np.ix_(pair.samples, pair.samples)]
        near = None if start is None else start.solutions[q]
        solutions.append(solve(own, pair.y, bounds[pair.samples], near))
    return Machines(pairs, tuple(solutions), K, sample_weight)


def class_log_probabilities(log_odds: Array) -> Array:
    """(n, k) logarithms of class probabilities from (n, n_pairs) log-odds of the pairs.

    Those of more than two classes are coupled [WLW04, second method].
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


def class_leave_one_out(machines: Machines, labels: Labels, fitted_to: FittedTo) -> HeldOut:
    """Leave-one-out decision values of the classes, of unit weight.

    For two classes the outputs of the machine; for more the logarithms of the coupled
    probabilities, by machines and sigmoids without the sample, of which the largest wins.

    Parameters
    ----------
    machines : of all pairs.
    labels : (n,) classes 0 to k - 1.
    fitted_to : the sigmoids that decide, as for `Machines.sigmoids`.
    """
    n_classes = int(labels.max()) + 1
    if n_classes == 2:
        values = machines.loo_outputs[:, 0]
    else:
        values = class_log_probabilities(machines.left_out_log_odds(fitted_to))
    return HeldOut(class_targets(labels, n_classes), values)
