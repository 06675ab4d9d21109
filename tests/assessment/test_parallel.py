"""Workers that die: the same call runs what is missing."""

import os
import signal
import threading
import time
import warnings
from concurrent.futures import BrokenExecutor

import joblib
import numpy as np
import pytest
from clusters import quiet_clusters
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, ClassifierMixin
from threadpoolctl import threadpool_info, threadpool_limits

import looms
from looms import _recording
from looms.assessment._experiment import Experiment
from looms.assessment._parallel import run_splits

pytestmark = pytest.mark.slow


class Deadly(ClassifierMixin, BaseEstimator):
    """Kills its process when the first sample trains: always, or until a file is there."""

    def __init__(self, parent, until=None, seconds=0.0):
        self.parent = parent
        self.until = until
        self.seconds = seconds

    def fit(self, X, y):
        time.sleep(self.seconds)
        if 0 not in X[:, 0] and os.getpid() != self.parent and not self._done():
            os.kill(os.getpid(), signal.SIGKILL)
        self.classes_ = np.unique(y)
        return self

    def _done(self):
        if self.until is None:
            return False
        there = os.path.exists(self.until)
        with open(self.until, "w"):
            return there

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


@pytest.fixture
def numbered():
    return np.arange(60)[:, None], np.repeat([0, 1], 30)


SCORED = {"scoring": "balanced_accuracy", "random_state": 16}  # where split 0 lacks row 0


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_after_the_death_of_a_worker_the_same_call_runs_the_rest(numbered, tmp_path):
    """A pool of multiprocessing would wait for ever: loky's processes are taken in its place."""
    model = Deadly(os.getpid(), until=str(tmp_path / "killed"))
    with joblib.parallel_config("multiprocessing", n_jobs=2):
        with pytest.raises(BrokenExecutor) as died:
            looms.assess(model, *numbered, 30, store=tmp_path / "store", **SCORED)
        n_stored = len(list(tmp_path.glob("store/*/seed*.json")))
        assert died.value.__notes__[0].startswith(f"{n_stored} of 30 splits are done and stored in")
        result = looms.assess(model, *numbered, 30, store=tmp_path / "store", **SCORED)
    assert n_stored < 30
    assert result.table.equals(looms.assess(model, *numbered, 30, **SCORED).table)


class Held(Deadly):
    """Fits after the first go on when they are let go."""

    first, begun, go_on = threading.Event(), threading.Event(), threading.Event()

    def fit(self, X, y):
        if self.first.is_set():
            self.begun.set()
            assert self.go_on.wait(600)
        self.first.set()
        return super().fit(X, y)


def test_who_stops_early_gets_no_warning(numbered):
    """While another thread records the warnings of its split, by filters of the whole process."""
    before = list(warnings.filters)
    experiment = Experiment.of(
        Held(os.getpid()), *numbered, n_splits=30, scoring="balanced_accuracy", random_state=0
    )
    with joblib.parallel_config("threading"):
        results = run_splits(experiment, experiment.splits, 2)
        next(results)
        assert Held.begun.wait(600)
        results.close()
    Held.go_on.set()  # the splits at work then end by themselves
    end = time.monotonic() + 600
    while _recording._LISTS and time.monotonic() < end:
        time.sleep(0.1)
    assert list(warnings.filters) == before


class Threads(Deadly):
    """Its score is the number of threads that BLAS may use while it is fitted."""

    def fit(self, X, y):
        self.n_threads_ = _n_threads()
        return super().fit(X, y)


def _n_threads():
    return max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")


def test_blas_keeps_to_one_thread_beside_other_work(numbered):
    options = {"scoring": lambda model, X, y: model.n_threads_, "random_state": 0}
    with threadpool_limits(2, "blas"), joblib.parallel_config("threading"):
        for n_jobs, n_threads in ((1, 2), (2, 1)):
            result = looms.assess(Threads(0), *numbered, 4, n_jobs=n_jobs, **options)
            assert result.mean.item() == n_threads
        assert _n_threads() == 2


@pytest.fixture(scope="module")
def one_process():
    """A cluster of dask with one worker, which is a process that is begun anew when it dies."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": True, "silence_logs": 50}
    with (
        distributed.LocalCluster(**options, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        yield cluster


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@quiet_clusters
def test_workers_of_dask_die_halfway(one_process, numbered, tmp_path):
    """All of them, with which the scattered data go too; others may stay in the next test."""
    X, y = numbered
    X = np.hstack([X, np.zeros((60, 50))])
    model = Deadly(os.getpid(), until=os.devnull, seconds=0.05)
    alone = looms.assess(Deadly(os.getpid()), X, y, 30, **SCORED)
    client = one_process.get_client()
    (pid,) = client.run(os.getpid).values()

    def kill(done, total, split):
        if done == 10:
            os.kill(pid, signal.SIGKILL)

    with joblib.parallel_config("dask"):
        options = {"store": tmp_path / "store", "progress": kill, **SCORED}
        result = looms.assess(model, X, y, 30, **options)
    assert pid not in client.run(os.getpid).values()
    assert result.failures == {}
    assert result.table.to_csv() == alone.table.to_csv()
    assert len(list(tmp_path.glob("store/*/seed*.json"))) == 30


class Configured(Deadly):
    """Its score says how scikit-learn is configured where it is fitted, and by whom."""

    def fit(self, X, y):
        super().fit(X, y)
        self.routed_ = get_config()["enable_metadata_routing"] and os.getpid() != self.parent
        return self


def _routed(estimator, X, y):
    return float(estimator.routed_)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@quiet_clusters
def test_a_split_that_kills_workers_of_dask_is_an_error(
    one_process, numbered, tmp_path, monkeypatch
):
    """Without waiting for ever, and never run by the caller."""
    monkeypatch.setattr(one_process.scheduler, "allowed_failures", 0)
    options = {"scoring": _routed, "random_state": 16, "store": tmp_path}
    with joblib.parallel_config("dask"), config_context(enable_metadata_routing=True):
        with pytest.raises(pytest.importorskip("distributed").KilledWorker) as died:
            looms.assess(Configured(os.getpid()), *numbered, 3, **options)
        killed = Configured(os.getpid(), until=os.devnull)
        assert looms.assess(killed, *numbered, 3, **options).mean.item() == 1
    assert "on 1 different workers" in str(died.value)
    assert "of 3 splits are done and stored in" in died.value.__notes__[0]


@quiet_clusters
def test_a_cluster_that_loses_all_workers_for_good_is_an_error(numbered, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("looms.dask._cluster.PATIENCE", 1)
    options = {"n_workers": 1, "threads_per_worker": 1, "silence_logs": 50}
    with (
        distributed.LocalCluster(**options, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster.scheduler_address),
        joblib.parallel_config("dask", wait_for_workers_timeout=1),
        pytest.raises(TimeoutError, match=r"has had no worker for 1 s"),
    ):
        looms.assess(
            Deadly(os.getpid(), seconds=0.2),
            *(*numbered, 100),
            progress=lambda done, total, split: cluster.scale(0) if done == 2 else None,
            **SCORED,
        )
