"""The error-against-bound figure holds finished numbers and draws them."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC

from looms import NonconformityClassifier
from looms.report import ErrorAgainstBoundDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    matplotlib.pyplot.close("all")


@pytest.fixture
def fitted():
    X, y = make_classification(200, 4, flip_y=0.2, random_state=0)
    pool = {"C": [1.0, 100.0], "gamma": [0.1, 1.0]}
    return NonconformityClassifier(pool, random_state=0).fit(X[:100], y[:100]), X[100:], y[100:]


@pytest.mark.parametrize("method", ["dkw", "vc"])
def test_the_curve_of_an_estimator(fitted, method):
    model, X, y = fitted
    display = ErrorAgainstBoundDisplay.from_estimator(model, X, y, method=method, delta=0.1)
    bound = model.error_bound(X, method=method, delta=0.1)
    wrong = model.predict(X) != y
    np.testing.assert_array_equal(display.bounds, np.unique(bound))
    expected = [wrong[bound <= value].mean() for value in display.bounds]
    np.testing.assert_allclose(display.errors, expected, rtol=1e-12)
    assert display.errors[-1] == pytest.approx(1 - model.score(X, y))
    np.testing.assert_array_equal(display.line_.get_ydata(), display.errors)
    assert display.ax_.get_xlabel() == f"Bound ({method}, delta = 0.1)"
    assert display.line_.get_label() == "NonconformityClassifier"
    assert display.figure_ is display.ax_.figure


def test_several_curves_in_given_axes(fitted):
    model, X, y = fitted
    _, ax = matplotlib.pyplot.subplots()
    first = ErrorAgainstBoundDisplay.from_predictions(
        y, model.predict(X), bound=model.epsilon_crit(X), bound_name="epsilon", ax=ax, color="red"
    )
    second = first.plot(ax, name="again")
    assert second is first
    assert len(ax.lines) == 2
    assert ax.lines[0].get_color() == "red"
    assert ax.get_xlabel() == "epsilon"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["again"]


def test_bad_input(fitted):
    _, X, y = fitted
    with pytest.raises(NotFittedError):
        ErrorAgainstBoundDisplay.from_estimator(NonconformityClassifier(), X, y)
    with pytest.raises(TypeError, match="SVC has no error_bound"):
        ErrorAgainstBoundDisplay.from_estimator(SVC().fit(X, y), X, y)
    with pytest.raises(ValueError, match="y_true and y_pred"):
        ErrorAgainstBoundDisplay.from_predictions(y, y[:5], bound=np.zeros(100))
    with pytest.raises(ValueError, match="bound and wrong"):
        ErrorAgainstBoundDisplay.from_predictions(y, y, bound=np.zeros(5))
