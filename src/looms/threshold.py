"""The threshold of a two-class machine, from its leave-one-out outputs.

Sources are cited by the keys of docs/references.md.
"""

from __future__ import annotations

import numpy as np

from looms.leave_one_out import LeaveOneOut


def balanced_error_threshold(loo: LeaveOneOut) -> tuple[float, float]:
    """Threshold that minimises the leave-one-out balanced error rate, and that rate.

    Outputs above the threshold are positive. It lies midway between two neighbouring
    outputs (outside all of them by 1 if one class takes everything); of equally good
    ones it is the one nearest to zero [G06].

    Parameters
    ----------
    loo : (n,) labels ±1, both present with positive weight.

    Returns
    -------
    threshold : in units of the outputs.
    rate : weighted balanced error rate there, in [0, ½]. It was used to choose the
        threshold: no honest estimate of performance.

    Raises
    ------
    ValueError
        For more than one target, or one class only.

    Notes
    -----
    O(n log n).

    Examples
    --------
    >>> loo = LeaveOneOut([-1, -1, -1, 1], [-0.9, -0.7, -0.8, -0.5])
    >>> threshold, rate = balanced_error_threshold(loo)
    >>> round(threshold, 12), rate
    (-0.6, 0.0)
    """
    if loo.y.ndim != 1:
        raise ValueError("A threshold needs two classes; for more, the largest output decides.")
    seen = np.flatnonzero(loo.sample_weight > 0)  # the others must not place the cuts
    order = seen[np.argsort(loo.outputs[seen], kind="stable")]
    f, weight, positive = loo.outputs[order], loo.sample_weight[order], loo.y[order] > 0
    mass_positive, mass_negative = weight[positive].sum(), weight[~positive].sum()
    if not (mass_positive > 0 and mass_negative > 0):
        raise ValueError("A threshold needs samples of both classes.")
    # With the threshold above the k smallest outputs, the positives among them are
    # missed and the negatives beyond them are false alarms.
    missed = np.append(0.0, np.cumsum(weight * positive)) / mass_positive
    false_alarms = 1.0 - np.append(0.0, np.cumsum(weight * ~positive)) / mass_negative
    rates = 0.5 * (missed + false_alarms)
    cuts = np.concatenate([[f[0] - 1.0], 0.5 * (f[:-1] + f[1:]), [f[-1] + 1.0]])
    distinct = np.concatenate([[True], f[:-1] < f[1:], [True]])
    rates, cuts = rates[distinct], cuts[distinct]
    # Rates that differ by rounding of the cumulative sums alone are equal.
    best = np.flatnonzero(rates <= rates.min() + 1e-12)
    chosen = best[np.argmin(np.abs(cuts[best]))]
    return float(cuts[chosen]), max(float(rates[chosen]), 0.0)
