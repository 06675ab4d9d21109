"""Importance of columns against machines fitted without each row, or fold."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from looms import KernelClassifier, KernelRegressor, TabularClassifier, TabularRegressor
from looms.kernels import RBF
from looms.report import feature_importance, summary
from looms.report.model import model_of


def rises(found, model, X, y, columns, refit, units, weight=None):
    """The importance by refits without each unit, which predict its permuted rows."""
    share = np.ones(len(y)) if weight is None else weight
    share = share / share.sum()
    rng = np.random.default_rng(0)
    orders = [rng.permutation(len(y)) for _ in range(found.n_repeats)]
    every = np.arange(len(y))
    models = [(G, refit(np.delete(every, G))) for G in units]

    def squares(X):
        return sum(np.bincount(G, (y[G] - without(X[G])) ** 2, len(y)) for G, without in models)

    base = squares(X)
    assert found.press == pytest.approx(share @ base, rel=1e-6)
    for name, value, error in zip(found.names, found.value, found.standard_error, strict=True):
        k, rise = columns[name], -base
        for order in orders:
            changed = X.copy()
            changed[:, k] = X[order][:, k]
            rise = rise + squares(changed) / len(orders)
        assert value == pytest.approx(share @ rise, rel=1e-6, abs=1e-12)
        spread = np.sqrt(np.sum((share * (rise - share @ rise)) ** 2))
        assert error == pytest.approx(spread, rel=1e-6, abs=1e-12)
    assert (np.diff(found.value) <= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("landmarks", [None, 8])
def test_against_refits_without_each_row(regression, weighted, landmarks):
    _, X, y = regression
    weight = np.linspace(0.5, 2, len(y)) if weighted else None
    model = KernelRegressor(RBF(100.0), mu=1e-3, n_landmarks=landmarks).fit(X, y, weight)
    found = feature_importance(model, n_repeats=2)
    rows, y, total = X.to_numpy(), np.asarray(y), np.sum(model.fit_weight_)

    def refit(rest):
        """With the ridges of all rows."""
        if landmarks is None:
            basis, penalty = rows[rest], np.diag(len(y) * 1e-3 / model.fit_weight_[rest])
            C = np.block([[RBF(100.0)(basis, basis) + penalty, np.ones((len(rest), 1))],
                          [np.ones(len(rest)), np.zeros(1)]])  # fmt: skip
            solved = np.linalg.solve(C, np.append(y[rest], 0.0))
        else:
            basis = model.landmarks_
            phi = np.column_stack([RBF(100.0)(rows[rest], basis), np.ones(len(rest))])
            A = (phi.T * model.fit_weight_[rest]) @ phi
            A[:landmarks, :landmarks] += total * 1e-3 * RBF(100.0)(basis, basis)
            solved = np.linalg.solve(A, phi.T @ (model.fit_weight_[rest] * y[rest]))
        return lambda new: RBF(100.0)(new, basis) @ solved[:-1] + solved[-1]

    columns = {name: [k] for k, name in enumerate(X.columns)}
    units = np.arange(len(y))[:, None]
    rises(found, model, rows, y, columns, refit, units, weight)


@pytest.mark.slow
def test_of_a_stack_with_trees_by_the_folds_of_these():
    """Kernels keep their ridges without a fold, trees are grown anew; columns of text are one."""
    rng = np.random.default_rng(0)
    n = 90
    X = pd.DataFrame({"ward": rng.choice(["x", "y", "z"], n), "a": rng.normal(size=n)})
    X.loc[:5, "a"] = np.nan
    X["noise"] = rng.normal(size=n)
    y = 2.0 * (X["ward"] == "x") + np.nan_to_num(X["a"]) + 0.3 * rng.normal(size=n)
    tree = DecisionTreeRegressor(max_depth=4, random_state=0)
    model = TabularRegressor([KernelRegressor(RBF(0.3), mu=1e-2), tree], target="none").fit(X, y)
    one, other = model.members_
    found = feature_importance(model)
    assert found.names == ["a", "ward", "noise"]
    assert found.n_repeats == 5
    rows, y = model.X_fit_, y.to_numpy()

    def refit(rest):
        grown = clone(tree).fit(rows[rest], y[rest])
        C = RBF(0.3)(rows[rest], rows[rest]) + n * 1e-2 * np.eye(len(rest))
        C = np.block([[C, np.ones((len(rest), 1))], [np.ones(len(rest)), np.zeros(1)]])
        solved = np.linalg.solve(C, np.append(y[rest], 0.0))
        return lambda new: (
            one.weight * (RBF(0.3)(new, rows[rest]) @ solved[:-1] + solved[-1])
            + other.weight * grown.predict(new)
        )

    rises(found, model, rows, y, model_of(model).features.columns, refit, other.units)


class Doubled(TransformerMixin, BaseEstimator):
    """A transformer that tells nothing of its columns."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.hstack([X, X])[:, :5]


