"""Keys of a store: equal for equal estimators, scorers and data, in every process."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from types import FunctionType
from typing import Any

import joblib
import numpy as np
from scipy import sparse
from sklearn.base import clone

#: Packages whose versions every store notes, wherever they are installed.
_ALWAYS_NOTED = {"looms", "sklearn", "numpy", "scipy"}


def content_key(**parts: Any) -> str:
    """Hexadecimal digest of named things: unfitted estimators, scorers, data, plain values.

    It is that of `joblib.hash`, for which functions and classes count by name. Those outside
    installed packages also count by the files that define them and their base classes; what these
    files import does not. Data frames count by the names, types and values of their columns.

    Raises
    ------
    TypeError
        If some part cannot be pickled, or is defined where there is no source; the message says
        which.
    """
    keys, sources = {}, {}
    for name, part in parts.items():
        for thing in _defined(part):
            if not _is_installed(thing.__module__):
                sources[name, thing.__module__, thing.__qualname__] = _source(thing, name)
        try:
            keys[name] = joblib.hash(_canonical(part))
        except Exception as error:  # of any class that cannot be pickled
            raise TypeError(
                f"{name} has no key for a store ({error}): give plain values, arrays, estimators, "
                "and functions that a module defines."
            ) from error
    return str(joblib.hash((keys, sources)))


def package_versions(*things: Any) -> dict[str, str]:
    """Versions of the packages of the classes and functions that these things are made of.

    Without looms, scikit-learn, NumPy and SciPy.
    """
    modules = {thing.__module__ for each in things for thing in _defined(each)}
    known = sys.stdlib_module_names | _ALWAYS_NOTED
    packages = {name.partition(".")[0] for name in modules if _is_installed(name)} - known
    distributions = metadata.packages_distributions() if packages else {}
    versions = {}
    for package in sorted(packages):
        unknown = str(getattr(sys.modules.get(package), "__version__", "unknown"))
        installed = [metadata.version(name) for name in distributions.get(package, ())]
        versions[package] = installed[0] if installed else unknown
    return versions


def _defined(value: Any) -> Iterator[Any]:
    """Classes and functions that estimators and scorers are made of, with their base classes."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _defined(part)
    elif isinstance(value, type):
        yield from value.__mro__
    elif isinstance(value, FunctionType):
        yield value
        yield from _defined(getattr(value, "__wrapped__", None))
    elif isinstance(value, functools.partial):
        yield from _defined([value.func, *value.args, value.keywords])
    elif hasattr(value, "get_params"):
        yield from type(value).__mro__
        yield from _defined(value.get_params(deep=False))
    elif value is not None:
        yield from type(value).__mro__
        yield from _defined(getattr(value, "_score_func", None))


def _is_installed(module: str) -> bool:
    """True for a module of Python or of an installed package, whose version is recorded."""
    if module.partition(".")[0] in sys.stdlib_module_names - {"__main__"} | _ALWAYS_NOTED:
        return True
    # Editable installs are not in a folder of installed packages.
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)


def _source(thing: Any, name: str) -> bytes | str:
    """Text of the file that defines a class or function, or of itself if it was typed in."""
    file = getattr(sys.modules.get(thing.__module__), "__file__", None)
    try:
        return inspect.getsource(thing) if file is None else Path(file).read_bytes()
    except (OSError, TypeError):
        raise TypeError(
            f"{name} takes {thing.__qualname__}, whose source is not known, so that a store could "
            "not tell when it changes: define it in a file."
        ) from None


def _canonical(value: Any) -> Any:
    """A value that is the same for equal data, whatever its layout in memory."""
    if hasattr(value, "iloc"):
        columns = [value] if value.ndim == 1 else [column for _, column in value.items()]
        return value.shape, [_column(column) for column in columns]
    if sparse.issparse(value):
        matrix = value.tocsr(copy=True)
        matrix.sum_duplicates()
        return value.shape, matrix.data, matrix.indices, matrix.indptr
    if hasattr(value, "get_params"):
        return clone(value)
    return np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value


def _column(column: Any) -> tuple[Any, ...]:
    """Name, type, categories and values of a column of a data frame."""
    kind = column.dtype
    values = column.to_numpy() if isinstance(kind, np.dtype) else column.to_numpy(object)
    categories = (kind.ordered, list(kind.categories)) if hasattr(kind, "ordered") else ()
    return str(column.name), str(kind), categories, np.ascontiguousarray(values)
