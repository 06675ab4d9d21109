"""Estimators with given hyper-parameters against ridge regressions of scikit-learn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

from looms import KernelClassifier, KernelRegressor
from looms.kernels import RBF

N = 30
rng = np.random.default_rng(1)
X = rng.normal(size=(N, 3))
X_NEW = rng.normal(size=(12, 3))
NOISY = X[:, 0] + 0.5 * rng.normal(size=N)
WEIGHT = rng.uniform(0.3, 3.0, size=N)
TARGETS = {
    "one target": NOISY,
    "two targets": np.column_stack([NOISY, np.sin(X[:, 1]) * 100]),
}
LABELS = {
    "two classes": np.where(NOISY > 0.6, "yes", "no"),
    "three classes": np.digitize(NOISY, [-0.5, 0.6]),
}


def features_of(K):
    """Features of which ``K`` is the matrix of inner products."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


class TestMachine:
    """The machine against scikit-learn's ridge regressions of the same loss."""

    def test_any_kernel_is_ridge_regression_on_its_features(self):
        kernel = RBF(gamma=0.3)
        Phi = features_of(kernel(np.vstack([X, X_NEW])))
        ours = KernelRegressor(kernel, mu=0.02).fit(X, NOISY, sample_weight=WEIGHT)
        theirs = Ridge(alpha=0.02 * N, solver="cholesky").fit(
            Phi[:N], NOISY, WEIGHT / WEIGHT.mean()
        )
        assert_allclose(ours.predict(X_NEW), theirs.predict(Phi[N:]), rtol=1e-8)

    @pytest.mark.parametrize(
        "model",
        [
            KernelRegressor("linear", mu=0.02),
            KernelRegressor("linear", mu=0.02, n_landmarks=3),
            KernelClassifier("linear", mu=0.02),
            KernelClassifier("linear", mu=0.02, loss="hinge"),
        ],
        ids=str,
    )
    def test_weights_of_the_features(self, model):
        """Of every linear model, whether it was solved for them or for the rows; of no other."""
        regressor = isinstance(model, KernelRegressor)
        y = TARGETS["two targets"] if regressor else LABELS["two classes"]
        for rows in (slice(None), slice(5) if regressor else slice(16)):
            model.fit(X[rows], y[rows])
            f = X_NEW @ model.coef_ + model.intercept_
            assert_allclose(f, model._outputs(X_NEW), rtol=1e-9, atol=1e-9)
        assert not hasattr(model.set_params(kernel="rbf").fit(X, y), "coef_")

    def test_without_intercept_is_kernel_ridge(self):
        ours = KernelRegressor(RBF(gamma=0.3), mu=0.02, fit_intercept=False).fit(X, NOISY)
        theirs = KernelRidge(alpha=0.02 * N, kernel="rbf", gamma=0.3).fit(X, NOISY)
        assert_allclose(ours.predict(X_NEW), theirs.predict(X_NEW), rtol=1e-10)
        assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-10)
        assert ours.intercept_ == 0

    def test_three_classes_are_one_against_the_rest(self):
        labels = LABELS["three classes"]
        model = KernelClassifier(RBF(gamma=0.3), mu=0.02).fit(X, labels)
        decision = model.decision_function(X_NEW)
        outputs = decision + model.threshold_
        for k, label in enumerate(model.classes_):
            single = KernelClassifier(RBF(gamma=0.3), mu=0.02, calibration=None).fit(
                X, labels == label
            )
            assert_allclose(outputs[:, k], single.decision_function(X_NEW), rtol=1e-10)
        assert_array_equal(model.predict(X_NEW), model.classes_[decision.argmax(axis=1)])


class TestWeights:
    @pytest.mark.parametrize("class_weight", ["balanced", {"yes": 5.0}], ids=str)
    def test_weights_of_classes_are_weights_of_their_samples(self, class_weight):
        labels = LABELS["two classes"]
        factor = {"yes": 5.0, "no": 1.0}
        if class_weight == "balanced":
            factor = {label: 1.0 / WEIGHT[labels == label].sum() for label in factor}
        weight = WEIGHT * np.array([factor[label] for label in labels])
        model = KernelClassifier("linear", mu=1e-3)
        plain, by_hand = (clone(model).fit(X, labels, sample_weight=w) for w in (WEIGHT, weight))
        weighted = model.set_params(class_weight=class_weight).fit(X, labels, sample_weight=WEIGHT)
        assert_allclose(weighted.dual_coef_, by_hand.dual_coef_, rtol=1e-10)
        assert_allclose(weighted.loo_.outputs, by_hand.loo_.outputs, rtol=1e-10)
        assert np.abs(weighted.dual_coef_ - plain.dual_coef_).max() > 1e-3
