import subprocess
import sys

import pytest

from looms import __version__


@pytest.mark.slow
def test_the_package_runs_as_a_module():
    command = [sys.executable, "-m", "looms", "--version"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert __version__ in result.stdout
