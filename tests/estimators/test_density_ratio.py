"""Intervals for rows that are distributed otherwise, against refits; ratios of densities."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from evaluated import evaluated
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import pairwise
from refits import refitted
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import looms
from looms import (
    Intervals,
    KernelClassifier,
    KernelRegressor,
    TabularClassifier,
    TabularRegressor,
    density_ratio,
)
from looms.fitted import _without_units
from looms.fitted._without_units import _scales, outputs_without
from looms.kernels import RBF

N, M = 24, 6
RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(N, 2)), RNG.normal(0.5, size=(M, 2))
NOISY = X[:, 0] + 0.4 * RNG.normal(size=N)
TARGETS = {"one": NOISY, "two": np.column_stack([NOISY, RNG.normal(size=N)])}
ZEROS = np.where(np.arange(N) % 5 == 0, 0.0, RNG.uniform(0.2, 3.0, N))
WEIGHTS = {"unweighted": None, "zeros": ZEROS}
RATIO = RNG.uniform(0.0, 3.0, N), RNG.uniform(0.0, 3.0, M)
FAR = RATIO[0], np.where(np.arange(M) == 1, 1e3, RATIO[1])  # of one row there is nothing alike
MODELS = {
    "whole matrix": lambda: KernelRegressor(RBF(0.3), mu=0.05),
    "few features": lambda: KernelRegressor("linear", mu=0.05),
    "landmarks": lambda: KernelRegressor(RBF(0.3), mu=0.05, n_landmarks=6, random_state=0),
}


def weighted_end(values, weights, level, new):
    """Least value up to which lies a share of all weights, one of which is at infinity."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) >= level * (weights.sum() + new) - 1e-9
    return values[order][reached.argmax()] if reached.any() else np.inf


def by_a_loop(r, F, level, w, v):
    """Intervals (m, 2) from residuals (n,) and outputs (m, n) of the models without each row."""
    r = np.abs(r)
    return np.array(
        [
            [-weighted_end(r - f, w, level, new), weighted_end(f + r, w, level, new)]
            for f, new in zip(F, v, strict=True)
        ]
    )


@pytest.mark.parametrize(
    ("name", "weights", "targets", "grouped"), pairwise(MODELS, WEIGHTS, TARGETS, [False, True])
)
def test_intervals_are_of_n_refits(name, weights, targets, grouped):
    y, weight = TARGETS[targets], WEIGHTS[weights]
    groups = np.arange(N) // 3 if grouped else np.arange(N)
    model = MODELS[name]().fit(X, y, sample_weight=weight, groups=groups if grouped else None)
    ours = evaluated(model).predict_interval(X_NEW, 0.8, density_ratio=RATIO)
    train, both = np.flatnonzero(model.fit_weight_), np.vstack([X, X_NEW])
    columns = y.reshape(N, -1)
    r, F = np.empty((len(train), columns.shape[1])), np.empty((M, len(train), columns.shape[1]))
    for place, i in enumerate(train):
        rest = train[groups[train] != groups[i]]
        outputs = outputs_of(model, both, rest, columns)
        r[place], F[:, place] = columns[i] - outputs[i], outputs[N:]
    for k, ends in enumerate(np.moveaxis(ours.reshape(M, -1, 2), 1, 0)):
        expected = by_a_loop(r[:, k], F[..., k], 0.8, RATIO[0][train], RATIO[1])
        assert_allclose(ends, expected, rtol=1e-7, atol=1e-7)
    assert np.abs(ours - model.predict_interval(X_NEW, 0.8)).max() > 0.05


@pytest.mark.parametrize(
    ("target", "nested", "candidates"),
    [("none", False, ["linear", RBF(0.3)]), ("log", True, "linear"), ("log", False, "linear")],
)
def test_models_of_folds_and_transforms(target, nested, candidates):
    """Outputs and residuals are tested where they are made; ends go back through a transform."""
    y = np.exp(NOISY)
    model = TabularRegressor(candidates, target=target).fit(X, y, sample_weight=ZEROS)
    ours = evaluated(model, nested=nested).predict_interval(X_NEW, 0.8, density_ratio=FAR)
    models, train = model._models_without(), np.flatnonzero(ZEROS)
    new = X_NEW if nested else model._matrix(X_NEW)
    F = np.vstack([F for _, F in outputs_without(models, new)])
    expected = by_a_loop(models.residuals, F, 0.8, FAR[0][train], FAR[1])
    assert_allclose(ours, np.exp(expected) if target == "log" else expected, rtol=1e-9)
    assert_array_equal(ours[1], [0.0 if target == "log" else -np.inf, np.inf])
    frame = model.predictions(X_NEW, 0.8, density_ratio=FAR)
    assert_array_equal(frame[["lower", "upper"]], ours)


