"""Which BLAS and OpenMP may use threads, and that they are as before afterwards."""

import os
import subprocess
import sys
import threading
import warnings

import joblib
import numpy as np
import pytest
import scipy.linalg  # noqa: F401  (its BLAS must be loaded to be limited)
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_info, threadpool_limits

import looms
from looms._threads import _is_scipys, blas_threads, one_blas_thread, openmp_threads
from looms.blocks import ArrayBlocks
from looms.diagnostics import left_out_fits
from looms.estimators._estimator_member import EstimatorMember
from looms.fitted._outcome import Numbers


def pools(user_api="blas"):
    """Threads of every BLAS, or OpenMP, by the path of its file."""
    return {
        info["filepath"]: info["num_threads"]
        for info in threadpool_info()
        if info["user_api"] == user_api
    }


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2):
        if set(pools().values()) != {2}:
            pytest.skip("this BLAS has no threads")
        yield


def test_small_problems_use_one_thread_and_large_ones_those_of_scipy_alone():
    with blas_threads(100):
        assert set(pools().values()) == {1}
    assert set(pools().values()) == {2}
    with blas_threads(5000):
        inside = pools()
    if len(inside) == 1:
        assert set(inside.values()) == {2}
    else:
        assert {path: 2 if _is_scipys(path) else 1 for path in inside} == inside
        assert sorted(inside.values()) == [1, 2]
    assert set(pools().values()) == {2}


@pytest.mark.parametrize("sizes", [(100, 100), (5000, 100), (100, 5000), (5000, 5000)], ids=str)
def test_contexts_of_two_python_threads_overlap(sizes):
    """The first one in leaves first: the limit stays until the other leaves too."""
    first_in, second_in, first_out = (threading.Event() for _ in range(3))
    seen = {}
    with blas_threads(sizes[1]):
        alone = pools()

    def second():
        assert first_in.wait(10)
        with blas_threads(sizes[1]):
            second_in.set()
            assert first_out.wait(10)
            seen.update(pools())

    thread = threading.Thread(target=second)
    thread.start()
    with blas_threads(sizes[0]):
        first_in.set()
        assert second_in.wait(10)
    first_out.set()
    thread.join()
    assert seen == alone
    assert set(pools().values()) == {2}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("site-packages/scipy.libs/libscipy_openblas-6cdc.so", True),
        ("site-packages/numpy.libs/libscipy_openblas64_-32a4.so", False),
        ("site-packages/scipy/.dylibs/libscipy_openblas.dylib", True),
        ("site-packages/numpy/.dylibs/libscipy_openblas64_.dylib", False),
        ("envs/science/lib/libopenblas.so", False),
    ],
)
def test_which_library_is_scipys(path, expected):
    assert _is_scipys(path) is expected


def test_a_shared_limit_ends_with_the_last_that_holds_it():
    with one_blas_thread():
        with one_blas_thread():
            assert set(pools().values()) == {1}
        assert set(pools().values()) == {1}
    assert set(pools().values()) == {2}
    with pytest.raises(KeyError), one_blas_thread():
        raise KeyError
    assert set(pools().values()) == {2}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("this_one_holds_too", [False, True])
@pytest.mark.slow
def test_a_child_forked_beside_work_gets_the_threads_back(this_one_holds_too):
    """Also when the thread that forks is at work itself, once it has ended that."""
    begun, end = threading.Event(), threading.Event()

    def work():
        with one_blas_thread():
            begun.set()
            end.wait(60)

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(60)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*fork.*", DeprecationWarning)
        if this_one_holds_too:
            with one_blas_thread():
                child = os.fork()
                at_fork = set(pools().values())
        else:
            child, at_fork = os.fork(), {1}
    if child == 0:
        os._exit(0 if at_fork == {1} and set(pools().values()) == {2} else 1)
    end.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert set(pools().values()) == {2}


def openmp():
    """Numbers of threads that the runtimes of OpenMP would take."""
    return set(pools("openmp").values())


