"""Converters of the models for skl2onnx."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from looms._optional import require
from looms._typing import Array
from looms.calibration._coupling import LEAST
from looms.calibration._isotonic import Isotonic
from looms.calibration._sigmoid import Sigmoid
from looms.calibration._softmax import Softmax
from looms.estimators import KernelClassifier, KernelRegressor, TabularClassifier, TabularRegressor
from looms.estimators._estimator_member import EstimatorMember
from looms.estimators._trees import HALF, BoostedTrees
from looms.kernels._samples import dense
from looms.lssvm._system import targets_as_columns
from looms.lssvm.fit import as_expansion
from looms.onnx._check import Candidate, check_graph
from looms.onnx._graph import Graph
from looms.onnx._kernels import Pairs, expansion
from looms.onnx._tables import check_columns, prepared
from looms.svm.member import SupportVectorMember


def register_converters() -> None:
    """Teach skl2onnx the models of looms.

    ``skl2onnx.to_onnx`` then converts `KernelClassifier`, `KernelRegressor`, `TabularClassifier`,
    and `TabularRegressor`, alone and in pipelines. Classifiers have the options of
    scikit-learn's classifiers: ``zipmap``, ``output_class_labels``, ``nocl`` and ``raw_scores``
    (`decision_function`; for two classes one column each, the first negated).
    Rows in float64 need ``zipmap=False``: the dicts that skl2onnx makes by default, also for
    scikit-learn's classifiers, hold only float32, and a runtime refuses the graph. Without
    calibration, scores replace the probabilities. Rows in float32 are computed in float64, and
    the results are float32; with the option ``float64=False`` all arithmetic is in single
    precision, for devices that have no other.

    Raises
    ------
    ImportError
        If skl2onnx is not installed.

    Notes
    -----
    Conversion refuses kernels of categories, precomputed kernels and functions, by name. The graph
    holds the training rows; for a linear model, only one vector per output. The graph of a model
    of tables takes one tensor, the columns in the order of the fit, with NaN for gaps: all of them
    are to be numbers, and columns of text or dates are refused by name.

    Estimators of scikit-learn among the candidates are converted by skl2onnx. Before a graph is
    given out, it and those of the candidates run on some rows, in onnxruntime if it is installed,
    else in onnx; ValueError names the candidate that differs from the fitted one by more than
    rounding. Classifiers without ``predict_proba`` are refused.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import KernelClassifier
    >>> from looms.onnx import register_converters
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelClassifier("rbf", mu=1e-3).fit(X, y)
    >>> register_converters()  # doctest: +SKIP
    >>> from skl2onnx import to_onnx  # doctest: +SKIP
    >>> model = to_onnx(model, X[:1], options={"zipmap": False})  # doctest: +SKIP
    """
    skl2onnx = require("skl2onnx", "ONNX", extra="onnx")
    precision = {"float64": [True, False]}
    of_classes = precision | {
        "zipmap": [True, False, "columns"],
        "output_class_labels": [False, True],
        "raw_scores": [False, True],
        "nocl": [False, True],
    }
    number = _regressor_shapes, _convert_regressor, precision
    label = _classifier_shapes, _convert_classifier, of_classes
    for fitted, (shapes, convert, options) in {
        **dict.fromkeys((KernelRegressor, TabularRegressor), number),
        **dict.fromkeys((KernelClassifier, TabularClassifier), label),
        Candidate: (_candidate_shapes, _convert_candidate, precision),
    }.items():
        name = f"Looms{fitted.__name__}"
        skl2onnx.update_registered_converter(fitted, name, shapes, convert, options=options)


def _check(operator: Any) -> None:
    """NotFittedError, or ValueError for rows that do not have the model's features."""
    fitted = operator.raw_operator
    check_is_fitted(fitted)
    name, n = type(fitted).__name__, fitted.n_features_in_
    outcome = fitted.fitted_.outcome
    if outcome.decides and not outcome.labeled:
        raise ValueError(f"{name} of ordered classes has no ONNX form.")
    check_columns(getattr(fitted, "preprocessor_", None))
    if len(operator.inputs) > 1:
        raise ValueError(
            f"{name} takes one tensor of its {n} features, got {len(operator.inputs)} inputs: "
            "give the row as an array, or put a transformer of scikit-learn before the model."
        )
    width = operator.inputs[0].type.shape[1]
    if width not in (None, n):
        raise ValueError(
            f"{name} was fitted to {n} features, but the row for its graph has {width}: give a row "
            "as for predict."
        )


