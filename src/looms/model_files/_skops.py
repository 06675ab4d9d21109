"""Skops file: an archive unpacked within a size limit, and its list of types.

The list is checked against the nodes of a model of looms before any object is built. Every
object is a node: its type, the kind of node that builds it, and a number. The code that a kind
runs depends on the protocol of the file, and a repeated number stands for the earlier object. So
only one protocol is read, objects with the same number must be equal, and a node has exactly the
fields that skops gives to its kind.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Collection, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from looms.model_files._types import TYPES, attributes
from looms.model_files._values import type_name

#: Protocol that skops 0.16 writes.
_PROTOCOL = 2
_PLAIN = (np.number, np.str_, np.datetime64, np.timedelta64)
_SCALARS = {f"numpy.{k.__name__}" for k in set(np.sctypeDict.values()) if issubclass(k, _PLAIN)}
_SCALARS |= {"numpy.bool", "numpy.bool_"}  # one type; its name depends on the version of NumPy

#: Names by kind of node.
ADMITTED: dict[str, set[str]] = {
    "DictNode": {"builtins.dict"},
    "ListNode": {
        "builtins.list",
        "looms.selection._candidates.Candidates",
    },
    "TupleNode": {"builtins.tuple"},
    "SetNode": {"builtins.set"},
    "SliceNode": {"builtins.slice"},
    "JsonNode": {"builtins.str"},
    "NdArrayNode": {"numpy.ndarray", *_SCALARS},
    "DTypeNode": {"numpy.dtype"},
    "SparseMatrixNode": {type_name(sparse.csr_array), type_name(sparse.csr_matrix)},
    "TypeNode": {"builtins.str", "builtins.int", "builtins.float", "builtins.bool", *_SCALARS},
    "FunctionNode": set(),  # those that the caller admits
    "ConstructorFromReduceNode": {"looms.optimize._search.Outcome"},
    "ObjectNode": set(TYPES),
}
_MARKS = {"__class__", "__module__", "__loader__", "__id__"}
#: Kinds that look up code by a name in their content.
_CALLING = {"MethodNode", "OperatorFuncNode", "PartialNode"}


#: Bytes of memory that each byte of the list of types takes when read.
_SCHEMA_GROWS = 16
_CHUNK = 1 << 20
_ZIP = b"PK\x03\x04"


class TooLarge(ValueError):
    """Error for a file that would take more memory than is allowed."""


@dataclass
class Allowance:
    """Bytes that may still be unpacked."""

    left: int

    def take(self, n_bytes: int) -> None:
        """Subtract from the allowance; `TooLarge` if it is exceeded."""
        self.left -= n_bytes
        if self.left < 0:
            raise TooLarge


def packed(data: bytes) -> bytes:
    """Archive of the same files with compression, and without blanks in the list of types."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as archive,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as smaller,
    ):
        for name in archive.namelist():
            content = archive.read(name)
            if name == "schema.json":
                schema = json.loads(content, object_hook=_with_false)
                content = json.dumps(schema, separators=(",", ":")).encode()
            smaller.writestr(name, content)
    return buffer.getvalue()


def _with_false(node: dict[str, Any]) -> dict[str, Any]:
    """The node; of a dict with the key False, which skops reads as bool("false"), with bool("")."""
    if node.get("__loader__") == "DictNode":
        kinds = (kind["__class__"] for kind in node["key_types"]["content"])
        items = zip(kinds, node["content"].items(), strict=True)
        node["content"] = {
            "" if (kind, key) == ("bool", "false") else key: value for kind, (key, value) in items
        }
    return node


