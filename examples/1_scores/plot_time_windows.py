"""
Rows in order of time: windows with gaps
========================================

Rows that are close in time resemble each other. A row that is held out alone is predicted from the
rows just before and after it. So hold out windows of time, with a gap on both sides.
"""

# %%
# Four features and an unmeasured disturbance drift slowly. The target is a function of two features
# plus the disturbance. The model is trained on 300 rows; a thousand later rows show how good it
# is.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import lfilter

from looms import BoundWarning, KernelRegressor
from looms.folds import GapKFold


def series(rng, n, memory=0.9):
    noise = np.sqrt(1 - memory**2) * rng.normal(size=(n, 5))
    noise[0] = rng.normal(size=5)
    columns = lfilter([1.0], [1.0, -memory], noise, axis=0)
    return columns[:, :4], 1.5 * np.sin(columns[:, 0]) + 0.5 * columns[:, 1] + columns[:, 4]


# %%
# ``GapKFold(10, gap=30)`` holds out ten windows of thirty rows. The thirty rows before and after
# each window are also left out, but not tested. Nothing is refitted: the closed form covers gaps.

held_out = {
    "each row": None,
    "no gap": GapKFold(10),
    "gap 10": GapKFold(10, gap=10),
    "gap 30": GapKFold(10, gap=30),
}
warnings.simplefilter("ignore", BoundWarning)  # some draws end at a kernel that is nearly linear
own, later = np.empty((2, 12, len(held_out)))
for draw in range(12):
    X, y = series(np.random.default_rng(draw), 1300)
    for k, cv in enumerate(held_out.values()):
        model = KernelRegressor(cv=cv).fit(X[:300], y[:300])
        own[draw, k] = model.evaluate(nested=False)["rmse"]
        later[draw, k] = np.sqrt(np.mean((y[300:] - model.predict(X[300:])) ** 2))

fig, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
for values, color, label in ((own, "C1", "score of the model"), (later, "C0", "later rows")):
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    ax.errorbar(
        range(len(held_out)),
        values.mean(axis=0),
        error,
        marker="o",
        linewidth=2,
        capsize=4,
        color=color,
        label=label,
    )
ax.set_xticks(range(len(held_out)), held_out)
ax.set(
    xlabel="held out together",
    ylabel="root mean square error",
    ylim=(0, None),
    title="Score of the model, and later rows",
)
ax.legend(loc="lower right", frameon=False)
plt.show()

# %%
# If rows are held out one at a time, the error is far below that on later rows. Windows remove
# more than half of the difference. Gaps add little here, because the resemblance lasts much less
# than a window. The rest remains because the features drift. On later rows the models differ by no
# more than the standard errors over twelve draws (the bars). To report a score, train on the past
# alone: ``looms.assess(method="forward")``.
