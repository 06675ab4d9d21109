"""L-BFGS, scaled conjugate gradients and Nelder-Mead on experiments of the challenge.

[C06] tuned by Nelder-Mead, [G06] by scaled conjugate gradients, looms tunes by L-BFGS. On random
rows of ADA each optimizer tunes the same experiments on the same 90/10 splits. Of each, the mean
test balanced error rate, evaluations and seconds a fit; beside L-BFGS the difference of the rates
with its standard error over the splits, and the criterion at the end less that of L-BFGS, in
standard errors of the criterion, in the mean and at worst.

    python benchmarks/challenge_optimizers.py [--rows 400] [--splits 10]

Needs ADA in LOOMS_DATA.
"""

from __future__ import annotations

import argparse
import time
from itertools import product

import numpy as np
from _report import write_table
from sklearn.metrics import balanced_accuracy_score

from looms.challenge import Runs, fetch
from looms.challenge._plans import KERNELS, PaperExperiment
from looms.challenge._run import estimator_of

OPTIMIZERS = ("lbfgs", "scg", "nelder-mead")
CRITERIA = ("press", "wmw")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--splits", type=int, default=10)
    arguments = parser.parse_args()
    data = fetch("ada").subsample(arguments.rows)
    parts = Runs(data).parts(arguments.splits)
    rows = []
    for criterion, kernel in product(CRITERIA, KERNELS):
        experiment = PaperExperiment(criterion, "none", kernel)
        values, errors, rates, evaluations, seconds = np.empty((5, len(OPTIMIZERS), len(parts)))
        for (i, optimizer), (k, (train, test)) in product(enumerate(OPTIMIZERS), enumerate(parts)):
            start = time.process_time()
            pipeline = estimator_of(data, experiment, optimizer).fit(data.X[train], data.y[train])
            seconds[i, k] = time.process_time() - start
            tuning = pipeline[-1].selection_
            values[i, k], errors[i, k] = tuning.value, tuning.standard_error
            evaluations[i, k] = tuning.n_evaluations
            predicted = pipeline.predict(data.X[test])
            rates[i, k] = 1 - balanced_accuracy_score(data.y[test], predicted)
        for i, optimizer in enumerate(OPTIMIZERS):
            excess, off = (values[i] - values[0]) / errors[0], rates[i] - rates[0]
            rates_of = rates[i].mean(), off.mean(), off.std(ddof=1) / np.sqrt(len(parts))
            of_criterion = excess.mean(), np.abs(excess).max()
            costs = evaluations[i].mean(), seconds[i].mean()
            rows.append((criterion, kernel, optimizer, *rates_of, *of_criterion, *costs))
    header = (
        *("criterion", "kernel", "optimizer", "ber", "less_lbfgs", "se"),
        *("criterion_less_lbfgs", "worst", "evaluations", "seconds"),
    )
    write_table("challenge_optimizers", header, rows)


if __name__ == "__main__":
    main()
