"""What cannot be fitted is an error that says what is wrong and what to do."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from pairwise import in_turn
from sklearn.exceptions import NotFittedError
from stacks import stacked_classifier, stacked_regressor

from looms import KernelClassifier, KernelRegressor, Search, TabularRegressor
from looms.criteria import Hinge
from looms.kernels import RBF, Boolean
from looms.lssvm.refit import refit_loo
from looms.selection._objective import Objective

N = 40
rng = np.random.default_rng(6)
X = rng.normal(size=(N, 3))
Y = X[:, 0] + 0.3 * rng.normal(size=N)
LABELS = (Y > 0).astype(int)
THREE = np.arange(N) % 3
K = X @ X.T

GivenClassifier = partial(KernelClassifier, mu=1e-3)
GivenRegressor = partial(KernelRegressor, mu=1e-3)
NAMES = {
    "given classifier": GivenClassifier,
    "tuned classifier": KernelClassifier,
    "given regressor": GivenRegressor,
    "tuned regressor": KernelRegressor,
}
ALL = list(NAMES.values())
CLASSIFIERS, TUNED, GIVEN = ALL[:2], ALL[1::2], ALL[::2]


def each(estimators):
    ids = [name for name, estimator in NAMES.items() if estimator in estimators]
    return pytest.mark.parametrize("Estimator", estimators, ids=ids)


def target(Estimator):
    return LABELS if Estimator in CLASSIFIERS else Y


def changed(values, value):
    values = np.array(values, dtype=np.float64)
    values.flat[3] = value
    return values


@pytest.mark.parametrize("Model", [KernelRegressor, TabularRegressor])
def test_jobs_are_a_number(Model):
    with pytest.raises(TypeError, match="n_jobs must be None or an integer, -1 for all, got 'all'"):
        Model(n_jobs="all").fit(X, Y)


@pytest.mark.parametrize(
    ("loss", "name", "known"),
    [("squared", "pres", "'press'.*cross_entropy"), ("hinge", "devianc", "'deviance'.*deviance")],
)
def test_the_criterion_is_known(loss, name, known):
    message = f"Unknown criterion '{name}' .did you mean {known}"
    with pytest.raises(ValueError, match=message):
        KernelClassifier(loss=loss, search=Search(name)).fit(X, LABELS)


class TestData:
    def test_two_samples_can_be_fitted_but_not_chosen_by(self):
        two = [int(np.argmin(LABELS)), int(np.argmax(LABELS))]
        assert np.isfinite(KernelClassifier(mu=1e-3).fit(X[two], LABELS[two]).loo_.outputs).all()
        model = KernelRegressor(mu=1e-3).fit(X[two], Y[two])
        # Without one of two samples only the other's target is left.
        np.testing.assert_allclose(model.loo_.outputs, Y[two][::-1])
        for Estimator in TUNED:
            with pytest.raises(ValueError, match="needs three samples of non-zero weight"):
                Estimator().fit(X[two], target(Estimator)[two])


@each(CLASSIFIERS)
class TestLabels:
    def test_one_class(self, Estimator):
        with pytest.raises(ValueError, match=r"only one class is present.* the only one is 0"):
            Estimator().fit(X, np.zeros(N))
        with pytest.raises(ValueError, match=r"only one is 1.* weight zero do not count"):
            Estimator().fit(X, LABELS, sample_weight=LABELS)

    def test_a_class_without_weight(self, Estimator):
        with pytest.raises(ValueError, match=r"class \[2\] have weight zero; leave these"):
            Estimator().fit(X, THREE, sample_weight=THREE < 2)

    @pytest.mark.parametrize(
        "options", [{}, {"threshold": "balanced"}, {"class_weight": "balanced"}]
    )
    @pytest.mark.filterwarnings("ignore::looms.BoundWarning")
    @pytest.mark.filterwarnings("ignore::looms.OneClassWarning")
    def test_a_class_of_one_works(self, Estimator, options):
        model = Estimator(**options).fit(X, np.arange(N) == 3)
        assert model.predict(X).shape == (N,)
        single = Estimator().fit(X, np.where(np.arange(N) == 3, 2, LABELS))
        assert list(single.classes_) == [0, 1, 2]

    @pytest.mark.parametrize("threshold", ["best", True, None, [0.5]])
    def test_threshold(self, Estimator, threshold):
        message = "known are a probability between 0 and 1, 'balanced', 'f1', 'recall="
        with pytest.raises(ValueError, match=message):
            Estimator(threshold=threshold).fit(X, LABELS)

    @pytest.mark.parametrize("threshold", [0, 0.0, -0.1, 1.0, np.nan, np.inf, np.float32(1.5)])
    def test_threshold_that_is_a_cut_of_outputs(self, Estimator, threshold):
        message = r"is not a probability between 0 and 1.*compare decision_function"
        with pytest.raises(ValueError, match=message):
            Estimator(threshold=threshold).fit(X, LABELS)

    @pytest.mark.parametrize("threshold", [0.3, np.float32(0.3)])
    def test_a_probability_needs_a_calibration(self, Estimator, threshold):
        with pytest.raises(ValueError, match="is a probability, but calibration=None gives none"):
            Estimator(threshold=threshold, calibration=None).fit(X, LABELS)

    @pytest.mark.parametrize("pos_label", ["yes", 2])
    def test_positive_class(self, Estimator, pos_label):
        with pytest.raises(ValueError, match=r"pos_label=.* is not one of the classes, \[0, 1\]"):
            Estimator(pos_label=pos_label).fit(X, LABELS)

    @pytest.mark.parametrize("threshold", ["balanced", 0.1])
    def test_threshold_of_three_classes(self, Estimator, threshold):
        with pytest.raises(ValueError, match=f"threshold={threshold!r} needs two classes, but y "):
            Estimator(threshold=threshold).fit(X, THREE)

    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            ("fair", "must be None, 'balanced' or a dict, got 'fair'"),
            ([1, 2], r"must be None, 'balanced' or a dict, got \[1, 2\]"),
            ({7: 2.0}, r"names \[7\], which are not classes of y: \[0, 1\]"),
            ({0: -1}, "must be positive numbers"),
            ({0: 0}, "must be positive numbers"),
            ({0: "much"}, "must be positive numbers"),
            ({0: np.nan}, "must be positive numbers"),
        ],
        ids=str,
    )
    def test_weights_of_classes(self, Estimator, weight, message):
        with pytest.raises(ValueError, match="class_weight " + message):
            Estimator(class_weight=weight).fit(X, LABELS)
        search = Search(class_weight=weight)
        if Estimator is KernelClassifier:
            message = message.replace("must be None", "must be 'same', None")
            with pytest.raises(ValueError, match="class_weight of the search " + message):
                Estimator(search=search).fit(X, LABELS)


class TestWeights:
    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            (np.zeros(N), "at least one non-zero"),
            (
                np.where(np.arange(N) < 3, -1.0, 1.0),
                "must be zero or positive, but its minimum is -1",
            ),
            (changed(np.ones(N), np.nan), "sample_weight must be finite, but contains NaN"),
            (changed(np.ones(N), np.inf), "sample_weight must be finite, but contains NaN"),
            (np.ones(N - 1), r"sample_weight has shape \(39,\) and y has 40 rows"),
            (np.ones((N, 2)), "must have one entry per row of y"),
            ("heavy", "sample_weight must be numbers, got str"),
            (np.full(N, 1e308), "out of range: its largest value is 1e[+]308. Multiply"),
            (np.geomspace(1e-99, 1e99, N), "ranges from 1e-99 to 1e[+]99, .*: set negl"),
            (np.full(N, 1e-320), "out of range: its largest value is 1e-320. Multiply"),
        ],
        ids=["zero", "negative", "nan", "inf", "short", "2d", "text", "huge", "spread", "tiny"],
    )
    def test_weights_of_samples(self, weight, message):
        for Estimator in ALL:
            with pytest.raises(ValueError, match=message):
                Estimator().fit(X, target(Estimator), sample_weight=weight)

    @each(ALL[2:])
    def test_one_sample_left(self, Estimator):
        with pytest.raises(ValueError, match="samples of non-zero weight or more, got 1"):
            Estimator().fit(X, Y, sample_weight=np.arange(N) == 2)

    @pytest.mark.parametrize(("Estimator", "weight"), in_turn(ALL, [1e-12, 1e-40]))
    def test_weights_beyond_double_precision(self, Estimator, weight):
        """One sample of overwhelming weight: nothing would be left of the ridge without it."""
        with pytest.raises(ValueError, match="below 1e-10 times the largest, to zero"):
            Estimator().fit(
                X, target(Estimator), sample_weight=np.where(np.arange(N) == 3, 1.0, weight)
            )

    @each(ALL)
    @pytest.mark.filterwarnings("ignore::looms.BoundWarning")
    def test_spread_of_weights(self, Estimator):
        weight = np.geomspace(1e-5, 1e4, N)[rng.permutation(N)]
        model = Estimator("linear").fit(X[:, :1], target(Estimator), sample_weight=weight)
        refits = refit_loo(
            X[:, :1] @ X[:, :1].T,
            model.loo_.y,
            model.mu_,
            sample_weight=weight * N / weight.sum(),
        )
        np.testing.assert_allclose(model.loo_.outputs, refits.outputs, rtol=1e-5, atol=1e-7)

    def test_a_search_steps_over_points_without_leave_one_out_outputs(self):
        objective = Objective(X, Y, sample_weight=np.where(np.arange(N) == 3, 1.0, 1e-20))
        assert objective(objective.theta0)[0] == np.inf

    @each(GIVEN)
    def test_one_sample_outweighs_all(self, Estimator):
        """As far as weights may differ, the outputs are those of refits."""
        weight = np.where(np.arange(N) == 3, 1.0, 1.01e-10)
        model = Estimator("linear").fit(X, target(Estimator), sample_weight=weight)
        refits = refit_loo(K, model.loo_.y, model.mu_, sample_weight=weight * N / weight.sum())
        np.testing.assert_allclose(model.loo_.outputs, refits.outputs, rtol=1e-4)


@each(ALL)
class TestKernels:
    def test_a_matrix_that_is_not_square(self, Estimator):
        with pytest.raises(ValueError, match=r"square matrix, got shape \(40, 39\)"):
            Estimator("precomputed").fit(K[:, :-1], target(Estimator))

    def test_a_matrix_that_is_not_symmetric(self, Estimator):
        with pytest.raises(ValueError, match=r"K must be symmetric.* pass \(K \+ K.T\) / 2"):
            Estimator("precomputed").fit(K + np.triu(np.ones((N, N))), target(Estimator))

    @pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
    def test_a_matrix_that_is_indefinite(self, Estimator, scale):
        indefinite = scale * (K - 20 * np.eye(N))
        with pytest.raises(ValueError, match=r"smallest eigenvalue is -.* Clip or flip"):
            Estimator("precomputed").fit(indefinite, target(Estimator))
        with pytest.raises(ValueError, match="smallest eigenvalue"):
            Estimator("precomputed").fit(sp.csr_array(indefinite), target(Estimator))

    @pytest.mark.filterwarnings("ignore::looms.BoundWarning")
    @pytest.mark.filterwarnings("ignore::looms.OneClassWarning")
    @pytest.mark.parametrize("scale", [0.0, 1e-12, 1.0, 1e12])
    def test_a_singular_matrix_works(self, Estimator, scale):
        options = {"mu": max(scale, 1.0)} if Estimator in GIVEN else {}
        model = Estimator("precomputed", **options).fit(scale * K, target(Estimator))
        assert np.isfinite(model.predict(scale * K)).all()

    def test_other_training_samples(self, Estimator):
        model = Estimator("precomputed").fit(K, target(Estimator))
        with pytest.raises(ValueError, match=r"39 features.* expecting 40"):
            model.predict(K[:, :-1])

    def test_unknown_names(self, Estimator):
        with pytest.raises(
            ValueError, match=r"Unknown kernel 'gauss' \(did you mean 'rbf'\?\); known are linear"
        ):
            Estimator("gauss").fit(X, target(Estimator))

    @pytest.mark.parametrize("kernel", [None, 3, RBF], ids=str)
    def test_no_kernels(self, Estimator, kernel):
        with pytest.raises(TypeError, match="A kernel must be a name"):
            Estimator(kernel).fit(X, target(Estimator))

    @pytest.mark.parametrize("kernel", [[], ["rbf"], ("rbf", "linear")])
    def test_a_list_of_kernels(self, Estimator, kernel):
        name = "Classifier" if Estimator in CLASSIFIERS else "Regressor"
        message = rf"one kernel, got a list of {len(kernel)}: Tabular{name}\(candidates="
        with pytest.raises(ValueError, match=message):
            Estimator(kernel).fit(X, target(Estimator))

    def test_functions_that_are_no_kernels(self, Estimator):
        with pytest.raises(ValueError, match=r"returned shape \(2, 2\); it must return"):
            Estimator(lambda A, B: np.ones((2, 2))).fit(X, target(Estimator))
        with pytest.raises(ValueError, match=r"not positive definite|never positive definite"):
            Estimator(lambda A, B: -(A @ B.T)).fit(X, target(Estimator))
        with pytest.raises(ValueError, match=r"contains NaN or infinity|could be evaluated"):
            Estimator(lambda A, B: A @ B.T * np.nan).fit(X, target(Estimator))

    def test_flags(self, Estimator):
        with pytest.raises(ValueError, match="fit_intercept must be True or False, got 'no'"):
            Estimator(fit_intercept="no").fit(X, target(Estimator))
        assert Estimator(fit_intercept=np.bool_(False)).fit(X, target(Estimator)).intercept_ == 0


@each(GIVEN)
class TestGiven:
    @pytest.mark.parametrize("mu", [0, -1.0, "a", np.nan, np.inf, [1.0]], ids=repr)
    def test_mu(self, Estimator, mu):
        with pytest.raises(ValueError, match="mu must be a positive number"):
            Estimator(mu=mu).fit(X, target(Estimator))

    def test_a_mu_too_small_for_the_kernel(self, Estimator):
        with pytest.raises(ValueError, match=r"not positive definite at mu = 0.001. Use a larger"):
            Estimator("cubic").fit(X * 1e8, target(Estimator))

    def test_a_kernel_that_overflows(self, Estimator):
        with pytest.raises(ValueError, match=r"Boolean\(gamma=1e\+300\).*infinity: scale the feat"):
            Estimator(Boolean(gamma=1e300)).fit(X, target(Estimator))


@each(TUNED)
class TestSelecting:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"search": Search("auc")}, "Unknown criterion 'auc'; known are press, hinge, "),
            ({"search": Search(method="random")}, "known are gradient, grid"),
            ({"search": Search(max_iter=0)}, "max_iter must be a positive integer, got 0"),
            ({"search": Search(max_iter=1.5)}, "max_iter must be a positive integer"),
            (
                {"search": Search(max_samples=2)},
                "max_samples must be an integer of at least 3, a share of them or None, got 2",
            ),
            (
                {"search": Search(max_samples=1.5)},
                "max_samples must be a number between 0 and 1, got 1.5",
            ),
            (
                {"search": Search(n_restarts=-1)},
                "n_restarts must be an integer of at least 0, got -1",
            ),
            ({"search": Search(tol=-0.1)}, "tol must be a nonnegative number, got -0.1"),
            ({"search": Search(tol="low")}, "tol must be a nonnegative number"),
            ({"search": Search(tol=np.nan)}, "tol must be a nonnegative number"),
            ({"search": Search(prior="yes")}, "prior must be True or False, got 'yes'"),
            ({"random_state": "dice"}, "'dice' cannot be used to seed"),
            (
                {"kernel": RBF(gamma_bounds=(3.0, 1.0))},
                "gamma_bounds must be None, 'fixed' or a pair",
            ),
            (
                {"search": Search(method="grid", prior=True)},
                "method='grid' compares its points without a prior",
            ),
        ],
        ids=str,
    )
    def test_options(self, Estimator, options, message):
        with pytest.raises(ValueError, match=message):
            Estimator(**options).fit(X, target(Estimator))

    @pytest.mark.parametrize("criterion", [3, [], ["press", "press"]], ids=str)
    def test_no_criterion(self, Estimator, criterion):
        with pytest.raises(TypeError, match="A criterion is a name"):
            Estimator(search=Search(criterion)).fit(X, target(Estimator))

    @pytest.mark.parametrize("search", ["grid", {"method": "grid"}, Search], ids=str)
    def test_no_search(self, Estimator, search):
        with pytest.raises(TypeError, match=r"search must be a looms\.Search or None"):
            Estimator(search=search).fit(X, target(Estimator))

    def test_a_kernel_that_overflows_at_its_start_is_stepped_over(self, Estimator):
        overflowing = Boolean(gamma=1e300, gamma_bounds=(1e299, 1e301))
        kind = stacked_classifier if Estimator in CLASSIFIERS else stacked_regressor
        model = kind([overflowing, "rbf"], combine="best").fit(10 * X, target(Estimator))
        failed, fine = model.candidates_
        assert (failed.loss, failed.n_failures) == (np.inf, failed.n_evaluations)
        assert "positive definite" in failed.stop_reason.value
        assert model.kernel_ is fine.kernel
        with pytest.raises(ValueError, match=r"No candidate could be evaluated.* Scale the feat"):
            Estimator(overflowing).fit(10 * X, target(Estimator))


def test_criteria_of_classes_in_regression():
    for criterion in ("hinge", Hinge(), "wmw"):
        machine = KernelRegressor(search=Search(criterion))
        for one in (machine, stacked_regressor(["linear", machine])):
            with pytest.raises(ValueError, match="judges classes; for regression use 'press'"):
                one.fit(X, Y)


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([], r"candidates must be 'auto', .* or a list of .*, got \[\]"),
        (None, "candidates must be 'auto', .* or a list of .*, got None"),
        (["rbf", "gauss"], "Unknown kernel 'gauss'"),
        (["rbf", KernelRegressor()], r"KernelRegressor\(\) is no KernelClassifier"),
        (["rbf", KernelClassifier(fit_intercept=False)], "stacked with intercepts"),
        (["rbf", KernelClassifier(["rbf", "linear"])], "one kernel, got a list of 2"),
    ],
    ids=str,
)
def test_candidates(candidates, message):
    with pytest.raises(ValueError, match=message):
        stacked_classifier(candidates).fit(X, LABELS)


def test_targets_that_are_text():
    for Estimator in ALL[2:]:
        with pytest.raises(ValueError, match="contains 'a'; use KernelClassifier for classes"):
            Estimator().fit(X, np.full(N, "a"))


def test_a_failed_fit_leaves_no_half_fitted_machine():
    model = KernelClassifier(lambda A, B: -(A @ B.T))
    with pytest.raises(ValueError):
        model.fit(X, LABELS)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_columns_that_are_no_numbers_name_what_takes_them():
    """Whatever NumPy, pandas or scikit-learn says of them."""
    y, x = np.arange(20) % 2, np.arange(20.0)
    whole = pd.array([*range(20)], dtype="Int64")
    days = pd.date_range("2024-01-01", periods=20)
    for column, other, what in (
        (["u", "v"] * 10, x, "text"),
        (pd.Categorical(["u", "v"] * 10), whole, "text"),
        (days, x, "dates"),
        (days - days[0], x, "durations"),
        (pd.array([1, None] * 10, dtype="Int64"), x, "gaps"),
    ):
        with pytest.raises(ValueError, match=f"{what}.*TabularClassifier"):
            KernelClassifier().fit(pd.DataFrame({"a": column, "b": other}), y)
