"""What may be handed to the estimators: tables, sparse matrices, kernel matrices, functions."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import in_turn
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.fixes import parse_version

from looms import KernelClassifier, KernelRegressor
from looms.kernels import RBF

N = 40
rng = np.random.default_rng(2)
X = rng.normal(size=(N, 3)).round(2)
X_NEW = rng.normal(size=(9, 3)).round(2)
Y = X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=N)
LABELS = np.where(Y > 0, "up", "down")
WEIGHT = np.where(np.arange(N) % 5 == 2, 0.0, rng.uniform(0.5, 2.0, size=N))

GIVEN = [partial(KernelClassifier, mu=1e-3), partial(KernelRegressor, mu=1e-3)]
ESTIMATORS = [*GIVEN, KernelClassifier, KernelRegressor]
each_estimator = pytest.mark.parametrize("Estimator", ESTIMATORS)


def is_classifier(Estimator):
    return Estimator in (GIVEN[0], KernelClassifier)


def target(Estimator):
    return LABELS if is_classifier(Estimator) else Y


def outputs(model, X):
    return model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)


# scikit-learn before 1.9 reads names by the interchange protocol, which polars 2 gave up.
reads_names_of_polars = hasattr(pl.DataFrame, "__dataframe__") or parse_version(
    sklearn.__version__
) >= parse_version("1.9")
needs_names = pytest.mark.skipif(not reads_names_of_polars, reason="polars too new for sklearn")


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(pd.DataFrame, id="pandas"),
        pytest.param(pl.DataFrame, id="polars", marks=needs_names),
    ],
)
class TestTables:
    @each_estimator
    def test_equals_arrays_and_keeps_the_names(self, Estimator, frame):
        table = frame(dict(zip("abc", X.T, strict=True)))
        new = frame(dict(zip("abc", X_NEW.T, strict=True)))
        model = Estimator().fit(table, pd.Series(target(Estimator)))
        plain = Estimator().fit(X, target(Estimator))
        assert_array_equal(model.feature_names_in_, ["a", "b", "c"])
        assert_allclose(outputs(model, new), outputs(plain, X_NEW), rtol=1e-6)


class TestFunction:
    @each_estimator
    def test_equals_the_kernel_it_computes(self, Estimator):
        def gaussian(A, B):
            return rbf_kernel(A, B, gamma=0.4)

        model = Estimator(gaussian).fit(X, target(Estimator), sample_weight=WEIGHT)
        named = Estimator(RBF(gamma=0.4, gamma_bounds="fixed"))
        named.fit(X, target(Estimator), sample_weight=WEIGHT)
        assert_allclose(outputs(model, X_NEW), outputs(named, X_NEW), rtol=1e-6)


class Foreign:
    """Array of another library, such as a tensor: NumPy can read it."""

    def __init__(self, values):
        self.values = values
        self.shape = values.shape

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


FORMS = {
    "Fortran": np.asfortranarray,
    "boolean": lambda a: a > 0,
    "strided": lambda a: np.repeat(a, 2, axis=0)[::2],
    "read-only": read_only,
    "object": lambda a: a.astype(object),
    "foreign": Foreign,
}


@pytest.mark.parametrize(("form", "Estimator"), in_turn(FORMS, ESTIMATORS))
def test_forms_of_arrays(Estimator, form):
    form = FORMS[form]
    given = form(X)
    model = Estimator().fit(given, target(Estimator))
    reference = Estimator().fit(np.array(given, dtype=np.float64), target(Estimator))
    assert_array_equal(
        outputs(model, form(X_NEW)), outputs(reference, np.array(form(X_NEW), dtype=np.float64))
    )


@pytest.mark.parametrize("rank", [None, 10])
def test_all_arguments_may_be_arrays_of_another_library(rank):
    weight = np.where(WEIGHT > 0, WEIGHT, 0.5)
    given = X, Y, weight, np.arange(N) // 2
    model = KernelRegressor(n_landmarks=rank).fit(*map(Foreign, given))
    reference = KernelRegressor(n_landmarks=rank).fit(*given)
    predictions = model.predict(Foreign(X_NEW))
    assert type(predictions) is np.ndarray
    assert_array_equal(predictions, reference.predict(X_NEW))
