"""Stores: nothing is lost, nothing is mixed up, damage is seen."""

import errno
import json
import os
import signal
import stat
import subprocess
import sys
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
from looms.assessment import AllSplitsRaisedError, StoreError, _experiment, _store
from looms.assessment._assess import stored
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


ONES, NUMBERED = np.ones(60), np.arange(60)
QUESTIONS = {
    "model": {"model": LogisticRegression(C=0.5)},
    "seed": {"random_state": 1},
    "size": {"test_size": 0.2},
    "rows": {"test_size": 1},
    "scores": {"scoring": "balanced_accuracy"},
    "bootstrap": {"method": "bootstrap"},
    "gap": {"method": "forward", "gap": 2},
    "another gap": {"method": "forward", "gap": 3},
    "duplicates": {"duplicates": "group"},
    "weights": {"sample_weight": ONES},
    "other weights": {"sample_weight": np.where(NUMBERED, 1.0, np.nextafter(1.0, 2.0))},
    "groups": {"groups": NUMBERED // 2},
    "other groups": {"groups": NUMBERED // 3},
}


@pytest.mark.slow
def test_another_question_is_another_key(counted, two_classes, tmp_path):
    X, y = two_classes
    nearly = X.copy()
    nearly[0, 0] = np.nextafter(nearly[0, 0], 1)
    data = {"one bit": (nearly, y), "label": (X, np.where(y == "yes", "yes!", y))}
    questions = {"first": {}, **QUESTIONS} | {name: {"data": each} for name, each in data.items()}
    n_files = 0
    for name, options in questions.items():
        _, ran = counted(**options)
        assert ran == 6 + (name == "bootstrap"), name
        n_files += ran
        assert counted(**options)[1] == 0
        assert len(split_files(tmp_path)) == n_files
    assert counted(sample_weight=ONES.tolist())[1] == 0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["shuffle", "bootstrap"])
def test_what_is_stored_is_read_without_running(counted, two_classes, tmp_path, method):
    options = {"method": method, "random_state": 0, "store": tmp_path / "store"}
    assert stored(LogisticRegression(), *two_classes, 4, **options) is None
    assert not (tmp_path / "store").exists()
    first, _ = counted(4, method=method)
    assert repr(stored(LogisticRegression(), *two_classes, 4, **options)) == repr(first)
    assert stored(LogisticRegression(C=2.0), *two_classes, 4, **options) is None


DAMAGES = {
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "a digit": lambda data: data.replace(b'"n_test": 6', b'"n_test": 7'),
    "other JSON": lambda data: b"[1, 2]",
    "no text": lambda data: os.urandom(200),
    "another key": lambda data: data.replace(b'"n_test"', b'"n_tests"'),
}


@pytest.mark.slow
def test_damaged_files_are_run_again(counted, tmp_path):
    expected = counted()[0].table.to_csv()
    path = split_files(tmp_path)[2]
    for damage in DAMAGES.values():
        damaged = damage(path.read_bytes())
        assert damaged != path.read_bytes()
        path.write_bytes(damaged)
        with pytest.warns(UserWarning, match="000002.json"):
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
        with pytest.raises(AllSplitsRaisedError):
            counted(model=DummyClassifier())
    result, ran = counted(model=DummyClassifier())
    assert ran == 6
    assert result.failures == {}


@pytest.mark.slow
def test_another_version(counted, tmp_path, monkeypatch):
    """Of looms, or of a package that a scorer comes from."""
    scorer = make_scorer(pd.factorize)
    assert _experiment.package_versions(scorer) == {"pandas": pd.__version__}
    counted()
    before = [path.read_bytes() for path in split_files(tmp_path)]
    for package in ("looms", "scikit-learn", "numpy", "scipy", "pandas"):
        with monkeypatch.context() as patch:
            now = {**_store.versions(), package: "99.9"}
            patch.setattr(_store, "versions", lambda now=now: now)
            with pytest.raises(StoreError, match=f"this is {package} 99.9"):
                counted()
            assert counted(model=DummyClassifier(constant=package))[1] == 6  # of this version
    for path in tmp_path.glob("store/*/about.json"):
        path.write_text("{")
    with pytest.raises(StoreError, match="damaged"):
        counted()
    assert set(before) <= {path.read_bytes() for path in split_files(tmp_path)}


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


def test_folders_that_are_no_store_stay_as_they_are(counted, tmp_path):
    for name, content in (("looms-assessments.json", '{"format": 2}'), ("thesis.tex", "precious")):
        path = tmp_path / content[:3] / name
        path.parent.mkdir()
        path.write_text(content)
        for store in (path.parent, path, path / "deeper"):
            with pytest.raises(StoreError):
                counted(store=store)
        assert os.listdir(path.parent) == [name]
        assert path.read_text() == content


def test_parameters_without_a_key(counted):
    with pytest.raises(StoreError, match="estimator"):
        counted(model=DummyClassifier(constant=(k for k in "1")))


@pytest.mark.slow
def test_full_disk_for_real(counted, tmp_path):
    """A limit on the size of files stops the writing halfway; no half file stays.

    `tests/test_faults.py` fails every operation of the store once.
    """
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


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    """Table of the script by one undisturbed process."""
    return table_here(tmp_path_factory.mktemp("quiet"))


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
def test_killed_with_its_workers(process, quiet, tmp_path):
    """Killed while splits are finished, it ends with the table of a quiet run.

    `tests/test_faults.py` ends one process at every operation of the store.
    """
    with process(n_jobs=2) as run:
        os.killpg(run.pid, signal.SIGKILL)
    assert 0 < len(split_files(tmp_path)) < 40
    assert table_here(tmp_path / "store") == quiet
    assert len(split_files(tmp_path)) == 40  # by the same key in another process


@pytest.mark.slow
def test_two_processes_on_one_store(process, quiet, tmp_path):
    with process() as other:
        here = table_here(tmp_path / "store")
        there, error = other.communicate(timeout=600)
    assert other.returncode == 0, error
    assert there == here + "\n" == quiet + "\n"
    for path in split_files(tmp_path):
        assert json.loads(path.read_bytes())["result"]["error"] is None
    assert not list((tmp_path / "store").rglob("*.part"))
