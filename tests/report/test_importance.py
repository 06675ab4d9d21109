"""Importance of columns against machines fitted without them."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from looms import KernelClassifier, KernelRegressor
from looms.kernels import RBF
from looms.report import feature_importance
from looms.report.model import model_of
from looms.tables import TablePreprocessor


@pytest.mark.parametrize("weighted", [False, True])
def test_against_machines_fitted_without_the_column(regression, weighted):
    _, X, y = regression
    weight = np.linspace(0.5, 2, len(y)) if weighted else None
    machine = KernelRegressor(RBF(100.0), mu=1e-3)
    model = machine.fit(X, y, weight)
    share = np.full(len(y), 1 / len(y)) if weight is None else weight / weight.sum()
    found = feature_importance(model)
    assert found.press == pytest.approx(share @ model.loo_.residuals**2)
    assert found.n_samples == len(y)
    for name, value, error in zip(found.names, found.value, found.standard_error, strict=True):
        without = KernelRegressor(RBF(100.0), mu=1e-3).fit(
            X.assign(**{name: X[name].mean()}), y, weight
        )
        rise = without.loo_.residuals**2 - model.loo_.residuals**2
        assert value == pytest.approx(share @ rise, rel=1e-6)
        spread = np.sqrt(np.sum((share * (rise - share @ rise)) ** 2))
        assert error == pytest.approx(spread, rel=1e-6)
    assert (np.diff(found.value) <= 0).all()


def test_columns_of_a_table_are_held_together():
    rng = np.random.default_rng(0)
    n = 80
    X = pd.DataFrame({"a_b": rng.choice(["x", "y", "z"], n), "a": rng.normal(size=n)})
    X.loc[:5, "a"] = np.nan
    X["noise"] = rng.normal(size=n)
    y = (X["a_b"] == "x") + 0.1 * rng.normal(size=n)
    preprocessor = TablePreprocessor()
    model = make_pipeline(preprocessor, KernelRegressor(mu=1e-2)).fit(X, y)
    found = model_of(model)
    assert found.features == ["a", "noise", "a is missing", "a_b = x", "a_b = y", "a_b = z"]
    assert found.sources == ["a", "noise", "a", "a_b", "a_b", "a_b"]
    importance = feature_importance(model)
    assert importance.names[0] == "a_b"
    assert importance.n_columns == 3
    matrix = preprocessor.transform(X)
    held = matrix.copy()
    held[:, [3, 4, 5]] = matrix[:, [3, 4, 5]].mean(axis=0)
    kernel = model[-1].kernel_
    rise = (
        KernelRegressor(kernel, mu=1e-2).fit(held, y).loo_.residuals ** 2
        - model[-1].loo_.residuals ** 2
    )
    assert importance.value[0] == pytest.approx(rise.mean(), rel=1e-6)


@pytest.mark.parametrize(
    ("steps", "names", "named"),
    [
        ([], ["x0", "x1", "x2"], True),
        ([StandardScaler()], ["x0", "x1", "x2"], True),
        ([StandardScaler(), PCA(2)], ["pca0", "pca1"], True),
        ([FunctionTransformer(np.fabs)], ["feature 1", "feature 2", "feature 3"], False),
        ([SelectKBest(k=2)], ["x1", "x2"], True),
    ],
    ids=str,
)
def test_names_are_those_of_the_data_not_such_as_they_might_be(steps, names, named):
    X = np.random.default_rng(0).normal(size=(30, 3))
    y = X[:, 1] + X[:, 2] > 0
    model = make_pipeline(*steps, KernelClassifier("linear", mu=1e-3))
    found = model_of(model.fit(pd.DataFrame(X, columns=["x0", "x1", "x2"]), y))
    assert (found.features, found.named) == (names, named)
    found = model_of(model.fit(X, y))
    places = {"x0": "feature 1", "x1": "feature 2", "x2": "feature 3"}
    assert found.features == [places.get(name, name) for name in names]
    assert found.named == ("pca0" in names)


def test_few_samples_of_many(binary):
    found = feature_importance(binary[0], n_samples=40)
    assert 39 <= found.n_samples <= 42
    assert set(found.names) == set(binary[1].columns)


def test_most_columns_are_those_of_the_largest_variance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 9)) * np.arange(1, 10)
    found = feature_importance(KernelRegressor(mu=0.1).fit(X, X[:, 8]), max_columns=3)
    assert set(found.names) == {"feature 7", "feature 8", "feature 9"}
    assert found.n_columns == 9


def test_sparse_samples():
    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.random((60, 5)) * (rng.random((60, 5)) < 0.4))
    y = np.where(X.toarray()[:, 2] > 0, "yes", "no")
    model = KernelClassifier(mu=1e-3).fit(X, y)
    found = feature_importance(model)
    assert found.names[0] == "feature 3"
    # A sparse column is held at zero, which for a kernel of distances is any constant.
    dense = X.toarray()
    dense[:, 2] = 0
    other = KernelClassifier(model.kernel_, mu=1e-3).fit(dense, y)
    rise = other.loo_.residuals**2 - model.loo_.residuals**2
    assert found.value[0] == pytest.approx(rise.mean(), rel=1e-6)


@pytest.mark.slow
def test_kernel_matrices_have_no_features(regression):
    _, X, y = regression
    K = X.to_numpy() @ X.to_numpy().T
    with pytest.raises(ValueError, match="has no features"):
        feature_importance(KernelRegressor("precomputed").fit(K, y))
