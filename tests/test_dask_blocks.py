"""Blocks of dask collections: the sums of blocks in memory, whoever works and whoever dies."""

import os
import signal
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from clusters import quiet_clusters
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from looms import KernelClassifier, KernelRegressor, Search
from looms.blocks import ArrayBlocks
from looms.dask import DaskBlocks, predict
from looms.kernels import RBF
from looms.kernels._samples import Samples, center_of
from looms.lssvm.landmarks import Landmarks, Placed, Streamed
from looms.tables import TablePreprocessor
from looms.units import Units

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums whose rounding tells their order, and a column."""

    center: np.ndarray

    def __call__(self, X, *columns):
        X = (X.toarray() if sp.issparse(X) else X) - self.center
        return (X.T @ X, np.exp(-X).sum(axis=0)), (X[:, 0], *columns)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 5))
    return X, np.where(X[:, 0] + rng.normal(size=1000) > 0, "yes", "no")


def same_bits(ours, theirs):
    return all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


def with_gaps_between(X):
    """Chunks of lengths that dask does not know, some of them empty."""
    X = da.from_array(X, chunks=(128, 5))
    parts = [X[:384], X[:100][X[:100, 0] > 99], X[384:], X[:10][X[:10, 0] > 99]]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


COLLECTIONS = {
    "chunks": lambda X: da.from_array(X, chunks=(128, 5)),
    "column chunks": lambda X: da.from_array(X, chunks=(256, 2)),
    "unknown lengths": with_gaps_between,
    "sparse": lambda X: da.from_array(X, chunks=(256, 5)).map_blocks(sp.csr_matrix),
    "sparse, unknown lengths": lambda X: with_gaps_between(X).map_blocks(sp.csr_matrix),
    "single precision": lambda X: da.from_array(X.astype(np.float32), chunks=(512, 5)),
    "table": lambda X: dd.from_array(X, chunksize=128, columns=list("abcde")),
    "persisted table": lambda X: dd.from_array(X, chunksize=256, columns=list("abcde")).persist(),
}


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_a_sweep_gives_the_bits_of_blocks_in_memory(table, collection):
    X, y = table
    if collection == "single precision":
        X = X.astype(np.float32).astype(np.float64)
    blocks = DaskBlocks(COLLECTIONS[collection](X), size=64)
    expected = ArrayBlocks(sp.csr_matrix(X) if "sparse" in collection else X, size=64)
    assert blocks.shape == X.shape
    assert blocks.stops.tolist() == expected.stops.tolist()
    work = Moments(np.ones(5))
    y = np.where(y == "yes", 1.0, -1.0)
    (sums, own), (sums_, own_) = blocks.sweep(work, y), expected.sweep(work, y)
    assert same_bits((*sums, *own), (*sums_, *own_))
    for ours, theirs in zip(blocks.results(work, y), expected.results(work, y), strict=True):
        assert same_bits((*ours[0], *ours[1]), (*theirs[0], *theirs[1]))
    places = np.array([0, 5, 127, 128, 600, 999])
    rows = blocks.rows(places)
    assert np.array_equal(rows.toarray() if sp.issparse(rows) else rows, X[places])


def test_partitions_of_any_length_are_cut_into_blocks(table):
    X, _ = table
    chunks = (130, 1, 0, 400, 69, 400)
    blocks = DaskBlocks(da.from_array(X, chunks=(chunks, 5)), size=100)
    assert blocks.stops.tolist() == [0, 100, 130, 131, 231, 331, 431, 531, 600, 700, 800, 900, 1000]
    sums, (first,) = blocks.sweep(Moments(np.ones(5)))
    np.testing.assert_allclose(sums[0], (X - 1).T @ (X - 1), rtol=1e-13)
    assert np.array_equal(first, X[:, 0] - 1)


@pytest.mark.slow
def test_groups_that_partitions_hold_are_in_one_block(table, monkeypatch):
    X, _ = table
    work = Moments(np.zeros(5))
    groups = np.arange(1000) // 250 * 10 + np.arange(1000) % 7
    blocks = DaskBlocks(da.from_array(X, chunks=(250, 5)), size=50).holding(groups)
    of_block = [np.unique(groups[rows]) for rows in blocks.places()]
    assert len(np.concatenate(of_block)) == 28
    for (_, (first,)), rows in zip(blocks.results(work), blocks.places(), strict=True):
        assert np.array_equal(first, X[rows, 0])
    assert np.array_equal(blocks.sweep(work)[1][0], X[:, 0])
    monkeypatch.setattr("looms.dask._blocks.ROWS_HERE", 100)
    part = blocks[np.arange(100, 700)]
    assert part.places() == [slice(*pair) for pair in pairwise(part.stops)]
    assert np.array_equal(part.sweep(work)[1][0], X[100:700, 0])
    y = X[:, 0] + groups % 10 + np.random.default_rng(1).normal(size=1000)
    collected = da.from_array(X, chunks=(250, 5)), y
    ours = KernelRegressor(n_landmarks=20).fit(*collected, groups=da.from_array(groups, chunks=300))
    theirs = KernelRegressor(n_landmarks=20).fit(X, y, groups=groups)
    np.testing.assert_allclose(ours.loo_.outputs, theirs.loo_.outputs, rtol=1e-6)
    scattered = Units.of_numbers(np.arange(1000) % 7)
    assert Placed.of(scattered, blocks).n_large == 7
    monkeypatch.setattr("looms.lssvm.landmarks._SCATTERED", 6)
    with pytest.raises(ValueError, match=r"7 groups or folds .* several blocks.*method shuffle"):
        Placed.of(scattered, blocks)


@pytest.mark.parametrize(
    "collected",
    [
        lambda y: da.from_array(y, chunks=300)[da.from_array(y, chunks=300) != "maybe"],
        lambda y: dd.from_pandas(pd.Series(y, dtype="category"), npartitions=2),
        list,
    ],
)
def test_targets_are_gathered_in_order(table, collected):
    X, y = table
    blocks = DaskBlocks(COLLECTIONS["unknown lengths"](X))
    values = blocks.column(collected(y))
    assert isinstance(values, np.ndarray)
    assert values.tolist() == y.tolist()
    with pytest.raises(ValueError, match="sample_weight has 999 rows, but X has 1000"):
        blocks.column(da.ones(999), "sample_weight")


@pytest.mark.parametrize("collection", ["chunks", "unknown lengths", "table"])
def test_outputs_are_aligned_with_the_chunks_of_the_collection(table, collection):
    X, _ = table
    collection = COLLECTIONS[collection](X)
    blocks = DaskBlocks(collection)
    column = X[:, 0].copy()
    aligned = blocks.aligned(column)
    lengths = [len(part) for part in dask.compute(*np.ravel(collection.to_delayed()))]
    assert aligned.chunks == (tuple(lengths),)
    assert np.array_equal(aligned.compute(), column)
    assert blocks.aligned(X).chunks == (tuple(lengths), (5,))


@pytest.mark.slow
def test_a_prepared_table_has_categories_and_gaps(table):
    X, y = table
    frame = pd.DataFrame(X, columns=list("abcde")).assign(kind=pd.Categorical(y))
    frame.loc[::7, "a"] = np.nan
    prepare = TablePreprocessor().fit(frame)
    frame["target"] = frame.b + np.random.default_rng(1).normal(size=len(frame))
    parts = dd.from_pandas(frame, npartitions=4)
    parts = dd.concat([parts, parts[parts.b > 99], parts[parts.c < 0]])
    whole = np.vstack([prepare.transform(frame), prepare.transform(frame[frame.c < 0])])
    blocks = DaskBlocks(parts, preprocessor=prepare)
    assert blocks.shape == whole.shape
    assert np.array_equal(blocks.rows(np.arange(len(whole))), whole)
    model = KernelRegressor("linear", n_landmarks=4).fit(blocks, parts["target"])
    lazy = predict(make_pipeline(prepare, model), parts)
    np.testing.assert_allclose(lazy.compute(), model.predict(whole))


@pytest.mark.parametrize("output", ["polars", "pandas"])
def test_setting_of_outputs_changes_no_block(table, output):
    frame = pd.DataFrame(table[0])
    prepare = TablePreprocessor().fit(frame)
    expected = prepare.transform(frame)
    with config_context(transform_output=output), dask.config.set(scheduler="synchronous"):
        blocks = DaskBlocks(dd.from_pandas(frame, npartitions=2), preprocessor=prepare)
        assert np.array_equal(blocks.rows(np.arange(1000)), expected)


def as_table(*parts):
    return dd.from_delayed([dask.delayed(part) for part in parts], meta=parts[0], verify_meta=False)


def as_array(*parts):
    return da.concatenate(
        [da.from_delayed(dask.delayed(part), parts[0].shape, float) for part in parts]
    )


ONE = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (as_table(ONE, ONE[["b", "a"]]), r"Partition 1 of X has columns \['b', 'a'\], but X has"),
        (as_table(ONE, ONE.astype({"b": "category"})), "Partition 1 .* 'b' has type category"),
        (as_table(ONE, ONE.assign(a=["x", "y"])), "Partition 1 .* 'a' has type .*preprocessor"),
        (as_table(ONE, ONE.replace(4, None)), "Partition 1 .* (NaN or infinity|has type object)"),
        (as_table(ONE, ONE.replace(2.0, np.nan)), "Partition 1 of X contains NaN or infinity"),
        (as_array(np.eye(3), np.eye(3)[:, :2]), r"Partition 1 of X has shape \(3, 2\), but 3"),
        (as_array(np.eye(3), np.eye(3)[:2]), "Partition 1 of X has 2 rows, but 3 are expected"),
        (as_array(np.eye(3), np.eye(3).astype(str)), "Partition 1 of X has type <U"),
        (da.ones((4, 2), chunks=2)[da.zeros(4, chunks=2) > 0], "all of its 2 partitions are empty"),
        (da.ones(4, chunks=2), r"X must have two dimensions .* got shape \(4,\)"),
    ],
)
def test_a_partition_unlike_the_others_is_named(X, message):
    with pytest.raises(ValueError, match=message):
        DaskBlocks(X).sweep(lambda X: ((X.sum(),), ()))


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_predictions_are_lazy_and_follow_the_chunks(table, collection):
    X, y = table
    collection = COLLECTIONS[collection](X)
    names = getattr(collection, "columns", None)
    train = X[:60] if names is None else pd.DataFrame(X[:60], columns=names)
    machine = KernelClassifier(mu=1e-3).fit(train, y[:60])
    expected = X.astype(collection.dtype) if hasattr(collection, "dtype") else X
    expected = expected if names is None else pd.DataFrame(X, columns=names)
    for method in ("predict", "predict_proba", "decision_function"):
        lazy = predict(machine, collection, method)
        assert isinstance(lazy, da.Array)
        assert len(lazy.chunks[0]) == collection.npartitions or collection.numblocks[1] > 1
        values, known = lazy.compute(), getattr(machine, method)(expected)
        assert values.dtype == known.dtype == lazy.dtype
        if method == "predict":
            assert np.array_equal(values, known)
        else:
            np.testing.assert_allclose(values, known, rtol=1e-9, atol=1e-12)


def test_predictions_compute_nothing_before_they_are_needed():
    def fail(block):
        raise RuntimeError("computed")

    machine = LinearRegression().fit(np.eye(3), np.arange(3.0))
    X = da.ones((6, 3), chunks=2).map_blocks(fail, meta=np.empty((0, 0)))
    lazy = predict(machine, X)
    with pytest.raises(RuntimeError, match="computed"):
        lazy.compute()
    with pytest.raises(ValueError, match="3 features"):
        predict(machine, X[:, :2])


def test_a_large_subset_stays_in_partitions(table, monkeypatch):
    X, _ = table
    places = np.array([3, 4, 200, 201, 202, 700, 999])
    blocks = DaskBlocks(with_gaps_between(X), size=2)
    assert isinstance(blocks[places], ArrayBlocks)
    monkeypatch.setattr("looms.dask._blocks.ROWS_HERE", 6)
    part = blocks[places]
    assert isinstance(part, DaskBlocks)
    assert part.shape == (7, 5)
    assert part.stops.tolist() == [0, 2, 4, 5, 6, 7]
    assert np.array_equal(part.sweep(Moments(np.zeros(5)))[1][0], X[places, 0])
    assert np.array_equal(part.rows(np.array([2, 5])), X[places[[2, 5]]])


@pytest.mark.parametrize("collection", ["unknown lengths", "table"])
@pytest.mark.slow
def test_machines_fitted_to_collections_are_those_of_arrays(table, collection):
    X, y = table
    D, options = (
        COLLECTIONS[collection](X),
        {"kernel": "laplacian", "n_landmarks": 20, "search": Search(max_iter=3)},
    )
    weight = np.linspace(1, 2, len(y))
    names = getattr(D, "columns", None)
    kept = [] if names is None else list(names)
    new = X[:50] if names is None else pd.DataFrame(X[:50], columns=names)
    of_numbers = KernelRegressor, X[:, 0] + (y == "yes")
    for machine, targets in ((KernelClassifier, y), of_numbers):
        collected = [da.from_array(values, chunks=300) for values in (targets, weight)]
        ours = machine(**options).fit(D, *collected)
        theirs = machine(**options).fit(X, targets, weight)
        np.testing.assert_allclose(ours.loo_.outputs, theirs.loo_.outputs, rtol=1e-9, atol=1e-9)
        lazy = ours.predict(D)
        assert isinstance(lazy, da.Array)
        same = np.testing.assert_array_equal if targets is y else np.testing.assert_allclose
        same(lazy.compute()[:50], ours.predict(new))
        assert list(getattr(ours, "feature_names_in_", [])) == kept


@pytest.mark.parametrize(
    "machine",
    [
        KernelClassifier(mu=1e-3),
        KernelClassifier(),
        KernelClassifier("linear", loss="hinge", mu=1e-3),
    ],
)
@pytest.mark.slow
def test_machines_of_all_rows_at_once_read_collections(table, machine):
    X, y = table[0][:300], table[1][:300]
    machine.fit(COLLECTIONS["chunks"](X), da.from_array(y, chunks=100))
    expected = clone(machine).fit(X, y)
    np.testing.assert_array_equal(machine.held_out_.outputs, expected.held_out_.outputs)
    np.testing.assert_array_equal(machine.X_fit_, X)


@pytest.mark.parametrize(("n_classes", "method"), [(2, "predict_log_proba"), (3, "predict")])
@pytest.mark.slow
def test_predictions_of_a_support_vector_machine_are_lazy(n_classes, method):
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = np.argsort(np.argsort(X[:, 0])) * n_classes // 40
    model = KernelClassifier(loss="hinge", mu=0.025).fit(X, y)
    lazy = getattr(model, method)(da.from_array(X, chunks=(13, 3)))
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), getattr(model, method)(X))


def test_without_dask_a_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "dask", None)
    with pytest.raises(ImportError, match=r"\.\[dask\]"):
        DaskBlocks(None)


@dataclass(frozen=True, eq=False)
class Fatal:
    """Work whose process is killed by the block of the first row, if no file says it was."""

    work: Any
    first: float
    killed: Path

    def __call__(self, X, *columns):
        if X[0, 0] == self.first and not self.killed.exists():
            self.killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.work(X, *columns)


class FatalBlocks(DaskBlocks):
    """Blocks of which every sweep loses a worker."""

    def __init__(self, X, folder, **options):
        super().__init__(X, **options)
        self.folder = folder
        self.n_sweeps = 0

    def sweep(self, work, *columns):
        first = self.rows(self.stops[3 + 2 * self.n_sweeps : 4 + 2 * self.n_sweeps])[0, 0]
        work = Fatal(work, first, self.folder / f"sweep {self.n_sweeps}")
        self.n_sweeps += 1
        return super().sweep(work, *columns)


def machine(blocks, y):
    """Held-out outputs of a machine on landmarks and a gradient, by four sweeps."""
    X = blocks.rows(np.arange(0, 1000, 50))
    landmarks = Landmarks(RBF(0.2), Samples(X, center=center_of(X)))
    projection = Streamed(blocks, y[:, None], 1e-4, np.ones(len(y)), landmarks)
    units = Units.rows(len(y))
    e = projection.residuals(units)
    return projection.coef, e, *projection.slopes(units, e)


def wait_until(condition, seconds=600):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@quiet_clusters
def test_one_worker_and_three_that_die_give_the_same_bits(table, tmp_path):
    distributed = pytest.importorskip("distributed")
    X, labels = table
    y = np.where(labels == "yes", 1.0, -1.0)
    uneven = da.from_array(X, chunks=((130, 1, 0, 400, 69, 400), (5,)))
    expected = machine(ArrayBlocks(X, size=32), y)
    expected_uneven = machine(DaskBlocks(uneven, size=32), y)
    assert not same_bits(expected, expected_uneven)
    options = {"threads_per_worker": 1, "silence_logs": 50, "dashboard_address": None}
    forked = {"distributed.worker.multiprocessing-method": "forkserver"}
    with dask.config.set(forked):
        imported = ["dask.dataframe", "distributed", "looms.dask", "looms.estimators", "pytest"]
        distributed.utils.get_mp_context().set_forkserver_preload(imported)  # once for all workers
    with (
        dask.config.set(forked),
        distributed.LocalCluster(n_workers=1, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        for n_workers in (1, 3):
            cluster.scale(n_workers)
            wait_until(lambda n=n_workers: len(client.ncores()) == n)
            blocks = DaskBlocks(COLLECTIONS["unknown lengths"](X), size=32)
            assert same_bits(machine(blocks, y), expected)
            assert same_bits(machine(DaskBlocks(uneven, size=32), y), expected_uneven)
        workers = set(client.run(os.getpid).values())
        blocks = FatalBlocks(COLLECTIONS["persisted table"](X), tmp_path, size=32)
        assert same_bits(machine(blocks, y), expected)
        assert len(list(tmp_path.iterdir())) == blocks.n_sweeps == 4
        assert not workers <= set(client.run(os.getpid).values())


@pytest.mark.slow
@quiet_clusters
@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("gone", r"has had no worker for 0.5 s\. Start workers"),
        ("paused", r"has had only paused workers, .* for 0.5 s\. Start workers"),
    ],
)
def test_a_cluster_that_loses_its_workers_for_good_is_an_error(table, monkeypatch, state, message):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("looms.dask._cluster.PATIENCE", 0.5)
    monkeypatch.setattr("looms.dask._cluster.POLL", 0.1)
    options = {"n_workers": 1, "threads_per_worker": 1, "silence_logs": 50, "memory_limit": 0}
    with (
        distributed.LocalCluster(**options, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster.scheduler_address) as client,
    ):
        blocks = DaskBlocks(COLLECTIONS["chunks"](table[0]))
        if state == "gone":
            cluster.scale(0)
        else:
            paused = distributed.core.Status.paused
            client.run(lambda dask_worker: setattr(dask_worker, "status", paused))
        with pytest.raises(TimeoutError, match=message):
            blocks.sweep(Moments(np.ones(5)))
