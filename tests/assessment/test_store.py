"""Stores: nothing is lost, nothing is mixed up, damage is seen."""

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer

import looms
from looms._files import remove_parts, write_whole
from looms.assessment import StoreError, _experiment, _store
from looms.assessment._split_run import SplitResult
from looms.assessment._splits import Split


@pytest.fixture
def counted(two_classes, tmp_path):
    """Assess in a store; the result, and how many splits were run."""

    def run(n=6, model=None, data=None, store=tmp_path / "store", **options):
        ran = []
        result = looms.assess(
            model or LogisticRegression(),
            *(data or two_classes),
            n,
            store=store,
            progress=lambda done, total, split: ran.append(split),
            **{"random_state": 0, **options},
        )
        return result, len([split for split in ran if split is not None])

    return run


def split_files(folder):
    return sorted(folder.glob("store/*/seed*.json"))


@pytest.mark.slow
def test_finished_splits_are_not_run_again(counted, tmp_path):
    first, ran = counted(4)
    assert ran == 4
    assert len(split_files(tmp_path)) == 4
    more, ran = counted(6)
    assert ran == 2
    again, ran = counted(6)
    assert ran == 0
    fresh, ran = counted(6, store=tmp_path / "other")
    assert ran == 6
    assert again.table.to_csv() == more.table.to_csv() == fresh.table.to_csv()
    assert again.seconds.tolist() == more.seconds.tolist()
    assert first.table.to_csv() == fresh.table.head(4).to_csv()


@pytest.mark.parametrize(
    "options",
    [
        {"model": LogisticRegression(C=0.5)},
        {"random_state": 1},
        {"test_size": 0.2},
        {"test_size": 1},
        {"scoring": "balanced_accuracy"},
        {"method": "bootstrap"},
    ],
)
@pytest.mark.slow
def test_another_question_is_another_key(counted, options):
    counted(6)
    _, ran = counted(6, **options)
    assert ran >= 6
    assert counted(6)[1] == 0


@pytest.mark.slow
def test_another_data_set_is_another_key(counted, two_classes, tmp_path):
    X, y = two_classes
    counted(6)
    nearly = X.copy()
    nearly[0, 0] = np.nextafter(nearly[0, 0], 1)
    assert counted(6, data=(nearly, y))[1] == 6
    assert counted(6, data=(X, np.where(y == "yes", "yes!", y)))[1] == 6
    assert len(list((tmp_path / "store").glob("*/about.json"))) == 3


@pytest.mark.slow
def test_bootstrap_keeps_the_fit_to_all_rows(counted):
    first, ran = counted(6, method="bootstrap")
    assert ran == 7
    again, ran = counted(6, method="bootstrap")
    assert ran == 0
    assert again.mean.tolist() == first.mean.tolist()


DAMAGES = {
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "a digit": lambda data: data.replace(b'"n_test": 6', b'"n_test": 7'),
    "other JSON": lambda data: b"[1, 2]",
    "no text": lambda data: os.urandom(200),
    "another key": lambda data: data.replace(b'"n_test"', b'"n_tests"'),
}


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.slow
def test_damaged_files_are_run_again(counted, tmp_path, name):
    expected = counted()[0].table.to_csv()
    path = split_files(tmp_path)[2]
    damaged = DAMAGES[name](path.read_bytes())
    assert damaged != path.read_bytes()
    path.write_bytes(damaged)
    with pytest.warns(UserWarning, match="000002.json: the stored split is ignored"):
        result, ran = counted()
    assert ran == 1
    assert result.table.to_csv() == expected
    assert counted()[1] == 0


@pytest.mark.slow
def test_a_file_in_the_place_of_another(counted, tmp_path):
    counted()
    files = split_files(tmp_path)
    files[1].write_bytes(files[2].read_bytes())
    with pytest.warns(UserWarning, match="000001.json"):
        assert counted()[1] == 1


def test_splits_that_raised_are_tried_again(counted, two_classes, monkeypatch):
    def broken(self, X, y):
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(DummyClassifier, "fit", broken)
        with pytest.raises(
            ValueError, match="All 6 splits raised; the first: MemoryError: no room"
        ):
            counted(model=DummyClassifier())
    result, ran = counted(model=DummyClassifier())
    assert ran == 6
    assert result.failures == {}


