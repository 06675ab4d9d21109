"""Fitted models in files: written whole or not at all, read without running what is in them.

The format is skops: a zip file of arrays and of the names of types. Reading builds only types
that skops vouches for (estimators of scikit-learn, arrays, containers) and looms' own; functions,
methods and everything else are refused by name before anything is built.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning

# Only types of modules that are imported pass; these two bring all that models are made of.
import looms.estimators
import looms.tables  # noqa: F401
from looms import __version__
from looms._files import advice_on, write_whole
from looms._optional import require

__all__ = ["ModelFileError", "SavedModel", "load_model", "save_model"]

_FORMAT = 1
_KEYS = {"looms_model_file", "metadata", "model"}
#: What skops does not vouch for by name and models hold: dtypes in imputers, sparse samples; and
#: the estimators of a room that reading a model does not otherwise import.
_ALLOWED = (
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "looms.challenge._preparation.ADAColumns",
    "looms.challenge._preparation.ContinuousScaler",
    "looms.challenge._preparation.over_255",
    "looms.challenge._reduced.ReducedLSSVMClassifierCV",
)
#: What this module brings: reading knows no others, so writing must not either.
_ROOMS = (
    "calibration",
    "conformal",
    "criteria",
    "estimators",
    "kernels",
    "leave_one_out",
    "lssvm",
    "optimise",
    "selection",
    "svm",
    "tables",
    "threshold",
)


class ModelFileError(ValueError):
    """A model file that cannot be written or read: which one, why, what to do.

    Parameters
    ----------
    path : path
        The file.
    problem : str
        What is wrong, without a full stop.
    advice : str
        What to do about it, as a sentence.
    """

    def __init__(self, path: Path, problem: str, advice: str) -> None:
        super().__init__(f"{path}: {problem}. {advice}")
        self.path = path
        self.problem = problem
        self.advice = advice


@dataclass(frozen=True)
class SavedModel:
    """What a model file holds.

    Attributes
    ----------
    model : estimator
        The fitted model.
    metadata : dict
        What was said about it when it was saved.
    """

    model: Any
    metadata: dict[str, Any]


def save_model(
    path: str | os.PathLike[str], model: BaseEstimator, metadata: Mapping[str, Any]
) -> None:
    """Write a fitted model; the file appears whole, or stays as it was.

    Parameters
    ----------
    path : path
        The file to write; one that is there is replaced.
    model : estimator
        The fitted model: estimators and kernels of looms, estimators of scikit-learn, pipelines
        of them.
    metadata : mapping
        What to keep beside it; anything that JSON can hold.

    Raises
    ------
    ModelFileError
        If the model holds what `load_model` would refuse, such as a function, or the file cannot
        be written.
    TypeError
        If the metadata are not what JSON can hold.
    ImportError
        If skops is not installed.
    """
    path = Path(path)
    skops_io = require("skops.io", "Writing a model file")
    content = {
        "looms_model_file": _FORMAT,
        "metadata": json.dumps(dict(metadata), allow_nan=False),
        "model": model,
    }
    data = skops_io.dumps(content, compression=zipfile.ZIP_DEFLATED)
    refused = _refused(skops_io.get_untrusted_types(data=data))
    if refused:
        raise ModelFileError(
            path,
            f"the model holds {_listed(refused)}, which a model file may not hold",
            "Use kernels and criteria by name or as looms' objects, not as functions.",
        )
    _write(path, data)


def load_model(path: str | os.PathLike[str]) -> SavedModel:
    """Read a file of `save_model`; no code in it is run.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    saved : SavedModel
        The model and its metadata.

    Raises
    ------
    ModelFileError
        If there is no such file, it is not a model file or a damaged one, it needs a newer looms,
        or names types that are not allowed.
    ImportError
        If skops is not installed.

    Warns
    -----
    UserWarning
        If the model was saved with another version of scikit-learn.
    """
    path = Path(path)
    skops_io = require("skops.io", "Reading a model file")
    data = _read(path)
    try:
        untrusted = skops_io.get_untrusted_types(data=data)
    except zipfile.BadZipFile:
        raise _damaged(path, "it is not a model file, or not a whole one") from None
    except Exception as error:  # whatever skops meets in a file that others may have written
        raise _damaged(path, f"it is not a model file ({_brief(error)})") from error
    refused = _refused(untrusted)
    if refused:
        raise ModelFileError(
            path,
            f"it names {_listed(refused)}, which a model file may not hold",
            f"Nothing was loaded. Use only files that looms wrote; this is looms "
            f"{__version__}, and a file of a newer one may need an upgrade.",
        )
    content = _build(skops_io, data, untrusted, path)
    return _checked(content, path)


def _build(skops_io: Any, data: bytes, trusted: list[str], path: Path) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", InconsistentVersionWarning)
        try:
            content = skops_io.loads(data, trusted=trusted)
        except Exception as error:  # as above
            raise _damaged(path, f"its content is damaged ({_brief(error)})") from error
    other = [w for w in caught if issubclass(w.category, InconsistentVersionWarning)]
    if other:
        first: Any = other[0].message
        warnings.warn(
            f"{path}: saved with scikit-learn {first.original_sklearn_version}, read with "
            f"{first.current_sklearn_version}. If its predictions matter, fit it again or install "
            "the version that it was saved with.",
            stacklevel=3,
        )
    return content


def _checked(content: Any, path: Path) -> SavedModel:
    if not isinstance(content, dict) or not content.keys() >= _KEYS:
        raise ModelFileError(
            path, "it is a skops file, but not of looms", "Name a file that looms wrote."
        )
    if content["looms_model_file"] != _FORMAT:
        raise ModelFileError(
            path,
            f"it has the format {content['looms_model_file']!r}, and looms {__version__} "
            f"reads format {_FORMAT}",
            "Upgrade looms.",
        )
    try:
        metadata = json.loads(content["metadata"])
    except (TypeError, ValueError):
        metadata = None
    if not isinstance(metadata, dict) or not isinstance(content["model"], BaseEstimator):
        raise _damaged(path, "its content is damaged")
    _check_sparse(content["model"], path)
    return SavedModel(content["model"], metadata)


def _check_sparse(model: BaseEstimator, path: Path) -> None:
    """Refuse sparse samples, wherever they are, whose indices would read beyond their arrays."""
    for value in _parts(model):
        if sparse.issparse(value):
            try:
                value.check_format(full_check=True)
            except Exception as error:  # anything may be in a file that others may have written
                raise _damaged(path, f"its content is damaged ({_brief(error)})") from error


def _parts(whole: Any) -> Iterator[Any]:
    """Everything that an object holds, at any depth, itself included; each once."""
    waiting, seen = [whole], set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, Mapping):
            waiting += [*part.keys(), *part.values()]
        elif isinstance(part, list | tuple | set | frozenset):
            waiting += part
        elif isinstance(part, np.ndarray) and part.dtype == object:
            waiting += part.ravel().tolist()
        if not isinstance(part, type):
            waiting += getattr(part, "__dict__", {}).values()


def _refused(untrusted: list[str]) -> list[str]:
    """Of the types that skops does not vouch for, those that are not for a model file either."""
    return [name for name in untrusted if name not in _ALLOWED and not _is_own_type(name)]


def _is_own_type(name: str) -> bool:
    """Whether a dotted name is a class of values that looms itself defines.

    The name is looked up among the modules that this one imports: nothing is imported because
    a file says so. Functions, methods and modules do not pass, nor what looms only imports.
    """
    module_name, _, class_name = name.rpartition(".")
    package, _, inside = module_name.partition(".")
    if package != "looms" or inside.partition(".")[0] not in _ROOMS:
        return False
    found = getattr(sys.modules.get(module_name), class_name, None)
    if not isinstance(found, type) or found.__module__ != module_name:
        return False
    return issubclass(found, BaseEstimator | Enum) or is_dataclass(found)


def _read(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ModelFileError(
            path, "there is no such file", "Check the name and the folder."
        ) from None
    except IsADirectoryError:
        raise ModelFileError(path, "this is a folder", "Name one file in it.") from None
    except OSError as error:
        raise ModelFileError(
            path, f"it cannot be read ({error.strerror})", "Check its permissions."
        ) from error
    if not data:
        raise _damaged(path, "the file is empty")
    return data


def _write(path: Path, data: bytes) -> None:
    try:
        write_whole(path, data)
    except OSError as error:
        advice = advice_on(error, "name a file in a folder of yours")
        problem = f"it cannot be written ({error.strerror})"
        raise ModelFileError(path, problem, f"{advice[0].upper()}{advice[1:]}.") from error


def _damaged(path: Path, problem: str) -> ModelFileError:
    return ModelFileError(path, problem, "Get or fit it again.")


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def _brief(error: Exception) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}: {text[:120]}" if text else type(error).__name__
