"""Two pictures of the front page, for light and dark pages: a model and its held-out predictions.

python docs/_figures/held_out.py
"""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib import pyplot as plt

from looms import KernelRegressor

INKS = {"light": "#222832", "dark": "#ced6dd"}
FOLDER = Path(__file__).parents[1] / "_static"

rng = np.random.default_rng(3)
x = np.sort(rng.uniform(0, 10, 30))
y = np.sin(x) + 0.25 * rng.normal(size=30)
model = KernelRegressor().fit(x[:, None], y)
model.evaluate()
grid = np.linspace(-0.3, 10.3, 300)
low, high = model.predict_interval(grid[:, None], confidence_level=0.9).T

matplotlib.rcParams["svg.hashsalt"] = "looms"
for name, ink in INKS.items():
    colors = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), ink)
    with plt.rc_context({**colors, "xtick.color": ink, "ytick.color": ink, "font.size": 11}):
        figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
        band = {"color": "#0e8a94", "alpha": 0.15, "linewidth": 0}
        ax.fill_between(grid, low, high, label="90 % interval", **band)
        ax.plot(grid, model.predict(grid[:, None]), color="#0e8a94", label="all rows")
        ax.vlines(x, y, model.loo_.outputs, color="#e0662e", linewidth=1.2)
        ax.plot(x, y, "o", color=ink, markersize=4, label="a row")
        label = "predicted without it"
        ax.plot(x, model.loo_.outputs, "o", color="#e0662e", markersize=4, label=label)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set(xlabel="feature", ylabel="target", xlim=grid[[0, -1]])
        ax.legend(frameon=False, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
        path = FOLDER / f"held_out_{name}.svg"
        figure.savefig(path, transparent=True, metadata={"Date": None})
        plt.close(figure)
