"""Every operation that changes the disk fails once: files are whole, old or new; runs resume."""

import errno
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from _faults import Disk, Killed
from sklearn.dummy import DummyClassifier

import looms
from looms import Search
from looms._files import remove_parts
from looms.assessment import StoreError
from looms.blocks import ArrayBlocks, RowBlocks
from looms.cli._errors import InputError
from looms.cli._output import output_in_parts, write_output
from looms.model_files import ModelFileError, load_model, save_model
from looms.report import page

RNG = np.random.default_rng(3)
X = RNG.normal(size=(24, 2))
LABELS = (X[:, 0] + RNG.normal(size=24) > 0).astype(int)


def failures():
    return {
        "killed": Killed(),
        "EIO": OSError(errno.EIO, os.strerror(errno.EIO)),
    }


def contents(folder):
    """Bytes of every file that is not the beginning of one."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(".part")
    }


def write_model(path, number):
    pytest.importorskip("skops")
    save_model(path, looms.KernelRegressor("linear", mu=10.0**-number).fit(X, X[:, 0]), {})


def mu_in(path):
    """What differs between the models; the bytes of two that are equal do, too."""
    return load_model(path).model.mu


def write_report(path, number):
    with mock.patch.object(page, "render", return_value=f"<p>{number}</p>"):
        page.write_page(None, path)


def write_predictions(path, number):
    with output_in_parts(path) as write:
        for row in range(4):
            write(f"{row},{number}\n")


def write_result(path, number):
    write_output(path, b"%d" % number * 1000)


WRITERS = {
    "model": (write_model, mu_in, ModelFileError),
    "report": (write_report, Path.read_bytes, OSError),
    "predictions": (write_predictions, Path.read_bytes, InputError),
    "result": (write_result, Path.read_bytes, InputError),
}


@pytest.mark.parametrize("failure", failures())
@pytest.mark.parametrize("name", WRITERS)
def test_a_file_is_the_old_one_or_the_new_one(name, failure, tmp_path):
    write, content, error = WRITERS[name]
    path = tmp_path / "file.skops"
    write(path, 2)
    new = content(path)
    write(path, 1)
    old = content(path)
    with Disk().in_use() as disk:
        write(path, 2)
    n_operations, n_old = len(disk.operations), 0
    assert n_operations >= 5
    for k in range(1, n_operations + 1):
        write(path, 1)
        with Disk(k, failures()[failure]).in_use(), suppress(Killed, error):
            write(path, 2)
        left = content(path)
        assert left in (old, new)
        n_old += left == old
        if failure != "killed":
            parts = [each for each in tmp_path.iterdir() if each != path]
            assert not parts or disk.operations[k - 1].startswith("unlink")
        remove_parts(tmp_path)
    assert 0 < n_old < n_operations


def assessed(store, n=3):
    return looms.assess(DummyClassifier(), X, LABELS, n, store=store, random_state=0).table.to_csv()


@pytest.mark.slow
@pytest.mark.parametrize("failure", failures())
def test_an_assessment_resumes_after_every_operation_of_its_store(failure, tmp_path):
    with Disk().in_use() as disk:
        table = assessed(tmp_path / "quiet")
    quiet = contents(tmp_path / "quiet")
    names = {name.split()[0] for name in disk.operations}
    assert names == {"mkdir", "open", "write", "fsync", "replace", "unlink"}
    for k in range(1, len(disk.operations) + 1):
        store = tmp_path / str(k)
        with Disk(k, failures()[failure]).in_use(), suppress(Killed, StoreError):
            assessed(store)
        for name, data in contents(store).items():
            assert data == quiet[name] or "seed" in name.name  # which hold seconds
        assert assessed(store) == table
        assert contents(store).keys() == quiet.keys()
        assert not list(store.rglob("*.part"))


def audited(folder):
    """Files that the system sees opened for writing, and how many were counted."""
    written = []

    def hook(event, arguments):  # which stays until the process ends
        if event == "open" and set(str(arguments[1])) & set("wxa+"):
            path = str(arguments[0])
            if path.startswith(str(folder)):
                written.append(path)

    sys.addaudithook(hook)
    with Disk().in_use() as disk:
        assessed(folder / "store")
        for number, (write, _, _) in enumerate(WRITERS.values()):
            write(folder / str(number), 1)
    return written, sum(name.startswith("open") for name in disk.operations)


@pytest.mark.slow
def test_nothing_is_written_but_through_these_operations(tmp_path):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
        written, n_counted = other.submit(audited, tmp_path).result()
    assert all(path.endswith(".part") for path in written)
    assert len(written) == n_counted == 9


class Failing(RowBlocks):
    """Rows in blocks, whose task of number ``fails_at`` raises."""

    def __init__(self, blocks, fails_at=None):
        self.blocks, self.fails_at, self.n_tasks = blocks, fails_at, 0
        self.shape, self.stops = blocks.shape, blocks.stops

    def results(self, work, *columns):
        for result in self.blocks.results(work, *columns):
            self.n_tasks += 1
            if self.n_tasks == self.fails_at:
                raise OSError(errno.EIO, "the disk with the table")
            yield result

    def rows(self, places):
        return self.blocks.rows(places)


@pytest.mark.slow
def test_a_streamed_fit_that_fails_at_any_block_leaves_the_machine_as_it_was():
    blocks, y = ArrayBlocks(X, size=8, n_threads=1), X[:, 0] ** 2
    machine = looms.KernelRegressor("linear", n_landmarks=3, search=Search(max_iter=2))
    counted = Failing(blocks)
    machine.fit(counted, y)
    before = dict(vars(machine))
    for k in range(1, counted.n_tasks + 1):
        with pytest.raises(OSError, match="the disk with the table"):
            machine.fit(Failing(blocks, k), y + 1)
        assert vars(machine).keys() == before.keys()
        assert all(vars(machine)[name] is value for name, value in before.items())
