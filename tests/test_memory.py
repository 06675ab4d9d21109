"""Memory that is free, and refusal of kernel matrices that do not fit."""

import os
import tracemalloc

import numpy as np
import pytest
from stacks import stacked_classifier

from looms import KernelClassifier, KernelRegressor, Search, _memory
from looms._memory import GRID, SEARCH, bytes_needed, check_memory, free_memory

GB = 10**9


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Write files of a made-up system, with 8 GB of memory available."""
    monkeypatch.setattr(_memory, "_SYSTEM", tmp_path)

    def write(**files):
        for name, text in {
            "proc/meminfo": "MemTotal: 9 kB\nMemAvailable: 8000000 kB\n",
            **files,
        }.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return write


def test_what_the_system_has_available(system):
    system()
    assert free_memory() == 8_000_000 * 1024


def group(folder, limit, used, file_pages=0, version=2):
    """Files of a control group."""
    names = {
        2: ("max", "current", "inactive_file"),
        1: ("limit_in_bytes", "usage_in_bytes", "total_inactive_file"),
    }
    one, two, three = names[version]
    return {
        f"{folder}/memory.{one}": f"{limit}\n",
        f"{folder}/memory.{two}": f"{used}\n",
        f"{folder}/memory.stat": f"anon 5\n{three} {file_pages}\nfile 7\n",
    }


@pytest.mark.parametrize(
    ("line", "files", "free"),
    [
        ("0::/", group("sys/fs/cgroup", 4 * GB, 3 * GB, 2 * GB), 3 * GB),
        (
            "0::/a/b",
            group("sys/fs/cgroup/a", 4 * GB, 1 * GB) | group("sys/fs/cgroup/a/b", "max", 1 * GB),
            3 * GB,
        ),
        ("0::/a", group("sys/fs/cgroup/a", 4 * GB, 5 * GB), 0),
        ("0::/a", group("sys/fs/cgroup/a", "max", 5 * GB), 8_000_000 * 1024),
        (
            "4:cpu,memory:/not/seen",
            group("sys/fs/cgroup/memory", 3 * GB, 2 * GB, version=1),
            1 * GB,
        ),
        (
            "4:memory:/job",
            group("sys/fs/cgroup/memory/job", 9223372036854771712, GB, version=1),
            8_000_000 * 1024,
        ),
    ],
)
def test_limits_of_control_groups(system, line, files, free):
    system(**{"proc/self/cgroup": f"9:name=systemd:/\n{line}\n", **files})
    assert free_memory() == free


def test_elsewhere_the_size_of_the_memory_or_nothing(system, monkeypatch):
    monkeypatch.setattr(
        os, "sysconf", lambda name: 4096 if name == "SC_PAGE_SIZE" else 100, raising=False
    )
    assert free_memory() == 409600
    monkeypatch.delattr(os, "sysconf")
    assert free_memory() is None
    check_memory(10**9)


@pytest.fixture
def little(monkeypatch):
    """Memory for a search on 99 rows, not on 100."""
    monkeypatch.setattr(_memory, "_LITTLE", 0)
    monkeypatch.setattr(_memory, "free_memory", lambda: bytes_needed(100) - 1)


def test_the_message_has_the_numbers_and_the_remedy(little, monkeypatch):
    check_memory(99)
    with pytest.raises(MemoryError, match=r"100 rows.* 0\.00028 GB .*n_landmarks=1000"):
        check_memory(100)
    monkeypatch.setattr(_memory, "_LITTLE", bytes_needed(100) + 1)
    check_memory(100)


rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
NUMBERS, LABELS = X[:, 0] + rng.normal(size=200), (X[:, 0] > 0).astype(int)
REFUSED = [
    (KernelRegressor(), NUMBERS, 150),
    (stacked_classifier(), LABELS, 150),
    (KernelRegressor(search=Search(method="grid")), NUMBERS, 99),
    (KernelClassifier(mu=1e-3), LABELS, 200),
    (KernelClassifier(loss="hinge"), LABELS, 150),
]


@pytest.mark.parametrize(("machine", "y", "n"), REFUSED, ids=lambda value: type(value).__name__)
def test_fits_are_refused_before_anything_is_allocated(little, machine, y, n):
    machine.fit(X[:20], y[:20])  # which imports modules
    tracemalloc.start()
    try:
        with pytest.raises(
            MemoryError, match=r"kernel matrix of .*(n_landmarks=|KernelClassifier\(\))"
        ):
            machine.fit(X[:n], y[:n])
        assert tracemalloc.get_traced_memory()[1] < 8 * n**2
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("machine", "n"),
    [
        (KernelRegressor(), 99),
        (KernelRegressor(n_landmarks=20), 200),
        (KernelRegressor(mu=1e-3), 150),
        (KernelRegressor("linear", mu=1e-3), 200),
    ],
)
def test_fits_that_take_less_memory_are_not_refused(little, machine, n):
    machine.fit(X[:n], NUMBERS[:n])


def test_certificates_are_refused_too(monkeypatch):
    machine = KernelRegressor(mu=1e-3).fit(X, NUMBERS)
    monkeypatch.setattr(_memory, "free_memory", lambda: bytes_needed(200, 5))
    with pytest.raises(MemoryError):
        machine.certify()


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="peak memory of Linux")
@pytest.mark.parametrize(
    ("options", "n", "n_arrays"),
    [({}, 1500, SEARCH), ({"search": Search(method="grid")}, 700, GRID)],
    ids=["gradient", "grid"],
)
def test_the_estimate_is_that_of_fits(options, n, n_arrays):
    """Peak of live arrays; blocks of some hundred rows count less, the more rows there are."""
    X = rng.normal(size=(n, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + rng.normal(size=n)
    machine = KernelRegressor(**options)
    tracemalloc.start()
    try:
        machine.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0.7 * bytes_needed(n, n_arrays) < peak < 1.2 * bytes_needed(n, n_arrays)
