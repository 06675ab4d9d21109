"""Exact test that the rows of a fit are in no order: blocks of consecutive rows, held out."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from looms._threads import blas_threads
from looms._typing import AnyArray, Array
from looms._words import estimate_text
from looms.blocks import RowBlocks
from looms.diagnostics._problem import model_without_rows
from looms.fitted._fitted import Fitted
from looms.held_out import HeldOut
from looms.scores import decisions_within
from looms.units import Units

#: Blocks of consecutive rows, and random partitions that they are compared with.
N_BLOCKS, N_RANDOM = 10, 199
#: With fewer rows, or groups, a block is hardly more than one; with more rows P takes more than
#: 0.2 GB, and the 200 partitions 2 · 10¹¹ flops.
FEWEST, MOST = 2 * N_BLOCKS, 5000
#: Rows of adjacent targets that are exchanged, at least. More of them would give more power, but
#: reject tables sorted by a target with some noise too often (benchmarks/row_order.py).
_ADJACENT = 3
_ROUNDING = 1e-9  # of a mean of squares


@dataclass(frozen=True, eq=False, repr=False)
class RowOrder:
    """Test that the rows of a fit are in no order: the result of `row_order`.

    Attributes
    ----------
    statistic : PRESS with blocks of consecutive rows held out, in squared units of the targets.
    random : (199,) PRESS with random partitions held out.
    p_value : (1 + #{random ≥ statistic}) / 200.
    folds : (n,) block of each row; -1 for a row of weight zero. ``cv=order.folds`` tunes on
        these blocks.
    scores : scores of the model without the block of each row, named as by its ``evaluate``. The
        hyper-parameters, threshold and calibration were tuned on all rows, so that with many
        hyper-parameters the scores may still be too good. Of a `TabularRegressor` they are on the
        scale of the transform. "roc_auc" compares
        rows of one block.
    by_kernels : words that say so if the kernels alone were tested, of a model that has members
        without a kernel, such as boosted trees; else empty.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import KernelClassifier
    >>> model = KernelClassifier(mu=1e-3).fit(*load_iris(return_X_y=True))
    >>> row_order(model).scores["accuracy"] > 0.9
    True
    """

    statistic: float
    random: Array
    p_value: float
    folds: AnyArray
    scores: dict[str, float]
    by_kernels: str = ""

    def __repr__(self) -> str:
        scores = ", ".join(f"{name}={estimate_text(value)}" for name, value in self.scores.items())
        random = estimate_text(float(self.random.mean()), float(self.random.std()))
        return (
            f"RowOrder(p_value={self.p_value:.3g}, statistic={self.statistic:.4g}, "
            f"random={random}; by blocks {scores}{self.by_kernels})"
        )


def row_order(model: Any) -> RowOrder | None:
    r"""Test that the rows of a fit are in no order, and its scores by blocks of consecutive rows.

    .. math:: p = \frac{1 + \#\{b : J(\pi_b) \ge J(\pi_0)\}}{200}, \qquad
              J(\pi) = \frac{\sum_G \sum_{i \in G} \zeta_i \|e^G_i\|^2}{\sum_i \zeta_i}, \qquad
              e^G = P_{GG}^{-1} \alpha_G

    :math:`\pi_0` holds out ten blocks of consecutive rows; :math:`\pi_1 \ldots \pi_{199}` are the
    same with rows exchanged at random among those of one class, or of tied or adjacent targets
    [docs/references.md, Row order]. If such rows are exchangeable, so are the 200 partitions, since
    tuning with leave-one-out does not depend on the order of the rows. The test is exact, also
    after tuning.

    The question is whether neighboring rows of the table are more alike than other rows. A table
    that is only sorted by its target is not rejected. A table sorted by a feature is, as is one
    along a track, in time or in batches.

    Parameters
    ----------
    model : KernelClassifier or KernelRegressor
        Fitted model; also a `TabularClassifier` or `TabularRegressor`, a pipeline whose last step
        is one, or a search, whose ``best_estimator_`` is used. Of a stack with estimators of
        scikit-learn, such as the boosted trees of the default, the kernels alone are tested.

    Returns
    -------
    row_order : RowOrder or None
        None if there is nothing to test or no such test: rows held out in windows of time or other
        blocks of consecutive rows, whose order is known; fewer than 20 rows, or groups; more than
        5000 rows, or rows in blocks, which are not kept; several numeric targets; a model
        that is singular without some block.

    Raises
    ------
    TypeError
        If ``model`` is none of these.
    ValueError
        If the model has no kernel.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Notes
    -----
    Exchanged are

    - rows of one class, for classes. If each class is in one piece, as in a table sorted by class,
      a block consists of a tenth of every class; otherwise of a tenth of the table.
    - rows of equal targets, and among targets that occur once, 3 to 6 of adjacent rank within a
      tenth of the ranks. In a table sorted by a numeric target these lie in one block: p is 1.
    - whole groups, where groups are held out, by the class or target of their first row. Blocks are
      of groups, in the order of their first rows.

    Samples count by the weights of the criterion. The cost is n³ flops for P, unless it is known,
    and 1.3 n³ for the 200 partitions, for each member of a stack; the result of a fit is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from looms import KernelRegressor
    >>> from looms.diagnostics import row_order
    >>> rng = np.random.default_rng(0)
    >>> track = np.cumsum(rng.normal(size=(80, 4)), axis=0)     # places passed one after another
    >>> X, y = track[:, :3], track[:, 3]
    >>> model = KernelRegressor(mu=1e-3).fit(X, y)
    >>> order = row_order(model)
    >>> print(order.p_value, round(order.scores["rmse"] / model.evaluate()["rmse"], 1))
    0.005 1.5
    >>> some = rng.permutation(80)
    >>> row_order(KernelRegressor(mu=1e-3).fit(X[some], y[some])).p_value > 0.01
    True
    """
    fitted, by_kernels = model_without_rows(model, "The test of row order")
    if "row order" not in fitted.computed:
        tested = None
        with suppress(np.linalg.LinAlgError):
            tested = _tested(fitted)
        fitted.computed["row order"] = tested
    order: RowOrder | None = fitted.computed["row order"]
    return replace(order, by_kernels=by_kernels) if order and by_kernels else order


def _tested(fitted: Fitted) -> RowOrder | None:
    """`row_order` of a fitted model."""
    rows, train, outcome = fitted.rows, fitted.rows.train, fitted.outcome
    n, y = len(train), rows.own(rows.targets)
    if isinstance(rows.X, RowBlocks | None) or n > MOST or (y.ndim == 2 and not outcome.decides):
        return None
    if _in_blocks(fitted):
        return None
    clusters = fitted.units_of_fit.clusters
    _, first, number = np.unique(clusters, return_index=True, return_inverse=True)
    unit = np.argsort(np.argsort(first))[number]  # in the order of their first rows
    first = np.sort(first)
    if len(first) < FEWEST:
        return None
    alike = outcome.codes(y[first]) if outcome.decides else _adjacent(y[first])
    in_pieces = outcome.decides and 1 + np.count_nonzero(np.diff(alike)) == len(np.unique(alike))
    blocks = _blocks(alike if in_pieces else np.zeros(len(first), dtype=int))
    folds = np.vstack([blocks, _exchanged(blocks, alike)])[:, unit]
    with blas_threads(n):
        left_out = fitted.left_out
        outputs = np.array([left_out.outputs(Units.of_numbers(each))[0] for each in folds])
    weight = rows.own(rows.selection_weight)
    press = np.average(((left_out.y - outputs) ** 2).sum(axis=2), axis=1, weights=weight)
    statistic, random = float(press[0]), press[1:]
    n_as_large = int(np.count_nonzero(random >= statistic * (1 - _ROUNDING)))
    of_all = np.full(len(rows.weight), -1)
    of_all[train] = folds[0]
    held_out = HeldOut(y, outputs[0].reshape(y.shape), rows.own(rows.weight))
    made = None
    if outcome.decides:
        made = decisions_within(outcome, held_out, Units.of_numbers(folds[0]), fitted.rule)
    with_errors = outcome.scores(y, held_out.outputs[None], held_out.sample_weight, None, made)
    scores = {name: value for name, (value, _) in with_errors.items()}
    return RowOrder(statistic, random, (1 + n_as_large) / (1 + N_RANDOM), of_all, scores)


def _in_blocks(fitted: Fitted) -> bool:
    """True if rows are held out in windows of time, or in few blocks of consecutive rows."""
    units = fitted.units_of_fit
    if not units.in_folds:
        return False
    if units.windows:
        return True
    for together in units.number:
        begins = together[np.diff(together, prepend=-1) != 0]
        begins = begins[begins >= 0]
        if len(begins) > min(len(np.unique(begins)), len(together) // 2):
            return False
    return True


def _adjacent(y: Array) -> AnyArray:
    """Numbers that are equal for equal targets, and for some of adjacent rank that occur once.

    The latter have ranks within a tenth of the ranks, so that in a table sorted by target, up or
    down, they are in one block.
    """
    n = len(y)
    _, tie, size = np.unique(y, return_inverse=True, return_counts=True)
    n_parts = N_BLOCKS * max(1, n // (N_BLOCKS * _ADJACENT))
    part = np.empty(n, dtype=int)
    part[np.argsort(y, kind="stable")] = _parts(n, n_parts)
    return np.where(size[tie] > 1, n_parts + tie, part)


def _blocks(piece: AnyArray) -> AnyArray:
    """Number of the tenth of its piece in which each unit is, 0 to 9."""
    blocks = np.empty(len(piece), dtype=int)
    for each in np.unique(piece):
        rows = np.flatnonzero(piece == each)
        blocks[rows] = _parts(len(rows), N_BLOCKS)
    return blocks


def _parts(n: int, n_parts: int) -> AnyArray:
    """Part of each of n rows, of about equal size, and of the same sizes from either end."""
    row = np.arange(n)
    part = (2 * np.minimum(row, n - 1 - row) + 1) * n_parts // (2 * n)
    return np.where(2 * row < n, part, n_parts - 1 - part)


def _exchanged(blocks: AnyArray, alike: AnyArray) -> AnyArray:
    """Blocks exchanged at random among units that are alike, (N_RANDOM, n)."""
    rng = np.random.default_rng(0)
    place = np.argsort(alike, kind="stable")
    exchanged = np.empty((N_RANDOM, len(blocks)), dtype=int)
    for each in exchanged:
        each[place] = blocks[np.lexsort((rng.random(len(blocks)), alike))]
    return exchanged
