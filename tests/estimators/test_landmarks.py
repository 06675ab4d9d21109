"""Machines on landmarks."""

import numpy as np
import pytest
from evaluated import evaluated
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from stacks import stacked_regressor

from looms import KernelClassifier, KernelRegressor
from looms.blocks import ArrayBlocks
from looms.diagnostics import case_deletion
from looms.estimators import _one_kernel
from looms.fitted._rows import outer_folds
from looms.folds import group_numbers
from looms.kernels import RBF
from looms.model_files import load_model, save_model

RNG = np.random.default_rng(0)
N = 450
X = RNG.normal(size=(1200, 4))
SIGNAL = np.sin(2 * X[:, 0]) + X[:, 1]
NUMBERS = SIGNAL + 0.2 * RNG.normal(size=len(X))
CLASSES = np.where(NUMBERS > 0, "yes", "no")


HELD = RBF(0.3, gamma_bounds="fixed")


def regressor(**options):
    return KernelRegressor(**{"n_landmarks": 60, **options})


def candidates(n_landmarks=60, **options):
    kernels = [KernelRegressor(k, n_landmarks=n_landmarks) for k in ("linear", HELD)]
    return stacked_regressor(kernels, **options)


def classifier(**options):
    return KernelClassifier(**{"n_landmarks": 60, **options})


