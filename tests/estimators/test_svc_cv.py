"""SVCCV against refitting: its scores, its machine, its probabilities, its choice."""

import pickle
from functools import cache
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import in_turn
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC

from looms import SVCCV, BoundWarning
from looms.calibration._coupling import couple
from looms.calibration._sigmoid import fit_increasing_sigmoid, fit_sigmoid
from looms.criteria import DIFFERENTIABLE, Hinge
from looms.criteria._error_rates import balanced_error_rate, error_rate
from looms.held_out import HeldOut
from looms.kernels import RBF, Linear, Polynomial
from looms.selection import _svm_search
from looms.svm import NotConvergedError
from looms.svm.dual import DualSolution, solve
from looms.threshold import find_threshold

N = 36
rng = np.random.default_rng(23)
X = rng.normal(size=(N, 2))
LATENT = X[:, 0] - X[:, 1] ** 2 + 0.7 * rng.normal(size=N)
TWO = np.where(LATENT > -0.6, "yes", "no")
THREE = np.digitize(LATENT, np.quantile(LATENT, [0.3, 0.7]))
WEIGHT = rng.integers(1, 4, size=N) / 2.0
C, GAMMA = 3.0, 0.4
HELD = {"C": [C], "gamma": [GAMMA]}

#: Labels, and whether samples have weights.
PROBLEMS = {
    "two": (TWO, None),
    "two, weighted": (TWO, WEIGHT),
    "three": (THREE, None),
    "three, weighted": (THREE, WEIGHT),
}
each_problem = pytest.mark.parametrize(("y", "weight"), PROBLEMS.values(), ids=PROBLEMS)


class Refitted:
    """Everything by refitting: n times every pair, machine and sigmoid."""

    def __init__(self, y, weight, cost_weight=None):
        self.labels = np.unique(y, return_inverse=True)[1]
        self.k = self.labels.max() + 1
        self.weight = np.ones(N) if weight is None else weight
        self.costs = C * self.weight * (1.0 if cost_weight is None else cost_weight)
        self.K = RBF(GAMMA)(X)
        self.pairs = list(combinations(range(self.k), 2))
        self.outputs = np.empty((N, len(self.pairs)))
        self.log_p = np.empty((N, self.k))
        for i in range(N):
            pairwise = np.full((1, self.k, self.k), 0.5)
            for q, (a, b) in enumerate(self.pairs):
                self.outputs[i, q], p = self.pair_without(i, a, b)
                pairwise[0, b, a], pairwise[0, a, b] = p, 1 - p
            self.log_p[i] = np.log(couple(pairwise)[0])

    def pair_without(self, i, a, b):
        """Output for sample i and probability of class b without sample i."""
        part = np.flatnonzero(np.isin(self.labels, [a, b]) & (np.arange(N) != i))
        y = np.where(self.labels[part] == b, 1.0, -1.0)
        machine = solve(self.K[np.ix_(part, part)], y, self.costs[part])
        f = self.K[i, part] @ (machine.alpha * y) + machine.intercept
        sigmoid = fit_sigmoid(machine.outputs, y, self.weight[part])
        return f, sigmoid.probability(f)

    def deciding_without(self, i, a, b, probability):
        """Probability of class b by the sigmoid that decides, nowhere decreasing."""
        part = np.flatnonzero(np.isin(self.labels, [a, b]) & (np.arange(N) != i))
        y = np.where(self.labels[part] == b, 1.0, -1.0)
        q = self.pairs.index((a, b))
        seen = self.outputs[part, q]
        if probability == "single":
            seen = solve(self.K[np.ix_(part, part)], y, self.costs[part]).outputs
        sigmoid = fit_increasing_sigmoid(seen, y, self.weight[part])
        return sigmoid.probability(self.outputs[i, q])

    def decision(self, probability="loo"):
        if self.k == 2:
            return HeldOut(np.where(self.labels == 1, 1.0, -1.0), self.outputs[:, 0])
        return HeldOut(2.0 * np.eye(self.k)[self.labels] - 1, self.log_probabilities(probability))

    def log_probabilities(self, probability):
        """Of the classes, by the sigmoids that decide."""
        log_p = np.empty((N, self.k))
        for i in range(N):
            pairwise = np.full((1, self.k, self.k), 0.5)
            for a, b in self.pairs:
                p = self.deciding_without(i, a, b, probability)
                pairwise[0, b, a], pairwise[0, a, b] = p, 1 - p
            log_p[i] = np.log(couple(pairwise)[0])
        return log_p

    def cut(self, loo, threshold):
        if threshold == "balanced":
            return find_threshold(loo, "balanced")[0]
        if self.k > 2:
            return 0.0
        sigmoid = fit_increasing_sigmoid(loo.outputs, loo.y, loo.sample_weight)
        return -sigmoid.intercept / sigmoid.slope

    def score(self, criterion, threshold=0.5, probability="loo"):
        if criterion == "log_likelihood":
            single = probability == "single"  # whose sigmoids may decrease
            log_p = self.log_p if single else self.log_probabilities("loo")
            return -2 * self.weight @ log_p[np.arange(N), self.labels]
        loo = self.decision()
        loo = HeldOut(loo.y, loo.outputs, self.weight)
        if criterion in ("error", "ber"):
            rate = error_rate if criterion == "error" else balanced_error_rate
            return rate(*loo, threshold=self.cut(loo, threshold))
        values, masses = [], []
        for q, (a, b) in enumerate(self.pairs):
            own = np.isin(self.labels, [a, b])
            y = np.where(self.labels[own] == b, 1.0, -1.0)
            part = HeldOut(y, self.outputs[own, q], self.weight[own])
            values.append(DIFFERENTIABLE[criterion].evaluate(*part).value)
            masses.append(self.weight[own].sum())
        return np.average(values, weights=masses)


