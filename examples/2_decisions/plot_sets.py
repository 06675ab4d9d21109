"""
Sets of classes for digits that are hard to read
================================================

With many classes a single answer may not be enough. ``predict_set`` returns all classes that are
plausible at the coverage that you ask for: one for a clear digit, several for one that is hard to
read.
"""

# %%
# We train on 400 digits and test on 800 others, all with noise on every pixel. At a coverage of
# 0.98 the right class should be missing from one set in fifty.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from looms import KernelClassifier

digits = load_digits()
rows = np.random.default_rng(0).permutation(len(digits.target))[:1200]
X, y = digits.data[rows] / 16, digits.target[rows]
X = X + 0.2 * np.random.default_rng(1).normal(size=X.shape)
model = KernelClassifier().fit(X[:400], y[:400])

# %%
# ``evaluate`` makes the models without each digit, from which the sets come.

model.evaluate(nested=False)
sets = model.predict_set(X[400:], confidence_level=0.98)
inside = sets[np.arange(800), y[400:]]
print(f"right class inside: {inside.mean():.1%}; one class in {np.mean(sets.sum(axis=1) == 1):.0%}")

# %%
# The share of digits by the number of classes in the set, for three coverages.

fig, ax = plt.subplots(figsize=(5.4, 3.4), layout="constrained")
for k, (coverage, color) in enumerate(((0.9, "C2"), (0.98, "C0"), (0.995, "C1"))):
    some = model.predict_set(X[400:], confidence_level=coverage)
    share = np.bincount(some.sum(axis=1), minlength=11)[:7] / len(some)
    covered = some[np.arange(800), y[400:]].mean()
    label = f"coverage {coverage}: {covered:.1%} hold the right class"
    ax.bar(np.arange(7) + (k - 1) * 0.27, share, 0.25, color=color, label=label)
ax.set(xlabel="classes in the set", ylabel="share of digits")
ax.legend(frameon=False)
plt.show()

# %%
# Some digits whose set at 0.98 contains two or three classes:

fig, axes = plt.subplots(2, 4, figsize=(5.4, 3.4), layout="constrained")
hardest = np.flatnonzero(np.isin(sets.sum(axis=1), (2, 3)))[:8]
for ax, k in zip(axes.flat, hardest, strict=False):
    ax.imshow(X[400 + k].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{', '.join(map(str, np.flatnonzero(sets[k])))}?", fontsize=11)
    ax.set_axis_off()
plt.show()
