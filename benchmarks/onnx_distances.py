"""Squared distances in ONNX graphs: sums of differences against the ways that cost less.

Claims checked: from norms, by the operator CDist too, predictions of a Matérn kernel of ν = ½ for
rows of the fit lose most digits where features are far from zero; from differences they do not,
and a batch takes longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from unittest.mock import patch

import numpy as np
from _report import write_table
from onnxruntime import InferenceSession
from skl2onnx import to_onnx

from looms import KernelRegressor
from looms._typing import Array
from looms.kernels import RBF, Matern
from looms.onnx import register_converters
from looms.onnx._graph import Graph

N = 500
Distances = Callable[[Graph, str, str, Array], str]


def from_norms(center: bool) -> Distances:
    def distances(g: Graph, of: str, X: str, Z: Array) -> str:
        mean = Z.mean(axis=0) if center else np.zeros(Z.shape[1])
        A, B = g("Sub", X, mean), Z - mean
        squares = g("ReduceSum", g("Mul", A, A), np.array([1]), keepdims=1)
        products = g("MatMul", A, -2.0 * B.T)
        return g("Max", g("Add", products, g("Add", squares, np.square(B).sum(axis=1))), 0.0)

    return distances


def by_cdist(g: Graph, of: str, X: str, Z: Array) -> str:
    result: str = g.scope.get_unique_variable_name("distances")
    where = {"op_domain": "com.microsoft", "op_version": 1, "metric": "sqeuclidean"}
    g.container.add_node("CDist", [X, g.constant(Z)], result, **where)
    return result


WAYS: dict[str, Distances] = {
    "differences": Graph.sum_of_differences,
    "norms": from_norms(center=False),
    "norms of centered rows": from_norms(center=True),
    "CDist": by_cdist,
}


def measured(machine: KernelRegressor, X: Array, dtype: str, double: bool) -> tuple[float, float]:
    """Largest difference of predictions for the rows of the fit, and CPU seconds of the batch."""
    rows = X.astype(dtype)
    graph = to_onnx(machine, rows[:1], options={id(machine): {"float64": double}})
    session = InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    times = []
    for _ in range(5):
        began = time.process_time()
        (outputs,) = session.run(None, {"X": rows})
        times.append(time.process_time() - began)
    expected = machine.predict(rows.astype(np.float64))
    return float(abs(outputs[:, 0] - expected).max()), min(times)


def rows_of_table() -> list[list[object]]:
    rng, table = np.random.default_rng(0), []
    for mean in (0.0, 100.0):
        for kernel in (RBF(), Matern(0.5)):
            for n_features in (10, 100):
                X = mean + rng.normal(size=(N, n_features))
                y = np.square(X[:, 0] - mean) + rng.normal(size=N)
                machine = KernelRegressor(kernel, mu=1e-3).fit(X, y)
                for name, way in WAYS.items():
                    with patch.object(Graph, "sum_of_differences", way):
                        double, seconds = measured(machine, X, "float64", True)
                        single, _ = measured(machine, X, "float32", False)
                    label = "rbf" if isinstance(kernel, RBF) else "matern12"
                    errors = f"{double:.1e}", f"{single:.1e}"
                    table.append([mean, label, n_features, name, *errors, 1e3 * seconds])
    return table


if __name__ == "__main__":
    register_converters()
    header = (
        *("mean_of_features", "kernel", "n_features", "distances_from"),
        *("difference_float64", "difference_single_precision", "milliseconds_500_rows_float64"),
    )
    write_table("onnx_distances", header, rows_of_table(), ("onnxruntime", "skl2onnx"))
