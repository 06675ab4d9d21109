"""
Coin flips: the best score of a search
======================================

The labels of these tables are coin flips, so every model is right on half of new rows. The best
score of a grid search is better than that, because it is the best of many. ``looms.assess`` repeats
the search without the rows that it scores.
"""

# %%
# Thirty tables of 40 rows and 10 columns of noise. Each has a grid search of nine points in four
# folds. ``assess`` runs the same search in the training part of each of four folds.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import looms

search = GridSearchCV(SVC(), {"C": [0.1, 1, 10], "gamma": [0.01, 0.1, 1]}, cv=4)
best, outer = [], []
for draw in range(30):
    rng = np.random.default_rng(draw)
    X, y = rng.normal(size=(40, 10)), rng.permutation(40) % 2
    best.append(search.fit(X, y).best_score_)
    folds = looms.assess(
        search, X, y, n_splits=4, test_size=0.25, method="kfold", scoring="accuracy"
    )
    outer.append(folds.mean["accuracy"])

# %%
# One column for each table, in order of the best score. The line at ½ is the accuracy on new rows.

order = np.argsort(best)
best, outer = np.array(best)[order], np.array(outer)[order]
fig, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
ax.vlines(range(30), outer, best, color="0.85", linewidth=2)
ax.plot(best, "o", color="C1", label="best_score_")
ax.plot(outer, "o", color="C0", label="looms.assess")
ax.axhline(0.5, color="0.4", linestyle=":")
ax.set(xlabel="tables with random labels", ylabel="accuracy", ylim=(0.1, 1), xticks=[])
ax.legend(loc="upper left", frameon=False, ncols=2)
plt.show()

# %%
# A score of 40 rows is uncertain by itself, so single tables are off in both directions. The mean
# tells the two apart: ``best_score_`` is optimistic, and ``assess`` is not.

for name, values in (("best_score_", best), ("looms.assess", outer)):
    print(f"{name:12} {values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(30):.3f}")
