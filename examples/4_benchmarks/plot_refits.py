"""
Compared with refits
====================

Rows that are held out in closed form save the time of refits. How much is it?
"""

# %%
# The same task by looms and by refits. A point is one table or setting, and says how many times as
# long the refits take. The grid of SVCs leads to another model, of about the same error; the other
# three give the same numbers up to rounding or the tolerance of a solver.

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

results = Path("../../benchmarks/results")


def read(name):
    return pd.read_csv(results / f"{name}.csv", comment="#")


ratios = {
    "SVC tuned on a grid": read("against_grid_search")["times_faster"][:4],
    "KernelRidge tuned on a grid": read("folds_against_grid_search")["cholesky_times_faster"],
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
