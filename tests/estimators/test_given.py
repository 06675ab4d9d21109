"""Estimators with given hyper-parameters: the machine, its leave-one-out outputs, its options."""

import numpy as np
import pytest
from evaluated import evaluated
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics import balanced_accuracy_score, recall_score

from looms import KernelClassifier, KernelRegressor
from looms.conformal import jackknife_plus
from looms.criteria._error_rates import balanced_error_rate, error_rate
from looms.kernels import RBF
from looms.threshold import find_threshold

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


def outputs_of(model, X):
    return model.predict(X) if isinstance(model, KernelRegressor) else model.decision_function(X)


def features_of(K):
    """Features of which ``K`` is the matrix of inner products."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


class TestMachine:
    """The machine against scikit-learn's ridge regressions of the same loss."""

    @pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unweighted", "weighted"])
    @pytest.mark.parametrize("targets", TARGETS.values(), ids=TARGETS)
    def test_linear_is_ridge_regression_with_an_intercept(self, targets, weight):
        ours = KernelRegressor("linear", mu=0.02).fit(X, targets, sample_weight=weight)
        zeta = None if weight is None else weight / weight.mean()
        theirs = Ridge(alpha=0.02 * N).fit(X, targets, sample_weight=zeta)
        assert_allclose(ours.predict(X_NEW), theirs.predict(X_NEW), rtol=1e-10)
        assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-10)

    @pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unweighted", "weighted"])
    def test_any_kernel_is_ridge_regression_on_its_features(self, weight):
        everyone = np.vstack([X, X_NEW])
        kernel = RBF(gamma=0.3)
        Phi = features_of(kernel(everyone))
        ours = KernelRegressor(kernel, mu=0.02).fit(X, NOISY, sample_weight=weight)
        zeta = None if weight is None else weight / weight.mean()
        theirs = Ridge(alpha=0.02 * N, solver="cholesky").fit(Phi[:N], NOISY, sample_weight=zeta)
        assert_allclose(ours.predict(X_NEW), theirs.predict(Phi[N:]), rtol=1e-8)

    @pytest.mark.parametrize("n", [N, 5], ids=["long", "wide"])
    @pytest.mark.parametrize("n_landmarks", [None, 3])
    @pytest.mark.parametrize("targets", TARGETS.values(), ids=TARGETS)
    def test_weights_of_the_features(self, targets, n_landmarks, n):
        """Of every linear model, whether it was solved for them or for the rows; of no other."""
        model = KernelRegressor("linear", mu=0.02, n_landmarks=n_landmarks).fit(X[:n], targets[:n])
        f = X_NEW @ model.coef_ + model.intercept_
        assert_allclose(f, model.predict(X_NEW), rtol=1e-10, atol=1e-12)
        assert not hasattr(KernelRegressor("rbf", mu=0.02).fit(X, targets), "coef_")

    @pytest.mark.parametrize("loss", ["squared", "hinge"])
    def test_weights_of_the_features_of_a_classifier(self, loss):
        model = KernelClassifier("linear", mu=0.02, loss=loss).fit(X, LABELS["two classes"])
        f = X_NEW @ model.coef_ + model.intercept_ - model.threshold_
        assert_allclose(f, model.decision_function(X_NEW), rtol=1e-9, atol=1e-9)

    def test_without_intercept_is_kernel_ridge(self):
        ours = KernelRegressor(RBF(gamma=0.3), mu=0.02, fit_intercept=False).fit(X, NOISY)
        theirs = KernelRidge(alpha=0.02 * N, kernel="rbf", gamma=0.3).fit(X, NOISY)
        assert_allclose(ours.predict(X_NEW), theirs.predict(X_NEW), rtol=1e-10)
        assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-10)
        assert ours.intercept_ == 0

    def test_classifier_regresses_on_plus_and_minus_one(self):
        labels = LABELS["two classes"]
        classifier = KernelClassifier("linear", mu=0.02, calibration=None).fit(X, labels)
        regressor = KernelRegressor("linear", mu=0.02).fit(X, np.where(labels == "yes", 1.0, -1.0))
        assert_allclose(classifier.decision_function(X_NEW), regressor.predict(X_NEW), rtol=1e-12)
        assert_array_equal(classifier.classes_, ["no", "yes"])

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

    def test_decisions_and_coefficients_have_scikit_learns_shapes(self):
        two = KernelClassifier(mu=1e-3).fit(X, LABELS["two classes"])
        assert two.decision_function(X_NEW).shape == (12,)
        assert two.dual_coef_.shape == (N,)
        assert isinstance(two.intercept_, float)
        three = KernelClassifier(mu=1e-3).fit(X, LABELS["three classes"])
        assert three.decision_function(X_NEW).shape == (12, 3)
        assert three.dual_coef_.shape == (N, 3)
        assert three.intercept_.shape == (3,)
        both = KernelRegressor(mu=1e-3).fit(X, np.column_stack([NOISY, -NOISY]))
        assert both.predict(X_NEW).shape == (12, 2)
        assert KernelRegressor(mu=1e-3).fit(X, NOISY).predict(X_NEW).shape == (12,)

    def test_mu_and_intercept_change_the_answer(self):
        model = KernelRegressor(mu=0.01).fit(X, NOISY + 5)
        for changed in ({"mu": 0.1}, {"fit_intercept": False}):
            other = clone(model).set_params(**changed).fit(X, NOISY + 5)
            assert np.abs(other.predict(X_NEW) - model.predict(X_NEW)).max() > 0.01


