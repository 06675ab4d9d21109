"""Small files of every format that looms reads, whole or damaged, and how reading them ends."""

from __future__ import annotations

import gzip
import io
import resource
import signal
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.io import arff
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from looms.datasets import TableError, read_table

#: A reader of a small file that takes longer, or more memory than the process has, is at fault.
SECONDS, MEMORY = 10, 2**31

_WORDS = r"""
1_000 0x1F 1e400 -1e400 1e-400 inf -Infinity nan NaN NA null ? - + . e 1e 1d5 0.5f -0 007 1,5
9007199254740993 9223372036854775808 18446744073709551616 1.234,5 2147483647:1 2147483648:1
99999999999999999999:1 1:1 0:1 -1:1 1:nan qid:1 # % @data @attribute { } {a,b} ' " "" '' \ \'
true FALSE 2020-02-30 0001-01-01 9999-12-31T23:59:59.999999999 12:30 =1+1 é ١٢ １２ a"b 'a
"""
_BLANKS = [
    "",
    " ",
    "\t",
    "\n",
    "\r",
    "\r\n",
    "\0",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x85",
    "\xa0",
    "\u2028",
]
_LONG = ["9" * 400, "9" * 5000, "0" * 400 + "1", "A" * 70_000, "1:" * 500]
#: What has a meaning in some format, or is a number to some readers only.
TOKENS = [*_WORDS.split(), *_BLANKS, "\ufeff", "\u202e", *_LONG]


@dataclass(frozen=True)
class Case:
    """A file, and what another reader makes of it if it is whole."""

    suffix: str
    content: bytes
    other: Callable[[bytes], tuple[Any, Any]]  # features and, where the format has it, target


def frame_of(rng: np.random.Generator, kinds: str) -> pd.DataFrame:
    """Columns of random kinds, and a target ``t`` of words."""
    n = int(rng.integers(1, 9))
    words = np.array(["a", "b c", 'q"u', "x,y", "l\nn", "é", "=1", "it's"], dtype=object)
    make: dict[str, Callable[[], Any]] = {
        "f": lambda: rng.normal(size=n) * 10.0 ** rng.integers(-300, 300),
        "g": lambda: np.where(rng.random(n) < 0.4, np.nan, rng.normal(size=n)),
        "i": lambda: rng.integers(-9, 9, n),
        "l": lambda: rng.integers(-(2**53), 2**53, n),
        "k": lambda: identifiers(rng, n),
        "b": lambda: rng.random(n) < 0.5,
        "w": lambda: rng.choice(words, n),
        "d": lambda: pd.to_datetime(rng.integers(0, 2**32, n), unit="s"),
        "c": lambda: pd.Categorical(rng.choice(["x", "y z"], n)),
        "n": lambda: [[1, 2]] * n,
        "t": lambda: pd.to_timedelta(rng.integers(0, 9, n), unit="s"),
    }
    columns = {
        f"c{j}": make[k]() for j, k in enumerate(rng.choice(list(kinds), rng.integers(1, 5)))
    }
    return pd.DataFrame({**columns, "t": rng.choice(["p", "q"], n)})


def identifiers(rng: np.random.Generator, n: int) -> pd.Series:
    """Whole numbers, many of which floats would round, with gaps."""
    numbers = rng.integers(2**53, 2**53 + 99, n)
    return pd.Series(numbers, dtype="Int64").mask(rng.random(n) < 0.3)


def delimited(rng: np.random.Generator, suffix: str, sep: str) -> Case:
    frame = frame_of(rng, "fgilbwdk")
    content = frame.to_csv(index=False, sep=sep, lineterminator=str(rng.choice(["\n", "\r\n"])))

    def other(content: bytes) -> tuple[Any, Any]:
        options = {"sep": sep, "dtype": str, "keep_default_na": False}  # cells as they are written
        return pd.read_csv(io.BytesIO(content), **options), None

    return Case(suffix, content.encode(), other)


def arff_file(rng: np.random.Generator) -> Case:
    frame = frame_of(rng, "fgilk")
    types = ["{'p', q}" if name == "t" else "numeric" for name in frame]
    head = [f"@attribute {name} {kind}" for name, kind in zip(frame, types, strict=True)]
    rows = [
        ", ".join("?" if pd.isna(cell) else str(cell) for cell in row)
        for row in frame.itertuples(index=False)
    ]

    def other(content: bytes) -> tuple[Any, Any]:
        data, _ = arff.loadarff(io.StringIO(content.decode()))
        others = pd.DataFrame(data)
        whole = frame.select_dtypes("integer")  # which SciPy rounds
        return others.assign(t=others["t"].str.decode("utf-8"), **whole), None

    return Case(".arff", "\n".join(["@relation r", *head, "@data", *rows, ""]).encode(), other)


def sparse_rows(rng: np.random.Generator) -> sparse.csr_array:
    X = sparse.random_array((int(rng.integers(2, 9)), 7), density=0.4, format="csr", rng=rng)
    X = X.tolil()
    X[0, int(rng.integers(7))] = 1.5
    return sparse.csr_array(X.tocsr())


