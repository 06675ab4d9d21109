"""Rows removed from a machine and added to it, against fits to the rows that are left."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from evaluated import evaluated
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import in_turn
from stacks import stacked_classifier

from looms import KernelClassifier, KernelRegressor, Search
from looms.blocks import ArrayBlocks
from looms.fitted._fitted import Fitted
from looms.kernels import RBF
from looms.lssvm.updates import Bordered
from looms.model_files import load_model, save_model

N = 50
RNG = np.random.default_rng(8)
X = RNG.normal(size=(N, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.3 * RNG.normal(size=N)
LABELS = np.where(Y > 1.2, "b", "a")
WEIGHT = RNG.uniform(0.3, 3.0, N)
WEIGHT[[4, 20, 48]] = 0.0
ROWS = np.array([0, 7, 20, 33, 49])
GROUPS = np.arange(N) // 3

#: Machine and targets; three classes, several targets, weights of classes.
CASES = {
    "classifier": (KernelClassifier(mu=1e-2), LABELS),
    "no intercept": (KernelClassifier(mu=1e-2, fit_intercept=False, calibration=None), LABELS),
    "balanced": (KernelClassifier(mu=1e-2, class_weight="balanced", threshold="balanced"), LABELS),
    "isotonic": (KernelClassifier(mu=1e-2, calibration="isotonic", class_weight={"b": 5}), LABELS),
    "three classes": (KernelClassifier(mu=1e-2, class_weight="balanced"), np.arange(N) % 3),
    "tuned classifier": (KernelClassifier(class_weight="balanced"), LABELS),
    "hinge": (KernelClassifier(mu=1e-2, loss="hinge", class_weight="balanced"), LABELS),
    "squared hinge": (KernelClassifier(mu=1e-2, loss="squared_hinge"), LABELS),
    "on a grid": (KernelClassifier(search=Search(method="grid")), LABELS),
    "regressor": (KernelRegressor("cubic", mu=1e-2), Y),
    "no intercept, targets": (
        KernelRegressor(mu=1e-2, fit_intercept=False),
        np.c_[Y, X[:, 1] ** 2],
    ),
    "tuned regressor": (KernelRegressor("ard", cv=5), Y),
}


def fitted(name, weight=None, rows=slice(None), X=X):
    model, y = CASES[name]
    weight = weight if weight is None else weight[rows]
    return copy.deepcopy(model).fit(X[rows], y[rows], sample_weight=weight)


def check(ours, theirs):
    """``ours`` came from an update, ``theirs`` from a fit."""
    for name in ("dual_coef_", "intercept_", "fit_weight_", "threshold_"):
        if hasattr(theirs, name):
            assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, atol=1e-10)
    for name in ("loo_", "held_out_"):
        for mine, refitted in zip(getattr(ours, name), getattr(theirs, name), strict=True):
            assert_allclose(mine, refitted, rtol=1e-10, atol=1e-10)
    X_new = X[:9] + 0.3
    if hasattr(theirs, "classes_"):
        assert_array_equal(ours.classes_, theirs.classes_)
        if theirs.calibrator_ is not None:
            assert_allclose(ours.predict_proba(X_new), theirs.predict_proba(X_new), atol=1e-9)
        sets = [
            evaluated(model).predict_set(X_new, confidence_level=0.7) for model in (ours, theirs)
        ]
        assert_array_equal(*sets)
    else:
        ends = [evaluated(model).predict_interval(X_new) for model in (ours, theirs)]
        assert_allclose(*ends, atol=1e-9)
    scores = ours.evaluate(nested=False)
    for name, value in theirs.evaluate(nested=False).items():
        assert_allclose(scores[name], value, rtol=1e-8)


@pytest.mark.parametrize(("name", "weight"), in_turn(CASES, [WEIGHT, None]))
def test_without_rows_is_a_fit_to_the_others(name, weight):
    whole = fitted(name, weight)
    before = whole.loo_, whole.dual_coef_.copy(), whole.X_fit_.copy()
    ours = whole.without(ROWS)
    rest = np.delete(np.arange(N), ROWS)
    own = None if weight is None else weight[rest]
    check(ours, copy.deepcopy(ours).fit(X[rest], CASES[name][1][rest], sample_weight=own))
    assert ours.certificate_.relative < 1e-10
    positive = ours.fit_weight_ > 0
    ridges = positive.sum() * ours.mu_ / ours.fit_weight_[positive]
    held = (whole.fit_weight_ > 0).sum() * whole.mu_ / whole.fit_weight_[rest][positive]
    assert_allclose(ridges, held, rtol=1e-12)
    assert whole.loo_ is before[0]
    assert_array_equal(whole.dual_coef_, before[1])
    assert_array_equal(whole.X_fit_, before[2])


@pytest.mark.parametrize(("name", "weight"), in_turn(CASES, [None, WEIGHT]))
def test_with_rows_is_a_fit_to_all(name, weight):
    old, new = np.arange(N - 6), np.arange(N - 6, N)
    part = fitted(name, weight, old)
    y = CASES[name][1]
    own = None if weight is None else weight[new]
    ours = part.with_rows(X[new], y[new], sample_weight=own)
    check(ours, copy.deepcopy(ours).fit(X, y, sample_weight=weight))
    assert ours.certificate_.relative < 1e-10
    assert len(part.X_fit_) == len(old)


@pytest.mark.slow
def test_the_rest_of_a_group_is_held_out_together():
    whole = KernelClassifier().fit(X, LABELS, groups=GROUPS)
    ours, mask = whole.without(ROWS), np.isin(np.arange(N), ROWS)
    assert_array_equal(whole.without(mask).loo_.outputs, whole.without(ROWS[::-1]).loo_.outputs)
    rest = np.delete(np.arange(N), ROWS)
    for group in np.unique(ours.units_.clusters)[::4]:
        out = ours.units_.clusters == group
        f = ours.without(out)._outputs(X[rest][out])
        assert_allclose(ours.held_out_.outputs[out], f)
    assert np.abs(ours.held_out_.outputs - ours.loo_.outputs).max() > 1e-3
    again = copy.deepcopy(ours).fit(X[rest], LABELS[rest])
    assert not again.units_.grouped
    assert not hasattr(again, "certificate_")
    with pytest.raises(ValueError, match="groups"):
        whole.with_rows(X[:2], LABELS[:2])


def test_updates_of_updates_do_not_factorize_again(monkeypatch):
    whole = fitted("classifier")
    once = whole.without(ROWS)
    monkeypatch.setattr(Fitted, "system_of", None)
    again = once.with_rows(X[ROWS], LABELS[ROWS]).without(np.arange(N - 5, N))
    assert_allclose(again.loo_.outputs, once.loo_.outputs, atol=1e-10)
    assert again.mu == pytest.approx(once.mu, rel=1e-12)


def test_sparse_rows_and_names_of_features():
    dense, sparse = fitted("regressor"), fitted("regressor", X=sp.csr_array(X))
    for other in (
        sparse.without(ROWS),
        sparse.without(np.arange(40, N)).with_rows(X[40:], Y[40:]).without(ROWS),
        dense.without(np.arange(40, N)).with_rows(sp.csr_array(X[40:]), Y[40:]).without(ROWS),
    ):
        assert_allclose(other.loo_.outputs, dense.without(ROWS).loo_.outputs, atol=1e-9)
    table = pd.DataFrame(X, columns=list("uvw"))
    named = KernelRegressor(mu=1e-3).fit(table, Y).without(ROWS)
    assert_array_equal(named.feature_names_in_, list("uvw"))


def test_a_precomputed_kernel_loses_rows_and_columns_but_gains_none():
    K = RBF(0.4)(X)
    whole = KernelRegressor("precomputed", mu=1e-2).fit(K, Y)
    rest = np.delete(np.arange(N), ROWS)
    ours = whole.without(ROWS)
    theirs = copy.deepcopy(ours).fit(K[np.ix_(rest, rest)], Y[rest])
    assert_allclose(ours.loo_.outputs, theirs.loo_.outputs, atol=1e-10)
    assert_allclose(ours.predict(K[:4, rest]), theirs.predict(K[:4, rest]), atol=1e-10)
    with pytest.raises(ValueError, match="precomputed"):
        whole.with_rows(K[:2], Y[:2])


def test_rows_in_blocks_are_not_in_a_pickle_to_be_removed():
    whole = KernelRegressor(n_landmarks=20).fit(ArrayBlocks(X), Y)
    saved = pickle.loads(pickle.dumps(whole))
    for update in (lambda: saved.without(ROWS), lambda: saved.with_rows(X[:1], Y[:1])):
        with pytest.raises(ValueError, match="fit it to rows in memory"):
            update()


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ([N], f"0 to {N - 1}, got {N}"),
        ([-1], "got -1"),
        ([3, 5, 3], "row 3 more than once"),
        ([0.5], "indices or a mask"),
        (pd.Index([1, 2]), "index"),
        (["r1"], "index"),
        ([[1, 2]], "indices or a mask"),
        (np.ones(N - 1, dtype=bool), f"has {N} rows"),
        (np.arange(N - 1), "leaves 1 of"),
        (np.flatnonzero(LABELS == "b"), "class .*'b'"),
    ],
)
def test_rows_that_cannot_be_removed_are_refused(rows, match):
    with pytest.raises(ValueError, match=match):
        fitted("classifier").without(rows)


@pytest.mark.parametrize(
    ("name", "rows", "y", "weight", "words"),
    [
        ("classifier", X[:2], ["a", "c"], None, "'c'"),
        ("regressor", X[:2, :2], Y[:2], None, "features"),
        ("regressor", X[:2], np.c_[Y[:2], Y[:2]], None, "targets"),
        ("regressor", X[:2], Y[:2], [1e-20, 1e-20], "sample_weight"),
    ],
    ids=["class", "features", "targets", "weight"],
)
def test_what_cannot_be_added_is_refused(name, rows, y, weight, words):
    with pytest.raises(ValueError, match=words):
        fitted(name).with_rows(rows, y, sample_weight=weight)


def test_outputs_that_differ_from_a_refit_are_an_error(monkeypatch):
    whole = fitted("regressor")
    exact = Bordered.without

    def wrong(self, rows):
        system = exact(self, rows)
        system.P.flat[:: len(system.P) + 1] *= 1 + 1e-4
        return system

    monkeypatch.setattr(Bordered, "without", wrong)
    with pytest.raises(RuntimeError, match="differ from those of a refit"):
        whole.without(ROWS)
    assert not hasattr(whole.without(ROWS, certify=False), "certificate_")


@pytest.mark.slow
def test_scores_of_a_tuned_machine_are_called_optimistic_after_a_change(tmp_path):
    whole = KernelRegressor("ard").fit(X, Y)
    ours = whole.with_rows(X[:1], Y[:1]).without(ROWS)
    save_model(tmp_path / "m.skops", ours, {})
    own = ours.evaluate(nested=False)
    assert whole.evaluate()["rmse"] > own["rmse"]  # those of the choice
    for one in (ours, pickle.loads(pickle.dumps(ours)), load_model(tmp_path / "m.skops").model):
        assert one.evaluate(nested=False).optimistic
        assert one.evaluate(nested=False) == pytest.approx(own)
        with pytest.raises(ValueError, match="fit the self-tuning model anew"):
            one.evaluate()
    assert not ours.fit(X, Y).evaluate().optimistic  # at values that are given now


@pytest.mark.slow
def test_a_row_that_leaves_and_comes_back_changes_nothing(tmp_path):
    whole = stacked_classifier(["linear", RBF(0.5, "fixed")]).fit(X, LABELS)
    probabilities = whole.predict_proba(X)
    assert_allclose(whole.without([]).predict_proba(X), probabilities, atol=1e-9)
    ours = whole.without([N - 1])
    assert np.abs(ours.predict_proba(X) - probabilities).max() > 1e-6
    save_model(tmp_path / "m.skops", ours, {})
    for one in (ours, load_model(tmp_path / "m.skops").model):
        again = one.with_rows(X[N - 1 :], LABELS[N - 1 :])
        assert_allclose(again.predict_proba(X), probabilities, atol=1e-9)
    assert_array_equal(ours.candidate_weights_, whole.candidate_weights_)
    assert not ours.fit(X, LABELS).fitted_.keeps_rule
