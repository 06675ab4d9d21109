"""Pictures of the README, for light and dark pages: scores of sixty rows, and the suite of tables.

The first is that of the gallery, the second of the table that `python -m benchmarks.tables.report`
writes.

python docs/_figures/readme.py
"""

import csv
import runpy
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "_static"
#: Ink and paper of each theme.
THEMES = {"light": ("#222832", "#ffffff"), "dark": ("#ced6dd", "#14181e")}
TEAL, ORANGE, GRAY = "#0e8a94", "#e0662e", "#8a939b"
OTHERS = ["hist_gradient_boosting", "lightgbm", "xrfm", "svc_grid", "nystroem_ridge", "linear"]


def chosen(ax: Axes, ink: str, losses: np.ndarray) -> None:
    """Log loss of twelve draws of sixty patients: that of tuning, nested, and of new patients."""
    ax.plot(losses.T, color=GRAY, linewidth=0.8, alpha=0.45)
    means = losses.mean(axis=0)
    ax.plot(means, color=TEAL, linewidth=3, marker="o", markersize=8)
    for k, (value, color) in enumerate(zip(means, (ORANGE, TEAL, ink), strict=True)):
        text = ax.annotate(
            f"{value:.2f}",
            (k, value),
            (0, 12),
            textcoords="offset points",
            ha="center",
            color=color,
            fontsize=16,
            fontweight="bold",
        )
        text.set_path_effects([withStroke(linewidth=4, foreground=ax.figure.get_facecolor())])
    names = ["leave-one-out\nthat tuned the model", "evaluate()\nof looms", "509 other\npatients"]
    ax.set_xticks(range(3), names)
    ax.set(ylabel="log loss", xlim=(-0.4, 2.4), ylim=(0, None))


def suite(ax: Axes, ink: str, rows: list[dict[str, str]]) -> None:
    """Loss of each method over that of the best of seven peers, for each table."""
    peers = [*OTHERS, "catboost"]
    ratios = {
        row["table"]: {
            name: float(row[name]) / min(float(row[peer]) for peer in peers)
            for name in ["looms", *peers]
        }
        for row in rows
    }
    tables = sorted(ratios, key=lambda table: ratios[table]["looms"])
    for place, table in enumerate(tables):
        own = ratios[table]
        others = [own[name] for name in OTHERS]
        ax.plot(others, np.full(len(others), place), "o", color=GRAY, alpha=0.5, markersize=4)
        ax.plot(own["catboost"], place, "o", color=ORANGE, markersize=5)
        ax.plot(own["looms"], place, "o", color=TEAL, markersize=8)
    for label, color, size in (
        ("looms", TEAL, 8),
        ("CatBoost", ORANGE, 5),
        ("six others", GRAY, 4),
    ):
        ax.plot([], [], "o", color=color, markersize=size, label=label)
    ax.axvline(1, color=ink, linewidth=0.8, linestyle=":")
    ax.set_yticks(range(len(tables)), tables)
    ax.set(xscale="log", xlim=(0.6, 4.2), xlabel="loss / that of the best of the seven others")
    ax.set_xticks([0.7, 1, 1.5, 2, 3, 4], ["0.7", "1", "1.5", "2", "3", "4"])
    ax.minorticks_off()
    ax.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.4, 1.0))


def write(name: str, size: tuple[float, float], draw: Callable[[Axes, str], None]) -> None:
    """The picture in both themes."""
    for theme, (ink, paper) in THEMES.items():
        names = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
        colors = dict.fromkeys(names, ink) | {"figure.facecolor": paper}
        with plt.rc_context({**colors, "font.size": 11}):
            figure, ax = plt.subplots(figsize=size, layout="constrained")
            draw(ax, ink)
            ax.spines[["top", "right"]].set_visible(False)
            path = FOLDER / f"{name}_{theme}.svg"
            figure.savefig(path, transparent=True, metadata={"Date": None})
            plt.close(figure)


def main() -> None:
    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "looms"
    losses = runpy.run_path(str(ROOT / "examples/1_scores/plot_clinic.py"))["losses"]
    with (ROOT / "benchmarks/results/tables_report_500_each.csv").open(encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("#")]
    rows = [row for row in csv.DictReader(lines) if row["measure"] == "loss"]
    write("chosen", (6, 3.6), lambda ax, ink: chosen(ax, ink, losses))
    write("suite", (6, 5.2), lambda ax, ink: suite(ax, ink, rows))


if __name__ == "__main__":
    main()
