"""
Which features matter: a width for each
=======================================

The kernel "ard" has a width for each feature. Leave-one-out tunes them all along one gradient. An
irrelevant feature ends with a width so large that it no longer counts.
"""

# %%
# Friedman's function depends on five features; we add ten that are noise.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.preprocessing import scale

from looms import KernelRegressor
from looms.report import ImportanceDisplay

X, y = make_friedman1(2300, n_features=15, noise=1.0, random_state=0)
X = scale(X)
X, X_new, y, y_new = X[:300], X[300:], y[:300], y[300:]

models = {
    "rbf, one width": KernelRegressor("rbf"),
    "ard, 15 widths": KernelRegressor("ard"),
}
for name, model in models.items():
    model.fit(X, y)
    rmse = np.sqrt(np.mean((y_new - model.predict(X_new)) ** 2))
    own = model.evaluate(nested=False)["rmse"]
    print(f"{name:15} new rows {rmse:.2f}, leave-one-out {own:.2f}")

# %%
# The inverse width of each feature; the dotted line is the model with one width for all. The
# fourth feature explains most of the target and yet has a large width, because the target is
# linear in it. A width says how fast the function bends, not how much a feature explains.

one, each = (
    np.sqrt(2 * np.ravel(m.kernel_.get_params()[g]))
    for m, g in zip(models.values(), ("gamma", "gammas"), strict=True)
)
fig, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
places = np.arange(1, 16)
ax.axvspan(5.5, 15.6, color="0.94", zorder=0)
ax.bar(places, each, 0.7, color="C0")
ax.axhline(one[0], color="C1", linestyle=":", linewidth=2)
ax.text(15.4, one[0], "one width for all", ha="right", va="bottom", color="C1")
ax.text(10.5, each.max() * 0.7, "noise", ha="center", color="0.4")
ax.set(xlabel="feature", ylabel="inverse width", xlim=(0.4, 15.6), xticks=places)
plt.show()

# %%
# How much the criterion rises when a feature is shuffled is a different question. Here the fourth
# feature leads, and the noise features are close to zero.

fig, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
ImportanceDisplay.from_estimator(models["ard, 15 widths"], ax=ax)
plt.show()

# %%
# The leave-one-out error with fifteen widths is lower than the error on new rows, because these
# widths were tuned by it.
