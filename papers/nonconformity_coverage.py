"""Coverage of nonconformity prediction regions over 200 random splits of real sets.

Each split draws two thirds of a set for training and validation and tests on the rest. Regions of
the whole selection, and of one machine named in advance, must cover 1 - epsilon within three
standard errors; those of the machine chosen at each sample, by the rule of the paper, have no such
guarantee, and fall short. Validation samples are drawn without regard to class, as the guarantee
has it. 39 of them, so that 1 - epsilon can be met exactly; ties make the regions a little larger.

The test samples of all splits come from one set, so standard errors over splits are approximate.

    python -m papers.nonconformity_coverage [--splits 200]
"""

from __future__ import annotations

import argparse

import numpy as np
from benchmarks._report import write_table
from sklearn.preprocessing import StandardScaler

from looms import NonconformityClassifier
from papers.nonconformity import uci

EPSILONS = (0.05, 0.1, 0.2)
GRID = {"C": 2.0 ** np.arange(-5, 12, 4), "gamma": 2.0 ** np.arange(-9, 4, 4)}
NAMED = 10  # index into the twenty machines of the grid


def coverages(name: str, n_splits: int) -> dict[tuple[str, float], list[tuple[float, float]]]:
    """For each kind of region and epsilon the coverage, and the mean size, of every split."""
    X, y = uci(name)
    rng = np.random.default_rng(0)
    found: dict[tuple[str, float], list[tuple[float, float]]] = {}
    for split in range(n_splits):
        order = rng.permutation(len(y))
        fit, new = np.split(order, [2 * len(y) // 3])
        Z = StandardScaler().fit(X[fit]).transform(X)
        model = NonconformityClassifier(
            GRID,
            validation_size=39,
            stratify=False,
            within_se=None,
            ties="random",
            random_state=split,
        ).fit(Z[fit], y[fit])
        at = np.arange(len(new)), np.searchsorted(model.classes_, y[new])
        of_models = model.model_p_values(Z[new])
        chosen = of_models[model.chosen_model(Z[new]), np.arange(len(new))]
        p = {"selection": model.p_values(Z[new]), "named": of_models[NAMED], "chosen": chosen}
        for kind, values in p.items():
            for epsilon in EPSILONS:
                region = values > epsilon + 1e-12
                row = (float(region[at].mean()), float(region.sum(axis=1).mean()))
                found.setdefault((kind, epsilon), []).append(row)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--data", nargs="+", default=["glass_windows", "haberman", "bupa"])
    options = parser.parse_args()
    table = []
    for name in options.data:
        for (kind, epsilon), rows in coverages(name, options.splits).items():
            coverage, size = np.array(rows).T
            error = float(coverage.std(ddof=1) / np.sqrt(len(rows)))
            line = (float(coverage.mean()), error, float(size.mean()))
            table.append((name, kind, 1 - epsilon, *line))
    header = ("dataset", "region", "nominal", "coverage", "standard_error", "mean_size")
    write_table("nonconformity_coverage", header, table)


if __name__ == "__main__":
    main()
