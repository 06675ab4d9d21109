"""Key of content: equal values have equal keys, in every process."""

from __future__ import annotations

import functools
import hashlib
import re
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from importlib import metadata
from numbers import Number
from pathlib import Path, PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from scipy import sparse

#: Types, some of packages that need not be there, whose values are their text.
_TEXTS = {"NAType", "NaTType", "Timestamp", "Timedelta", "datetime", "date", "timedelta"}

#: Packages whose versions every store notes, wherever they are installed.
_ALWAYS_NOTED = {"looms", "sklearn", "numpy", "scipy"}

Feed = Callable[[bytes], None]


def content_key(**parts: Any) -> str:
    """Hexadecimal digest of named things: estimators, data, functions, plain values.

    Estimators count by class and parameters, arrays by dtype, shape and bytes, data
    frames by the names, types and values of their columns, functions and classes by name.

    The user's own functions and classes count by their code too, with base classes,
    decorators, and the globals they name: functions, classes, values, and attributes of
    modules that are the user's own. Code is what Python has loaded, bytecode and
    constants: comments do not count, and another minor version of Python is other code.
    Code of an installed package counts by name, and `package_versions` has its version.
    Changes in compiled code, in imports within a function, and in names that are only known
    at run time, as by `getattr`, are not noticed.

    Raises
    ------
    TypeError
        If some part has no content to hash, with its place.
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
    return {package: _version(package) for package in sorted(feeder.packages)}


class _Feeder:
    """Recursive walk that feeds content to a digest, every item after its kind."""

    def __init__(self, feed: Feed) -> None:
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
            raise TypeError(f"{where} contains itself: no key can be made of it.")
        self._inside.append(id(value))
        try:
            self._item(value, where)
        finally:
            self._inside.pop()

    def _item(self, value: Any, where: str) -> None:
        plain = _plain(value)
        if plain is not None:
            self._text(*plain)
        elif isinstance(value, np.ndarray):
            self._array(value, where)
        elif sparse.issparse(value):
            matrix = value.tocsr(copy=True)
            matrix.sum_duplicates()
            self._text("sparse", str(value.shape))
            self._items((matrix.data, matrix.indices, matrix.indptr), where)
        elif isinstance(value, Mapping):
            self._text("mapping", str(len(value)))
            for key in sorted(value, key=lambda k: (type(k).__name__, str(k))):
                self.item(key, where)
                self.item(value[key], f"{where}[{key!r}]")
        elif isinstance(value, list | tuple):
            self._text("sequence", str(len(value)))
            self._items(value, where)
        elif isinstance(value, set | frozenset):
            self._text("set", str(len(value)))
            self._items(sorted(value, key=lambda k: (type(k).__name__, str(k))), where)
        elif hasattr(value, "iloc"):
            self._frame(value, where)
        else:
            self._object(value, where)

    def _items(self, values: Any, where: str) -> None:
        for k, value in enumerate(values):
            self.item(value, f"{where}[{k}]")

    def _text(self, *parts: str) -> None:
        for part in parts:
            data = part.encode("utf-8", "surrogatepass")
            self._feed(struct.pack("<q", len(data)))  # so that no two sequences run together
            self._feed(data)

    def _array(self, value: np.ndarray[Any, Any], where: str) -> None:
        self._text("array", str(value.dtype), str(value.shape))
        if value.dtype.hasobject:
            self._items(value.ravel().tolist(), where)
        else:
            self._feed(np.ascontiguousarray(value).tobytes())

    def _frame(self, value: Any, where: str) -> None:
        if value.ndim == 1:
            dtype = value.dtype
            self._text("column", str(value.name), str(dtype))
            if hasattr(dtype, "categories"):
                self._items((dtype.ordered, list(dtype.categories)), where)
            plain = isinstance(dtype, np.dtype)
            self._array(value.to_numpy() if plain else value.to_numpy(dtype=object), where)
            return
        self._text("frame", str(value.shape))
        for k, name in enumerate(value.columns):
            self._frame(value.iloc[:, k], f"{where}[{name!r}]")

    def _object(self, value: Any, where: str) -> None:
        if isinstance(value, np.random.RandomState):
            self._text("RandomState")
            self.item(value.get_state(legacy=False), where)
        elif isinstance(value, np.random.Generator):
            self._text("Generator")
            self.item(value.bit_generator.state, where)
        elif isinstance(value, BuiltinFunctionType | np.ufunc | ModuleType):
            self._text("name", _name(value))
            self._is_installed(getattr(value, "__module__", value.__name__) or "builtins")
        elif isinstance(value, MethodType):
            self._items((value.__func__, value.__self__), where)
        elif isinstance(value, functools.partial | functools.partialmethod):
            self._text("partial")
            self._items((value.func, value.args, value.keywords), where)
        elif isinstance(value, property):
            self._text("property")
            self._items((value.fget, value.fset, value.fdel), where)
        elif hasattr(value, "__wrapped__"):  # static and class methods and those with a cache
            self._text("wrapped", type(value).__name__)
            self.item(value.__wrapped__, where)
        elif hasattr(value, "get_params") and not self._in_code:
            self._text("estimator")
            self.item(type(value), where)
            self.item(value.get_params(deep=False), where)
        elif hasattr(value, "to_pandas"):
            self._frame(value.to_pandas(), where)
        elif hasattr(value, "__dict__"):
            self._text("object")
            self.item(type(value), where)
            values = {k: v for k, v in vars(value).items() if not k.startswith("__")}
            if "_metadata_request" in values:  # of a scorer, to which it refers back
                values["_metadata_request"] = repr(values["_metadata_request"])
            if self._in_code and type(value).__module__ in sys.stdlib_module_names:
                # Loggers, locks and such: of these only the functions, as of a cached property.
                values = {k: v for k, v in values.items() if isinstance(v, FunctionType)}
            self.item(values, where)
        elif self._in_code:
            self._text("type", _name(type(value)))
        else:
            raise TypeError(
                f"{where} is a {type(value).__name__}, of which no key for a store can be made: "
                "give plain values, arrays, functions or estimators."
            )

    def _is_installed(self, module: str) -> bool:
        """True for a module of Python or of an installed package, whose version is recorded."""
        package = module.partition(".")[0]
        if package in sys.stdlib_module_names | _ALWAYS_NOTED:
            return True
        if not _lies_in_packages(module):
            return False
        self.packages.add(package)
        return True

    def _class(self, value: type, where: str) -> None:
        self._text("class", _name(value))
        if self._is_installed(value.__module__):
            return
        self._items(value.__mro__[1:], where)
        for name, attribute in sorted(vars(value).items()):
            if isinstance(attribute, FunctionType) or not re.fullmatch("__.*__", name):
                self._text("attribute", name)
                with self._code_names():
                    self.item(attribute, f"{where}.{name}")

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
                f"{where} names a variable of the function around it that has no value: no key "
                "can be made of it."
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
                    with self._code_names():
                        self.item(value, f"{where}: {name}")

    @contextmanager
    def _code_names(self) -> Iterator[None]:
        before, self._in_code = self._in_code, True
        try:
            yield
        finally:
            self._in_code = before


def _plain(value: Any) -> tuple[str, ...] | None:
    """Kind and text of a plain value."""
    if isinstance(value, Enum):
        return ("enum", _name(type(value)), value.name)
    if value is None or value is Ellipsis or isinstance(value, slice | range):
        return ("constant", repr(value))
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | bytes):
        return (type(value).__name__, value if isinstance(value, str) else value.hex())
    if isinstance(value, np.dtype):
        return ("dtype", str(value))
    if isinstance(value, Number):
        return ("number", repr(value))
    if isinstance(value, re.Pattern):
        return ("pattern", repr(value.pattern), str(value.flags))
    if isinstance(value, PurePath):
        return ("path", str(value))
    if type(value).__name__ in _TEXTS:
        return (type(value).__name__, str(value))
    return None


def _name(value: Any) -> str:
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", repr(value))
    return f"{getattr(value, '__module__', None)}.{name}"


@functools.cache
def _lies_in_packages(module: str) -> bool:
    """True for a module in a folder of installed packages; editable installs are not."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)


def _version(package: str) -> str:
    for distribution in metadata.packages_distributions().get(package, ()):
        return metadata.version(distribution)
    return str(getattr(sys.modules.get(package), "__version__", "unknown"))
