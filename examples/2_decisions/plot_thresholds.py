"""
Thresholds, costs and rare events
=================================

If one kind of error costs more than the other, the threshold matters as much as the model. looms
sets it by leave-one-out predictions, so no rows have to be held out for it.
"""

# %%
# One row in twelve is an event, and missing it costs ten times as much as a false alarm. Thirty
# thousand other rows show what a threshold costs.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from looms import KernelClassifier
from looms.threshold import Cost

X, y = make_classification(
    30_600, 10, n_informative=5, weights=[0.92], flip_y=0.02, class_sep=0.8, random_state=1
)
X, X_new, y, y_new = train_test_split(X, y, train_size=600, stratify=y, random_state=0)

rule = Cost(false_positive=1, false_negative=10)
model = KernelClassifier(threshold=rule).fit(X, y)


def costs(probabilities, events, thresholds):
    alarm = probabilities[:, None] > thresholds
    return np.mean(alarm & ~events[:, None], axis=0) + 10 * np.mean(
        ~alarm & events[:, None], axis=0
    )


# %%
# The cost of every threshold of the probability, by leave-one-out and on new rows. ``threshold_``
# is on the scale of the outputs; the calibrator maps outputs to probabilities.

probability = model.calibrator_.probability
thresholds = np.linspace(0, 0.8, 400)
held_out = costs(probability(model.loo_.outputs), model.loo_.y > 0, thresholds)
new = costs(model.predict_proba(X_new)[:, 1], y_new == 1, thresholds)

fig, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
ax.plot(thresholds, held_out, color="C1", linewidth=2, label="leave-one-out, 600 rows")
ax.plot(thresholds, new, color="C0", linewidth=2, label="30,000 new rows")
for place, text in ((float(probability(model.threshold_)), " by the rule"), (0.5, " default, ½")):
    ax.axvline(place, color="0.4", linestyle=":")
    ax.text(place, 0.97, text, va="top", color="0.3", transform=ax.get_xaxis_transform())
ax.set(xlabel="threshold of the probability", ylabel="mean cost per row", ylim=(0, None))
ax.legend(loc="lower right", frameon=False)
plt.show()

# %%
# Other rules use the same outputs. Each line is one fit.

print(f"{'threshold':>24}  recall  precision   cost")
for name in (0.5, "balanced", "f1", rule):
    predicted = KernelClassifier(threshold=name).fit(X, y).predict(X_new)
    hit = np.sum((predicted == 1) & (y_new == 1))
    recall, precision = hit / np.sum(y_new == 1), hit / max(1, np.sum(predicted == 1))
    cost = np.mean((predicted == 1) & (y_new == 0)) + 10 * np.mean((predicted == 0) & (y_new == 1))
    shown = "probability ½" if name == 0.5 else name if isinstance(name, str) else "costs 1 and 10"
    print(f"{shown:>24}  {recall:6.2f}  {precision:9.2f}  {cost:5.2f}")
