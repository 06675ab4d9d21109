"""Runs splits by joblib on any of its backends, even if workers die."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import BACKENDS, get_active_backend
from sklearn import config_context, get_config

from looms._recording import recorded_warnings
from looms._threads import one_blas_thread
from looms.assessment._experiment import Experiment
from looms.assessment._split_run import PROCESS, SplitResult
from looms.assessment._splits import Split
from looms.dask._cluster import Attendance

#: Seconds between two checks of what may have changed.
_POLL = 1.0


@dataclass(frozen=True)
class _Lost:
    """Split whose worker died, because of this split or another one."""

    index: int
    reason: str


Send = Callable[[Callable[..., SplitResult], Experiment, list[Split]], Iterator[Any]]


def run_splits(
    experiment: Experiment, splits: Iterable[Split], n_jobs: int | None
) -> Iterator[SplitResult]:
    """Results of ``splits``, as they finish.

    No backend is named: ``joblib.parallel_config`` around the call decides. The experiment
    is the same object in every task, so that a backend sends its data once: loky memory-maps
    arrays of 1 MB or more, dask keeps them on its workers.

    A split that is lost with its worker is sent again: first with all others, then alone, when
    nothing else is left. If its worker dies repeatedly while it is the only split running,
    that is its result. Splits are run by workers, never in the calling process.
    """
    backend, _ = get_active_backend()
    n_workers = effective_n_jobs(n_jobs)
    # In company a split is sent as long as it was lost fewer times than this; then alone.
    send: Send = partial(_run_on_joblib, backend, n_workers)
    in_company, alone = 2, 2
    if isinstance(backend, BACKENDS.get("dask", ())):
        send = partial(_run_on_dask, backend)
        in_company = alone = 1  # its scheduler tries, too
    capped = PROCESS if n_workers > 1 else None
    run = partial(_run, capped=capped, caller=os.getpid(), config=get_config())
    shared = replace(experiment, splits=())  # which need not know of each other
    waiting = {split.index: split for split in splits}
    n_losses: Counter[int] = Counter()
    with nullcontext() if capped is None else one_blas_thread():
        while waiting:
            group = [split for split in waiting.values() if n_losses[split.index] < in_company]
            group.sort(key=lambda split: n_losses[split.index])
            for result in send(run, shared, group or [next(iter(waiting.values()))]):
                if isinstance(result, SplitResult):
                    del waiting[result.index]
                    yield result
                    continue
                n_losses[result.index] += 1
                if n_losses[result.index] == in_company + alone:
                    train, test = experiment.rows(waiting.pop(result.index))
                    yield SplitResult(result.index, len(train), len(test), error=result.reason)


def _run(
    experiment: Experiment,
    split: Split,
    *,
    capped: str | None,
    caller: int,
    config: dict[str, Any],
) -> SplitResult:
    """Split as a task, with the caller's configuration of scikit-learn."""
    if os.getppid() == caller:
        _watch_parent(caller)
    with config_context(**config):
        return experiment.run(split, capped)


@cache
def _watch_parent(parent: int) -> None:
    """End this worker soon after its parent, which may be killed without notice."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_POLL)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _run_on_joblib(
    backend: Any,
    n_workers: int,
    run: Callable[..., SplitResult],
    experiment: Experiment,
    splits: list[Split],
) -> Iterator[SplitResult | _Lost]:
    """Results of splits until a worker dies; the running splits are then lost."""
    at_work: set[int] = set()
    n_results = 0

    def tasks() -> Iterator[Any]:
        for split in splits:
            at_work.add(split.index)
            yield delayed(run)(experiment, split)

    # A pool of multiprocessing never tells that a worker died; loky's processes do.
    pool = isinstance(backend, BACKENDS.get("multiprocessing", ()))
    parallel = Parallel(
        n_jobs=n_workers,
        backend="loky" if pool else None,
        return_as="generator_unordered",
        batch_size=1,  # larger ones would keep finished splits from being stored at once
    )
    shares_memory = getattr(backend, "supports_sharedmem", False)
    filters = nullcontext() if shares_memory else _silence_loky()
    try:
        with filters:
            results = parallel(tasks())
            try:
                for result in results:
                    at_work.remove(result.index)
                    n_results += 1
                    yield result
            finally:
                with recorded_warnings():  # joblib tells who stops early, who knows that
                    results.close()
    except Exception as error:  # tasks record theirs: this one is of the workers, by any backend
        if not at_work and not n_results:
            raise
        yield from [_Lost(index, _reason(error)) for index in at_work]


@contextmanager
def _silence_loky() -> Iterator[None]:
    """Context without loky's warning, from a thread of its own, that a worker stopped.

    Filters are of the whole process: splits in threads record warnings, and set theirs meanwhile.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        yield


def _run_on_dask(
    backend: Any, run: Callable[..., SplitResult], experiment: Experiment, splits: list[Split]
) -> Iterator[SplitResult | _Lost]:
    """Results and losses of splits sent through the client of joblib's backend.

    joblib itself waits for ever for a task that killed its workers. The data are the
    result of a task, which is repeated if all workers that held it died.
    """
    import distributed

    client, options = backend.client, {"pure": False, **backend.submit_kwargs}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        data = client.submit(_same, experiment, **options)
        at_work = {client.submit(run, data, split, **options): split.index for split in splits}
    attendance = Attendance(client, at_least=backend.wait_for_workers_timeout or 0)
    try:
        with backend.retrieval_context():  # in a task of dask, its place is free meanwhile
            while at_work:
                with suppress(TimeoutError, distributed.CancelledError):
                    distributed.wait(  # type: ignore[no-untyped-call]
                        list(at_work), timeout=_POLL, return_when="FIRST_COMPLETED"
                    )
                ended = [future for future in at_work if future.done()]
                if not ended:
                    attendance.check(
                        f"{len(at_work)} splits are missing. Start workers and run it again; "
                        "with a store only the missing splits are run."
                    )
                for future in ended:
                    result: SplitResult | _Lost
                    try:
                        result = future.result(timeout=_POLL)
                    except TimeoutError:
                        continue  # it went with its worker, before it came here, and is made again
                    except Exception as error:
                        result = _Lost(at_work[future], _reason(error))
                    del at_work[future]
                    yield result
    finally:
        for future in at_work:
            future.release()


def _same(value: Any) -> Any:
    return value


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".strip()