@pytest.mark.parametrize("package", ["looms", "scikit-learn", "numpy", "scipy"])
@pytest.mark.slow
def test_another_version(counted, tmp_path, monkeypatch, package):
    counted()
    before = [path.read_bytes() for path in split_files(tmp_path)]
    now = {**_store.versions(), package: "99.9"}
    monkeypatch.setattr(_store, "versions", lambda: now)
    with pytest.raises(StoreError, match=f"stored by {package} .*, and this is {package} 99.9"):
        counted()
    assert [path.read_bytes() for path in split_files(tmp_path)] == before
    assert counted(model=DummyClassifier())[1] == 6  # nothing of that was there


@pytest.mark.slow
def test_another_version_of_a_package_of_a_scorer(counted, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(_experiment, "package_versions", lambda *things: {"pandas": "1"})
        counted()
    assert _experiment.package_versions(make_scorer(pd.factorize)) == {"pandas": pd.__version__}
    monkeypatch.setattr(_experiment, "package_versions", lambda *things: {"pandas": "2"})
    with pytest.raises(StoreError, match="stored by pandas 1, and this is pandas 2"):
        counted()


def test_what_killed_processes_began_to_write_is_removed(counted, tmp_path):
    counted()
    (about,) = tmp_path.glob("store/*/about.json")
    parts = [folder / ".x.json.1.ab.part" for folder in (about.parent, tmp_path / "store")]
    for part in parts:
        part.write_text("{")
    assert counted()[1] == 0
    assert not any(part.exists() for part in parts)


def test_a_file_that_another_process_removes_halfway_is_written_again(tmp_path, monkeypatch):
    n_removed = 0

    def replace(source, target):
        nonlocal n_removed
        if n_removed < 3:
            n_removed += 1
            remove_parts(tmp_path)
        real(source, target)

    real = os.replace
    monkeypatch.setattr(os, "replace", replace)
    write_whole(tmp_path / "a", b"data")
    assert n_removed == 3
    assert (tmp_path / "a").read_bytes() == b"data"
    assert os.listdir(tmp_path) == ["a"]
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "gone" / "a", b"data")


@pytest.mark.skipif(os.name != "posix", reason="folders of POSIX")
def test_the_name_is_on_the_disk_too(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(
        os, "fsync", lambda file: synced.append(stat.S_ISDIR(os.fstat(file).st_mode))
    )
    write_whole(tmp_path / "a", b"data")
    assert synced == [False, True]


@pytest.mark.skipif(os.name != "posix", reason="folders of POSIX")
def test_a_file_in_its_place_is_written_even_where_its_folder_cannot_be_listed(
    tmp_path, monkeypatch
):
    def refused(path, *arguments, **options):
        if Path(path) == tmp_path:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path, *arguments, **options)

    real = os.open
    monkeypatch.setattr(os, "open", refused)
    write_whole(tmp_path / "a", b"data")
    assert (tmp_path / "a").read_bytes() == b"data"


@pytest.mark.slow
def test_damaged_versions(counted, tmp_path):
    counted()
    (about,) = tmp_path.glob("store/*/about.json")
    about.write_text("{")
    with pytest.raises(StoreError, match=r"about.json: this file, which has the versions"):
        counted()
    for path in split_files(tmp_path):
        path.unlink()
    assert counted()[1] == 6


def test_another_format(counted, tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "looms-assessments.json").write_text('{"format": 2}')
    with pytest.raises(StoreError, match="has another format, 1"):
        counted()


