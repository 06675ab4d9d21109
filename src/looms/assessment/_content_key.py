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
        known = [metadata.version(name) for name in distributions.get(package, ())]
        versions[package] = known[0] if known else unknown
    return versions


class _Feeder:
    """Recursive walk that feeds content to a digest, every item after its kind."""

    def __init__(self, feed: Callable[[bytes], None]) -> None:
        self._feed = feed
        self._inside: list[int] = []
        #: Functions and classes that were fed, which may refer to each other.
        self._fed: dict[int, Any] = {}
        #: Whether this is what code names: much of it has no content, and counts by its type.
        self._in_code = False
        self.packages: set[str] = set()

    def item(self, value: Any, where: str) -> None:
        if isinstance(value, FunctionType | type):
            if id(value) in self._fed:
                self._text("again", str(list(self._fed).index(id(value))))
                return
            self._fed[id(value)] = value
            if isinstance(value, type):
                self._class(value, where)
            else:
                self._function(value, where)
            return
        if id(value) in self._inside:
            if self._in_code:
                self._text("inside")
                return
            raise TypeError(f"{where} contains itself, so it has no key.")
        self._inside.append(id(value))
        try:
            self._item(value, where)
        finally:
            self._inside.pop()

    def _item(self, value: Any, where: str) -> None:
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, Enum):
            self._text("enum", _name(type(value)), value.name)
        elif isinstance(value, _PLAIN):
            self._text(type(value).__name__, repr(value))
        elif isinstance(value, np.ndarray):
            self._text("array", str(value.dtype), str(value.shape))
            if value.dtype.hasobject:
                self._items(value.ravel().tolist(), where)
            else:
                self._feed(np.ascontiguousarray(value).tobytes())
        elif sparse.issparse(value):
            matrix = value.tocsr(copy=True)
            matrix.sum_duplicates()
            self._text("sparse", str(value.shape))
            self._items((matrix.data, matrix.indices, matrix.indptr), where)
        elif isinstance(value, Mapping):
            self._text("mapping", str(len(value)))
            for key in _in_order(value):
                self.item(key, where)
                self.item(value[key], f"{where}[{key!r}]")
        elif isinstance(value, list | tuple):
            self._text("sequence", str(len(value)))
            self._items(value, where)
        elif isinstance(value, set | frozenset):
            self._text("set", str(len(value)))
            self._items(_in_order(value), where)
        elif hasattr(value, "iloc"):
            self._frame(value, where)
        elif hasattr(value, "to_pandas"):
            self._frame(value.to_pandas(), where)
        elif isinstance(value, property):
            self._text("property")
            self._items((value.fget, value.fset, value.fdel), where)
        elif isinstance(value, functools.cached_property):
            self._text("cached property")
            self.item(value.func, where)
        elif hasattr(value, "__wrapped__"):  # static and class methods and those with a cache
            self._text("wrapped", type(value).__name__)
            self.item(value.__wrapped__, where)
        elif hasattr(value, "get_params") and not self._in_code:
            self._text("estimator")
            self.item(type(value), where)
            self.item(value.get_params(deep=False), where)
        else:
            self._object(value, where)

    def _items(self, values: Iterable[Any], where: str) -> None:
        for k, value in enumerate(values):
            self.item(value, f"{where}[{k}]")

    def _text(self, *parts: str) -> None:
        for part in parts:
            data = part.encode("utf-8", "surrogatepass")
            self._feed(struct.pack("<q", len(data)))  # so that no two sequences run together
            self._feed(data)

    def _frame(self, value: Any, where: str) -> None:
        self._text("frame", str(value.shape))
        for column in [value] if value.ndim == 1 else [column for _, column in value.items()]:
            kind = column.dtype
            values = column.to_numpy() if isinstance(kind, np.dtype) else column.to_numpy(object)
            categories = (kind.ordered, list(kind.categories)) if hasattr(kind, "ordered") else ()
            parts = (str(column.name), str(kind), categories, values)
            self._items(parts, f"{where}[{column.name!r}]")

    def _object(self, value: Any, where: str) -> None:
        try:
            reduced = "" if isinstance(value, ModuleType) else _reduced(value, self._in_code)
        except Exception as error:  # of any class that cannot be pickled
            if not self._in_code:
                raise TypeError(
                    f"{where} is a {type(value).__name__}, which has no key for a store: "
                    "give plain values, arrays, functions or estimators."
                ) from error
            self._text("type", _name(type(value)))
            return
        if isinstance(reduced, str):
            self._text("name", _name(value))
            module = getattr(value, "__module__", getattr(value, "__name__", None))
            self._is_installed(module or "builtins")
            return
        make, arguments, state, *iterators = (*reduced, None)[:5]
        if isinstance(state, dict) and "_metadata_request" in state:  # refers back to its scorer
            state = {**state, "_metadata_request": repr(state["_metadata_request"])}
        self._text("object")
        for part in (make, arguments, state, *map(list, filter(None, iterators))):
            self.item(part, where)

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

    def _class(self, value: type, where: str) -> None:
        self._text("class", _name(value))
        if self._is_installed(value.__module__):
            return
        self._items(value.__mro__[1:], where)
        for name, attribute in sorted(vars(value).items()):
            special = name.startswith("__") and name.endswith("__")
            if isinstance(attribute, FunctionType) or not special:
                self._text("attribute", name)
                self._named(attribute, f"{where}.{name}")

    def _function(self, value: FunctionType, where: str) -> None:
        self._text("function", _name(value))
        # Of a decorator's function __module__ is that of what it decorates; its globals are not.
        module = str(value.__globals__.get("__name__"))
        if not self._is_installed(module):
            self._code(value.__code__, value.__globals__, where)
        elif module.partition(".")[0] in _ALWAYS_NOTED:
            self.item(getattr(value, "__wrapped__", None), where)
            return
        self._items((value.__defaults__, value.__kwdefaults__), where)
        try:
            enclosed = [cell.cell_contents for cell in value.__closure__ or ()]
        except ValueError:
            raise TypeError(
                f"{where} names a variable of the enclosing function that has no value, so it "
                "has no key."
            ) from None
        self._items(enclosed, where)

    def _code(self, code: CodeType, names: dict[str, Any], where: str) -> None:
        self._text("code", code.co_code.hex(), code.co_exceptiontable.hex(), str(code.co_flags))
        self._text(*code.co_names)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._code(constant, names, where)
            else:
                self.item(constant, where)
        scopes = [names]
        for scope in scopes:  # which grow by the user's modules, whose attributes are names too
            for name in code.co_names:
                value = scope.get(name)
                if isinstance(value, ModuleType) and not self._is_installed(value.__name__):
                    if not any(vars(value) is known for known in scopes):
                        scopes.append(vars(value))
                elif name in scope:
                    self._text("global", name)
                    self._named(value, f"{where}: {name}")

    def _named(self, value: Any, where: str) -> None:
        """Feed what code names."""
        before, self._in_code = self._in_code, True
        try:
            self.item(value, where)
        finally:
            self._in_code = before


def _reduced(value: Any, in_code: bool) -> str | tuple[Any, ...]:
    """How pickle would make the value again; an exception for what it cannot."""
    kind = type(value)
    # Of loggers, locks and such, which code names, the state has nothing to do with results.
    works = in_code and kind.__module__ in sys.stdlib_module_names and hasattr(value, "__dict__")
    if works or isinstance(value, Iterator):
        raise TypeError
    reduce = copyreg.dispatch_table.get(kind)
    return value.__reduce_ex__(4) if reduce is None else reduce(value)


def _in_order(keys: Iterable[Any]) -> list[Any]:
    return sorted(keys, key=lambda key: (type(key).__name__, str(key)))


def _name(value: Any) -> str:
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", repr(value))
    return f"{getattr(value, '__module__', None)}.{name}"
