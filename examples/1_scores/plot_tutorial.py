"""
Pictures of the tutorial: a clinic
==================================

How good are the probabilities, what will the scores be on new patients, which columns matter, and
how sure is one prediction? These are the pictures of the tutorial in Python.
"""

# %%
# The table is generated: 70 patients of a clinic with three visits each, a column of text, and
# gaps. Fifty other patients come later. ``relapse`` is an outcome of two classes, ``weeks`` of
# recovery an outcome in numbers.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from looms import TabularClassifier, TabularRegressor
from looms.report import ImportanceDisplay, ReliabilityDisplay, RocDisplay


def clinic(rng, n, name):
    patient = np.repeat(np.arange(n), 3)
    usual = rng.normal(size=(n, 3))[patient]
    age = 25 + 55 * rng.random(n)
    smoker = rng.choice(["never", "former", "current"], n)
    risk = usual[::3, 0] + 0.8 * usual[::3, 1] ** 2 + (smoker == "current") - 1.1
    relapse = np.where(risk + 0.5 * rng.normal(size=n) > 0, "yes", "no")
    today = usual + 0.4 * rng.normal(size=(3 * n, 3))
    table = pd.DataFrame(
        {
            "patient": [f"{name}{k:02d}" for k in patient],
            "age": age[patient].round(),
            "smoker": smoker[patient],
            "crp": np.exp(1 + 0.8 * today[:, 0]).round(1),
            "hb": (13.5 + 1.4 * today[:, 1]).round(1),
            "bmi": (26 + 4 * today[:, 2]).round(1),
            "relapse": relapse[patient],
        }
    )
    for column in ("smoker", "crp", "bmi"):
        table.loc[rng.random(3 * n) < 0.08, column] = None
    weeks = 12 + 3 * usual[::3, 0] + 0.1 * (age - 50) + 1.5 * rng.normal(size=n)
    return table.assign(weeks=weeks.round(1)[patient])


rng = np.random.default_rng(7)
table, later = clinic(rng, 70, "P"), clinic(rng, 50, "N")
X = table.drop(columns=["patient", "relapse", "weeks"])
print(table.head(4))

# %%
# The visits of a patient are held out together. Of the rows with a probability of 0.8, about 80 %
# should belong to the class. The vertical lines are 95 % intervals.

model = TabularClassifier().fit(X, table["relapse"], groups=table["patient"])
scores = model.evaluate()
print(scores)

fig, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
ReliabilityDisplay.from_estimator(model, n_bins=7, ax=ax)
ax.set(xlabel="predicted probability of a relapse", ylabel="share of rows with a relapse")
plt.show()

# %%
# The curve of held-out predictions shows what to expect of the patients who come later. The areas
# are those of ``evaluate``, and of scikit-learn for the later patients.

p = model.predict_proba(later)[:, 1]
fig, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
RocDisplay.from_estimator(model, ax=ax)
RocDisplay.from_predictions(later["relapse"], p, ax=ax)
held_out, new = [line for line in ax.lines if line.get_label().startswith("class")]
held_out.set(
    label=f"held out, AUC {scores['roc_auc']:.2f} ± {scores.standard_errors['roc_auc']:.2f}"
)
new.set(label=f"50 later patients, AUC {roc_auc_score(later['relapse'], p):.2f}", color="C1")
ax.legend(loc="lower right", frameon=False)
plt.show()

# %%
# A column matters if the squared held-out error rises when it is shuffled. The lines are standard
# errors.

fig, ax = plt.subplots(figsize=(5.4, 3.0), layout="constrained")
ImportanceDisplay.from_estimator(model, ax=ax)
ax.set(xlabel="rise of the squared error when the column is shuffled")
plt.show()

# %%
# Intervals of 90 % for the weeks of recovery, at the first visit of each later patient.

weeks = TabularRegressor().fit(X, table["weeks"], groups=table["patient"])
print(weeks.evaluate())
first = later.drop_duplicates("patient")
first = first.iloc[np.argsort(weeks.predict(first))]
low, high = weeks.predict_interval(first, confidence_level=0.9).T
inside = (low <= first["weeks"]) & (first["weeks"] <= high)

fig, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
place = np.arange(len(first))
ax.vlines(place, low, high, color="C0", alpha=0.35, linewidth=3, label="90 % interval")
ax.plot(place, weeks.predict(first), "_", color="C0", label="prediction")
ax.plot(place[inside], first["weeks"][inside], "o", color="0.3", markersize=4, label="what came")
ax.plot(place[~inside], first["weeks"][~inside], "o", color="C1", markersize=5, label="outside")
ax.set(xlabel="later patients, by prediction", ylabel="weeks", ylim=(0, 25), xticks=[])
ax.legend(ncols=2, frameon=False, loc="upper left")
plt.show()

print(f"{inside.mean():.0%} of the later patients are inside")
