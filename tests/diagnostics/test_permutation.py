"""Permutation tests against fits on grids to the permuted targets."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from looms import KernelClassifier, KernelRegressor, Search, TabularRegressor
from looms.diagnostics import permutation_test
from looms.diagnostics._permutation import _sample
from looms.folds import GapKFold
from looms.kernels import RBF

pytestmark = pytest.mark.filterwarnings("ignore::looms.BoundWarning")
RNG = np.random.default_rng(3)
N, B = 24, 4
X = RNG.normal(size=(N, 3))
NUMBERS = X[:, 0] + RNG.normal(size=N)
BOTH = np.column_stack([NUMBERS, RNG.normal(size=N)])
LABELS = np.array(["a", "b", "c"])[np.digitize(NUMBERS, [-0.5, 0.5])]
GROUPS = np.repeat(np.arange(N // 3), 3)
OF_GROUPS = NUMBERS[GROUPS]
WEIGHT = RNG.uniform(0.5, 2, N)
SOME = np.where(np.arange(N) % 5 == 1, 0.0, WEIGHT)
ON_GRID = Search(method="grid")
BOTH_WAYS = "groups of equal size, and rows within them"
CASES = {
    "numbers": (KernelRegressor(), NUMBERS, {}, "rows"),
    "by features": (KernelRegressor("linear", search=ON_GRID), NUMBERS, {}, "rows"),
    "weights": (KernelRegressor(mu=1e-2), NUMBERS, {"sample_weight": SOME}, "rows"),
    "targets": (KernelRegressor(fit_intercept=False), BOTH, {}, "rows"),
    "classes": (KernelClassifier(class_weight="balanced"), LABELS, {}, "rows"),
    "groups": (KernelRegressor(), OF_GROUPS, {"groups": GROUPS}, "groups"),
    "in groups": (KernelRegressor(), NUMBERS, {"groups": GROUPS}, BOTH_WAYS),
}


def exchanged(y, groups, permuted, rng):
    """Targets that are permuted as the test says it."""
    if permuted == "rows":
        return [y[rng.permutation(len(y))] for _ in range(B)]
    if permuted == "groups":
        return [y[::3][rng.permutation(len(y) // 3)][groups] for _ in range(B)]
    permuted = []
    for _ in range(B):  # the groups, and then the rows of each
        source = rng.random_sample(len(y) // 3).argsort()
        inside = rng.random_sample(len(y)).reshape(-1, 3)[source].argsort(axis=1)
        permuted.append(np.take_along_axis(y.reshape(-1, 3)[source], inside, axis=1).ravel())
    return permuted


@pytest.mark.parametrize("case", CASES)
def test_the_choice_is_repeated_for_permuted_targets(case, monkeypatch):
    monkeypatch.setattr("looms.diagnostics._permutation._NUMBERS", 2 * N)  # two at a time, or one
    model, y, options, permuted = CASES[case]
    test = permutation_test(model.fit(X, y, **options), B, random_state=5)
    own = np.flatnonzero(options.get("sample_weight", np.ones(N)))
    coded = model.fitted_.rows.targets[own]
    options = {"groups": options["groups"]} if "groups" in options else {}  # all rows weigh alike
    rng = check_random_state(5)
    several = [coded, *exchanged(coded, options.get("groups"), permuted, rng)]
    refit = KernelRegressor(model.kernel, fit_intercept=model.fit_intercept, search=ON_GRID)
    press = [refit.fit(X[own], each, **options).fitted_.loss for each in several]
    assert_allclose([test.statistic, *test.random], press)
    assert test.p_value == (1 + sum(value <= press[0] for value in press[1:])) / (1 + B)
    assert (test.permuted, test.n_samples) == (permuted, len(own))


def test_all_kernels_of_a_table_compete():
    model = TabularRegressor(["linear", "weighted_rbf"]).fit(pd.DataFrame(X), NUMBERS**2)
    test = permutation_test(model, B)
    assert [repr(kernel) for kernel in test.kernels] == ["Linear()", "RBF()"]
    y = np.tile(NUMBERS[:, None] ** 2, 1)
    alone = [
        permutation_test(KernelRegressor(kernel).fit(model.X_fit_, y[:, 0]), B)
        for kernel in ("linear", "rbf")
    ]
    assert_allclose(test.statistic, min(one.statistic for one in alone))
    assert_allclose(test.random, np.min([one.random for one in alone], axis=0))
    assert test.n_points == sum(one.n_points for one in alone)


def test_transformed_targets_are_permuted_on_their_scale():
    model = TabularRegressor(["linear"], target="log", preprocess=None).fit(X, np.exp(NUMBERS))
    of_logs = KernelRegressor("linear").fit(X, NUMBERS)
    assert_allclose(*(permutation_test(one, B).statistic for one in (model, of_logs)))


def test_level_and_power():
    p = {signal: [] for signal in (0.0, 3.0)}
    for k in range(60):
        rng = np.random.default_rng(k)
        Z = rng.normal(size=(20, 2))
        for signal, values in p.items():
            y = signal * Z[:, 0] + rng.normal(size=20)
            model = KernelRegressor(RBF(0.3), mu=1e-2).fit(Z, y)
            values.append(permutation_test(model, 19, random_state=k).p_value)
    assert 0 <= np.mean(np.array(p[0.0]) <= 0.1) <= 0.2
    assert np.mean(np.array(p[3.0]) <= 0.05) > 0.9


@pytest.mark.parametrize("one_differs", [False, True])
def test_groups_exchange_their_targets_also_if_these_differ_within(one_differs):
    groups = np.repeat(np.arange(20), 2)  # replicates, of the same columns
    Z = RNG.normal(size=(20, 2))[groups]
    y = 2 * Z[:, 0] + 0.1 * RNG.normal(size=40)
    if one_differs:
        y = (Z[:, 0] > 0) * 1.0
        y[0] = 1 - y[0]
    model = KernelRegressor("linear", mu=1e-2).fit(Z, y, groups=groups)
    assert permutation_test(model, 99).p_value <= 0.02
    noise = RNG.normal(size=20)[groups] + 0.1 * RNG.normal(size=40)
    model = KernelRegressor("linear", mu=1e-2).fit(Z, noise, groups=groups)
    assert permutation_test(model, 99).p_value > 0.05


def test_a_large_table_is_tested_by_a_sample(monkeypatch):
    monkeypatch.setattr("looms.diagnostics._permutation.MOST", 10)
    test = permutation_test(KernelRegressor(mu=1e-2).fit(X, NUMBERS), B)
    assert test.n_samples == 10


def test_a_sample_has_whole_groups_or_a_share_of_large_ones(monkeypatch):
    monkeypatch.setattr("looms.diagnostics._permutation.MOST", 9)
    monkeypatch.setattr("looms.diagnostics._permutation.OF_GROUP", 3)
    for groups, sizes in (
        (GROUPS, [3, 3, 3]),
        (np.arange(N) % 3, [3, 3, 3]),
        (np.zeros(N, dtype=int), [9]),
        (np.arange(N), np.ones(9)),
        ((np.arange(N) - 1).clip(0, 20), None),
    ):
        rows = _sample(groups, check_random_state(0))
        assert len(np.unique(rows)) == 9
        if sizes is not None:
            assert_array_equal(np.unique(groups[rows], return_counts=True)[1], sizes)


def test_weights_that_tell_the_target_do_not_reject():
    rejected = []
    for k in range(20):
        rng = np.random.default_rng(k)
        y = np.exp(rng.normal(size=30))
        model = KernelRegressor("linear", mu=1e-2).fit(rng.normal(size=(30, 3)), y, 1 / y)
        rejected.append(permutation_test(model, 19).p_value <= 0.05)
    assert np.mean(rejected) <= 0.2


@pytest.mark.parametrize(
    ("y", "groups"),
    [
        ((np.arange(N) < 1) * 1.0, np.arange(N) < 2),  # groups of two sizes, one mixed
        ((np.arange(N) < 3) * 1.0, GROUPS),  # one group of eight
    ],
)
def test_few_orders_are_refused(y, groups):
    model = KernelRegressor(RBF(0.3), mu=1e-2).fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="fewer than 20 orders"):
        permutation_test(model, B)


@pytest.mark.parametrize(
    ("model", "options", "error"),
    [
        (KernelRegressor(cv=GapKFold(3), mu=1e-2).fit(X, NUMBERS), {}, ValueError),
        (KernelRegressor(mu=1e-2).fit(X, NUMBERS).without([0]), {}, ValueError),
        (KernelRegressor(mu=1e-2).fit(X, NUMBERS), {"n_permutations": 0}, ValueError),
        (StandardScaler().fit(X), {}, TypeError),
    ],
)
def test_what_is_refused(model, options, error):
    with pytest.raises(error):
        permutation_test(model, **options)
