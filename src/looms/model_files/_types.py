"""Types that a model file may hold, by the kind of node that skops writes for them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from looms.model_files._checks import CHECKS, type_name

#: The one function; it scales pixels.
_FUNCTIONS = {"looms.challenge._preparation.over_255"}


_PLAIN = (np.number, np.str_, np.datetime64, np.timedelta64)
_SCALARS = {f"numpy.{k.__name__}" for k in set(np.sctypeDict.values()) if issubclass(k, _PLAIN)}
_SCALARS |= {"numpy.bool", "numpy.bool_"}  # one type; its name depends on the version of NumPy
_ENUMERATIONS = {"looms.optimise._search.Outcome"}

#: Names by the kind of node. Only a node of an enumeration calls what it names.
_ADMITTED: dict[str, set[str]] = {
    "DictNode": {"builtins.dict"},
    "ListNode": {"builtins.list"},
    "TupleNode": {"builtins.tuple"},
    "SetNode": {"builtins.set"},
    "SliceNode": {"builtins.slice"},
    "JsonNode": {"builtins.str"},
    "NdArrayNode": {"numpy.ndarray", *_SCALARS},
    "DTypeNode": {"numpy.dtype"},
    "SparseMatrixNode": {type_name(sparse.csr_array), type_name(sparse.csr_matrix)},
    "TypeNode": {"builtins.str", "builtins.int", "builtins.float", "builtins.bool", *_SCALARS},
    "FunctionNode": _FUNCTIONS,
    "ConstructorFromReduceNode": _ENUMERATIONS,
    "ObjectNode": CHECKS.keys() - _ENUMERATIONS,
}


def refused_types(schema: Any, trusted: Collection[str] = ()) -> list[str]:
    """Names in the schema of a skops file that a model file may not hold, sorted.

    Parameters
    ----------
    schema : the content of ``schema.json``.
    trusted : further names that the caller admits.
    """
    return sorted(
        {
            name
            for loader, name in _nodes(schema)
            if name not in _ADMITTED.get(loader, ()) and name not in trusted
        }
    )


def _nodes(schema: Any) -> Iterator[tuple[str, str]]:
    """Kind and name of every node; a key of a dict that is spelt like a mark of one is none."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if isinstance(part.get("__loader__"), str):
                yield part["__loader__"], f"{part.get('__module__')}.{part.get('__class__')}"
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
