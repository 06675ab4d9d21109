"""State of a fitted preprocessor in a few arrays, whatever the number of its columns.

A model file has a node of some hundred bytes for each object, and an evaluated model holds a
preprocessor for every fold.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from looms._typing import AnyArray

#: Attributes of `TablePreprocessor`, and of its encoder, with something for each column.
_BY_COLUMN = {"kinds", "kinds_", "ranges_", "feature_names_in_", "_found"}
_OF_ENCODER = {
    *("categories_", "_infrequent_indices", "_default_to_infrequent_mappings", "_n_features_outs")
}
#: Halves of characters, which text may hold by itself, are kept.
_ERRORS = "surrogatepass"


def packed_state(state: dict[str, Any]) -> dict[str, Any]:
    """State with arrays in place of what has an object for each column."""
    return _with_encoder(_each(state, _BY_COLUMN, packed), packed)


def unpacked_state(state: dict[str, Any]) -> dict[str, Any]:
    """The state that `packed_state` took."""
    return _with_encoder(_each(state, _BY_COLUMN, unpacked), unpacked)


def _each(state: dict[str, Any], names: set[str], change: Any) -> dict[str, Any]:
    return state | {name: change(state[name]) for name in names & state.keys()}


def _with_encoder(state: dict[str, Any], change: Any) -> dict[str, Any]:
    steps = state.get("_steps")
    if not (isinstance(steps, dict) and "encode" in steps):
        return state
    encoder = copy(steps["encode"])
    vars(encoder).update(_each(vars(encoder), _OF_ENCODER, change))
    return state | {"_steps": steps | {"encode": encoder}}


def packed(value: Any) -> Any:
    """Name of a form and arrays that hold a value of this form; another value as it is.

    Examples
    --------
    >>> packed({"size": [1.0, 2.0], "age": [0.0, 9.0]})[0]
    'dict'
    >>> unpacked(packed({"size": [1.0, 2.0], "age": [0.0, 9.0]}))
    {'size': [1.0, 2.0], 'age': [0.0, 9.0]}
    """
    if isinstance(value, np.ndarray) and value.dtype == object:
        return "array", packed(value.tolist())
    if isinstance(value, dict):
        return "dict", packed(list(value)), packed(list(value.values()))
    if not isinstance(value, list):
        return value
    kinds = {type(one) for one in value}
    if all(isinstance(one, str) or (isinstance(one, float) and one != one) for one in value):
        texts = [one if isinstance(one, str) else None for one in value]
        joined = "".join(filter(None, texts)).encode(errors=_ERRORS)
        lengths = np.array([-1 if text is None else len(text) for text in texts], dtype=np.int64)
        return "texts", np.frombuffer(joined, np.uint8), lengths
    of_pairs = kinds == {list} and {len(one) for one in value} == {2}
    if kinds == {int} or (of_pairs and {type(n) for one in value for n in one} == {float}):
        return "numbers", np.array(value)
    if kinds == {tuple}:
        return "tuples", [tuple(map(packed, one)) for one in value]
    kinds_of_arrays = {one.dtype.kind for one in value if isinstance(one, np.ndarray)}
    if kinds <= {np.ndarray, type(None)} and kinds_of_arrays <= {"O", "i"}:
        whole = np.concatenate([np.empty(0, object) if one is None else one for one in value])
        sizes = np.array([-1 if one is None else len(one) for one in value])
        of_texts = any(one is not None and one.dtype == object for one in value)
        return "arrays", packed(whole) if of_texts else whole.astype(np.int64), sizes
    return value


def unpacked(value: Any) -> Any:
    """The value that `packed` took."""
    if not (isinstance(value, tuple) and value and value[0] in _FORMS):
        return value
    return _FORMS[value[0]](*value[1:])


def _texts(joined: AnyArray, lengths: AnyArray) -> list[Any]:
    whole = joined.astype(np.uint8).tobytes().decode(errors=_ERRORS)
    stops = np.cumsum(np.maximum(lengths, 0)).tolist()
    return [
        np.nan if length < 0 else whole[stop - length : stop]
        for stop, length in zip(stops, lengths.tolist(), strict=True)
    ]


def _arrays(whole: Any, sizes: AnyArray) -> list[AnyArray | None]:
    own = np.split(unpacked(whole), np.cumsum(np.maximum(sizes, 0))[:-1])
    return [None if size < 0 else one for one, size in zip(own, sizes.tolist(), strict=True)]


_FORMS: dict[str, Callable[..., Any]] = {
    "array": lambda texts: np.array(unpacked(texts), dtype=object),
    "dict": lambda keys, values: dict(zip(unpacked(keys), unpacked(values), strict=True)),
    "texts": _texts,
    "tuples": lambda tuples: [tuple(map(unpacked, one)) for one in tuples],
    "numbers": lambda array: array.tolist(),
    "arrays": _arrays,
}