class TestLeaveOneOut:
    """``loo_`` against fits of the estimator itself without each sample."""

    @staticmethod
    def refitted(model, X, y, weight, zeta):
        """Outputs of fits without each sample.

        The ridge is mu Σζ / ζ_i, and Σζ is short of the removed weight in a refit: a
        larger mu holds the ridge where it was.
        """
        outputs = []
        for i in range(len(X)):
            others = np.delete(np.arange(len(X)), i)
            mu = model.mu * zeta.sum() / zeta[others].sum()
            refit = clone(model).set_params(kernel=model.kernel_, mu=mu)
            refit.fit(X[others], y[others], sample_weight=weight[others])
            outputs.append(outputs_of(refit, X[[i]])[0])
        return np.array(outputs)

    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("weight", [np.ones(N), WEIGHT], ids=["unweighted", "weighted"])
    @pytest.mark.parametrize("targets", TARGETS.values(), ids=TARGETS)
    def test_regression(self, targets, weight, fit_intercept):
        model = KernelRegressor(mu=0.01, fit_intercept=fit_intercept)
        model.fit(X, targets, sample_weight=weight)
        assert_allclose(
            model.loo_.outputs, self.refitted(model, X, targets, weight, weight), rtol=1e-8
        )
        assert_array_equal(model.loo_.y, targets)
        assert_array_equal(model.loo_.sample_weight, weight)

    @pytest.mark.parametrize("weight", [np.ones(N), WEIGHT], ids=["unweighted", "weighted"])
    @pytest.mark.parametrize("class_weight", [None, 4.0])
    @pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
    @pytest.mark.slow
    def test_classification(self, labels, class_weight, weight):
        zeta = weight
        if class_weight is not None:
            first = labels[0]
            class_weight = {first: class_weight}
            zeta = weight * np.where(labels == first, class_weight[first], 1.0)
        model = KernelClassifier("cubic", mu=1.0, class_weight=class_weight, calibration=None)
        model.fit(X, labels, sample_weight=weight)
        assert_allclose(
            model.loo_.outputs, self.refitted(model, X, labels, weight, zeta), rtol=1e-8
        )
        assert set(np.unique(model.loo_.y)) == {-1.0, 1.0}
        assert_array_equal(model.loo_.sample_weight, weight)


class TestGroups:
    """``held_out_``, scores and intervals against fits of the estimator without each group."""

    GROUPS = np.arange(N) // 4

    def test_regression(self):
        model = KernelRegressor(RBF(gamma=0.3), mu=0.02).fit(X, NOISY, groups=self.GROUPS)
        f, F = np.empty(N), np.empty((len(X_NEW), N))
        for group in np.unique(self.GROUPS):
            out = group == self.GROUPS
            rest = KernelRegressor(RBF(gamma=0.3), mu=0.02 * N / (~out).sum())
            rest.fit(X[~out], NOISY[~out])
            f[out], F[:, out] = rest.predict(X[out]), rest.predict(X_NEW)[:, None]
        assert_allclose(model.held_out_.outputs, f, rtol=1e-8)
        assert_allclose(evaluated(model).predict_interval(X_NEW), jackknife_plus(NOISY - f, F, 0.9))
        assert model.evaluate()["rmse"] == pytest.approx(np.sqrt(np.mean((NOISY - f) ** 2)))
        alone = KernelRegressor(RBF(gamma=0.3), mu=0.02).fit(X, NOISY)
        assert_allclose(model.loo_.outputs, alone.loo_.outputs)
        assert np.abs(alone.held_out_.outputs - f).max() > 1e-3

    def test_classes(self):
        labels = LABELS["two classes"]
        model = KernelClassifier(RBF(gamma=0.3), mu=0.02).fit(X, labels, groups=self.GROUPS)
        given = KernelRegressor(RBF(gamma=0.3), mu=0.02)
        held_out = given.fit(X, model.loo_.y, groups=self.GROUPS).held_out_
        assert_allclose(model.held_out_.outputs, held_out.outputs)
        assert (
            model.threshold_ != KernelClassifier(RBF(gamma=0.3), mu=0.02).fit(X, labels).threshold_
        )
        with pytest.raises(ValueError, match="All rows of class 'no' are in one group"):
            model.fit(X, labels, groups=labels)


