"""Scores of probabilities: log loss, deviance and Brier score."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from looms._classes import class_indices
from looms._typing import Array
from looms.held_out import HeldOut

_LEAST = np.finfo(np.float64).eps


def log_loss(loo: HeldOut, probabilities: npt.ArrayLike) -> float:
    """Weighted mean of −log p over samples, p the probability of the true class.

    Parameters
    ----------
    loo : labels ±1, (n,) for two classes or (n, k); its outputs are not read.
    probabilities : (n, 2) or (n, k), for example from `loo_probabilities`. They are clipped at
        2.2e-16 from below, as in scikit-learn.

    Returns
    -------
    loss : in nats per sample.

    Raises
    ------
    ValueError
        If the shape of the probabilities does not match.

    Examples
    --------
    >>> loo = HeldOut([-1, 1], [0.0, 0.0])
    >>> round(log_loss(loo, [[0.5, 0.5], [0.5, 0.5]]), 4)
    0.6931
    """
    return float(-np.average(_log_likelihood(loo, probabilities), weights=loo.sample_weight))


def loo_deviance(loo: HeldOut, probabilities: npt.ArrayLike) -> float:
    """Deviance −2 Σ log p over samples with positive weight, weights scaled to mean one [T11].

    Parameters are as for `log_loss`. With `loo_probabilities` it is the cross-validation score of
    [T11], except that there the outputs of the other samples come from other models;
    `looms.diagnostics.deviance` is exactly that of T11.

    Examples
    --------
    >>> from looms import HeldOut
    >>> loo = HeldOut([-1, 1], [-0.5, 0.5])
    >>> p = [[0.8, 0.2], [0.4, 0.6]]
    >>> round(loo_deviance(loo, p) / log_loss(loo, p), 12)  # twice the number of samples
    4.0
    """
    weight = loo.sample_weight
    return deviance_of(_log_likelihood(loo, probabilities), weight / weight[weight > 0].mean())


def deviance_of(log_likelihood: Array, weight: Array | None = None) -> float:
    r"""Deviance from the log probabilities of the true classes.

    .. math:: -2 \sum_i w_i \log {\hat p}_{y_i}(x_i)

    Parameters
    ----------
    log_likelihood : (n,) log probabilities, finite for samples with positive weight.
    weight : (n,) nonnegative, ones by default. Samples of weight zero are ignored.

    Examples
    --------
    >>> deviance_of(np.array([-0.5, -1.0, -np.inf]), np.array([1.0, 2.0, 0.0]))
    5.0
    """
    weight = np.ones(len(log_likelihood)) if weight is None else weight
    inside = weight > 0
    return float(-2.0 * weight[inside] @ log_likelihood[inside])


def brier_score(loo: HeldOut, probabilities: npt.ArrayLike) -> float:
    """Weighted mean squared difference between probabilities and class indicators.

    Parameters are as for `log_loss`.

    Returns
    -------
    score : for two classes, that of one class, in [0, 1]; for more, the sum over classes, in
        [0, 2].

    Examples
    --------
    >>> from looms import HeldOut
    >>> loo = HeldOut([-1, 1], [-0.5, 0.5])
    >>> round(brier_score(loo, [[0.8, 0.2], [0.4, 0.6]]), 12)
    0.1
    """
    p = _checked(loo, probabilities)
    p = p - np.eye(p.shape[1])[class_indices(loo.y)]
    squared = np.einsum("ij,ij->i", p, p) / (2.0 if p.shape[1] == 2 else 1.0)
    return float(np.average(squared, weights=loo.sample_weight))


def _log_likelihood(loo: HeldOut, probabilities: npt.ArrayLike) -> Array:
    p = _checked(loo, probabilities)
    return np.log(np.maximum(p[np.arange(len(p)), class_indices(loo.y)], _LEAST))


def _checked(loo: HeldOut, probabilities: npt.ArrayLike) -> Array:
    p = np.asarray(probabilities, dtype=np.float64)
    n_columns = loo.y.reshape(loo.n_samples, -1).shape[1]
    expected = (loo.n_samples, 2 if n_columns == 1 else n_columns)
    if p.shape != expected:
        raise ValueError(f"probabilities must have shape {expected}, but has shape {p.shape}.")
    return p
