"""Kernel classifiers with a hinge loss, against refits of every pair, machine and sigmoid."""

from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
import scipy.sparse as sp
from evaluated import evaluated
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import in_turn, pairwise
from sklearn.base import clone
from sklearn.svm import SVC
from stacks import stacked_classifier

from looms import (
    BoundWarning,
    KernelClassifier,
    KernelRegressor,
    Search,
)
from looms._classes import class_targets
from looms.calibration import fit_calibrator
from looms.calibration._coupling import couple
from looms.calibration._sigmoid import fit_increasing_sigmoid
from looms.conformal import prediction_sets
from looms.conformal._sets import class_margins
from looms.criteria import DIFFERENTIABLE
from looms.kernels import RBF, Linear
from looms.kernels._names import as_kernel
from looms.selection._fold_pairs import fold_pairs, pair_auc
from looms.selection._stack import stacking_weights
from looms.svm.dual import solve

N = 36
rng = np.random.default_rng(23)
X = rng.normal(size=(N, 2))
NEW = rng.normal(size=(7, 2))
LATENT = X[:, 0] - X[:, 1] ** 2 + 0.7 * rng.normal(size=N)
TWO = np.where(LATENT > -0.6, "yes", "no")
THREE = np.digitize(LATENT, np.quantile(LATENT, [0.3, 0.7]))
CLASSES = {"two": TWO, "three": THREE}
WEIGHT = rng.integers(1, 4, size=N) / 2.0
GROUPS = np.array([f"g{k}" for k in rng.integers(0, 11, size=N)])
C, GAMMA = 3.0, 0.4
MU = 1.0 / (N * C)
HELD = RBF(GAMMA, gamma_bounds="fixed")
TOGETHER = {
    "rows": ({}, None),
    "groups": ({}, GROUPS),
    "folds": ({"cv": 4}, None),
    "folds of groups": ({"cv": 3}, GROUPS),
    "repeated folds": ({"cv": "2x3"}, None),
}

hinge = partial(KernelClassifier, loss="hinge")
given = partial(hinge, HELD, mu=MU)
pytestmark = [
    pytest.mark.filterwarnings("ignore::looms.BoundWarning"),
    pytest.mark.filterwarnings("ignore::looms.OneClassWarning"),
]


