"""Class probabilities at prevalences that differ from those of the training samples."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from looms._typing import Array


def at_prevalence(
    probabilities: npt.ArrayLike, training: npt.ArrayLike, stated: npt.ArrayLike
) -> Array:
    r"""Class probabilities at stated prevalences, by Bayes' rule.

    .. math:: p'_{ik} = \frac{p_{ik} \pi'_k / \pi_k}{\sum_l p_{il} \pi'_l / \pi_l}

    This assumes that samples within each class are like the training samples of that class
    [SLD02 eq. 2.4]. For two classes it adds log(π'₁ π₀ / (π₁ π'₀)) to all log-odds, which moves
    the threshold of the output: the analytic correction of [G06].

    Parameters
    ----------
    probabilities : (n, k) probabilities at the training prevalences.
    training, stated : (k,) prevalences π and π', positive; only ratios count.

    Returns
    -------
    probabilities : (n, k), with rows that sum to one. A probability of zero stays zero.

    Examples
    --------
    >>> at_prevalence([[0.2, 0.8]], training=[0.5, 0.5], stated=[0.9, 0.1]).round(3)
    array([[0.692, 0.308]])
    """
    factors = np.asarray(stated, dtype=np.float64) / np.asarray(training, dtype=np.float64)
    likely = np.asarray(probabilities, dtype=np.float64) * (factors / factors.max())
    return np.asarray(likely / likely.sum(axis=1, keepdims=True))
