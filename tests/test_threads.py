"""Which BLAS may use threads, and that it is as before afterwards."""

import os
import threading
import warnings

import pytest
import scipy.linalg  # noqa: F401  (its BLAS must be loaded to be limited)
from threadpoolctl import threadpool_info, threadpool_limits

from looms._threads import _is_scipys, blas_threads, one_blas_thread


def pools():
    """Threads of every BLAS, by whether it is SciPy's."""
    return {
        info["filepath"]: info["num_threads"]
        for info in threadpool_info()
        if info["user_api"] == "blas"
    }


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        if set(pools().values()) != {2}:
            pytest.skip("this BLAS has no threads")
        yield


def test_small_problems_use_one_thread_everywhere():
    with blas_threads(100):
        assert set(pools().values()) == {1}
    assert set(pools().values()) == {2}


def test_large_problems_keep_the_threads_of_scipy_alone():
    with blas_threads(5000):
        inside = pools()
    if len(inside) == 1:
        assert set(inside.values()) == {2}
    else:
        assert {path: 2 if _is_scipys(path) else 1 for path in inside} == inside
        assert sorted(inside.values()) == [1, 2]
    assert set(pools().values()) == {2}


@pytest.mark.parametrize("n_samples", [100, 5000])
def test_an_exception_restores_the_threads(n_samples):
    with pytest.raises(KeyError), blas_threads(n_samples):
        raise KeyError
    assert set(pools().values()) == {2}


@pytest.mark.parametrize("n_samples", [100, 5000])
def test_limits_set_outside_hold(n_samples):
    with threadpool_limits(1, user_api="blas"), blas_threads(n_samples):
        assert set(pools().values()) == {1}


def test_contexts_nest():
    with blas_threads(5000):
        before = pools()
        with blas_threads(100):
            assert set(pools().values()) == {1}
        assert pools() == before


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
