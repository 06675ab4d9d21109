"""Standard errors of predictions, beside refits without each unit."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from stacks import stacked_classifier, stacked_regressor

from looms import KernelClassifier, KernelRegressor, TabularClassifier, TabularRegressor
from looms.blocks import ArrayBlocks
from looms.folds import ForwardSplit
from looms.kernels import RBF

N = 24
RNG = np.random.default_rng(3)
X, NEW = RNG.normal(size=(N, 3)), RNG.normal(size=(5, 3))
Y = np.sin(X[:, 0]) + 0.4 * RNG.normal(size=N)
LABELS = np.array(["a", "b", "c"])[np.digitize(Y, [-0.4, 0.4])]
WEIGHT = np.where(np.arange(N) % 5 == 0, 0.0, RNG.uniform(0.2, 3.0, N))
GROUPS = np.arange(N) // 3
KERNEL = RBF(0.3, gamma_bounds="fixed")
CASES = {
    "kernel": (KernelRegressor(KERNEL, mu=0.02), Y, {}),
    "weights of zero": (KernelRegressor(KERNEL, mu=0.02), Y, {"sample_weight": WEIGHT}),
    "groups": (KernelRegressor("linear", mu=0.02), Y, {"groups": GROUPS}),
    "two targets": (KernelRegressor(KERNEL, mu=0.02), np.column_stack([Y, X[:, 1]]), {}),
    "folds": (KernelRegressor(KERNEL, mu=0.02, cv="2x3"), Y, {}),
    "landmarks": (KernelRegressor(KERNEL, mu=0.02, n_landmarks=8), Y, {}),
    "two classes": (KernelClassifier(KERNEL, mu=0.02), Y > 0, {}),
    "three classes": (KernelClassifier(KERNEL, mu=0.02), LABELS, {}),
    "decision values": (KernelClassifier(KERNEL, mu=0.02, calibration=None), Y > 0, {}),
    "forward in time": (KernelRegressor(KERNEL, mu=0.02, cv=ForwardSplit(3)), Y, {}),
    "transformed": (
        TabularRegressor([KernelRegressor(KERNEL, mu=0.02)], target="log"),
        np.exp(Y),
        {},
    ),
}


def values_of(fitted, outputs):
    if fitted.outcome.decides:
        return fitted.outcome.of_classes(outputs, fitted.rule)
    return fitted.predicted(outputs)


@pytest.mark.parametrize("name", CASES)
def test_errors_are_the_jackknife_of_refits(name):
    model, y, more = CASES[name]
    model = clone(model).fit(X, y, **more)
    fitted, w = model.fitted_, model.fit_weight_
    (member,), train = fitted.members, np.flatnonzero(w)
    units = more.get("groups", np.arange(N))
    values = []
    for unit in np.unique(units[train]):
        rest = train[units[train] != unit]
        data = model._matrix(X)[rest], fitted.rows.targets[rest], w[rest] / w[rest].mean()
        mu = member.mu * w[train].sum() / w[rest].sum()
        one = KernelRegressor(member.kernel, mu=mu)
        if member.landmarks is not None:  # which stay
            K = member.kernel(data[0], member.landmarks)
            root = np.linalg.cholesky(member.kernel(member.landmarks, member.landmarks))
            features = np.linalg.solve(root, K.T).T
            new = np.linalg.solve(root, member.kernel(NEW, member.landmarks).T).T
            outputs = KernelRegressor("linear", mu=mu).fit(features, data[1]).predict(new)
        else:
            outputs = one.fit(*data[:2], sample_weight=data[2]).predict(model._matrix(NEW))
        values.append(np.asarray(values_of(fitted, outputs)).reshape(len(NEW), -1))
    values = np.array(values)
    m = len(values)
    expected = np.sqrt((m - 1) / m * np.square(values - values.mean(axis=0)).sum(axis=0))
    found = model.predict_standard_error(NEW)
    if not fitted.outcome.decides:
        assert found.shape == model.predict(NEW).shape
    assert_allclose(found.reshape(len(NEW), -1), expected, rtol=1e-6, atol=1e-10)


def test_a_stack_a_table_and_what_has_none():
    forest = RandomForestClassifier(5, random_state=0)
    stack = stacked_classifier([KERNEL, forest]).fit(X, Y > 0)
    assert (stack.predict_standard_error(NEW) > 0).all()
    table = pd.DataFrame(X, columns=list("abc")).assign(d=np.where(X[:, 0] > 0, "x", "y"))
    model = TabularClassifier(["linear"]).fit(table, LABELS)
    assert model.predict_standard_error(table[:4]).shape == (4, 3)
    forward = stacked_regressor([LinearRegression()], cv=ForwardSplit(2)).fit(X, Y)
    assert np.isnan(forward.predict_standard_error(NEW)).all()
    blocks = KernelRegressor("linear", mu=0.1, n_landmarks=5).fit(ArrayBlocks(X, size=8), Y)
    assert blocks.predict_standard_error(NEW).shape == (5,)
    precomputed = KernelRegressor("precomputed", mu=0.02).fit(KERNEL(X, X), Y)
    same = KernelRegressor(KERNEL, mu=0.02).fit(X, Y).predict_standard_error(NEW)
    assert_allclose(precomputed.predict_standard_error(KERNEL(NEW, X)), same, rtol=1e-6)
    assert stacked_regressor(["linear", KERNEL]).fit(X, Y).predict_standard_error(NEW).min() > 0
