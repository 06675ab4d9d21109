"""Where the real data are: ``../shared/data`` beside the repository, or ``LOOMS_DATA``."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder():
    """Folder of the real data sets; the test is skipped where there is none."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("LOOMS_DATA", beside))
    if not folder.is_dir():
        pytest.skip("no real data here: set LOOMS_DATA to their folder")
    return folder
