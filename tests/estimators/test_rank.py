"""Machines on landmarks."""

import numpy as np
import pytest
from evaluated import evaluated
from numpy.testing import assert_allclose

from looms import KernelClassifier, KernelRegressor
from looms.blocks import ArrayBlocks
from looms.diagnostics import case_deletion
from looms.estimators import _search
from looms.estimators._folds import outer_folds
from looms.folds import group_numbers
from looms.model_files import load_model, save_model
from looms.report import cautions, summary

RNG = np.random.default_rng(0)
N = 450
X = RNG.normal(size=(1200, 4))
SIGNAL = np.sin(2 * X[:, 0]) + X[:, 1]
NUMBERS = SIGNAL + 0.2 * RNG.normal(size=len(X))
CLASSES = np.where(NUMBERS > 0, "yes", "no")


def regressor(**options):
    return KernelRegressor(**{"rank": 60, **options})


def classifier(**options):
    return KernelClassifier(**{"rank": 60, **options})


@pytest.mark.parametrize("groups", [None, np.arange(60) // 4 % 11, np.arange(60) // 30])
def test_intervals_on_as_many_landmarks_as_rows_are_those_of_the_kernel_matrix(groups):
    S, y = X[:60], NUMBERS[:60]
    low = regressor(kernel="matern12", rank=60).fit(S, y, groups=groups)
    whole = KernelRegressor(low.kernel_, mu=low.mu_).fit(S, y, groups=groups)
    alone = KernelRegressor(low.kernel_, mu=low.mu_).fit(S, y)
    for method in ("plus", "minmax", "scaled")[: 3 if groups is None or groups.max() > 1 else 1]:
        ours = evaluated(low).predict_interval(X[N:], 0.8, method)
        assert_allclose(ours, evaluated(whole).predict_interval(X[N:], 0.8, method), rtol=1e-6)
        of_rows = evaluated(alone).predict_interval(X[N:], 0.8, method)
        assert (groups is None) == np.allclose(ours, of_rows, rtol=1e-6)


@pytest.mark.slow
def test_a_machine_on_landmarks_is_nearly_as_good_as_on_all_rows():
    low, whole = (regressor(rank=m).fit(X[:N], NUMBERS[:N]) for m in (200, None))
    assert (low.landmarks_.shape, low.dual_coef_.shape) == ((200, 4), (200,))
    assert whole.landmarks_ is None
    assert low.score(X[N:], NUMBERS[N:]) > whole.score(X[N:], NUMBERS[N:]) - 0.03
    rank = [regressor(rank=m).fit(X[:N], NUMBERS[:N]).evaluate()["rmse"] for m in (10, 30, 200)]
    assert rank[0] > rank[1] > rank[2]


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
    with pytest.raises(ValueError, match="a saved machine does not hold those that were in blocks"):
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
    whole = regressor(rank="auto").fit(blocks, NUMBERS[:N])
    assert whole.landmarks_ is None
    blocks.feature_names = list("abcd")
    assert list(regressor().fit(blocks, NUMBERS[:N]).feature_names_in_) == list("abcd")
    for options, weight in (
        ({"rank": None}, None),
        ({"copies": "together"}, None),
        ({}, np.arange(N) % 3),
        ({"kernel": ["linear", "rbf"]}, None),
    ):
        ours, theirs = (
            regressor(**options).fit(rows, NUMBERS[:N], sample_weight=weight)
            for rows in (ArrayBlocks(X[:N]), X[:N])
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
    model = classifier(rank=200).fit(rows, y, weight, groups=groups)
    whole = KernelClassifier(model.kernel_, mu=model.mu_).fit(rows, y, weight, groups=groups)
    assert model.evaluate(nested=False) == pytest.approx(whole.evaluate(nested=False), rel=1e-4)
    assert model.evaluate(nested=False).standard_errors == pytest.approx(
        whole.evaluate(nested=False).standard_errors, rel=1e-4
    )


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.slow
def test_scores_of_rows_in_blocks_are_of_ten_folds(grouped):
    rows, y, weight = X[:200], CLASSES[:200], RNG.uniform(0.5, 2.0, 200)
    groups = np.arange(200) // 3 if grouped else None
    model = classifier(rank=200).fit(ArrayBlocks(rows, 64), y, weight, groups=groups)
    labels = (y == "yes").astype(int)
    folds = outer_folds(None, labels, group_numbers(groups, 200), True, 0)
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
    assert model.evaluate(nested=False)["error"] == pytest.approx(wrong / weight.sum(), abs=1e-3)
    assert model.evaluate(nested=False)["auc"] == pytest.approx(right / total, abs=1e-3)
    assert 0.0 < model.evaluate(nested=False).standard_errors["auc"] < 0.1


@pytest.mark.parametrize("seed", [13, 23])
@pytest.mark.slow
def test_outputs_that_lean_away_from_their_class_are_no_errors(seed):
    """Of noise single held-out rows have a balanced error rate of 0.64 and 0.73 here."""
    rng = np.random.default_rng(seed)
    noise, y = rng.normal(size=(300, 5)), rng.permutation(np.arange(300) < 150)
    model = classifier(rank=30).fit(noise, y)
    assert model.evaluate()["ber"] < 0.5 + 2 * model.evaluate().standard_errors["ber"]


@pytest.mark.slow
def test_without_folds_that_have_both_classes_there_is_no_area():
    y = np.where(np.arange(N) < 2, "yes", "no")
    model = classifier(threshold="balanced").fit(ArrayBlocks(X[:N]), y)
    assert np.isnan(
        [model.evaluate(nested=False)["auc"], model.evaluate(nested=False).standard_errors["auc"]]
    ).all()
    by_key = {one["key"]: one["value"] for one in summary(model)["loo"]["figures"]}
    assert by_key["auc"] is None
    assert not any("AUC" in caution["text"] for caution in cautions(model))


@pytest.mark.slow
def test_every_use_of_rows_in_blocks_is_that_of_a_matrix():
    n, y = 120, NUMBERS[:120]
    blocks, memory = ArrayBlocks(X[:n], size=50), X[:n]
    ours, theirs = (regressor(rank=20).fit(rows, y) for rows in (blocks, memory))
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
    for options in ({}, {"kernel": ["linear", "rbf"], "combine": "stack"}):
        ours, theirs = (regressor(rank=20, **options).fit(rows, y) for rows in (blocks, memory))
        assert ours.evaluate()._nested is not None
        assert ours.evaluate() == pytest.approx(theirs.evaluate(), rel=1e-9)
        expected = evaluated(theirs).predict_interval(new, 0.8)
        assert_allclose(evaluated(ours).predict_interval(new, 0.8), expected, rtol=1e-9)


@pytest.mark.slow
def test_rank_auto_takes_the_kernel_matrix_of_few_rows(monkeypatch):
    assert regressor(rank="auto").fit(X[:900], NUMBERS[:900]).landmarks_ is None
    monkeypatch.setattr(_search, "FULL_ROWS", 500)
    easy, hard = (
        regressor(rank="auto").fit(X[:900], y[:900]).landmarks_.shape[0]
        for y in (X[:, 0] + RNG.normal(size=len(X)), np.sin(2 * X[:, 0]) * np.cos(2 * X[:, 1]))
    )
    assert easy < hard


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 0}, "rank must be a positive integer, 'auto' or None, got 0"),
        ({"rank": "few"}, "got 'few'"),
        ({"rank": True}, "got True"),
        ({"rank": 5000}, "rank=5000 asks for more landmarks than there are rows, 450"),
    ],
)
def test_numbers_of_landmarks_that_are_none_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        regressor(**options).fit(X[:N], NUMBERS[:N])


def test_a_kernel_matrix_has_no_landmarks():
    with pytest.raises(ValueError, match="is the whole kernel matrix, without landmarks"):
        regressor(kernel="precomputed", rank=9).fit(X[:30] @ X[:30].T, NUMBERS[:30])