class TestWeights:
    def test_only_ratios_count(self):
        model = KernelRegressor(mu=1e-3).fit(X, NOISY, sample_weight=WEIGHT)
        scaled = KernelRegressor(mu=1e-3).fit(X, NOISY, sample_weight=1000 * WEIGHT)
        assert_allclose(scaled.predict(X_NEW), model.predict(X_NEW), rtol=1e-10)

    def test_a_whole_number_is_that_many_copies(self):
        copies = np.arange(N) % 3 + 1
        weighted = KernelRegressor(mu=1e-3).fit(X, NOISY, sample_weight=copies)
        repeated = KernelRegressor(mu=1e-3).fit(np.repeat(X, copies, 0), np.repeat(NOISY, copies))
        assert_allclose(weighted.predict(X_NEW), repeated.predict(X_NEW), rtol=1e-9)
        unweighted = KernelRegressor(mu=1e-3).fit(X, NOISY)
        assert np.abs(weighted.predict(X_NEW) - unweighted.predict(X_NEW)).max() > 1e-3

    @pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
    def test_zero_takes_no_part_and_has_an_output(self, labels):
        weight = np.where(np.arange(N) % 4 == 1, 0.0, WEIGHT)
        seen = weight > 0
        spoilt = X.copy()
        spoilt[~seen] *= 50
        model = KernelClassifier(mu=0.01).fit(spoilt, labels, sample_weight=weight)
        without = KernelClassifier(mu=0.01, calibration=None).fit(
            X[seen], labels[seen], sample_weight=weight[seen]
        )
        assert model.kernel_.gamma == without.kernel_.gamma
        assert_allclose(model.dual_coef_[seen], without.dual_coef_, rtol=1e-12)
        assert not model.dual_coef_[~seen].any()
        assert_allclose(model.intercept_, without.intercept_, rtol=1e-12)
        assert_allclose(model.loo_.outputs[seen], without.loo_.outputs, rtol=1e-12)
        never_saw_them = without.decision_function(spoilt[~seen])
        assert_allclose(model.loo_.outputs[~seen], never_saw_them, rtol=1e-10)

    def test_zero_does_not_move_the_threshold(self):
        labels = LABELS["two classes"]
        weight = np.where(np.arange(N) % 3 == 1, 0.0, 1.0)
        seen = weight > 0
        model = KernelClassifier(mu=1e-3, threshold="balanced").fit(X, labels, sample_weight=weight)
        without = KernelClassifier(mu=1e-3, threshold="balanced").fit(X[seen], labels[seen])
        assert model.threshold_ == pytest.approx(without.threshold_, rel=1e-10)
        assert model.threshold_ != 0

    def test_class_weight_is_a_sample_weight(self):
        labels = LABELS["two classes"]
        weight = np.where(labels == "yes", 5.0, 1.0)
        by_class = KernelClassifier(mu=1e-3, class_weight={"yes": 5}).fit(X, labels)
        by_sample = KernelClassifier(RBF(gamma=by_class.kernel_.gamma), mu=1e-3)
        by_sample.fit(X, labels, sample_weight=weight)
        assert_allclose(by_class.dual_coef_, by_sample.dual_coef_, rtol=1e-10)
        assert_allclose(by_class.loo_.outputs, by_sample.loo_.outputs, rtol=1e-10)

    @pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
    def test_balanced_gives_every_class_the_same_weight(self, labels):
        _, index = np.unique(labels, return_inverse=True)
        mass = np.bincount(index, weights=WEIGHT)
        balanced = KernelClassifier("linear", mu=1e-3, class_weight="balanced")
        balanced.fit(X, labels, sample_weight=WEIGHT)
        by_hand = KernelClassifier("linear", mu=1e-3).fit(
            X, labels, sample_weight=(WEIGHT / mass[index])
        )
        plain = KernelClassifier("linear", mu=1e-3).fit(X, labels, sample_weight=WEIGHT)
        assert_allclose(balanced.dual_coef_, by_hand.dual_coef_, rtol=1e-10)
        assert np.abs(balanced.dual_coef_ - plain.dual_coef_).max() > 1e-3

    def test_balanced_finds_more_of_the_rare_class(self):
        rng = np.random.default_rng(3)
        X = rng.normal(size=(150, 2))
        rare = X[:, 0] + rng.normal(size=150) > 1.8
        plain, balanced = (
            recall_score(
                rare, KernelClassifier(mu=1e-3, class_weight=weight).fit(X, rare).predict(X)
            )
            for weight in (None, "balanced")
        )
        assert balanced > plain + 0.2


