"""
Rows along a track: the score depends on the distance
=====================================================

Rows near one another in a table often resemble each other: hauls along a ship's track, days, plates
in batches. A row that is held out alone is then predicted from its neighbors. The score falls when
the neighbors are held out with it.
"""

# %%
# Two hundred places along a track are classified by three features. A fourth quantity, which also
# varies along the track, was not measured.

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import lfilter

from looms import KernelClassifier
from looms.diagnostics import row_order
from looms.folds import GapKFold


def track(seed):
    steps = np.random.default_rng(seed).normal(size=(300, 4))
    series = lfilter([np.sqrt(1 - 0.95**2)], [1, -0.95], steps, axis=0)[100:]
    return series[:, :3], series[:, 0] + series[:, 3] > 0


# %%
# The model is tuned on single rows. Then each row is held out together with the rows nearest to it,
# from none to twenty on either side. The same rows are scored once more in a random order. Other
# tracks show how good the model is elsewhere.

gaps = (0, 1, 2, 5, 10, 20)
along, shuffled = np.empty((2, 8, len(gaps)))
elsewhere = np.empty((8, 10))
for draw in range(8):
    X, y = track(draw)
    model = KernelClassifier().fit(X, y)
    elsewhere[draw] = [model.score(*track(1000 + 10 * draw + other)) for other in range(10)]
    some = np.random.default_rng(draw).permutation(200)
    for scores, rows in ((along, np.arange(200)), (shuffled, some)):
        for k, gap in enumerate(gaps):
            cv = GapKFold(200, gap=gap)
            same = KernelClassifier(model.kernel_, mu=model.mu_, cv=cv, calibration=None)
            scores[draw, k] = same.fit(X[rows], y[rows]).evaluate(nested=False)["accuracy"]

fig, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
places = range(len(gaps))
for scores, color, label in ((shuffled, "0.6", "rows shuffled"), (along, "C1", "rows in order")):
    error = scores.std(axis=0, ddof=1) / np.sqrt(len(scores))
    ax.errorbar(
        places,
        scores.mean(axis=0),
        error,
        marker="o",
        linewidth=2,
        capsize=4,
        color=color,
        label=label,
    )
ax.axhline(elsewhere.mean(), color="C0", linewidth=2, label="other tracks")
ax.set_xticks(places, gaps)
ax.set(
    xlabel="rows held out on either side",
    ylabel="held-out accuracy",
    ylim=(0.5, 0.9),
    title="Eight tracks of 200 rows",
)
ax.legend(frameon=False)
plt.show()

# %%
# A row that is held out alone is classified well, because the rows beside it stay in the training.
# With twenty rows on either side, the score is that of other tracks. In a random order the score
# stays high: no cross-validation can tell that the rows are from one track.
#
# :func:`looms.diagnostics.row_order` tests whether a table is in such an order. It compares ten
# blocks of consecutive rows with random partitions, for the last track:

print(row_order(model))
