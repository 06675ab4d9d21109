"""
A stack of kernels
==================

You do not know which kernel suits your table. ``TabularRegressor()`` tunes four and combines them,
with weights set by held-out predictions.
"""

# %%
# We use the diabetes data in three splits, with 150 rows for training and 292 for testing.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import ShuffleSplit

from looms import TabularRegressor

X, y = load_diabetes(return_X_y=True)
kernels = ["linear", "rbf", "ranked_laplacian", "weighted_matern12"]
models = {name: TabularRegressor([name]) for name in kernels} | {"all four": TabularRegressor()}

rmse, weights = np.empty((3, 5)), np.zeros((3, 4))
for k, (train, test) in enumerate(ShuffleSplit(3, train_size=150, random_state=0).split(X)):
    for m, model in enumerate(models.values()):
        model.fit(X[train], y[train])
        rmse[k, m] = np.sqrt(np.mean((y[test] - model.predict(X[test])) ** 2))
    stack = models["all four"]
    shares = stack.candidate_weights_  # None if a single kernel is best
    weights[k] = np.eye(4)[stack.best_index_] if shares is None else shares

# %%
# The first plot shows errors relative to the best single kernel of each split, which you would
# have to know beforehand. The second shows the weights in the stack. In the first split a single
# kernel has all the weight.

fig, (left, right) = plt.subplots(2, 1, figsize=(5.4, 5.6), layout="constrained")
relative = rmse / rmse[:, :4].min(axis=1, keepdims=True)
for m, name in enumerate(models):
    color = "C1" if name == "all four" else "C0"
    left.plot(relative[:, m], np.full(3, m), "o", color=color, alpha=0.6)
    left.plot(relative[:, m].mean(), m, "|", color="k", markersize=20)
left.axvline(1, color="0.6", linestyle=":")
left.set_yticks(range(5), models)
left.set(xlabel="test error / that of the best single kernel")
left.invert_yaxis()

start = np.zeros(3)
for m, kernel in enumerate(kernels):
    right.barh(range(3), weights[:, m], left=start, color=plt.cm.viridis(m / 3.2), label=kernel)
    start += weights[:, m]
right.set(xlabel="weight in the stack", ylabel="split", yticks=range(3), xlim=(0, 1))
right.legend(ncols=2, loc="upper center", bbox_to_anchor=(0.5, 1.3), frameon=False, fontsize=9)
plt.show()

# %%
# These are the means over the splits. On these data the kernels differ by a few percent, and the
# stack is within three percent of the best. It costs the tuning of all four kernels, also in each
# of five folds.

for name, value in zip(models, relative.mean(axis=0), strict=True):
    print(f"{name:18} {value:.3f}")
