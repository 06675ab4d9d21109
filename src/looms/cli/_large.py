"""Tables larger than memory, prepared for machines on landmarks: looms fit --rank."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy.sparse import issparse

from looms._memory import free_memory
from looms._threads import available_threads
from looms._words import count
from looms.cli._errors import InputError
from looms.cli._options import Columns, Source
from looms.cli._output import as_messages, note, writing
from looms.cli._prepare import (
    Prepared,
    no_target,
    offering_to_drop,
    open_file,
    prepare,
    tell,
    without,
)
from looms.cli._request import MachineRequest
from looms.cli._target import target_of
from looms.datasets._large import SAMPLE, TableBlocks, first_pass
from looms.selection._low_rank import LARGEST_RANK

#: Rows in a working block of a dense table, and of a sparse one, which every sweep reads again.
_SIZE, _SPARSE_SIZE = 512, 2048
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@dataclass(frozen=True)
class ScratchFolder:
    """Folder that is made inside another one when needed, and removed at the end of a context."""

    beside: Path
    stack: ExitStack

    def made(self) -> Path:
        """The folder."""
        return Path(self.stack.enter_context(TemporaryDirectory(prefix=".looms-", dir=self.beside)))


def memory_of(option: str | None) -> int | None:
    """Number of bytes that an option such as 2GB means."""
    if option is None:
        return None
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) ?([KMGT]?)B?", option.strip(), re.I)
    if match is None:
        raise InputError(f"--memory {option} is not an amount of memory, such as 2GB or 500MB")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def prepare_large(
    source: Source,
    columns: Columns,
    request: MachineRequest,
    memory: int | None,
    scratch: ScratchFolder,
) -> Prepared:
    """Table of a file, with columns prepared according to a sample of the rows.

    The matrix is in memory if the sample is the whole table; else it is blocks of rows, for a
    dense table in a file of the ``scratch`` folder. Refuses what takes more memory than allowed.
    """
    reader, path = open_file(source, columns.target), source.file
    with offering_to_drop(), as_messages():
        first = first_pass(reader)
    tell(source, first.notes[len(reader.notes) :])
    if first.y is None:
        raise no_target(path, first.sample.X)
    sample = without(first.sample.X, columns.drop or (), path)
    known = target_of(first.y, request.task)
    note(f"{known.task}: {known.reason}")
    prepared = prepare(sample, known)
    n_sampled = len(first.places)
    if n_sampled == first.n_rows:
        return prepared
    size = _SPARSE_SIZE if issparse(sample) else None
    with as_messages():
        blocks = TableBlocks(reader, prepared.preprocessor, first, size)
    n_classes = 1 if known.task == "regression" else len(np.unique(known.y))
    n_outputs = 1 if n_classes == 2 else n_classes
    rank = LARGEST_RANK if request.rank == "auto" else int(request.rank or 0)
    most = memory or free_memory()
    needed = bytes_needed(blocks.shape, n_outputs, rank)
    if most is not None and needed > most:
        fits = [m for m in range(1, rank) if bytes_needed(blocks.shape, n_outputs, m) <= most]
        cure = f"--rank {fits[-1]} fits" if fits else "no rank fits: allow more by --memory"
        raise InputError(
            f"{path}: {count(first.n_rows, 'row')} and --rank {request.rank} take about "
            f"{needed / 1e9:.2g} GB of memory, and {most / 1e9:.2g} may be used; {cure}"
        )
    on_disk = 0 if issparse(prepared.matrix) else 8 * blocks.shape[0] * blocks.shape[1]
    note(
        f"{path.name}: {first.n_rows:,} rows in blocks; columns are prepared by a sample of "
        f"{n_sampled:,} rows; about {needed / 1e9:.2g} GB of memory"
        + (f" and, meanwhile, {on_disk / 1e9:.2g} GB next to the model" if on_disk else "")
    )
    note(
        "rows in blocks are not saved, so looms predict will have no --coverage; for intervals or "
        f"sets, fit a sample of up to {SAMPLE:,} rows"
    )
    ranges = {name: first.ranges.get(name, own) for name, own in prepared.ranges.items()}
    rows = np.arange(1, first.n_rows + 1)
    prepared = replace(prepared, matrix=blocks, ranges=ranges, rows=rows)
    if not on_disk:
        return prepared
    with writing(scratch.beside, "--output"), as_messages():
        return replace(prepared, matrix=blocks.stored(scratch.made() / "X.npy", _SIZE))


def bytes_needed(shape: tuple[int, int], n_outputs: int, rank: int) -> int:
    """Approximate memory of a fit: the program, m × m matrices, working blocks, columns of rows,
    and the quarter of the rows on which a search runs before all of them.

    The counts of matrices and columns are from fits with 2,000,000 rows and with 1000 landmarks.
    """
    (n_rows, n_features), threads = shape, available_threads()
    matrices = (30 + 4 * threads) * (rank + 1) ** 2
    at_work = 8 * threads * _SIZE * rank
    subset = n_features * max(n_rows // 4, 20 * rank)
    return 420 * 10**6 + 8 * (matrices + at_work + subset + (20 + 10 * n_outputs) * n_rows)
