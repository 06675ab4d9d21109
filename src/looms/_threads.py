"""One pool of BLAS threads at a time, and threads only where there are many rows.

NumPy and SciPy wheels each bring a BLAS with its own threads. Waiting threads of one
spin and take cores from the other: at n = 1000 on two cores, evaluating a criterion
with both pools awake took twice as long. The factorizations are SciPy's, so its pool
is kept and the others are limited to one thread. Boosted trees and other estimators of
scikit-learn have threads of OpenMP, which spin at the end of every loop.

If another process is on the core of a thread, the others spin until it is its turn. On two
cores with other work, two threads took 5 to 50 times as long as one for a criterion at
n = 1000 and 5 times at 2000, and for boosted trees 25 times at n = 1000 and 9 times at
10,000. On idle cores two threads at best halve such times, which are below a second. So
up to some thousand rows there is one thread.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from threadpoolctl import ThreadpoolController

#: Most rows for which BLAS has one thread, and OpenMP.
_FEW, _FEW_FOR_OPENMP = 2000, 10_000


def _libraries(user_api: str = "blas") -> dict[str, Any]:
    """Every BLAS of the process, or every OpenMP, by the path of its file."""
    loaded = _loaded(len(sys.modules))  # a library comes with a module
    return {library.filepath: library for library in loaded if library.user_api == user_api}


@lru_cache(maxsize=1)
def _loaded(n_modules: int) -> list[Any]:
    import scipy.linalg  # noqa: F401  (its BLAS must be loaded to be found)

    return list(ThreadpoolController().lib_controllers)


@contextmanager
def blas_threads(n_samples: int) -> Iterator[None]:
    """Context in which at most one BLAS uses threads, and none on small problems.

    The number of threads is only ever lowered, so limits set elsewhere stay valid. It belongs
    to the process: if contexts overlap in several Python threads, the first one in
    lowers it and the last one out restores it, library by library.
    """
    paths = [*_libraries()]
    if n_samples > _FEW:
        idle = [path for path in paths if not _is_scipys(path)]
        # A BLAS that SciPy shares with others, as conda's, is the only one there is.
        paths = idle if len(idle) < len(paths) else []
    holder = threading.get_ident()
    with _LOCK:
        for path in paths:
            _hold(path, holder)
    try:
        yield
    finally:
        with _LOCK:
            for path in paths:
                _release(path, holder)


@contextmanager
def openmp_threads(n_samples: int) -> Iterator[None]:
    """Context in which OpenMP has one thread on small problems.

    The number of threads is only ever lowered. It belongs to the Python thread that enters, which
    must be the one that leaves: work in other threads enters a context of its own. Zero samples
    stand for work that runs in parallel to other work.
    """
    libraries = _libraries("openmp").values() if n_samples <= _FEW_FOR_OPENMP else ()
    before = [(library, library.get_num_threads()) for library in libraries]
    for library, _ in before:
        library.set_num_threads(1)
    try:
        yield
    finally:
        for library, n_threads in before:
            library.set_num_threads(n_threads)


def available_threads() -> int:
    """Number of threads that SciPy's BLAS may use now: the cores, or fewer if a limit is set."""
    paths = [path for path in _libraries() if _is_scipys(path)] or [*_libraries()]
    return max((int(_libraries()[path].get_num_threads()) for path in paths), default=1)


def one_blas_thread() -> AbstractContextManager[None]:
    """Context in which no BLAS uses threads, for work that runs in parallel to other work."""
    return blas_threads(0)


_LOCK = threading.Lock()
#: For every library limited to one thread: by which Python threads, and how many it had before.
_HELD: dict[str, tuple[list[int], int]] = {}


def _hold(path: str, holder: int) -> None:
    if path not in _HELD:
        _HELD[path] = [], _libraries()[path].get_num_threads()
        _set_threads(path, 1)
    _HELD[path][0].append(holder)


def _release(path: str, holder: int) -> None:
    holders, before = _HELD.get(path, ([], 1))
    if holder not in holders:  # in a child, what another thread of its parent held
        return
    holders.remove(holder)
    if not holders:
        del _HELD[path]
        _set_threads(path, before)


def _release_others() -> None:
    """Release, in a forked child, the limits of Python threads that it does not have."""
    for path, (holders, _) in list(_HELD.items()):
        for holder in list(holders):
            if holder != threading.get_ident():
                _release(path, holder)
    _LOCK.release()


if hasattr(os, "register_at_fork"):
    # No one is in the midst of a change when the process is copied.
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_release_others
    )


def _set_threads(path: str, n_threads: int) -> None:
    """Set the number of threads of a library, whichever Python thread calls.

    With OpenBLAS, threadpoolctl obeys only the first Python thread that sets a limit,
    and silently ignores others until that one is cleared.
    """
    library = _libraries()[path]
    clear = getattr(library, "clear_controlling_thread", lambda force: None)
    clear(force=True)
    library.set_num_threads(n_threads)
    clear(force=True)


def _is_scipys(path: str) -> bool:
    """True for a library in SciPy's wheel: in ``scipy.libs``, on macOS in ``scipy/.dylibs``.

    The file name does not tell them apart: NumPy's own is ``libscipy_openblas64_`` too.
    """
    folder = Path(path).parent
    return "scipy" in (folder.name.removesuffix(".libs"), folder.parent.name)
