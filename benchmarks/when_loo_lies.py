"""Leave-one-out beside the truth: its spread next to folds, and rows that repeat each other.

"spread": the mean squared error of a kernel machine by leave-one-out, 10 folds and 5 folds, drawn
once, and by both repeated ten times, beside that of the machine of all rows on 2000 new ones.
"given" has its hyper-parameters given; "tuned" chooses them by leave-one-out first, and folds hold
out rows of the machine chosen, as leave-one-out does. Friedman's function of 5 features and 5 that
are noise; "away" is the root mean square distance of the figure from the truth over draws, "lean"
the mean of it less the truth.

"repeats": rows of one unit, such as visits of a patient, are alike and have one class, drawn by
chance, half of the units of either. Error rates of the tuned classifier with each row, or each
unit, held out, beside that on rows of new units.

Claims checked: leave-one-out of a machine that is given is not further from the truth than 10 or 5
folds; with repeats only holding out units reads chance.

    python benchmarks/when_loo_lies.py [--draws 200] [--jobs 1]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from _report import as_errors, draws_of, write_table
from sklearn.datasets import make_friedman1
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.preprocessing import StandardScaler

from looms import KernelClassifier, KernelRegressor

N_NEW, NOISE, REPETITIONS = 2000, 2.0, 10
N_UNITS, N_FEATURES, ALIKE = 40, 4, 0.2
#: Figure and truth by the way that rows were held out.
Draw = dict[str, tuple[float, float]]


def spread(n: int, tuned: bool, seed: int) -> Draw:
    X, y = make_friedman1(n + N_NEW, noise=NOISE, random_state=seed)
    X = StandardScaler().fit(X[:n]).transform(X)
    y = (y - y[:n].mean()) / y[:n].std()
    machine = KernelRegressor("rbf", mu=1e-2)
    if tuned:
        chosen = KernelRegressor().fit(X[:n], y[:n])
        machine = KernelRegressor(chosen.kernel_, mu=chosen.mu_)
    machine.fit(X[:n], y[:n])
    truth = mean_squared_error(y[n:], machine.predict(X[n:]))
    figures = {"leave-one-out": float(np.mean(machine.loo_.residuals**2))}
    for k in (10, 5):
        errors = [
            mean_squared_error(y[:n], cross_val_predict(machine, X[:n], y[:n], cv=folds))
            for folds in (KFold(k, shuffle=True, random_state=r) for r in range(REPETITIONS))
        ]
        figures[f"{k} folds"] = errors[0]
        figures[f"{k} folds {REPETITIONS} times"] = float(np.mean(errors))
    return {way: (value, truth) for way, value in figures.items()}


def repeats(n_of_unit: int, informative: bool, seed: int) -> Draw:
    """As many rows of each unit; a class by chance, or partly by the first feature."""
    rng = np.random.default_rng(seed)

    def units(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        group = np.repeat(np.arange(n), n_of_unit)
        center = rng.normal(size=(n, N_FEATURES))
        rows = center[group] + ALIKE * rng.normal(size=(len(group), N_FEATURES))
        score = rng.normal(size=n) + 2.0 * informative * center[:, 0]
        return rows, (score > np.median(score))[group], group

    X, y, group = units(N_UNITS)
    X_new, y_new, _ = units(N_NEW // n_of_unit)
    draw: Draw = {}
    for way, groups in (("each row", None), ("each unit", group)):
        machine = KernelClassifier().fit(X, y, groups=groups)
        truth = 1 - machine.score(X_new, y_new)
        for figures, nested in (("leave-one-out", False), ("nested", True)):
            error = as_errors(machine.evaluate(nested=nested))["error"]
            draw[f"{way} {figures}"] = (error, truth)
    return draw


TOPICS: list[tuple[str, str, int, Callable[..., Draw], tuple[object, ...]]] = [
    *(
        ("spread", f"{name}; n = {n}", 1, spread, (n, name == "tuned"))
        for name in ("given", "tuned")
        for n in (40, 100)
    ),
    *(
        ("repeats", f"{name}; {k} rows a unit", 2, repeats, (k, name == "signal"))
        for name in ("noise", "signal")
        for k in (1, 4)
    ),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    rows = []
    for topic, problem, fewer, call, arguments in TOPICS:
        n_draws = max(2, options.draws // fewer)
        draws = draws_of(call, *arguments, n_draws=n_draws, n_jobs=options.jobs)
        for way in draws[0]:
            figure, truth = np.array([draw[way] for draw in draws]).T
            lean = figure - truth
            rows.append(
                (
                    *(topic, problem, way, n_draws),
                    *(float(each.mean()) for each in (figure, truth, lean)),
                    float(lean.std(ddof=1) / np.sqrt(n_draws)),
                    float(np.sqrt(np.mean(lean**2))),
                )
            )
            print(*rows[-1], sep=" | ", flush=True)
    columns = "topic problem held_out draws figure truth lean lean_error away"
    write_table("when_loo_lies", columns.split(), rows)


if __name__ == "__main__":
    main()
