"""Largest differences between looms and the ONNX graphs of its machines in onnxruntime.

Claims checked: in float64 below 1e-9, also of rows that are rows of the fit and of features far
from zero; with float32 rows below 1e-6, and no other class.
"""

from __future__ import annotations

from _onnx_cases import CASES, differences, fitted
from _report import write_table

from looms.onnx import register_converters


def row(name: str) -> list[object]:
    model = fitted(name)
    double, other_double = differences(model, "float64")
    single, other_single = differences(model, "float32")
    inside, other_inside = differences(model, "float32", float64=False)
    values = [f"{value:.1e}" for value in (double, single, inside)]
    return [name, *values, other_double + other_single, other_inside]


if __name__ == "__main__":
    register_converters()
    header = (
        *("machine", "float64_rows", "float32_rows", "float32_arithmetic"),
        *("other_classes", "other_classes_float32_arithmetic"),
    )
    packages = ("onnx", "onnxruntime", "skl2onnx")
    write_table("onnx_differences", header, [row(name) for name in CASES], packages)