@cache
def refitted_problem(name):
    return Refitted(*PROBLEMS[name])


def fitted(y=TWO, weight=None, criterion="log_likelihood", **parameters):
    parameters = {"param_grid": HELD, "search": "grid", **parameters}
    return SVCCV("rbf", criterion, **parameters).fit(X, y, sample_weight=weight)


def outputs(model, X):
    """Decision values before the threshold."""
    return model.decision_function(X) + model.threshold_


class TestScores:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("criterion", "problem"),
        [
            *product(["log_likelihood", "error", "ber"], PROBLEMS),
            *in_turn(DIFFERENTIABLE, PROBLEMS),
        ],
    )
    def test_every_criterion_is_that_of_refits(self, problem, criterion):
        model = fitted(*PROBLEMS[problem], criterion)
        expected = refitted_problem(problem).score(criterion)
        assert_allclose(model.loo_score_, expected, rtol=1e-6)

    @pytest.mark.parametrize("problem", PROBLEMS)
    @pytest.mark.slow
    def test_leave_one_out_is_that_of_refits(self, problem):
        (y, weight), refitted = PROBLEMS[problem], refitted_problem(problem)
        for probability in ("loo", "single", None):
            model, expected = (
                fitted(y, weight, probability=probability),
                refitted.decision(probability or "loo"),
            )
            assert_allclose(model.loo_.outputs, expected.outputs, atol=1e-6)
            assert_array_equal(model.loo_.y, expected.y)
            assert_array_equal(model.loo_.sample_weight, refitted.weight)

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore::looms.OneClassWarning")
    @pytest.mark.parametrize(
        ("y", "grid"), [(TWO, {"C": [0.1], "gamma": [0.2]}), (THREE, HELD)], ids=["two", "three"]
    )
    def test_the_error_is_that_of_the_classifier_without_each_sample(self, y, grid):
        def machine():
            return SVCCV(
                *("rbf", "error"),
                param_grid=grid,
                search="grid",
                probability=None if y is TWO else "single",
            )

        decisions, wrong = [], 0
        for i in range(N):
            rest = np.arange(N) != i
            without = machine().fit(X[rest], y[rest])
            decisions.append(without.decision_function(X[[i]])[0])
            wrong += without.predict(X[[i]])[0] != y[i]
        model = machine().fit(X, y)
        assert_allclose(model.loo_.outputs, decisions, atol=1e-7)
        assert model.loo_score_ == pytest.approx(wrong / N)

    def test_the_error_is_by_the_sigmoids_that_predict(self):
        """Where leave-one-out outputs say nothing, sigmoids of them decide nothing."""
        grid = {"C": [0.1], "gamma": [0.2]}
        loo, single = (
            fitted(THREE, criterion="error", param_grid=grid, probability=probability)
            for probability in ("loo", "single")
        )
        for model in (loo, single):
            wrong = model.loo_.outputs.argmax(axis=1) != THREE
            assert model.loo_score_ == pytest.approx(wrong.mean())
        assert loo.loo_score_ > single.loo_score_ + 0.1

    def test_paths_of_the_machine_chosen_are_followed_once(self, monkeypatch):
        followed = []
        left_out = DualSolution.left_out

        def counted(solution, *options):
            followed.append(solution)
            return left_out(solution, *options)

        monkeypatch.setattr(DualSolution, "left_out", counted)
        fitted(THREE, criterion="press")
        assert len(followed) == 3 + 3  # of three pairs, in the search and after it

    @pytest.mark.filterwarnings("ignore::looms.BoundWarning")
    @pytest.mark.slow
    def test_the_likelihood_is_not_misled_by_a_machine_of_the_mean(self):
        """Its held-out outputs point away from their classes, and no sigmoid makes use of them."""
        rng = np.random.default_rng(1)
        y = np.arange(100) % 2
        points = rng.normal(size=(100, 4)) + np.outer(y, [1, 0, 0, 0])
        model = SVCCV().fit(points, y)
        assert model.evaluate(nested=False)["error"] < 0.4
        assert model.loo_score_ == pytest.approx(
            200 * model.evaluate(nested=False)["log_loss"], rel=0.1
        )

    def test_scores_are_those_of_scikit_learn(self):
        """LIBSVM is good for three digits."""
        deviance = 0.0
        for i in range(N):
            others = np.arange(N) != i
            svc = SVC(C=C, gamma=GAMMA, tol=1e-10).fit(X[others], TWO[others])
            outputs = svc.decision_function(X[others])
            sigmoid = fit_sigmoid(outputs, np.where(TWO[others] == "yes", 1, -1))
            p = float(sigmoid.probability(svc.decision_function(X[[i]])[0]))
            deviance -= 2 * np.log(p if TWO[i] == "yes" else 1 - p)
        assert_allclose(fitted(probability="single").loo_score_, deviance, rtol=1e-3)

    @pytest.mark.filterwarnings("ignore::looms.OneClassWarning")
    @pytest.mark.parametrize("criterion", ["error", "ber"])
    @pytest.mark.slow
    def test_rates_at_the_threshold_of_least_balanced_error(self, criterion):
        y = np.where(LATENT > 0.3, "yes", "no")
        model = fitted(y, criterion=criterion, threshold="balanced")
        assert_allclose(model.loo_score_, Refitted(y, None).score(criterion, "balanced"))
        assert_allclose(model.threshold_, find_threshold(model.loo_, "balanced")[0])
        assert model.loo_score_ != fitted(y, criterion=criterion).loo_score_

    @pytest.mark.slow
    def test_class_weights_count_in_costs_and_sigmoids(self):
        factor = np.where(TWO == "yes", 5.0, 1.0)
        model = fitted(class_weight={"yes": 5.0}, selection_weight=None, probability="single")
        refitted = Refitted(TWO, factor)
        refitted.weight = np.ones(N)
        score = refitted.score("log_likelihood", probability="single")
        assert_allclose(model.loo_score_, score, rtol=1e-6)
        assert C < np.abs(model.dual_coef_).max() <= 5 * C

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore::looms.OneClassWarning")
    def test_class_weights_of_three_classes_count_in_the_sigmoids(self):
        factor = np.where(THREE == 2, 30.0, 1.0)
        model = fitted(THREE, class_weight={2: 30.0}, selection_weight=None, probability="single")
        refitted = Refitted(THREE, factor)
        refitted.weight = np.ones(N)
        score = refitted.score("log_likelihood", probability="single")
        assert_allclose(model.loo_score_, score, rtol=1e-6)
        assert np.sum(model.predict(X) == 2) > np.sum(fitted(THREE).predict(X) == 2)

    @pytest.mark.slow
    def test_selection_weights_change_the_criterion_only(self):
        model = fitted(selection_weight={"yes": 5.0}, probability="single")
        weight = np.where(TWO == "yes", 5.0, 1.0)
        refitted = Refitted(TWO, None)
        refitted.weight = weight
        score = refitted.score("log_likelihood", probability="single")
        assert_allclose(model.loo_score_, score, rtol=1e-6)
        assert_allclose(model.dual_coef_, fitted().dual_coef_)
        assert_array_equal(model.selection_weight_, weight)
        assert_array_equal(model.fit_weight_, np.ones(len(TWO)))

    def test_a_criterion_as_an_object(self):
        assert fitted(criterion=Hinge()).loo_score_ == fitted(criterion="hinge").loo_score_


