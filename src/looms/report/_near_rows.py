"""Samples that look like repeats of one another: what the nearest samples tell about a sample."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from looms._scores import mean_and_error
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import RowBlocks
from looms.fitted._fitted import Fitted
from looms.kernels._samples import training_rows
from looms.lssvm.fit import KernelMember, cross_of
from looms.units import Units

#: Most samples held out at once: a sample and those nearest to it.
TOGETHER = 8
#: Samples to each of these: a larger hole costs much also where samples are drawn one by one.
_TO_EACH = 20
#: Repeats are suspected if the error rises by more than so many standard errors...
_DISCERNIBLE = 4.0
#: ...and by this share of what it costs to train on every eighth sample. Where samples are drawn
#: one by one, a hole among many costs less, also in a smooth function with little noise.
_SHARE = 0.25
#: With fewer samples two are too large a part, and so are clusters; more are not searched.
FEWEST, MOST = 2 * _TO_EACH, 3000
#: Samples fall into clusters where these are as many times further from one another than the
#: samples in them, where no cluster has a larger share, and no more samples are by themselves.
#: Samples that were drawn one by one are one large cluster with some apart.
_APART, _LARGEST, _ALONE = 1.25, 0.25, 0.1


def n_together(n: int) -> int:
    """Number of samples, of n, that are held out at once: a twentieth, at most 8."""
    return min(TOGETHER, n // _TO_EACH)


def scores_without_near(fitted: Fitted) -> tuple[str, float, float] | None:
    """Score if each sample is left out by itself, and with those near to it in the kernel's space.

    These are its cluster, if samples fall into clusters, or the seven nearest (with fewer than 160
    samples fewer: see `n_together`). Returns what they are, then both accuracies, or both RMSE.
    None if the second is no worse than expected for samples drawn one by one; for fewer than 40
    samples or more than 3000; and for models without a kernel. Of a stack with other members the
    kernels are taken.

    Notes
    -----
    O(n² log n) and some 2 n³ flops beside the leave-one-out models of the model.
    """
    rows, model = fitted.rows, fitted.closed
    n = len(rows.train)
    if isinstance(rows.X, RowBlocks | None) or model is None or not FEWEST <= n <= MOST:
        return None
    models = model.left_out
    distance = _distance(model.kernel_members, training_rows(rows.X, rows.train, model.pairwise))
    left_out: dict[str, Array] = {}
    number = _clusters(distance)
    if number is not None:
        clusters = Units.of_numbers(number)
        what = f"the rest of its cluster (there are {clusters.n_units})"
        left_out[what] = models.outputs(clusters)[0]
    together = n_together(n)
    np.fill_diagonal(distance, -np.inf)
    near = np.argpartition(distance, together, axis=1)[:, :together]
    nearest = f"{together - 1} rows" if together > 2 else "row"
    left_out[f"the {nearest} nearest to it"] = models.of_own(near)[near == np.arange(n)[:, None]]
    part = np.random.default_rng(0).permutation(n) % TOGETHER
    losses = partial(_losses, model)
    alone = losses(models.outputs(Units.rows(n))[0])
    outside = np.arange(TOGETHER)[:, None] != part
    by_few = np.zeros(outside.shape)
    without = np.where(outside, np.arange(TOGETHER)[:, None], -1)
    for tested, loss, outputs in zip(
        outside, by_few, models.outputs(Units.of_numbers(without)), strict=True
    ):
        loss[tested] = losses(np.where(tested[:, None], outputs, 0.0))[tested]
    weight = rows.own(rows.weight)
    value, error = mean_and_error(alone, weight)
    cost = mean_and_error(np.average(by_few, axis=0, weights=outside) - alone, weight)[0]
    for what, outputs in left_out.items():
        rise, of_rise = mean_and_error(losses(outputs) - alone, weight)
        if rise > max(_DISCERNIBLE * of_rise, error, _SHARE * cost):
            return what, *_reported_scores(model, value, value + rise)
    return None


def scores_held_out(
    fitted: Fitted, numbers: AnyArray, other_numbers: AnyArray
) -> tuple[float, float]:
    """Score if samples of each number are left out together, and the same for other numbers.

    The scores are accuracies, or RMSE; both numbers, (n,), are of the samples of positive weight.
    """
    models, weight = fitted.left_out, fitted.rows.own(fitted.rows.weight)
    outputs = (models.outputs(Units.of_numbers(n))[0] for n in (numbers, other_numbers))
    first, second = (mean_and_error(_losses(fitted, values), weight)[0] for values in outputs)
    return _reported_scores(fitted, first, second)


def _losses(fitted: Fitted, outputs: Array) -> Array:
    """(n,) errors of held-out outputs: wrong classes, or squared errors."""
    targets, outcome = fitted.rows.own(fitted.rows.targets), fitted.outcome
    if not outcome.decides:
        return np.asarray(np.mean((targets.reshape(outputs.shape) - outputs) ** 2, axis=1))
    predicted = outcome.indices(outputs.reshape(targets.shape), fitted.rule)
    return np.asarray(predicted != outcome.codes(targets), dtype=np.float64)


def _reported_scores(fitted: Fitted, alone: float, together: float) -> tuple[float, float]:
    """Accuracies of shares of errors, or roots of mean squares."""
    if fitted.outcome.decides:
        return 1.0 - alone, 1.0 - together
    return float(np.sqrt(alone)), float(np.sqrt(together))


def _clusters(distance: Array) -> AnyArray | None:
    """Cluster of each sample, (n,), by the largest gap in the lengths of the minimal spanning tree.

    ``distance`` is squared, (n, n). None if they do not fall into clusters.
    """
    n = len(distance)
    squared = np.maximum(0.5 * (distance + distance.T), 0.0)
    np.fill_diagonal(squared, 0.0)
    tree = linkage(squareform(squared, checks=False), "single")
    lengths = np.sqrt(tree[:, 2])
    lengths = np.maximum(lengths, 1e-6 * lengths[-1])  # of copies, to rounding
    # A cut below an edge leaves as many clusters as edges above it, and one.
    cuts = np.arange(n - n // 3, n - int(1 / _LARGEST))
    ratio = lengths[cuts] / lengths[cuts - 1]
    best = cuts[np.argmax(ratio)]
    number = fcluster(tree, tree[best - 1, 2], "distance")
    sizes = np.bincount(number)[1:]
    together = ratio.max() > _APART and sizes.max() <= _LARGEST * n
    if not together or (sizes == 1).sum() > _ALONE * n:
        return None
    return np.asarray(number)


def _distance(members: Sequence[KernelMember], X: Matrix) -> Array:
    """Squared distance of samples in the kernel's space, (n, n), of a stack the mean over members.

    Distances of each member are relative to their mean.
    """
    total = np.zeros((X.shape[0],) * 2)
    for member in members:
        K = cross_of(member.kernel, X)(X)
        distance = K.diagonal()[:, None] + K.diagonal() - 2 * K
        total += member.weight * distance / max(float(distance.mean()), np.finfo(float).tiny)
    return total
