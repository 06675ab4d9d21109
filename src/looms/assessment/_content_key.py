"""Key of content: equal values have equal keys, in every process."""

from __future__ import annotations

import copyreg
import functools
import hashlib
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from importlib import metadata
from pathlib import Path, PurePath
from types import CodeType, EllipsisType, FunctionType, ModuleType, NoneType
from typing import Any

import numpy as np
from scipy import sparse

#: Packages whose versions every store notes, wherever they are installed.
_ALWAYS_NOTED = {"looms", "sklearn", "numpy", "scipy"}

#: Types whose values are their text.
_PLAIN = (NoneType, EllipsisType, str, bytes, int, float, complex, range, slice, np.dtype, PurePath)


def content_key(**parts: Any) -> str:
    """Hexadecimal digest of named things: estimators, data, functions, plain values.

    Estimators count by class and parameters, arrays by dtype, shape and bytes, data
    frames by the names, types and values of their columns, functions and classes by name, and
    other objects by what pickle would store.

    The user's own functions and classes also count by their code, including base classes,
    decorators, and the globals they name: functions, classes, values, and attributes of
    modules that are the user's own. Code means the bytecode and constants that Python has
    loaded: comments do not count, and another minor version of Python is different code.
    Code of an installed package counts by name, and `package_versions` has its version.
    Changes in compiled code, in imports within a function, and in names that are only known
    at run time, as by `getattr`, are not noticed.

    Raises
    ------
    TypeError
        If some part has no content to hash; the message says where.
    """
    digest = hashlib.sha256()
    for name, part in sorted(parts.items()):
        _Feeder(digest.update).item(part, name)
        digest.update(name.encode())
    return digest.hexdigest()[:32]


def package_versions(*things: Any) -> dict[str, str]:
    """Versions of the packages of the classes, functions and modules in these values.

    Without looms, scikit-learn, NumPy and SciPy.
    """
    feeder = _Feeder(lambda data: None)
    for thing in things:
        feeder.item(thing, "")
    distributions = metadata.packages_distributions() if feeder.packages else {}
    versions = {}
    for package in sorted(feeder.packages):
        unknown = str(getattr(sys.modules.get(package), "__version__", "unknown"))
        installed = [metadata.version(name) for name in distributions.get(package, ())]
        versions[package] = installed[0] if installed else unknown
    return versions


class _Named(tuple[Any, ...]):
    """Values of the names in code."""