def svmlight(rng: np.random.Generator) -> Case:
    X, content = sparse_rows(rng), io.BytesIO()
    dump_svmlight_file(
        X, rng.choice([-1, 1], X.shape[0]), content, zero_based=bool(rng.integers(2))
    )

    def other(content: bytes) -> tuple[Any, Any]:
        return load_svmlight_file(io.BytesIO(content), zero_based=True)

    return Case(".svm", content.getvalue(), other)


def parquet_file(rng: np.random.Generator) -> Case:
    whole = rng.random() < 0.8
    frame, content = frame_of(rng, "fgilbwdck" if whole else "fibwdcnt"), io.BytesIO()
    frame.to_parquet(content, compression=str(rng.choice(["snappy", "gzip", "zstd"])))
    return Case(".parquet", content.getvalue(), lambda c: (pd.read_parquet(io.BytesIO(c)), None))


def arrow_file(rng: np.random.Generator) -> Case:
    frame, content = frame_of(rng, "fgilbwdc"), io.BytesIO()
    frame.to_feather(content, compression=str(rng.choice(["uncompressed", "lz4", "zstd"])))
    return Case(".arrow", content.getvalue(), lambda c: (pd.read_feather(io.BytesIO(c)), None))


def spreadsheet(rng: np.random.Generator) -> Case:
    content = io.BytesIO()
    frame_of(rng, "giw").to_excel(content, index=False)
    return Case(".xlsx", content.getvalue(), lambda c: (pd.read_excel(io.BytesIO(c)), None))


def far_cells(rng: np.random.Generator) -> Case:
    """A spreadsheet with a cell far away, in one of the ways to say where a cell is."""
    near, content = spreadsheet(rng), io.BytesIO()
    place = [b'r="XFD%d"', b'r = "XFD%d"', b"r='XFD%d'", b""][int(rng.integers(4))]
    row = int(rng.integers(2**17, 2**20))
    cells = b"<c><v>1</v></c>" * 9999 + b"<c %s><v>1</v></c>" % place.replace(b"%d", b"%d" % row)
    with (
        zipfile.ZipFile(io.BytesIO(near.content)) as archive,
        zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as far,
    ):
        for name in archive.namelist():
            end = b'<row r="%d">%s</row></sheetData>' % (row, cells)
            far.writestr(name, archive.read(name).replace(b"</sheetData>", end))
    return Case(".xlsx", content.getvalue(), _refused)


def npz(rng: np.random.Generator) -> Case:
    content = io.BytesIO()
    X = sparse_rows(rng).asformat(str(rng.choice(["csr", "csc", "coo"])))
    sparse.save_npz(content, X, compressed=bool(rng.integers(2)))
    return Case(".npz", content.getvalue(), lambda c: (sparse.load_npz(io.BytesIO(c)), None))


def hostile_npz(rng: np.random.Generator) -> Case:
    """A matrix that is too wide, too long, not of real numbers, or holds what floats round."""
    content, one, name = io.BytesIO(), np.array([1.0]), str(rng.choice(["csr", "csc", "coo"]))
    n_rows, n_columns, place, data = 2, 2, int(rng.integers(2)), one
    case = int(rng.integers(5))
    if case == 0:
        n_columns, place, name = 2**33, 2**32 + int(rng.integers(9)), "csr"
    elif case == 1:
        n_rows = int(rng.integers(2**28, 2**40))
        name = str(rng.choice(["csc", "coo"]))
    elif case == 2:
        data = np.array([rng.choice(["1_0", "1"])]) if rng.random() < 0.5 else one * 1j
    elif case == 3:
        data = np.array([2**53 + 1 + 2 * int(rng.integers(99))])
    else:
        place = int(rng.integers(2, 2**40))
    arrays = {"indices": np.array([place]), "indptr": np.array([0, 1, 1])}
    if name == "coo":
        arrays = {"row": np.array([0]), "col": np.array([place])}
    np.savez(content, format=name.encode(), shape=(n_rows, n_columns), data=data, **arrays)
    return Case(".npz", content.getvalue(), _refused)


def _refused(content: bytes) -> tuple[Any, Any]:
    """What no reader may read."""
    return None, None


FORMATS: dict[str, Callable[[np.random.Generator], Case]] = {
    "csv": lambda rng: delimited(rng, ".csv", ","),
    "tsv": lambda rng: delimited(rng, ".tsv", "\t"),
    "semicolon": lambda rng: delimited(rng, ".csv", ";"),
    "arff": arff_file,
    "svmlight": svmlight,
    "parquet": parquet_file,
    "arrow": arrow_file,
    "spreadsheet": spreadsheet,
    "spreadsheet, far": far_cells,
    "npz": npz,
    "npz, hostile": hostile_npz,
}


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """The content after a few random changes."""
    for _ in range(int(rng.choice([1, 1, 1, 2, 3, 6]))):
        content = changed(content, rng)
    return content


