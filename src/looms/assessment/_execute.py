"""Splits run by joblib, on whatever it is told to use; workers may die."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext
from typing import Any

from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

from looms._threads import one_blas_thread
from looms._typing import Array
from looms.assessment._run import PROCESS, SplitResult, run_split
from looms.assessment._splits import Split


def run_splits(
    estimator: Any,
    X: Any,
    y: Any,
    weight: Array | None,
    scorers: dict[str, Any],
    splits: Sequence[Split],
    n_jobs: int | None,
) -> Iterator[SplitResult]:
    """Results as they come, one of every split.

    No backend is named: ``joblib.parallel_config`` around the call decides. Data,
    estimator and scorers are the same objects in every task, so that a backend sends
    them once: loky maps arrays from 1 MB on into memory, dask scatters them.

    When a worker dies, the splits that did not come back are sent again, as often as
    that brings any back; then the first of them is tried alone, and if that kills its
    worker too, this is the result of that split.
    """
    waiting = {split.index: split for split in splits}
    capped = PROCESS if effective_n_jobs(n_jobs) > 1 else None
    arguments = (estimator, X, y, weight, scorers)
    while waiting:
        before = len(waiting)
        try:
            for result in _sent(arguments, list(waiting.values()), n_jobs, capped):
                del waiting[result.index]
                yield result
        except Exception:  # tasks record theirs: this one is of the workers, by any backend
            if len(waiting) == before:
                yield _alone(arguments, waiting.pop(next(iter(waiting))), n_jobs, capped)


def _sent(
    arguments: tuple[Any, ...], splits: Sequence[Split], n_jobs: int | None, capped: str | None
) -> Iterator[SplitResult]:
    # scikit-learn's Parallel is joblib's, and takes its configuration along: metadata routing.
    # Batches would keep finished splits from being stored at once.
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    tasks = (delayed(run_split)(*arguments, split, capped) for split in splits)
    with nullcontext() if capped is None else one_blas_thread(), warnings.catch_warnings():
        # What the loss of a worker makes joblib say; who stops early knows that.
        warnings.filterwarnings("ignore", ".*tasks.*(cancelled|not used)", UserWarning)
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        with closing(parallel(tasks)) as results:
            yield from results


def _alone(
    arguments: tuple[Any, ...], split: Split, n_jobs: int | None, capped: str | None
) -> SplitResult:
    try:
        (result,) = _sent(arguments, [split], n_jobs, capped)
        return result
    except Exception as error:  # as above
        train, test = split.rows(arguments[2])
        reason = f"{type(error).__name__}: {error}".strip()
        return SplitResult(split.index, len(train), len(test), error=reason)
