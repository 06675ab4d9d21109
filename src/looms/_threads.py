"""One pool of BLAS threads at a time.

NumPy and SciPy wheels each bring a BLAS with threads of its own. Waiting threads of
one spin and take the cores from the other: measured at n = 1000 on two cores,
evaluating a criterion with both pools awake took twice as long. The factorisations
are SciPy's, so its pool is kept and the others are held to one thread; below a few
hundred samples threads cost more than they bring, and all are held to one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from threadpoolctl import ThreadpoolController

_SMALL = 800


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  (its BLAS must be loaded to be found)

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def blas_threads(n_samples: int) -> Iterator[None]:
    """Context in which at most one BLAS uses threads, and none on small problems.

    The number of threads is only ever lowered, so limits set outside hold. It belongs to
    the process: of contexts that overlap in several Python threads, the first one in
    lowers it and the last one out restores it, library by library.
    """
    paths = [info["filepath"] for info in _controller().info()]
    if n_samples >= _SMALL:
        idle = [path for path in paths if not _is_scipys(path)]
        # A BLAS that SciPy shares with others, as conda's, is the only one there is.
        paths = idle if len(idle) < len(paths) else []
    with _LOCK:
        for path in paths:
            _hold(path)
    try:
        yield
    finally:
        with _LOCK:
            for path in paths:
                _release(path)


_LOCK = threading.Lock()
#: For every library held to one thread: by how many contexts, and what restores it.
_HELD: dict[str, tuple[int, Any]] = {}


def _hold(path: str) -> None:
    if path in _HELD:
        count, limiter = _HELD[path]
    else:
        count, limiter = 0, _controller().select(filepath=path).limit(limits=1)
    _HELD[path] = count + 1, limiter


def _release(path: str) -> None:
    count, limiter = _HELD.pop(path)
    if count > 1:
        _HELD[path] = count - 1, limiter
    else:
        limiter.restore_original_limits()


def _is_scipys(path: str) -> bool:
    """Whether a library came in SciPy's wheel: in ``scipy.libs``, on macOS in ``scipy/.dylibs``.

    The name of the file does not tell: NumPy's own is ``libscipy_openblas64_`` too.
    """
    folder = Path(path).parent
    return "scipy" in (folder.name.removesuffix(".libs"), folder.parent.name)
