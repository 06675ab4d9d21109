"""What is tuned and chosen, and that every option counts."""

import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import in_turn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from stacks import stacked_classifier, stacked_regressor

from looms import BoundWarning, KernelClassifier, KernelRegressor, ScalesWarning, Search
from looms.criteria import DIFFERENTIABLE, PRESS, as_criterion
from looms.criteria._error_rates import balanced_error_rate
from looms.estimators._one_kernel import candidate_of
from looms.kernels import RBF, Linear, Polynomial, Weighted
from looms.optimize._search import StopReason
from looms.selection._problem import Problem
from looms.units import Units

N = 90
rng = np.random.default_rng(5)
X = rng.normal(size=(N, 3))
X_NEW = rng.normal(size=(20, 3))
SIGNAL = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
Y = SIGNAL + 0.4 * rng.normal(size=N)
LABELS = Y > 0.6  # one in four
WEIGHT = rng.uniform(0.3, 3.0, size=N)


#: Folds that were made for these rows leave none to tune candidates anew, which compete by them.
EACH_ROW = np.arange(N)


@pytest.mark.parametrize(
    ("loss", "mu"),
    [
        ("squared", None),
        ("squared", 0.1),
        ("hinge", 0.1),
        pytest.param("hinge", None, marks=pytest.mark.slow),
    ],
)
def test_a_candidate_is_tuned_without_a_model(loss, mu):
    y, ones = np.sign(X[:40, 0] + 0.3 * Y[:40]), np.ones(40)
    model = KernelClassifier("linear", loss=loss, mu=mu).fit(X[:40], y)
    problem = Problem(candidate_of(model), X[:40], y, ones, ones, True, Units.rows(40))
    tuned = problem.tune()
    assert_array_equal(tuned.fit.held_out[0], model.loo_.outputs)
    assert_array_equal(tuned.fit.member.dual_coef, model.dual_coef_)
    assert tuned.mu == pytest.approx(model.mu_, rel=1e-14)  # log₂ and back