def _classifier_shapes(operator: Any) -> None:
    _check(operator)
    shapes = require("skl2onnx.common.shape_calculator", "ONNX", extra="onnx")
    shapes.calculate_linear_classifier_output_shapes(operator)


def _regressor_shapes(operator: Any) -> None:
    _check(operator)
    targets = targets_as_columns(operator.raw_operator.loo_.y).shape[1]
    operator.outputs[0].type.shape = [operator.inputs[0].get_first_dimension(), targets]


def _candidate_shapes(operator: Any) -> None:
    operator.outputs[0].type.shape = [operator.inputs[0].get_first_dimension(), None]


def _convert_candidate(scope: Any, operator: Any, container: Any) -> None:
    g, X = _graph_and_rows(scope, operator, container)
    _give(g, _estimator_outputs(g, X, operator.raw_operator.member), operator.outputs[0])


def _convert_regressor(scope: Any, operator: Any, container: Any) -> None:
    """Outputs; transformed ones as `looms.selection._target_transforms.smeared_means`."""
    model = operator.raw_operator
    g, X = _graph_and_rows(scope, operator, container)
    f, outcome = _outputs(g, X, model), model.fitted_.outcome
    if outcome.transform != "none":
        _, _, weight = held_out = model.fitted_.held_out
        used = weight > 0
        spread = _untransformed(g, g("Add", f, held_out.residuals[used][None]), outcome.transform)
        f = g("MatMul", spread, (weight[used] / weight[used].sum())[:, None])
    elif outcome.function.least == 0.0:
        f = g("Max", f, 0.0)
    _give(g, f, operator.outputs[0])


def _untransformed(g: Graph, z: str, transform: str) -> str:
    """Targets of transformed ones."""
    if transform == "sqrt":
        root = g("Max", z, 0.0)
        return g("Mul", root, root)
    values = g("Exp", g("Min", z, float(np.log(np.finfo(g.dtype).max))))
    return values if transform == "log" else g("Max", g("Sub", values, 1.0), 0.0)


def _convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    model = operator.raw_operator
    g, X = _graph_and_rows(scope, operator, container)
    f, two = _outputs(g, X, model), len(model.classes_) == 2
    decision = g("Sub", f, np.asarray(model.threshold_, dtype=np.float64))
    probabilities = None
    if model.calibrator_ is not None:
        n_outputs = 1 if two else len(model.classes_)
        probabilities = _probabilities(g, f, model.calibrator_, n_outputs)
    if two:
        positive = g("Greater", decision, 0.0)
        index = g("Squeeze", g.cast(positive, np.int64), np.array([1]))
    else:
        index = g("ArgMax", decision, axis=1, keepdims=0)
    utilities = require("skl2onnx.common.utils_classifier", "ONNX", extra="onnx")
    classes = utilities.get_label_classes(scope, model)
    classes = classes.astype(object if classes.dtype.kind in "OU" else np.int64)
    labels = g("Gather", classes, index)
    container.add_node("Identity", labels, operator.outputs[0].full_name)
    raw = container.get_options(model, {"raw_scores": False})["raw_scores"]
    if raw or probabilities is None:
        probabilities = g("Concat", g("Neg", decision), decision, axis=1) if two else decision
    _give(g, probabilities, operator.outputs[1])


def _graph_and_rows(scope: Any, operator: Any, container: Any) -> tuple[Graph, str]:
    """Graph, and rows as the model takes them, in the type of the arithmetic."""
    check_graph(operator, container)
    model = operator.raw_operator
    double = container.get_options(model, {"float64": True})["float64"]
    g = Graph(scope, container, "float64" if double else "float32", operator.inputs[0])
    X = g.cast(operator.inputs[0].full_name, g.dtype)
    before = getattr(model, "preprocessor_", None)
    if before is None:
        return g, X
    X = prepared(g, X, before)
    kind = type(operator.inputs[0].type)([None, model.fitted_.n_features])
    g.source = scope.declare_local_variable("looms_prepared", kind)
    g.source.init_status(is_fed=True)
    _give(g, X, g.source)
    return g, X


