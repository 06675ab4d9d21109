"""Graphs with candidates of scikit-learn give what looms gives, or are refused by name."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("skl2onnx", reason="skl2onnx is not installed", exc_type=ImportError)
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed", exc_type=ImportError)

from _onnx_cases import CLASSES, NUMBERS, TWO, X, differences
from pairwise import in_turn
from skl2onnx import to_onnx
from sklearn import (
    discriminant_analysis,
    ensemble,
    gaussian_process,
    linear_model,
    naive_bayes,
    neighbors,
    neural_network,
    svm,
    tree,
)
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cross_decomposition import PLSRegression
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stacks import stacked_classifier, stacked_regressor

from looms import TabularClassifier
from looms._words import clean
from looms.onnx import register_converters


@pytest.fixture(autouse=True, scope="module")
def _registered():
    register_converters()


def scaled(estimator):
    return make_pipeline(StandardScaler(), estimator)


def searched(estimator, **grid):
    return GridSearchCV(estimator, grid, cv=2)


#: Classifiers whose graphs of skl2onnx are right.
RIGHT_CLASSIFIERS = [
    linear_model.LogisticRegression(),
    linear_model.SGDClassifier(loss="log_loss", random_state=0),
    neural_network.MLPClassifier(max_iter=30, random_state=0),
    naive_bayes.GaussianNB(),
    discriminant_analysis.QuadraticDiscriminantAnalysis(),
    neighbors.KNeighborsClassifier(),
    tree.DecisionTreeClassifier(max_depth=3, random_state=0),
    ensemble.RandomForestClassifier(5, random_state=0),
    ensemble.GradientBoostingClassifier(n_estimators=5, random_state=0),
    CalibratedClassifierCV(svm.LinearSVC(), cv=2),
    CalibratedClassifierCV(linear_model.RidgeClassifier(), cv=2),
    OneVsRestClassifier(linear_model.LogisticRegression()),
    scaled(linear_model.LogisticRegression()),
    searched(linear_model.LogisticRegression(), C=[0.1, 1.0]),
]
OTHER_CLASSIFIERS = [
    svm.SVC(),
    svm.LinearSVC(),
    linear_model.RidgeClassifier(),
    linear_model.SGDClassifier(random_state=0),
    OneVsRestClassifier(svm.LinearSVC()),
    scaled(svm.SVC()),
    searched(svm.SVC(), C=[0.1, 1.0]),
    CalibratedClassifierCV(svm.SVC(), cv=2),
    discriminant_analysis.LinearDiscriminantAnalysis(),
    ensemble.AdaBoostClassifier(n_estimators=5, random_state=0),
    ensemble.BaggingClassifier(n_estimators=3, random_state=0),
    ensemble.HistGradientBoostingClassifier(max_iter=5),
    gaussian_process.GaussianProcessClassifier(),
    naive_bayes.BernoulliNB(binarize=5.0),
    neighbors.KNeighborsClassifier(weights="distance"),
    neighbors.RadiusNeighborsClassifier(100.0),
    DummyClassifier(),
]
RIGHT_REGRESSORS = [
    linear_model.Ridge(),
    linear_model.Lasso(0.1),
    linear_model.HuberRegressor(),
    linear_model.BayesianRidge(),
    neural_network.MLPRegressor(max_iter=30, random_state=0),
    neighbors.KNeighborsRegressor(),
    tree.DecisionTreeRegressor(max_depth=3, random_state=0),
    ensemble.RandomForestRegressor(5, random_state=0),
    ensemble.GradientBoostingRegressor(n_estimators=5, random_state=0),
    PLSRegression(),
    scaled(linear_model.Ridge()),
    searched(linear_model.Ridge(), alpha=[0.1, 1.0]),
]
OTHER_REGRESSORS = [
    svm.SVR(),
    neighbors.KNeighborsRegressor(weights="distance"),
    neighbors.RadiusNeighborsRegressor(100.0),
    gaussian_process.GaussianProcessRegressor(),
    ensemble.AdaBoostRegressor(n_estimators=5, random_state=0),
    ensemble.BaggingRegressor(n_estimators=3, random_state=0),
    ensemble.HistGradientBoostingRegressor(max_iter=5),
    KernelRidge(),
    DummyRegressor(),
]


def graph_is_the_model(candidates, y, dtype):
    """True if the graph is, False if it is refused in one line that names the candidate."""
    classes = y.dtype.kind != "f"
    model = (stacked_classifier if classes else stacked_regressor)(candidates)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    refusal = ""
    try:
        largest, others = differences(model, dtype)
    except ValueError as error:
        refusal = str(error)
    if refusal:
        assert refusal.startswith(clean(repr(model.members_[-1].estimator)))
        assert "\n" not in refusal
        return False
    assert largest < 2e-4
    assert others == 0
    return True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("y", "dtype"), [(TWO, "float32"), (CLASSES, "float64")], ids=["two", "three"]
)
@pytest.mark.parametrize("estimator", [*RIGHT_CLASSIFIERS, *OTHER_CLASSIFIERS], ids=str)
def test_graphs_of_classifiers_are_right_or_refused(estimator, y, dtype):
    right = graph_is_the_model([estimator], y, dtype)
    if estimator in RIGHT_CLASSIFIERS:
        assert right
    elif right:
        assert hasattr(estimator.fit(X, y), "predict_proba")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "dtype"), in_turn([*RIGHT_REGRESSORS, *OTHER_REGRESSORS], ["float32", "float64"])
)
def test_graphs_of_regressors_are_right_or_refused(estimator, dtype):
    right = graph_is_the_model([estimator], NUMBERS[:, 0], dtype)
    assert right or estimator not in RIGHT_REGRESSORS


@pytest.mark.slow
@pytest.mark.parametrize("y", [TWO, CLASSES], ids=["two", "three"])
def test_wrong_graphs_are_refused_beside_kernels(y):
    for wrong in (svm.SVC(), scaled(svm.SVC(C=10.0))):
        model = stacked_classifier(["linear", wrong]).fit(X, y)
        with pytest.raises(
            ValueError, match=r"SVC\(.*\) has no ONNX form as a candidate, since it"
        ):
            to_onnx(model, X[:1])


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["onnxruntime", "onnx"])
@pytest.mark.parametrize("named", [True, False])
def test_models_of_tables_are_compared_with_either_runtime(runtime, named, monkeypatch):
    """The rows of the table are those of the fit, back from the prepared ones, with their gaps."""
    if runtime == "onnx":
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
    gaps = np.where(np.arange(X.size).reshape(X.shape) % 7 == 0, np.nan, X)
    table = np.column_stack([np.ones(len(X)), 1e3 * gaps])
    given = pd.DataFrame(table, columns=list("abcd")) if named else table
    seen = []
    monkeypatch.setattr(TabularClassifier, "predict", lambda _, rows: seen.append(rows) or ["no"])
    wrong = discriminant_analysis.LinearDiscriminantAnalysis()
    right = linear_model.LogisticRegression()
    with pytest.raises(ValueError, match=r"LinearDiscriminantAnalysis\(\) has no .* by up to 0\."):
        to_onnx(TabularClassifier([wrong]).fit(given, TWO), table[:1])
    with pytest.raises(ValueError, match=r"TabularClassifier .* other classes"):
        to_onnx(TabularClassifier([right]).fit(given, TWO), table[:1])
    (rows,) = seen
    np.testing.assert_allclose(rows[0, 1:], table[0, 1:], rtol=1e-12)
    assert (rows[:, 0] == 0).all()


def test_candidates_that_take_the_columns_of_the_table_are_refused():
    frame = pd.DataFrame(X, columns=list("abc"))
    model = TabularClassifier([linear_model.LogisticRegression()], columns="raw").fit(frame, TWO)
    with pytest.raises(ValueError, match="columns='prepared'"):
        to_onnx(model, X[:1])