class Refitted:
    """Outputs of every pair, (n, n_pairs), and sigmoids, without the unit of each row."""

    def __init__(self, y, weight=None, numbers=None, cost=C, K_new=None):
        self.labels = np.unique(y, return_inverse=True)[1]
        self.pairs = list(combinations(range(self.labels.max() + 1), 2))
        weight = np.ones(N) if weight is None else weight
        self.weight, self.cost = weight * (N / weight.sum()), cost
        self.K, self.numbers = RBF(GAMMA)(X), np.arange(N) if numbers is None else numbers
        self.outputs, self.slopes, self.intercepts = np.empty((3, N, len(self.pairs)))
        self.new = None if K_new is None else np.empty((len(K_new), N, len(self.pairs)))
        for q, g in product(range(len(self.pairs)), np.unique(self.numbers)):
            own = self.numbers == g
            self.outputs[own, q] = self.solved(q, ~own, self.K[own])
            if K_new is not None:
                self.new[:, own, q] = self.solved(q, ~own, K_new)[:, None]
        for q, g in product(range(len(self.pairs)), np.unique(self.numbers)):
            rest = self.numbers != g
            sigmoid = self.sigmoid(q, rest, self.outputs[:, q])
            self.slopes[~rest, q], self.intercepts[~rest, q] = sigmoid.slope, sigmoid.intercept

    def part(self, q, rows):
        part = np.flatnonzero(rows & np.isin(self.labels, self.pairs[q]))
        return part, np.where(self.labels[part] == self.pairs[q][1], 1.0, -1.0)

    def solved(self, q, rows, K_new):
        """Outputs for new samples of the machine of a pair on some rows."""
        part, y = self.part(q, rows)
        machine = solve(self.K[np.ix_(part, part)], y, self.cost * self.weight[part])
        return K_new[:, part] @ (machine.alpha * y) + machine.intercept

    def sigmoid(self, q, rows, f):
        part, y = self.part(q, rows)
        return fit_increasing_sigmoid(f[part], y, self.weight[part])

    def log_p(self, outputs, slopes, intercepts):
        """Logarithms of the class probabilities, (..., k)."""
        p = 1 / (1 + np.exp(slopes * outputs + intercepts))
        pairwise = np.full((*p.shape[:-1], *[self.labels.max() + 1] * 2), 0.5)
        for q, (a, b) in enumerate(self.pairs):
            pairwise[..., b, a], pairwise[..., a, b] = p[..., q], 1 - p[..., q]
        k = pairwise.shape[-1]
        return np.log(couple(pairwise.reshape(-1, k, k))).reshape(pairwise.shape[:-1])

    def decisions(self, outputs):
        """Outputs of the model: of two classes those of the pair."""
        several = len(self.pairs) > 1
        return self.log_p(outputs, self.slopes, self.intercepts) if several else outputs[..., 0]

    def of_all(self, K_new):
        """Outputs of the model of all rows for new samples."""
        every = np.full(N, True)
        f = np.column_stack([self.solved(q, every, K_new) for q in range(len(self.pairs))])
        if len(self.pairs) == 1:
            return f[:, 0]
        fitted = [self.sigmoid(q, every, self.outputs[:, q]) for q in range(len(self.pairs))]
        return self.log_p(f, *np.array([(one.slope, one.intercept) for one in fitted]).T)

    def score(self, criterion, weight):
        """The criterion with some weights of the rows."""
        if criterion == "deviance":
            own = np.arange(N), self.labels
            return -2 * weight @ self.log_p(self.outputs, self.slopes, self.intercepts)[own]
        parts = [self.part(q, np.full(N, True)) for q in range(len(self.pairs))]
        values = [
            DIFFERENTIABLE[criterion].evaluate(y, self.outputs[part, q], weight[part]).value
            for q, (part, y) in enumerate(parts)
        ]
        return np.average(values, weights=[weight[part].sum() for part, _ in parts])


def fitted(y=TWO, weight=None, groups=None, **options):
    return given(**options).fit(X, y, weight, groups=groups)


def tuned(criterion=None, y=TWO, weight=None, kernel=HELD, search=(), groups=None, **options):
    options["search"] = Search(criterion, **{"resolution": 4.0, **dict(search)})
    return hinge(kernel, **options).fit(X, y, weight, groups=groups)


def cost_of(model):
    return 1.0 / (N * model.mu_)


