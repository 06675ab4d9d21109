"""scikit-learn's own checks of estimators."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from looms import SVCCV, LSSVMClassifier, LSSVMClassifierCV, LSSVMRegressor, LSSVMRegressorCV

#: Expected failures are strict (see pyproject.toml): one that passes fails the run.
WEIGHTS_ARE_NO_COPIES = (
    "hyper-parameters are chosen by leaving one sample out: a sample of weight k is left out as a "
    "whole, while of k copies one is left out and the others stay, so the choice differs"
)

PROBABILITIES_ARE_OF_LEFT_OUT_SAMPLES = (
    "probabilities are learned from leave-one-out outputs: a sample of weight k is left out as a "
    "whole, while of k copies one is left out and the others stay"
)

#: Without probabilities nothing but the choice of hyper-parameters is an exception.
ESTIMATORS = [
    LSSVMClassifier(),
    LSSVMClassifier("linear", class_weight="balanced", calibration="isotonic"),
    LSSVMClassifier(calibration=None),
    LSSVMClassifier("linear", class_weight="balanced", calibration=None),
    LSSVMRegressor(),
    LSSVMRegressor("quadratic"),
    LSSVMClassifierCV(),
    LSSVMClassifierCV("linear", calibration=None),
    LSSVMClassifierCV(["linear", "rbf"], optimizer="scg", calibration=None),
    LSSVMRegressorCV(),
    LSSVMRegressorCV(["linear", "rbf"]),
    SVCCV(resolution=2.0),
    SVCCV("linear", "ber", param_grid={"C": [0.1, 1.0, 10.0]}, search="grid", probability=None),
]


def expected_failures(estimator):
    if isinstance(estimator, LSSVMClassifier) and estimator.calibration is not None:
        return {
            "check_sample_weight_equivalence_on_dense_data": PROBABILITIES_ARE_OF_LEFT_OUT_SAMPLES,
            "check_sample_weight_equivalence_on_sparse_data": PROBABILITIES_ARE_OF_LEFT_OUT_SAMPLES,
        }
    if not isinstance(estimator, LSSVMClassifierCV | LSSVMRegressorCV | SVCCV):
        return {}
    return {
        "check_sample_weight_equivalence_on_dense_data": WEIGHTS_ARE_NO_COPIES,
        "check_sample_weight_equivalence_on_sparse_data": WEIGHTS_ARE_NO_COPIES,
    }


CHECKS = parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures).mark
NAMES, VALUES = CHECKS.args


# Some checks fit random labels and constant features: the search then ends at a bound, and the
# machine may predict one class.
@pytest.mark.filterwarnings("ignore::looms.BoundWarning")
@pytest.mark.filterwarnings("ignore::looms.OneClassWarning")
@pytest.mark.parametrize(NAMES, list(VALUES), **CHECKS.kwargs)  # before 1.8 VALUES is a generator
def test_sklearn_checks(estimator, check):
    check(estimator)