def _give(g: Graph, name: str, output: Any) -> None:
    """Make a result an output of the operator, in the type that skl2onnx declared."""
    types = require("skl2onnx.common.data_types", "ONNX", extra="onnx")
    dtype = np.float64 if isinstance(output.type, types.DoubleTensorType) else np.float32
    g.container.add_node("Identity", g.cast(name, dtype), output.full_name)


def _outputs(g: Graph, X: str, fitted: Any) -> str:
    """Outputs of a model, (m, t), before thresholds."""
    parts = []
    for member in fitted.members_:
        if isinstance(member, EstimatorMember):
            parts.append(g("Mul", _estimator_outputs(g, X, member), member.weight))
            continue
        Z, coefficients = as_expansion(
            dense(member.basis(fitted.X_fit_)), member.dual_coef, member.coef
        )
        alpha = targets_as_columns(coefficients)
        counts = alpha.any(axis=1)  # not samples of weight zero
        f = expansion(member.kernel, Pairs(g, X, Z[counts]), alpha[counts])
        f = g("Add", f, np.atleast_1d(member.intercept))
        if isinstance(member, SupportVectorMember) and member.sigmoids is not None:
            f = g("Log", _coupled(g, f, member.sigmoids, len(fitted.classes_)))
        parts.append(g("Mul", f, member.weight))
    return g("Sum", *parts) if len(parts) > 1 else parts[0]


def _estimator_outputs(g: Graph, X: str, member: EstimatorMember) -> str:
    """Outputs of an estimator, (m, t): numbers, or 2 p − 1 with the probabilities p of classes."""
    by_nodes = isinstance(member.estimator, BoostedTrees)
    values = _tree_outputs(g, X, member.estimator) if by_nodes else _converter_outputs(g, member)
    return g("Sub", g("Mul", values, 2.0), 1.0) if member.outcome.decides else values


def _converter_outputs(g: Graph, member: EstimatorMember) -> str:
    """Numbers, or probabilities, of an estimator of scikit-learn, (m, t), by its own converter."""
    operators = require("skl2onnx._supported_operators", "ONNX", extra="onnx")
    types = require("skl2onnx.common.data_types", "ONNX", extra="onnx")
    kind = operators.sklearn_operator_name_map.get(type(member.estimator))
    if kind is None:
        raise ValueError("skl2onnx has no converter for it")
    operator = g.scope.declare_local_operator(kind, member.estimator)
    operator.inputs.append(g.source)
    double = isinstance(g.source.type, types.DoubleTensorType)
    results = {"values": types.DoubleTensorType() if double else types.FloatTensorType()}
    classes = member.outcome.classes
    if len(classes):
        results = {"label": types.Int64TensorType(), **results}
        if classes.dtype.kind in "OU":
            results["label"] = types.StringTensorType()
    for name, kind in results.items():
        operator.outputs.append(g.scope.declare_local_variable(f"looms_{name}", kind))
    values = g.cast(operator.outputs[-1].onnx_name, g.dtype)
    return g("Gather", values, np.array([1]), axis=1) if len(classes) == 2 else values


def _tree_outputs(g: Graph, X: str, trees: BoostedTrees) -> str:
    """Outputs of boosted trees, (m, t), by one step down in all trees at a time."""
    node = g("Tile", trees.roots_.reshape(1, -1), g.column_shape(X))
    left, right = trees.children_.T
    for _ in range(trees.depth_):
        x = g("GatherElements", X, g("Gather", trees.feature_, node), axis=1)
        low = g("LessOrEqual", x, g("Gather", trees.threshold_, node))
        node = g("Where", low, g("Gather", left, node), g("Gather", right, node))
    tree_sums = np.tile(np.eye(len(trees.baseline_)), (len(trees.roots_), 1))
    sums = g("Add", g("MatMul", g("Gather", trees.value_, node), tree_sums), trees.baseline_)
    if is_regressor(trees):
        return sums
    log_odds = g("Mul", sums, HALF)
    return g("Sigmoid", log_odds) if tree_sums.shape[1] == 1 else g("Softmax", log_odds, axis=1)


