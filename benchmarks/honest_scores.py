"""Figures to quote of labels that are pure noise: plain, with outer folds, and on the grid.

Scores of the self-tuning machines beside what chance gives: the share of the smaller class for
the error rate, ½ for the balanced error rate and the area under the ROC curve, the entropy of the
class shares for the log loss (log 2 for equal classes), 0 for R² of a regressor. Five features.
"patients" are groups of four rows that are much alike, with a label for each group, held out
together. "plain": hyper-parameters were chosen by the rows that they are scored on, and flatter;
"folds": a search along gradients is tuned anew without each of ten folds; "grid": the choice is
repeated without each row, or group.

"flatters" says that the mean is better than chance by more than two standard errors over draws;
what was learned from noise may well be worse than chance.

Claim checked: nothing of outer folds and of the grid flatters.

    python benchmarks/honest_scores.py [--draws 200] [--jobs 1]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from _report import as_errors, draws_of, write_table
from scipy.special import entr

from looms import KernelClassifier, KernelRegressor, Search

N_FEATURES, ROWS_OF_PATIENT, ROUNDING = 5, 4, 1e-9
#: Search, and whether the choice is repeated without the rows that are scored.
WAYS = {
    "plain": (Search(), False),
    "folds": (Search(), True),
    "grid": (Search(method="grid"), True),
}
#: Figures of which more is better.
GAINS = ("auc", "r2")
Values = list[dict[str, float]]


def of_ways(machine: Any, *data: Any, **groups: Any) -> Values:
    """Scores of the machine by every way."""
    return [
        as_errors(machine.set_params(search=search).fit(*data, **groups).evaluate(nested=nested))
        for search, nested in WAYS.values()
    ]


def classes(n: int, share: float, seed: int) -> Values:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, N_FEATURES)), np.arange(n) < round(share * n)
    return of_ways(KernelClassifier(), X, y)


def patients(n: int, share: float, seed: int) -> Values:
    """Half of the variance of a feature is between groups."""
    rng = np.random.default_rng(seed)
    groups = np.arange(n) // ROWS_OF_PATIENT
    n_groups = n // ROWS_OF_PATIENT
    y = np.arange(n_groups) < round(share * n_groups)
    X = rng.normal(size=(n, N_FEATURES)) + rng.normal(size=(n_groups, N_FEATURES))[groups]
    return of_ways(KernelClassifier(), X, y[groups], groups=groups)


def numbers(n: int, share: float, seed: int) -> Values:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, N_FEATURES)), rng.normal(size=n)
    return of_ways(KernelRegressor(), X, y)


PROBLEMS: list[tuple[str, Callable[[int, float, int], Values], int, float]] = [
    *(("classes", classes, n, share) for n in (30, 60, 200) for share in (0.5, 0.1)),
    *(("patients", patients, n, 0.5) for n in (64, 160)),
    *(("numbers", numbers, n, 0.0) for n in (30, 60)),
]


def chances(share: float) -> dict[str, float]:
    entropy = float(entr([share, 1 - share]).sum())
    return {"error": min(share, 1 - share), "ber": 0.5, "auc": 0.5, "log_loss": entropy, "r2": 0.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    rows = []
    for name, scores_of, n, share in PROBLEMS:
        draws = options.draws
        drawn = draws_of(scores_of, n, share, n_draws=draws, n_jobs=options.jobs)
        for k, way in enumerate(WAYS):
            for figure, chance in chances(share).items():
                if figure not in drawn[0][k]:
                    continue
                values = np.array([scores[k][figure] for scores in drawn])
                mean, error = float(values.mean()), float(values.std(ddof=1) / np.sqrt(draws))
                better = (mean - chance) * (1 if figure in GAINS else -1)
                far = 2 * error + ROUNDING
                answers = ("no", "yes")[abs(better) <= far], ("no", "yes")[better > far]
                rows.append((name, n, share, way, figure, draws, chance, mean, error, *answers))
                print(*rows[-1], flush=True)
    header = (
        "problem",
        "n",
        "positive",
        "nested",
        "figure",
        "draws",
        "chance",
        "mean",
        "standard_error",
        "chance_within_two_standard_errors",
        "flatters",
    )
    write_table("honest_scores", header, rows)


if __name__ == "__main__":
    main()
