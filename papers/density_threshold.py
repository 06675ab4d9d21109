"""Threshold from class densities, as of kernel Fisher discriminants, beside that of leave-one-out.

[G06] names an analytic correction of the threshold that relies on the distribution of the outputs.
Here normal densities are fitted to the leave-one-out outputs of each class, with a variance each,
and the threshold is where they cross between the two means, so that classes have equal weight. The
models and the tenths are those of `papers.challenge_game`: for each set the mean test balanced
error rate over five models and ten tenths with either threshold, and the difference with its
standard error over the tenths.

    python -m papers.density_threshold
"""

from __future__ import annotations

import numpy as np
from benchmarks._report import DATA, write_table
from scipy.optimize import brentq
from scipy.stats import norm

from looms.criteria._error_rates import balanced_error_rate
from looms.held_out import HeldOut
from papers.challenge import Runs
from papers.challenge._plans import PaperExperiment
from papers.challenge._run import estimator_of
from papers.challenge_game import TENTHS, WINNERS, sets_of


def threshold_between(held_out: HeldOut) -> float:
    """Output between the class means at which normal densities of the two classes are equal.

    >>> threshold_between(HeldOut([-1, -1, 1, 1], [-3.0, -1.0, 3.0, 5.0]))
    1.0
    """
    of = [held_out.outputs[np.sign(held_out.y) == sign] for sign in (-1, 1)]
    lower, upper = (norm(each.mean(), each.std(ddof=1)) for each in of)
    ends = lower.mean(), upper.mean()

    def excess(f: float) -> float:
        return float(upper.logpdf(f) - lower.logpdf(f))

    if not (ends[0] < ends[1] and excess(ends[0]) < 0 < excess(ends[1])):
        return float(np.mean(ends))  # one density is above the other all the way
    return float(brentq(excess, *ends))


def main() -> None:
    rows = []
    for name, data in sets_of(DATA).items():
        rates = np.empty((TENTHS, len(WINNERS), 2))
        for k, (train, test) in enumerate(Runs(data).parts(TENTHS)):
            for j, winner in enumerate(WINNERS):
                experiment = PaperExperiment.named(winner)
                assert experiment is not None
                model = estimator_of(data, experiment).fit(data.X[train], data.y[train])
                machine = model[-1]
                outputs = model.decision_function(data.X[test])
                threshold = threshold_between(machine.loo_) - machine.threshold_
                for way, at in enumerate((0.0, threshold)):
                    rates[k, j, way] = balanced_error_rate(data.y[test], outputs, threshold=at)
        by_tenth = rates.mean(axis=1)
        less = by_tenth[:, 1] - by_tenth[:, 0]
        error = float(less.std(ddof=1) / TENTHS**0.5)
        rows.append((name, *map(float, by_tenth.mean(axis=0)), float(less.mean()), error))
    header = ("dataset", "by_leave_one_out", "by_densities", "densities_less", "standard_error")
    write_table("density_threshold", header, rows)


if __name__ == "__main__":
    main()
