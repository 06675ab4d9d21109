"""How often the 95 % intervals of `looms.assess` leave out what they are of, and how wide they are.

Two classes, of equal size or one in five ("share"), 5 normal features, the first of which the
classes move apart by twice the "signal"; or numbers, signal (x₁ + sin 2x₂) and noise of variance 1.
A tenth of the rows tests. A least-squares machine with an RBF kernel of fixed width ("gamma") and
ridge. "truth" is the expected score of such machines, the mean over draws of rows (½ of equal
classes without signal); "spread" is the standard deviation of the figure over draws,
"standard_error" the root mean square of what is printed beside it, "outside" the share of the
intervals without the truth, 0.05 if they are right, "width" their median width over that of ± 1.96
spread. "once" is "outside" of the corrected resampled t-test, mean ± t error, in which the ratio of
test to training rows counts once.

Differences are those of two machines of 5 columns each, which by symmetry are equally good: with
columns of their own, or with the signal and three noisy columns in common. `looms.compare` takes
the corrected resampled t-test.

Claim checked: "outside" is at most 0.06, but for areas and recalls in test parts with one or two
rows of a class, 0.09, and for R² of three rows, which has no variance; once is too little for
scores, and enough for differences of machines that are alike.

    python benchmarks/assess_intervals.py [--draws 1000]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from _report import write_table
from scipy import stats

from looms._typing import Array
from looms.assessment._result import corrected_error
from looms.assessment._scoring import ScoreKind
from looms.assessment._split_run import SplitResult
from looms.assessment._splits import plan

HEADER = (
    *("rows", "method", "splits", "gamma", "signal", "share", "figure", "draws", "truth", "spread"),
    *("standard_error", "outside", "outside_error", "width", "once"),
)
RIDGE, SPLITS, INF = 1.0, (10, 100), float("inf")
KINDS = {
    "error": ScoreKind(True, 0.0, 1.0),
    "ber": ScoreKind(True, 0.0, 1.0, "classes"),
    "recall": ScoreKind(False, 0.0, 1.0, "class"),
    "auc": ScoreKind(False, 0.0, 1.0, "classes"),
    "rmse": ScoreKind(True, 0.0, INF),
    "r2": ScoreKind(False, -INF, 1.0),
}
#: Columns of two machines that are compared; column 0 has the signal, and so has 5 if it is used.
PAIRS = {"own columns": (range(5), range(5, 10)), "alike": (range(5), (0, 1, 2, 3, 6))}


class Case(NamedTuple):
    n: int
    signal: float
    classes: bool = True
    gamma: float = 0.1
    method: str = "shuffle"
    pair: str = ""
    share: float = 0.5


def held_out(X: Array, y: Array, gamma: float, tests: Array) -> Array:
    """Outputs for the rows of every test part, by the machine trained without them."""
    n = len(y)
    bordered = np.ones((n + 1, n + 1))
    squares = ((X[:, None] - X) ** 2).sum(axis=-1)
    bordered[:-1, :-1] = np.exp(-gamma * squares) + RIDGE * np.eye(n)
    bordered[-1, -1] = 0.0
    P = np.linalg.inv(bordered)[:n, :n]
    blocks, alpha = P[tests[:, :, None], tests[:, None]], P @ y
    return np.asarray(y[tests] - np.linalg.solve(blocks, alpha[tests][..., None])[..., 0])


def figures(y: Array, f: Array, classes: bool) -> dict[str, Array]:
    """Figures of every test part, of (n_splits, n_test) targets and outputs."""
    if not classes:
        squares = ((y - f) ** 2).mean(axis=1)
        return {"rmse": np.sqrt(squares), "r2": 1.0 - squares / y.var(axis=1)}
    pairs = (y > 0)[:, :, None] & (y < 0)[:, None]
    areas = (pairs & (f[:, :, None] > f[:, None])).sum(axis=(1, 2)) / pairs.sum(axis=(1, 2))
    found = {"error": ((f > 0) != (y > 0)).mean(axis=1), "auc": areas}
    if (y > 0).mean() == 0.5:
        return found
    of_classes = [((f > 0) == (y > 0)).mean(axis=1, where=y * sign > 0) for sign in (1, -1)]
    return found | {"recall": of_classes[0], "ber": 1.0 - np.mean(of_classes, axis=0)}


def draw(case: Case, seed: int) -> tuple[dict[str, Array], list[SplitResult]]:
    """Figures of the splits of one draw, or their differences, and the sizes of the splits."""
    rng = np.random.default_rng(seed)
    n = case.n
    X = rng.normal(size=(n, 10))
    if case.classes:
        y = np.where(rng.permutation(n) < case.share * n, 1.0, -1.0)
        X[:, [0, 5]] += case.signal * y[:, None]
    else:
        y = case.signal * (X[:, 0] + np.sin(2.0 * X[:, 1])) + rng.normal(size=n)
    options = {"test_size": 0.1, "random_state": seed, "stratified": case.classes}
    splits = plan(y, method=case.method, n_splits=max(SPLITS), **options)
    tests = np.array([split.rows(y)[1] for split in splits])
    m = tests.shape[1]
    sizes = [SplitResult(split.index, n - m, m) for split in splits]
    machines = PAIRS[case.pair] if case.pair else (range(5),)
    first, *other = (
        figures(y[tests], held_out(X[:, list(columns)], y, case.gamma, tests), case.classes)
        for columns in machines
    )
    return {name: first[name] - other[0][name] if other else first[name] for name in first}, sizes


def rows_of(case: Case, draws: int) -> Iterator[tuple[object, ...]]:
    """Rows of the table."""
    each = [draw(case, seed) for seed in range(draws)]
    sizes = each[0][1]
    for name, kind in KINDS.items():
        if name not in each[0][0]:
            continue
        n_rows = kind.n_rows(
            case.n, [round(share * case.n) for share in (case.share, 1 - case.share)]
        )
        values = np.array([found[name] for found, _ in each])
        truth = float(values.mean())
        if case.pair:
            kind, truth = ScoreKind(), 0.0
        elif case.classes and case.signal == 0 and case.share == 0.5:
            truth = 0.5
        for J in SPLITS:
            t = float(stats.t.ppf(0.975, J - 1))
            means = values[:, :J].mean(axis=1)
            once, errors = (
                np.array([corrected_error(v[:J], sizes[:J], times) for v in values])
                for times in (1.0, 1.0 if case.pair else 2.0)
            )
            low, high = np.transpose(
                [kind.interval(*of, t, n_rows) for of in zip(means, errors, strict=True)]
            )
            outside, spread = (low > truth) | (truth > high), means.std(ddof=1)
            figure = f"{name}, {case.pair}" if case.pair else name
            yield (
                *(case.n, case.method, J, case.gamma, case.signal, case.share),
                figure.replace(",", ":"),
                *(draws, truth, spread, np.sqrt(np.mean(errors**2))),
                *(outside.mean(), outside.std() / np.sqrt(draws)),
                np.median(high - low) / (2.0 * 1.96 * spread),
                np.mean(np.abs(means - truth) > t * once),
            )


def cases() -> Iterator[Case]:
    for signal in (0.0, 0.5, 1.0, 2.0):
        for n in (30, 60, 120):
            yield Case(n, signal)
        yield Case(60, signal, method="kfold")
    for signal in (0.0, 0.5, 1.0):
        for n in (30, 60, 120):
            yield Case(n, signal, gamma=1.0)
    for signal in (0.5, 1.0, 2.0):
        for n in (60, 120):
            yield Case(n, signal, share=0.2)
    for signal in (0.0, 1.0):
        for n in (30, 60, 120):
            yield Case(n, signal, classes=False)
    for pair in PAIRS:
        for signal in (0.5, 1.0):
            yield Case(60, signal, pair=pair)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    draws = parser.parse_args().draws
    rows = [
        [f"{cell:.3g}" if isinstance(cell, float) else cell for cell in row]
        for case in cases()
        for row in rows_of(case, draws)
    ]
    write_table("assess_intervals", HEADER, rows)


if __name__ == "__main__":
    main()
