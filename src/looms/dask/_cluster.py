"""Computation of dask's graphs, here or on a cluster whose workers may leave."""

from __future__ import annotations

import sys
import time
import warnings
from contextlib import suppress
from typing import Any

from looms._optional import require

#: Seconds after which a cluster without workers is given up.
PATIENCE = 60.0
#: Seconds between two looks at what may have changed.
POLL = 1.0


def dask_module(module: str = "dask") -> Any:
    return require(module, "A dask collection", extra="dask")


def computed(result: Any, client: Any = None) -> Any:
    """Value of a delayed result, by the client's cluster as long as it has workers.

    Parameters
    ----------
    result : dask.delayed.Delayed
    client : distributed.Client, default=None
        The current one if there is one, else the scheduler of dask for this process.

    Raises
    ------
    TimeoutError
        If the cluster has had no worker for a minute, or only paused ones.
    RuntimeError
        If the scheduler forgot the tasks, as one that is restarted does.
    """
    client = current_client() if client is None else client
    if client is None:
        return result.compute()
    distributed = dask_module("distributed")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        future = client.compute(result)
    attendance = Attendance(client)
    try:
        while True:
            with suppress(TimeoutError):
                distributed.wait(future, timeout=POLL)
                if future.status == "finished":  # whose result may be lost on its way here
                    return future.result(timeout=PATIENCE)
            if future.status == "error":
                future.result()
            attendance.check("Start workers and fit again.")
    except distributed.CancelledError as error:
        raise RuntimeError(
            "The scheduler of the dask cluster forgot its tasks, as one that is started again "
            "does: fit again."
        ) from error
    finally:
        future.release()


def current_client() -> Any:
    """The client of ``distributed`` that is in use, or None; imports nothing."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


class Attendance:
    """Watch over a cluster that should have a worker at work now and then.

    Parameters
    ----------
    client : distributed.Client
    at_least : float, default=0
        Seconds without a worker before it is given up; a minute if this is less.
    """

    def __init__(self, client: Any, at_least: float = 0.0) -> None:
        self.client = client
        self.patience = max(PATIENCE, at_least)
        self._since: float | None = None

    def check(self, advice: str) -> None:
        """TimeoutError with ``advice`` if for long no worker took tasks or ran one.

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
                state = "has had only workers that are paused, as when their memory is full,"
            raise TimeoutError(f"The dask cluster {state} for {self.patience:g} s. {advice}")
        cluster = self.client.cluster
        if hasattr(cluster, "worker_spec"):
            # A cluster of this process gives up a worker that is away for a while
            # (distributed.deploy.lost-worker-timeout); it starts again what it should have.
            cluster.scale(len(cluster.worker_spec))
