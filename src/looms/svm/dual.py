"""Dual solution of a support vector machine to machine precision, and exact leave-one-out."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from looms._threads import blas_threads
from looms._typing import Array
from looms.svm._active_set import Indices, Polished, balanced, solution_near
from looms.svm._path import follow, rows_of_folds, tableau
from looms.svm._problem import (
    Loss,
    NotConvergedError,
    Problem,
    check_convex,
    checked,
    intercepts,
    problem_of,
    violations,
)

#: Numbers in each of the dozen arrays that paths and their ends take at a time.
_BLOCK = 1 << 20
_ROWS = 64  # described at a time: a dozen passes over them stay in the cache


@dataclass(frozen=True, eq=False)
class SolutionsWithout:
    """Models without one sample, or one fold, if they differ from the model of all samples.

    Attributes
    ----------
    numbers : (m,) indices of the samples, or numbers of the folds.
    coefficients : (m, n) y α of each model.
    intercepts : (m,) b.
    outputs : (m, n) outputs of each model at all samples.
    exactness : (m,) as `DualSolution.exactness`, without the conditions of the left-out samples.
    """

    numbers: Indices
    coefficients: Array
    intercepts: Array
    outputs: Array
    exactness: Array


@dataclass(frozen=True, eq=False)
class DualSolution:
    """Solved model for two classes, f(x) = Σ_i y_i α_i k(x_i, x) + b.

    Attributes
    ----------
    y : (n,) labels, ±1.
    C : (n,) factors of the losses; zero for samples that are ignored.
    alpha : (n,) dual coefficients; at a bound they are exactly 0, or C with the hinge.
    intercept : b. If no sample is free it is the middle of the possible values, as in LIBSVM.
    outputs : (n,) f(x_i).
    margin : (m,) indices of the free samples, with 0 < α, and α < C with the hinge.
    kkt_residual : largest violation of a KKT condition, in units of the outputs.
    duality_gap : primal minus dual objective.
    n_changes : number of changes of the active set since the start.
    """

    y: Array
    C: Array
    alpha: Array
    intercept: float
    outputs: Array
    margin: Indices
    kkt_residual: float
    duality_gap: float
    n_changes: int
    _problem: Problem = field(repr=False)
    _polished: Polished = field(repr=False)

    def leave_one_out(self) -> tuple[Array, Array]:
        """Exact outputs at all samples of the models without one sample, by decremental paths.

        Leaving out a sample with α_i = 0 does not change the model, except for the interval of an
        intercept that is not unique. For the others, the solution is followed while α_i is driven
        to zero [CP01; docs/references.md, Leave-one-out path]. The KKT conditions are checked at
        the end of each path, which is solved again if they do not hold to 1e-9, or to what `solve`
        allows.

        Returns
        -------
        outputs : (n, n) row ``i`` is f⁽⁻ⁱ⁾ at all samples.
        exactness : (n,) of each of these models, as in `SolutionsWithout`.

        Raises
        ------
        NotConvergedError
            If the KKT conditions of one of the models cannot be met.

        Notes
        -----
        C stays the same while a sample is held out. If only one class remains, the output is the
        label of that class. O(n²|S|) for a margin set S, and O(n k) for each set change of a path
        after k changes. Memory: the outputs, a tableau of the samples near the margin, and a dozen
        blocks of a million numbers.
        """
        n = len(self.y)
        outputs, exactness = np.tile(self.outputs, (n, 1)), np.full(n, self.exactness)
        without = self.left_out(np.arange(n))
        outputs[without.numbers], exactness[without.numbers] = without.outputs, without.exactness
        return outputs, exactness

    def left_out(self, folds: Indices) -> SolutionsWithout:
        """Models without one sample, or one fold, if they differ from this one.

        Parameters
        ----------
        folds : (n,) numbers, equal for samples that are held out together; below zero for samples
            that stay. The coefficients of a fold are driven to zero together, in proportion.

        Raises
        ------
        NotConvergedError
            As for `leave_one_out`.
        """
        problem, start = self._problem, self._polished
        # With no free sample the others bound the intercept, those of α_i = 0 among them.
        numbers = np.unique(folds[np.flatnonzero(self.alpha if len(self.margin) else self.C)])
        numbers = numbers[numbers >= 0]
        left_out = rows_of_folds(folds, numbers)
        beta = np.tile(start.beta, (len(numbers), 1))
        outputs, (b, exactness) = np.empty(beta.shape), np.empty((2, len(beta)))
        with blas_threads(len(self.y)):
            errors = []
            for k in self._followed(left_out, beta, outputs, b, exactness).tolist():
                without = problem.without(left_out[k][left_out[k] >= 0])
                machine = solution_near(without, balanced(without, beta[k], start.outputs))
                beta[k], outputs[k], b[k] = machine.beta, machine.outputs, machine.intercept
                exactness[k] = without.exactness(machine.residual, machine.beta)
                if not machine.residual <= without.residual_limit(machine.beta):
                    gap = without.duality_gap(machine.beta, machine.outputs)
                    alone = np.count_nonzero(left_out[k] >= 0) == 1
                    which = f" without {'sample' if alone else 'fold'} {numbers[k]}"
                    errors.append(NotConvergedError(float(exactness[k]), gap, which))
        if errors:
            raise max(errors, key=lambda error: error.kkt_residual)
        outputs -= problem.ridge * beta
        return SolutionsWithout(numbers, beta / problem.scale, b, outputs, exactness)

    def _followed(
        self, left_out: Indices, beta: Array, outputs: Array, b: Array, exactness: Array
    ) -> Indices:
        """Write the ends of the paths, a row each; return the rows whose end is no solution."""
        problem, start = self._problem, self._polished
        drives = (left_out >= 0) & (start.beta[left_out] != 0)
        stays = ~drives.any(axis=1)
        for rows in self._blocks(np.flatnonzero(stays)):
            outputs[rows], b[rows], residuals = self._described(beta[rows], left_out[rows])
            exactness[rows] = problem.exactness(residuals, beta[rows])
        unsolved = np.flatnonzero(~stays)
        for near in self._watched():
            if len(unsolved) == 0:
                break
            driven = left_out[unsolved][drives[unsolved]]
            table, failed = tableau(problem, start.margin, near, driven), []
            for rows in self._blocks(unsolved):
                ends = follow(problem, start, left_out[rows], table)
                beta[rows] = ends.beta
                outputs[rows], b[rows], residuals = self._described(ends.beta, left_out[rows])
                exactness[rows] = problem.exactness(residuals, ends.beta)
                solved = ends.finished & (residuals <= problem.residual_limit(ends.beta))
                failed.append(rows[~solved])
            unsolved = np.concatenate(failed)
        return unsolved

    def _blocks(self, rows: Indices) -> list[Indices]:
        """Blocks of rows of n numbers, of at most `_BLOCK` numbers each."""
        n_blocks = -(-len(rows) * len(self.y) // _BLOCK)
        return np.array_split(rows, n_blocks) if n_blocks else []

    def _watched(self) -> list[Indices]:
        """Samples to watch on the paths: those near the margin, then all."""
        part = np.flatnonzero(self._problem.lower < self._problem.upper)
        distance = np.abs(self.y - self._polished.outputs)[part]
        margin = self._polished.margin
        n_margin = 0 if margin is None else len(margin.basic)
        n_near = n_margin + 32 + (len(part) - n_margin) * 2 // 5
        if 2 * n_near > len(part):
            return [part]
        return [part[np.argpartition(distance, n_near)[:n_near]], part]

    def _described(self, beta: Array, left_out: Indices) -> tuple[Array, Array, Array]:
        """Outputs, intercepts and KKT residuals for rows of coefficients, without some samples."""
        problem, start, outputs = self._problem, self._polished, np.empty(beta.shape)
        residuals, own_b = np.empty((2, len(beta)))
        for first in range(0, len(beta), _ROWS):
            block = slice(first, first + _ROWS)
            rows, change = beta[block], beta[block] - start.beta
            part = np.flatnonzero(change.any(axis=0))  # most coefficients are unchanged
            Kbeta = change[:, part] @ problem.K[part]
            Kbeta += start.outputs - start.intercept
            errors = problem.y - Kbeta
            can_rise, can_fall = problem.can_rise(rows), problem.can_fall(rows)
            row, slot = np.nonzero(left_out[block] >= 0)
            own = row, left_out[block][row, slot]
            can_rise[own] = can_fall[own] = False
            own_b[block] = intercepts(errors, can_rise, can_fall)
            b = own_b[block, None]
            residual = violations(errors - b, can_rise, can_fall)
            outputs[block] = Kbeta + b
            residuals[block] = np.maximum(residual, np.abs(rows.sum(axis=1)))
        return outputs, own_b, residuals

    @property
    def exactness(self) -> float:
        """KKT residual, or the rounding of the outputs, 2.2e-16 Σ α max|K|, if that is larger.

        K is the kernel minus a constant, if that is exact.
        """
        return float(self._problem.exactness(self.kkt_residual, self._polished.beta))


def solve(
    K: npt.ArrayLike,
    y: npt.ArrayLike,
    C: npt.ArrayLike,
    start: DualSolution | npt.ArrayLike | None = None,
    *,
    loss: Loss = "hinge",
) -> DualSolution:
    r"""Dual solution of a support vector machine to machine precision.

    .. math:: \min_\alpha \tfrac12 \sum_{ij} \alpha_i \alpha_j y_i y_j K_{ij} - \sum_i \alpha_i,
              \quad \sum_i y_i \alpha_i = 0, \quad 0 \le \alpha_i \le C_i

    for the hinge. The squared hinge, :math:`\sum_i C_i \max(0, 1 - y_i f(x_i))^2`, has
    :math:`K_{ii} + 1 / 2 C_i` in place of :math:`K_{ii}` and no upper bound.

    From a start near the solution, the margin equations are solved exactly, and the active set
    changes until the KKT conditions hold up to rounding. ``K`` is checked to be positive
    semi-definite, since otherwise these conditions also hold at points that are not a minimum.

    Parameters
    ----------
    K : (n, n) symmetric kernel matrix, positive semi-definite up to rounding: its smallest
        eigenvalue, among coefficients with sum zero and samples with positive ``C``, is not below
        -1e-8 n times its largest entry.
    y : (n,) labels, ±1, both present among the samples with positive ``C``.
    C : factor of all losses, positive, or (n,) one for each; samples with zero are ignored.
    start : (n,) α to start from, or the solution for a neighboring C or kernel and the same
        samples; it need not be feasible. By default LIBSVM provides the start.
    loss : "hinge", or "squared_hinge" for the 2-norm model, as in ``sklearn.svm.LinearSVC``
        except that the latter also penalizes its bias.

    Returns
    -------
    solution : with the KKT residual, the duality gap, and `leave_one_out`.

    Raises
    ------
    ValueError
        If shapes do not agree, values are not finite, labels are not ±1, there is only one class,
        or bounds are negative.
    IndefiniteKernelError
        If ``K`` is not positive semi-definite; it is a ValueError too.
    NotConvergedError
        If the KKT conditions cannot be met to 1e-9. If the values of ``K`` times ``C`` are too
        large for double precision to resolve that, the limit is what it does resolve, at most
        1e-5; see ``kkt_residual`` of the solution.

    Notes
    -----
    A few Cholesky factorizations of the margin set from a good start, and one of size n to check
    ``K``, unless the start is a `DualSolution` of the same ``K``. If no sample is free, the
    intercept is not unique; it is LIBSVM's, the middle.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([-2.0, -1.0, 1.0, 3.0])
    >>> solution = solve(np.outer(x, x), np.sign(x), C=10.0)
    >>> solution.alpha.round(12), solution.margin
    (array([0. , 0.5, 0.5, 0. ]), array([1, 2]))
    >>> solution.leave_one_out()[0].diagonal().round(6)  # without -1 the line is at -0.5
    array([-2.      , -0.333333,  0.      ,  3.      ])
    """
    K, y, C = checked(np.array(K, dtype=np.float64), y, C, loss)  # the caller may change his
    problem = problem_of(K, y, C, loss)
    checked_before = (
        isinstance(start, DualSolution)
        and bool((start.C > 0)[C > 0].all())
        and np.array_equal(start._problem.K, problem.K)
    )
    if not checked_before:
        with blas_threads(len(y)):
            check_convex(problem)
    return solve_convex(problem, y, C, start)


def solve_convex(
    problem: Problem, y: Array, C: Array, start: DualSolution | npt.ArrayLike | None
) -> DualSolution:
    """`solve` for checked arrays and a kernel known to be positive semi-definite."""
    with blas_threads(len(y)):
        polished = solution_near(problem, _started(problem, y, C, start))
    can_rise, can_fall = problem.can_rise(polished.beta), problem.can_fall(polished.beta)
    inside = can_rise & can_fall
    at_bound = np.where(np.where(y > 0, can_fall, can_rise), C, 0.0)
    alpha = np.where(inside, np.abs(polished.beta) / problem.scale, at_bound)
    gap = problem.duality_gap(polished.beta, polished.outputs)
    if not polished.residual <= problem.residual_limit(polished.beta):
        raise NotConvergedError(polished.residual, gap)
    return DualSolution(
        y=y,
        C=C,
        alpha=alpha,
        intercept=polished.intercept,
        outputs=polished.outputs - problem.ridge * polished.beta,
        margin=np.flatnonzero(inside),
        kkt_residual=polished.residual,
        duality_gap=gap,
        n_changes=polished.n_changes,
        _problem=problem,
        _polished=polished,
    )


def _started(
    problem: Problem, y: Array, C: Array, start: DualSolution | npt.ArrayLike | None
) -> Array | None:
    """β to start from, if any."""
    if start is None:
        return None
    if isinstance(start, DualSolution):  # what was at a bound starts at the new one
        alpha = start.alpha * np.divide(C, start.C, out=np.ones(len(C)), where=start.C > 0)
    else:
        alpha = np.asarray(start, dtype=np.float64)
    if alpha.shape != y.shape or not np.isfinite(alpha).all():
        raise ValueError(
            f"start must be the finite dual coefficients of the {len(y)} samples, got an array "
            f"of shape {alpha.shape}."
        )
    return np.asarray(y * alpha * problem.scale)