class TestMachine:
    @pytest.mark.parametrize("class_weight", [None, "balanced", {"yes": 3.0}])
    @pytest.mark.parametrize("weight", [None, WEIGHT])
    def test_two_classes_are_those_of_scikit_learn(self, class_weight, weight):
        model = fitted(weight=weight, class_weight=class_weight)
        if class_weight == "balanced" and weight is not None:  # SVC counts samples, not weights
            mass = {label: weight[label == TWO].sum() for label in ("no", "yes")}
            class_weight = {label: weight.sum() / (2 * m) for label, m in mass.items()}
        svc = SVC(C=C, gamma=GAMMA, class_weight=class_weight, tol=1e-8).fit(X, TWO, weight)
        new = rng.normal(size=(20, 2))
        assert_allclose(outputs(model, new), svc.decision_function(new), atol=1e-3)
        assert_array_equal(model.support_, np.sort(svc.support_))
        assert_allclose(model.intercept_, svc.intercept_[0], atol=1e-3)
        assert_array_equal(model.support_vectors_, X[model.support_])

    def test_three_classes_are_those_of_scikit_learn(self):
        model = fitted(THREE)
        svc = SVC(C=C, gamma=GAMMA, tol=1e-8).fit(X, THREE)
        assert_array_equal(model.support_, np.sort(svc.support_))
        assert_allclose(model.intercept_, -svc.intercept_, atol=1e-3)
        assert_array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))
        assert np.mean(model.predict(X) == svc.predict(X)) > 0.9
        assert model.dual_coef_.shape == (len(model.support_), 3)
        assert model.intercept_.shape == (3,)

    @each_problem
    def test_samples_of_no_weight_take_no_part(self, y, weight):
        weight = np.ones(N) if weight is None else weight.copy()
        weight[::5] = 0.0
        seen = weight > 0
        model = fitted(y, weight)
        less = clone(model).fit(X[seen], y[seen], weight[seen])
        assert model.loo_score_ == less.loo_score_
        assert_allclose(model.loo_.outputs[seen], less.loo_.outputs)
        assert_allclose(model.loo_.outputs[~seen], outputs(less, X[~seen]))
        assert_array_equal(model.support_, np.flatnonzero(seen)[less.support_])
        assert_allclose(model.predict_proba(X), less.predict_proba(X))

    @each_problem
    @pytest.mark.slow
    def test_precomputed_and_sparse(self, y, weight):
        model = fitted(y, weight)
        K = RBF(GAMMA)(X)
        given = SVCCV("precomputed", param_grid={"C": C}).fit(K, y, weight)
        sparse = SVCCV(param_grid=HELD).fit(sp.csr_array(X), y, weight)
        for other, new in ((given, K[::3]), (sparse, sp.csr_array(X[::3]))):
            assert_allclose(other.loo_score_, model.loo_score_, rtol=1e-8)
            assert_allclose(other.decision_function(new), model.decision_function(X[::3]))
            assert_allclose(other.predict_proba(new), model.predict_proba(X[::3]))

    @pytest.mark.parametrize("probability", ["loo", "single"])
    def test_threshold(self, probability):
        half, low = (fitted(threshold=at, probability=probability) for at in (0.5, 0.2))
        assert_array_equal(low.predict_proba(X), half.predict_proba(X))
        for at, model in ((0.5, half), (0.2, low)):
            assert_array_equal(model.predict(X) == "yes", model.predict_proba(X)[:, 1] > at)
        assert (low.predict(X) != half.predict(X)).any()
        assert_allclose(outputs(low, X), outputs(half, X), rtol=1e-12, atol=1e-12)
        assert_array_equal(low.loo_.outputs, half.loo_.outputs)

    def test_without_probabilities_the_sign_decides(self):
        model, other = fitted(probability=None), fitted()
        assert model.threshold_ == 0.0
        assert_allclose(model.decision_function(X), outputs(other, X), rtol=1e-12, atol=1e-12)


