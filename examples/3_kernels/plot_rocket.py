"""
Random convolutions of time series (ROCKET)
===========================================

ROCKET turns time series into thousands of features by random convolutions, and then uses
``RidgeClassifierCV``. ``KernelClassifier("linear")`` can replace it. It adds probabilities and
unbiased scores.
"""

# %%
# The series are noisy and of length 150. Those of the second class contain a short chirp somewhere,
# those of the first class a tone of the same strength.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from looms import KernelClassifier

rng = np.random.default_rng(0)


def series(n, length=150):
    y, t = rng.integers(0, 2, n), np.arange(40)
    x = rng.normal(size=(n, length))
    for row, label, start in zip(x, y, rng.integers(0, length - 40, n), strict=True):
        frequency = 0.2 + 0.004 * (t - 20) * label
        row[start : start + 40] += 1.3 * np.sin(2 * np.pi * frequency * t + rng.uniform(0, 7))
    return x, y


X, y = series(200)
X_new, y_new = series(1000)

fig, ax = plt.subplots(figsize=(5.4, 3.6), layout="constrained")
for k in range(6):
    row = np.flatnonzero(y == k % 2)[k]
    ax.plot(X[row] + 7 * k, color=("C0", "C1")[k % 2], linewidth=1)
ax.set(xlabel="time", yticks=[], title="Three series of each class")
plt.show()

# %%
# The convolution kernels are random, with length 9 and random dilations. Each convolution gives two
# features: its largest value, and the share of values above a random offset.

kernels = rng.normal(size=(1000, 9))
kernels -= kernels.mean(axis=1, keepdims=True)
dilations = 2 ** rng.integers(0, 5, 1000)
offsets = rng.uniform(-2, 2, 1000)


def features(x):
    made = []
    for kernel, dilation, offset in zip(kernels, dilations, offsets, strict=True):
        places = np.arange(x.shape[1] - 8 * dilation)[:, None] + dilation * np.arange(9)
        convolved = x[:, places] @ kernel
        made += [convolved.max(axis=1), np.mean(convolved > offset, axis=1)]
    return np.column_stack(made)


F, F_new = features(X), features(X_new)

# %%
# Both models are ridge regressions of ±1, with their regularization tuned by leave-one-out.

ridge = make_pipeline(StandardScaler(), RidgeClassifierCV(np.logspace(-3, 5, 17)))
looms = make_pipeline(StandardScaler(), KernelClassifier("linear"))
for name, model in (("RidgeClassifierCV", ridge), ("KernelClassifier", looms)):
    print(f"{name}: accuracy {model.fit(F, y).score(F_new, y_new):.3f} on new series")
print(f"nested accuracy by KernelClassifier: {looms[-1].evaluate()['accuracy']:.3f}")

# %%
# ``RidgeClassifierCV`` has no probabilities, and its leave-one-out accuracy of two classes is wrong
# (:doc:`/guide/coming_from`). looms calibrates probabilities on the leave-one-out outputs.

p = looms.predict_proba(F_new)[:, 1]
print(f"log loss {log_loss(y_new, p):.3f}, of the baseline {np.log(2):.3f}")

fig, ax = plt.subplots(figsize=(5.4, 3.4), layout="constrained")
bins = np.linspace(0, 1, 21)
ax.hist(
    [p[y_new == 0], p[y_new == 1]], bins, stacked=True, color=("C0", "C1"), label=("tone", "chirp")
)
ax.set(xlabel="probability of a chirp", ylabel="new series")
ax.legend(frameon=False)
plt.show()
