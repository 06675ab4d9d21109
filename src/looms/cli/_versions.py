"""Versions that a bug report needs."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import scipy.linalg  # noqa: F401 (its BLAS, beside that of NumPy)
import threadpoolctl

from looms import __version__
from looms._words import count

#: Distributions that looms needs, then those of its extras.
PACKAGES = (
    *("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl"),
    *("typer", "rich", "pandas", "pyarrow", "python-calamine", "skops", "matplotlib", "jinja2"),
    *("distributed", "onnx", "skl2onnx"),
)


def versions() -> str:
    """Versions of looms, Python, the packages that it can use, and BLAS, one per line."""
    rows = [
        ("looms", __version__),
        ("Python", f"{platform.python_version()} ({platform.python_implementation()})"),
        ("platform", f"{platform.platform()}, {count(os.cpu_count() or 1, 'core')}"),
    ]
    for name in PACKAGES:
        try:
            rows.append((name, version(name)))
        except PackageNotFoundError:
            rows.append((name, "–"))
    for pool in threadpoolctl.threadpool_info():
        place = Path(pool["filepath"])
        release = f" {pool['version']}" if pool["version"] else ""
        threads = count(pool["num_threads"], "thread")
        rows.append((pool["user_api"], f"{pool['internal_api']}{release}, {threads}"))
        rows.append(("", f"{place.parent.name}/{place.name}"))
    return "\n".join(f"{name:<16}{value}".rstrip() for name, value in rows)