class Misnamed(Doubled):
    """A transformer that names other columns than it makes."""

    def get_feature_names_out(self, names=None):
        return np.array(["one", "two"])


class Unnamed(Doubled):
    """A transformer that cannot name its columns."""

    def get_feature_names_out(self, names=None):
        raise KeyError("names")


@pytest.mark.parametrize(
    ("steps", "names", "named"),
    [
        ([StandardScaler()], ["x0", "x1", "x2"], True),
        ([StandardScaler(), PCA(2)], ["pca0", "pca1"], True),
        ([FunctionTransformer(np.fabs)], ["feature 1", "feature 2", "feature 3"], False),
        ([SelectKBest(k=2)], ["x1", "x2"], True),
        ([StandardScaler(), Misnamed()], [f"feature {k + 1}" for k in range(5)], False),
        ([Unnamed()], [f"feature {k + 1}" for k in range(5)], False),
    ],
    ids=str,
)
def test_names_are_those_of_the_data_not_such_as_they_might_be(steps, names, named):
    X = np.random.default_rng(0).normal(size=(30, 3))
    y = X[:, 1] + X[:, 2] > 0
    model = make_pipeline(*steps, KernelClassifier("linear", mu=1e-3))
    found = model_of(model.fit(pd.DataFrame(X, columns=["x0", "x1", "x2"]), y)).features
    assert (found.names, found.named) == (names, named)
    found = model_of(model.fit(X, y)).features
    places = {"x0": "feature 1", "x1": "feature 2", "x2": "feature 3"}
    assert found.names == [places.get(name, name) for name in names]
    assert found.named == ("pca0" in names)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("transformer", "names"),
    [
        (FunctionTransformer(lambda table: table[["b", "c"]]), 2),
        (Misnamed(), 5),
        (ColumnTransformer([("b", StandardScaler(), ["b"])]), ["b__b"]),
    ],
    ids=["fewer", "misnamed", "named"],
)
@pytest.mark.parametrize("of_table", [False, True])
def test_any_transformer_makes_features_that_a_report_names(transformer, names, of_table):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("abc"))
    y = X["b"] > 0
    if of_table:
        model = TabularClassifier(["linear"], preprocess=transformer).fit(X, y)
    else:
        model = make_pipeline(transformer, KernelClassifier("linear")).fit(X, y)
    expected = names if isinstance(names, list) else [f"feature {k + 1}" for k in range(names)]
    report = summary(model, X=X)
    assert sorted(row["name"] for row in report["features"]["rows"]) == sorted(expected)
    assert report["data"]["n_features"] == len(expected)


def test_sparse_samples():
    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.random((60, 5)) * (rng.random((60, 5)) < 0.4))
    y = np.where(X.toarray()[:, 2] > 0, "yes", "no")
    found, dense = (
        feature_importance(KernelClassifier(RBF(1.0), mu=1e-3).fit(rows, y))
        for rows in (X, X.toarray())
    )
    assert found.names == dense.names
    assert found.names[0] == "feature 3"
    np.testing.assert_allclose(found.value, dense.value, rtol=1e-9)


def test_some_columns_and_some_samples_of_many():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 9)) * np.arange(1, 10)
    model = KernelClassifier("linear", mu=0.1).fit(X, X[:, 8] > 0)
    found = feature_importance(model, max_columns=3, n_samples=40)
    assert set(found.names) == {"feature 7", "feature 8", "feature 9"}  # of the largest variance
    assert found.n_columns == 9
    assert 39 <= found.n_samples <= 42
    with pytest.raises(ValueError, match="features"):
        feature_importance(KernelRegressor("precomputed", mu=0.1).fit(X @ X.T, X[:, 0]))