class TestThreshold:
    labels = NOISY > 0.9

    def test_it_is_folded_into_the_decisions(self):
        plain = KernelClassifier(mu=1e-3, calibration=None).fit(X, self.labels)
        moved = KernelClassifier(mu=1e-3, threshold=0.3).fit(X, self.labels)
        outputs, sigmoid = plain.decision_function(X_NEW), moved.calibrator_
        assert plain.threshold_ == 0.0
        cut = (np.log(0.3 / 0.7) + sigmoid.intercept) / -sigmoid.slope
        assert moved.threshold_ == pytest.approx(cut)
        assert_allclose(moved.decision_function(X_NEW), outputs - cut, rtol=1e-9, atol=1e-12)
        assert_array_equal(moved.predict(X_NEW), outputs > cut)
        assert (moved.predict(X_NEW) != plain.predict(X_NEW)).any()

    def test_zero_is_the_boundary_and_loo_is_before_the_threshold(self):
        model = KernelClassifier(mu=1e-3, threshold="balanced").fit(X, self.labels)
        assert_array_equal(model.predict(X_NEW), model.decision_function(X_NEW) > 0)
        plain = KernelClassifier(mu=1e-3).fit(X, self.labels)
        assert_array_equal(model.loo_.outputs, plain.loo_.outputs)

    def test_balanced_minimizes_the_balanced_error_of_the_leave_one_out_outputs(self):
        model = KernelClassifier(mu=1e-3, threshold="balanced").fit(
            X, self.labels, sample_weight=WEIGHT
        )
        threshold, rate = find_threshold(model.loo_, "balanced")
        assert model.threshold_ == threshold
        assert rate == pytest.approx(balanced_error_rate(*model.loo_, threshold=threshold))
        assert rate < balanced_error_rate(*model.loo_, threshold=0.0)

    def test_rates_of_loo_are_those_scikit_learn_counts(self):
        model = KernelClassifier(mu=1e-3).fit(X, self.labels, sample_weight=WEIGHT)
        guess = model.loo_.outputs > 0
        accuracy = np.average(guess == self.labels, weights=WEIGHT)
        assert error_rate(*model.loo_) == pytest.approx(1 - accuracy)
        expected = 1 - balanced_accuracy_score(self.labels, guess, sample_weight=WEIGHT)
        assert balanced_error_rate(*model.loo_) == pytest.approx(expected)


def test_documented_attributes_exist():
    for model, y in (
        (KernelClassifier(mu=1e-3), LABELS["two classes"]),
        (KernelClassifier(mu=1e-3), LABELS["three classes"]),
        (KernelRegressor(mu=1e-3), TARGETS["two targets"]),
    ):
        model.fit(X, y)
        assert model.kernel_.gamma > 0
        assert model.mu_ == 1e-3
        assert model.n_features_in_ == 3
        assert model.X_fit_.shape == X.shape
        assert model.loo_.n_samples == N
        assert not hasattr(model, "feature_names_in_")
        assert hasattr(model, "classes_") == isinstance(model, KernelClassifier)
        assert hasattr(model, "threshold_") == isinstance(model, KernelClassifier)


def test_fitting_leaves_the_parameters_alone_and_can_be_repeated():
    kernel = RBF()
    model = KernelRegressor(kernel, mu=1e-3).fit(X, NOISY)
    first = model.predict(X_NEW)
    assert model.kernel is kernel
    assert kernel.gamma is None
    model.fit(X[:, :2], NOISY)
    assert_array_equal(model.fit(X, NOISY).predict(X_NEW), first)
