"""What the benchmarks share: the data folder, timing, and tables that say how they were made."""

from __future__ import annotations

import csv
import os
import platform
import shlex
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import metadata
from importlib.util import find_spec
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from threadpoolctl import threadpool_info, threadpool_limits

RESULTS = Path(__file__).parent / "results"
DATA = Path(os.environ.get("LOOMS_DATA", Path(__file__).parents[2] / "shared" / "data"))


def seconds(
    call: Callable[[], Any], repeats: int = 3, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Shortest of a few runs, by a clock: `time.process_time` counts CPU seconds."""
    times = []
    for _ in range(repeats):
        began = clock()
        call()
        times.append(clock() - began)
    return min(times)


def as_errors(scores: Mapping[str, float]) -> dict[str, float]:
    """Scores under the names of the tables: of classes error rates, 1 − accuracy, and areas."""
    errors = {"accuracy": "error", "balanced_accuracy": "ber"}
    renamed = {errors[name]: 1.0 - scores[name] for name in errors if name in scores}
    rest = {name: value for name, value in scores.items() if name not in errors}
    return renamed | {name.removeprefix("roc_"): value for name, value in rest.items()}


def quietly(call: Callable[..., Any], *arguments: Any) -> Any:
    """Result of a call on one thread of BLAS, without its warnings.

    Machines of noise, of a weak signal and of few rows are at the edge of many a search.
    """
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        return call(*arguments)


def draws_of(call: Callable[..., Any], *arguments: Any, n_draws: int, n_jobs: int = 1) -> list[Any]:
    """Results of ``call(*arguments, seed)`` for the seeds below ``n_draws``."""
    return Parallel(n_jobs)(delayed(quietly)(call, *arguments, seed) for seed in range(n_draws))


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Result of a function of a module, called in a process of its own, and the peak of that
    process's memory in GB.

    The peak is that of Linux's `/proc`: `ru_maxrss` begins at that of the process that started it.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        result = pool.submit(function, *arguments).result()
        return result, pool.submit(_peak_gigabytes).result()


def _peak_gigabytes() -> float:
    status = Path("/proc/self/status").read_text().splitlines()
    (kibibytes,) = [line.split()[1] for line in status if line.startswith("VmHWM")]
    return int(kibibytes) * 1024 / 1e9


def write_table(
    name: str,
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    packages: Sequence[str] = (),
    commit: str | None = None,
) -> None:
    """Print a table and keep it as ``results/name.csv``, with command, commit and machine on top.

    The commit is that of the code that runs, or another that made the stored results of the table.
    Of the machine it has the kernels of BLAS and its rate of dgemm, on the threads of the process.
    Of absolute paths in the command it has the last two parts.
    Versions of ``packages``, where they are installed, stand beside those of NumPy and so on.
    """
    table = StringIO()
    cells = [[_text(cell) for cell in row] for row in rows]
    csv.writer(table, lineterminator="\n").writerows([header, *cells])
    installed = [f"{p} {metadata.version(p)}" for p in packages if find_spec(p) is not None]
    facts = " ".join([versions(), *installed])
    machine = f"{os.cpu_count()} cores, {platform.machine()}, {_blas()}, {facts}"
    RESULTS.mkdir(exist_ok=True)
    text = f"{header_line(command_line(), machine, commit=commit)}\n{table.getvalue()}"
    (RESULTS / f"{name}.csv").write_text(text, encoding="utf-8")
    print(table.getvalue(), end="")


def command_line() -> str:
    """Command of this process; of absolute paths in it the last two parts."""
    spec = sys.modules["__main__"].__spec__
    module = spec and f"-m {spec.name.removesuffix('.__main__')}"
    script = module or f"benchmarks/{Path(sys.argv[0]).name}"
    arguments = [
        str(Path(*Path(a).parts[-2:])) if Path(a).is_absolute() else a for a in sys.argv[1:]
    ]
    return f"python {script} {shlex.join(arguments)}".strip()


def _blas() -> str:
    """Kernels of the BLAS that NumPy calls, and its rate."""
    from looms._speed import operations_per_second

    kernels = [
        one.get("architecture", "") for one in threadpool_info() if one["user_api"] == "blas"
    ]
    return f"{'/'.join(dict.fromkeys(kernels))} dgemm {operations_per_second() / 1e9:.0f} Gflop/s"


def header_line(*parts: str, commit: str | None = None) -> str:
    """First line of a file of results: what made it, and the commit of the code that did."""
    commit = COMMIT if commit is None else commit
    return "# " + "; ".join([*parts, *([f"commit {commit}"] if commit else [])])


def _commit() -> str:
    """Commit of the clone that looms is imported from, with a plus if its code has changed since.

    Empty where looms is installed, or without git.
    """
    spec = find_spec("looms")
    if spec is None or spec.origin is None:
        return ""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(Path(spec.origin).parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")
        changed = git("status", "--porcelain", "--", ":/src", ":/benchmarks/*.py", ":/papers/*.py")
        return git("rev-parse", "--short=7", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


#: Of the code at the start of a run, which may be committed while it goes on.
COMMIT = _commit()


def versions() -> str:
    import numpy
    import scipy
    import sklearn

    modules = (numpy, scipy, sklearn)
    packages = " ".join(f"{module.__name__} {module.__version__}" for module in modules)
    return f"Python {platform.python_version()} {packages}"


def data_or_exit(name: str) -> Path:
    """Path of a data file, or a message where the data folder is."""
    path = DATA / name
    if not path.exists():
        raise SystemExit(f"{name} not found: set LOOMS_DATA to the folder of data sets.")
    return path


def _text(cell: Any) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
