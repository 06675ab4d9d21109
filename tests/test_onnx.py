"""ONNX graphs of the machines give what looms gives, in onnxruntime."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("skl2onnx", reason="skl2onnx is not installed", exc_type=ImportError)
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed", exc_type=ImportError)

from _onnx_cases import CASES, CLASSES, NUMBERS, ROWS, TWO, X, differences, fitted, of_onnx
from pairwise import pairwise
from scipy import sparse
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import StandardScaler
from stacks import stacked_classifier

from looms import KernelClassifier, KernelRegressor, TabularClassifier, TabularRegressor
from looms.estimators._trees import BoostedTreesClassifier
from looms.kernels import (
    RBF,
    Columns,
    Constant,
    Function,
    Hamming,
    Linear,
    Matern,
    Normalized,
    Precomputed,
    Tanimoto,
)
from looms.onnx import register_converters


@pytest.fixture(autouse=True, scope="module")
def _registered():
    register_converters()


SLOW = {"KernelClassifier auto after StandardScaler"}


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] * (one in SLOW)) for one in CASES]
)
@pytest.mark.slow
def test_graphs_give_what_machines_give(name):
    model = fitted(name)
    largest, others = differences(model, "float64")
    assert largest < 1e-9
    assert others == 0
    largest, others = differences(model, "float32")
    assert largest < 1e-6
    assert others == 0


@pytest.mark.parametrize("transform", ["none", "sqrt", "log", "log1p"])
def test_transformed_targets_are_transformed_back(transform):
    y = np.exp(X[:, 0] + 0.1 * np.sin(9 * X[:, 1]))
    model = TabularRegressor([KernelRegressor("rbf", mu=1e-2)], target=transform, preprocess=None)
    largest, _ = differences(model.fit(X, y, sample_weight=np.arange(len(y)) % 3), "float64")
    assert model.transform_ == transform
    assert largest < 1e-9


def test_predictions_of_nonnegative_targets_are_cut_off_at_zero():
    y = np.maximum(X[:, 0], 0.0)
    model = TabularRegressor([KernelRegressor("linear", mu=1e-2)], preprocess=None).fit(X, y)
    assert model.transform_ == "none"
    assert (model._outputs(ROWS) < 0).any()
    largest, _ = differences(model, "float64")
    assert largest < 1e-9


#: Columns of numbers: the second is constant, and is left out; the first and last have gaps.
TABLE = np.column_stack([X[:, 0], np.ones(len(X)), X[:, 1:]])
TABLE[::7, 0] = TABLE[3::9, 3] = np.nan


def rows_with_gaps():
    """New rows, with gaps in every column, also in that which had none."""
    rows = np.column_stack([ROWS[:, 0], np.zeros(len(ROWS)), ROWS[:, 1:]])
    for k in range(4):
        rows[k::5, k] = np.nan
    return rows


@pytest.mark.parametrize(
    ("named", "candidates", "y"),
    pairwise(
        [True, False],
        [["rbf"], ["linear", "estimator"]],
        [TWO, CLASSES, np.exp(NUMBERS[:, 0])],
    ),
)
@pytest.mark.slow
def test_tables_of_numbers_are_prepared_in_the_graph(y, candidates, named):
    classes = y.dtype.kind != "f"
    model = TabularClassifier() if classes else TabularRegressor(target="log")
    estimator = LogisticRegression() if classes else LinearRegression()
    model.candidates = [estimator if one == "estimator" else one for one in candidates]
    names = list("abcd")
    model.fit(pd.DataFrame(TABLE, columns=names) if named else TABLE, y)
    assert model.preprocessor_.get_feature_names_out().tolist() == (
        ["a", "c", "d", "a is missing", "d is missing"]
        if named
        else ["x0", "x2", "x3", "x0 is missing", "x3 is missing"]
    )
    rows = rows_with_gaps()
    results = of_onnx(model, rows)
    table = pd.DataFrame(rows, columns=names) if named else rows
    expected = model.predict_proba(table) if classes else model.predict(table)[:, None]
    scale = np.maximum(abs(expected), 1.0)
    np.testing.assert_allclose(results[-1] / scale, expected / scale, rtol=0, atol=1e-9)
    if classes:
        np.testing.assert_array_equal(results[0], model.predict(table))


@pytest.mark.parametrize("machine", [TabularClassifier, TabularRegressor])
def test_columns_of_text_and_dates_are_refused_by_name(machine):
    y = X.sum(axis=1) > np.median(X.sum(axis=1))
    table = pd.DataFrame({"size": X[:, 0], "color": np.where(X[:, 1] > 5, "red", "blue")})
    table["day"] = pd.date_range("2026-01-01", periods=len(X))
    model = machine(["linear"]).fit(table, y)
    with pytest.raises(ValueError, match=r"'color', 'day'"):
        to_onnx(model, X[:1])
    model = machine(["linear"], preprocess=StandardScaler()).fit(X, y)
    with pytest.raises(ValueError, match=r"StandardScaler\(\) is no step"):
        to_onnx(model, X[:1])
    model = machine(["linear"]).fit(sparse.csr_array(X), y)
    with pytest.raises(ValueError, match="A graph takes no sparse rows"):
        to_onnx(model, X[:1])


@pytest.mark.parametrize("y", [TWO, CLASSES], ids=["two", "three"])
@pytest.mark.slow
@pytest.mark.parametrize("estimator", [LogisticRegression(), BoostedTreesClassifier()], ids=str)
def test_stacks_of_classes_with_an_estimator_are_converted_with_it(y, estimator):
    stack = stacked_classifier(["linear", estimator])
    largest, others = differences(stack.fit(X, y), "float64")
    assert largest < 1e-9
    assert others == 0


@pytest.mark.parametrize(
    ("machine", "y"),
    [
        (KernelClassifier(mu=0.1), TWO),
        (KernelClassifier("linear", loss="hinge", mu=0.01), CLASSES),
    ],
    ids=["two", "three"],
)
def test_class_weights_decide_and_are_in_no_probability(machine, y):
    weighted = clone(machine).set_params(class_weight="balanced").fit(X, y)
    largest, others = differences(weighted, "float64")
    assert largest < 1e-9
    assert others == 0


def test_no_digits_cancel_far_from_zero():
    """A Matérn kernel is steep at distance zero: from squared norms it would lose most digits."""
    far = X + 1e4
    machine = KernelRegressor(Matern(0.5), mu=1e-3).fit(far, NUMBERS)
    (outputs,) = of_onnx(machine, far)
    np.testing.assert_allclose(outputs, machine.predict(far), rtol=0, atol=1e-10)


def test_arithmetic_in_single_precision_is_an_option():
    machine = KernelRegressor("rbf", mu=1e-3).fit(X, NUMBERS)
    assert 1e-7 < differences(machine, "float32", float64=False)[0] < 1e-4


def test_scores_in_the_place_of_probabilities():
    for y in (TWO, CLASSES):
        machine = KernelClassifier(mu=1e-3).fit(X, y)
        scores = of_onnx(machine, ROWS, raw_scores=True)[1]
        decision = machine.decision_function(ROWS)
        if decision.ndim == 1:
            decision = np.column_stack([-decision, decision])
        np.testing.assert_allclose(scores, decision, rtol=0, atol=1e-10)


def test_probabilities_by_name_of_the_class():
    machine, row = KernelClassifier(mu=1e-3).fit(X, TWO), ROWS[:1].astype(np.float32)
    labels, named = of_onnx(machine, row, zipmap=True)
    assert labels[0] == machine.predict(row)[0]
    assert list(named[0]) == ["no", "yes"]
    np.testing.assert_allclose([*named[0].values()], machine.predict_proba(row)[0], atol=1e-6)


def test_a_linear_machine_does_not_carry_its_rows():
    linear, rbf = (
        len(to_onnx(KernelRegressor(kernel, mu=1e-3).fit(ROWS, ROWS), X[:1]).SerializeToString())
        for kernel in (Linear(), RBF())
    )
    assert linear < ROWS.nbytes < rbf


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        *((Hamming(), "Hamming"), (2.0 * Columns(Hamming(), [0]), "Hamming")),
        *((Function(np.inner), "Function"), (Precomputed(), "Precomputed")),
    ],
)
def test_kernels_without_a_form_are_refused_by_name(kernel, name):
    codes = np.random.default_rng(0).integers(0, 3, (20, 2)).astype(float)
    rows = codes @ codes.T if kernel.pairwise else codes
    machine = KernelRegressor(kernel, mu=0.1).fit(rows, codes[:, 0])
    with pytest.raises(ValueError, match=f"{name} has no ONNX form"):
        to_onnx(machine, rows[:1])


def test_a_constant_kernel_has_an_output_for_each_row():
    kernel = 3.0 * Constant(2.0) + Normalized(Constant(2.0))
    machine = KernelRegressor(kernel, mu=0.1).fit(X, NUMBERS)
    (outputs,) = of_onnx(machine, ROWS)
    np.testing.assert_allclose(outputs, machine.predict(ROWS), rtol=0, atol=1e-10)


def test_rows_that_are_not_of_the_features_are_refused():
    machine = KernelClassifier(mu=1e-3).fit(X, TWO)
    with pytest.raises(ValueError, match=r"was fitted to 3 features, but the row .* has 2"):
        to_onnx(machine, X[:1, :2])
    columns = [(name, FloatTensorType([None, 1])) for name in "abc"]
    with pytest.raises(ValueError, match="got 3 inputs"):
        to_onnx(machine, initial_types=columns)


@pytest.mark.parametrize("machine", [KernelRegressor(mu=1e-3), TabularClassifier()])
def test_machines_are_to_be_fitted_first(machine):
    options = {"zipmap": False} if is_classifier(machine) else None
    with pytest.raises(NotFittedError, match="not fitted yet"):
        to_onnx(machine, X[:1], options=options)


def test_old_operators_are_refused():
    with pytest.raises(ValueError, match="operators of ONNX 13 or later, got target_opset=12"):
        to_onnx(KernelRegressor(mu=1e-3).fit(X, NUMBERS), X[:1], target_opset=12)


def test_fingerprints_without_bits_resemble_only_each_other():
    bits = (np.random.default_rng(0).random((20, 6)) < 0.4).astype(float)
    bits[:2] = 0.0
    machine = KernelRegressor(Tanimoto() + Normalized(Tanimoto()), mu=0.1).fit(bits, bits[:, 0])
    (outputs,) = of_onnx(machine, bits)
    np.testing.assert_allclose(outputs.ravel(), machine.predict(bits), rtol=0, atol=1e-12)
