"""
A row held out, without a refit
===============================

A kernel model is fitted once. The model without one of its rows then takes no second fit: it is the
first model, less a column of an inverse.
"""

# %%
# Twenty rows with noise. Row 13 is far off, so the model without it is another one.

import matplotlib.pyplot as plt
import numpy as np

from looms import KernelRegressor
from looms.kernels import RBF
from looms.units import Units

rng = np.random.default_rng(1)
x = np.sort(rng.uniform(0, 10, 20))
y = np.sin(x) + 0.2 * rng.normal(size=20)
row = 13
y[row] += 2

model = KernelRegressor(RBF(0.5), mu=0.01).fit(x[:, None], y)
grid = np.linspace(0, 10, 200)
without = model.left_out().at(grid[:, None], Units.rows(20))[:, row, 0]

# %%
# For comparison, the model is trained again on the 19 other rows, with the ridge ``n * mu`` of the
# twenty.

others = np.delete(np.arange(20), row)
refit = KernelRegressor(RBF(0.5), mu=0.01 * 20 / 19).fit(x[others, None], y[others])

fig, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
ax.plot(grid, model.predict(grid[:, None]), color="gray", label="all rows")
ax.plot(grid, without, color="C0", label=f"without row {row}, no refit")
ax.plot(grid[::8], refit.predict(grid[::8, None]), "C0x", label="refit")
ax.plot(x, y, "ko", markersize=4)
ax.vlines(x[row], y[row], model.loo_.outputs[row], color="C1", linestyle="--")
ax.plot(x[row], model.loo_.outputs[row], "C1o", label="predicted without it")
ax.set(xlabel="feature", ylabel="target", ylim=(-2.6, 2.6))
ax.legend(loc="lower left", ncols=2, fontsize="small")
plt.show()

# %%
# The two agree up to rounding, here and for every row. ``model.loo_`` has the predictions for the
# rows themselves, from which tuning, scores, thresholds and intervals are made.

print(f"{np.abs(without - refit.predict(grid[:, None])).max():.0e}")
