"""
Time of a fit, and compared with refits
=======================================

How long does a fit take as the table grows, and how much longer if the model is evaluated? And how
much time does it save to hold rows out without refits?
"""

# %%
# The default call of ``TabularClassifier``, a stack of four kernels, and ``KernelClassifier``, a
# single one. Above 5000 rows they use landmarks, so that the time grows with the rows. The seconds
# are wall-clock seconds on two cores for the stack, and CPU seconds for the single kernel.

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

results = Path("../../benchmarks/results")


def read(name):
    return pd.read_csv(results / f"{name}.csv", comment="#")


four, one = read("default_call"), read("certificate_cost")[:2]
lines = {
    "stack of four and evaluate()": (four, four["fit_seconds"] + four["evaluate_seconds"], "C0o--"),
    "stack of four": (four, four["fit_seconds"], "C0o-"),
    "one kernel and evaluate()": (one, one["fit_and_nested"], "C1s--"),
    "one kernel": (one, one["fit"], "C1s-"),
}
fig, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
for label, (table, seconds, style) in lines.items():
    ax.loglog(table["rows"], seconds, style, label=label)
ax.set_xticks([300, 1000, 6000, 100_000], ["300", "1000", "6000", "100,000"])
ax.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
ax.minorticks_off()
ax.set(xlabel="rows", ylabel="seconds")
ax.legend()
plt.show()

# %%
# Now compared with refits. A point is one table or setting, and says how many times as long the
# refits take. The grid of SVCs leads to another model, of about the same error; the other three
# give the same numbers up to rounding.

grid, folds = read("against_grid_search")[:4], read("folds_against_grid_search")
ratios = {
    "SVC tuned on a grid": grid["times_faster"],
    "KernelRidge tuned on a grid": folds["cholesky_times_faster"],
    "leave-one-out of an SVC": read("svm_loo_speed")["ratio"].dropna(),
    "jackknife+ intervals of MAPIE": read("jackknife_mapie")["times_faster"],
}
fig, ax = plt.subplots(figsize=(5.4, 2.4), layout="constrained")
for place, values in enumerate(ratios.values()):
    ax.semilogx(values, [place] * len(values), "o", color="C0")
ax.axvline(1, color="gray", linewidth=1)
ax.set_yticks(range(len(ratios)), list(ratios))
ax.set_xticks([1, 10, 100], ["1", "10", "100"])
ax.set(xlabel="times the time of looms", xlim=(0.8, 200), ylim=(3.5, -0.5))
plt.show()

# %%
# These times are without ``evaluate()``. A grid search, too, needs an outer cross-validation for an
# unbiased score.
