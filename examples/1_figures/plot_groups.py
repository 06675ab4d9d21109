"""
Several visits of a patient
===========================

Rows of one patient resemble each other. A machine that has seen some of them recognizes the
patient, and looks better than it is for patients who are new.
"""

# %%
# Forty patients come six times each. Whether they are ill depends on the first feature of the
# patient, and on much that was not measured; the visits of a patient are nearly the same. Two
# thousand other patients tell how good the machines are.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from looms import LSSVMClassifierCV, OneClassWarning


def patients(rng, n, n_visits):
    person = rng.normal(size=(n, 4))
    ill = person[:, 0] + rng.normal(size=n) > 0
    who = np.repeat(np.arange(n), n_visits)
    return person[who] + 0.2 * rng.normal(size=(len(who), 4)), ill[who], who


warnings.simplefilter("ignore", OneClassWarning)  # one draw has little to tell
errors = {"own": [], "new": []}
for draw in range(6):
    rng = np.random.default_rng(draw)
    X, y, who = patients(rng, 40, 6)
    X_new, y_new, _ = patients(rng, 2000, 1)
    machines = LSSVMClassifierCV().fit(X, y), LSSVMClassifierCV().fit(X, y, groups=who)
    errors["own"].append([machine.scores_["error"] for machine in machines])
    errors["new"].append([1 - machine.score(X_new, y_new) for machine in machines])
own, new = np.array(errors["own"]), np.array(errors["new"])

# %%
# Without ``groups`` a visit is held out and the other five stay. With ``groups`` all visits of a
# patient are held out together, in the choice of the kernel's width as well as in the figures.
# That costs nothing.

fig, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
for k in range(2):
    for values, place, color, label in (
        (own, -0.17, "C1", "figure of the machine"),
        (new, 0.17, "C0", "new patients"),
    ):
        ax.bar(k + place, values[:, k].mean(), 0.3, color=color, alpha=0.4)
        at = np.full(len(values), k + place)
        ax.plot(at, values[:, k], "o", color=color, label=label if k == 0 else None)
ax.axhline(0.5, color="0.5", linestyle=":")
ax.text(1.45, 0.505, "chance", ha="right", va="bottom", color="0.4")
ax.set_xticks(range(2), ["visits apart", "groups=patient"])
ax.set(ylabel="error rate", ylim=(0, 0.62), title="Error rate, six draws")
ax.legend(loc="upper left", ncols=2, frameon=False)
plt.show()

# %%
# Held out apart, visits promise a machine that hardly errs, and choose one that does worse for new
# patients: it was tuned to recognize people. Held out together, they give a figure that holds and
# a better machine.

print("visits apart:   own", own[:, 0].mean().round(2), "new", new[:, 0].mean().round(2))
print("groups=patient: own", own[:, 1].mean().round(2), "new", new[:, 1].mean().round(2))
