"""scikit-learn's own checks of estimators."""

import pytest
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks
from stacks import stacked_classifier, stacked_regressor

from looms import (
    Intervals,
    KernelClassifier,
    KernelRegressor,
    Search,
    TabularClassifier,
    TabularRegressor,
)
from looms.kernels import RBF

#: Expected failures are strict (see pyproject.toml): one that passes fails the run.
WEIGHTS_ARE_NO_COPIES = (
    "hyper-parameters are chosen by leaving one sample out: a sample of weight k is left out as a "
    "whole, while of k copies one is left out and the others stay, so the choice differs"
)

PROBABILITIES_ARE_OF_LEFT_OUT_SAMPLES = (
    "probabilities are learned from leave-one-out outputs: a sample of weight k is left out as a "
    "whole, while of k copies one is left out and the others stay"
)

ESTIMATORS = [
    KernelClassifier(mu=1e-3),
    KernelRegressor(mu=1e-3),
    KernelClassifier(),
    KernelRegressor(),
    stacked_classifier(["linear", "rbf"]),
    stacked_regressor(["linear", "rbf"]),
    TabularClassifier(["linear", "rbf"]),
    TabularRegressor(["linear", "rbf"]),
    Intervals(Ridge()),
]

#: What runs other code, or takes long.
VARIANTS = [
    KernelClassifier(RBF(0.1), loss="hinge", mu=0.01),
    Intervals(LinearRegression(), cv=3),
    stacked_regressor(
        [KernelRegressor(k, search=Search(method="grid")) for k in ["linear", "normalized_linear"]]
    ),
    KernelClassifier(
        "linear",
        cv=3,
        class_weight="balanced",
        calibration="isotonic",
        search=Search(prior=True),
    ),
]

# Some checks fit random labels and constant features: the search then ends at a bound, and the
# machine may predict one class; or too few rows for the folds of a stack.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The candidates are not stacked"),
    pytest.mark.filterwarnings("ignore::looms.BoundWarning"),
    pytest.mark.filterwarnings("ignore::looms.OneClassWarning"),
]


def expected_failures(estimator):
    if isinstance(estimator, KernelRegressor) and estimator.mu is not None:
        return {}
    classifiers = KernelClassifier | TabularClassifier
    if isinstance(estimator, classifiers) and estimator.calibration is not None:
        return {
            "check_sample_weight_equivalence_on_dense_data": PROBABILITIES_ARE_OF_LEFT_OUT_SAMPLES,
            "check_sample_weight_equivalence_on_sparse_data": PROBABILITIES_ARE_OF_LEFT_OUT_SAMPLES,
        }
    choosing = KernelRegressor | TabularRegressor
    if not isinstance(estimator, choosing):
        return {}
    return {
        "check_sample_weight_equivalence_on_dense_data": WEIGHTS_ARE_NO_COPIES,
        "check_sample_weight_equivalence_on_sparse_data": WEIGHTS_ARE_NO_COPIES,
    }


def checks_of(estimators):
    mark = parametrize_with_checks(estimators, expected_failed_checks=expected_failures).mark
    names, values = mark.args
    return pytest.mark.parametrize(names, list(values), **mark.kwargs)  # a generator before 1.8


@checks_of(ESTIMATORS)
def test_sklearn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@checks_of(VARIANTS)
def test_sklearn_checks_of_variants(estimator, check):
    check(estimator)
