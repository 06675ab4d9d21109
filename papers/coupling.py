"""Coupling by Kullback-Leibler divergence [HT98], which T11 names, beside that of looms [WLW04].

The liver data, four enzymes of 218 patients in four classes, standardized as they are and as
logarithms, with the C and gamma that `papers.svm_search` found: CV score and leave-one-out error of
either coupling, models and sigmoids refitted without each patient, and the difference of the CV
scores, a sum over patients, with its standard error.

    python -m papers.coupling
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pandas as pd
from benchmarks._report import data_or_exit, write_table
from scipy.special import expit
from sklearn.preprocessing import scale

from looms._typing import Array
from looms.calibration._coupling import LEAST, couple
from looms.kernels import RBF
from looms.svm._one_against_one import Labels, solved_pairs
from papers.svm_search import held_out_log_odds

#: C and gamma of the smallest CV score (svm_search.csv).
POINTS = {"liver": (2.0**1.5, 2.0**-0.5), "log liver": (1.0, 2.0**-3)}


def couple_by_divergence(pairwise: npt.ArrayLike, counts: npt.ArrayLike) -> Array:
    r"""Class probabilities whose pairwise ones diverge least from the given ones.

    With r_ij the probability of class i given that it is i or j, and n_ij the number of samples
    that it comes from,

    .. math:: \min_p \sum_{i \ne j} n_{ij} r_{ij} \log \frac{r_{ij} (p_i + p_j)}{p_i}

    Source: [HT98 section 2]. In log p it is convex, and is minimized by Newton's method, whose
    steps are halved until the objective falls.

    Parameters
    ----------
    pairwise : (m, k, k), as for `looms.calibration._coupling.couple`.
    counts : (m, k) or (k,) numbers of samples in each class, positive; n_ij is the sum of two.

    Returns
    -------
    probabilities : (m, k) positive, with rows that sum to one.

    Examples
    --------
    >>> p = np.array([0.5, 0.3, 0.2])
    >>> couple_by_divergence((p[:, None] / (p[:, None] + p))[None], [10, 20, 5]).round(12)
    array([[0.5, 0.3, 0.2]])
    """
    r = np.clip(np.asarray(pairwise, dtype=np.float64), LEAST, 1.0 - LEAST)
    m, k = r.shape[:2]
    n = np.broadcast_to(np.asarray(counts, dtype=np.float64), (m, k))
    weights = (n[:, :, None] + n[:, None, :]) * (1.0 - np.eye(k))
    weights /= weights.sum(axis=(1, 2), keepdims=True)

    def divergence(log_p: Array) -> Array:
        odds = log_p[:, :, None] - log_p[:, None, :]
        return np.asarray((weights * r * np.logaddexp(0.0, -odds)).sum(axis=(1, 2)))

    log_p = np.zeros((m, k))
    value = divergence(log_p)
    for _ in range(200):
        mu = expit(log_p[:, :, None] - log_p[:, None, :])
        gradient = (weights * (mu - r)).sum(axis=2)
        if np.abs(gradient).max() < 1e-14:
            break
        bend = weights * mu * mu.transpose(0, 2, 1)
        hessian = (
            np.eye(k) * bend.sum(axis=2)[:, :, None] - bend + bend.max(axis=(1, 2))[:, None, None]
        )
        step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        step /= np.maximum(1.0, np.abs(step).max(axis=1, keepdims=True) / 5.0)
        size = np.ones((m, 1))
        for _ in range(30):
            tried = divergence(log_p - size * step)
            worse = tried > value
            if not worse.any():
                break
            size[worse] /= 2.0
        size[worse] = 0.0
        log_p -= size * step
        value = divergence(log_p)
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def pairwise_of(log_odds: Array, k: int) -> Array:
    """(m, k, k) probabilities from (m, n_pairs) log-odds of the second class of each pair."""
    pairwise = np.full((len(log_odds), k, k), 0.5)
    for q, (a, b) in enumerate(combinations(range(k), 2)):
        pairwise[:, b, a], pairwise[:, a, b] = expit(log_odds[:, q]), expit(-log_odds[:, q])
    return pairwise


def held_out_probabilities(X: Array, labels: Labels, C: float, gamma: float) -> dict[str, Array]:
    """Probabilities of each row by models, sigmoids and counts without it, by either coupling."""
    n, k = len(X), int(labels.max()) + 1
    machines = solved_pairs(RBF(gamma)(X), labels, C, np.ones(n), np.arange(n))
    pairwise = pairwise_of(held_out_log_odds(machines), k)
    without = np.bincount(labels) - np.eye(k)[labels]
    return {
        "least squares": couple(pairwise),
        "Kullback-Leibler": couple_by_divergence(pairwise, without),
    }


def main() -> None:
    table = pd.read_csv(data_or_exit("liver.csv"))
    labels = np.unique(table.pop("target"), return_inverse=True)[1]
    values = {"liver": table.to_numpy(), "log liver": np.log1p(table.to_numpy())}
    rows = []
    for name, (C, gamma) in POINTS.items():
        found = held_out_probabilities(scale(values[name]), labels, C, gamma)
        losses = {way: -2 * np.log(p[np.arange(len(p)), labels]) for way, p in found.items()}
        for way, p in found.items():
            less = losses[way] - losses["least squares"]
            error = float(np.mean(p.argmax(axis=1) != labels))
            spread = float(less.std(ddof=1) * len(less) ** 0.5)
            scores = float(losses[way].sum()), float(less.sum()), spread
            rows.append((name, C, gamma, way, *scores, error))
    header = ("data", "C", "gamma", "coupling", "cv_score", "less", "less_se", "loo_error")
    write_table("coupling", header, rows)


if __name__ == "__main__":
    main()
