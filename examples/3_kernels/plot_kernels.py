"""
Shapes that kernels can and cannot fit
======================================

The kernel decides which functions a model can represent. These pictures show fits of several
kernels to the same rows, and their mean errors on new rows, with the lowest of each line in bold.
"""

# %%
# One column and five shapes: 60 rows with noise, five draws of each. The first draw is shown. The
# number is the root mean square distance from the true curve (dotted) at new rows. The axis of the
# last line is logarithmic. In one dimension "laplacian" is the same as "matern12".

import warnings

import matplotlib.pyplot as plt
import numpy as np

from looms import KernelClassifier, KernelRegressor

warnings.simplefilter("ignore", UserWarning)  # of kernels that do not suit


def small_multiples(lines, kernels, height):
    _, axes = plt.subplots(
        len(lines), len(kernels), figsize=(5.4, height), layout="constrained", squeeze=False
    )
    for ax, kernel in zip(axes[0], kernels, strict=True):
        ax.set_title(kernel, fontsize=10)
    for ax, line in zip(axes[:, 0], lines, strict=True):
        ax.set_ylabel(line, fontsize=10)
    for ax in axes.flat:
        ax.set(xticks=[], yticks=[])
    return axes


def write_means(axes, errors):
    for row, means in zip(axes, errors.mean(axis=-1), strict=True):
        for ax, mean in zip(row, means, strict=True):
            best = "bold" if mean.round(2) == means.min().round(2) else "normal"
            ax.set_xlabel(f"{mean:.2f}", fontsize=10, weight=best, labelpad=2)


shapes = {
    "line": lambda x: 0.8 * x,
    "curve": lambda x: np.sin(5 * x),
    "kink": lambda x: np.maximum(0, 2 * x) - 1,
    "step": lambda x: np.where(x > 0.1, 1.0, -1.0),
    "long tail": lambda x: np.sin(np.log(x)),
}
kernels = ["linear", "rbf", "matern12", "ranked_rbf"]

axes = small_multiples(shapes, kernels, 6.2)
errors = np.empty((len(shapes), len(kernels), 5))
for i, (name, f) in enumerate(shapes.items()):
    for draw in range(5):
        rng = np.random.default_rng(draw)
        x = rng.lognormal(0, 1.5, 560) if name == "long tail" else rng.uniform(-1, 1, 560)
        x, x_new = x[:60, None], np.sort(x[60:])[:, None]
        y = f(x[:, 0]) + 0.2 * rng.normal(size=60)
        for j, kernel in enumerate(kernels):
            predicted = KernelRegressor(kernel).fit(x, y).predict(x_new)
            errors[i, j, draw] = np.sqrt(np.mean((predicted - f(x_new[:, 0])) ** 2))
            if draw == 0:
                axes[i, j].plot(x, y, ".", color="0.7", markersize=3)
                axes[i, j].plot(x_new, f(x_new[:, 0]), ":", color="k", linewidth=1)
                axes[i, j].plot(x_new, predicted, color="C0", linewidth=1.5)
                axes[i, j].set(ylim=(-1.7, 1.7), xscale="log" if name == "long tail" else "linear")
                axes[i, j].tick_params(which="both", bottom=False, labelbottom=False)
write_means(axes, errors)
plt.show()

# %%
# "rbf" is smooth: it rings beside the step, and it needs one width for the near and the far rows of
# a long tail. "matern12" follows steps and kinks, and is rougher on smooth curves. "ranked_rbf"
# sees ranks instead of values, which helps with a long tail and costs accuracy elsewhere.

# %%
# Two columns, and in the last line ten, of which only the first matters; the picture is a slice
# where the others are 0. There are 150 rows; 5 % of the labels are flipped. The number is the error
# rate on new rows without flips.

boundaries = {
    "diagonal": lambda X: X[:, 0] + X[:, 1] > 0,
    "XOR": lambda X: X[:, 0] * X[:, 1] > 0,
    "circle": lambda X: np.hypot(X[:, 0], X[:, 1]) < 0.8,
    "1 of 10": lambda X: np.sin(4 * X[:, 0]) > 0,
}
kernels = ["linear", "rbf", "laplacian", "ard"]
across, up = np.meshgrid(np.linspace(-1, 1, 60), np.linspace(-1, 1, 60))

axes = small_multiples(boundaries, kernels, 6.4)
errors = np.empty((len(boundaries), len(kernels), 5))
for i, (name, true) in enumerate(boundaries.items()):
    for draw in range(5):
        rng = np.random.default_rng(draw)
        X = rng.uniform(-1, 1, size=(1150, 10 if name == "1 of 10" else 2))
        X, X_new = X[:150], X[150:]
        y = true(X) ^ (rng.uniform(size=150) < 0.05)
        for j, kernel in enumerate(kernels):
            model = KernelClassifier(kernel).fit(X, y)
            errors[i, j, draw] = np.mean(model.predict(X_new) != true(X_new))
            if draw == 0:
                points = np.zeros((across.size, X.shape[1]))
                points[:, 0], points[:, 1] = across.ravel(), up.ravel()
                classes = model.predict(points).reshape(across.shape)
                colors = {"colors": ["C0", "C1"], "alpha": 0.3}
                axes[i, j].contourf(across, up, classes, [-1, 0.5, 2], **colors)
                axes[i, j].scatter(*X[:, :2].T, c=np.where(y, "C1", "C0"), s=2)
                axes[i, j].set_aspect("equal")
write_means(axes, errors)
plt.show()

# %%
# "rbf" has boundaries of any direction, "laplacian" prefers those along the axes. With nine columns
# of noise "rbf" fails: all columns count equally in its distances. A width for each column ("ard")
# helps, and so does "laplacian", by which rows resemble each other column by column.
