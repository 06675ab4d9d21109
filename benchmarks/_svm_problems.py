"""What the benchmarks of support vector machines share."""

from __future__ import annotations

import numpy as np
import pandas as pd
from _report import data_or_exit

MACKEREL = ["lon", "lat", "b.depth", "c.dist", "temp.20m"]


def mackerel():
    """634 hauls: five standardized features, egg present or absent."""
    table = pd.read_csv(data_or_exit("mackerel.csv"))
    X = table[MACKEREL].to_numpy(dtype=float)
    return (X - X.mean(axis=0)) / X.std(axis=0), table["target"].to_numpy()


def squared_distances(X):
    """(n, n), exactly zero between duplicates."""
    return ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=-1)


def random_problem(seed, smallest=10, largest=400):
    """Features' squared distances, labels, bounds and width; duplicates and weights in turn."""
    rng = np.random.default_rng(seed)
    n = int(np.exp(rng.uniform(np.log(smallest), np.log(largest + 1))))
    X = rng.standard_normal((n, int(rng.integers(1, 7))))
    duplicates, weighted = seed % 3 == 0, seed % 2 == 0
    if duplicates:
        X[n // 2 :] = X[: n - n // 2]
    y = np.where(X[:, 0] + rng.standard_normal(n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    log2_C, log2_eta = int(rng.integers(-5, 16)), int(rng.integers(-15, 4))
    C = np.full(n, 2.0**log2_C) * (rng.uniform(0.1, 2.0, n) if weighted else 1.0)
    K = np.exp(-(2.0**log2_eta) * squared_distances(X))
    return (
        K,
        y,
        C,
        {"log2_C": log2_C, "log2_eta": log2_eta, "duplicates": duplicates, "weighted": weighted},
    )
