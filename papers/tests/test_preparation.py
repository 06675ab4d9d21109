"""The papers' preprocessing, on made and on real columns."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from papers.challenge._preparation import ADAColumns, ContinuousScaler, preparation


@parametrize_with_checks([ContinuousScaler()])
def test_sklearn_contract(estimator, check):
    check(estimator)


def made(n=60, seed=0):
    """Columns like those of ADA: age, weight, education, gain, loss, hours, and two binary."""
    rng = np.random.default_rng(seed)
    gain = np.where(rng.random(n) < 0.2, rng.integers(10, 150, n), 0)
    loss = np.where(rng.random(n) < 0.2, rng.integers(300, 600, n), 0)
    columns = [
        rng.integers(189, 999, n),
        rng.integers(14, 794, n),
        rng.choice([62, 187, 312, 624], n),
        gain,
        loss,
        rng.integers(20, 150, n),
        rng.integers(0, 2, n),
        rng.integers(0, 2, n),
    ]
    return np.column_stack(columns).astype(float)


NAMES = ("age", None, "education", "gain", "loss")


@pytest.mark.parametrize("seed", range(2))
def test_columns_are_found_in_any_order(seed):
    X = made()
    order = np.random.default_rng(seed).permutation(X.shape[1])
    found = ADAColumns().fit(X[:, order]).columns_
    assert {name: order[column] for name, column in found.items()} == {
        name: k for k, name in enumerate(NAMES) if name
    }


def test_columns_of_the_real_set(data_folder):
    table = pd.read_csv(data_folder / "ada.csv.gz").drop(columns="target")
    expected = {"age": 19, "education": 17, "gain": 29, "loss": 23}
    assert ADAColumns().fit(table.to_numpy(float)).columns_ == expected
    part = table.sample(400, random_state=1).to_numpy(float)
    assert ADAColumns().fit(part).columns_ == expected


def test_ada_columns_by_hand():
    X = made()
    Z = ADAColumns().fit(X).transform(X)
    np.testing.assert_array_equal(Z[:, [0, 2]], np.log(X[:, [0, 2]]))
    np.testing.assert_array_equal(Z[:, [3, 4]], X[:, [3, 4]] > [44, 410])
    np.testing.assert_array_equal(Z[:, [1, 5, 6, 7]], X[:, [1, 5, 6, 7]])
    assert 0 < Z[:, 3].mean() < np.mean(X[:, 3] > 0)
    Z = ADAColumns(gain_threshold=100, loss_threshold=500).fit(X).transform(X)
    np.testing.assert_array_equal(Z[:, [3, 4]], X[:, [3, 4]] > [100, 500])
    Z = ADAColumns(age=5).fit(X).transform(X)
    np.testing.assert_array_equal(Z[:, [0, 5]], np.column_stack([X[:, 0], np.log(X[:, 5])]))


def test_ada_refusals():
    with pytest.raises(ValueError, match="5, of them 2 mostly zero"):
        ADAColumns().fit(made()[:, :5])
    with pytest.raises(ValueError, match="Column 6"):
        ADAColumns(age=6).fit(made())


def test_scaler_leaves_two_values_alone():
    X = made()
    Z = ContinuousScaler().fit(X).transform(X)
    np.testing.assert_allclose(Z[:, :6], StandardScaler().fit_transform(X[:, :6]), atol=1e-12)
    np.testing.assert_array_equal(Z[:, 6:], X[:, 6:])


def test_ada_as_a_whole_is_refitted_to_the_training_part():
    X = made(200)
    pipeline = preparation("ada", X).fit(X[:100])
    Z = pipeline.transform(X)
    np.testing.assert_allclose(Z[:100, [0, 1, 2, 5]].mean(axis=0), 0, atol=1e-12)
    assert np.abs(Z[100:, [0, 1, 2, 5]].mean(axis=0)).max() > 1e-3
    assert set(np.unique(Z[:, [3, 4, 6, 7]])) == {0, 1}


def test_the_other_sets():
    X = np.array([[0.0, 255.0], [51.0, 102.0]])
    gina = preparation("gina", X).fit(X)
    np.testing.assert_allclose(gina.transform(X), [[0, 1], [0.2, 0.4]])
    assert preparation("hiva", X) == preparation("nova", X) == "passthrough"
    assert isinstance(preparation("sylva", X), ContinuousScaler)
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"]})
    assert preparation("table", frame).fit_transform(frame).shape == (3, 3)
