"""SVCCV with rows that are held out together, against refits; nested choice, scores, sets."""

import pickle
from itertools import combinations, product

import numpy as np
import pytest
import scipy.sparse as sp
from evaluated import evaluated
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import pairwise
from sklearn import config_context
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold

from looms import SVCCV
from looms._classes import class_indices
from looms.calibration._coupling import couple
from looms.calibration._sigmoid import fit_increasing_sigmoid
from looms.conformal import prediction_sets
from looms.conformal._sets import class_margins
from looms.criteria import DIFFERENTIABLE
from looms.criteria._error_rates import error_rate
from looms.estimators._folds import outer_folds
from looms.kernels import RBF
from looms.model_files import load_model, save_model
from looms.selection._fold_pairs import pair_auc
from looms.svm.dual import solve

N = 36
rng = np.random.default_rng(23)
X = rng.normal(size=(N, 2))
NEW = rng.normal(size=(7, 2))
LATENT = X[:, 0] - X[:, 1] ** 2 + 0.7 * rng.normal(size=N)
TWO = np.where(LATENT > -0.6, "yes", "no")
THREE = np.digitize(LATENT, np.quantile(LATENT, [0.3, 0.7]))
WEIGHT = rng.integers(1, 4, size=N) / 2.0
GROUPS = np.array([f"g{k}" for k in rng.integers(0, 11, size=N)])
NUMBERS = np.unique(GROUPS, return_inverse=True)[1]
C, GAMMA = 3.0, 0.4
HELD = {"param_grid": {"C": [C], "gamma": [GAMMA]}, "search": "grid"}
K = RBF(GAMMA)(X)
TOGETHER = {"groups": ({}, GROUPS), "cv": ({"cv": 4}, None), "cv of groups": ({"cv": 3}, GROUPS)}

pytestmark = [
    pytest.mark.filterwarnings("ignore::looms.BoundWarning"),
    pytest.mark.filterwarnings("ignore::looms.OneClassWarning"),
]


def without(labels, weight, rest, K_new):
    """Outputs for new samples of the machine of every pair on some rows, and for its own."""
    pairs = []
    for a, b in combinations(range(labels.max() + 1), 2):
        part = np.flatnonzero(rest & np.isin(labels, [a, b]))
        y = np.where(labels[part] == b, 1.0, -1.0)
        machine = solve(K[np.ix_(part, part)], y, C * weight[part])
        f = K_new[:, part] @ (machine.alpha * y) + machine.intercept
        pairs.append((part, y, machine.outputs, f))
    return pairs


def coupled(log_odds):
    """Logarithms of the class probabilities of (n, 3) log-odds of pairs of three classes."""
    p = 1 / (1 + np.exp(-log_odds))
    pairwise = np.full((len(p), 3, 3), 0.5)
    for q, (a, b) in enumerate(combinations(range(3), 2)):
        pairwise[:, b, a], pairwise[:, a, b] = p[:, q], 1 - p[:, q]
    return np.log(couple(pairwise))


class Refitted:
    """Outputs of every pair, (n, n_pairs), and sigmoids, without the fold of each row."""

    def __init__(self, y, weight, numbers, K_new=None):
        self.labels = np.unique(y, return_inverse=True)[1]
        n_pairs = self.labels.max() * (self.labels.max() + 1) // 2
        self.outputs = np.empty((N, n_pairs))
        self.new = None if K_new is None else np.empty((len(K_new), N, n_pairs))
        for g in np.unique(numbers):
            own = numbers == g
            for q, (*_, f) in enumerate(without(self.labels, weight, ~own, K[own])):
                self.outputs[own, q] = f
            if K_new is not None:
                for q, (*_, f) in enumerate(without(self.labels, weight, ~own, K_new)):
                    self.new[:, own, q] = f[:, None]
        self.slopes, self.intercepts = np.empty((2, N, n_pairs))
        for q, (a, b) in enumerate(combinations(range(self.labels.max() + 1), 2)):
            for g in np.unique(numbers):
                part = (numbers != g) & np.isin(self.labels, [a, b])
                t = np.where(self.labels[part] == b, 1.0, -1.0)
                one = fit_increasing_sigmoid(self.outputs[part, q], t, weight[part])
                self.slopes[numbers == g, q] = one.slope
                self.intercepts[numbers == g, q] = one.intercept

    def decisions(self, outputs):
        if outputs.shape[-1] == 1:
            return outputs[..., 0]
        log_odds = -(self.slopes * outputs + self.intercepts)
        return coupled(log_odds.reshape(-1, 3)).reshape(outputs.shape)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("y", "weight", "together"), pairwise([TWO, THREE], [None, WEIGHT], TOGETHER)
)
def test_held_out_outputs_are_those_of_machines_without_the_rows(y, weight, together):
    options, groups = TOGETHER[together]
    model = SVCCV(**HELD, **options).fit(X, y, weight, groups=groups)
    (numbers,) = model.units_.number
    w = np.ones(N) if weight is None else weight
    expected = Refitted(y, w, numbers)
    atol = 1e-8 if y is TWO else 1e-6  # of the coupling
    assert_allclose(model.held_out_.outputs, expected.decisions(expected.outputs), atol=atol)
    p = -(expected.slopes * expected.outputs + expected.intercepts)
    log_p = (
        coupled(p) if y is THREE else np.column_stack([-np.logaddexp(0, p), -np.logaddexp(0, -p)])
    )
    deviance = -2 * w @ log_p[np.arange(N), expected.labels]
    assert model.loo_score_ == pytest.approx(deviance, rel=1e-6)
    alone = SVCCV(**HELD).fit(X, y, weight)
    assert_array_equal(model.loo_.outputs, alone.loo_.outputs)
    assert_array_equal(model.dual_coef_, alone.dual_coef_)
    assert not np.allclose(model.held_out_.outputs, model.loo_.outputs)