class TestProbabilities:
    @pytest.mark.parametrize("probability", ["loo", "single"])
    def test_of_two_classes(self, probability):
        model = fitted(probability=probability)
        f = model.loo_.outputs if probability == "loo" else outputs(model, X)
        sigmoid = fit_sigmoid(f, np.where(TWO == "yes", 1, -1))
        p = sigmoid.probability(outputs(model, X))
        assert_allclose(model.predict_proba(X), np.column_stack([1 - p, p]), rtol=1e-9)
        assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))

    def test_leave_one_out_outputs_make_them_less_sure(self):
        (loo,), (single,) = fitted().calibrators_, fitted(probability="single").calibrators_
        assert single.slope < loo.slope < 0

    @pytest.mark.parametrize("probability", ["loo", "single"])
    def test_of_three_classes(self, probability):
        model = fitted(THREE, probability=probability)
        refitted = refitted_problem("three")
        new = rng.normal(size=(7, 2))
        pairwise = np.full((7, 3, 3), 0.5)
        for q, (a, b) in enumerate(refitted.pairs):
            own = np.isin(THREE, [a, b])
            y = np.where(THREE[own] == b, 1.0, -1.0)
            machine = solve(refitted.K[np.ix_(own, own)], y, C)
            f = refitted.outputs[own, q] if probability == "loo" else machine.outputs
            sigmoid = fit_sigmoid(f, y)
            values = RBF(GAMMA)(new, X[own]) @ (machine.alpha * y) + machine.intercept
            pairwise[:, b, a] = expit(-(sigmoid.slope * values + sigmoid.intercept))
            pairwise[:, a, b] = 1 - pairwise[:, b, a]
        assert_allclose(model.predict_proba(new), couple(pairwise), rtol=1e-5)

    def test_none(self):
        model = fitted(probability=None)
        assert model.calibrators_ is None
        assert not hasattr(model, "predict_proba")
        assert not hasattr(model, "predict_log_proba")


