"""
Compared with a grid search over an SVC
=======================================

``GridSearchCV(SVC())`` fits a model for every point of a grid and every fold. A least-squares
model gets all of its leave-one-out predictions from one factorization, and follows their
gradient.
"""

# %%
# Two interlocked half-moons with much noise: 400 rows for training, 4000 for testing.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from looms import KernelClassifier
from looms.report import SearchPathDisplay

X, y = make_moons(4400, noise=0.35, random_state=0)
X, X_new, y, y_new = X[:400], X[400:], y[:400], y[400:]

grid = {"C": 2.0 ** np.arange(-5, 16, 2), "gamma": 2.0 ** np.arange(-15, 4, 2)}
models = {
    "SVC, 110 points, 5 folds": GridSearchCV(SVC(), grid, cv=5),
    "KernelClassifier": KernelClassifier(),
}
for name, model in models.items():
    began = time.process_time()
    model.fit(X, y)
    taken = time.process_time() - began
    print(f"{name:24} {taken:6.2f} s, test error {1 - model.score(X_new, y_new):.3f}")

# %%
# The leave-one-out criterion over the two hyper-parameters, and the path of the search. It starts
# at the best point of a scan of a subsample, so only a few steps are left.

tuned = models["KernelClassifier"]
fig, ax = plt.subplots(figsize=(5.4, 4.4), layout="constrained")
SearchPathDisplay.from_estimator(tuned, ax=ax)
plt.show()

# %%
# The boundary between the classes, by both models:

fig, ax = plt.subplots(figsize=(5.4, 4), layout="constrained")
ax.scatter(*X.T, c=np.where(y == 1, "C1", "C0"), s=10, alpha=0.5)
across, up = np.meshgrid(np.linspace(-2, 3, 150), np.linspace(-1.6, 2.1, 150))
points = np.column_stack([across.ravel(), up.ravel()])
for (name, model), color in zip(models.items(), ("0.5", "k"), strict=True):
    outputs = model.decision_function(points).reshape(across.shape)
    ax.contour(across, up, outputs, [0], colors=color, linewidths=2)
    ax.plot([], [], color=color, linewidth=2, label=name)
ax.set_axis_off()
ax.legend(loc="lower left", framealpha=1)
plt.show()

# %%
# The errors are alike. The least-squares model also has probabilities and unbiased scores:

print(tuned.evaluate())
