"""Net benefit of decisions by probabilities, at many thresholds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from looms._scores import mean_and_error
from looms._typing import Array
from looms.calibration._recalibration import checked_rows
from looms.held_out import ReadOnly

#: Share of the rows whose probabilities lie below the last threshold, which is at most `_LAST`;
#: the first one, unless events are rare; number of thresholds.
_BELOW, _FIRST, _LAST, _THRESHOLDS = 0.99, 0.01, 0.9, 90


@dataclass(frozen=True, eq=False)
class NetBenefit(ReadOnly):
    """Net benefit at each threshold, as read-only arrays; that of treating none is zero.

    Attributes
    ----------
    threshold : (m,) probabilities from which on rows are treated.
    value, standard_error : (m,) of treating rows by their probabilities.
    of_all : (m,) of treating all rows.
    gain, gain_error : (m,) what that is above the better of all and none, and its standard error,
        row by row.
    """

    threshold: Array
    value: Array
    standard_error: Array
    of_all: Array
    gain: Array
    gain_error: Array


def net_benefit(
    labels: npt.ArrayLike,
    probability: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    *,
    thresholds: npt.ArrayLike | None = None,
) -> NetBenefit:
    r"""Net benefit of treating the rows whose probability is at least a threshold t.

    .. math:: \frac{TP}{n} - \frac{FP}{n} \, \frac{t}{1 - t}

    in true positives per row: whoever would treat from t on takes t / (1 − t) true positives for
    as bad as a false one [VE06]. Counts add up over folds, each of which may have its own model, so
    that held-out probabilities are pooled.

    Parameters
    ----------
    labels, probability, sample_weight, groups : as for `recalibration`.
    thresholds : (m,) in [0, 1). By default 90 from 0.01, or a tenth of the share of positive rows
        if that is less, to the probability that 99 % of the rows are below, but to no less than
        twice that share, and at most 0.9.

    Returns
    -------
    benefit : NetBenefit
        With an array for each ``threshold``: ``value`` and ``standard_error``; ``of_all``, that of
        treating all rows; ``gain`` over the better of all and none, and ``gain_error``. Standard
        errors are over draws of rows, or groups, for given probabilities.

    Raises
    ------
    ValueError
        As for `recalibration`, or for thresholds outside [0, 1).

    Examples
    --------
    >>> benefit = net_benefit([1, 1, -1, -1], [0.9, 0.3, 0.4, 0.1], thresholds=[0.2, 0.5])
    >>> benefit.value, benefit.of_all
    (array([0.4375, 0.25  ]), array([0.375, 0.   ]))
    """
    p, positive, weight, draws = checked_rows(labels, probability, sample_weight, groups)
    if thresholds is None:
        order = np.argsort(p)
        share = np.cumsum(weight[order]) / weight.sum()
        end = p[order][np.searchsorted(share, _BELOW).clip(max=len(p) - 1)]
        events = float(np.average(positive, weights=weight))
        first = min(_FIRST, events / 10) or _FIRST
        end = np.clip(max(end, 2 * events), 2 * first, _LAST)
        thresholds = np.linspace(first, end, _THRESHOLDS)
    t = np.atleast_1d(np.asarray(thresholds, dtype=np.float64))
    if not ((t >= 0) & (t < 1)).all():
        raise ValueError("thresholds must be at least 0 and below 1.")
    rows = []
    for each in t:
        treated = np.where(positive, 1.0, -each / (1 - each))
        own = np.where(p >= each, treated, 0.0)
        of_all = float(np.average(treated, weights=weight))
        gain = own - treated if of_all > 0 else own
        benefit, above = (mean_and_error(values, weight, draws) for values in (own, gain))
        rows.append([*benefit, of_all, *above])
    return NetBenefit(t, *np.array(rows).T)
