"""Machines on landmarks."""

import numpy as np
import pytest
from evaluated import evaluated
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from stacks import stacked_classifier, stacked_regressor

from looms import KernelClassifier, KernelRegressor, Search
from looms.blocks import ArrayBlocks
from looms.diagnostics import case_deletion
from looms.duplicates import duplicate_groups
from looms.estimators import _one_kernel
from looms.fitted._rows import outer_folds
from looms.folds import group_numbers
from looms.kernels import RBF
from looms.model_files import load_model, save_model
from looms.report import cautions, summary

RNG = np.random.default_rng(0)
N = 450
X = RNG.normal(size=(1200, 4))
SIGNAL = np.sin(2 * X[:, 0]) + X[:, 1]
NUMBERS = SIGNAL + 0.2 * RNG.normal(size=len(X))
CLASSES = np.where(NUMBERS > 0, "yes", "no")


def regressor(**options):
    return KernelRegressor(**{"n_landmarks": 60, **options})


def candidates(n_landmarks=60, **options):
    kernels = [KernelRegressor(k, n_landmarks=n_landmarks) for k in ("linear", "rbf")]
    return stacked_regressor(kernels, **options)


def classifier(**options):
    return KernelClassifier(**{"n_landmarks": 60, **options})


@pytest.mark.parametrize("groups", [None, np.arange(60) // 4 % 11, np.arange(60) // 30])
def test_intervals_on_as_many_landmarks_as_rows_are_those_of_the_kernel_matrix(groups):
    S, y = X[:60], NUMBERS[:60]
    low = regressor(kernel="matern12", n_landmarks=60).fit(S, y, groups=groups)
    whole = KernelRegressor(low.kernel_, mu=low.mu_).fit(S, y, groups=groups)
    alone = KernelRegressor(low.kernel_, mu=low.mu_).fit(S, y)
    for method in ("plus", "minmax", "scaled")[: 3 if groups is None or groups.max() > 1 else 1]:
        ours = evaluated(low).predict_interval(X[N:], 0.8, method)
        assert_allclose(ours, evaluated(whole).predict_interval(X[N:], 0.8, method), rtol=1e-6)
        of_rows = evaluated(alone).predict_interval(X[N:], 0.8, method)
        assert (groups is None) == np.allclose(ours, of_rows, rtol=1e-6)


@pytest.mark.slow
def test_a_machine_on_landmarks_is_nearly_as_good_as_on_all_rows():
    low, whole = (regressor(n_landmarks=m).fit(X[:N], NUMBERS[:N]) for m in (200, None))
    assert (low.landmarks_.shape, low.dual_coef_.shape) == ((200, 4), (200,))
    assert whole.landmarks_ is None
    assert low.score(X[N:], NUMBERS[N:]) > whole.score(X[N:], NUMBERS[N:]) - 0.03
    errors = [
        regressor(n_landmarks=m).fit(X[:N], NUMBERS[:N]).evaluate()["rmse"] for m in (10, 30, 200)
    ]
    assert errors[0] > errors[1] > errors[2]


@pytest.mark.slow
def test_weights_count_as_copies_and_zero_as_absence():
    weight = RNG.integers(0, 3, N).astype(float)
    model = regressor().fit(X[:N], NUMBERS[:N], sample_weight=weight)
    without = regressor().fit(X[:N][weight > 0], NUMBERS[:N][weight > 0], weight[weight > 0])
    assert_allclose(model.predict(X[N:]), without.predict(X[N:]), rtol=1e-9)
    out = weight == 0
    assert_allclose(model.loo_.outputs[out], model.predict(X[:N][out]))


@pytest.mark.slow
def test_rows_in_blocks_give_what_a_matrix_gives(tmp_path):
    blocks = ArrayBlocks(X[:N])
    model, other = regressor().fit(blocks, NUMBERS[:N]), regressor().fit(X[:N], NUMBERS[:N])
    assert_allclose(model.predict(X[N:]), other.predict(X[N:]), rtol=1e-12)
    assert model.X_fit_ is None
    save_model(tmp_path / "m.skops", model, {})
    again = load_model(tmp_path / "m.skops").model
    for new in (X[N:], ArrayBlocks(X[N:])):
        assert_allclose(again.predict(new), other.predict(X[N:]), rtol=1e-12)
    with pytest.raises(ValueError, match="X has 3 features, but KernelRegressor is expecting 4"):
        again.predict(ArrayBlocks(X[N:, :3]))
    with pytest.raises(ValueError, match="a saved model does not hold those that were in blocks"):
        evaluated(again).predict_interval(X[N:])
    single = ArrayBlocks(X[:N].astype(np.float32))
    assert_allclose(
        regressor().fit(single, NUMBERS[:N]).predict(X[N:]),
        other.predict(X[N:]),
        rtol=0.01,
        atol=0.01,
    )
    np.save(tmp_path / "X.npy", X[:N])
    mapped = regressor().fit(np.load(tmp_path / "X.npy", mmap_mode="r"), NUMBERS[:N])
    assert_allclose(mapped.predict(X[N:]), other.predict(X[N:]), rtol=1e-12)
    assert mapped.X_fit_ is None
    gap = X[:N].copy()
    gap[7, 1] = np.nan
    with pytest.raises(ValueError, match="X contains NaN or infinity in row 7"):
        regressor().fit(ArrayBlocks(gap), NUMBERS[:N])
    whole = regressor(n_landmarks="auto").fit(blocks, NUMBERS[:N])
    assert whole.landmarks_ is None
    blocks.feature_names = list("abcd")
    assert list(regressor().fit(blocks, NUMBERS[:N]).feature_names_in_) == list("abcd")
    for machine, options in (
        (regressor(n_landmarks=None), {}),
        (regressor(), {"groups": duplicate_groups(X[:N])}),
        (regressor(), {"sample_weight": np.arange(N) % 3}),
        (regressor(mu=0.01), {}),
        (candidates(combine="best"), {}),
    ):
        ours, theirs = (
            clone(machine).fit(rows, NUMBERS[:N], **options) for rows in (ArrayBlocks(X[:N]), X[:N])
        )
        assert_allclose(ours.predict(X[N:]), theirs.predict(X[N:]), rtol=1e-9)
        assert_allclose(ours.held_out_.outputs, theirs.held_out_.outputs, rtol=1e-9)
    with pytest.raises(ValueError, match="X has 450 rows, and y has 5"):
        regressor().fit(blocks, NUMBERS[:5])


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.slow
def test_scores_are_those_of_the_whole_kernel_matrix_on_as_many_landmarks(grouped):
    rows, y, weight = X[:200], CLASSES[:200], RNG.uniform(0.5, 2.0, 200)
    groups = np.arange(200) // 3 if grouped else None
    model = classifier(n_landmarks=200).fit(rows, y, weight, groups=groups)
    whole = KernelClassifier(model.kernel_, mu=model.mu_).fit(rows, y, weight, groups=groups)
    ours, theirs = model.evaluate(nested=False), whole.evaluate()
    assert ours == pytest.approx(theirs, rel=1e-4)
    assert ours.standard_errors == pytest.approx(theirs.standard_errors, rel=1e-4)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.slow
def test_scores_of_rows_in_blocks_are_of_ten_folds(grouped):
    rows, y, weight = X[:200], CLASSES[:200], RNG.uniform(0.5, 2.0, 200)
    groups = np.arange(200) // 3 if grouped else None
    model = classifier(n_landmarks=200).fit(ArrayBlocks(rows, 64), y, weight, groups=groups)
    labels = (y == "yes").astype(int)
    folds = outer_folds(None, labels, group_numbers(groups, 200), True, 0).own
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


@pytest.mark.parametrize("seed", [13, 23])
@pytest.mark.slow
def test_outputs_that_lean_away_from_their_class_are_no_errors(seed):
    """Of noise single held-out rows have a balanced error rate of 0.64 and 0.73 here."""
    rng = np.random.default_rng(seed)
    noise, y = rng.normal(size=(300, 5)), rng.permutation(np.arange(300) < 150)
    model = classifier(n_landmarks=30).fit(noise, y)
    for scores in (model.evaluate(), model.evaluate(nested=False)):
        assert scores["balanced_accuracy"] > 0.5 - 2 * scores.standard_errors["balanced_accuracy"]


@pytest.mark.slow
def test_without_folds_that_have_both_classes_there_is_no_area():
    y = np.where(np.arange(N) < 2, "yes", "no")
    model = classifier(threshold="balanced").fit(ArrayBlocks(X[:N]), y)
    scores = model.evaluate(nested=False)
    assert np.isnan([scores["roc_auc"], scores.standard_errors["roc_auc"]]).all()
    by_key = {one["key"]: one["value"] for one in summary(model)["loo"]["scores"]}
    assert by_key["roc_auc"] is None
    assert not any("AUC" in caution["text"] for caution in cautions(model))


@pytest.mark.slow
def test_every_use_of_rows_in_blocks_is_that_of_a_matrix():
    n, y = 120, NUMBERS[:120]
    blocks, memory = ArrayBlocks(X[:n], size=50), X[:n]
    ours, theirs = (regressor(n_landmarks=20).fit(rows, y) for rows in (blocks, memory))
    new, removed = X[n : n + 5], np.array([0, 60, 119])
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
    for machine in (regressor(n_landmarks=20), candidates(20)):
        ours, theirs = (clone(machine).fit(rows, y) for rows in (blocks, memory))
        assert ours.evaluate()._nested is not None
        assert ours.evaluate() == pytest.approx(theirs.evaluate(), rel=1e-9)
        expected = evaluated(theirs).predict_interval(new, 0.8)
        assert_allclose(evaluated(ours).predict_interval(new, 0.8), expected, rtol=1e-9)


@pytest.mark.slow
def test_auto_takes_the_kernel_matrix_of_few_rows(monkeypatch):
    assert regressor(n_landmarks="auto").fit(X[:900], NUMBERS[:900]).landmarks_ is None
    monkeypatch.setattr(_one_kernel, "FULL_ROWS", 500)
    noise, waves = RNG.normal(size=len(X)), np.sin(2 * X[:, 0]) * np.cos(2 * X[:, 1])
    easy, hard = (
        regressor(n_landmarks="auto").fit(X[:900], y[:900]).landmarks_.shape[0]
        for y in (X[:, 0] + noise, waves + 0.01 * noise)
    )
    assert easy < hard


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_landmarks": 0}, "n_landmarks must be a positive integer, 'auto' or None, got 0"),
        ({"n_landmarks": "few"}, "got 'few'"),
        ({"n_landmarks": True}, "got True"),
        ({"n_landmarks": -1, "mu": 0.1}, "n_landmarks must be a positive integer"),
    ],
)
def test_numbers_of_landmarks_that_are_none_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        regressor(**options).fit(X[:N], NUMBERS[:N])


