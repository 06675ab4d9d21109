"""Computation of dask graphs, in this process or on a cluster whose workers may leave."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from looms._optional import require

#: Seconds after which to give up on a cluster without workers.
PATIENCE = 60.0
#: Seconds between two checks of the cluster.
POLL = 1.0


def dask_module(module: str = "dask") -> Any:
    return require(module, "A dask collection", extra="dask")


def computed(result: Any, client: Any = None) -> Any:
    """Value of a delayed result, computed on the client's cluster as long as it has workers.

    Parameters
    ----------
    result : dask.delayed.Delayed
    client : distributed.Client, default=None
        The current client by default; without one, dask's scheduler in this process.

    Raises
    ------
    TimeoutError
        If the cluster has had no worker for a minute, or only paused ones.
    RuntimeError
        If the scheduler lost the tasks, as happens when it restarts.
    """
    if client is None and "distributed" in sys.modules:
        with suppress(ValueError):  # there is none
            client = sys.modules["distributed"].default_client()
    if client is None:
        return result.compute()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        future = client.compute(result)
    return next(as_finished(client, [future]))


def as_finished(client: Any, futures: Iterable[Any], at_least: float = 0.0) -> Iterator[Any]:
    """Results of futures as they finish, as long as the cluster has workers.

    A future that raised, or killed its workers too often, raises here. Parameters and other
    exceptions are those of `Attendance` and `computed`.
    """
    distributed = dask_module("distributed")
    attendance, waiting = Attendance(client, at_least), set(futures)
    try:
        while waiting:
            with suppress(TimeoutError):
                distributed.wait(list(waiting), timeout=POLL, return_when="FIRST_COMPLETED")
            ended = [future for future in waiting if future.done()]
            for future in ended:
                try:
                    result = future.result(timeout=PATIENCE)
                except TimeoutError:
                    if future.status == "error":
                        raise
                    continue  # it was lost on its way here, and is made again
                waiting.remove(future)
                yield result
            if not ended:
                attendance.check()
    except distributed.CancelledError as error:
        raise RuntimeError(
            "The scheduler of the dask cluster lost its tasks, as happens when it restarts: "
            "run it again."
        ) from error
    finally:
        for future in waiting:
            future.release()


class Attendance:
    """Check that a cluster has a worker from time to time.

    Parameters
    ----------
    client : distributed.Client
    at_least : float, default=0
        Seconds without a worker before giving up; never less than a minute.
    """

    def __init__(self, client: Any, at_least: float = 0.0) -> None:
        self.client = client
        self.patience = max(PATIENCE, at_least)
        self._since: float | None = None

    def check(self) -> None:
        """TimeoutError if no worker has taken or run tasks for too long.

        A worker whose memory is full takes none.
        """
        if self.client.run_on_scheduler(
            lambda dask_scheduler: any(
                worker in dask_scheduler.running or worker.executing
                for worker in dask_scheduler.workers.values()
            )
        ):
            self._since = None
        elif self._since is None:
            self._since = time.monotonic()
        elif time.monotonic() - self._since > self.patience:
            state = "has had no worker"
            if self.client.ncores():
                state = "has had only paused workers, whose memory may be full,"
            raise TimeoutError(
                f"The dask cluster {state} for {self.patience:g} s. Start workers and run it again."
            )
        cluster = self.client.cluster
        if hasattr(cluster, "worker_spec"):
            # A cluster of this process gives up a worker that is away for a while
            # (distributed.deploy.lost-worker-timeout); it starts again what it should have.
            cluster.scale(len(cluster.worker_spec))