def test_scaled_in_blocks_and_pipelines(monkeypatch):
    monkeypatch.setattr(_without_units, "_NUMBERS", 2 * N)
    model = make_pipeline(StandardScaler(), KernelRegressor(RBF(0.3), mu=0.05)).fit(X, NOISY)
    evaluated(model)
    ours = looms.predict_interval(model, X_NEW, 0.8, method="scaled", density_ratio=RATIO)
    last, Z = model[-1], model[0].transform(X_NEW)
    models = last._models_without(of_fit=True)
    F = np.vstack([F for _, F in outputs_without(models, Z)])
    scales = _scales(last.fitted_, Z, F.shape)
    relative = np.abs(models.residuals) * scales["scales"] / scales["loo_scales"]
    for t, ends in enumerate(ours):
        each = RATIO[0], RATIO[1][[t]]
        assert_allclose(ends, by_a_loop(relative[t], F[[t]], 0.8, *each)[0], rtol=1e-9)


@pytest.mark.parametrize("regressor", [Ridge(0.3), LinearRegression()])
def test_any_regressor(regressor):
    """In closed form, and refitted."""
    model = Intervals(regressor, cv=4).fit(X, NOISY, sample_weight=ZEROS)
    assert (model.estimators_ is None) == isinstance(regressor, Ridge)
    ours = model.predict_interval(X_NEW, 0.8, density_ratio=RATIO)
    train = np.flatnonzero(ZEROS)
    r, F = np.empty(len(train)), np.empty((M, len(train)))
    for out in model.units_.tested_by:
        rest = np.delete(train, out)
        one = clone(regressor).fit(X[rest], NOISY[rest], ZEROS[rest])
        r[out] = NOISY[train[out]] - one.predict(X[train[out]])
        F[:, out] = one.predict(X_NEW)[:, None]
    expected = by_a_loop(r, F, 0.8, RATIO[0][train], RATIO[1])
    assert_allclose(ours, expected, rtol=1e-9)


def test_refused():
    model = evaluated(KernelRegressor(RBF(0.3), mu=0.05).fit(X, NOISY, sample_weight=ZEROS))
    with pytest.raises(ValueError, match="each of 24 training rows and each of 6 new rows"):
        model.predict_interval(X_NEW, density_ratio=(RATIO[0][ZEROS > 0], RATIO[1]))
    with pytest.raises(ValueError, match="method='minmax' does not weight rows"):
        model.predict_interval(X_NEW, 0.8, "minmax", density_ratio=RATIO)
    for ratio in (3, "no", RATIO[0]):
        with pytest.raises(ValueError, match=r"a pair of arrays, as looms\.density_ratio returns"):
            model.predict_interval(X_NEW, density_ratio=ratio)
    with pytest.raises(ValueError, match="positive for some training row"):
        model.predict_interval(X_NEW, 0.8, density_ratio=(ZEROS == 0, RATIO[1]))


OLD, NEW = RNG.normal(size=(150, 2)), RNG.normal([1.0, 0.0], size=(100, 2))


def test_ratios():
    """Odds of held-out probabilities; shares of rows do not count."""
    with warnings.catch_warnings(action="error"):
        ratio = density_ratio(OLD, NEW, KernelClassifier("linear", mu=0.01))
    labels = np.repeat([0, 1], [150, 100])
    model = KernelClassifier("linear", mu=0.01).fit(np.vstack([OLD, NEW]), labels)
    p = model.evaluate(nested=False).decisions.probabilities[:, 1]
    assert_allclose(np.concatenate(ratio), p / (1 - p) * 1.5)
    assert repr(ratio).startswith(f"DensityRatio({len(ratio.fit)} rows of the fit")
    assert ratio.effective_rows == pytest.approx(ratio.fit.sum() ** 2 / (ratio.fit**2).sum())
    slopes = np.polyfit(OLD[:, 0], np.log(ratio.fit), 1)
    assert slopes == pytest.approx([1.0, -0.5], abs=0.25)
    clipped = np.concatenate(density_ratio(OLD, NEW, KernelClassifier("linear", mu=0.01), 0.3))
    assert_allclose(np.unique(clipped)[[0, -1]], [1.5 * 3 / 7, 1.5 * 7 / 3])
    with warnings.catch_warnings(action="error"):  # rows that hardly differ are of one class
        same = density_ratio(OLD[:100], OLD[100:])
    assert same.effective_rows > 90


