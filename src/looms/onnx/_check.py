"""Graphs beside the models that they stand for, on some rows."""

from __future__ import annotations

import warnings
from contextvars import ContextVar
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier

from looms._optional import require
from looms._typing import AnyArray, Array
from looms._words import clean
from looms.estimators._estimator_member import EstimatorMember
from looms.kernels._samples import dense
from looms.lssvm._system import targets_as_columns
from looms.onnx._tables import unprepared

#: Most rows of the fit that a graph is run on; as many lie between two of them.
ROWS = 32
#: Largest difference that is rounding in single precision, as a part of the largest value.
ROUNDING = 1e-4
_COMPARING = ContextVar("graphs are compared, not given out", default=False)


class Candidate(BaseEstimator):  # type: ignore[misc]
    """An estimator of a model by itself, for a graph of its own."""

    def __init__(self, member: EstimatorMember) -> None:
        self.member = member


def check_graph(operator: Any, container: Any) -> None:
    """ValueError if the graph of a model, or of one of its candidates, gives other values.

    It is compared in float64, since arithmetic in float32 may lose any number of digits.

    Parameters
    ----------
    operator, container : operator of skl2onnx for the model, and container of its graph.
    """
    if _COMPARING.get():
        return
    model = operator.raw_operator
    kind, opset = type(operator.inputs[0].type), container.target_opset_all
    raw = container.get_options(model, {}).get("raw_scores", False)
    rows, of_table = _rows(model), getattr(model, "preprocessor_", None)
    before = _COMPARING.set(True)
    try:
        with warnings.catch_warnings(action="ignore"):
            for member in model.members_:
                if isinstance(member, EstimatorMember):
                    _check_candidate(member, rows, kind, opset)
            rows = rows if of_table is None else unprepared(of_table, rows)
            _check_model(model, rows, kind, opset, raw)
    finally:
        _COMPARING.reset(before)


def _rows(fitted: Any) -> Array:
    """Rows of the fit and rows between two of them; of a model without its rows, normal ones."""
    rng = np.random.default_rng(0)
    if fitted.X_fit_ is None:
        return rng.normal(size=(2 * ROWS, fitted.fitted_.n_features))
    n = fitted.X_fit_.shape[0]
    rows = dense(fitted.X_fit_[np.unique(np.linspace(0, n - 1, ROWS).astype(int))])
    neighbors = rows[rng.integers(len(rows), size=len(rows))]
    return np.vstack([rows, rows + rng.uniform(size=(len(rows), 1)) * (neighbors - rows)])


def _check_candidate(member: EstimatorMember, rows: Array, kind: Any, opset: Any) -> None:
    name, classes = clean(repr(member.estimator)), member.outcome.decides
    if classes and not hasattr(member.estimator, "predict_proba"):
        raise ValueError(
            f"{name} has no ONNX form as a candidate, since it gives no probabilities: take "
            "sklearn.calibration.CalibratedClassifierCV of it, or leave it out."
        )
    if member.columns is not None:
        raise ValueError(
            f"{name} has no ONNX form as a candidate that takes the columns of the table: use "
            "columns='prepared', or leave it out."
        )
    rows = _rows_of_kind(rows, kind)
    expected = member.values(rows.astype(np.float64))
    try:
        (values,) = _results(Candidate(member), rows, kind, opset, {})
    except Exception as error:
        why = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{name} has no ONNX form that takes rows in {rows.dtype}, leave it out: {why}"
        ) from error
    if apart := _excess(values, expected, 1.0 if classes else abs(expected).max()):
        what, apart = ("probabilities", apart / 2) if classes else ("predictions", apart)
        raise ValueError(
            f"{name} has no ONNX form that is right, leave it out: the graph by skl2onnx gives "
            f"{what} that differ by up to {apart:.2g}."
        )


def _check_model(model: Any, rows: Array, kind: Any, opset: Any, raw: bool) -> None:
    rows = _rows_of_kind(rows, kind)
    options = {"zipmap": False, "raw_scores": raw} if is_classifier(model) else {}
    results, rows = _results(model, rows, kind, opset, options), rows.astype(np.float64)
    other_classes = False
    if is_classifier(model):
        decision = targets_as_columns(model.decision_function(rows))
        scores = np.hstack([-decision, decision]) if decision.shape[1] == 1 else decision
        size = max(1.0, abs(scores).max())
        raw = raw or not hasattr(model, "predict_proba")
        apart = _excess(results[1], *((scores, size) if raw else (model.predict_proba(rows), 1.0)))
        best = np.sort(scores, axis=1)
        clear = best[:, -1] - best[:, -2] > ROUNDING * size
        other_classes = (clear & (results[0] != model.predict(rows))).any()
    else:
        expected = targets_as_columns(model.predict(rows))
        size = max(abs(expected).max(), abs(model.held_out_.y).max())
        apart = _excess(results[0], expected, size)
    if apart or other_classes:
        what = f"values that differ by up to {apart:.2g}" if apart else "other classes"
        raise ValueError(
            f"{type(model).__name__} has no ONNX form that is right: the graph gives {what}."
        )


def _rows_of_kind(rows: Array, kind: Any) -> AnyArray:
    types = require("skl2onnx.common.data_types", "ONNX", extra="onnx")
    return rows.astype(np.float64 if kind is types.DoubleTensorType else np.float32)


def _results(
    model: Any, rows: AnyArray, kind: Any, opset: Any, options: dict[str, Any]
) -> list[AnyArray]:
    """Results of the graph of a model, by onnxruntime, or if it is not installed by onnx."""
    to_onnx = require("skl2onnx", "ONNX", extra="onnx").to_onnx
    initial = [("X", kind([None, rows.shape[1]]))]
    chosen = {id(model): options}
    graph = to_onnx(model, initial_types=initial, options=chosen, target_opset=opset)
    try:
        onnxruntime = import_module("onnxruntime")
    except ImportError:
        session = require("onnx.reference", "ONNX", extra="onnx").ReferenceEvaluator(graph)
    else:
        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = 4  # errors are raised
        providers = ["CPUExecutionProvider"]
        session = onnxruntime.InferenceSession(graph.SerializeToString(), settings, providers)
    results: list[AnyArray] = session.run(None, {"X": rows})
    return results


def _excess(values: AnyArray, expected: Array, size: float) -> float:
    """Largest difference if it is more than the rounding of numbers of a size, else 0."""
    if values.shape != expected.shape:
        return np.inf
    largest = float(np.nan_to_num(abs(values - expected), nan=np.inf).max())
    return largest if largest > ROUNDING * size else 0.0
