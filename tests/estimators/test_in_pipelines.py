"""Intervals, sets and the machine itself through pipelines and searches."""

import pytest
from evaluated import evaluated
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import looms
from looms import (
    KernelClassifier,
    KernelRegressor,
    NonconformityClassifier,
)
from looms.diagnostics import case_deletion
from looms.estimators._in_pipelines import parts_of
from looms.report import cautions

X, Y = (values[:80] for values in load_diabetes(return_X_y=True))
FLOWERS, KINDS = load_iris(return_X_y=True)
STEPS = [StandardScaler(), "passthrough", SelectKBest(k=4)]
SCALED = SelectKBest(k=4).fit_transform(StandardScaler().fit_transform(X), Y)
MACHINE = KernelRegressor(mu=0.1).fit(SCALED, Y)


SHORT = make_pipeline(SelectKBest(k=4), KernelRegressor(mu=0.1))
SEARCH = GridSearchCV(SHORT, {"kernelregressor__mu": [0.1]}, cv=3)
MODELS = {
    "pipeline": make_pipeline(*STEPS, KernelRegressor(mu=0.1)),
    "a pipeline in a pipeline": make_pipeline(StandardScaler(), SHORT),
    "search of a pipeline": make_pipeline(StandardScaler(), SEARCH),
    "steps of one name": Pipeline([("selectkbest", StandardScaler()), ("last", SHORT)]),
}


@pytest.mark.parametrize("kind", MODELS)
def test_intervals_through(kind):
    model = MODELS[kind].fit(X, Y)
    with pytest.raises(NotFittedError, match="evaluate"):
        looms.predict_interval(model, X[:9])
    last = parts_of(model).model
    evaluated(last)
    assert_array_equal(
        looms.predict_interval(model, X[:9], 0.8, method="minmax"),
        evaluated(MACHINE).predict_interval(SCALED[:9], 0.8, "minmax"),
    )
    assert_array_equal(last.loo_.outputs, MACHINE.loo_.outputs)
    assert_array_equal(case_deletion(model).rms_change, case_deletion(MACHINE).rms_change)


@pytest.mark.parametrize(
    "machine", [KernelClassifier(mu=1e-3), NonconformityClassifier(random_state=0)], ids=repr
)
def test_sets_through_a_pipeline(machine):
    model = make_pipeline(StandardScaler(), machine).fit(FLOWERS, KINDS)
    machine.evaluate()
    scaled = StandardScaler().fit_transform(FLOWERS)
    assert_array_equal(
        looms.predict_set(model, FLOWERS[::7], 0.95),
        machine.predict_set(scaled[::7], 0.95),
    )


def test_what_cannot_give_them_says_so():
    ridge = make_pipeline(StandardScaler(), Ridge()).fit(X, Y)
    with pytest.raises(TypeError, match="Ridge"):
        cautions(ridge)
    with pytest.raises(TypeError, match="Pipeline"):
        cautions(Pipeline([]))
    with pytest.raises(TypeError, match="KernelRegressor is a class"):
        cautions(KernelRegressor)
    with pytest.raises(TypeError, match=r"Ridge.* predict_interval"):
        looms.predict_interval(ridge, X)
    with pytest.raises(TypeError, match="KernelRegressor has no predict_set"):
        looms.predict_set(MACHINE, SCALED)
    bayes = GaussianNB().fit(FLOWERS, KINDS)
    with pytest.raises(TypeError, match="predict_set"):
        looms.predict_set(bayes, FLOWERS)


@pytest.mark.parametrize(
    "search",
    [clone(SEARCH), clone(SEARCH).set_params(refit=False).fit(X, Y)],
    ids=["new", "no refit"],
)
def test_a_search_without_its_best_is_to_be_fitted(search):
    message = "refit=True"
    with pytest.raises(NotFittedError, match=message):
        cautions(search)
    with pytest.raises(NotFittedError, match=message):
        looms.predict_interval(search, X)
