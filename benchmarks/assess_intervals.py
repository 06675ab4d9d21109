"""How often the 95 % intervals of `looms.assess` leave out what they are of.

Two classes of 30 rows, 5 normal features, the first of which the classes move apart by twice the
"separation"; a tenth of the rows tests. A least-squares machine with an RBF kernel of fixed width
and ridge; "truth" is the mean over draws of rows, ½ without separation. "spread" is the standard
deviation of the figure over draws, "standard_error" the root mean square of what is printed beside
it, "outside" the share of the intervals without the truth, 0.05 if they are right.

Claim checked: they are narrow, for the correction for shared rows does not count that machines of
nearly the same rows err together.

    python benchmarks/assess_intervals.py [--draws 300]
"""

from __future__ import annotations

import argparse

import numpy as np
from _report import write_table
from scipy import stats

from looms.assessment._result import corrected_error
from looms.assessment._split_run import SplitResult
from looms.assessment._splits import plan

HEADER = (
    *("separation", "splits", "figure", "draws", "truth", "spread", "standard_error"),
    *("outside", "outside_error"),
)
N, N_FEATURES, GAMMA, RIDGE = 60, 5, 0.1, 1.0


def outputs(K: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Outputs for some rows of the machine trained on others."""
    bordered = np.ones((len(train) + 1, len(train) + 1))
    bordered[:-1, :-1] = K[np.ix_(train, train)] + RIDGE * np.eye(len(train))
    bordered[-1, -1] = 0.0
    solution = np.linalg.solve(bordered, np.append(y[train], 0.0))
    return np.asarray(K[np.ix_(test, train)] @ solution[:-1] + solution[-1])


def figures(separation: float, n_splits: int, seed: int) -> list[tuple[float, float]]:
    """Error rate and area under the ROC curve of one draw, each with its standard error."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.permutation(N) < N / 2, 1.0, -1.0)
    X = rng.normal(size=(N, N_FEATURES))
    X[:, 0] += separation * y
    squares = ((X[:, None] - X) ** 2).sum(axis=-1)
    K, scores, splits = np.exp(-GAMMA * squares), [], []
    options = {"n_splits": n_splits, "test_size": 0.1, "random_state": seed, "stratified": True}
    for split in plan(y, method="shuffle", **options):
        train, test = split.rows(y)
        f, positive = outputs(K, y, train, test), y[test] > 0
        scores.append((np.mean((f > 0) != positive), np.mean(f[positive][:, None] > f[~positive])))
        splits.append(SplitResult(split.index, len(train), len(test)))
    return [(float(v.mean()), corrected_error(v, splits)) for v in np.transpose(scores)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=300)
    draws = parser.parse_args().draws
    rows = []
    for separation, n_splits in ((0.0, 10), (0.0, 100), (0.5, 100), (1.0, 100)):
        each = np.array([figures(separation, n_splits, seed) for seed in range(draws)])
        for name, (value, error) in zip(("error", "auc"), each.transpose(1, 2, 0), strict=True):
            truth = 0.5 if separation == 0 else value.mean()
            outside = np.abs(value - truth) > stats.t.ppf(0.975, n_splits - 1) * error
            spread, printed = value.std(ddof=1), np.sqrt(np.mean(error**2))
            share, of_share = outside.mean(), outside.std() / np.sqrt(draws)
            row = (separation, n_splits, name, draws, truth, spread, printed, share, of_share)
            rows.append([f"{cell:.3g}" if isinstance(cell, float) else cell for cell in row])
    write_table("assess_intervals", HEADER, rows)


if __name__ == "__main__":
    main()
