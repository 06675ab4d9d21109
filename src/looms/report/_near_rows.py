"""Samples that look like repeats of one another: what those nearest tell of a sample."""

from __future__ import annotations

import numpy as np

from looms._classes import class_indices
from looms.report.model import Model
from looms.scores import mean_and_error

#: Samples held out at once: each and those nearest to it.
TOGETHER = 8
#: The figure changes by more than so many of its standard errors where they tell of it.
_DISCERNIBLE = 4.0
#: Of fewer samples these are too large a part, of more they are not searched.
_FEWEST, _MOST = 20 * TOGETHER, 3000


def rise_without_near(model: Model) -> tuple[float, float] | None:
    """Error of each sample left out by itself, and with the seven nearest in the kernel's space.

    Error rates, or root mean square errors. None if they do not differ by more than four
    standard errors of the difference, and one of the figure; for fewer than 160 samples, or
    more than 3000.

    Notes
    -----
    O(n² log n), beside the leave-one-out models of the machine.
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
    alpha, y = models.fit.alpha.reshape(n, -1), models.fit.y.reshape(n, -1)
    without = np.linalg.solve(models.P[near[:, :, None], near[:, None, :]], alpha[near])[own]
    losses = []
    for residuals in (alpha / models.p[:, None], without):
        if model.classification:
            outputs = (y - residuals).reshape(models.fit.y.shape)
            predicted = class_indices(outputs, model.threshold)
            losses.append(1.0 * (predicted != class_indices(models.fit.y)))
        else:
            losses.append(np.mean(residuals**2, axis=1))
    weight = model.held_out.sample_weight[rows]
    (alone, error), (together, _) = (mean_and_error(loss, weight) for loss in losses)
    rise, of_rise = mean_and_error(losses[1] - losses[0], weight)
    if not rise > max(_DISCERNIBLE * of_rise, error):
        return None
    return (alone, together) if model.classification else (alone**0.5, together**0.5)
