"""Standard errors of held-out scores over draws of the training rows, too."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from looms._scores import mean_and_error
from looms._threads import blas_threads
from looms.blocks import RowBlocks
from looms.fitted._fitted import Fitted, sum_of

#: Rows up to which the draw of the training rows counts: with more P takes more than 0.2 GB.
MOST_ROWS = 5000
#: Units, drawn at random, that are left out of tables with more.
MOST = 1000
#: For what has no pairs.
NOTHING = 1.0, 0.0


def training_draws(model: Fitted) -> tuple[float, float]:
    r"""What the draw of the training rows adds to standard errors of held-out scores.

    The ratio of the standard error of the mean squared held-out error with it, √v, to that without,
    at least 1; and the difference of their squares, at least 0. Squared errors are halved, and of
    several classes quartered: so the difference is about what counts of errors vary more.

    .. math:: v = \frac{m - 1}{m} \sum_j (J_{-j} - \bar J)^2, \qquad
              J_{-j} = \frac{\sum_{i \notin j} \zeta_i \|y_i - f^{(-i,j)}(x_i)\|^2}
                            {\sum_{i \notin j} \zeta_i}

    The jackknife of the leave-one-out error: J of the table without unit j takes the outputs of
    models without j and without the unit of the row, from one factorization. It counts both that
    other rows would have been scored, and that the models would have been trained on other rows.

    Of a model with members that have no closed form it is that of its kernels. Nothing is added for
    models without any, windows of time, rows in blocks, fewer than three units, and more than 5000
    rows. n³ flops for each kernel if P is not known, and n² numbers, once.
    """
    known: tuple[float, float] | None = model.computed.get("training draws")
    if known is None:
        known = NOTHING
        with suppress(np.linalg.LinAlgError):
            known = _training_draws(model)
        model.computed["training draws"] = known
    return known


def _training_draws(model: Fitted) -> tuple[float, float]:
    units, rows = model.units_of_fit.draws, model.rows
    members = {k: member for k, member in enumerate(model.members) if member.closed}
    blocks = isinstance(rows.X, RowBlocks | None)
    has_no_pairs = not members or blocks or model.units_of_fit.windows
    if has_no_pairs or (m := units.n_units) < 3 or len(rows.train) > MOST_ROWS:
        return NOTHING
    with blas_threads(len(rows.train)):
        systems = [model.solved.get(k) or model.system_of(one) for k, one in members.items()]
    total = sum(member.weight for member in members.values())
    left_out = sum_of([member.weight / total for member in members.values()], systems)
    Y, weight = left_out.y, rows.own(rows.weight)
    some = np.arange(m)
    if m > MOST:
        some = np.sort(np.random.default_rng(0).choice(m, MOST, replace=False))
    without, halves = units.only(some), 4.0 if Y.shape[1] > 2 else 2.0
    errors = np.empty(len(some))
    with blas_threads(len(Y)):
        alone = Y - left_out.outputs(units)[0]
        for ids, F in left_out.everywhere(without, inner=units):
            squares = ((Y - F) ** 2).sum(axis=2) / halves
            stays = without.stays(ids) * weight
            errors[ids] = (squares * stays).sum(axis=1) / stays.sum(axis=1)
    squares = (alone**2).sum(axis=1) / halves
    plain = mean_and_error(squares, weight, units.clusters)[1]
    both = (m - 1) * float(np.mean((errors - errors.mean()) ** 2))
    if not (plain > 0 and np.isfinite(both)):
        return NOTHING
    return max(1.0, float(np.sqrt(both)) / plain), max(0.0, both - plain**2)