def test_rows_that_nothing_resembles():
    """Intervals are infinite, and no row of the fit is effective."""
    ratio = density_ratio(OLD, OLD[:40] + 30)
    assert ratio.effective_rows < 1
    assert ratio.effective_rows == pytest.approx(ratio.fit.sum() / np.median(ratio.new))
    model = evaluated(KernelRegressor(RBF(0.3), mu=0.05).fit(OLD, OLD[:, 0]))
    assert np.isinf(model.predict_interval(OLD[:40] + 30, 0.8, density_ratio=ratio)).all()


@pytest.mark.parametrize("kind", ["pandas", "polars", "sparse", "list"])
def test_tables(kind):
    frame = pytest.importorskip("polars").DataFrame if kind == "polars" else pd.DataFrame
    tables = {"sparse": sp.csr_array, "list": np.ndarray.tolist}
    made = tables.get(kind, lambda rows: frame({"a": rows[:, 0], "b": rows[:, 1]}))
    ours, plain = density_ratio(made(OLD), made(NEW)), density_ratio(OLD, NEW)
    if kind != "sparse":  # whose columns are prepared otherwise
        assert_array_equal(np.concatenate(ours), np.concatenate(plain))
    assert np.corrcoef(ours.fit, plain.fit)[0, 1] > 0.98
    if kind in ("pandas", "polars"):
        with pytest.raises(ValueError, match="have the same columns"):
            density_ratio(made(OLD), made(NEW)[["b", "a"]])
        with pytest.raises(ValueError, match="have the same columns"):
            density_ratio(made(OLD), NEW)


def test_columns_of_other_types():
    polars = pytest.importorskip("polars")
    old = polars.DataFrame({"a": (10 * OLD[:, 0]).astype(int), "b": OLD[:, 1]})
    new = polars.DataFrame({"a": 10 * NEW[:, 0], "b": [None] * len(NEW)})
    ratio, known = density_ratio(old, new), density_ratio(old.to_numpy(), new.to_numpy())
    assert_array_equal(ratio.new, known.new)


FRAME = pd.DataFrame(OLD, columns=["a", "b"])


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        (lambda: (OLD, NEW[:, :1]), r"equal columns.*\(150, 2\) and \(100, 1\)"),
        (lambda: (OLD[:, 0], NEW[:, 0]), r"equal columns.*\(150,\) and \(100,\)"),
        (lambda: (OLD, NEW[:0]), r"must have rows.*\(150, 2\) and \(0, 2\)"),
        (lambda: (FRAME[:0], FRAME), r"must have rows.*\(0, 2\) and \(150, 2\)"),
        (
            lambda: (FRAME, pytest.importorskip("polars").DataFrame({"a": [1.0], "b": [1.0]})),
            "and be of one library",
        ),
    ],
)
def test_tables_that_do_not_fit_together(tables, says):
    with pytest.raises(ValueError, match=says):
        density_ratio(*tables())


def test_text_is_read():
    rows = [pd.DataFrame({"site": np.repeat(["a", "b"], sizes)}) for sizes in ([80, 40], [20, 60])]
    ratio = density_ratio(*rows)
    assert ratio.fit[0] == pytest.approx(0.25 / (2 / 3), abs=0.05)
    assert ratio.fit[-1] == pytest.approx(0.75 / (1 / 3), abs=0.1)
    assert_allclose(ratio.new[[0, -1]], ratio.fit[[0, -1]], rtol=0.05)


@pytest.mark.parametrize(
    ("error", "options", "says"),
    [
        (TypeError, {"classifier": Ridge()}, "no classifier of looms"),
        (ValueError, {"classifier": TabularClassifier("rbf", calibration=None)}, "probabilities"),
        (ValueError, {"clip": 0.5}, "between 0 and 0.5"),
        (ValueError, {"clip": 0.0}, "between 0 and 0.5"),
        (ValueError, {"clip": "a"}, "between 0 and 0.5, got 'a'"),
    ],
)
def test_what_is_no_ratio(error, options, says):
    with pytest.raises(error, match=says):
        density_ratio(OLD, NEW, **options)


def outputs_of(model, both, rest, columns):
    """Outputs of old and new rows, by the model trained on the rows ``rest``."""

    class Padded:
        """The model with new rows, which have no weight."""

        members_, fit_intercept_ = model.members_, model.fit_intercept_
        fit_weight_ = np.append(model.fit_weight_, np.zeros(M))

    y = np.vstack([columns, np.zeros((M, columns.shape[1]))])
    return refitted(both, Padded, rest, y)