@pytest.mark.parametrize("groups", [None, np.arange(60) // 4 % 11])
def test_intervals_on_as_many_landmarks_as_rows_are_those_of_the_kernel_matrix(groups):
    S, y = X[:60], NUMBERS[:60]
    low = regressor(kernel="matern12", n_landmarks=60).fit(S, y, groups=groups)
    whole = KernelRegressor(low.kernel_, mu=low.mu_).fit(S, y, groups=groups)
    alone = KernelRegressor(low.kernel_, mu=low.mu_).fit(S, y)
    for method in ("plus", "minmax", "scaled"):
        ours = evaluated(low).predict_interval(X[N:], 0.8, method)
        assert_allclose(ours, evaluated(whole).predict_interval(X[N:], 0.8, method), rtol=1e-6)
        of_rows = evaluated(alone).predict_interval(X[N:], 0.8, method)
        assert (groups is None) == np.allclose(ours, of_rows, rtol=1e-6)


def test_rows_in_blocks_in_files_and_on_disk(tmp_path):
    n, y = 120, NUMBERS[:120]
    blocks, machine = ArrayBlocks(X[:n]), regressor(n_landmarks=20, mu=0.01)
    model = clone(machine).fit(blocks, y)
    save_model(tmp_path / "m.skops", model, {})
    again = load_model(tmp_path / "m.skops").model
    for new in (X[N:], ArrayBlocks(X[N:])):
        assert_allclose(again.predict(new), model.predict(X[N:]), rtol=1e-12)
    with pytest.raises(ValueError, match=r"3 features.* 4"):
        again.predict(ArrayBlocks(X[N:, :3]))
    with pytest.raises(ValueError, match="in blocks"):
        evaluated(again).predict_interval(X[N:])
    np.save(tmp_path / "X.npy", X[:n])
    mapped = clone(machine).fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y)
    assert_allclose(mapped.predict(X[N:]), model.predict(X[N:]), rtol=1e-12)
    assert mapped.X_fit_ is None
    gap = X[:n].copy()
    gap[7, 1] = np.nan
    with pytest.raises(ValueError, match="row 7"):
        clone(machine).fit(ArrayBlocks(gap), y)
    with pytest.raises(ValueError, match="120 rows, and y has 5"):
        clone(machine).fit(blocks, y[:5])
    blocks.feature_names = list("abcd")
    assert list(clone(machine).fit(blocks, y).feature_names_in_) == list("abcd")


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.slow
def test_scores_are_those_of_the_whole_kernel_matrix_on_as_many_landmarks(grouped):
    rows, y, weight = X[:60], CLASSES[:60], RNG.uniform(0.5, 2.0, 60) * (np.arange(60) % 9 > 0)
    groups = np.arange(60) // 3 if grouped else None
    model = classifier(n_landmarks=60).fit(rows, y, weight, groups=groups)
    whole = KernelClassifier(model.kernel_, mu=model.mu_).fit(rows, y, weight, groups=groups)
    ours, theirs = model.evaluate(nested=False), whole.evaluate()
    assert ours == pytest.approx(theirs, rel=1e-4)
    assert ours.standard_errors == pytest.approx(theirs.standard_errors, rel=1e-4)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.slow
def test_scores_of_rows_in_blocks_are_of_ten_folds(grouped):
    rows, y, weight = X[:90], CLASSES[:90], RNG.uniform(0.5, 2.0, 90)
    groups = np.arange(90) // 3 if grouped else None
    model = classifier(n_landmarks=90).fit(ArrayBlocks(rows, 64), y, weight, groups=groups)
    labels = (y == "yes").astype(int)
    folds = outer_folds(None, labels, group_numbers(groups, 90), True, 0).own
    right = total = wrong = 0.0
    for k in range(10):
        out, rest = folds == k, folds != k
        mu = model.mu_ * weight.sum() / weight[rest].sum()
        one = KernelClassifier(model.kernel_, mu=mu).fit(rows[rest], y[rest], weight[rest])
        above, f = labels[out] == 1, one.decision_function(rows[out])
        w = np.outer(weight[out][above], weight[out][~above])
        right += (w * (f[above][:, None] > f[~above])).sum()
        total += w.sum()
        taken = f + one.threshold_ > model.threshold_
        wrong += weight[out][taken != above].sum()
    scores = model.evaluate(nested=False)
    assert scores["accuracy"] == pytest.approx(1 - wrong / weight.sum(), abs=1e-3)
    assert scores["roc_auc"] == pytest.approx(right / total, abs=1e-3)
    assert 0.0 < scores.standard_errors["roc_auc"] < 0.1


@pytest.mark.slow
def test_every_use_of_rows_in_blocks_is_that_of_a_matrix():
    n, y = 80, NUMBERS[:80]
    blocks, memory = ArrayBlocks(X[:n], size=33), X[:n]
    ours, theirs = (
        regressor(kernel=HELD, n_landmarks=20).fit(rows, y) for rows in (blocks, memory)
    )
    new, removed = X[n : n + 5], np.array([0, 40, 79])
    for method in ("plus", "minmax", "scaled"):
        expected = evaluated(theirs).predict_interval(new, 0.8, method)
        assert_allclose(evaluated(ours).predict_interval(new, 0.8, method), expected, rtol=1e-9)
        assert_allclose(
            evaluated(ours).predict_interval(ArrayBlocks(new), 0.8, method), expected, rtol=1e-9
        )
    assert_allclose(case_deletion(ours).rms_change, case_deletion(theirs).rms_change, rtol=1e-9)
    for change in (
        lambda machine: machine.without(removed),
        lambda machine: machine.with_rows(new, y[:5]),
        lambda machine: machine.with_rows(ArrayBlocks(new), y[:5]),
    ):
        changed, expected = change(ours), change(theirs)
        assert_allclose(changed.predict(X[n:]), expected.predict(X[n:]), rtol=1e-9)
        assert_allclose(changed.loo_.outputs, expected.loo_.outputs, rtol=1e-9)
    for machine in (regressor(kernel=HELD, n_landmarks=20), candidates(20)):
        ours, theirs = (clone(machine).fit(rows, y) for rows in (blocks, memory))
        assert ours.evaluate()._nested is not None
        assert ours.evaluate() == pytest.approx(theirs.evaluate(), rel=1e-9)


def test_an_evaluation_takes_as_many_landmarks_as_the_fit(monkeypatch):
    monkeypatch.setattr(_one_kernel, "FULL_ROWS", N - 1)  # more than without a fold
    model = stacked_regressor([HELD, RBF(1.0, gamma_bounds="fixed")]).fit(X[:N], NUMBERS[:N])
    nested = model.evaluate()._nested
    sizes = {len(one.landmarks) for members in nested.models for one in members}
    assert sizes == {len(one.landmarks) for one in model.members_} == {64}


def test_more_landmarks_than_rows_are_as_many_as_rows():
    more, whole = (regressor(n_landmarks=m, mu=0.01).fit(X[:50], NUMBERS[:50]) for m in (5000, 50))
    assert len(more.landmarks_) == 50
    assert_array_equal(more.predict(X[N:]), whole.predict(X[N:]))


class TestGivenValues:
    """Machines of given values on landmarks, by hand."""

    def test_landmarks_and_open_values_are_of_the_rows_and_the_seed(self):
        def fitted(seed, kernel="rbf"):
            model = KernelRegressor(kernel, mu=0.02, n_landmarks=15, random_state=seed)
            return model.fit(X[:300], NUMBERS[:300])

        one, again, other = fitted(0), fitted(0), fitted(1)
        assert_array_equal(one.landmarks_, again.landmarks_)
        assert (one.landmarks_ != other.landmarks_).any()
        rows = {tuple(row) for row in X[:300]}
        assert {tuple(row) for row in one.landmarks_} <= rows
        assert one.kernel_.gamma > 0

    def test_auto_takes_landmarks_beyond_so_many_rows(self, monkeypatch):
        monkeypatch.setattr(_one_kernel, "FULL_ROWS", 500)
        monkeypatch.setattr(_one_kernel, "_GIVEN_LANDMARKS", 40)
        few, many = (KernelRegressor(mu=0.01).fit(X[:n], NUMBERS[:n]) for n in (500, 501))
        assert few.landmarks_ is None
        assert len(many.landmarks_) == 40
        assert KernelRegressor("linear", mu=0.01).fit(X, NUMBERS).landmarks_ is None
