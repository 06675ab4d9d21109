"""Run by test_hostile_model_files.py: files of good models with one thing in them changed.

Every one is refused by `ModelFileError`, or its model predicts, or raises an error; the process
neither ends nor runs out of memory.
"""

import copy
import io
import json
import random
import resource
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

from looms.model_files import ModelFileError, load_model

NAMES = [("os", "system"), ("builtins", "eval"), ("numpy", "load"), ("sklearn.svm._classes", "SVC")]
LOADERS = ["FunctionNode", "TypeNode", "MethodNode", "PartialNode", "ObjectNode", "CachedNode"]
LOADERS += ["DictNode", "ListNode", "TupleNode", "JsonNode", "NdArrayNode", "SparseMatrixNode"]
VALUES = [None, True, -1, 0, 7, 10**9, 1.5, -1e308, float("nan"), "x", "passthrough", [1], {"a": 1}]
ATTRIBUTES = ["transform", "predict", "fit", "__class__", "__dict__", "mean_", "kernel_", "x"]


def nodes_of(part):
    if isinstance(part, dict):
        if isinstance(part.get("__loader__"), str):
            yield part
        part = list(part.values())
    if isinstance(part, list):
        for one in part:
            yield from nodes_of(one)


def mutate(schema, members, rng):
    """Change one thing, in place; what was changed."""
    nodes = list(nodes_of(schema))
    node, other = rng.sample(nodes, 2)
    arrays = [n for n in nodes if "file" in n]
    names = [n for n in nodes if n["__loader__"] == "DictNode" and n["content"]]
    plain = [n for n in nodes if n["__loader__"] == "JsonNode"]
    change = rng.choice(
        ["protocol", "loader", "type", "name", "number", "file", "swap", "attribute", "drop"]
        + ["value"] * 4
        + ["array"] * 6
    )
    if change == "protocol":
        schema["protocol"] = rng.choice([0, 1, 3, True, "2", None])
    elif change == "loader":
        node["__loader__"] = rng.choice(LOADERS)
    elif change == "type":
        node["__module__"], node["__class__"] = other["__module__"], other["__class__"]
    elif change == "name":
        node["__module__"], node["__class__"] = rng.choice(NAMES)
    elif change == "number":
        node["__id__"] = other["__id__"]
    elif change == "file":
        node = rng.choice(arrays)
        node["file"] = rng.choice(["schema.json", *members])
    elif change == "swap":
        kept = copy.deepcopy(node)
        node.clear(), node.update(copy.deepcopy(other))
        other.clear(), other.update(kept)
    elif change in ("attribute", "drop"):
        content = rng.choice(names)["content"]
        value = content.pop(rng.choice(list(content)))
        if change == "attribute":
            content[rng.choice(ATTRIBUTES)] = value
    elif change == "value":
        rng.choice(plain)["content"] = json.dumps(rng.choice(VALUES))
    else:
        file = rng.choice([name for name in members if name.endswith(".npy")])
        members[file] = changed_array(members[file], rng)
        change = f"array {file}"
    return change


def changed_array(data, rng):
    array = np.load(io.BytesIO(data))
    kind = rng.randrange(7)
    if kind == 0:
        array = array.ravel()[: max(1, array.size // 2)]
    elif kind == 1:
        array = np.concatenate([np.atleast_1d(array)] * 2)
    elif kind == 2:
        array = array.T if array.ndim > 1 else array[None]
    elif kind == 3:
        array = np.array(["x"] * max(1, array.size))
    elif kind == 4 and array.size and array.dtype.kind in "iuf":
        array = np.array(array)
        value = np.array(rng.choice([-1, 2**31 - 1, 7]))
        array.flat[rng.randrange(array.size)] = value.astype(array.dtype)
    elif kind == 5:
        array = array.astype(np.float32) if array.dtype.kind in "iuf" else array[:0]
    else:
        array = np.zeros((0, *array.shape[1:]))
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def main(folder, n):
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    warnings.simplefilter("ignore")
    for path in sorted(Path(folder).glob("*.skops")):
        sys.stdout.write(f"{n_refused_of(path, n)}\n")


def n_refused_of(path, n):
    """Number of n changed files that are refused."""
    X = pd.read_pickle(path.with_suffix(".rows"))
    with zipfile.ZipFile(path) as archive:
        good = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(good.pop("schema.json"))
    n_refused = 0
    hostile = path.with_suffix(".hostile")
    for seed in range(n):
        changed, members = copy.deepcopy(schema), dict(good)
        change = mutate(changed, members, random.Random(seed))
        with zipfile.ZipFile(hostile, "w") as archive:
            archive.writestr("schema.json", json.dumps(changed))
            for name, data in members.items():
                archive.writestr(name, data)
        sys.stderr.write(f"{path.name} {seed} {change}: ")
        sys.stderr.flush()
        try:
            model = load_model(hostile).model
        except ModelFileError as error:
            sys.stderr.write(f"{error.problem}\n")
            n_refused += 1
            continue
        try:
            model.predict(X)
            sys.stderr.write("predicts\n")
        except MemoryError:
            raise
        except Exception as error:
            sys.stderr.write(f"{error!r}\n")
    return n_refused


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
