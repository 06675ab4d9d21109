"""The member of largest margin against its definition."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from looms import KernelClassifier
from papers.largest_margin import LargestMarginClassifier

MIXED = [
    SVC(C=1.0),
    make_pipeline(StandardScaler(), LogisticRegression()),
    KernelClassifier(mu=0.1),
]


@pytest.mark.slow
@parametrize_with_checks([LargestMarginClassifier({"C": [1.0, 100.0], "gamma": [0.1, 1.0]})])
def test_sklearn_checks(estimator, check):
    check(estimator)


X, Y = load_iris(return_X_y=True)
TRAIN, NEW = np.arange(0, 150, 2), np.arange(1, 150, 2)


def outputs_of_members(X, y, X_new):
    return np.stack([clone(member).fit(X, y).decision_function(X_new) for member in MIXED])


def test_the_largest_margin_decides():
    model = LargestMarginClassifier(MIXED).fit(X[TRAIN], Y[TRAIN])
    outputs = outputs_of_members(X[TRAIN], Y[TRAIN], X[NEW])
    ordered = np.sort(outputs, axis=2)
    strongest = (ordered[..., -1] - ordered[..., -2]).argmax(axis=0)
    assert len(set(strongest)) > 1
    np.testing.assert_array_equal(model.chosen_model(X[NEW]), strongest)
    winner = outputs[strongest, np.arange(75)].argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X[NEW]), winner)


def test_of_two_classes_the_largest_output_decides():
    y = Y == 1
    model = LargestMarginClassifier(MIXED).fit(X[TRAIN], y[TRAIN])
    outputs = outputs_of_members(X[TRAIN], y[TRAIN], X[NEW])
    largest = outputs[np.abs(outputs).argmax(axis=0), np.arange(75)]
    np.testing.assert_allclose(model.decision_function(X[NEW]), largest, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(X[NEW]), largest > 0)