class TestHeldOut:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("y", "weight", "together"), pairwise(CLASSES, [None, WEIGHT], TOGETHER)
    )
    def test_outputs_are_those_of_machines_without_the_rows(self, y, weight, together):
        (options, groups), y = TOGETHER[together], CLASSES[y]
        model = fitted(y, weight, groups, **options)
        repetitions = [Refitted(y, weight, numbers) for numbers in model.units_.number]
        expected = np.mean([one.decisions(one.outputs) for one in repetitions], axis=0)
        atol = 1e-8 if y is TWO else 1e-6  # of the coupling
        assert_allclose(model.held_out_.outputs, expected, atol=atol)
        alone = Refitted(y, weight)
        assert_allclose(model.loo_.outputs, alone.decisions(alone.outputs), atol=atol)
        labels = np.unique(y, return_inverse=True)[1]
        assert_array_equal(model.loo_.y, class_targets(labels, labels.max() + 1))
        assert_array_equal(model.loo_.sample_weight, np.ones(N) if weight is None else weight)
        assert_allclose(model.calibrator_.slope, fit_calibrator(model.held_out_).slope, rtol=1e-9)
        if len(repetitions) == 1:
            of_all = repetitions[0].of_all(RBF(GAMMA)(NEW, X))
            assert_allclose(model._outputs(NEW), of_all, atol=atol)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("criterion", "y", "weight", "groups"),
        [
            ("deviance", "two", WEIGHT, None),
            ("deviance", "three", None, GROUPS),
            *((*pair, WEIGHT, GROUPS) for pair in in_turn(DIFFERENTIABLE, CLASSES)),
        ],
    )
    def test_criteria_are_those_of_refits(self, criterion, y, weight, groups):
        y, weigh = CLASSES[y], np.ones(N) if weight is None else weight
        model = tuned(criterion, y, weight, groups=groups)
        refitted = Refitted(y, weight, model.units_.number[0], cost_of(model))
        score = refitted.score(criterion, weigh)
        assert model.selection_.value == pytest.approx(score, rel=1e-6)
        assert model.selection_.value == min(p.value for p in model.selection_.history)

    @pytest.mark.slow
    def test_class_weights_count_in_costs_and_those_of_the_search_in_the_criterion(self):
        y, rare = TWO, "yes"
        factor = np.where(y == rare, 5.0, 1.0)
        for own, of_search in ((factor, np.ones(N)), (np.ones(N), factor), (factor, factor)):
            options = {"class_weight": {rare: 5.0} if own is factor else None}
            search = {"class_weight": {rare: 5.0} if of_search is factor else None}
            model = tuned(y=y, weight=WEIGHT, search=search, **options)
            refitted = Refitted(y, WEIGHT * own, cost=cost_of(model))
            score = refitted.score("deviance", WEIGHT * of_search)
            assert model.selection_.value == pytest.approx(score, rel=1e-6)
            assert_allclose(model.fit_weight_, WEIGHT * own / np.mean(WEIGHT * own))
            assert_array_equal(model.selection_weight_, WEIGHT * of_search)
        same = tuned(y=y, weight=WEIGHT, class_weight={rare: 5.0})
        assert same.selection_.value == model.selection_.value

    @pytest.mark.slow
    def test_the_area_is_of_machines_without_pairs_of_groups(self):
        model, refits = fitted(TWO, WEIGHT, GROUPS), Refitted(TWO, WEIGHT)
        (numbers,), y = model.units_.number, model.loo_.y[:, None]
        pairs = fold_pairs(y, numbers)
        rows = [np.r_[np.flatnonzero(numbers == g), np.flatnonzero(numbers == h)] for g, h in pairs]
        without = [refits.solved(0, ~np.isin(np.arange(N), out), refits.K[out]) for out in rows]
        outputs = Refitted(TWO, WEIGHT, numbers).outputs
        expected, _ = pair_auc(
            y, outputs, list(model.units_), pairs, [f[:, None] for f in without], WEIGHT
        )
        assert len(pairs) > 10
        assert model.evaluate(nested=False)["roc_auc"] == pytest.approx(expected)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("y", "groups"), [("two", None), ("three", GROUPS)], ids=["rows", "groups"]
    )
    def test_sets_are_of_machines_without_each_row_or_its_group(self, y, groups):
        model = fitted(CLASSES[y], WEIGHT, groups)
        refits = Refitted(CLASSES[y], WEIGHT, model.units_.number[0], K_new=RBF(GAMMA)(NEW, X))
        values, new = refits.decisions(refits.outputs), refits.decisions(refits.new)
        labels = refits.labels
        loo = class_margins(values.reshape(N, -1))[np.arange(N), labels]
        scores = class_margins(new.reshape(len(NEW), N, -1))
        for level, conditional in product((0.5, 0.8), (False, True)):
            expected = prediction_sets(loo, scores, level, labels if conditional else None)
            assert_array_equal(evaluated(model).predict_set(NEW, level, conditional), expected)


