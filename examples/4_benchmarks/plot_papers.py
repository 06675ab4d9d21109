"""
Which threshold did a paper use?
================================

A paper of 2006 prints balanced error rates of 70 experiments, and not how it set the threshold.
looms repeated the experiments in ten splits and stored the rates of several thresholds.
"""

# %%
# Each point is one experiment. On the diagonal, the rate in looms is the printed one.

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

results = Path("../../benchmarks/results")
table = pd.read_csv(results / "challenge_ada_table3.csv", comment="#")
thresholds = {"ber": "by leave-one-out", "ber_best_on_test": "best on the test rows"}

fig, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
for (column, label), color in zip(thresholds.items(), ("C0", "C1"), strict=True):
    ax.plot(table["paper"], table[column], "o", color=color, markersize=4, label=label)
ax.axline((0.17, 0.17), slope=1, color="gray", linewidth=1)
ax.set(xlabel="printed error rate", ylabel="error rate in looms", ylim=(0.165, 0.225))
ax.legend(title="threshold", loc="upper left")
plt.show()

# %%
# The printed rates are those of the threshold that is best on the test rows. A user cannot have
# it; with the threshold by leave-one-out the rates are higher.

print(table[["paper", *thresholds]].mean().round(3).to_string())
