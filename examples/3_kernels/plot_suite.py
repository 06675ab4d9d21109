"""
Twenty real tables, wins and losses
===================================

Each method at its defaults, on tables of up to 500 training rows, by which nothing of looms was
chosen. The error is the log loss, or the root mean square error where the target is a number.
"""

# %%
# The errors come with the source of looms, in ``benchmarks/results``. We divide them by the
# smallest error of the seven other methods on the same table, so these have 1 at best.

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

results = Path("../../benchmarks/results/tables_report_500_each.csv")
errors = pd.read_csv(results, comment="#").query("measure == 'loss'").set_index("table")
others = ["linear", "nystroem_ridge", "lightgbm", "catboost", "xrfm", "svc_grid"]
others += ["hist_gradient_boosting"]
relative = errors[["looms", "looms_rbf", *others]].div(errors[others].min(axis=1), axis=0)
relative = relative.sort_values("looms", ascending=False)

# %%
# Right of the line, another method is better than looms: the stack, the default, loses on three
# tables, and ``"rbf"`` alone on seven.

fig, ax = plt.subplots(figsize=(5.4, 6.4), layout="constrained")
rows = range(len(relative))
for name in others:
    ax.plot(relative[name].clip(upper=2.5), rows, "o", color="0.75", markersize=5)
ax.plot([], [], "o", color="0.75", markersize=5, label="seven other methods")
ax.plot(relative["looms_rbf"], rows, "o", color="C0", label='looms, "rbf"')
ax.plot(relative["looms"], rows, "o", color="C1", label="looms, the stack")
ax.axvline(1, color="0.4", linestyle=":")
ax.set_xscale("log")
ticks = [0.6, 0.8, 1, 1.25, 1.5, 2, 2.5]
ax.set_xticks(ticks, [*map(str, ticks[:-1]), "2.5+"], minor=False)
ax.xaxis.minorticks_off()
ax.set_yticks(rows, relative.index)
ax.set(xlabel="error / that of the best other method\n(right of 1 looms loses)")
fig.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=9, handletextpad=0.1)
plt.show()

# %%
# The losses of the stack, and the method that is best there:

lost = relative[relative["looms"] > 1]
for table, row in lost.iterrows():
    print(f"{table:9} {row['looms']:.3f}  {row[others].astype(float).idxmin()}")
