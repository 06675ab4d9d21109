"""
Several visits of a patient
===========================

Rows of one patient resemble each other. A model that has seen some of them recognizes the
patient, so its held-out score is too good for new patients.
"""

# %%
# Forty patients come for six visits each. Whether they are ill depends on their first feature and
# on much that was not measured. The visits of a patient are nearly the same. Two thousand other
# patients show how good the models are.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from looms import KernelClassifier, OneClassWarning


def patients(rng, n, n_visits):
    person = rng.normal(size=(n, 4))
    ill = person[:, 0] + rng.normal(size=n) > 0
    who = np.repeat(np.arange(n), n_visits)
    return person[who] + 0.2 * rng.normal(size=(len(who), 4)), ill[who], who


warnings.simplefilter("ignore", OneClassWarning)  # in one draw little can be learned
accuracies = {"own": [], "new": []}
for draw in range(6):
    rng = np.random.default_rng(draw)
    X, y, who = patients(rng, 40, 6)
    X_new, y_new, _ = patients(rng, 2000, 1)
    models = KernelClassifier().fit(X, y), KernelClassifier().fit(X, y, groups=who)
    accuracies["own"].append([model.evaluate()["accuracy"] for model in models])
    accuracies["new"].append([model.score(X_new, y_new) for model in models])
own, new = np.array(accuracies["own"]), np.array(accuracies["new"])

# %%
# Without ``groups`` each visit is held out while the other five stay. With ``groups`` all visits of
# a patient are held out together, both in tuning and in the scores, at no extra cost. Dots are the
# six draws, bars their means.

fig, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
for k in range(2):
    for values, place, color, label in (
        (own, -0.17, "C1", "score of the model"),
        (new, 0.17, "C0", "new patients"),
    ):
        ax.bar(k + place, values[:, k].mean(), 0.3, color=color, alpha=0.4)
        at = np.full(len(values), k + place)
        ax.plot(at, values[:, k], "o", color=color, label=label if k == 0 else None)
ax.axhline(0.5, color="0.5", linestyle=":")
ax.text(1.38, 0.505, "chance", ha="right", va="bottom", color="0.4")
ax.set_xticks(range(2), ["visits apart", "groups=patient"])
ax.set(ylabel="accuracy", ylim=(0, 1.2), title="Accuracy, six draws")
ax.legend(loc="upper left", ncols=2, frameon=False)
plt.show()

# %%
# If visits are held out separately, the score is nearly perfect, and the model is worse for new
# patients: it was tuned to recognize people. If they are held out together, the score is that for
# new patients, and the model is better.

print("visits apart:   own", own[:, 0].mean().round(2), "new", new[:, 0].mean().round(2))
print("groups=patient: own", own[:, 1].mean().round(2), "new", new[:, 1].mean().round(2))
