"""
Error rates of pure noise
=========================

The features and the classes have nothing to do with each other, so every model is wrong in half of
the cases. A score that says less is optimistic.
"""

# %%
# Means and two standard errors over 12 to 60 draws of, unless stated otherwise, 60 rows.

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

table = pd.read_csv(Path("../../benchmarks/results/noise.csv"), comment="#")
table = table.set_index(["estimator", "figure"])
nested = {
    "one kernel": "KernelClassifier()",
    "a width for each feature": "KernelClassifier(kernel='ard')",
    "groups of four rows": "KernelClassifier().fit(groups=); nested=True",
    "landmarks, 240 rows": "KernelClassifier(n_landmarks=30); 240 rows; nested=True",
    "SVM": "KernelClassifier(loss='hinge')",
    "stack of two": "TabularClassifier(['linear'; 'rbf']; combine='stack')",
    "a model for each row": "NonconformityClassifier()",
}
tuned_on = {
    "one kernel": "KernelClassifier(); nested=False",
    "groups of four rows": "KernelClassifier().fit(groups=); nested=False",
    "landmarks, 240 rows": "KernelClassifier(n_landmarks=30); 240 rows; nested=False",
    "SVM": "KernelClassifier(loss='hinge'; cv=10); nested=False",
}
least = {"a model for each row": "NonconformityClassifier()"}

fig, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
ax.axvline(0.5, color="gray", linewidth=1)
for names, score, color, label in [
    (nested, "error", "C0", "evaluate()"),
    (tuned_on, "error", "C1", "rows that it was tuned on"),
    (least, "least validation error", "C1", None),
]:
    rows = table.loc[[(name, score) for name in names.values()]]
    places = [list(nested).index(name) for name in names]
    errors = 2 * rows["standard_error"]
    ax.errorbar(rows["mean"], places, xerr=errors, fmt="o", color=color, label=label)
ax.set_yticks(range(len(nested)), list(nested))
ax.set(xlabel="error rate", ylim=(len(nested) - 0.5, -0.5))
ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False)
plt.show()
