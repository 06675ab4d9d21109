"""
Sixty patients: which score to report
=====================================

A table of sixty rows is too small to set some aside for testing. But if a model was tuned by
leave-one-out, its leave-one-out loss is optimistic. This example shows by how much, using the other
rows of a larger table as new patients.
"""

# %%
# We draw sixty of the 569 tumors of the breast cancer data, twelve times. We keep ten columns and
# add ten columns of noise, as in a table with everything that could be measured. The kernel has a
# width for each of the twenty columns, which sixty rows can hardly support.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from looms import KernelClassifier

X, y = load_breast_cancer(return_X_y=True)
rng = np.random.default_rng(0)
X = np.hstack([X[:, :10], rng.normal(size=(len(X), 10))])

losses = []
for draw in range(12):
    rows = np.random.default_rng(draw).permutation(len(y))
    few, others = rows[:60], rows[60:]
    scaler = StandardScaler().fit(X[few])
    model = KernelClassifier("ard").fit(scaler.transform(X[few]), y[few])
    tuned_on = model.calibrator_.probability(model.loo_.outputs)
    losses.append(
        (
            log_loss(y[few], tuned_on),
            model.evaluate()["log_loss"],
            log_loss(y[others], model.predict_proba(scaler.transform(X[others]))),
        )
    )
losses = np.array(losses)

# %%
# ``model.loo_`` holds the predictions by which the widths were tuned. ``model.evaluate()``
# repeats all tuning without each of ten folds. Each thin line is one draw; the thick line is the
# mean.

fig, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
ax.plot(losses.T, color="0.75", linewidth=1)
ax.plot(losses.mean(axis=0), color="C0", linewidth=3, marker="o", markersize=8)
ax.set_xticks(
    range(3), ["leave-one-out\nthat tuned it", "evaluate()\n(nested)", "509 other\npatients"]
)
ax.set(ylabel="log loss", ylim=(0, None), title="A model trained on 60 patients")
plt.show()

# %%
# The first loss is too small. The second is the one to report: on average it is close to the loss
# on new patients, and single draws deviate in both directions. A score of sixty rows is still
# uncertain, so report its standard error with it: ``model.evaluate()`` shows both.

for name, values in zip(["tuned on", "evaluate()", "others"], losses.T, strict=True):
    print(f"{name:10} {values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(len(values)):.3f}")
