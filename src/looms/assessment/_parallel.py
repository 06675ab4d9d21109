"""Splits run by joblib on any of its backends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any
from warnings import catch_warnings, filterwarnings

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import BACKENDS, get_active_backend
from sklearn import config_context, get_config

from looms._advice import Advice, advice_in, words_for_advice
from looms._recording import recorded_warnings
from looms._threads import one_blas_thread, openmp_threads
from looms.assessment._experiment import Experiment
from looms.assessment._split_run import SplitResult
from looms.assessment._splits import Split
from looms.dask._cluster import as_finished


def run_splits(
    experiment: Experiment, splits: Sequence[Split], n_jobs: int | None
) -> Iterator[SplitResult]:
    """Results of ``splits``, as they finish.

    No backend is named: ``joblib.parallel_config`` around the call decides. The experiment
    is the same object in every task, so that a backend sends its data once: loky memory-maps
    arrays of 1 MB or more, dask keeps them on its workers.

    A task records its exceptions, so that an exception is of the backend, of a worker that died.
    """
    backend, _ = get_active_backend()
    n_workers = effective_n_jobs(n_jobs)
    of_caller = {"config": get_config(), "words": words_for_advice()}
    run = partial(_run, beside_others=n_workers > 1, **of_caller)
    shared = replace(experiment, splits=())  # which need not know of each other
    with one_blas_thread() if n_workers > 1 else nullcontext():
        if isinstance(backend, BACKENDS.get("dask", ())):
            yield from _on_dask(backend, run, shared, splits)
            return
        # A pool of multiprocessing waits for ever for a worker that died; loky's processes do not.
        pool = isinstance(backend, BACKENDS.get("multiprocessing", ()))
        parallel = Parallel(
            n_jobs=n_workers,
            backend="loky" if pool else None,
            return_as="generator_unordered",
            batch_size=1,  # larger ones would keep finished splits from being stored at once
        )
        results = parallel(delayed(run)(shared, split) for split in splits)
        try:
            for result in results:  # noqa: UP028 (whose end would be that of `results`)
                yield result
        finally:
            with recorded_warnings():  # joblib tells who stops early, who knows that
                results.close()


def _run(
    experiment: Experiment,
    split: Split,
    *,
    beside_others: bool,
    config: dict[str, Any],
    words: Callable[[Advice], str],
) -> SplitResult:
    """Split as a task, with the caller's configuration of scikit-learn and words for advice.

    Beside other splits BLAS has one thread, and OpenMP, which has one on small data anyway.
    """
    with (
        one_blas_thread() if beside_others else nullcontext(),
        openmp_threads(0 if beside_others else len(experiment.y)),
        config_context(**config),
        advice_in(words),
    ):
        return experiment.run(split)


def _on_dask(
    backend: Any, run: partial[SplitResult], experiment: Experiment, splits: Sequence[Split]
) -> Iterator[SplitResult]:
    """Results of splits sent through the client of joblib's backend.

    joblib itself waits for ever for a task that killed its workers. The data are the
    result of a task, which is repeated if all workers that held it died.
    """
    client, options = backend.client, {"pure": False, **backend.submit_kwargs}
    with catch_warnings():
        filterwarnings("ignore", "Sending large graph", UserWarning)
        data = client.submit(_same, experiment, **options)
        futures = [client.submit(run, data, split, **options) for split in splits]
    with backend.retrieval_context():  # in a task of dask, its place is free meanwhile
        yield from as_finished(client, futures, at_least=backend.wait_for_workers_timeout or 0)


def _same(value: Any) -> Any:
    return value