@pytest.mark.parametrize("criterion", ["error", "squared_hinge"])
def test_the_criterion_judges_the_outputs_of_groups(criterion):
    model = SVCCV(criterion=criterion, probability=None, **HELD).fit(X, TWO, groups=GROUPS)
    held_out = model.held_out_
    rate = error_rate if criterion == "error" else DIFFERENTIABLE[criterion].evaluate
    value = rate(*held_out)
    assert model.loo_score_ == pytest.approx(value if criterion == "error" else value.value)


def test_threshold_and_sigmoid_are_set_by_what_was_held_out():
    model = SVCCV(threshold="balanced", **HELD).fit(X, TWO, groups=GROUPS)
    sigmoid = fit_increasing_sigmoid(model.held_out_.outputs, model.held_out_.y)
    (own,) = model.calibrators_
    assert (own.slope, own.intercept) == pytest.approx((sigmoid.slope, sigmoid.intercept))
    middle = np.convolve(np.sort(model.held_out_.outputs), [0.5, 0.5], "valid")
    assert np.abs(middle - model.threshold_).min() < 1e-12


@pytest.mark.slow
def test_each_row_its_own_group_is_leave_one_out():
    one, other = (SVCCV(**HELD).fit(X, THREE, groups=g) for g in (None, np.arange(N)))
    assert other.loo_score_ == pytest.approx(one.loo_score_, rel=1e-9)
    assert_allclose(other.held_out_.outputs, one.loo_.outputs, atol=1e-8)


def test_rows_of_weight_zero_have_the_output_of_the_machine():
    weight = np.where(np.arange(N) % 5 == 2, 0.0, 1.0)
    model = SVCCV(probability=None, **HELD).fit(X, TWO, weight, groups=GROUPS)
    zero = weight == 0
    decision = model.decision_function(X[zero])
    assert_allclose(model.held_out_.outputs[zero], decision)
    part = SVCCV(probability=None, **HELD).fit(X[~zero], TWO[~zero], groups=GROUPS[~zero])
    assert_allclose(model.held_out_.outputs[~zero], part.held_out_.outputs, atol=1e-9)


@pytest.mark.slow
def test_a_kernel_matrix_and_sparse_samples_have_groups_too():
    options = {"search": "grid"}
    plain = SVCCV(RBF(GAMMA, gamma_bounds="fixed"), param_grid={"C": C}, **options)
    given = SVCCV("precomputed", param_grid={"C": C}, **options).fit(K, TWO, groups=GROUPS)
    plain.fit(sp.csr_array(X), TWO, groups=GROUPS)
    assert_allclose(given.held_out_.outputs, plain.held_out_.outputs, atol=1e-8)
    assert_allclose(
        given.evaluate()._nested.held_out.outputs,
        plain.evaluate()._nested.held_out.outputs,
        atol=1e-8,
    )
    K_new = RBF(GAMMA)(NEW, X)
    assert_array_equal(
        evaluated(given).predict_set(K_new), evaluated(plain).predict_set(sp.csr_array(NEW))
    )