def test_wrong_folders(counted, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("precious")
    with pytest.raises(
        StoreError, match=r"is no store and holds other files, such as 'thesis.tex'"
    ):
        counted(store=tmp_path / "full")
    assert os.listdir(tmp_path / "full") == ["thesis.tex"]
    with pytest.raises(StoreError, match="this is a file"):
        counted(store=tmp_path / "full" / "thesis.tex")
    with pytest.raises(StoreError, match="cannot be used"):
        counted(store=tmp_path / "full" / "thesis.tex" / "deeper")


def test_parameters_without_a_key(counted):
    with pytest.raises(StoreError, match=r"has no key for a store.*without a store"):
        counted(model=DummyClassifier(constant=(k for k in "1")))


@pytest.mark.slow
def test_full_disk(counted, tmp_path, monkeypatch):
    """The third split finds no room: what was stored is there, and the rest runs later."""
    expected = counted(store=tmp_path / "roomy")[0].table.to_csv()
    n_written = 0

    def write(path, data):
        nonlocal n_written
        n_written += path.name.startswith("seed")
        if n_written == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        real(path, data)

    real = _store.write_whole
    with monkeypatch.context() as patch:
        patch.setattr(_store, "write_whole", write)
        with pytest.raises(StoreError, match=r"No space left on device\). The 2 stored before"):
            counted(n_jobs=2)
    assert len(split_files(tmp_path)) == 2
    result, ran = counted()
    assert ran == 4
    assert result.table.to_csv() == expected


@pytest.mark.slow
def test_full_disk_for_real(counted, tmp_path):
    """A limit on the size of files stops the writing halfway; no half file stays."""
    resource = pytest.importorskip("resource")
    expected = counted(store=tmp_path / "roomy")[0].table.to_csv()
    counted(2)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
        with pytest.raises(StoreError, match="cannot be written"):
            counted()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert not list((tmp_path / "store").rglob("*.part"))
    assert counted()[0].table.to_csv() == expected


def test_values_come_back_to_the_last_bit(tmp_path):
    values = [0.1, 1 / 3, 5e-324, -0.0, float("inf"), float("nan"), 1e300]
    scores = {str(k): value for k, value in enumerate(values)}
    result = SplitResult(0, 9, 1, scores, chosen={"k": None, "b": True, "n": 3, "t": "ü\n"})
    store, split = _store.Store(tmp_path, "key", {}, {}), Split(0, "shuffle", 0.1, 0, False)
    store.save(split, result)
    assert repr(store.load([split])) == repr({0: result})


SCRIPT = """
import sys
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
import looms
def table(store, n_jobs):
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), looms.KernelClassifier("linear", threshold="balanced"))
    result = looms.assess(model, X[::6], y[::6], 40, store=store, random_state=0, n_jobs=n_jobs)
    return result.table.to_csv()
if __name__ == "__main__":
    print(table(sys.argv[1], int(sys.argv[2])))
"""


def table_here(store):
    """Table of the script, made in this process."""
    names = {"__name__": "script"}
    exec(SCRIPT, names)
    return names["table"](store, 1)


@pytest.fixture
def process(tmp_path):
    """Start the script on the store, in a group of its own; it goes on once a split is stored."""
    environment = {**os.environ, "PYTHONPATH": str(Path(looms.__file__).parents[1])}
    (tmp_path / "script.py").write_text(SCRIPT)

    def start(n_jobs=1):
        run = subprocess.Popen(
            [sys.executable, "script.py", "store", str(n_jobs)],
            cwd=tmp_path,
            env=environment,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        while not split_files(tmp_path) and run.poll() is None:
            time.sleep(0.005)
        return run

    return start


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_killed_with_its_workers(process, tmp_path):
    """Killed while splits are finished, it ends with the table of a quiet run.

    `tests/test_faults.py` ends one process at every operation of the store.
    """
    with process(n_jobs=2) as run:
        os.killpg(run.pid, signal.SIGKILL)
    assert 0 < len(split_files(tmp_path)) < 40
    assert table_here(tmp_path / "store") == table_here(tmp_path / "quiet")


@pytest.mark.slow
def test_two_processes_on_one_store(process, tmp_path):
    with process() as other:
        here = table_here(tmp_path / "store")
        there, error = other.communicate(timeout=600)
    assert other.returncode == 0, error
    assert there == here + "\n"
    assert here.count("\n") == 41
    for path in split_files(tmp_path):
        assert json.loads(path.read_bytes())["result"]["error"] is None
    assert not list((tmp_path / "store").rglob("*.part"))


@pytest.mark.slow
def test_two_threads_on_one_new_store(two_classes, tmp_path):
    tables = []

    def run():
        result = looms.assess(
            DummyClassifier(), *two_classes, 20, store=tmp_path / "store", random_state=0
        )
        tables.append(result.table.to_csv())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tables) == 4
    assert len(set(tables)) == 1
