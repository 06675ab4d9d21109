"""Exact test that the columns tell nothing about the target: the selection of a model, permuted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, product
from typing import Any

import numpy as np
from scipy.special import gammaln
from sklearn.utils import check_random_state

from looms._checks import check_count
from looms._threads import blas_threads
from looms._typing import AnyArray, Array
from looms._words import count, interval_text
from looms.blocks import rows_in_memory
from looms.diagnostics._problem import model_without_rows
from looms.kernels import Kernel, Weighted
from looms.kernels._samples import training_rows
from looms.lssvm import NotPositiveDefiniteError
from looms.lssvm._system import targets_as_columns
from looms.selection._objective import HeldOutCriterion, objective_of
from looms.selection._scan import grid_points
from looms.units import Units

#: Rows of a random sample that stands for a larger table, and of one group before others have some.
MOST, OF_GROUP = 1000, 30
#: With fewer orders of the targets no p-value is below 0.05.
LEAST_ORDERS = 20
_NUMBERS = 1 << 22  # targets that are permuted at once
_ROUNDING = 1e-9  # of a mean of squares


@dataclass(frozen=True, eq=False, repr=False)
class PermutationTest:
    """Test that the columns tell nothing about the target: the result of `permutation_test`.

    Attributes
    ----------
    statistic : least mean squared held-out error of all points, in squared units of the targets.
    random : (n_permutations,) the same of permuted targets, shown by its 5 and 95 % quantiles.
    p_value : (1 + #{random ≤ statistic}) / (1 + n_permutations).
    permuted : words for what is permuted, such as "rows" or "groups".
    kernels : (k,) kernels that were tried, each at the points of a grid.
    n_points : number of these points.
    n_samples : number of rows; fewer than those of the fit for a sample of these.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import KernelClassifier
    >>> model = KernelClassifier(mu=1e-3).fit(*load_iris(return_X_y=True))
    >>> permutation_test(model, n_permutations=9)
    PermutationTest(p_value=0.1, statistic=0.07695, random=0.8997 to 0.9033; 9 permutations of rows)
    """

    statistic: float
    random: Array
    p_value: float
    permuted: str
    kernels: tuple[Kernel, ...]
    n_points: int
    n_samples: int

    def __repr__(self) -> str:
        random = interval_text(*np.quantile(self.random, (0.05, 0.95)).tolist())
        return (
            f"PermutationTest(p_value={self.p_value:.3g}, statistic={self.statistic:.4g}, "
            f"random={random}; {count(len(self.random), 'permutation')} of {self.permuted})"
        )


def permutation_test(
    model: Any, n_permutations: int = 999, *, random_state: Any = 0
) -> PermutationTest:
    r"""Test that the columns tell nothing about the target; the model is selected anew each time.

    .. math:: p = \frac{1 + \#\{b : J(\pi_b y) \le J(y)\}}{1 + B}, \qquad
              J(y) = \min_{\theta} \frac{1}{n t} \sum_i \|e_i(\theta)\|^2, \qquad
              e_G(\theta) = P_{GG}^{-1} (P y)_G

    :math:`t` is the number of targets, or of more than two classes. :math:`\theta` are the kernels
    that the model was selected from, each at the points of a grid that the columns alone place: the
    one of `Search(method="grid")`. Held-out residuals are linear in the targets, so that one
    product for each point gives those of all permuted targets. Kernel, its values and
    regularization are selected anew for every permutation. So the p-value is that of the whole
    selection, however many candidates there are, and it is exact: if the targets are exchangeable
    given the columns, p is at most α with a probability of at most α.

    Tested is the best of the kernels on this grid, by its squared error, not a stack, a search by
    gradients, learned weights of features, boosted trees or a threshold, whose choices would have
    to be repeated by fits. A given ``mu`` gives way to those of the grid, which lies around given
    values of a kernel; values that a kernel holds fixed stay. All rows weigh alike: weights of rows
    and of classes often depend on the target, and targets that weigh differently cannot be
    exchanged.

    Parameters
    ----------
    model : KernelClassifier or KernelRegressor
        Fitted model; also a `TabularClassifier` or `TabularRegressor`, a pipeline whose last step
        is one, or a search, whose ``best_estimator_`` is used.
    n_permutations : int, default=999
        Number of permutations; the least p-value is 1 / (1 + n_permutations).
    random_state : int, RandomState instance or None, default=0
        Of the permutations, and of the sample of a large table.

    Returns
    -------
    test : PermutationTest
        p-value, the statistic and its values for permuted targets.

    Raises
    ------
    TypeError
        If ``model`` is none of these.
    ValueError
        If the model has no kernel, rows have left or joined since the fit, or are not at hand, rows
        were held out in windows of time, which cannot be exchanged, permutations give fewer than 20
        orders of the targets, or n_permutations is no positive integer.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Notes
    -----
    With groups, whole groups are permuted if the rows of each have one target, such as the
    diagnosis of a patient. Else groups of equal size exchange their targets, which are then
    permuted within each group: the rows of a group may resemble one another, but must be
    exchangeable.

    Of more than 1000 rows a random sample of 1000 is tested; its p-value is exact, too. It has
    whole groups, but of those of more than 30 rows only some if others fill it. Rows of weight zero
    take no part. Targets are on the scale of a transform that was fitted; its choice is not
    repeated.

    An eigendecomposition of the kernel matrix for each width of each kernel, and 2 n² t flops for
    each point and permutation.

    Examples
    --------
    >>> import numpy as np
    >>> from looms import KernelRegressor
    >>> from looms.diagnostics import permutation_test
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 5))
    >>> model = KernelRegressor().fit(X, np.sin(2 * X[:, 0]) + rng.normal(size=60))
    >>> permutation_test(model).p_value < 0.05
    True
    >>> noise = KernelRegressor().fit(X, rng.normal(size=60))
    >>> permutation_test(noise).p_value > 0.05
    True
    """
    check_count(n_permutations, "n_permutations")
    fitted, _ = model_without_rows(model, "A permutation test")
    rows, units, rng = fitted.rows, fitted.units_of_fit, check_random_state(random_state)
    if fitted.recipe is None:
        raise ValueError(
            "A permutation test repeats the selection of the fit, and rows have left or joined "
            "since: fit a model to the rows as they are."
        )
    if units.windows:
        raise ValueError(
            "Rows that are held out in windows of time cannot be exchanged, as a permutation test "
            "does: compare the score with its baseline."
        )
    own = rows.train
    if len(own) > MOST:
        own = own[_sample(rows.groups[own], rng)]
    kernels = {repr(each): each for each in map(_unweighted, fitted.recipe._kernels())}
    pairwise = any(kernel.pairwise for kernel in kernels.values())
    X = rows_in_memory(training_rows(fitted.X, own, pairwise))
    y = targets_as_columns(rows.targets[own])
    permutations, permuted = _permutations(y, rows.groups[own], n_permutations, rng)
    orders = np.array([np.arange(len(y)), *permutations])
    units = Units.of_numbers(rows.groups[own], rows.groups[own])
    options: dict[str, Any] = {"fit_intercept": fitted.fit_intercept, "units": units}
    press, n_points = np.full(len(orders), np.inf), 0
    at_once = max(1, _NUMBERS // y.size)
    for kernel, start in product(kernels.values(), range(0, len(orders), at_once)):
        some = slice(start, start + at_once)
        Y = y[orders[some]].swapaxes(0, 1).reshape(len(y), -1)
        for errors in _errors(objective_of(X, Y, kernel=kernel, **options)):
            squares = np.einsum("ij,ij->j", errors, errors).reshape(-1, y.shape[1])
            press[some] = np.fmin(press[some], squares.sum(axis=1) / y.size)
            n_points += start == 0
    n_as_small = int(np.count_nonzero(press[1:] <= press[0] * (1 + _ROUNDING)))
    p_value = (1 + n_as_small) / (1 + n_permutations)
    return PermutationTest(
        float(press[0]), press[1:], p_value, permuted, tuple(kernels.values()), n_points, len(own)
    )


def _unweighted(kernel: Kernel) -> Kernel:
    """The kernel whose weights are not learned, which the targets would do."""
    return kernel.kernel if isinstance(kernel, Weighted) and kernel.weights is None else kernel


def _permutations(
    y: Array, groups: AnyArray, n_permutations: int, rng: np.random.RandomState
) -> tuple[list[AnyArray], str]:
    """Rows whose targets each row gets, and words for what is exchanged."""
    known, first, group = np.unique(groups, return_index=True, return_inverse=True)
    values = np.unique(y, axis=0, return_inverse=True)[1].ravel()
    if (y == y[first][group]).all():
        permuted = "rows" if len(known) == len(y) else "groups"
        _check_orders([(values[first], np.zeros_like(first))], permuted)
        return [first[rng.permutation(len(known))][group] for _ in range(n_permutations)], permuted
    sizes, permuted = np.bincount(group), "groups of equal size, and rows within them"
    inside = [np.sort(values[group == g]).tobytes() for g in range(len(sizes))]
    alike = np.unique(inside, return_inverse=True)[1]  # of one size
    _check_orders([(values, group), (alike, sizes)], permuted)
    place, orders = np.lexsort((group, sizes[group])), np.empty((n_permutations, len(y)), dtype=int)
    for order in orders:
        turn = rng.random_sample(len(sizes))[group]
        order[place] = np.lexsort((rng.random_sample(len(y)), turn, sizes[group]))
    return list(orders), permuted


def _check_orders(permutations: list[tuple[AnyArray, AnyArray]], permuted: str) -> None:
    """ValueError if few orders result from permutations, each of values within equal numbers."""
    log_orders = 0.0
    for values, inside in permutations:
        sizes = np.bincount(inside)
        ties = np.unique([inside, values], axis=1, return_counts=True)[1]
        log_orders += gammaln(sizes + 1).sum() - gammaln(ties + 1).sum()
    if log_orders < np.log(LEAST_ORDERS - 0.5):
        raise ValueError(
            f"Permutations of {permuted} give fewer than {LEAST_ORDERS} orders of the targets, so "
            "that no p-value could be below 0.05: a test needs more rows or groups."
        )


def _sample(groups: AnyArray, rng: np.random.RandomState) -> AnyArray:
    """Random rows, increasing: groups in a random order, a few rows of each at a time."""
    number = np.unique(groups, return_inverse=True)[1]
    order = rng.permutation(len(groups))
    place = rng.permutation(number.max() + 1)[number[order]]
    order, place = order[np.argsort(place, kind="stable")], np.sort(place)
    turn = (np.arange(len(order)) - np.searchsorted(place, place)) // OF_GROUP
    return np.sort(order[np.argsort(turn, kind="stable")[:MOST]])


def _errors(objective: HeldOutCriterion) -> Iterator[Array]:
    """Held-out residuals at each point of the grid that has a model, (n, t)."""
    for values, same in groupby(grid_points(objective), key=lambda theta: tuple(theta[:-1])):
        with blas_threads(objective.n_samples):
            solve = objective.solver_along_mu(np.array(values))
            for theta in same:
                try:
                    yield solve(objective.mu_at(theta)).residuals(objective.units)[0]
                except NotPositiveDefiniteError:
                    continue