class TestWhatIsChosen:
    @pytest.mark.parametrize(
        ("criterion", "groups"), in_turn(DIFFERENTIABLE, [None, np.arange(N) // 2])
    )
    def test_the_value_is_the_criterion_on_what_is_held_out(self, criterion, groups):
        model = KernelClassifier(search=Search(criterion)).fit(X, LABELS, WEIGHT, groups=groups)
        expected = as_criterion(criterion).evaluate(*model.held_out_)
        assert model.selection_.value == pytest.approx(expected.value, rel=1e-9)
        if groups is None:
            error = model.selection_.standard_error
            assert error == pytest.approx(expected.standard_error, rel=1e-9)

    def test_zero_weights_take_no_part(self):
        weight = np.where(np.arange(N) % 4 == 1, 0.0, WEIGHT)
        seen = weight > 0
        spoilt = X.copy()
        spoilt[~seen] *= 30
        model = KernelClassifier(class_weight="balanced", threshold="balanced")
        model.fit(spoilt, LABELS, sample_weight=weight)
        without = clone(model).fit(X[seen], LABELS[seen], sample_weight=weight[seen])
        assert_allclose(model.decision_function(X_NEW), without.decision_function(X_NEW), rtol=1e-7)
        assert_allclose(model.loo_.outputs[seen], without.loo_.outputs, rtol=1e-7)
        unseen = without.decision_function(spoilt[~seen]) + without.threshold_
        assert_allclose(model.loo_.outputs[~seen], unseen, rtol=1e-7)


def crossed(kernels, criteria):
    """Candidates: each kernel by each criterion."""
    return [KernelClassifier(k, search=Search(c)) for k in kernels for c in criteria]


class TestCandidates:
    @pytest.mark.slow
    def test_table(self):
        candidates = crossed(["linear", "rbf"], ["press", "wmw"])
        model = stacked_classifier(candidates, combine="best", cv=EACH_ROW).fit(X, LABELS)
        table = pd.DataFrame(model.candidates_)
        assert list(table["criterion"]) == ["press", "wmw", "press", "wmw"]
        assert [type(k) for k in table["kernel"]] == [Linear, Linear, RBF, RBF]
        assert (table["n_evaluations"] > 0).all()
        assert (table["n_failures"] == 0).all()
        results = pd.DataFrame(model.cv_results_)
        assert list(results["kernel"]) == ["linear", "linear", "rbf", "rbf"]
        assert list(results["param_mu"]) == list(table["mu"])
        assert results["param_gamma"].isna().tolist() == [True, True, False, False]
        assert results["rank_held_out_loss"][model.best_index_] == 1
        assert list(results["held_out_loss"]) == list(table["loss"])

    @pytest.mark.parametrize(
        ("threshold", "class_weight"), [(0.3, "same"), ("balanced", "balanced")]
    )
    def test_the_smallest_balanced_error_is_chosen(self, threshold, class_weight):
        candidates = [
            one.set_params(search__class_weight=class_weight)
            for one in crossed(["linear", "rbf", "quadratic"], ["press", "squared_hinge"])
        ]
        model = stacked_classifier(candidates, combine="best", threshold=threshold, cv=EACH_ROW)
        model.fit(X, LABELS, sample_weight=WEIGHT)
        scores = [c.loss for c in model.candidates_]
        best = model.candidates_[int(np.argmin(scores))]
        assert len(set(scores)) > 2
        assert model.kernel_ is best.kernel
        assert model.mu_ == best.mu
        assert model.threshold_ == best.threshold
        # The score is that of the leave-one-out outputs, weighted as the samples are.
        assert best.loss == pytest.approx(
            balanced_error_rate(*model.loo_, threshold=model.threshold_)
        )


class TestRecord:
    @pytest.mark.slow
    def test_history_and_reason(self):
        model = KernelRegressor("ard").fit(X, Y)
        tuning = model.selection_
        assert tuning.stop_reason is StopReason.WITHIN_NOISE
        assert len(tuning.history) == tuning.n_evaluations > 3
        assert min(p.value for p in tuning.history) == pytest.approx(tuning.value)
        assert model.n_iter_ == tuning.n_iterations >= 1
        assert_allclose(2.0**tuning.theta, [*model.kernel_.gammas, model.mu_])


@cache
def of_default():
    return decisions()


def decisions(**options):
    return KernelClassifier(**options).fit(X, LABELS).decision_function(X_NEW)


class TestOptions:
    """Every option changes the answer, in the way it should."""

    @pytest.mark.parametrize(
        "option",
        [
            {"kernel": "linear"},
            {"fit_intercept": False},
            {"class_weight": "balanced"},
            {"class_weight": {True: 3}},
            {"threshold": "balanced"},
            {"threshold": 0.3},
            {"calibration": None},
            {"mu": 0.1},
            {"n_landmarks": 20},
            {"cv": 4},
            {"search": Search("wmw")},
            {"search": Search("hinge")},
            {"search": Search("squared_hinge")},
            {"search": Search("smoothed_error")},
            {"search": Search("cross_entropy")},
            {"search": Search(method="grid")},
            {"search": Search(tol=0.0)},
            {"search": Search(prior=True)},
            {"search": Search(class_weight="balanced")},
            {"search": Search(class_weight={True: 30})},
        ],
        ids=str,
    )
    def test_option(self, option):
        assert np.abs(decisions(**option) - of_default()).max() > 1e-4

    def test_class_weight_counts_in_the_fit_and_that_of_the_search_in_the_criterion(self):
        model = KernelClassifier(search=Search(class_weight={True: 30})).fit(X, LABELS)
        y, outputs, _ = model.loo_
        expected = PRESS().evaluate(y, outputs, np.where(LABELS, 30.0, 1.0)).value
        assert model.selection_.value == pytest.approx(expected)
        assert_array_equal(model.selection_weight_, np.where(LABELS, 30.0, 1.0))
        assert_array_equal(model.loo_.sample_weight, np.ones(N))
        fit = KernelClassifier(model.kernel_, mu=model.mu_).fit(X, LABELS)
        assert_allclose(fit.dual_coef_, model.dual_coef_, rtol=1e-6)
        weighted = KernelClassifier(class_weight={True: 30}, search=Search(class_weight=None))
        expected = PRESS().evaluate(*weighted.fit(X, LABELS).loo_).value
        assert weighted.selection_.value == pytest.approx(expected)

    def test_max_iter_stops_the_search_with_a_warning(self):
        with pytest.warns(ConvergenceWarning, match="raise max_iter"):
            model = KernelRegressor("ard", search=Search(max_iter=1)).fit(X, Y)
        assert model.n_iter_ == 1
        assert model.selection_.stop_reason is StopReason.MAX_ITER
        assert model.selection_.value > KernelRegressor("ard").fit(X, Y).selection_.value

    def test_restarts_search_from_further_starts(self):
        def tuned(n_restarts):
            return KernelClassifier(
                "rbf", search=Search("smoothed_error", n_restarts=n_restarts)
            ).fit(X, LABELS)

        once, thrice = tuned(0).selection_, tuned(2).selection_
        assert (len(once.stages), len(thrice.stages)) == (1, 3)
        starts = {tuple(search.history[0].theta) for _, search in thrice.stages}
        assert len(starts) == 3
        assert thrice.value <= once.value
        assert thrice.value == min(search.best.value for _, search in thrice.stages)

    def test_bounds_confine_a_hyper_parameter(self):
        kernel = Polynomial(degree=3, c=2.0, c_bounds=(1.0, 3.0))
        with pytest.warns(BoundWarning, match=r"c .* upper bound 3: .*'linear'"):
            model = KernelRegressor(kernel).fit(X, Y)
        held = KernelRegressor(RBF(gamma=0.05, gamma_bounds="fixed")).fit(X, Y)
        assert (held.kernel_.gamma, len(held.selection_.theta)) == (0.05, 1)
        assert model.kernel_.c == pytest.approx(3.0)
        assert model.kernel_.degree == 3


class TestWarnings:
    wave = np.sin(40 * np.linspace(0, 1, 60))
    x = np.linspace(0, 1, 60)[:, None]
    narrow = RBF(gamma=0.5, gamma_bounds=(0.1, 1.0))

    def test_a_bound_is_told_with_what_to_do(self):
        with pytest.warns(BoundWarning, match=r"gamma .* upper bound 1: .*scale"):
            model = KernelRegressor(self.narrow).fit(self.x, self.wave + Y[:60] / 9)
        assert model.candidates_[0].at_bounds == model.selection_.at_bounds != ()
        with pytest.warns(BoundWarning, match=r"mu .* lower bound"):
            KernelRegressor("rbf").fit(X[:, :1], X[:, 0])  # without noise


class TestScales:
    rng = np.random.default_rng(4)
    X = np.column_stack(
        [rng.normal(size=(45, 2)), 1e3 * rng.normal(size=45), rng.integers(0, 2, 45) * 1e-4]
    )
    y = X[:, 0] + 0.3 * rng.normal(size=45)
    machines = (
        KernelRegressor(),
        stacked_regressor(["rbf", KernelRegressor("matern32", mu=0.1)], cv=np.arange(45)),
    )

    @staticmethod
    def warned(model, X, y):
        with warnings.catch_warnings(record=True, action="always") as caught:
            clone(model).fit(X, y)
        return [str(each.message) for each in caught if each.category is ScalesWarning]

    @pytest.mark.slow
    @pytest.mark.parametrize("model", machines, ids=["one", "two"])
    def test_a_column_that_drowns_the_others_is_named(self, model):
        (text,) = self.warned(model, self.X, self.y)
        assert re.match(r"Column 2 .* column [01]", text)
        table = pd.DataFrame(self.X, columns=["bill", "depth", "mass", "sex"])
        (text,) = self.warned(model, table, self.y)
        assert "'mass'" in text
        assert "'sex'" not in text  # two values
        assert not self.warned(model, StandardScaler().fit_transform(self.X), self.y)
        assert not self.warned(model, sp.csr_array(self.X), self.y)

    @pytest.mark.parametrize("kernel", ["ranked_rbf", "normalized_rbf"])
    def test_distances_within_other_kernels(self, kernel):
        """They are as much the worse for a large column as a plain kernel; "ard" is not."""
        assert len(self.warned(KernelRegressor(kernel), self.X, self.y)) == 1
        for careless in ("linear", "ard", Weighted(RBF(), np.array([1, 1, 0, 1]))):
            assert not self.warned(KernelRegressor(careless), self.X, self.y)

    def test_pixels_that_are_seldom_dark_are_no_other_scale(self):
        pixels = np.clip(self.rng.normal(size=(45, 6)) - [0, 0, 0, 0, 0, 1.8], 0, 2)
        assert not self.warned(KernelRegressor(), pixels, self.y)
