"""Warnings recorded in several threads at once."""

import itertools
import threading
import warnings

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from looms._recording import recorded_warnings
from looms.diagnostics import left_out_fits


def test_each_thread_has_its_own_and_the_filters_stay():
    before, hook = list(warnings.filters), warnings.showwarning
    inside, outside = threading.Event(), threading.Event()
    of_other = []

    def other():
        with recorded_warnings() as recorded:
            warnings.warn("from the other", UserWarning, stacklevel=1)
            inside.set()
            outside.wait(10)  # longer than the first thread: the order that does harm
            warnings.warn("again", UserWarning, stacklevel=1)
        of_other.extend(map(str, recorded))

    thread = threading.Thread(target=other)
    with recorded_warnings() as recorded:
        thread.start()
        assert inside.wait(10)
        warnings.warn("from the first", RuntimeWarning, stacklevel=1)
        with recorded_warnings() as inner:
            warnings.warn("from within", RuntimeWarning, stacklevel=1)
    outside.set()
    thread.join(10)
    assert [(type(w), str(w)) for w in recorded] == [(RuntimeWarning, "from the first")]
    assert list(map(str, inner)) == ["from within"]
    assert of_other == ["from the other", "again"]
    assert list(warnings.filters) == before
    assert warnings.showwarning is hook


class Slow(LogisticRegression):
    """Fits that end in another order than they begin, with a warning each."""

    turn = itertools.count()
    done = threading.Event()

    def fit(self, X, y, sample_weight=None):
        first = next(self.turn) % 2 == 1
        warnings.warn("slow", UserWarning, stacklevel=1)
        if first:
            self.done.wait(0.2)
        else:
            self.done.set()
        return super().fit(X, y, sample_weight)


@pytest.mark.slow
def test_refits_in_threads_leave_no_filter():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(int)
    before = list(warnings.filters)
    for _ in range(3):
        with (
            joblib.parallel_config("threading", n_jobs=2),
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            during = list(warnings.filters)
            left_out_fits(Slow(), X, y, n_jobs=2, cv=6)
            after = list(warnings.filters)
        assert during == after
        assert str(caught[-1].message) == "slow (in 6 of 6 refits)"
    assert list(warnings.filters) == before
