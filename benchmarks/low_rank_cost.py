"""Cost of held-out residuals on landmarks and of their gradient, against one sweep by GEMM.

The sweep: the sum of Φᵀ Φ over the same blocks of rows, Φ = [k(x, Z), 1] given in memory, by one
GEMM a block, as many blocks at once as the library works on. An ARD kernel of 20 features: 21
derivatives. The peak of memory is that of a process of its own that draws the rows and evaluates
value and gradient: libraries and rows are in it, Φ is not.

Bars, for 100,000 rows and 500 landmarks: value 2.5 ×, value and gradient 8 × the sweep. The first
is missed by a little, as sums are of whitened features, a product more.

    python benchmarks/low_rank_cost.py [--rows 100000] [--rank 500]
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np
from _large_problems import synthetic
from _report import in_fresh_process, seconds, write_table

from looms.blocks import ArrayBlocks
from looms.kernels import ARD
from looms.kernels._samples import Samples, center_of
from looms.lssvm.landmarks import Landmarks, Placed, Streamed
from looms.units import Units


class Problem:
    """PRESS of a machine on the first rows as landmarks."""

    def __init__(self, n: int, m: int) -> None:
        self.X, self.y = synthetic(n)
        self.blocks = ArrayBlocks(self.X)
        landmarks = Samples(self.X[:m], center=center_of(self.X[:m]))
        self.landmarks = Landmarks(ARD().started(landmarks), landmarks)
        self.placed = Placed.of(Units.rows(n), self.blocks)

    def value(self) -> tuple[Streamed, np.ndarray]:
        system = self.blocks, self.y[:, None], 1e-3, np.ones(len(self.y)), self.landmarks
        projection = Streamed(*system, placed=self.placed)
        return projection, projection.residuals(self.placed.units)

    def value_and_gradient(self) -> None:
        projection, e = self.value()
        projection.slopes(self.placed.units, -2.0 * e / len(self.y))

    def features(self) -> np.ndarray:
        _, (K,) = self.blocks.sweep(lambda X: ((), (self.landmarks.cross(X).T,)))
        return np.hstack([K, np.ones((len(K), 1))])

    def gemm_sweep(self, Phi: np.ndarray) -> None:
        # NumPy makes of block.T @ block a symmetric update, of half the operations.
        ArrayBlocks(Phi).sweep(lambda block: ((block.T @ block[:, :-1],), ()))


def evaluated(n: int, m: int) -> None:
    Problem(n, m).value_and_gradient()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000])
    parser.add_argument("--rank", type=int, default=500)
    given = parser.parse_args()
    rows = []
    for n in given.rows:
        problem = Problem(n, given.rank)
        _, peak = in_fresh_process(evaluated, n, given.rank)
        Phi = problem.features()
        sweep = seconds(partial(problem.gemm_sweep, Phi))
        value = seconds(problem.value)
        both = seconds(problem.value_and_gradient)
        rows.append((n, given.rank, sweep, value / sweep, both / sweep, peak, Phi.nbytes / 1e9))
        print(*rows[-1], flush=True)
    header = (
        "rows",
        "rank",
        "sweep_seconds",
        "value_ratio",
        "value_and_gradient_ratio",
        "peak_gigabytes",
        "gigabytes_of_features",
    )
    write_table("low_rank_cost", header, rows)


if __name__ == "__main__":
    main()
