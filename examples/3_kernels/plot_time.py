"""
Time over the number of rows
============================

How long does a fit take? This example fits nothing: it draws the times that scripts of the folder
``benchmarks`` measured on two cores, each of a complete tuned fit.
"""

# %%
# The default call of ``TabularClassifier`` on 11 columns (``default_call.py``) and one RBF kernel
# on 20 columns, with all rows (``against_liquidsvm.py``, ``full_kernel_rows.py``) and with 500 and
# 1000 landmarks (``large_tables.py``).

import csv
from pathlib import Path

import matplotlib.pyplot as plt

RESULTS = Path("../../benchmarks/results")


def read(name):
    lines = (RESULTS / name).read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def points(lines, seconds):
    measured = [(int(line["rows"]), float(line[seconds])) for line in lines]
    return [(n, s) for n, s in measured if s == s]  # without NaN


default = read("default_call.csv")
whole = points(read("against_liquidsvm.csv"), "looms_seconds")
of_all = [line for line in read("full_kernel_rows.csv") if line["n_landmarks"] == "None"]
whole += points(of_all, "seconds")
landmarks = [
    (n, float(line["seconds"]))
    for n, rank in ((100_000, 500), (1_000_000, 1000))
    for line in read(f"large_tables_synthetic_{n}_rank_{rank}.csv")
    if line["method"] == "looms_rbf"
]

fig, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
for (label, some), color, style in zip(
    {
        "default: evaluate()": points(default, "evaluate_seconds"),
        "default: fit": points(default, "fit_seconds"),
        "one kernel, all rows": whole,
        "one kernel, landmarks": landmarks,
    }.items(),
    ("C0", "C0", "C1", "C1"),
    ("o:", "o-", "s-", "s--"),
    strict=True,
):
    ax.plot(*zip(*some, strict=True), style, color=color, linewidth=2, label=label)
for seconds, text in ((1, "1 s"), (60, "1 min"), (600, "10 min")):
    ax.axhline(seconds, color="0.85", linewidth=1, zorder=0)
    ax.text(1.3e6, seconds, text, color="0.4", ha="right", va="bottom")
ax.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds, two cores", xlim=(200, 1.4e6))
ax.set_ylim(0.2, 3000)
ax.legend(frameon=False, loc="upper left")
plt.show()

# %%
# With all rows, time grows with the third power of their number, but hyper-parameters are tuned on
# at most 2000 of them. The default call changes to landmarks beyond 7000 rows. On landmarks, time
# grows with the number of rows times the square of the number of landmarks.
