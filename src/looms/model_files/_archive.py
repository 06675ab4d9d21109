"""Skops file: an archive unpacked within a size limit, and its list of types.

Every object is a node of that list: its type, the kind of node that builds it, and a number. All
names in it are checked before any object is built, and that the list is read as it is written: in
one protocol, and with a repeated number only for the same object.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Collection
from typing import Any

from looms.model_files._parts import admitted

#: Protocol that skops 0.16 writes. In others nodes look up code by names in their content.
_PROTOCOL = 2
#: Kinds of nodes that do so in this one.
_CALLING = {"MethodNode", "OperatorFuncNode", "PartialNode"}
#: Bytes of memory that each byte of the list of types takes when read.
_SCHEMA_GROWS = 16
_CHUNK = 1 << 20


class TooLarge(ValueError):
    """Error for a file that would take more memory than is allowed."""


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


def bytes_left(data: bytes, most: int) -> int:
    """Bytes that an archive leaves of ``most`` when it is unpacked.

    Unpacked bytes are counted a piece at a time, as sizes in the directory of the file may be
    wrong; those of the list of types as what they take when read. Sparse matrices are zip files
    inside it.

    Raises
    ------
    TooLarge
        If there are more.
    zipfile.BadZipFile
        If it is not a whole zip file, two of its files have the same name, or they are packed in
        another way than by skops.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if len({*archive.namelist()}) < len(archive.namelist()):
            raise zipfile.BadZipFile("two files of one name")
        for member in archive.infolist():
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise zipfile.BadZipFile("compressed in an unusual way")
            grows, content = _SCHEMA_GROWS if member.filename == "schema.json" else 1, bytearray()
            with archive.open(member) as file:
                while chunk := file.read(_CHUNK):
                    most -= len(chunk) * grows
                    content += chunk
                    if most < 0:
                        raise TooLarge
            if content.startswith(b"PK"):  # by which NumPy tells them, too
                most = bytes_left(bytes(content), most)
    return most


def schema_of(data: bytes) -> Any:
    """List of types of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return json.loads(archive.read("schema.json"))


def audited(schema: Any, trusted: Collection[str] = ()) -> tuple[list[str], set[str]]:
    """Names in the list of types that a model file may not hold, sorted, and all names.

    Parameters
    ----------
    schema : content of ``schema.json``.
    trusted : names of further types and functions that the caller admits.

    Returns
    -------
    refused : names, and other things in words; nothing may be built unless it is empty.
    names : of all types and functions.
    """
    problems, names = set(), set()
    if repr(schema.get("protocol")) != repr(_PROTOCOL):
        problems.add(f"protocol {schema.get('protocol')!r} of skops")
    form_of: dict[int, int] = {}

    def form(part: Any) -> int:
        """Hash of a part, the same for parts that differ only in numbers of nodes."""
        if isinstance(part, list):
            return hash(tuple(map(form, part)))
        if not isinstance(part, dict):
            return hash((type(part), part))
        if not isinstance(kind := part.get("__loader__"), str):
            return hash(tuple((key, form(value)) for key, value in part.items()))
        apart = ("__id__", "file")
        one = hash(tuple((key, form(part[key])) for key in part if key not in apart))
        name, number = f"{part.get('__module__')}.{part.get('__class__')}", part.get("__id__")
        names.add(name)
        if name in admitted().get(kind, ()):
            # A number is read once; by many numbers a small file could grow without limit.
            if part.get("file") not in (None, f"{number}.npy", f"{number}.npz"):
                problems.add("an array under the number of another")
        elif name not in trusted or kind in _CALLING:
            problems.add(name)
        if type(number) is not int or number < 1:
            problems.add("an object without a number")
        elif form_of.setdefault(number, one) != one:
            problems.add("two objects of one number")
        return one

    form(schema)
    return sorted(problems), names
