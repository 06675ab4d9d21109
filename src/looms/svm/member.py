"""Support vector machines as members of a model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from looms._classes import class_indices, rounding
from looms._memory import CERTIFICATE, check_memory
from looms._threads import one_blas_thread
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import RowBlocks
from looms.folds import left_out_with
from looms.held_out import HeldOut
from looms.kernels import Kernel
from looms.kernels._gram import check_finite_lower
from looms.lssvm._system import targets_as_columns
from looms.lssvm.fit import Fit, KernelMember, cross_of, outputs, samples_of_fit
from looms.svm._one_against_one import coupled, solved_pairs
from looms.svm._problem import KKT_TOLERANCE, Loss
from looms.svm.dual import solve
from looms.svm.left_out import Paths, mean_of_passes
from looms.units import Units


def kernel_matrix(kernel: Kernel, X: Matrix) -> Array:
    """(n, n) kernel matrix; ValueError unless it is finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        K = kernel(X)
    check_finite_lower(K, kernel)
    return K


@dataclass(frozen=True, eq=False, repr=False)
class SupportVectorMember(KernelMember):
    """A support vector machine; of several classes, one for each pair.

    Its output is that of the model for two classes; for more, the logarithms of the probabilities
    that sigmoids of the outputs of all pairs are coupled to.

    Attributes
    ----------
    weight, kernel : as for `KernelMember`.
    mu : regularization; C of the losses is 1 / (n mu).
    dual_coef : (n,) or (n, n_pairs) coefficients y α of the training samples, positive for the
        second class of a pair, zero but for support vectors. Pairs are in lexicographic order.
    intercept : float or (n_pairs,)
    loss : "hinge" or "squared_hinge".
    sigmoids : (2, n_pairs) slopes and intercepts; None for two classes.
    """

    loss: Loss = "hinge"
    sigmoids: Array | None = None

    @property
    def support(self) -> AnyArray:
        """Rows of the fit with a coefficient for some pair."""
        return np.flatnonzero(targets_as_columns(self.dual_coef).any(axis=1))

    def pair_outputs(self, X: Matrix | RowBlocks, X_fit: Matrix) -> Array:
        """Outputs for the pairs of classes, (b, n_pairs)."""
        alpha = targets_as_columns(self.dual_coef)
        if self.pairwise:  # X has kernel values with all rows of the fit
            return outputs(self.kernel, X, samples_of_fit(X_fit), alpha, self.intercept)
        basis = samples_of_fit(X_fit[self.support])
        return outputs(self.kernel, X, basis, alpha[self.support], self.intercept)

    def outputs(self, X: Matrix | RowBlocks, X_fit: Matrix) -> Array:
        f = self.pair_outputs(X, X_fit)
        return self.weight * (f[:, 0] if self.sigmoids is None else coupled(f, *self.sigmoids))

    def left_out(self, X: Matrix, y: Array, zeta: Array, fit_intercept: bool) -> Paths:
        K, labels, C = kernel_matrix(self.kernel, X), class_indices(y), 1.0 / (len(y) * self.mu)
        with one_blas_thread():
            machines = solved_pairs(K, labels, C, zeta, np.arange(len(y)), loss=self.loss)
        return Paths(machines, C, self.loss, cross_of(self.kernel, X), self.sigmoids)

    def fit(self, left_out: Paths, units: Units, y: Array, tie: float | None = None) -> Fit:
        machines, n = left_out.machines, len(y)
        with one_blas_thread():
            passes, tested = zip(*machines.passes(units), strict=True)
            of_units = mean_of_passes([one.held_out_outputs for one in passes], tested)
            sigmoids = replace(machines, known=of_units).sigmoids()
            coef, intercepts = machines.coefficients, machines.intercepts
        member = replace(self, weight=1.0, mu=1.0 / (n * left_out.C))
        if len(intercepts) == 1:
            member = replace(member, dual_coef=coef[:, 0], intercept=float(intercepts[0]))
        else:
            of_pairs = np.array([(one.slope, one.intercept) for one in sigmoids]).T
            member = replace(member, dual_coef=coef, intercept=intercepts, sigmoids=of_pairs)
        left_out.sigmoids = member.sigmoids
        held_out = left_out.outputs(units).reshape(-1, *y.shape)
        alone = left_out.outputs(Units.rows(n))[0].reshape(y.shape)
        loo = HeldOut(y, alone, left_out.weight)
        return Fit(member, loo, held_out, units, rounding(n) if tie is None else tie)

    def changed(
        self, known: Paths, out: AnyArray, X: Matrix, y: Array, zeta: Array, fit_intercept: bool
    ) -> Paths:
        total, n = float(zeta.sum()), len(zeta)
        mu = 1.0 / (known.C * total)
        return replace(self, mu=mu).left_out(X, y, zeta * (n / total), fit_intercept)

    def refits(self, X: Matrix, y: Array, zeta: Array, fit_intercept: bool) -> RefittedPairs:
        return RefittedPairs(self, X, y, zeta)

    def order_of_refits(self, shape: tuple[int, int]) -> int:
        return shape[0]

    def expanded(self, refits: RefittedPairs, train: AnyArray, places: AnyArray) -> Array:
        alpha = targets_as_columns(self.dual_coef)[train]
        f = refits.K[places] @ alpha + self.intercept
        return f[:, 0] if self.sigmoids is None else coupled(f, *self.sigmoids)


