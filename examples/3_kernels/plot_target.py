"""
A skewed target: residuals with and without a transform
=======================================================

Prices, durations and concentrations often have noise that grows with the value. A few large values
then determine the fit. ``TabularRegressor`` compares the target with its root and its logarithm,
and returns predictions on the scale of the target.
"""

# %%
# A price depends on two of three features, and its noise is proportional to it. 150 rows are for
# training, 2000 for testing.

import matplotlib.pyplot as plt
import numpy as np

from looms import TabularRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(2150, 3))
price = np.exp(3 + 0.7 * X[:, 0] + 0.5 * np.sin(2 * X[:, 1]) + 0.5 * rng.normal(size=2150))
X, X_new, price, price_new = X[:150], X[150:], price[:150], price[150:]

models = {
    "fitted to the price": TabularRegressor(["rbf"], target="none").fit(X, price),
    "transform compared": TabularRegressor(["rbf"]).fit(X, price),
}
for name, model in models.items():
    error = np.sqrt(np.mean((price_new - model.predict(X_new)) ** 2))
    below = np.mean(model.predict(X_new) < 0)
    print(f"{name:19} {model.transform_:4}  error {error:.1f}, predictions below zero {below:.1%}")

# %%
# The comparison selects the logarithm, whose error on new rows is lower. Here are the held-out
# residuals on the scale of each fit, divided by their standard deviation.

fig, axes = plt.subplots(2, 1, figsize=(5.4, 5), layout="constrained")
titles = ("fitted to the price", "fitted to its logarithm")
for ax, title, model, color in zip(axes, titles, models.values(), ("C1", "C0"), strict=True):
    loo = model.fitted_.loo  # on the scale of the transform
    ax.axhline(0, color="0.5", linewidth=1)
    ax.plot(loo.outputs, loo.residuals / loo.residuals.std(), "o", color=color, alpha=0.6)
    ax.set(ylabel="residual / s.d.", title=title)
axes[0].set(xlabel="held-out prediction")
axes[1].set(xlabel="held-out prediction of the logarithm")
plt.show()

# %%
# Fitted to the price, the residuals spread out to the right, and one price is eleven standard
# deviations off. Fitted to the logarithm, they have the same size everywhere.
