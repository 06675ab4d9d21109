"""Warnings recorded by Python thread.

`warnings.catch_warnings` saves and restores filters of the process. If two threads overlap in it,
the one that leaves last restores the filters of the other, and these stay for good.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LOCK = threading.Lock()
#: For every thread that records, the lists of its contexts, from the outermost.
_LISTS: dict[int, list[list[Warning]]] = {}
_FILTERS: list[warnings.catch_warnings[None]] = []


@contextmanager
def recorded_warnings() -> Iterator[list[Warning]]:
    """Context that records every warning of this thread, and shows none of them.

    The first thread in sets the filters, and the last one out restores them. Meanwhile a thread
    that records nothing shows its warnings each time.

    Yields
    ------
    recorded : the warnings, in the order in which they came.
    """
    thread, recorded = threading.get_ident(), list[Warning]()
    with _LOCK:
        if not _LISTS:
            _begin()
        _LISTS.setdefault(thread, []).append(recorded)
    try:
        yield recorded
    finally:
        with _LOCK:
            _LISTS[thread].pop()
            if not _LISTS[thread]:
                del _LISTS[thread]
            if not _LISTS:
                _FILTERS.pop().__exit__(None, None, None)


def _begin() -> None:
    """Set filters and hook of the process; the last element of ``_FILTERS`` restores them."""
    filters = warnings.catch_warnings()
    filters.__enter__()
    _FILTERS.append(filters)
    warnings.simplefilter("always")
    shown = warnings.showwarning

    def show(message: Any, category: type[Warning], *where: Any, **options: Any) -> None:
        recorded = _LISTS.get(threading.get_ident())
        if recorded is None:
            shown(message, category, *where, **options)
        else:
            recorded[-1].append(message)

    warnings.showwarning = show