GRID = {"C": [1.0, 10.0, 100.0], "gamma": [0.05, 0.5]}


@pytest.mark.filterwarnings("ignore::looms.BoundWarning")
class TestSearch:
    @pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
    @pytest.mark.slow
    def test_grid_is_the_best_of_single_fits(self, y):
        model = SVCCV(param_grid=GRID, search="grid").fit(X, y)
        table = pd.DataFrame(model.cv_results_)
        assert len(table) == 6
        for row in table.itertuples():
            one = SVCCV(param_grid={"C": row.param_C, "gamma": row.param_gamma}).fit(X, y)
            assert_allclose(one.loo_score_, row.loo_score, rtol=1e-7)
            assert one.cv_results_["n_support"] == [row.n_support]
        assert model.loo_score_ == table.loo_score.min()
        best = table.iloc[model.best_index_]
        assert best.rank_loo_score == 1
        assert (model.C_, model.kernel_.gamma) == (best.param_C, best.param_gamma)
        assert best.params == {"C": model.C_, "gamma": model.kernel_.gamma}
        assert set(table.param_C) == {1.0, 10.0, 100.0}  # to the last digit

    @pytest.mark.slow
    def test_pattern_comes_close_to_a_fine_grid_with_few_points(self):
        """It is local: at 36 samples the deviance has many minima, its standard error is 15 %."""
        fine = {"C": 2.0 ** np.arange(-3, 11), "gamma": 2.0 ** np.arange(-8, 4)}
        coarse = {"C": 2.0 ** np.arange(-3, 11, 2), "gamma": 2.0 ** np.arange(-8, 4, 2)}
        grid = SVCCV(param_grid=fine, search="grid").fit(X, TWO)
        pattern = SVCCV(param_grid=coarse).fit(X, TWO)
        assert pattern.loo_score_ <= grid.loo_score_
        assert len(pattern.cv_results_["params"]) < 80 < len(grid.cv_results_["params"])

    @pytest.mark.slow
    def test_resolution(self):
        coarse, fine = (SVCCV(resolution=r).fit(X, TWO) for r in (2.0, 0.25))
        assert fine.loo_score_ < coarse.loo_score_
        assert set(np.log2(coarse.cv_results_["param_C"]) % 1) == {0.0}

    def test_of_equal_scores_the_smallest_C(self):
        """Far apart classes: from some C on no coefficient is bounded and nothing changes."""
        apart = np.r_[X[:10] - 9, X[10:20] + 9]
        y = np.repeat([0, 1], 10)
        grid = {"C": [1e-3, 10, 100, 1000], "gamma": [0.01]}
        model = SVCCV("rbf", "hinge", param_grid=grid, search="grid").fit(apart, y)
        scores = model.cv_results_["loo_score"]
        assert_allclose(scores[1:], scores[1])
        assert model.C_ == 10

    @pytest.mark.slow
    def test_several_kernels(self):
        grid = {"C": [0.1, 1, 10], "gamma": [0.1, 1], "c": [0.5, 2]}
        kernels = ["linear", "rbf", Polynomial(degree=2)]
        model = SVCCV(kernels, param_grid=grid, search="grid").fit(X, TWO)
        table = pd.DataFrame(model.cv_results_)
        assert table.kernel.value_counts().to_dict() == {
            "linear": 3,
            "rbf": 6,
            "Polynomial()": 6,
        }
        assert table.param_gamma.notna().sum() == table.param_c.notna().sum() == 6
        alone = [
            SVCCV(k, search="grid", param_grid={n: grid[n] for n in names}).fit(X, TWO)
            for k, names in zip(kernels, [["C"], ["C", "gamma"], ["C", "c"]], strict=True)
        ]
        best = min(alone, key=lambda m: m.loo_score_)
        assert_allclose(model.loo_score_, best.loo_score_)
        assert type(model.kernel_) is type(best.kernel_)

    @pytest.mark.slow
    def test_values_that_a_kernel_holds(self):
        model = SVCCV(RBF(0.3, gamma_bounds="fixed")).fit(X, TWO)
        assert model.kernel_.gamma == 0.3
        assert set(model.cv_results_) >= {"param_C"}
        assert "param_gamma" not in model.cv_results_
        bounded = SVCCV(RBF(0.3, gamma_bounds=(0.2, 0.5)), search="grid").fit(X, TWO)
        assert set(bounded.cv_results_["param_gamma"]) == {0.2, 0.25, 0.5}

    @pytest.mark.slow
    def test_units_of_the_features_change_nothing(self):
        one, other = SVCCV("linear").fit(X, TWO), SVCCV("linear").fit(256 * X, TWO)
        assert_allclose(other.C_ * 256**2, one.C_)
        assert_allclose(other.loo_score_, one.loo_score_, rtol=1e-6)

    @pytest.mark.slow
    def test_jobs_change_nothing(self):
        one = SVCCV(param_grid=GRID).fit(X, THREE)
        two = SVCCV(param_grid=GRID, n_jobs=2).fit(X, THREE)
        assert_array_equal(one.cv_results_["loo_score"], two.cv_results_["loo_score"])
        assert_array_equal(one.dual_coef_, two.dual_coef_)

    @pytest.mark.parametrize("grid", [{"C": [1e-4, 1e-3]}, {"gamma": [1e-5, 1e-4]}])
    def test_an_edge_is_pointed_out(self, grid):
        (name,) = grid
        with pytest.warns(BoundWarning, match=f"{name} = .* value searched: .*param_grid"):
            SVCCV("rbf", param_grid={**HELD, **grid}).fit(X, TWO)

    @pytest.mark.slow
    def test_mackerel(self, data_folder):
        """The search of the paper, 477.04 there."""
        table = pd.read_csv(data_folder / "mackerel.csv")
        columns = ["lon", "lat", "b.depth", "c.dist", "temp.20m"]
        grid = {"C": [2**3.5, 2**5.5, 2**7.5], "gamma": [0.125, 0.25, 0.5]}
        model = SVCCV(param_grid=grid, search="grid", probability="single")
        model.fit(scale(table[columns]), table.target)
        assert (model.C_, model.kernel_.gamma) == (2**5.5, 0.25)
        assert model.loo_score_ == pytest.approx(471.732, abs=1e-3)


