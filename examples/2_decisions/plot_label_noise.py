"""
Finding labels that are wrong
=============================

A label is suspect if it contradicts what all other rows say. Case deletion checks every row of a
fitted model in closed form.
"""

# %%
# We take the threes and eights of scikit-learn's digits and flip one label in ten.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from looms import KernelClassifier
from looms.diagnostics import case_deletion

digits = load_digits()
rows = np.isin(digits.target, [3, 8])
X, y = digits.data[rows] / 16, digits.target[rows]
wrong = np.random.default_rng(0).choice(len(y), len(y) // 10, replace=False)
given = y.copy()
given[wrong] = 11 - y[wrong]

model = KernelClassifier().fit(X, given)
deletion = case_deletion(model)
suspects = deletion.mislabeled(len(wrong))
print(suspects.head())

# %%
# The margin is the output for the given label, by the model that was trained without the row. The
# most suspect rows have the most negative margins.

order = np.argsort(deletion.margin)
fig, ax = plt.subplots(figsize=(5.4, 3.4), layout="constrained")
is_wrong = np.isin(order, wrong)
place = np.arange(len(order))
ax.bar(
    place[~is_wrong], deletion.margin[order][~is_wrong], 1.0, color="0.75", label="correct label"
)
ax.bar(place[is_wrong], deletion.margin[order][is_wrong], 1.0, color="C3", label="flipped label")
ax.set(xlabel="rows, most suspect first", ylabel="held-out margin", xlim=(-1, 80))
ax.legend(frameon=False)
plt.show()

# %%
# A person would be asked to check the most suspect rows. Here are the first twelve with their given
# labels. Red titles mark labels that were flipped.

fig, axes = plt.subplots(3, 4, figsize=(5.4, 4.6), layout="constrained")
for ax, k in zip(axes.flat, order, strict=False):
    ax.imshow(X[k].reshape(8, 8), cmap="gray_r")
    color = "C3" if k in wrong else "0.3"
    ax.set_title(f"given as {given[k]}", color=color, fontsize=11)
    ax.set_axis_off()
plt.show()

# %%

share = np.isin(order[: len(wrong)], wrong).mean()
print(f"{share:.0%} of the {len(wrong)} most suspect rows are wrong")