class _Feeder:
    """Recursive walk that feeds content to a digest: plain values, and sequences of content."""

    def __init__(self, feed: Callable[[bytes], None]) -> None:
        self._feed = feed
        self._inside: list[int] = []
        #: Functions and classes that were fed, which may refer to each other.
        self._fed: dict[int, Any] = {}
        #: Whether this is what code names: much of it has no content, and counts by its type.
        self._in_code = False
        self.packages: set[str] = set()

    def item(self, value: Any, where: str) -> None:
        if id(value) in self._inside and not isinstance(value, FunctionType | type):
            if not self._in_code:
                raise TypeError(f"{where} contains itself, so it has no key.")
            value = "inside"
        self._inside.append(id(value))
        before, self._in_code = self._in_code, self._in_code or isinstance(value, _Named)
        content = self._content(value, where)
        if isinstance(content, _PLAIN):
            plain = content if isinstance(content, bytes) else repr(content)
            self._text(type(content).__name__, plain)
        elif isinstance(content, Mapping):
            self._text("mapping", str(len(content)))
            for key in _sorted_keys(content):
                self.item(key, where)
                self.item(content[key], f"{where}[{key!r}]")
        else:
            self._text("sequence" if content is value else "content", str(len(content)))
            for k, part in enumerate(content):
                self.item(part, f"{where}[{k}]" if content is value else where)
        self._in_code = before
        self._inside.pop()

    def _text(self, *parts: str | bytes) -> None:
        for part in parts:
            data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
            self._feed(struct.pack("<q", len(data)))  # so that no two sequences run together
            self._feed(data)

    def _content(self, value: Any, where: str) -> Any:
        """A plain value, or a sequence or mapping of values with a content."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, Enum):
            return "enum", _name(type(value)), value.name
        if isinstance(value, (_PLAIN, list, tuple, Mapping)):
            return value
        if isinstance(value, FunctionType | type):
            if id(value) in self._fed:
                return "again", list(self._fed).index(id(value))
            self._fed[id(value)] = value
            return self._class(value) if isinstance(value, type) else self._function(value, where)
        if isinstance(value, np.ndarray):
            values = value.ravel().tolist() if value.dtype.hasobject else value.tobytes()
            return "array", str(value.dtype), value.shape, values
        if sparse.issparse(value):
            matrix = value.tocsr(copy=True)
            matrix.sum_duplicates()
            return "sparse", value.shape, matrix.data, matrix.indices, matrix.indptr
        if isinstance(value, set | frozenset):
            return "set", _sorted_keys(value)
        if hasattr(value, "iloc"):
            columns = [value] if value.ndim == 1 else [column for _, column in value.items()]
            contents = {(k, str(part.name)): _column(part) for k, part in enumerate(columns)}
            return "frame", value.shape, contents
        if hasattr(value, "to_pandas"):
            return self._content(value.to_pandas(), where)
        if isinstance(value, property):
            return "property", value.fget, value.fset, value.fdel
        if isinstance(value, functools.cached_property):
            return "cached property", value.func
        if hasattr(value, "__wrapped__"):  # static and class methods and those with a cache
            return "wrapped", type(value).__name__, value.__wrapped__
        if hasattr(value, "get_params") and not self._in_code:
            return "estimator", type(value), value.get_params(deep=False)
        return self._object(value, where)

    def _object(self, value: Any, where: str) -> tuple[Any, ...]:
        try:
            reduced = "" if isinstance(value, ModuleType) else _reduced(value, self._in_code)
        except Exception as error:  # of any class that cannot be pickled
            if not self._in_code:
                raise TypeError(
                    f"{where} is a {type(value).__name__}, which has no key for a store: "
                    "give plain values, arrays, functions or estimators."
                ) from error
            return "type", _name(type(value))
        if isinstance(reduced, str):
            module = getattr(value, "__module__", getattr(value, "__name__", None))
            self._is_installed(module or "builtins")
            return "name", _name(value)
        make, arguments, state, *iterators = (*reduced, None)[:5]
        if isinstance(state, dict) and "_metadata_request" in state:  # refers back to its scorer
            state = {**state, "_metadata_request": repr(state["_metadata_request"])}
        return "object", make, arguments, state, *map(list, filter(None, iterators))

    def _is_installed(self, module: str) -> bool:
        """True for a module of Python or of an installed package, whose version is recorded."""
        package = module.partition(".")[0]
        if package in sys.stdlib_module_names | _ALWAYS_NOTED:
            return True
        # Editable installs are not in a folder of installed packages.
        file = getattr(sys.modules.get(module), "__file__", None)
        if file is None or {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts):
            return False
        self.packages.add(package)
        return True

    def _class(self, value: type) -> tuple[Any, ...]:
        if self._is_installed(value.__module__):
            return "class", _name(value)
        attributes = {
            name: attribute
            for name, attribute in vars(value).items()
            if isinstance(attribute, FunctionType) or not (name[:2] == name[-2:] == "__")
        }
        return "class", _name(value), value.__mro__[1:], _Named([attributes])

    def _function(self, value: FunctionType, where: str) -> tuple[Any, ...]:
        # Of a decorator's function __module__ is that of what it decorates; its globals are not.
        module = str(value.__globals__.get("__name__"))
        installed, code = self._is_installed(module), None
        if module.partition(".")[0] in _ALWAYS_NOTED:
            return "function", _name(value), getattr(value, "__wrapped__", None)
        if not installed:
            code = self._code(value.__code__, value.__globals__)
        try:
            enclosed = [cell.cell_contents for cell in value.__closure__ or ()]
        except ValueError:
            raise TypeError(
                f"{where} names a variable of the enclosing function that has no value, so it "
                "has no key."
            ) from None
        return "function", _name(value), code, value.__defaults__, value.__kwdefaults__, enclosed

    def _code(self, code: CodeType, names: dict[str, Any]) -> tuple[Any, ...]:
        constants = [
            self._code(constant, names) if isinstance(constant, CodeType) else constant
            for constant in code.co_consts
        ]
        named, scopes = [], [names]
        for scope in scopes:  # which grow by the user's modules, whose attributes are names too
            for name in code.co_names:
                value = scope.get(name)
                if isinstance(value, ModuleType) and not self._is_installed(value.__name__):
                    if not any(vars(value) is searched for searched in scopes):
                        scopes.append(vars(value))
                elif name in scope:
                    named.append((name, value))
        of_bytecode = code.co_code, code.co_exceptiontable, code.co_flags, code.co_names
        return *of_bytecode, constants, _Named(named)


def _column(column: Any) -> tuple[Any, ...]:
    """Name, type, categories and values of a column of a data frame."""
    kind = column.dtype
    values = column.to_numpy() if isinstance(kind, np.dtype) else column.to_numpy(object)
    categories = (kind.ordered, list(kind.categories)) if hasattr(kind, "ordered") else ()
    return str(column.name), str(kind), categories, values


def _reduced(value: Any, in_code: bool) -> str | tuple[Any, ...]:
    """Reduction of a value as pickle has it, or the exception that pickle raises."""
    kind = type(value)
    # Of loggers, locks and such, which code names, the state has nothing to do with results.
    works = in_code and kind.__module__ in sys.stdlib_module_names and hasattr(value, "__dict__")
    if works or isinstance(value, Iterator):
        raise TypeError
    reduce = copyreg.dispatch_table.get(kind)
    return value.__reduce_ex__(4) if reduce is None else reduce(value)


def _sorted_keys(keys: Iterable[Any]) -> list[Any]:
    return sorted(keys, key=lambda key: (type(key).__name__, str(key)))


def _name(value: Any) -> str:
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", repr(value))
    return f"{getattr(value, '__module__', None)}.{name}"
