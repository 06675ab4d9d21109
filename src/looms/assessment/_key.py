"""A key made of content: equal things have equal keys, in every process and at any time."""

from __future__ import annotations

import functools
import hashlib
import inspect
import struct
from collections.abc import Callable, Mapping
from enum import Enum
from numbers import Number
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from scipy import sparse

#: Types, some of packages that need not be there, whose values are their text.
_TEXTS = {"NAType", "NaTType", "Timestamp", "Timedelta", "datetime", "date", "timedelta"}

Feed = Callable[[bytes], None]


def content_key(**parts: Any) -> str:
    """Hexadecimal digest of named things: estimators, data, functions, plain values.

    Estimators count by class and parameters, arrays by dtype, shape and bytes, data
    frames by the names, types and values of their columns, functions by name and code.

    Raises
    ------
    TypeError
        If something has no content that could be named; the message says where it is.
    """
    digest = hashlib.sha256()
    for name, part in sorted(parts.items()):
        _Feeder(digest.update).item(part, name)
        digest.update(name.encode())
    return digest.hexdigest()[:32]


class _Feeder:
    """Walks through a thing and feeds its content to a digest; every item says its kind first."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._inside: list[int] = []

    def item(self, value: Any, where: str) -> None:
        if id(value) in self._inside:
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
            matrix = value.tocsr()
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
        elif isinstance(value, type | BuiltinFunctionType | np.ufunc | ModuleType):
            self._text("name", _name(value))
        elif isinstance(value, MethodType):
            self._items((value.__func__, value.__self__), where)
        elif isinstance(value, functools.partial):
            self._text("partial")
            self._items((value.func, value.args, value.keywords), where)
        elif isinstance(value, FunctionType):
            self._function(value, where)
        elif hasattr(value, "get_params") and not isinstance(value, type):
            self._text("estimator", _name(type(value)))
            self.item(value.get_params(deep=False), where)
        elif hasattr(value, "to_pandas"):
            self._frame(value.to_pandas(), where)
        elif hasattr(value, "__dict__"):
            self._text("object", _name(type(value)))
            values = {k: v for k, v in vars(value).items() if not k.startswith("__")}
            if "_metadata_request" in values:  # of a scorer, to which it refers back
                values["_metadata_request"] = repr(values["_metadata_request"])
            self.item(values, where)
        else:
            raise TypeError(
                f"{where} is a {type(value).__name__}, of which no key for a store can be made: "
                "give plain values, arrays, functions or estimators."
            )

    def _function(self, value: Any, where: str) -> None:
        self._text("function", _name(value))
        if (getattr(value, "__module__", None) or "").split(".")[0] in {
            "sklearn",
            "numpy",
            "scipy",
        }:
            return  # versions are compared apart from the key
        function = inspect.unwrap(value)
        self._code(function.__code__, where)
        self._items((function.__defaults__, function.__kwdefaults__), where)
        cells = function.__closure__ or ()
        self._items([cell.cell_contents for cell in cells], where)

    def _code(self, code: CodeType, where: str) -> None:
        self._feed(code.co_code)
        self._text(*code.co_names)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._code(constant, where)
            else:
                self.item(constant, where)


def _plain(value: Any) -> tuple[str, ...] | None:
    """Kind and text of a value that is its text."""
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
    if type(value).__name__ in _TEXTS:
        return (type(value).__name__, str(value))
    return None


def _name(value: Any) -> str:
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", repr(value))
    return f"{getattr(value, '__module__', None)}.{name}"