def test_an_evaluation_takes_as_many_landmarks_as_the_fit(monkeypatch):
    monkeypatch.setattr(_one_kernel, "FULL_ROWS", N - 1)  # more than without a fold
    model = stacked_regressor(["rbf", "matern12"]).fit(X[:N], NUMBERS[:N])
    nested = model.evaluate()._nested
    sizes = {len(one.landmarks) for members in nested.models for one in members}
    assert sizes == {len(one.landmarks) for one in model.members_} == {64}


@pytest.mark.parametrize(("share", "searched"), [(0.25, []), (0.75, [900]), (1.0, [1200])])
def test_a_search_on_fewer_rows_than_the_sample_is_that_of_the_sample(monkeypatch, share, searched):
    monkeypatch.setattr("looms.selection._low_rank.SAMPLE_ROWS", 400)
    monkeypatch.setattr("looms.selection._low_rank.LowRankObjective.least_rows", 400)
    model = regressor(search=Search(max_samples=share)).fit(X, NUMBERS)
    stages = model.selection_.stages
    assert [n for n, one in stages if one.n_evaluations > 1] == searched
    assert stages[-1][0] == len(X)
    assert model.score(X, NUMBERS) > 0.9


def test_a_kernel_matrix_has_no_landmarks():
    with pytest.raises(ValueError, match="is the whole kernel matrix, without landmarks"):
        regressor(kernel="precomputed", n_landmarks=9).fit(X[:30] @ X[:30].T, NUMBERS[:30])


