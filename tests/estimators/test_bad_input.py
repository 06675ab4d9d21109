"""What cannot be fitted is an error that says what is wrong and what to do."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from pairwise import in_turn
from stacks import stacked_classifier, stacked_regressor

from looms import KernelClassifier, KernelRegressor, Search
from looms.criteria import Hinge
from looms.kernels import RBF, Boolean
from looms.lssvm.refit import refit_loo

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


#: Options that no estimator takes, with what the message names.
OPTIONS = [
    ({"kernel": "gauss"}, "did you mean 'rbf'"),
    ({"kernel": None}, "kernel"),
    ({"kernel": 3}, "kernel"),
    ({"kernel": RBF}, "kernel"),
    ({"kernel": ["rbf", "linear"]}, "candidates="),
    ({"kernel": RBF(gamma_bounds=(3.0, 1.0))}, "gamma_bounds"),
    ({"fit_intercept": "no"}, "fit_intercept .* 'no'"),
    *(({"mu": mu}, "mu") for mu in (0, -1.0, "a", np.nan, np.inf, [1.0])),
    *(({"n_landmarks": m}, f"n_landmarks .* {m!r}") for m in (0, "few", True, -1)),
    ({"n_jobs": "all"}, "n_jobs .* 'all'"),
]
OF_CLASSES = [
    *(({"threshold": t}, "threshold") for t in ("best", True, None, [0.5], 0, -0.1, 1.0, np.nan)),
    *(({"threshold": np.float32(p), "calibration": None}, "calibration=None") for p in (0.3, 0.7)),
    *(({"calibration": c}, "sigmoid, isotonic, beta") for c in ("platt", 3, ["sigmoid"])),
    *(({"pos_label": label}, f"pos_label={label!r}") for label in ("yes", 2)),
    *(({"class_weight": w}, "class_weight") for w in ("fair", [1, 2], {7: 2.0}, {0: -1}, {0: 0})),
    *(({"class_weight": {0: w}}, "class_weight") for w in ("much", np.nan)),
    ({"loss": "logistic"}, "squared, hinge"),
]
OF_SEARCHES = [
    ({"criterion": "pres"}, "did you mean 'press'"),
    ({"criterion": 3}, "criterion"),
    ({"criterion": ["press", "press"]}, "criterion"),
    ({"method": "random"}, "gradient, grid"),
    ({"method": "grid", "prior": True}, "prior"),
    *(({"max_iter": n}, "max_iter") for n in (0, 1.5)),
    *(({"max_samples": n}, "max_samples") for n in (2, 1.5)),
    ({"n_restarts": -1}, "n_restarts"),
    *(({"tol": tol}, "tol") for tol in (-0.1, "low", np.nan)),
    ({"prior": "yes"}, "prior"),
]


@pytest.mark.parametrize(
    ("options", "words"),
    [*OPTIONS, *(({"search": Search(**o)}, w) for o, w in OF_SEARCHES)],
    ids=str,
)
def test_options(options, words):
    for Estimator in TUNED if "search" in options else ALL:
        with pytest.raises((TypeError, ValueError), match=words):
            Estimator(**options).fit(X, target(Estimator))


@pytest.mark.parametrize(("options", "words"), OF_CLASSES, ids=str)
def test_options_of_classifiers(options, words):
    for Estimator in CLASSIFIERS:
        with pytest.raises(ValueError, match=words):
            Estimator(**options).fit(X, LABELS)
    if "class_weight" in options:
        with pytest.raises(ValueError, match="class_weight of the search"):
            KernelClassifier(search=Search(**options)).fit(X, LABELS)


@pytest.mark.parametrize(
    "options", [{"threshold": "balanced"}, {"threshold": 0.1}, {"pos_label": 0}], ids=str
)
def test_options_for_two_classes(options):
    (name,) = options
    with pytest.raises(ValueError, match=f"{name}.* two classes"):
        GivenClassifier(**options).fit(X, THREE)


@pytest.mark.parametrize("search", ["grid", {"method": "grid"}, Search], ids=str)
def test_no_search(search):
    with pytest.raises(TypeError, match="search"):
        KernelRegressor(search=search).fit(X, Y)


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
        with pytest.raises(ValueError, match="only one is 0"):
            Estimator().fit(X, np.zeros(N))
        with pytest.raises(ValueError, match="only one is 1"):
            Estimator().fit(X, LABELS, sample_weight=LABELS)

    def test_a_class_without_weight(self, Estimator):
        with pytest.raises(ValueError, match=r"class \[2\] have weight zero"):
            Estimator().fit(X, THREE, sample_weight=THREE < 2)

    @pytest.mark.filterwarnings("ignore::looms.BoundWarning")
    @pytest.mark.filterwarnings("ignore::looms.OneClassWarning")
    def test_a_class_of_one_works(self, Estimator):
        for options in ({"threshold": "balanced"}, {"class_weight": "balanced"}):
            model = Estimator(**options).fit(X, np.arange(N) == 3)
            assert model.predict(X).shape == (N,)
        single = Estimator().fit(X, np.where(np.arange(N) == 3, 2, LABELS))
        assert list(single.classes_) == [0, 1, 2]


class TestWeights:
    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            (np.zeros(N), "non-zero"),
            ((np.arange(N) == 2) * 1.0, "non-zero weight or more, got 1|only one class"),
            (np.where(np.arange(N) < 3, -1.0, 1.0), "row 0 has -1"),
            (changed(np.ones(N), np.nan), "has nan"),
            (changed(np.ones(N), np.inf), "finite"),
            (np.ones(N - 1), r"\(39,\).* 40 rows"),
            (np.ones((N, 2)), "one entry per row"),
            ("heavy", "got str"),
            (np.full(N, 1e308), "out of range: .* 1e[+]308"),
            (np.geomspace(1e-99, 1e99, N), "from 1e-99 to 1e[+]99"),
            (np.full(N, 1e-320), "out of range: .* 1e-320"),
        ],
        ids=[
            "zero",
            "one",
            "negative",
            "nan",
            "inf",
            "short",
            "2d",
            "text",
            "huge",
            "wide",
            "tiny",
        ],
    )
    def test_weights_of_samples(self, weight, message):
        for Estimator in ALL:
            with pytest.raises(ValueError, match=message):
                Estimator().fit(X, target(Estimator), sample_weight=weight)

    @pytest.mark.parametrize(("Estimator", "weight"), in_turn(ALL, [1e-12, 1e-40]))
    def test_weights_beyond_double_precision(self, Estimator, weight):
        """One sample of overwhelming weight: nothing would be left of the ridge without it."""
        with pytest.raises(ValueError, match="1e-10"):
            Estimator().fit(
                X, target(Estimator), sample_weight=np.where(np.arange(N) == 3, 1.0, weight)
            )

    @each(GIVEN)
    def test_one_sample_outweighs_all(self, Estimator):
        """As far as weights may differ, the outputs are those of refits."""
        weight = np.where(np.arange(N) == 3, 1.0, 1.01e-10)
        model = Estimator("linear").fit(X, target(Estimator), sample_weight=weight)
        refits = refit_loo(K, model.loo_.y, model.mu_, sample_weight=weight * N / weight.sum())
        np.testing.assert_allclose(model.loo_.outputs, refits.outputs, rtol=1e-4)


@each(ALL)
class TestKernels:
    def test_a_matrix_that_is_no_kernel_matrix(self, Estimator):
        with pytest.raises(ValueError, match=r"square matrix, got shape \(40, 39\)"):
            Estimator("precomputed").fit(K[:, :-1], target(Estimator))
        with pytest.raises(ValueError, match="without landmarks"):
            Estimator("precomputed", n_landmarks=9).fit(K, target(Estimator))
        with pytest.raises(ValueError, match="symmetric"):
            Estimator("precomputed").fit(K + np.triu(np.ones((N, N))), target(Estimator))
        model = Estimator("precomputed").fit(K, target(Estimator))
        with pytest.raises(ValueError, match=r"39 features.* expecting 40"):
            model.predict(K[:, :-1])

    @pytest.mark.parametrize("scale", [1e-12, 1e12])
    def test_a_matrix_that_is_indefinite(self, Estimator, scale):
        indefinite = scale * (K - 20 * np.eye(N))
        for matrix in (indefinite, sp.csr_array(indefinite)):
            with pytest.raises(ValueError, match="smallest eigenvalue is -"):
                Estimator("precomputed").fit(matrix, target(Estimator))

    @pytest.mark.filterwarnings("ignore::looms.BoundWarning")
    @pytest.mark.filterwarnings("ignore::looms.OneClassWarning")
    @pytest.mark.parametrize("scale", [0.0, 1e-12, 1e12])
    def test_a_singular_matrix_works(self, Estimator, scale):
        options = {"mu": max(scale, 1.0)} if Estimator in GIVEN else {}
        model = Estimator("precomputed", **options).fit(scale * K, target(Estimator))
        assert np.isfinite(model.predict(scale * K)).all()

    def test_functions_that_are_no_kernels(self, Estimator):
        with pytest.raises(ValueError, match=r"shape \(2, 2\)"):
            Estimator(lambda A, B: np.ones((2, 2))).fit(X, target(Estimator))
        with pytest.raises(ValueError, match="positive definite"):
            Estimator(lambda A, B: -(A @ B.T)).fit(X, target(Estimator))
        with pytest.raises(ValueError, match=r"NaN or infinity|could be evaluated"):
            Estimator(lambda A, B: A @ B.T * np.nan).fit(X, target(Estimator))


@pytest.mark.parametrize(
    ("kernel", "rows", "words"),
    [("cubic", X * 1e8, "mu = 0.001"), (Boolean(gamma=1e300), X, r"Boolean\(gamma=1e\+300\)")],
    ids=["too small a mu", "overflow"],
)
def test_kernels_beyond_the_range_of_numbers(kernel, rows, words):
    for Estimator in GIVEN:
        with pytest.raises(ValueError, match=words):
            Estimator(kernel).fit(rows, target(Estimator))


@each(TUNED)
class TestSelecting:
    def test_a_kernel_that_overflows_at_its_start_is_stepped_over(self, Estimator):
        overflowing = Boolean(gamma=1e300, gamma_bounds=(1e299, 1e301))
        kind = stacked_classifier if Estimator in CLASSIFIERS else stacked_regressor
        model = kind([overflowing, "rbf"], combine="best").fit(10 * X, target(Estimator))
        failed, fine = model.candidates_
        assert (failed.loss, failed.n_failures) == (np.inf, failed.n_evaluations)
        assert model.kernel_ is fine.kernel
        with pytest.raises(ValueError, match="No candidate could be evaluated"):
            Estimator(overflowing).fit(10 * X, target(Estimator))


def test_criteria_of_classes_in_regression():
    for criterion in ("hinge", Hinge(), "wmw"):
        machine = KernelRegressor(search=Search(criterion))
        for one in (machine, stacked_regressor(["linear", machine])):
            with pytest.raises(ValueError, match="'press'"):
                one.fit(X, Y)


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