def _log_odds(g: Graph, f: str, slope: float | Array, intercept: float | Array) -> str:
    return g("Neg", g("Add", g("Mul", f, slope), intercept))


def _probabilities(g: Graph, f: str, calibrator: Any, n_outputs: int) -> str:
    """`looms.calibration._calibrators.class_probabilities` of outputs (m, n_outputs)."""
    if isinstance(calibrator, Softmax):
        return g("Softmax", g("Add", g("Mul", f, calibrator.slope), calibrator.constants), axis=1)
    if isinstance(calibrator, Sigmoid):
        p = g("Sigmoid", _log_odds(g, f, calibrator.slope, calibrator.intercept))
    elif isinstance(calibrator, Isotonic):
        knots, heights = calibrator.outputs[:, None], calibrator.probabilities[:, None]
        columns = np.zeros(n_outputs, dtype=int)
        p = g.interpolated(f, knots[:, columns], heights[:, columns])
    else:
        score = calibrator.sigmoid
        z = _log_odds(g, f, score.slope, score.intercept)  # of the positive class
        logs = [g("Neg", _softplus(g, signed)) for signed in (g("Neg", z), z)]
        odds = g("Sub", g("Mul", logs[0], calibrator.a), g("Mul", logs[1], calibrator.b))
        p = g("Sigmoid", g("Add", odds, calibrator.c))
    if n_outputs == 1:
        return g("Concat", g("Sub", 1.0, p), p, axis=1)
    total = g("ReduceSum", p, np.array([1]), keepdims=1)
    possible = g("Greater", total, 0.0)
    share = g("Div", p, g("Where", possible, total, 1.0))
    return g("Where", possible, share, 1.0 / n_outputs)


def _coupled(g: Graph, f: str, sigmoids: Array, k: int) -> str:
    """Coupled probabilities of the sigmoids of the pairs of k classes, (m, k)."""
    p = g("Sigmoid", _log_odds(g, f, *sigmoids))
    p = g("Max", g("Min", p, 1.0 - LEAST), LEAST)
    n_pairs = sigmoids.shape[1]
    places, given = np.zeros((n_pairs, k, k)), np.zeros((k, k))
    for q, (a, b) in enumerate(combinations(range(k), 2)):
        places[q, b, a], places[q, a, b], given[a, b] = 1.0, -1.0, 1.0
    r = g("Add", g("MatMul", p, places.reshape(n_pairs, -1)), given.ravel())
    r = g("Reshape", r, np.array([-1, k, k]))
    squares = g("ReduceSum", g("Mul", r, r), np.array([1]), keepdims=1)
    system = g("Sub", g("Mul", squares, np.eye(k)), g("Mul", r, g("Transpose", r, perm=[0, 2, 1])))
    # p is the solution of the system with (M + 1 1ᵀ) p = 1, but for its sum: positive definite, so
    # that Gauss-Jordan elimination needs no pivots.
    ones = g("Exp", g("Mul", g("Transpose", squares, perm=[0, 2, 1]), 0.0))
    rows = g("Concat", g("Add", system, 1.0), ones, axis=2)
    for j, unit in enumerate(np.eye(k)):
        row = g("Gather", rows, np.array([j]), axis=1)
        row = g("Div", row, g("Gather", row, np.array([j]), axis=2))
        column = g("Sub", g("Gather", rows, np.array([j]), axis=2), unit[:, None])
        rows = g("Sub", rows, g("Mul", column, row))
    p = g("Squeeze", g("Gather", rows, np.array([k]), axis=2), np.array([2]))
    p = g("Max", p, float(np.finfo(g.dtype).tiny))
    return g("Div", p, g("ReduceSum", p, np.array([1]), keepdims=1))


def _softplus(g: Graph, z: str) -> str:
    """log(1 + exp(z)); the operator of that name takes only float32."""
    tail = g("Log", g("Add", g("Exp", g("Neg", g("Abs", z))), 1.0))
    return g("Add", g("Max", z, 0.0), tail)
