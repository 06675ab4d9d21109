"""A choice among fixed candidates repeated without each fold: against refits, and its time.

Against refits on a small problem: every candidate is refitted without two folds, and without
three for the pairs, the choice is made on these refits, and the outputs of the machine chosen are
beside those of `InnerFolds`. Its time is beside the plain grid: the criterion of the same
candidates on all rows, one factorization each.

Claim checked: the same outputs to 1e-8. The aim is at most 5 × the plain grid at n = 500 with 60
candidates.

    python benchmarks/nested.py [--small 40] [--size 500] [--candidates 60]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import product

import numpy as np
from _report import seconds, write_table

from looms.fitted._outcome import Classes
from looms.lssvm.refit import refit_loo
from looms.selection._nested import InnerFolds
from looms.selection._objective import Objective
from looms.units import Units

N_FEATURES, N_RIDGES = 5, 6
Candidates = list[tuple[Objective, np.ndarray]]


def candidates_of(n: int, held_out: str, number: int) -> Candidates:
    """Candidates of an RBF kernel: 6 ridges of each width."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, N_FEATURES))
    y = np.sign(X[:, 0] + X[:, 1] ** 2 - 1 + rng.normal(size=n))
    groups = np.arange(n) // 4 if held_out == "groups of 4" else None
    cv = None if held_out in ("each row", "groups of 4") else held_out
    objective = Objective(X, y, units=Units.of(cv, y, groups, classes=True))
    widths = np.linspace(-4.0, 3.0, number // N_RIDGES)
    ridges = np.linspace(-4.0, 8.0, N_RIDGES)
    return [(objective, objective.theta0 + shift) for shift in product(widths, ridges)]


def chosen_from(candidates: Candidates) -> InnerFolds:
    """The choice among the candidates in every round."""
    objective, _ = candidates[0]
    choice = InnerFolds(objective.y, objective.units, Classes(np.arange(2)))
    for candidate in candidates:
        choice.evaluate(*candidate)
    return choice


def refitted_outputs(
    candidates: Candidates, number: np.ndarray, rest: np.ndarray, fold: np.ndarray
) -> np.ndarray:
    """(n_fold,) outputs of the machine chosen and trained on ``rest``, by refits alone."""
    machines = []
    for objective, theta in candidates:
        K = objective.kernel_at(theta)(objective.X)
        mu = objective.mu_at(theta) * len(K) / len(rest)  # the ridge is held
        inner = refit_loo(K[np.ix_(rest, rest)], objective.y[rest], mu, folds=number[rest])
        value = objective.criterion.evaluate(*inner).value
        machines.append((value, K, mu))
    _, K, mu = min(machines, key=lambda machine: machine[0])
    rows = np.append(rest, fold)
    out = np.where(np.arange(len(rows)) < len(rest), -1, 0)
    mu *= len(rest) / len(rows)
    return refit_loo(K[np.ix_(rows, rows)], objective.y[rows], mu, folds=out).outputs[len(rest) :]


def largest_difference(candidates: Candidates, choice: InnerFolds) -> float:
    """Of outputs without each fold, and without two, from those by refits."""
    (number,) = choice.units.number
    differences = []
    for round_, left_out in enumerate(choice.left_out):
        rest = np.flatnonzero(~np.isin(number, left_out))
        rows = np.flatnonzero(np.isin(number, left_out))
        theirs = refitted_outputs(candidates, number, rest, rows)
        differences.append(np.abs(choice.outputs[round_, rows, 0] - theirs).max())
    return float(max(differences))


def values(candidates: Sequence[tuple[Objective, np.ndarray]]) -> list[float]:
    return [objective.evaluate(theta, gradient=False).value for objective, theta in candidates]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", type=int, default=40, help="rows of the problem with refits")
    parser.add_argument("--size", type=int, default=500, help="rows of the problem that is timed")
    parser.add_argument("--candidates", type=int, default=60, help="a multiple of 6")
    options = parser.parse_args()
    rows = []
    for held_out in ("each row", "groups of 4", "10"):
        few = candidates_of(options.small, held_out, 2 * N_RIDGES)
        difference = largest_difference(few, chosen_from(few))
        if difference > 1e-8:
            raise SystemExit(f"Outputs differ by {difference:.1e} with {held_out} held out.")
        candidates = candidates_of(options.size, held_out, options.candidates)
        choice = chosen_from(candidates)
        plain = seconds(lambda candidates=candidates: values(candidates))
        nested = seconds(lambda candidates=candidates: chosen_from(candidates))
        counts = (
            len(candidates),
            choice.units.n_units,
            len(choice.left_out) - choice.units.n_units,
        )
        rows.append((held_out, options.size, *counts, plain, nested, nested / plain, difference))
        print(*rows[-1], flush=True)
    header = (
        "held_out",
        "n",
        "candidates",
        "folds",
        "pairs_of_folds",
        "plain_seconds",
        "nested_seconds",
        "ratio",
        "largest_difference_from_refits",
    )
    write_table("nested", header, rows)


if __name__ == "__main__":
    main()