class RefittedPairs:
    """Refits of support vector machines by scikit-learn, polished.

    LIBSVM, whose kernel values are float32, finds the margin; its solution is then polished until
    the KKT conditions hold to machine precision. The sigmoids of several classes are not refitted.
    """

    condition = 0.0
    solver = "scikit-learn's SVC, polished"

    def __init__(self, member: SupportVectorMember, X: Matrix, y: Array, zeta: Array) -> None:
        check_memory(len(y), CERTIFICATE)
        self.member, self.X, self.y, self.zeta = member, X, y, zeta
        self.K, self.labels = kernel_matrix(member.kernel, X), class_indices(y)
        self.C = zeta / (len(y) * member.mu)

    @cached_property
    def _paths(self) -> Paths:
        """The closed form whose sigmoids without each unit couple the pairs."""
        return self.member.left_out(self.X, self.y, self.zeta, True)

    def refitted(self, labels: AnyArray, units: Units, repetition: int) -> tuple[Array, Array]:
        """Outputs of rows with a number, without all of that number, and what the KKT conditions
        leave open of them; the units hold out the rows that sigmoids are fitted to.
        """
        gone, tested = left_out_with(labels), np.flatnonzero(labels >= 0)
        f, moved = np.full((2, *targets_as_columns(self.y).shape), np.nan)
        n_pairs = targets_as_columns(self.member.dual_coef).shape[1]
        of_pairs, exactness = np.full((len(self.y), n_pairs), np.nan), 0.0
        for number in np.unique(labels[tested]):
            rows = np.flatnonzero(labels == number)
            of_pairs[rows], to = self._solved(gone != number, rows)
            exactness = max(exactness, to)
        moved[tested] = exactness
        if self.member.sigmoids is None:
            f[tested] = of_pairs[tested]
        else:
            with one_blas_thread():
                known = self._paths.without(units)[repetition].held_out_outputs
                one = replace(self._paths.machines, folds=gone, known=known)
                slopes, intercepts = one.held_out_sigmoids()
            f[tested] = coupled(of_pairs[tested], slopes[tested], intercepts[tested])
            moved[tested] *= max(1.0, float(np.abs(slopes[tested]).sum(axis=1).max()))
        return f.reshape(self.y.shape), moved.reshape(self.y.shape)

    def outputs(self, rows: AnyArray) -> tuple[Array, Array]:
        """Outputs of the model of all rows at some of them, and the same differences."""
        of_pairs, exactness = self._solved(np.full(len(self.y), True), rows)
        f = of_pairs[:, :1]
        if self.member.sigmoids is not None:
            f = coupled(of_pairs, *self.member.sigmoids)
            exactness *= max(1.0, float(np.abs(self.member.sigmoids[0]).sum()))
        f = f.reshape(len(rows), *self.y.shape[1:])
        return f, np.full(f.shape, exactness)

    def _solved(self, fitted: AnyArray, rows: AnyArray) -> tuple[Array, float]:
        """Outputs at some rows, (r, n_pairs), of models of the rows ``fitted``, and how exact."""
        found, exactness = [], 0.0
        for pair in combinations(range(int(self.labels.max()) + 1), 2):
            own = np.flatnonzero(fitted & np.isin(self.labels, pair))
            y = np.where(self.labels[own] == pair[1], 1.0, -1.0)
            of_own = self.K[np.ix_(own, own)], y, self.C[own], self.K[rows][:, own]
            f, to = _refitted_pair(*of_own, self.member.loss)
            found.append(f)
            exactness = max(exactness, to)
        return np.column_stack(found), exactness


def _refitted_pair(K: Array, y: Array, C: Array, K_new: Array, loss: Loss) -> tuple[Array, float]:
    """Outputs of a model of two classes at new samples, and how exact they are."""
    if (y == y[0]).all():
        return np.full(len(K_new), y[0]), 0.0
    solution = solve(K, y, C, loss=loss)
    f = K_new @ (solution.alpha * y) + solution.intercept
    return f, max(KKT_TOLERANCE, 2.0 * solution.exactness) * float(1.0 + np.abs(f).max())
