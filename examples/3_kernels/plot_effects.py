"""
Effects of single columns, with bands
=====================================

Partial dependence shows how predictions change with one column, on average over the rows. The
leave-one-out models, which take no refits, tell how certain the curve is.
"""

# %%
# Friedman's function again: it depends on five of ten columns.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.inspection import permutation_importance

from looms import KernelRegressor
from looms.report import EffectDisplay, feature_importance


def true(X):
    bent = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return bent + 10 * X[:, 3] + 5 * X[:, 4]


X, y = make_friedman1(1200, noise=1.0, random_state=0)
model = KernelRegressor("rbf").fit(X[:200], y[:200])

# %%
# ``EffectDisplay`` gives all rows the same value of a column, and averages the predictions. The 200
# models without one row have such means, too, and from their deviations comes a jackknife standard
# error of the curve; the band is two of them wide on either side. It does not include that the
# hyper-parameters were tuned on all rows.

fig, axes = plt.subplots(2, 2, figsize=(5.4, 4.6), sharey=True, layout="constrained")
for ax, k in zip(axes.flat, (0, 2, 3, 5), strict=True):
    effect = EffectDisplay.from_estimator(model, f"feature {k + 1}", ax=ax)
    rows = np.repeat(X[None, :200], len(effect.values), axis=0)
    rows[:, :, k] = effect.values[:, None]
    ax.plot(effect.values, true(rows.reshape(-1, 10)).reshape(-1, 200).mean(axis=1), ":", color="k")
    ax.set(xlabel=f"column {k + 1}", ylabel="", ylim=(3, 22))
for ax in axes[:, 0]:
    ax.set_ylabel("mean prediction")
plt.show()

# %%
# The dotted lines are the true effects. Column 6 has none: its curve is flat within the band. The
# dots are quantiles of the rows: as many rows lie between any two of them.

# %%
# ``feature_importance`` shuffles a column among the rows of the fit, and predicts each changed row
# by the model that has not seen it. It agrees with the permutation importance of scikit-learn on a
# thousand new rows. With a column that almost repeats column 4 in the table, the two share its
# importance: neither alone tells what the model would lose without both.

copy = X[:, 3] + 0.01 * np.random.default_rng(0).normal(size=len(X))
X = np.column_stack([X, copy])
shown = [0, 1, 2, 3, 4, 10]
importances = {}
for name, p in (("ten columns", 10), ("with a copy of column 4", 11)):
    model = KernelRegressor("rbf").fit(X[:200, :p], y[:200])
    held_out = feature_importance(model)
    new = permutation_importance(
        model, X[200:, :p], y[200:], scoring="neg_mean_squared_error", random_state=0
    )
    importances[name] = (
        [held_out.value[held_out.names.index(f"feature {k + 1}")] for k in shown if k < p],
        [new.importances_mean[k] for k in shown if k < p],
    )

fig, axes = plt.subplots(1, 2, figsize=(5.4, 3.6), sharey=True, layout="constrained")
for name, offset, color in zip(importances, (-0.2, 0.2), ("C0", "C1"), strict=True):
    for ax, values in zip(axes, importances[name], strict=True):
        ax.barh(np.arange(len(values)) + offset, values, 0.38, color=color, label=name)
axes[0].set_yticks(range(6), [*(f"column {k + 1}" for k in range(5)), "copy of 4"])
axes[0].invert_yaxis()
axes[0].set(xlabel="rise of the squared error", title="200 rows, held out")
axes[1].set(xlabel="rise of the squared error", title="1000 new rows")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
plt.show()