@pytest.mark.parametrize(("n_samples", "inside"), [(0, 1), (10_000, 1), (10_001, 2)])
def test_openmp_has_one_thread_on_small_problems(n_samples, inside):
    with openmp_threads(n_samples):
        assert openmp() == {inside}
        with openmp_threads(0):
            assert openmp() == {1}
        assert openmp() == {inside}
    assert openmp() == {2}
    with pytest.raises(KeyError), openmp_threads(n_samples):
        raise KeyError
    assert openmp() == {2}


@pytest.mark.slow
def test_openmp_that_is_loaded_later_is_found():
    program = """
from looms._threads import openmp_threads
from threadpoolctl import threadpool_info
def openmp():
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "openmp"]
with openmp_threads(0):
    before = openmp()
import sklearn.ensemble
with openmp_threads(0):
    print(before, openmp())
print(openmp())
"""
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines() == ["[] [1]", "[2]"]


class _Single(BaseEstimator):
    """Estimator that fails if it is fitted or asked where OpenMP has several threads."""

    def fit(self, X, y=None):
        assert openmp() == {1}
        self.fitted_ = True
        if isinstance(self, ClassifierMixin):
            self.classes_ = np.unique(y)
        return self

    def _ask(self, X):
        assert openmp() == {1}
        return np.tanh(np.asarray(X)[:, 0])


class SingleRegressor(RegressorMixin, _Single):
    predict = _Single._ask


class SingleClassifier(ClassifierMixin, _Single):
    def predict_proba(self, X):
        p = 0.5 + 0.4 * self._ask(X)
        return np.column_stack([1 - p, p])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class SingleRanker(ClassifierMixin, _Single):
    decision_function = _Single._ask

    def predict(self, X):
        return self.classes_[(self._ask(X) > 0).astype(int)]


class SingleTransformer(TransformerMixin, _Single):
    def transform(self, X):
        self._ask(X)
        return np.asarray(X)


X = np.random.default_rng(0).normal(size=(40, 2))
CLASSES = np.where(X[:, 0] + X[:, 1] > 0, 1, -1)


def _candidate(model):
    model.fit(X, CLASSES)
    model.predict(X)
    model.evaluate()


def _in_blocks():
    member = EstimatorMember(1.0, SingleRegressor(), Numbers(), ())
    member.outputs(ArrayBlocks(X, size=4, n_threads=2), X)


def _intervals():
    model = looms.Intervals(SingleRegressor()).fit(X, X[:, 0])
    model.predict(X)
    model.predict_interval(X)


def _columns():
    model = looms.TabularRegressor("linear", preprocess=SingleTransformer())
    model.fit(X, X[:, 0], sample_weight=X[:, 1] > -1).predict(X)


def _pool():
    for validation in ("split", "loo"):
        pool = [SingleRanker(), SingleRanker()]
        looms.NonconformityClassifier(pool, validation=validation).fit(X, CLASSES).predict(X)


def _prevalence():
    with openmp_threads(0):
        fitted = SingleClassifier().fit(X, CLASSES)
    looms.at_prevalence(fitted, {1: 0.1}, {1: 0.5, -1: 0.5}).predict(X)


def _assess():
    assert looms.assess(SingleClassifier(), X, CLASSES, 3).mean.notna().all()


USES = {
    "classes": lambda: _candidate(looms.TabularClassifier(["rbf", SingleClassifier()])),
    "numbers": lambda: _candidate(looms.TabularRegressor(["rbf", SingleRegressor()])),
    "blocks": _in_blocks,
    "intervals": _intervals,
    "prevalence": _prevalence,
    "columns": _columns,
    "pool": _pool,
    "assess": _assess,
    "without rows": lambda: left_out_fits(SingleClassifier(), X, CLASSES),
    "without rows, in a pipeline": lambda: left_out_fits(
        make_pipeline(SingleTransformer(), SingleClassifier()), X, CLASSES
    ),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.slow
def test_openmp_has_one_thread_in_estimators_that_looms_calls(use):
    use()
    assert openmp() == {2}


@pytest.mark.parametrize("backend", ["threading", "loky"])
@pytest.mark.slow
def test_openmp_has_one_thread_in_workers(backend):
    inner = {"inner_max_num_threads": 2} if backend == "loky" else {}
    with joblib.parallel_config(backend, n_jobs=2, **inner):
        for name in ("numbers", "assess", "without rows"):
            USES[name]()
    assert openmp() == {2}
