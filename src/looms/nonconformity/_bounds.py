"""Bounds on the error of predictions chosen by nonconformity."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from looms._typing import Array


def vc_bound(
    epsilon_crit: npt.ArrayLike, n_validation: int, n_models: int, delta: float = 0.05
) -> Array:
    r"""Bound on the error of a selected prediction, by the Vapnik-Chervonenkis inequality.

    .. math:: \epsilon_\mathrm{crit} + 5.66 \sqrt{
              \frac{\ln(e\,n_\mathrm{validation}) + \ln(8\,n_\mathrm{models} / \delta)}
                   {n_\mathrm{validation}}}

    Source: [H10 Proposition 4.2], whose n is ``n_validation`` and K is ``n_models``.

    Parameters
    ----------
    epsilon_crit : array-like
        Share of the validation samples that conform to the selected model no better than the
        rejected label does, from 0 to 1; not checked.
    n_validation : int
        Number of validation samples, which no model was trained on.
    n_models : int
        Number of models to choose from.
    delta : float, default=0.05
        Probability, over the draw of the validation samples, with which the bound may fail.

    Returns
    -------
    bound : ndarray with the shape of `epsilon_crit`
        Not clipped to 1, which it exceeds for 110 models and delta = 0.05 unless there are 548
        validation samples. `dkw_bound` bounds the same probability by the same argument, and
        is always smaller.

    Examples
    --------
    >>> vc_bound([0.0, 0.1], n_validation=50, n_models=110).round(2)
    array([3.07, 3.17])
    """
    epsilon = np.asarray(epsilon_crit, dtype=np.float64)
    n = n_validation
    return np.asarray(epsilon + 5.66 * np.sqrt((1 + np.log(n) + np.log(8 * n_models / delta)) / n))


def dkw_bound(
    epsilon_crit: npt.ArrayLike, n_validation: int, n_models: int, delta: float = 0.05
) -> Array:
    r"""Bound on the error of a selected prediction, by the Dvoretzky-Kiefer-Wolfowitz inequality.

    .. math:: \epsilon_\mathrm{crit} + \sqrt{
              \frac{\ln(n_\mathrm{models} / \delta)}{2\,n_\mathrm{validation}}}

    Source: the argument of [H10 Proposition 4.2] with the one-sided inequality of [M90] in
    place of theirs. With probability 1 - delta, the distribution functions of the scores of all
    models exceed the empirical ones nowhere by more than the second term.

    Parameters and returns are as for `vc_bound`; it is not clipped to 1 either.

    Notes
    -----
    The bound is on the probability that the true label of a new sample conforms to the selected
    model no better than the rejected label does here. It is over all new samples, not those at
    the same point. The constant 1 in the inequality requires n_models / delta to be at least 2;
    below that, ln 2 replaces the logarithm.

    Examples
    --------
    >>> dkw_bound([0.0, 0.1], n_validation=50, n_models=110).round(2)
    array([0.28, 0.38])
    """
    epsilon = np.asarray(epsilon_crit, dtype=np.float64)
    log = max(np.log(n_models / delta), np.log(2.0))
    return np.asarray(epsilon + np.sqrt(log / (2 * n_validation)))