@pytest.mark.parametrize(
    ("options", "groups", "text"),
    [
        ({}, np.zeros(N), "All rows are in one group"),
        ({}, [None, *range(N - 1)], "no label for 1 of 36 rows"),
        ({}, np.where(TWO == "no", 0, np.arange(N)), "class 'no' are in one group"),
        ({"cv": 1}, None, "cv must be from 2 folds to the number of rows"),
        ({"cv": [*KFold(4).split(X)]}, np.arange(N) % 2, "cv separates rows of a group"),
    ],
)
def test_what_cannot_be_held_out_is_refused(options, groups, text):
    with pytest.raises(ValueError, match=text):
        SVCCV(**HELD, **options).fit(X, TWO, groups=groups)


def test_folds_that_are_too_many_for_an_evaluation():
    with pytest.raises(ValueError, match="cv has 12 folds, but nested evaluation needs"):
        SVCCV(**HELD, cv=KFold(12)).fit(X, TWO).evaluate()


def test_groups_are_routed():
    with config_context(enable_metadata_routing=True):
        model = SVCCV(search="grid", param_grid=HELD["param_grid"]).set_fit_request(groups=True)
        search = GridSearchCV(model, {"probability": ["loo"]}, cv=GroupKFold(3))
        search.fit(X, TWO, groups=GROUPS)
    assert_array_equal(search.best_estimator_.units_.clusters, NUMBERS)


class TestNested:
    @pytest.mark.slow
    def test_the_folds_of_a_splitter_are_those_of_the_choice(self):
        options = {"param_grid": {"C": [0.1, 3.0], "gamma": [0.1, 0.4]}, "search": "grid"}
        nested = SVCCV(**options, cv=KFold(4)).fit(X, TWO).evaluate()._nested
        for rest, out in KFold(4).split(X):
            assert len(np.unique(nested.folds[out])) == 1
            weight = np.array([(c == TWO).sum() / (TWO[rest] == c).sum() for c in TWO[rest]])
            weight *= len(rest) / weight.sum()
            one = SVCCV(**options, cv=nested.folds[rest]).fit(X[rest], TWO[rest], weight)
            raw = one.decision_function(X[out]) + one.threshold_
            assert_allclose(nested.held_out.outputs[out], raw)

    @pytest.mark.slow
    @pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
    def test_each_row_is_predicted_by_a_machine_chosen_without_its_fold(self, y):
        options = {"param_grid": {"C": [0.1, 3.0], "gamma": [0.1, 0.4]}, "search": "grid"}
        model = SVCCV(**options).fit(X, y, WEIGHT, groups=GROUPS)
        nested = model.evaluate()._nested
        assert all(len(np.unique(nested.folds[g == GROUPS])) == 1 for g in np.unique(GROUPS))
        assert len(nested.machines) == min(len(np.unique(GROUPS[y == c])) for c in np.unique(y))
        wrong = np.zeros(N)
        for k in range(len(nested.machines)):
            out = nested.folds == k
            shares = np.array([WEIGHT[y == c].sum() / WEIGHT[(y == c) & ~out].sum() for c in y])
            own = WEIGHT * shares  # classes weigh what they do in all
            own *= WEIGHT[~out].sum() / own[~out].sum()
            one = SVCCV(**options).fit(X[~out], y[~out], own[~out], groups=GROUPS[~out])
            raw = one.decision_function(X[out]) + one.threshold_
            assert_allclose(nested.held_out.outputs[out], raw)
            assert_allclose(nested.decisions.probabilities[out], one.predict_proba(X[out]))
            wrong[out] = one.predict(X[out]) != y[out]
        assert_array_equal(nested.decisions.wrong, wrong)
        assert model.evaluate()["error"] == pytest.approx(np.average(wrong, weights=WEIGHT))

    @pytest.mark.slow
    def test_the_area_is_of_rows_that_one_machine_has_not_seen(self):
        model = SVCCV(**HELD).fit(X, TWO)
        nested = model.evaluate()._nested
        sets = [np.flatnonzero(nested.folds == k) for k in np.unique(nested.folds)]
        y, f = nested.held_out.y[:, None], nested.held_out.outputs[:, None]
        assert model.evaluate()["auc"] == pair_auc(y, f, sets, [], [], np.ones(N))[0]

    @pytest.mark.slow
    def test_it_comes_back_from_a_file(self, tmp_path):
        model = SVCCV(**HELD).fit(X, TWO, groups=GROUPS)
        save_model(tmp_path / "m.skops", model, {})
        for loaded in (load_model(tmp_path / "m.skops").model, pickle.loads(pickle.dumps(model))):
            assert loaded.evaluate() == model.evaluate()
            assert loaded.evaluate().standard_errors == model.evaluate().standard_errors
            assert_array_equal(
                evaluated(loaded).predict_set(NEW, 0.8), evaluated(model).predict_set(NEW, 0.8)
            )