def changed(content: bytes, rng: np.random.Generator) -> bytes:
    """The content after one change, in a few bytes, a cell, a line, or everywhere."""
    i, j = sorted(int(place) for place in rng.integers(0, len(content) + 1, 2))
    token = TOKENS[int(rng.integers(len(TOKENS)))].encode()
    lines, cells = content.split(b"\n"), content.replace(b",", b" , ").split(b" ")
    k = int(rng.integers(len(lines)))
    cells[int(rng.integers(len(cells)))] = token
    choices = [
        content[:i],
        content[:i] + content[j:],
        content[:i] + token + content[i:],
        content[:i] + token + content[min(j, i + 3) :],
        content[:i] + bytes([rng.integers(256)]) + content[i + 1 :],
        content[:i] + bytes(rng.integers(0, 256, 8).tolist()) + content[i:],
        b"\n".join([*lines[:k], lines[k], *lines[k:]]),
        b"\n".join([*lines[:k], b"", *lines[k:]]),
        b"\n".join(reversed(lines)),
        b" ".join(cells),
        content * 3,
        content.replace(b"c1", b"c0"),
        content.decode("latin-1").encode("utf-16"),
        b"\xef\xbb\xbf" + content,
    ]
    return choices[int(rng.integers(len(choices)))]


class TooLong(BaseException):
    """A reader that does not end; not an Exception, which a reader might catch."""


def _too_long(*_: Any) -> None:
    raise TooLong


def read_case(rng: np.random.Generator, folder: Path) -> tuple[str, str, str]:
    """Format, how reading a random file of it ended, and if that is a finding, what it is."""
    name = str(rng.choice(list(FORMATS)))
    case = FORMATS[name](rng)
    whole, packed = rng.random() < 0.2, rng.random() < 0.1
    content = case.content if whole else damaged(case.content, rng)
    written = gzip.compress(content) if packed else content
    if packed and not whole and rng.random() < 0.5:
        written = damaged(written, rng)
    stem = folder / f"f{case.suffix}"
    for path in folder.iterdir():
        path.unlink()
    path = stem.with_name(f"{stem.name}.gz") if packed else stem
    path.write_bytes(written)
    expected = case.other(content) if whole else None
    if expected is not None and expected[0] is None:
        _, problem = _read(path, None)
        return name, "refused" if problem == "refused" else "finding", _not_refused(problem)
    target = "t" if rng.random() < 0.5 and hasattr((expected or [None])[0], "t") else None
    table, problem = _read(path, target)
    ending = "refused" if problem == "refused" else "finding" if problem else "read"
    if expected is not None and not problem:
        difference = _difference(table, *expected, target)
        return (name, "finding", difference) if difference else (name, "equal", "")
    if expected is not None and problem == "refused" and "list" not in _types(expected[0]):
        return name, "finding", f"a whole file is refused: {table}"
    return name, ending, "" if ending != "finding" else problem


def _not_refused(problem: str) -> str:
    return "" if problem == "refused" else problem or "it is read, and should not be"


def _read(path: Path, target: str | None) -> tuple[Any, str]:
    """A table and "", the refusal and "refused", or the problem."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(SECONDS)
    began = time.process_time()
    try:
        return read_table(path, target), ""
    except TableError as error:
        return error, "refused"
    except TooLong:
        return None, f"no end after {SECONDS} s ({time.process_time() - began:.0f} s of work)"
    except Exception as error:
        return None, f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _types(X: Any) -> set[str]:
    """Names of the types of the cells."""
    if not isinstance(X, pd.DataFrame):
        return set()
    cells = {type(cell).__name__ for column in X for cell in X[column].dropna()}
    return {"list" if name == "ndarray" else name for name in cells}


def _difference(table: Any, X: Any, y: Any, target: str | None) -> str:
    """How a table differs from what another reader made; empty if it does not."""
    if y is not None and not np.array_equal(np.asarray(table.y), y):
        return f"the target is {table.y!r}, elsewhere {y!r}"
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        if table.X.shape != X.shape or (table.X != X).nnz:
            return f"X is {table.X.toarray()!r}, elsewhere {X.toarray()!r}"
        return ""
    frame = table.X if target is None else table.X.assign(**{target: table.y})
    if list(frame) != list(X) or len(frame) != len(X):
        return f"the table is {frame.shape} of {list(frame)}, elsewhere {X.shape} of {list(X)}"
    for name in X:
        ours, others = frame[name], X[name]
        if ours.dtype.kind == "M" and others.dtype.kind != "M":
            others = pd.to_datetime(others)
        if ours.dtype.kind == "b" or others.dtype.kind == "b" or "list" in _types(X[[name]]):
            ours, others = ours.astype(str), others.astype(str)
        pairs = zip(ours.astype(object), others.astype(object), strict=True)
        if not all((pd.isna(a) and pd.isna(b)) or a == b for a, b in pairs):
            return f"column {name} is {ours.tolist()}, elsewhere {others.tolist()}"
    return ""
