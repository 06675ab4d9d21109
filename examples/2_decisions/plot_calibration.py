"""
Are the probabilities right?
============================

Of all rows with a probability of 0.8, eight in ten should belong to the second class. looms fits
its calibrators to leave-one-out outputs, so no rows have to be set aside for them.
"""

# %%
# We train on 300 rows with overlapping classes and compare with twenty thousand others.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from looms import KernelClassifier

X, y = make_classification(
    20_300, 12, n_informative=4, n_redundant=4, flip_y=0.15, class_sep=0.7, random_state=3
)
X, X_new, y, y_new = train_test_split(X, y, train_size=300, random_state=0)

models = {
    "sigmoid": KernelClassifier(),
    "isotonic": KernelClassifier(calibration="isotonic"),
    "beta": KernelClassifier(calibration="beta"),
    "naive Bayes": GaussianNB(),
}
edges = np.linspace(0, 1, 11)
fig, ax = plt.subplots(figsize=(5.4, 4.4), layout="constrained")
ax.plot([0, 1], [0, 1], color="0.6", linestyle=":")
for (name, model), style in zip(models.items(), ("C0o-", "C2s-", "C4^-", "C1x--"), strict=True):
    p = model.fit(X, y).predict_proba(X_new)[:, 1]
    part = np.clip(np.digitize(p, edges) - 1, 0, 9)
    mean, share = (
        [values[part == k].mean() for k in range(10) if np.sum(part == k) > 30]
        for values in (p, y_new)
    )
    ax.plot(mean, share, style, linewidth=2, label=f"{name}, log loss {log_loss(y_new, p):.3f}")
ax.set(xlabel="predicted probability", ylabel="share of the second class", aspect="equal")
ax.legend(loc="upper left", frameon=False, fontsize=9)
plt.show()

# %%
# Naive Bayes is overconfident if features depend on each other. Platt's sigmoid, the default, and
# beta calibration have the lowest log loss. Isotonic regression turns 300 rows into steps and pays
# for it: use it with thousands of rows.
