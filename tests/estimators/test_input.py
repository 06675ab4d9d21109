"""What may be handed to the estimators: tables, sparse matrices, kernel matrices, functions."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import in_turn, pairwise
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.fixes import parse_version

from looms import KernelClassifier, KernelRegressor
from looms.kernels import RBF, Linear, Precomputed

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


KERNELS = ["linear", "ard", "normalized_quadratic", RBF() * Linear() + 1]


class TestSparse:
    X = np.where(np.abs(X) < 0.6, 0.0, X)

    @pytest.mark.parametrize(("kernel", "Estimator"), in_turn(KERNELS, GIVEN))
    def test_equals_dense(self, Estimator, kernel):
        dense = Estimator(kernel).fit(self.X, target(Estimator), sample_weight=WEIGHT)
        sparse = Estimator(kernel).fit(
            sp.csr_array(self.X), target(Estimator), sample_weight=WEIGHT
        )
        expected = outputs(dense, X_NEW)
        assert_allclose(outputs(sparse, sp.csr_array(X_NEW)), expected, rtol=1e-8)
        assert_allclose(outputs(sparse, X_NEW), expected, rtol=1e-8)
        assert_allclose(sparse.loo_.outputs, dense.loo_.outputs, rtol=1e-8)

    @pytest.mark.parametrize("make", [sp.coo_array, sp.csc_array, sp.csr_matrix, sp.lil_array])
    def test_any_format(self, make):
        model = KernelRegressor(mu=1e-3).fit(make(self.X), Y)
        plain = KernelRegressor(mu=1e-3).fit(self.X, Y)
        assert_allclose(model.predict(make(X_NEW)), plain.predict(X_NEW), rtol=1e-8)


class TestKernelMatrix:
    K = rbf_kernel(X, gamma=0.4)
    K_NEW = rbf_kernel(X_NEW, X, gamma=0.4)
    RBF = RBF(gamma=0.4, gamma_bounds="fixed")

    @pytest.mark.parametrize(
        ("Estimator", "kernel", "weight"),
        pairwise(ESTIMATORS, ["precomputed", Precomputed()], [None, WEIGHT]),
    )
    def test_precomputed_equals_computed(self, Estimator, kernel, weight):
        given = Estimator(kernel).fit(self.K, target(Estimator), sample_weight=weight)
        computed = Estimator(self.RBF).fit(X, target(Estimator), sample_weight=weight)
        assert given.mu_ == pytest.approx(computed.mu_, rel=1e-6)
        assert_allclose(outputs(given, self.K_NEW), outputs(computed, X_NEW), rtol=1e-6)
        assert_allclose(given.loo_.outputs, computed.loo_.outputs, rtol=1e-6)
        one = given.predict(sp.csr_array(self.K_NEW[:1]))
        assert_array_equal(one, given.predict(self.K_NEW)[:1])


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
    "float32": lambda a: a.astype(np.float32),
    "integer": lambda a: (10 * a).astype(int),
    "boolean": lambda a: a > 0,
    "list": lambda a: a.tolist(),
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


@pytest.mark.parametrize(
    "classes",
    [("a", "b"), (1, -1), (False, True), (2.0, 7.0), (10**9, 10**9 + 1)],
    ids=str,
)
def test_any_two_labels(classes):
    labels = np.where(Y > 0, classes[1], classes[0])
    model = KernelClassifier(mu=1e-3).fit(X, labels)
    assert_array_equal(model.classes_, sorted(classes))
    positive = model.decision_function(X_NEW) > 0
    assert_array_equal(model.predict(X_NEW), model.classes_[positive.astype(int)])
    assert model.predict(X_NEW).dtype == labels.dtype
    assert model.score(X, labels) > 0.5
