"""
Are the probabilities right?
============================

Of all rows with a probability of 0.8, eight in ten should be of the second class. looms teaches its
calibrators on leave-one-out outputs, so that they need no rows of their own.
"""

# %%
# 300 rows with overlapping classes; twenty thousand others to compare.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from looms import LSSVMClassifierCV

X, y = make_classification(
    20_300, 12, n_informative=4, n_redundant=4, flip_y=0.15, class_sep=0.7, random_state=3
)
X, X_new, y, y_new = train_test_split(X, y, train_size=300, random_state=0)

models = {
    "sigmoid": LSSVMClassifierCV(),
    "isotonic": LSSVMClassifierCV(calibration="isotonic"),
    "beta": LSSVMClassifierCV(calibration="beta"),
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
ax.set(xlabel="probability that was given", ylabel="share of the second class", aspect="equal")
ax.legend(loc="upper left", frameon=False, fontsize=9)
plt.show()

# %%
# Naive Bayes is too sure of itself where features depend on each other. Platt's sigmoid, the
# default, and beta calibration are close to the diagonal with 300 rows. Isotonic regression makes
# steps of them and pays for it in log loss: leave it to thousands of rows.
