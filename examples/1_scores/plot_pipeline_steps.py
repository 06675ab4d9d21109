"""
A step that has seen the target
===============================

Feature selection uses the target. If it comes before the model in a pipeline, the scores of the
model do not know of it: the selected columns suit the held-out rows, too.
"""

# %%
# Twenty tables of 60 rows and 500 columns of noise, with random labels. The pipeline takes the ten
# columns that separate the classes best. ``evaluate()`` scores its last step, and ``looms.assess``
# the whole pipeline.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import make_pipeline

import looms

warnings.simplefilter("ignore", looms.OneClassWarning)  # there is nothing to learn
model = make_pipeline(SelectKBest(k=10), looms.KernelClassifier("linear"))
accuracies = []
for draw in range(20):
    rng = np.random.default_rng(draw)
    X, y = rng.normal(size=(60, 500)), rng.permutation(60) % 2
    last = model.fit(X, y)[-1].evaluate()["accuracy"]
    whole = looms.assess(model, X, y, n_splits=10, method="kfold", scoring="accuracy")
    accuracies.append((last, whole.mean["accuracy"]))
accuracies = np.array(accuracies)

# %%
# Each dot is a table, and the line at ½ is the accuracy on new rows.

fig, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
jitter = np.random.default_rng(0).uniform(-0.12, 0.12, size=accuracies.shape)
for k, color in enumerate(("C1", "C0")):
    ax.plot(k + jitter[:, k], accuracies[:, k], "o", color=color, alpha=0.7)
    ax.plot([k - 0.22, k + 0.22], [accuracies[:, k].mean()] * 2, color=color, linewidth=3)
ax.axhline(0.5, color="0.4", linestyle=":")
ax.set_xticks([0, 1], ["evaluate()\nof the last step", "looms.assess\nof the pipeline"])
ax.set(ylabel="accuracy", xlim=(-0.6, 1.6), ylim=(0, 1), title="Random labels")
plt.show()

# %%
# The means, with standard errors:

for name, values in zip(("last step", "pipeline"), accuracies.T, strict=True):
    print(f"{name:9} {values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(20):.3f}")