@pytest.mark.parametrize("mu", [None, 0.01])
def test_more_landmarks_than_rows_are_as_many_as_rows(mu):
    more, all_of_them = (
        regressor(n_landmarks=m, mu=mu).fit(X[:50], NUMBERS[:50]) for m in (5000, 50)
    )
    assert len(more.landmarks_) == 50
    assert_array_equal(more.predict(X[N:]), all_of_them.predict(X[N:]))


class TestGivenValues:
    """Machines of given values on landmarks, by hand."""

    weight = np.where(np.arange(90) % 9 == 4, 0.0, RNG.uniform(0.5, 2.0, 90))

    @staticmethod
    def by_hand(model, y, weight, out=()):
        """(coefficients, intercept) of the penalized least squares without some rows.

        Σ_i ζ_i (y_i − f(x_i))² + n μ c'Kc with f(x) = Σ_j c_j k(x, z_j) + b; n and ζ, of mean one,
        are those of all rows.
        """
        kernel, Z, mu = model.kernel_, model.landmarks_, model.mu_
        n, zeta = np.count_nonzero(weight), weight * np.count_nonzero(weight) / weight.sum()
        own = np.setdiff1d(np.flatnonzero(weight), out)
        columns = np.hstack([kernel(X[own], Z), np.ones((len(own), int(model.fit_intercept_)))])
        penalty = np.zeros((columns.shape[1],) * 2)
        penalty[: len(Z), : len(Z)] = n * mu * kernel(Z)
        root = np.sqrt(zeta[own])[:, None]
        normal = (root * columns).T @ (root * columns) + penalty
        return np.linalg.solve(normal, columns.T @ (zeta[own, None] * y[own].reshape(len(own), -1)))

    @classmethod
    def outputs(cls, model, y, weight, rows, out=()):
        found = cls.by_hand(model, y, weight, out)
        columns = model.kernel_(rows, model.landmarks_)
        values = columns @ found[: columns.shape[1]] + (found[-1] if model.fit_intercept_ else 0.0)
        return values.reshape(len(rows), *y.shape[1:])

    @pytest.mark.parametrize("groups", [None, np.arange(90) // 3], ids=["rows", "groups"])
    @pytest.mark.parametrize("intercept", [True, False])
    @pytest.mark.parametrize("target", ["numbers", "two targets", "classes", "three classes"])
    def test_outputs_and_held_out_outputs(self, target, intercept, groups):
        y = {
            "numbers": NUMBERS[:90],
            "two targets": np.column_stack([NUMBERS[:90], X[:90, 3]]),
            "classes": CLASSES[:90],
            "three classes": np.digitize(NUMBERS[:90], [-0.7, 0.7]),
        }[target]
        kind = KernelClassifier if "classes" in target else KernelRegressor
        model = kind(RBF(0.3), mu=0.02, n_landmarks=15, fit_intercept=intercept)
        model.fit(X[:90], y, sample_weight=self.weight, groups=groups)
        assert model.landmarks_.shape == (15, 4)
        assert (model.kernel_.gamma, model.mu_) == (0.3, 0.02)
        assert not hasattr(model, "selection_")
        codes, own = model.loo_.y, np.flatnonzero(self.weight)
        assert_allclose(
            model._outputs(X[N:]), self.outputs(model, codes, self.weight, X[N:]), rtol=1e-6
        )
        for i in own[::7]:
            for held_out, out in (
                (model.loo_, [i]),
                (model.held_out_, [i] if groups is None else np.flatnonzero(groups == groups[i])),
            ):
                expected = self.outputs(model, codes, self.weight, X[[i]], out)[0]
                assert_allclose(held_out.outputs[i], expected, rtol=1e-5, atol=1e-8)

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

    def test_as_many_landmarks_as_rows_give_the_whole_machine(self):
        low = KernelRegressor(RBF(0.3), mu=0.02, n_landmarks=60).fit(X[:60], NUMBERS[:60])
        whole = KernelRegressor(RBF(0.3), mu=0.02, n_landmarks=None).fit(X[:60], NUMBERS[:60])
        assert whole.landmarks_ is None
        assert_allclose(low.predict(X[N:]), whole.predict(X[N:]), rtol=1e-5, atol=1e-7)
        assert_allclose(low.loo_.outputs, whole.loo_.outputs, rtol=1e-5, atol=1e-7)

    def test_a_tuned_machine_is_that_of_its_values_on_its_landmarks(self):
        tuned = classifier(n_landmarks=15).fit(X[:90], CLASSES[:90], self.weight)
        codes = tuned.loo_.y
        expected = self.outputs(tuned, codes, self.weight, X[N:])
        assert_allclose(tuned._outputs(X[N:]), expected, rtol=1e-6, atol=1e-8)

    def test_auto_takes_landmarks_beyond_so_many_rows(self, monkeypatch):
        monkeypatch.setattr(_one_kernel, "FULL_ROWS", 500)
        monkeypatch.setattr(_one_kernel, "_GIVEN_LANDMARKS", 40)
        few, many = (KernelRegressor(mu=0.01).fit(X[:n], NUMBERS[:n]) for n in (500, 501))
        assert few.landmarks_ is None
        assert len(many.landmarks_) == 40
        assert KernelRegressor("linear", mu=0.01).fit(X, NUMBERS).landmarks_ is None

    def test_evaluation_and_updates(self):
        model = KernelClassifier(RBF(0.3), mu=0.02, n_landmarks=15).fit(X[:90], CLASSES[:90])
        assert model.evaluate().kind == "leave-one-out"
        assert model.certify().holds
        less = model.without([0, 60])
        assert_array_equal(less.landmarks_, model.landmarks_)
        codes, weight = model.loo_.y, np.ones(90)
        expected = self.outputs(model, codes, weight, X[N:], [0, 60])
        assert_allclose(less._outputs(X[N:]), expected, rtol=1e-6, atol=1e-8)


class TestCandidates:
    """Each candidate has landmarks of its own."""

    def test_some_have_landmarks_and_others_all_rows(self):
        machines = [
            KernelRegressor("linear", n_landmarks=None),
            KernelRegressor("rbf", n_landmarks=20),
            KernelRegressor("matern12", n_landmarks=30, mu=0.01),
        ]
        model = stacked_regressor(machines).fit(X[:120], NUMBERS[:120])
        assert len(model.members_) > 1
        alone = [clone(machine).fit(X[:120], NUMBERS[:120]) for machine in machines]
        expected = sum(
            share * machine.predict(X[N:])
            for share, machine in zip(model.candidate_weights_, alone, strict=True)
        )
        assert_allclose(model.predict(X[N:]), expected, rtol=1e-6)
        assert [c.kernel_name for c in model.candidates_] == ["linear", "rbf", "matern12"]
        assert model.candidates_[2].mu == 0.01

    @pytest.mark.parametrize("n_landmarks", [10, 40])
    def test_a_single_candidate_is_its_machine(self, n_landmarks):
        machine = KernelClassifier(n_landmarks=n_landmarks)
        one = stacked_classifier([machine]).fit(X[:120], CLASSES[:120])
        alone = clone(machine).fit(X[:120], CLASSES[:120])
        assert len(one.landmarks_) == n_landmarks
        assert_array_equal(one.decision_function(X[N:]), alone.decision_function(X[N:]))
