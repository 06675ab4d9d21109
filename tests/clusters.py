"""Clusters of dask in tests."""

import pytest


def quiet_clusters(test):
    """A cluster warns of ports in use and of sockets and files that its workers left open."""
    for warning in (
        "ignore::ResourceWarning",
        "ignore::pytest.PytestUnraisableExceptionWarning",
        "ignore:Port .* is already in use:UserWarning",
    ):
        test = pytest.mark.filterwarnings(warning)(test)
    return test
