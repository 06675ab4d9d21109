"""
Leave-one-out of a support vector machine
=========================================

``looms.svm.leave_one_out`` gives the decision value of each row by the ``SVC`` that was trained
without it. They are those of refits, at a fraction of the time, so that you can tune ``C`` by them.
"""

# %%
# Two interlocked half-moons with much noise: 200 rows for training, 5000 for the error on new rows.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.svm import SVC

from looms.svm import leave_one_out

X, y = make_moons(5200, noise=0.4, random_state=0)
X, X_new, y, y_new = X[:200], X[200:], y[:200], y[200:]

# %%
# Along a grid of ``C``, we count the errors of the leave-one-out models by the formula. At every
# fourth value they are computed again by 200 refits.

Cs = 2.0 ** np.arange(-3, 11)
exact, refits, new, train, seconds = [], [], [], [], np.zeros(2)
for k, C in enumerate(Cs):
    svc = SVC(C=C, gamma=5.0)
    began = time.perf_counter()
    loo = leave_one_out(svc, X, y)
    between = time.perf_counter()
    exact.append(np.mean(loo.y * loo.outputs <= 0))
    new.append(1 - svc.fit(X, y).score(X_new, y_new))
    train.append(1 - svc.score(X, y))
    if k % 4 == 0:
        start = time.perf_counter()
        refits.append(np.mean(cross_val_predict(svc, X, y, cv=LeaveOneOut()) != y))
        seconds += between - began, time.perf_counter() - start
print(f"the same errors: {np.array_equal(exact[::4], refits)}")
print(f"seconds for four values: {seconds[0]:.2f} by looms, {seconds[1]:.2f} by refits")

fig, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
ax.plot(Cs, new, color="C0", linewidth=2, label="5000 new rows")
ax.plot(Cs, exact, color="C1", linewidth=2, label="leave-one-out, exact")
ax.plot(Cs[::4], refits, "o", color="C1", markersize=9, fillstyle="none", label="refits")
ax.plot(Cs, train, color="0.6", linewidth=2, label="training rows")
ax.set(xlabel="C", ylabel="error rate", ylim=(0, None))
ax.set_xscale("log", base=2)
ax.legend(frameon=False)
plt.show()