class TestWithScikitLearn:
    @each_problem
    def test_pickle_and_clone(self, y, weight):
        model = fitted(y, weight)
        again = pickle.loads(pickle.dumps(model))
        assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        assert clone(model).get_params() == model.get_params()

    def test_names_of_features(self):
        frame = pd.DataFrame(X, columns=["a", "b"])
        model = make_pipeline(StandardScaler(), SVCCV(param_grid=HELD)).fit(frame, TWO)
        assert model.predict(frame).shape == (N,)
        assert_array_equal(SVCCV(param_grid=HELD).fit(frame, TWO).feature_names_in_, ["a", "b"])

    def test_arguments_stay_as_they_are(self, read_only):
        fitted(weight=read_only(WEIGHT))
        SVCCV(param_grid=HELD).fit(read_only(X), TWO)


class TestBadInput:
    @pytest.mark.parametrize(
        ("parameters", "text"),
        [
            ({"criterion": "loss"}, "Unknown criterion 'loss'; known are log_likelihood, error"),
            ({"search": "random"}, "search must be 'pattern' or 'grid'"),
            ({"resolution": 0.0}, "resolution must be a positive number"),
            ({"resolution": "fine"}, "resolution must be a positive number"),
            ({"probability": True}, "probability must be 'loo', 'single' or None"),
            ({"threshold": "error"}, "threshold must be a probability"),
            ({"threshold": 0.0}, "is not a probability between 0 and 1"),
            ({"threshold": 0.3, "probability": None}, "is a probability, but probability=None"),
            ({"kernel": []}, "at least one candidate"),
            ({"kernel": "rfb"}, "Unknown kernel 'rfb'"),
            ({"kernel": ["rbf", "precomputed"]}, "cannot be candidates for the same X"),
            ({"param_grid": {"C": [0.0, 1.0]}}, r"param_grid\['C'\] must be positive numbers"),
            ({"param_grid": {"C": []}}, "must be positive numbers"),
            ({"param_grid": {"C": "large"}}, "must be positive numbers"),
            ({"param_grid": [1, 2]}, "must be None or a dict"),
            ({"param_grid": {"eta": [1]}}, r"names \['eta'\].* known are \['C', 'gamma'\]"),
            ({"kernel": 0.5 * RBF() + 0.5 * Linear()}, "has 3 hyper-parameters here"),
            ({"class_weight": "even"}, "class_weight must be None, 'balanced' or a dict"),
            ({"selection_weight": "even"}, "selection_weight must be 'class_weight', None"),
            ({"kernel": "precomputed"}, "square matrix"),
        ],
    )
    def test_parameters(self, parameters, text):
        with pytest.raises(ValueError, match=text):
            SVCCV(**parameters).fit(X, TWO)

    def test_a_criterion_that_is_none(self):
        with pytest.raises(TypeError, match="A criterion is a name or"):
            SVCCV(criterion=3).fit(X, TWO)

    def test_threshold_of_three_classes(self):
        with pytest.raises(ValueError, match="needs two classes"):
            SVCCV(threshold="balanced").fit(X, THREE)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_values_that_are_no_numbers(self, value):
        bad = X.copy()
        bad[3, 1] = value
        with pytest.raises(ValueError, match="Input X contains"):
            SVCCV().fit(bad, TWO)
        with pytest.raises(ValueError, match="Input X contains"):
            fitted().predict(bad)

    def test_kernel_values_that_are_no_numbers(self):
        with pytest.raises(ValueError, match="their squares overflow: scale the features"):
            SVCCV(Polynomial(3, 1.0)).fit(1e200 * X, TWO)

    def test_a_matrix_that_is_no_kernel(self):
        K = -RBF(1.0)(X)
        with pytest.raises(ValueError, match="not positive semi-definite"):
            SVCCV("precomputed").fit(K, TWO)

    def test_one_class(self):
        with pytest.raises(ValueError, match="only one class is present"):
            SVCCV().fit(X, np.zeros(N))

    @pytest.mark.filterwarnings("ignore::looms.OneClassWarning")
    @pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
    def test_a_class_of_one_sample(self, y):
        y = np.array(y, dtype=object)
        y[(y == y[0])] = y[y != y[0]][0]
        y[0] = "odd" if isinstance(y[1], str) else 7
        y = y.astype(type(y[1]))
        with pytest.warns(UserWarning, match="has only one sample.*leave it out"):
            model = SVCCV(param_grid=HELD).fit(X, y)
        assert np.isfinite(model.loo_score_)
        decided = (
            model.loo_.outputs > 0 if model.loo_.y.ndim == 1 else model.loo_.outputs.argmax(axis=1)
        )
        assert model.classes_[np.asarray(decided, dtype=int)[0]] != y[0]

    def test_classes_of_one_sample_each(self):
        with pytest.raises(ValueError, match="Each of the 2 classes has only one sample"):
            SVCCV().fit(X[:2], [0, 1])

    def test_points_without_convergence_are_passed_over(self, monkeypatch):
        def failing(sample, kernel, costs, score):
            scored = _sweep(sample, kernel, costs, score)
            return [
                type(one)(np.nan, 0, 0.0, str(NotConvergedError(1e-3, 0.25))) if cost > 5 else one
                for cost, one in zip(costs, scored, strict=True)
            ]

        _sweep = _svm_search.sweep
        monkeypatch.setattr(_svm_search, "sweep", failing)
        grid = {"C": [1e-3, 0.5, 3.0, 10.0], "gamma": [GAMMA]}
        model = SVCCV("rbf", "hinge", param_grid=grid, search="grid")
        with pytest.warns(ConvergenceWarning, match=r"1 of 4 settings.*duality gap is 0.25"):
            model.fit(X, TWO)
        assert model.C_ in (0.5, 3.0)
        assert np.isnan(model.cv_results_["loo_score"][3])
        assert model.cv_results_["rank_loo_score"][3] == 4
        with pytest.raises(ValueError, match=r"No setting of 1 has a score.*duality gap is 0.25"):
            SVCCV(param_grid={**grid, "C": 10.0}).fit(X, TWO)

    def test_a_fit_that_fails_leaves_the_machine_before(self):
        model = fitted()
        before = model.predict_proba(X)
        with pytest.raises(ValueError, match="only one class"):
            model.fit(X, np.zeros(N))
        assert_array_equal(model.predict_proba(X), before)
