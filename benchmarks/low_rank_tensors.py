"""Processor time of value and gradient on landmarks: rows in an array, and in torch tensors.

    python benchmarks/low_rank_tensors.py [n] [m]

Tensors are on the processor, on one thread, in float64 and float32, beside NumPy in the same run;
the least of three repetitions each.
"""

import sys
import time

import numpy as np
import torch
from _report import write_table

from looms.blocks import ArrayBlocks
from looms.kernels import ARD, RBF
from looms.kernels._samples import Samples, center_of
from looms.lssvm import low_rank
from looms.tensors import TensorBlocks

D, MU, REPETITIONS = 20, 1e-3, 3


def seconds(blocks, y, landmarks):
    """Processor time of a value, and of the gradient after it."""
    start = time.process_time()
    solution = low_rank.solve(blocks, y, MU, np.ones(len(y)), landmarks)
    middle = time.process_time()
    solution.contract(y - solution.fit.outputs, blocks)
    return middle - start, time.process_time() - middle


def main(n=50_000, m=300):
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, D))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    Z = X[rng.choice(n, m, replace=False)]
    samples, rows = Samples(Z, center=center_of(Z)), torch.tensor(X)
    cases = {
        "NumPy float64": ArrayBlocks(X, n_threads=1),
        "torch float64": TensorBlocks(rows, "float64"),
        "torch float32": TensorBlocks(rows, "float32"),
    }
    table = []
    for kernel in (RBF(0.02), ARD(np.full(D, 0.02))):
        for name, blocks in cases.items():
            landmarks = low_rank.Landmarks(kernel, samples, blocks.dtype)
            times = [seconds(blocks, y, landmarks) for _ in range(REPETITIONS)]
            value, gradient = np.min(times, axis=0)
            table.append((type(kernel).__name__, name, n, m, value, gradient))
    header = ("kernel", "rows_in", "rows", "rank", "value_seconds", "gradient_seconds")
    write_table("low_rank_tensors", header, table, ["torch"])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
