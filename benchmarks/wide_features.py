"""Linear machines on wide features beside RidgeClassifierCV and LogisticRegressionCV.

Features are made: 20 latent numbers, their random mixtures in each column, and noise; a label is
the sign of two of the latent numbers with noise. The example `plot_rocket.py` of the gallery has
features of random convolutions.

- looms: `KernelClassifier("linear")` at its defaults.
- ridge: `RidgeClassifierCV(logspace(-3, 5, 17))`, whose criterion is the squared leave-one-out
  error; its probabilities are the sigmoid of twice its outputs, which is what users make of them.
- logistic: `LogisticRegressionCV(Cs=10, cv=5)` on standardized features, as its solver needs; only
  up to 10⁷ numbers.

`each_mu` is the time of held-out outputs at one more regularization, by the decomposition that is
there: of looms from 17 and 187 values, of RidgeCV from 17 and 34. Times are of the processor, the
least of three.

    python benchmarks/wide_features.py [--sizes 200x10000 1000x10000 3000x500 10000x500]
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial

import numpy as np
from _report import seconds, write_table
from scipy.special import expit
from sklearn.linear_model import LogisticRegressionCV, RidgeClassifierCV, RidgeCV
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from looms import KernelClassifier
from looms.selection._objective import objective_of

ALPHAS = np.logspace(-3, 5, 17)
N_TEST = 2000
LARGEST_LOGISTIC = 10_000_000


def mixtures(n: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n, 20))
    X = latent @ rng.normal(size=(20, p)) / np.sqrt(20) + rng.normal(size=(n, p))
    return X, (latent[:, 0] + latent[:, 1] + 0.7 * rng.normal(size=n) > 0).astype(int)


cpu_seconds = partial(seconds, clock=time.process_time)


def each_mu(X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Seconds of one more μ: of looms, and of RidgeCV."""
    objective = objective_of(X, 2.0 * y - 1, kernel="linear")
    places = objective.theta0[-1] + np.linspace(-8, 8, 187)
    ours = [cpu_seconds(lambda m=m: objective.along_mu(np.zeros(0), places[:m])) for m in (17, 187)]
    theirs = [
        cpu_seconds(lambda m=m: RidgeCV(np.logspace(-3, 5, m)).fit(X, 2.0 * y - 1))
        for m in (17, 34)
    ]
    return (ours[1] - ours[0]) / 170, (theirs[1] - theirs[0]) / 17


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--sizes", nargs="+", default=["200x10000", "1000x10000", "3000x500", "10000x500"]
    )
    warnings.simplefilter("ignore")
    rows = []
    for size in parser.parse_args().sizes:
        n, p = map(int, size.split("x"))
        X, y = mixtures(n + N_TEST, p)
        X, X_test, y, y_test = X[:n], X[n:], y[:n], y[n:]
        methods = {
            "looms": KernelClassifier("linear"),
            "RidgeClassifierCV": RidgeClassifierCV(ALPHAS),
            "LogisticRegressionCV": make_pipeline(
                StandardScaler(), LogisticRegressionCV(Cs=10, cv=5)
            ),
        }
        per_mu = dict(zip(("looms", "RidgeClassifierCV"), each_mu(X, y), strict=True))
        for name, method in methods.items():
            logistic = name == "LogisticRegressionCV"
            if logistic and n * p > LARGEST_LOGISTIC:
                continue
            taken = cpu_seconds(lambda m=method, X=X, y=y: m.fit(X, y), 1 if logistic else 3)
            if name == "RidgeClassifierCV":
                probability = expit(2 * method.decision_function(X_test))
            else:
                probability = method.predict_proba(X_test)[:, 1]
            error = float(np.mean(method.predict(X_test) != y_test))
            loss = float(log_loss(y_test, probability))
            rows.append([size, name, taken, per_mu.get(name, float("nan")), error, loss])
            print(*rows[-1], flush=True)
    header = ["size", "classifier", "seconds", "each_mu_seconds", "error", "log_loss"]
    write_table("wide_features", header, rows)


if __name__ == "__main__":
    main()
