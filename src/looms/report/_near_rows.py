"""Samples that look like repeats of one another: what those nearest tell of a sample."""

from __future__ import annotations

import numpy as np

from looms._classes import class_indices
from looms._typing import AnyArray, Array
from looms.lssvm.leave_one_out_models import LeaveOneOutModels
from looms.report.model import Model
from looms.scores import mean_and_error

#: Samples held out at once: each and those nearest to it.
TOGETHER = 8
#: The error rises by more than so many standard errors where the nearest tell of a sample...
_DISCERNIBLE = 4.0
#: ...and by this share of what it costs to train on every eighth sample. Where samples are drawn
#: one by one, a hole among many costs less, also in a smooth function with little noise.
_SHARE = 0.25
#: Of fewer samples these are too large a part, of more they are not searched.
_FEWEST, _MOST = 20 * TOGETHER, 3000


def rise_without_near(model: Model) -> tuple[float, float] | None:
    """Error of each sample left out by itself, and with the seven nearest in the kernel's space.

    Error rates, or root mean square errors. None where the second is no larger than samples that
    were drawn one by one explain; for fewer than 160 samples, or more than 3000.

    Notes
    -----
    O(n² log n) and n³ / 64 flops, beside the leave-one-out models of the machine.
    """
    n = model.n_with_weight
    if not _FEWEST <= n <= _MOST:
        return None
    trained = model.machine.leave_one_out_models()
    models, rows = trained.models, trained.train
    K = np.vstack([K for _, K in trained.blocks(model.machine.X_fit_)])[rows]
    distance = K.diagonal()[:, None] + K.diagonal() - 2 * K
    np.fill_diagonal(distance, -np.inf)
    near = np.argpartition(distance, TOGETHER, axis=1)[:, :TOGETHER]
    own = near == np.arange(n)[:, None]
    y, alpha = models.fit.y.reshape(n, -1), models.fit.alpha.reshape(n, -1)
    without_near = np.linalg.solve(models.P[near[:, :, None], near[:, None, :]], alpha[near])[own]
    part = np.random.default_rng(0).permutation(n) % TOGETHER

    def losses(residuals: Array) -> Array:
        if not model.classification:
            return np.asarray(np.mean(residuals**2, axis=1))
        outputs = (y - residuals).reshape(models.fit.y.shape)
        wrong = class_indices(outputs, model.threshold) != class_indices(models.fit.y)
        return np.asarray(wrong, dtype=np.float64)

    alone, together = losses(alpha / models.p[:, None]), losses(without_near)
    by_few = np.array(
        [losses(y - _outputs(models, K, np.flatnonzero(part == k))) for k in range(TOGETHER)]
    )
    others = np.arange(TOGETHER)[:, None] != part
    weight = model.held_out.sample_weight[rows]
    value, error = mean_and_error(alone, weight)
    rise, of_rise = mean_and_error(together - alone, weight)
    cost = mean_and_error(np.average(by_few, axis=0, weights=others) - alone, weight)[0]
    if not rise > max(_DISCERNIBLE * of_rise, error, _SHARE * cost):
        return None
    values = value, value + rise
    return values if model.classification else (values[0] ** 0.5, values[1] ** 0.5)


def _outputs(models: LeaveOneOutModels, K: Array, rows: AnyArray) -> Array:
    """Outputs (n, t) for all samples of the machine of some, at their ridges."""
    m, y = len(rows), models.fit.y.reshape(len(K), -1)
    bordered = np.zeros((m + 1, m + 1))
    bordered[:m, :m] = K[np.ix_(rows, rows)] + np.diag(models.ridge[rows])
    # Without an intercept its own equation is 1 · 0 = 0.
    bordered[m, :m] = bordered[:m, m] = 1.0 if models.corner else 0.0
    bordered[m, m] = 0.0 if models.corner else 1.0
    solution = np.linalg.solve(bordered, np.vstack([y[rows], np.zeros((1, y.shape[1]))]))
    return np.asarray(K[:, rows] @ solution[:m] + solution[m])