class TestModel:
    @pytest.mark.parametrize("class_weight", [None, "balanced", {"yes": 3.0}])
    def test_two_classes_are_those_of_scikit_learn(self, class_weight):
        model = fitted(weight=WEIGHT, class_weight=class_weight)
        svc = SVC(C=C, gamma=GAMMA, tol=1e-8).fit(X, TWO, model.fit_weight_)
        assert_allclose(model._outputs(NEW), svc.decision_function(NEW), atol=1e-3)
        assert_array_equal(model.members_[0].support, np.sort(svc.support_))
        assert_allclose(model.intercept_, svc.intercept_[0], atol=1e-3)
        mass = {"yes": 1.0, "no": 1.0} | (class_weight or {} if class_weight != "balanced" else {})
        if class_weight == "balanced":
            mass = {label: 1.0 / WEIGHT[label == TWO].sum() for label in mass}
        expected = WEIGHT * np.array([mass[c] for c in TWO])
        assert_allclose(model.fit_weight_, expected / expected.mean())

    def test_three_classes_are_those_of_scikit_learn(self):
        model = fitted(THREE)
        svc = SVC(C=C, gamma=GAMMA, tol=1e-8).fit(X, THREE)
        (member,) = model.members_
        assert_array_equal(member.support, np.sort(svc.support_))
        assert_allclose(model.intercept_, -svc.intercept_, atol=1e-3)
        assert_array_equal(np.flatnonzero(model.dual_coef_.any(axis=1)), member.support)

    @pytest.mark.slow
    def test_precomputed_and_sparse(self):
        K, model = RBF(GAMMA), tuned(weight=WEIGHT, groups=GROUPS)
        matrix = clone(model).set_params(kernel="precomputed").fit(K(X), TWO, WEIGHT, GROUPS)
        sparse = clone(model).fit(sp.csr_array(X), TWO, WEIGHT, GROUPS)
        for other, new in ((matrix, K(NEW, X)), (sparse, sp.csr_array(NEW))):
            assert_allclose(other.selection_.value, model.selection_.value, rtol=1e-8)
            assert_allclose(other.held_out_.outputs, model.held_out_.outputs, atol=1e-8)
            assert_allclose(other.predict_proba(new), model.predict_proba(NEW), atol=1e-8)


class TestSearch:
    @pytest.mark.slow
    def test_points_of_a_grid_are_machines_of_their_own(self):
        bounded = RBF(0.3, gamma_bounds=(0.2, 0.5))
        model = tuned(kernel=bounded, search={"method": "grid"})
        history, best = model.selection_.history, model.selection_.value
        assert {round(2 ** p.theta[0], 9) for p in history} == {0.2, 0.25, 0.5}
        assert len(history) == 3 * 11
        assert best == min(p.value for p in history)
        assert_allclose([model.kernel_.gamma, model.mu_], 2.0**model.selection_.theta)
        (params,) = model.cv_results_["params"]
        assert params == pytest.approx({"gamma": model.kernel_.gamma, "mu": model.mu_}, rel=1e-12)
        for point in history[::11]:
            gamma, mu = 2.0**point.theta
            one = hinge(RBF(gamma), mu=mu).fit(X, TWO)
            K, t = RBF(gamma)(X), one.loo_.y
            machine = solve(K, t, np.full(N, 1 / (N * mu)))
            assert_allclose(one.loo_.outputs, machine.leave_one_out()[0].diagonal(), atol=1e-9)
            log_p = [-np.logaddexp(0, t[i] * sigmoid_without(one, i)) for i in range(N)]
            assert point.value == pytest.approx(-2 * np.sum(log_p), rel=1e-6)

    @pytest.mark.parametrize(
        ("kernel", "text"),
        [
            (RBF(1e-6, gamma_bounds=(1e-6, 1e-5)), "gamma .* 1e-05"),
            (RBF(100.0, gamma_bounds="fixed"), "mu .* 0.889"),
        ],
    )
    def test_an_edge_is_pointed_out(self, kernel, text):
        with pytest.warns(BoundWarning, match=text):
            tuned("hinge", kernel=kernel)


def sigmoid_without(model, i):
    """Minus the log-odds of a row by the sigmoid of the held-out outputs of the others."""
    rest = np.arange(N) != i
    sigmoid = fit_increasing_sigmoid(model.loo_.outputs[rest], model.loo_.y[rest])
    return sigmoid.slope * model.loo_.outputs[i] + sigmoid.intercept


