"""A support vector machine that chose its hyper-parameters, and the SVC that holds them."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from stacks import stacked_classifier

from looms import KernelClassifier, Search
from looms.diagnostics import deviance, excess_error, goodness_of_fit, influence
from looms.kernels import RBF

pytestmark = pytest.mark.filterwarnings("ignore::looms.BoundWarning")


def sample(n=40, k=2, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    score = X[:, 0] + 0.7 * X[:, 1] ** 2 + random.normal(scale=0.6, size=n)
    cuts = np.quantile(score, np.linspace(0, 1, k + 1)[1:-1] ** 2)
    return X, np.array(["ant", "bee", "cow"])[np.searchsorted(cuts, score)]


def svm(kernel="rbf", **options):
    search = Search("press", resolution=4.0)
    return KernelClassifier(kernel, loss="hinge", search=search, **options)


def svc_of(chosen, factor=1.0, **options):
    """The SVC of scikit-learn with its kernel and C, or a multiple of this."""
    C = factor / (chosen.mu_ * len(chosen.X_fit_))
    return SVC(C=C, gamma=chosen.kernel_.gamma, tol=1e-9, **options)


def mean_weight(class_weight, y):
    factors = class_weight if isinstance(class_weight, dict) else {}
    return np.mean([factors.get(label, 1.0) for label in y])


def check_errors(chosen, X, y):
    """The excess error, of which the predictions are those of the model and its outputs."""
    found = excess_error(chosen, X, y)
    np.testing.assert_array_equal(found.fits.predicted, chosen.predict(X))
    without = chosen.classes_[(chosen.loo_.outputs > chosen.threshold_).astype(int)]
    np.testing.assert_array_equal(found.fits.predicted_without, without)
    return found


def same(found, expected, rtol=1e-6):
    np.testing.assert_allclose(found.contributions, expected.contributions, rtol=rtol)
    np.testing.assert_allclose(found.cv_contributions, expected.cv_contributions, rtol=rtol)


@pytest.mark.slow
@pytest.mark.parametrize("class_weight", [None, "balanced", {"ant": 3.0}])
def test_the_machine_is_an_svc(class_weight):
    X, y = sample()
    chosen = svm(class_weight=class_weight).fit(X, y)
    # Weights have mean one, those of SVC multiply C.
    svc = svc_of(chosen, 1.0 / mean_weight(class_weight, y), class_weight=class_weight)
    found = deviance(chosen, X, y)
    changed = chosen.set_params(class_weight={"ant": 9.0})  # takes no effect before the next fit
    assert deviance(changed, X, y).deviance == found.deviance
    same(found, deviance(svc, X, y))
    other = None if class_weight else "balanced"
    assert abs(found.deviance - deviance(svc.set_params(class_weight=other), X, y).deviance) > 0.01
    others = svc_of(chosen, 8.0, class_weight=class_weight)
    assert abs(found.deviance - deviance(others, X, y).deviance) > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["rbf", "normalized_cubic"])
def test_errors_are_those_of_its_leave_one_out_outputs(kernel):
    X, y = sample()
    check_errors(svm(kernel).fit(X, y), X, y)


def test_a_kernel_matrix():
    X, y = sample()
    K = RBF(0.3)(X)
    chosen = svm("precomputed").fit(K, y)
    svc = SVC(C=1 / (len(y) * chosen.mu_), gamma=0.3, tol=1e-9)
    same(deviance(chosen, K, y), deviance(svc, X, y))


@pytest.mark.slow
def test_every_statistic_takes_it():
    X, y = sample()
    chosen = svm().fit(X, y)
    svc = svc_of(chosen)
    options = {"n_bootstrap": 19, "random_state": 0}
    found, expected = (goodness_of_fit(m, X, y, **options) for m in (chosen, svc))
    np.testing.assert_allclose(found.bootstrapped, expected.bootstrapped, rtol=1e-5)
    found, expected = (influence(m, X, y).values for m in (chosen, svc))
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("threshold", [0.2, "balanced"])
@pytest.mark.slow
def test_a_threshold_counts_in_the_errors_and_in_nothing_else(threshold):
    X, y = sample(n=50, seed=4)
    chosen, at_zero = svm(threshold=threshold), svm(calibration=None)
    chosen, at_zero = chosen.fit(X, y), at_zero.fit(X, y)
    assert chosen.threshold_ != 0
    same(deviance(chosen, X, y), deviance(at_zero, X, y))
    found = check_errors(chosen, X, y)
    assert found.leave_one_out != excess_error(at_zero, X, y).leave_one_out


@pytest.mark.slow
def test_a_threshold_counts_where_the_machine_is_refitted():
    X, y = sample()
    chosen = make_pipeline(StandardScaler(), svm(threshold=0.97)).fit(X, y)
    found = excess_error(chosen, X, y, preprocessing="refitted")
    np.testing.assert_array_equal(found.fits.predicted, chosen.predict(X))
    assert (
        found.fits.predicted
        != chosen.set_params(kernelclassifier__threshold=0.5).fit(X, y).predict(X)
    ).any()


@pytest.mark.parametrize("preprocessing", ["held", "refitted"])
@pytest.mark.slow
def test_a_stack_is_diagnosed_with_its_members_in_a_pipeline(preprocessing):
    X, y = sample(seed=1)
    stack = stacked_classifier(["linear", "rbf"])
    model = make_pipeline(StandardScaler(), stack).fit(X, y)
    assert len(model[-1].members_) == 2
    found = excess_error(model, X, y, preprocessing=preprocessing)
    np.testing.assert_array_equal(found.fits.predicted, model.predict(X))
