"""Figures of labels that are pure noise: of pooled leave-one-out outputs, and of pairs of rows.

The truth is ½ for the area under the ROC curve and for the balanced error rate. RBF kernel, 5
features; the ridge n mu is given, or chosen with the width on a grid of 30 by "press". "tuned" are
the figures of the machine chosen on all rows, "nested" those with the choice repeated without each
row, and without both rows of a pair. Means over draws of features and labels, with standard errors.

    python benchmarks/pooled_figures.py [--draws 200] [--sizes 30 60 200] [--jobs 1]
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np
from _report import draws_of, write_table
from sklearn.metrics import roc_auc_score

from looms._classes import rounding
from looms.criteria import mean_class_error
from looms.criteria._error_rates import balanced_error_rate
from looms.fitted._outcome import Classes
from looms.selection._decisions import Decided, Decisions, Rule
from looms.selection._fold_pairs import fold_pairs, pair_auc
from looms.selection._nested import InnerFolds
from looms.selection._objective import Objective

N_FEATURES = 5
RIDGES = (1.0, 10.0, 100.0)
GRID = list(product((-4.0, -2.0, 0.0, 2.0, 4.0), 2.0 ** np.arange(-3.0, 8.0, 2.0)))
FIGURES = ("pooled_auc", "pair_auc", "pooled_ber", "pair_ber")


def noise(n: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, N_FEATURES)), np.where(np.arange(n) < round(share * n), 1.0, -1.0)


def point(objective: Objective, width: float, ridge: float) -> np.ndarray:
    """Hyper-parameters of an RBF kernel of 2^width times the default gamma."""
    return np.array([objective.theta0[0] + width, np.log2(ridge / objective.n_samples)])


def figures(
    y: np.ndarray,
    pooled: np.ndarray,
    pairs: list[tuple[int, int]],
    outputs: list[np.ndarray],
) -> tuple[float, ...]:
    folds, Y, weight = list(np.arange(len(y))[:, None]), y[:, None], np.ones(len(y))
    area, _ = pair_auc(Y, pooled[:, None], folds, pairs, outputs, weight)
    rule = Rule(0.0, None, rounding(len(y)))
    decided = Decided.of(np.ravel(pairs), np.concatenate(outputs)[:, 0], rule)
    labels = (y > 0).astype(int)
    wrong = Decisions.of([decided], labels).wrong
    return (
        float(roc_auc_score(y, pooled)),
        area,
        balanced_error_rate(y, pooled),
        mean_class_error(labels, wrong),
    )


def of_machine(objective: Objective, theta: np.ndarray) -> tuple[float, ...]:
    """Figures of one machine, its hyper-parameters as they are."""
    y, machine = objective.y, objective.solve(theta)
    pairs = fold_pairs(y[:, None], np.arange(objective.n_samples))
    outputs = list(machine.of_own(np.array(pairs)))
    return figures(y, machine.loo.outputs[:, 0], pairs, outputs)


def of_choice(objective: Objective, choice: InnerFolds) -> tuple[float, ...]:
    """Figures with the choice repeated without the rows that they are about."""
    n = objective.n_samples
    pairs = [(i, j) for i, j in choice.left_out[n:]]
    outputs = [choice.outputs[n + k, list(pair)] for k, pair in enumerate(pairs)]
    held_out = choice.outputs[np.arange(n), np.arange(n), 0]
    return figures(objective.y, held_out, pairs, outputs)


def of_draw(n: int, share: float, seed: int) -> list[tuple[float, ...]]:
    """Figures of each ridge, of the machine chosen, and nested."""
    objective = Objective(*noise(n, share, seed), kernel="rbf", criterion="press")
    given = [of_machine(objective, point(objective, 0.0, ridge)) for ridge in RIDGES]
    choice = InnerFolds(objective.y, objective.units, Classes(np.arange(2)))
    points = [choice.evaluate(objective, point(objective, *place)) for place in GRID]
    tuned = of_machine(objective, min(points, key=lambda one: one.value).theta)
    return [*given, tuned, of_choice(objective, choice)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="+", default=[30, 60, 200])
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    machines = [*(f"ridge {ridge:g}" for ridge in RIDGES), "tuned", "tuned and nested"]
    rows = []
    for n, share in product(options.sizes, (0.5, 0.1)):
        draws = np.array(draws_of(of_draw, n, share, n_draws=options.draws, n_jobs=options.jobs))
        means, errors = draws.mean(axis=0), draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
        for machine, mean, error in zip(machines, means, errors, strict=True):
            both = np.column_stack([mean, error]).ravel()
            rows.append((n, share, machine, len(draws), *(float(x) for x in both)))
            print(*rows[-1][:4], *both.round(3), flush=True)
    columns = [name for figure in FIGURES for name in (figure, f"{figure}_error")]
    write_table("pooled_figures", ("n", "positive", "machine", "draws", *columns), rows)


if __name__ == "__main__":
    main()