#: A member with a hinge loss beside two of least squares.
MEMBERS = [
    KernelClassifier("linear"),
    KernelClassifier(RBF(1.0, gamma_bounds="fixed")),
    hinge(HELD, search=Search(resolution=4.0)),
]


class TestSeveral:
    @pytest.mark.slow
    def test_outputs_are_those_of_members_tuned_without_the_fold(self):
        y, model = TWO, stacked_classifier(MEMBERS).fit(X, TWO, WEIGHT, GROUPS)
        nested, rest = model.evaluate(nested=False)._nested, np.delete(np.arange(N), [0, 7, 20])
        outputs = np.empty((3, *model.loo_.y.shape))
        for fold in np.unique(nested.units.own):
            out = nested.units.own == fold
            share = np.array([WEIGHT[y == c].sum() / WEIGHT[(y == c) & ~out].sum() for c in y])
            for k, one in enumerate(MEMBERS):
                alone = clone(one).fit(X[~out], y[~out], (WEIGHT * share)[~out], GROUPS[~out])
                outputs[k, out] = alone._outputs(X[out])
        shares = shares_of(model.members_)
        expected = stacking_weights(model.loo_.y, outputs, WEIGHT, labeled=True)
        assert_allclose(shares, expected, atol=1e-4)
        assert shares[2] > 0
        for fold, members in enumerate(nested.models):
            out = nested.units.own == fold
            f = np.tensordot(shares_of(members), outputs, 1)[out]
            assert_allclose(f, model.held_out_.outputs[out])
        factor = WEIGHT.sum() / WEIGHT[rest].sum()  # 1 / C and the ridge stay
        again = [clone(one).fit(X, y, WEIGHT, GROUPS) for one in MEMBERS]
        again = [m.set_params(kernel=m.kernel_, mu=m.mu_ * factor) for m in again]
        again = [m.fit(X[rest], y[rest], WEIGHT[rest], GROUPS[rest]) for m in again]
        ours = model.without([0, 7, 20])
        for of in (lambda m: m.loo_.outputs, lambda m: m._outputs(NEW)):
            expected = sum(w * of(m) for w, m in zip(shares, again, strict=True))
            assert_allclose(of(ours), expected, rtol=1e-6, atol=1e-7)


def shares_of(members):
    """Weight of each of `MEMBERS` among some of them."""
    of = {(type(m.kernel), getattr(m, "loss", "squared") == "hinge"): m.weight for m in members}
    return np.array([of.get((type(as_kernel(m.kernel)), m.loss == "hinge"), 0.0) for m in MEMBERS])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"search": Search("devianc")}, "did you mean 'deviance'"),
        ({"search": Search(method="gradient")}, "loss='hinge'"),
        ({"search": Search(method="random")}, "pattern, grid"),
        ({"search": Search(resolution=0.0)}, "resolution"),
        ({"search": Search(resolution="fine")}, "resolution"),
        ({"loss": "squared", "search": Search("deviance")}, "'deviance'"),
        ({"loss": "squared", "search": Search(method="pattern")}, "gradient, grid"),
        ({"n_landmarks": 5}, "landmarks"),
        ({"fit_intercept": False}, "intercept"),
        ({"kernel": 0.5 * RBF() + 0.5 * Linear()}, "has 3 hyper-parameters"),
    ],
    ids=str,
)
def test_what_has_no_meaning_for_a_hinge_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        hinge().set_params(**options).fit(X, TWO)


@pytest.mark.parametrize("mu", [None, 0.1])
def test_a_matrix_that_is_no_kernel(mu):
    with pytest.raises(ValueError, match="not positive semi-definite"):
        hinge("precomputed", mu=mu).fit(-RBF(1.0)(X), TWO)


def test_of_numbers_there_is_the_squared_loss():
    with pytest.raises(TypeError, match="loss"):
        KernelRegressor(loss="hinge")
