"""Standard errors of held-out scores over draws of the training rows, too."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np

from looms._scores import ValuesAndErrors, mean_and_error
from looms._threads import blas_threads
from looms.blocks import RowBlocks
from looms.fitted._fitted import Fitted

#: Units, drawn at random, that are left out of tables with more.
MOST = 1000
#: Scores that count rows, and jump where a row changes sides.
_COUNTS = {"accuracy", "balanced_accuracy"}


class TrainingDraws(NamedTuple):
    """What the draw of the training rows adds to standard errors over the rows that are scored.

    Attributes
    ----------
    ratio : standard error of the mean squared held-out error with it, over that without, at least
        1.
    variance : difference of the squares of the two, at least 0, for targets of ±1.
    """

    ratio: float = 1.0
    variance: float = 0.0

    def added_to(self, scores: ValuesAndErrors) -> ValuesAndErrors:
        """Scores with standard errors over both draws."""
        return {name: (value, self._larger(name, error)) for name, (value, error) in scores.items()}

    def _larger(self, name: str, error: float) -> float:
        if name in _COUNTS:
            return float(np.sqrt(error**2 + self.variance))
        return error * self.ratio


def training_draws(model: Fitted) -> TrainingDraws:
    r"""What the draw of the training rows adds to standard errors of held-out scores.

    .. math:: v = \frac{m - 1}{m} \sum_j (J_{-j} - \bar J)^2, \qquad
              J_{-j} = \frac{\sum_{i \notin j} \zeta_i \|y_i - f^{(-i,j)}(x_i)\|^2}
                            {\sum_{i \notin j} \zeta_i}

    The jackknife of the leave-one-out error: J of the table without unit j takes the outputs of
    models without j and without the unit of the row, from one factorization. It counts both that
    other rows would have been scored, and that the models would have been trained on other rows.

    Of a model with members that have no closed form it is that of its kernels; of one without any,
    of windows of time, of rows in blocks and of fewer than three units nothing is added. n³ flops
    if P is not known, and n² numbers, once.
    """
    known: TrainingDraws | None = model.computed.get("training draws")
    if known is None:
        known = TrainingDraws()
        with suppress(np.linalg.LinAlgError):
            known = _training_draws(model)
        model.computed["training draws"] = known
    return known


def _training_draws(model: Fitted) -> TrainingDraws:
    windows, blocks = model.units_of_fit.windows, isinstance(model.rows.X, RowBlocks | None)
    closed = None if windows or blocks else model.closed
    if closed is None or (m := closed.units_of_fit.draws.n_units) < 3:
        return TrainingDraws()
    left_out, units = closed.left_out, closed.units_of_fit.draws
    Y, weight = left_out.y, closed.rows.own(closed.rows.weight)
    some = np.arange(m)
    if m > MOST:
        some = np.sort(np.random.default_rng(0).choice(m, MOST, replace=False))
    without, of_classes = units.only(some), 2.0 if Y.shape[1] > 2 else 1.0
    errors = np.empty(len(some))
    with blas_threads(len(Y)):
        alone = Y - left_out.outputs(units)[0]
        for ids, F in left_out.everywhere(without, inner=units):
            squares = ((Y - F) ** 2).sum(axis=2) / of_classes
            stays = without.stays(ids) * weight
            errors[ids] = (squares * stays).sum(axis=1) / stays.sum(axis=1)
    squares = (alone**2).sum(axis=1) / of_classes
    plain = mean_and_error(squares, weight, units.clusters)[1]
    both = (m - 1) * float(np.mean((errors - errors.mean()) ** 2))
    if not (plain > 0 and np.isfinite(both)):
        return TrainingDraws()
    return TrainingDraws(max(1.0, float(np.sqrt(both)) / plain), max(0.0, both - plain**2))
