"""L-BFGS, scaled conjugate gradients and Nelder-Mead on experiments of the challenge.

[C06] tuned by Nelder-Mead, [G06] by scaled conjugate gradients, looms tunes by L-BFGS. Each tunes
the same experiments on the same random rows of ADA, and all other rows test. Of each, the mean test
balanced error rate, evaluations and seconds a fit; beside L-BFGS the difference of the rates with
its standard error over the draws, and the criterion at the end less that of L-BFGS, in standard
errors of the criterion, in the mean and at worst. "all" is the mean over the experiments.

    python -m papers.challenge_optimizers [--rows 400] [--draws 10]

Needs ADA in LOOMS_DATA.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import product

import numpy as np
from benchmarks._report import DATA, write_table
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split

from looms import BoundWarning
from papers.challenge import fetch
from papers.challenge._plans import KERNELS, PaperExperiment
from papers.challenge._run import estimator_of

OPTIMIZERS = ("lbfgs", "scg", "nelder-mead")
EXPERIMENTS = [PaperExperiment(c, "none", k) for c, k in product(("press", "wmw"), KERNELS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--draws", type=int, default=10)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", BoundWarning)
    data = fetch("ada", DATA)
    n = len(data.y)
    shape = len(EXPERIMENTS), len(OPTIMIZERS), arguments.draws
    values, errors, rates, evaluations, seconds = np.empty((5, *shape))
    for i, j, k in np.ndindex(shape):
        train, test = train_test_split(
            np.arange(n), train_size=arguments.rows, stratify=data.y, random_state=k
        )
        pipeline = estimator_of(data, EXPERIMENTS[i], OPTIMIZERS[j])
        start = time.process_time()
        pipeline.fit(data.X[train], data.y[train])
        seconds[i, j, k] = time.process_time() - start
        tuning = pipeline[-1].selection_
        values[i, j, k], errors[i, j, k] = tuning.value, tuning.standard_error
        evaluations[i, j, k] = tuning.n_evaluations
        rates[i, j, k] = 1 - balanced_accuracy_score(data.y[test], pipeline.predict(data.X[test]))
    excess, off = (values - values[:, :1]) / errors[:, :1], rates - rates[:, :1]
    rows = []
    for names, of in [*((e.name, [i]) for i, e in enumerate(EXPERIMENTS)), ("all", slice(None))]:
        for j, optimizer in enumerate(OPTIMIZERS):
            by_draw = off[of, j].mean(axis=0)
            of_rates = rates[of, j].mean(), by_draw.mean(), by_draw.std(ddof=1) / shape[2] ** 0.5
            of_criterion = excess[of, j].mean(), np.abs(excess[of, j]).max()
            costs = evaluations[of, j].mean(), seconds[of, j].mean()
            rows.append((names, optimizer, *of_rates, *of_criterion, *costs))
    header = (
        *("experiment", "optimizer", "ber", "less_lbfgs", "se"),
        *("criterion_less_lbfgs", "worst", "evaluations", "seconds"),
    )
    write_table("challenge_optimizers", header, rows)


if __name__ == "__main__":
    main()
