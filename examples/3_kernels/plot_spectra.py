"""
Sixty spectra of 700 wavelengths
================================

Spectra have more columns than rows, and neighboring columns are nearly equal. A linear model uses
the 60 × 60 matrix of their inner products, so the number of wavelengths hardly matters.
"""

# %%
# Each spectrum is a mixture of five substances with broad bands, plus a drifting baseline and
# noise. We want to measure the amount of the first substance.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cross_decomposition import PLSRegression
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV

from looms import KernelRegressor

rng = np.random.default_rng(0)
wavelength = np.linspace(900, 1700, 700)
bands = np.array(
    [
        sum(
            np.exp(-(((wavelength - rng.uniform(950, 1650)) / rng.uniform(25, 80)) ** 2))
            for _ in range(3)
        )
        for _ in range(5)
    ]
)


def spectra(n):
    amounts = rng.uniform(0, 1, size=(n, 5))
    drift = rng.normal(size=(n, 2)) @ np.vstack([np.ones(700), np.linspace(-1, 1, 700)])
    return amounts @ bands + 0.2 * drift + 0.1 * rng.normal(size=(n, 700)), amounts[:, 0]


X, y = spectra(60)
X_new, y_new = spectra(200)

fig, ax = plt.subplots(figsize=(5.4, 3.4), layout="constrained")
for row, amount in zip(X[:12], y[:12], strict=True):
    ax.plot(wavelength, row, color=plt.cm.viridis(amount), linewidth=0.6)
fig.colorbar(plt.cm.ScalarMappable(cmap="viridis"), ax=ax, label="amount to be measured")
ax.set(xlabel="wavelength / nm", ylabel="absorbance", title="Twelve of the sixty spectra")
plt.show()

# %%
# Leave-one-out and its gradient choose the regularization. ``evaluate`` repeats that without each
# of ten folds, for unbiased scores and the models that prediction intervals come from.

model = KernelRegressor("linear").fit(X, y)
scores = model.evaluate()
low, high = model.predict_interval(X_new, confidence_level=0.9).T

fig, ax = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
predicted = model.predict(X_new)
missed = (y_new < low) | (y_new > high)
for out, color, label in ((False, "C0", "inside"), (True, "C3", "outside")):
    some = missed == out
    error = [predicted[some] - low[some], high[some] - predicted[some]]
    share = f"{some.mean():.0%} of true amounts {label}"
    ax.errorbar(y_new[some], predicted[some], error, fmt=".", color=color, alpha=0.5, label=share)
ax.plot([0, 1], [0, 1], color="k", linewidth=1)
ax.set(xlabel="true amount", ylabel="predicted, with intervals of 90 %")
ax.legend(frameon=False)
plt.show()

# %%
# Chemists use partial least squares, with the number of components chosen by cross-validation;
# here its error is larger. ``RidgeCV`` is the same model and has the same error. Neither gives
# intervals.

peers = {
    "looms, linear": model,
    "RidgeCV": RidgeCV(np.logspace(-4, 4, 25)).fit(X, y),
    "PLS": GridSearchCV(PLSRegression(), {"n_components": range(1, 13)}, cv=10).fit(X, y),
}
for name, peer in peers.items():
    rmse = np.sqrt(np.mean((y_new - peer.predict(X_new).ravel()) ** 2))
    print(f"{name:14} root mean square error {rmse:.4f}")
print(f"{'evaluate()':14} root mean square error {scores['rmse']:.4f}, of 60 rows")
