"""The level of the goodness-of-fit test, and its power.

Samples of 80 whose probabilities are known: those of an SVC with its sigmoid that was fitted to
another sample ("itself"), of a smooth logistic curve, which no such machine is exactly, of waves
that a stiff machine cannot follow ("waves"), and of a logistic regression. A right test rejects 5
of 100 where the truth is the machine itself, and more where it is waves.

The tests are those of `looms.diagnostics.goodness_of_fit`: "labels", "held-out" and "pairs".
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from _report import draws_of, write_table
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from looms.calibration._sigmoid import fit_sigmoid
from looms.diagnostics import goodness_of_fit

ALPHA = 0.05
RESAMPLING = ("labels", "held-out", "pairs")
MACHINES = {
    "stiff": SVC(C=1.0, gamma=0.1),
    "flexible": SVC(C=10.0, gamma=1.0),
    "logistic": LogisticRegression(C=np.inf),
}
Truth = Callable[[np.ndarray], np.ndarray]


def curve(X: np.ndarray) -> np.ndarray:
    """Probability of a smooth logistic curve."""
    return 1 / (1 + np.exp(-np.sin(2 * X[:, 0]) - 1.5 * X[:, 1]))


def waves(X: np.ndarray) -> np.ndarray:
    """Probability that goes up and down four times over the samples."""
    return 1 / (1 + np.exp(-4 * np.sin(5 * X[:, 0])))


def plane(X: np.ndarray) -> np.ndarray:
    """Probability of a logistic regression."""
    return 1 / (1 + np.exp(-X[:, 0] - X[:, 1]))


def machine_truth(machine: SVC) -> Truth:
    """Probabilities of a machine with its sigmoid, of a sample of the curve."""
    random = np.random.default_rng(1)
    X = random.normal(size=(80, 2))
    y = np.where(random.uniform(size=80) < curve(X), 1, -1)
    fitted = SVC(**machine.get_params()).fit(X, y)
    sigmoid = fit_sigmoid(fitted.decision_function(X), y)

    def probability(Z: np.ndarray) -> np.ndarray:
        return np.asarray(sigmoid.probability(fitted.decision_function(Z)))

    return probability


def p_values(name: str, truth: Truth, n: int, n_bootstrap: int, seed: int) -> list[float]:
    """p of one sample by every test."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    y = np.where(random.uniform(size=n) < truth(X), 1, -1)
    machine = MACHINES[name]
    return [
        goodness_of_fit(machine, X, y, n_bootstrap, resampling=kind, random_state=seed).p_value
        for kind in RESAMPLING
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=150, help="of each truth")
    parser.add_argument("--machines", nargs="+", choices=MACHINES, default=list(MACHINES))
    parser.add_argument("--size", type=int, default=80)
    parser.add_argument("--bootstrap", type=int, default=39)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    truths: dict[tuple[str, str], Truth] = {
        ("stiff", "itself"): machine_truth(MACHINES["stiff"]),
        ("stiff", "curve"): curve,
        ("stiff", "waves"): waves,
        ("flexible", "itself"): machine_truth(MACHINES["flexible"]),
        ("flexible", "curve"): curve,
        ("flexible", "waves"): waves,
        ("logistic", "itself"): plane,
    }
    rows = []
    for (name, truth), probability in truths.items():
        if name not in options.machines:
            continue
        sizes = options.size, options.bootstrap
        found = draws_of(
            p_values, name, probability, *sizes, n_draws=options.samples, n_jobs=options.jobs
        )
        for kind, p in zip(RESAMPLING, np.array(found).T, strict=True):
            rate = float(np.mean(p <= ALPHA + 1e-12))
            error = float(np.sqrt(rate * (1 - rate) / len(p)))
            rows.append((name, truth, kind, len(p), rate, error, float(np.median(p))))
            print(*rows[-1], flush=True)
    header = ("machine", "truth", "test", "samples", "rejected", "standard_error", "median_p")
    write_table("goodness_of_fit_level", header, rows)


if __name__ == "__main__":
    main()
