"""Machines whose ONNX graphs are compared with looms, by name, and the largest differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stacks import stacked_classifier

from looms import KernelClassifier, KernelRegressor
from looms.estimators._in_pipelines import parts_of
from looms.kernels import (
    ARD,
    RBF,
    Boolean,
    Columns,
    Laplacian,
    Linear,
    Matern,
    MaternARD,
    Normalized,
    Polynomial,
    PowerExponential,
    PowerExponentialARD,
    Ranked,
    Tanimoto,
    Weighted,
)

RNG = np.random.default_rng(0)
N, D = 60, 3
#: Features of a mean of five standard deviations, as measurements have.
X = 5.0 + RNG.normal(size=(N, D))
NUMBERS = np.column_stack([np.sin(X[:, 0]) + X[:, 1], X[:, 2] - X[:, 0]]) + RNG.normal(size=(N, 2))
NUMBERS = (NUMBERS - NUMBERS.mean(axis=0)) / NUMBERS.std(axis=0)
CLASSES = np.array([3, 7, 12])[np.digitize(NUMBERS[:, 0], [-0.5, 0.5])]
TWO = np.where(NUMBERS[:, 0] > 0.3, "yes", "no")
#: New rows, those of the fit, at which distances vanish, and some far away.
ROWS = np.vstack([5.0 + RNG.normal(size=(40, D)), X, 5.0 + 20.0 * RNG.normal(size=(5, D))])

KERNELS = {
    "linear": Linear(),
    "cubic": Polynomial(3),
    "boolean": Boolean(),
    "tanimoto": Tanimoto(),
    "rbf": RBF(),
    "laplacian": Laplacian(),
    "ard": ARD([0.1, 0.2, 0.05]),
    "matern12": Matern(0.5),
    "matern32": Matern(1.5),
    "matern52": Matern(2.5),
    "matern12 ard": MaternARD(0.5),
    "powexp": PowerExponential(0.7),
    "powexp ard": PowerExponentialARD(1.2),
    "normalized cubic": Normalized(Polynomial(3)),
    "ranked laplacian": Ranked(Laplacian()),
    "weighted rbf": Weighted(RBF(), [0.5, 0.0, 2.0]),
    "weighted linear of a column": Columns(Weighted(Linear(), [0.3]), [1]),
    "sum": 0.5 * RBF(0.1) + 2.0 * Linear() + 1.5,
    "product": RBF(0.1) * Polynomial(2, c=1.0) * Matern(0.5),
    "nested": Normalized(0.5 * RBF(0.1) * Linear() + Ranked(Boolean(0.2))) * (ARD(0.1) + 1.0),
}


def _standardized(machine: Any) -> Any:
    return make_pipeline(StandardScaler(), machine)


#: Fits of machines, by name.
CASES: dict[str, Callable[[], Any]] = {
    **{
        f"KernelRegressor {name}": lambda kernel=kernel: KernelRegressor(kernel, mu=1e-3).fit(
            X, NUMBERS
        )
        for name, kernel in KERNELS.items()
    },
    **{
        f"KernelClassifier of {name} classes {calibration}": lambda y=y, calibration=calibration: (
            KernelClassifier("matern32", mu=1e-3, calibration=calibration).fit(X, y)
        )
        for name, y in {"two": TWO, "three": CLASSES}.items()
        for calibration in ("sigmoid", "isotonic", "beta", None)
    },
    "KernelClassifier with threshold and weights": lambda: KernelClassifier(
        mu=1e-3, threshold="balanced"
    ).fit(X, TWO, sample_weight=np.arange(N) % 4),
    "KernelRegressor": lambda: KernelRegressor().fit(X, NUMBERS[:, 0]),
    "KernelRegressor on 20 landmarks": lambda: KernelRegressor(n_landmarks=20).fit(
        X, NUMBERS[:, 0]
    ),
    "KernelClassifier after StandardScaler": lambda: _standardized(KernelClassifier()).fit(
        X, CLASSES
    ),
    "KernelClassifier auto after StandardScaler": lambda: _standardized(stacked_classifier()).fit(
        X, TWO
    ),
    **{
        f"hinge of {name} classes {calibration}": lambda y=y, c=calibration: _standardized(
            KernelClassifier(loss="hinge", mu=1 / len(y), calibration=c)
        ).fit(X, y)
        for name, y in {"two": TWO, "three": CLASSES}.items()
        for calibration in ("sigmoid", None)
    },
}


def fitted(name: str) -> Any:
    """Machine of a case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CASES[name]()


def of_onnx(model: Any, rows: Any, **options: Any) -> list[Any]:
    """Results of the ONNX graph of a model for rows of float64 or float32."""
    from onnxruntime import InferenceSession
    from skl2onnx import to_onnx

    if is_classifier(model):
        options = {"zipmap": False} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = to_onnx(model, rows[:1], options={id(parts_of(model).last): options})
    session = InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, {"X": rows}))


def differences(model: Any, dtype: str, **options: Any) -> tuple[float, int]:
    """Largest difference of predictions or probabilities, and the number of other classes.

    Of machines without probabilities decision values are compared. A difference counts as a part of
    the value where that is above one. Both sides take the same rows, rounded to ``dtype``.
    """
    rows = ROWS.astype(dtype)
    results, rows = of_onnx(model, rows, **options), rows.astype(np.float64)
    others = 0
    if not is_classifier(model):
        expected = model.predict(rows).reshape(len(rows), -1)
    else:
        others = np.count_nonzero(results[0] != model.predict(rows))
        if hasattr(model, "predict_proba"):
            expected = model.predict_proba(rows)
        else:
            expected = model.decision_function(rows).reshape(len(rows), -1)
            expected = expected if expected.shape[1] > 1 else np.hstack([-expected, expected])
    apart = abs(results[-1] - expected) / np.maximum(abs(expected), 1.0)
    return float(apart.max()), int(others)
