"""A fitted model as a value: what its parts say together, and what copies and changes keep."""

import copy
import gc
import pickle
import weakref
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from looms import KernelClassifier, KernelRegressor, TabularClassifier, TabularRegressor
from looms.blocks import ArrayBlocks

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
Y = X[:, 0] + 0.5 * rng.normal(size=60)
LABELS = np.where(Y > 0, "b", "a")
NEW = X[:5] + 0.1
MODELS = {
    "kernel": (KernelRegressor(mu=0.01), Y),
    "two targets": (KernelRegressor(mu=0.01), np.column_stack([Y, Y**2])),
    "classes": (KernelClassifier(mu=0.01), LABELS),
    "landmarks": (KernelRegressor("linear", n_landmarks=20), Y),
    "stack on landmarks": (
        TabularRegressor([KernelRegressor(k, n_landmarks=20) for k in ("linear", "rbf")]),
        np.sin(3 * Y),
    ),
    "table of numbers": (TabularRegressor(["rbf"]), Y),
    "table of two targets": (TabularRegressor(["rbf"]), np.column_stack([Y, -Y])),
    "transformed": (TabularRegressor(["rbf"]), np.exp(Y)),
    "table of classes": (TabularClassifier(["linear", "rbf"]), LABELS),
    "stack": (TabularRegressor(["rbf", DecisionTreeRegressor(max_depth=2)]), np.sin(3 * Y)),
}


@pytest.fixture(scope="module")
def fitted():
    return {name: clone(model).fit(X, y) for name, (model, y) in MODELS.items()}


@pytest.mark.parametrize("name", MODELS)
def test_parts_of_a_model_with_more_or_fewer_rows_agree(name, fitted, tmp_path):
    model, y = fitted[name], MODELS[name][1]
    more = model.with_rows(NEW, y[:5])
    less = more.without(np.arange(60, 65))
    for other, expected in ((more, np.concatenate([y, y[:5]])), (less, y)):
        assert other.certificate_.holds
        values = other.fitted_.rows.y
        if expected.dtype.kind == "f":
            assert_allclose(values, expected)
            assert_allclose(other.loo_.y, expected)
        else:
            assert_array_equal(values, expected)
        assert len(other.evaluate(nested=False).predictions.y) == len(expected)
        if name != "stack":  # files hold no trees of scikit-learn
            other.save(tmp_path / "m.skops")
    if name != "stack":  # trees are refitted in other folds
        assert_allclose(less.loo_.outputs, model.loo_.outputs, atol=1e-8)


def test_a_value_does_not_change(fitted):
    with pytest.raises(FrozenInstanceError):
        fitted["kernel"].fitted_.rule = None
    with pytest.raises(ValueError, match="do not agree"):
        replace(fitted["kernel"].fitted_, loo_outputs=np.zeros(3))


def test_changes_are_those_of_the_parameters_of_the_fit():
    model = KernelClassifier(mu=0.01, threshold="balanced").fit(X, LABELS)
    less = model.set_params(threshold="recall=0.9", calibration=None).without([0])
    assert (less.threshold, less.calibration) == ("balanced", "sigmoid")
    again = clone(less).fit(X[1:], LABELS[1:])
    assert_allclose(again.threshold_, less.threshold_)


def test_rows_in_blocks_stay_there():
    """Models on landmarks that were tuned anew without a fold take no training rows."""
    model = KernelRegressor(n_landmarks=10).fit(ArrayBlocks(X), Y)
    model.evaluate()
    ends = model.predict_interval(NEW)
    again = pickle.loads(pickle.dumps(model))
    assert not again.fitted_.has_rows
    assert_allclose(again.predict_interval(NEW), ends)


def test_columns_without_preparation_are_checked_for_intervals():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=["p", "q", "r"])
    model = TabularRegressor(["rbf"], preprocess=None, target="sqrt").fit(table, np.exp(Y))
    model.evaluate()
    with pytest.raises(ValueError, match="same order"):
        model.predict_interval(table[["r", "q", "p"]])
    of_array = clone(model).fit(X, np.exp(Y))
    of_array.evaluate()
    with pytest.raises(ValueError, match="2 features"):
        of_array.predict_interval(X[:3, :2])


def test_models_go_when_nothing_holds_them():
    model = KernelRegressor(mu=0.01).fit(X, Y)
    scores = model.evaluate()
    model.predict_interval(NEW, method="scaled")
    system = weakref.ref(model.left_out())
    gc.disable()
    try:
        del model, scores
        assert system() is None
    finally:
        gc.enable()


def test_copies_share_the_value_and_not_the_scores():
    model = KernelRegressor(mu=0.01).fit(X, Y)
    other = copy.copy(model)
    other.evaluate()
    assert other.fitted_ is model.fitted_
    with pytest.raises(ValueError, match="evaluate"):
        model.predict_interval(NEW)


def test_intervals_of_transformed_numbers_scale_with_them():
    positive = np.exp(Y)
    ends = []
    for scale in (1.0, 1e6):
        model = TabularRegressor(["linear", Ridge()], target="log").fit(X, scale * positive)
        model.evaluate(nested=False)
        ends.append(model.predict_interval(NEW, 0.8) / scale)
    assert_allclose(ends[1], ends[0], rtol=1e-9)


def test_a_table_is_certified_by_its_own_rows():
    model = TabularRegressor(["rbf"], target="none").fit(X, Y)
    assert not model.certify(X=X[::-1]).holds
    in_blocks = TabularRegressor([KernelRegressor(n_landmarks=10)], target="none", preprocess=None)
    again = pickle.loads(pickle.dumps(in_blocks.fit(ArrayBlocks(X, size=16), Y)))
    assert again.certify(X=X).holds
    with pytest.raises(ValueError, match="59 rows"):
        again.certify(X=X[1:])


def test_coefficients_are_those_of_one_member():
    targets = Y + np.abs(X[:, 1])
    assert TabularRegressor(["linear"], target="none").fit(X, targets).coef_.shape == (3,)
    stack = TabularRegressor(["linear", "rbf"], target="none").fit(X, targets)
    assert len(stack.members_) == 2
    with pytest.raises(AttributeError, match="members_"):
        stack.coef_  # noqa: B018
