"""One pool of BLAS threads at a time.

NumPy and SciPy wheels each bring a BLAS with threads of its own. Waiting threads of
one spin and take the cores from the other: measured at n = 1000 on two cores,
evaluating a criterion with both pools awake took twice as long. The factorisations
are SciPy's, so its pool is kept and the others are held to one thread; below a few
hundred samples threads cost more than they bring, and all are held to one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from threading import Lock

from threadpoolctl import ThreadpoolController

_SMALL = 800


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  (its BLAS must be loaded to be found)

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def blas_threads(n_samples: int) -> Iterator[None]:
    """Context in which at most one BLAS uses threads, and none on small problems.

    The number of threads is only ever lowered, so limits set outside hold.
    """
    controller = _controller()
    if n_samples >= _SMALL:
        paths = [info["filepath"] for info in controller.info()]
        idle = [path for path in paths if not _is_scipys(path)]
        # A BLAS that SciPy shares with others, as conda's, is the only one there is.
        controller = controller.select(filepath=idle if len(idle) < len(paths) else [])
    with ExitStack() as stack:
        if len(controller):
            stack.enter_context(controller.limit(limits=1))
        yield


class _Shared:
    """A limit that may be held more than once and is lifted by the last that leaves.

    For all threads of a process, enter it in the thread that starts them: threadpoolctl
    lets one thread set limits, and those of others do nothing or outlive them.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._limit = ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit.enter_context(_controller().limit(limits=1))
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.close()


#: Context in which no BLAS uses threads, for work that runs beside other work.
one_blas_thread = _Shared()


def _is_scipys(path: str) -> bool:
    """Whether a library came in SciPy's wheel: in ``scipy.libs``, on macOS in ``scipy/.dylibs``.

    The name of the file does not tell: NumPy's own is ``libscipy_openblas64_`` too.
    """
    folder = Path(path).parent
    return "scipy" in (folder.name.removesuffix(".libs"), folder.parent.name)
