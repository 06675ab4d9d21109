"""Nodes of an ONNX graph, written as calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from looms._optional import require
from looms._typing import AnyArray, Array

#: First operator set in which the sizes of axes are inputs of nodes.
LEAST_OPSET = 13


class Graph:
    """Nodes of one operator of skl2onnx.

    ``graph("Add", a, b)`` adds a node and returns the name of its result. Inputs are names of
    results, or numbers and arrays, which become constants.

    Parameters
    ----------
    scope, container : scope and container of skl2onnx.
    dtype : type of the arithmetic, "float64" or "float32".
    source : variable of skl2onnx with the rows.
    """

    def __init__(self, scope: Any, container: Any, dtype: str, source: Any = None) -> None:
        if container.target_opset < LEAST_OPSET:
            raise ValueError(
                f"Models of looms need the operators of ONNX {LEAST_OPSET} or later, got "
                f"target_opset={container.target_opset}."
            )
        self.scope, self.source = scope, source
        self.container = container
        self.dtype = np.dtype(dtype)

    def __call__(self, operator: str, *inputs: str | float | AnyArray, **attributes: Any) -> str:
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        result: str = self.scope.get_unique_variable_name(f"looms_{operator}")
        name = self.scope.get_unique_operator_name(f"looms_{operator}")
        self.container.add_node(operator, names, result, name=name, **attributes)
        return result

    def constant(self, values: float | AnyArray) -> str:
        """Name of a constant, in the type of the arithmetic unless it holds integers or strings."""
        array = np.asarray(values)
        array = array.astype(self.dtype) if array.dtype.kind == "f" else array
        name: str = self.scope.get_unique_variable_name("looms_constant")
        tensor = require("onnx.numpy_helper", "ONNX", extra="onnx").from_array(array, name)
        self.container.initializers.append(tensor)
        return name

    def cast(self, name: str, dtype: Any) -> str:
        """Values as another NumPy type."""
        helper = require("onnx.helper", "ONNX", extra="onnx")
        return self("Cast", name, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def column_shape(self, X: str) -> str:
        """Shape of a column with as many rows as X, (m, 1)."""
        n_rows = self("Gather", self("Shape", X), np.array([0]))
        return self("Concat", n_rows, np.array([1]), axis=0)

    def interpolated(self, x: str, knots: Array, values: Array) -> str:
        """`numpy.interp` of each column, (m, d), from d columns of knots and their values.

        A sum of ramps from each knot to the next; if the values do not fall, all have one sign.
        """
        columns = []
        for k in range(knots.shape[1]):
            width, rise = np.diff(knots[:, k]), np.diff(values[:, k])
            rising = width > 0
            if (rise[~rising] != 0).any():
                raise ValueError(
                    "A function with a jump, that is two values at one knot, has no ONNX form."
                )
            column = self("Gather", x, np.array([k]), axis=1)
            ramps = self("Sub", column, knots[:-1, k][rising])
            ramps = self("Min", self("Max", ramps, 0.0), width[rising])
            slopes = rise[rising] / width[rising]
            columns.append(self("Add", self("MatMul", ramps, slopes[:, None]), values[0, k]))
        return self("Concat", *columns, axis=1) if len(columns) > 1 else columns[0]

    def sum_of_differences(self, term: str, X: str, Z: Array) -> str:
        """Σ_k |x_ik − z_jk| ("Abs"), or the sum of squares ("Square"), (m, n).

        It takes one feature after the other, and needs memory for (m, n) numbers. No digits
        cancel, as they do in squared distances computed from inner products.
        """
        helper = require("onnx.helper", "ONNX", extra="onnx")
        kind = helper.np_dtype_to_tensor_dtype(self.dtype)
        sizes = {"sum": [None, len(Z)], "x": [None], "z": [len(Z)], "next": [None, len(Z)]}
        tensors = {
            name: helper.make_tensor_value_info(name, kind, size) for name, size in sizes.items()
        }
        difference = ["difference"]
        body = helper.make_graph(
            [
                helper.make_node("Unsqueeze", ["x", self.constant(np.array([1]))], ["column"]),
                helper.make_node("Sub", ["column", "z"], difference),
                helper.make_node("Abs", difference, ["term"])
                if term == "Abs"
                else helper.make_node("Mul", difference * 2, ["term"]),
                helper.make_node("Add", ["sum", "term"], ["next"]),
            ],
            "feature",
            [tensors[name] for name in ("sum", "x", "z")],
            [tensors["next"]],
        )
        zeros = self("MatMul", X, np.zeros(Z.shape[::-1]))
        columns = self("Transpose", X, perm=[1, 0])
        return self("Scan", zeros, columns, Z.T, body=body, num_scan_inputs=2)
