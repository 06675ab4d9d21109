"""Standard errors of held-out scores over draws of the training rows, too."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from looms._scores import mean_and_error
from looms._threads import blas_threads
from looms._typing import Array
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
    at least 1; and for counts of errors the difference of their squares, at least 0.

    .. math:: v = \frac{m - 1}{m} \sum_j (J_{-j} - \bar J)^2, \qquad
              J_{-j} = \frac{\sum_{i \notin j} \zeta_i L(y_i, f^{(-i,j)}(x_i))}
                            {\sum_{i \notin j} \zeta_i}

    The jackknife of the leave-one-out error: J of the table without unit j takes the outputs of
    models without j and without the unit of the row, from one factorization. It counts both that
    other rows would have been scored, and that the models would have been trained on other rows.
    Losses L are bounded, for the outputs of some models are not: see `_losses`.

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
    without = units.only(some)
    errors = np.empty((2, len(some)))
    with blas_threads(len(Y)):
        alone = _losses(Y, left_out.outputs(units)[0])
        for ids, F in left_out.everywhere(without, inner=units):
            stays = without.stays(ids) * weight
            errors[:, ids] = (_losses(Y, F) * stays).sum(axis=2) / stays.sum(axis=1)
    plain = np.array([mean_and_error(losses, weight, units.clusters)[1] for losses in alone])
    both = np.sqrt(m - 1) * errors.std(axis=1)
    if not (plain[0] > 0 and np.isfinite(both).all()):
        return NOTHING
    return max(1.0, float(both[0] / plain[0])), max(0.0, float(both[1] ** 2 - plain[1] ** 2))


def _losses(Y: Array, F: Array) -> Array:
    """(2, ..., n) bounded losses of outputs F, (..., n, t), for targets Y.

    Squares, with outputs clipped to the range of the targets. And of targets ±1 the share of an
    error, 1/2 − y f between 0 and 1: no error from a margin of 1/2 on, and of several classes half
    of the sum, for a wrong class is wrong in two columns.
    """
    short = Y - np.clip(F, Y.min(axis=0), Y.max(axis=0))
    shares = np.clip(0.5 - Y * F, 0.0, 1.0) @ np.full(Y.shape[1], 0.5 if Y.shape[1] > 2 else 1.0)
    return np.array([np.einsum("...t,...t->...", short, short), shares])