class TestScores:
    @pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
    @pytest.mark.slow
    def test_they_are_of_the_decisions_on_what_was_held_out(self, y):
        model = SVCCV(**HELD).fit(X, y, WEIGHT, groups=GROUPS)
        labels = np.unique(y, return_inverse=True)[1]
        held_out = model.held_out_
        wrong = class_indices(held_out.outputs, model.threshold_) != labels
        scores = model.evaluate(nested=False)
        assert list(scores) == list(scores.standard_errors) == ["error", "ber", "auc", "log_loss"]
        assert scores["error"] == pytest.approx(np.average(wrong, weights=WEIGHT))
        folds = outer_folds(None, labels, NUMBERS, True, 0)
        apart = SVCCV(**HELD, cv=folds).fit(X, y, WEIGHT, groups=GROUPS)
        assert scores["auc"] == pytest.approx(apart.evaluate(nested=False)["auc"], abs=1e-9)
        p = np.exp(held_out.outputs)
        if y is TWO:
            p = model.calibrators_[0].probability(held_out.outputs)
            p = np.column_stack([1 - p, p])
        loss = -np.log(p[np.arange(N), labels])
        assert scores["log_loss"] == pytest.approx(np.average(loss, weights=WEIGHT))

    @pytest.mark.slow
    def test_the_area_of_noise_is_a_half_however_smooth_the_machine(self):
        smooth = {"param_grid": {"C": [0.05], "gamma": [0.1]}, "search": "grid"}
        areas = []
        for seed in range(12):
            rng = np.random.default_rng(seed)
            noise, label = rng.normal(size=(60, 5)), rng.permutation(60) < 30
            model = SVCCV(**smooth).fit(noise, label)
            assert roc_auc_score(label, model.loo_.outputs) < 0.2  # as each leans from its class
            areas.append(model.evaluate()["auc"])
        assert abs(np.mean(areas) - 0.5) < 3 * np.std(areas) / np.sqrt(12)

    @pytest.mark.slow
    def test_without_probabilities_there_is_no_log_loss(self):
        for y in (TWO, THREE):
            assert "log_loss" not in SVCCV(**HELD, probability=None).fit(X, y).evaluate()

    @pytest.mark.slow
    def test_repeats_held_out_together_count_once(self):
        four = np.repeat(np.arange(N), 4)
        plain = SVCCV(**HELD, probability=None).fit(X, TWO)
        quarter = {"C": [C / 4], "gamma": [GAMMA]}
        repeated = SVCCV(param_grid=quarter, search="grid", probability=None)
        repeated.fit(X[four], TWO[four], groups=four)
        assert_allclose(repeated.held_out_.outputs, plain.loo_.outputs[four], atol=1e-8)
        for name in ("error", "ber"):
            assert repeated.evaluate()[name] == pytest.approx(plain.evaluate()[name])
            assert repeated.evaluate().standard_errors[name] == pytest.approx(
                plain.evaluate().standard_errors[name], rel=0.03
            )


class TestSets:
    @pytest.mark.slow
    @pytest.mark.parametrize("groups", [None, GROUPS], ids=["rows", "groups"])
    @pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
    def test_they_are_of_machines_without_each_row_or_its_group(self, y, groups):
        model = SVCCV(**HELD).fit(X, y, WEIGHT, groups=groups)
        numbers = np.arange(N) if groups is None else NUMBERS
        refits = Refitted(y, WEIGHT, numbers, RBF(GAMMA)(NEW, X))
        values, new = refits.decisions(refits.outputs), refits.decisions(refits.new)
        labels = refits.labels
        loo = class_margins(values.reshape(N, -1))[np.arange(N), labels]
        scores = class_margins(new.reshape(len(NEW), N, -1))
        for coverage, conditional in product((0.5, 0.8), (False, True)):
            expected = prediction_sets(loo, scores, coverage, labels if conditional else None)
            assert_array_equal(evaluated(model).predict_set(NEW, coverage, conditional), expected)

    @pytest.mark.slow
    def test_nested_ones_are_of_machines_chosen_without_the_fold(self):
        model = SVCCV(**HELD).fit(X, TWO)
        nested = model.evaluate()._nested
        points = np.random.default_rng(1).normal(size=(60, 2))
        machines = [nested.machines[k] for k in nested.folds]
        new = np.stack([one.decision_function(points) + one.threshold_ for one in machines], axis=1)
        labels = (TWO == "yes").astype(int)
        loo = class_margins(nested.held_out.outputs[:, None])[np.arange(N), labels]
        for coverage in (0.6, 0.7, 0.8, 0.9):
            expected = prediction_sets(loo, class_margins(new[..., None]), coverage)
            assert_array_equal(evaluated(model).predict_set(points, coverage), expected)