def repacked(data: bytes, allowance: Allowance) -> bytes:
    """Archive of the same files without compression, of limited size.

    The sizes in the directory of the file are checked first. They may be wrong, so the unpacked
    bytes are counted too, a piece at a time. Sparse matrices are zip files inside it.

    Raises
    ------
    TooLarge
        If it exceeds the allowance.
    zipfile.BadZipFile
        If it is not a whole zip file, two of its files have the same name, or they are packed in
        another way than by skops.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        grows = {m.filename: _SCHEMA_GROWS if m.filename == "schema.json" else 1 for m in entries}
        if len(grows) < len(entries):
            raise zipfile.BadZipFile("two files of one name")
        Allowance(allowance.left).take(sum(m.file_size * grows[m.filename] for m in entries))
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as plain:
            for member in entries:
                if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise zipfile.BadZipFile("compressed in an unusual way")
                content = bytearray()
                with archive.open(member) as file:
                    while chunk := file.read(_CHUNK):
                        allowance.take(len(chunk) * grows[member.filename])
                        content += chunk
                inner = content.startswith(_ZIP)
                plain.writestr(
                    member.filename,
                    repacked(bytes(content), allowance) if inner else bytes(content),
                )
    return buffer.getvalue()


def refused(schema: Any, trusted: Collection[str] = ()) -> list[str]:
    """Names in the list of types that a model file may not hold, sorted.

    Parameters
    ----------
    schema : content of ``schema.json``.
    trusted : names of further types that the caller admits, with any attributes.

    Returns
    -------
    names : names of types, of attributes as ``Type.attribute``, and other things in words.
    """
    problems = set()
    root = dict(schema)
    protocol = root.pop("protocol", None)
    root.pop("_skops_version", None)
    if type(protocol) is not int or protocol != _PROTOCOL:
        problems.add(f"protocol {protocol!r} of skops")
    forms: dict[Hashable, int] = {}
    form_of: dict[int, int] = {}

    def form(part: Any) -> Hashable:
        """Number of the form of a part, the same for parts that differ only in numbers."""
        if isinstance(part, list):
            return forms.setdefault(tuple(map(form, part)), len(forms))
        if not isinstance(part, dict):
            return type(part), part
        is_node = isinstance(part.get("__loader__"), str)
        apart = ("__id__", "file") if is_node else ()
        items = [(key, form(part[key])) for key in part if key not in apart]
        one = forms.setdefault(tuple(items), len(forms))
        if is_node:
            problems.update(_refused_in(part, trusted))
            number = part.get("__id__")
            if type(number) is not int:
                problems.add("an object without a number")
            elif form_of.setdefault(number, one) != one:
                problems.add("two objects of one number")
        return one

    form(root)
    return sorted(problems)


def _refused_in(node: dict[str, Any], trusted: Collection[str]) -> set[str]:
    """`refused` for a node without its children."""
    kind, name = node["__loader__"], f"{node.get('__module__')}.{node.get('__class__')}"
    if name in trusted and kind not in _CALLING:
        return set()
    if name not in ADMITTED.get(kind, ()):
        return {name}
    try:
        if not _is_written_so(kind, node):
            return {f"a {kind} that skops does not write"}
        if kind == "ObjectNode" and node["content"]["__loader__"] == "DictNode":
            unknown = node["content"]["content"].keys() - attributes(name)
            return {f"{name}.{attribute}" for attribute in unknown}
    except (AttributeError, KeyError, TypeError, ValueError):
        return {f"a {kind} that skops does not write"}
    return set()


def _is_written_so(kind: str, node: dict[str, Any]) -> bool:
    """True if the fields of a node are those that skops gives to its kind."""
    fields, number = node.keys() - _MARKS, node["__id__"]
    if kind in ("TypeNode", "FunctionNode"):
        return not fields
    content: Any = node.get("content")
    if kind == "NdArrayNode" and node["type"] == "numpy":
        return bool(fields == {"type", "file"} and node["file"] == f"{number}.npy")
    if kind == "NdArrayNode":
        rest = fields == {"type", "content", "shape"} and node["type"] == "json"
        return bool(
            rest and isinstance(content, list) and node["shape"]["__loader__"] == "TupleNode"
        )
    if kind == "SparseMatrixNode":
        named = node["type"] == "scipy" and node["file"] == f"{number}.npz"
        return bool(named and fields == {"type", "file"})
    if kind == "DictNode":
        types = node["key_types"]
        typed = types["__loader__"] == "ListNode" and len(types["content"]) == len(content)
        typed = typed and all(one["__loader__"] == "TypeNode" for one in types["content"])
        return bool(typed and fields == {"content", "key_types"} and isinstance(content, dict))
    if kind == "JsonNode":
        plain = isinstance(json.loads(content), str | int | float | bool | None)
        return plain and fields == {"content", "is_json"}
    if fields != {"content"}:
        return False
    if kind in ("ListNode", "TupleNode", "SetNode"):
        return isinstance(content, list)
    if kind == "SliceNode":
        bounds = content.keys() == {"start", "stop", "step"}
        return bool(bounds) and all(type(one) in (int, type(None)) for one in content.values())
    if kind == "DTypeNode":
        return bool(content["__loader__"] == "NdArrayNode")
    if kind == "ConstructorFromReduceNode":
        single = content["__loader__"] == "TupleNode" and len(content["content"]) == 1
        return bool(single and content["content"][0]["__loader__"] == "JsonNode")
    texts = content["__loader__"] == "DictNode" and all(
        one["__class__"] == "str" for one in content["key_types"]["content"]
    )
    empty = content["__loader__"] == "JsonNode" and content["content"] == "null"
    return bool(texts or empty)
