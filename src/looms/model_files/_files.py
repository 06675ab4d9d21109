"""Saving and loading a model file."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning

from looms._advice import setting
from looms._files import FileError, advice_on, reading, write_whole
from looms._optional import require
from looms._version import __version__
from looms._words import listed
from looms.model_files._archive import TooLarge, audited, bytes_left, packed, schema_of
from looms.model_files._check import check
from looms.model_files._parts import type_name

_FORMAT = 1
_KEYS = {"looms_model_file", "metadata", "model"}
_AGAIN = "Get or fit it again."
_PARTS = (
    "A model file holds fitted models with the options that help(looms.model_files.save_model) "
    "names; prepare the columns by other transformers, and give cv as a list."
)
#: Largest size in bytes that `load_model` reads; enough for 20,000 samples of 6,000 features.
MAX_BYTES = 2**30


class ModelFileError(FileError):
    """Error for a model file that cannot be written or read.

    Examples
    --------
    >>> from looms.model_files import ModelFileError, load_model
    >>> try:
    ...     load_model("missing.looms")
    ... except ModelFileError as error:
    ...     print(error.problem)
    there is no such file
    """


@dataclass(frozen=True)
class SavedModel:
    """Content of a model file.

    Attributes
    ----------
    model : estimator
        The fitted model.
    metadata : dict
        The metadata passed to `save_model`, and ``looms_version``.
    """

    model: Any
    metadata: dict[str, Any]


def save_model(
    path: str | os.PathLike[str],
    model: BaseEstimator,
    metadata: Mapping[str, Any] | None = None,
    *,
    trusted: Collection[type | str] = (),
) -> None:
    """Write a fitted model to a file; an existing file is kept unchanged if that fails.

    Parameters
    ----------
    path : path
        File to write; an existing one is replaced.
    model : estimator
        Fitted model. It may contain estimators and kernels of looms; ``SimpleImputer``,
        ``StandardScaler`` and ``MaxAbsScaler`` of scikit-learn, and its splitters;
        ``ColumnTransformer`` without ``n_jobs``; and pipelines of them without ``memory``.
    metadata : mapping, optional
        Values that JSON can hold. ``looms_version`` is added. ``looms score`` needs ``target``, the
        name of the column to predict.
    trusted : collection of types or of their names, default=()
        Further types that the model holds, such as ``sklearn.decomposition.PCA``. `load_model`
        needs them too.

    Raises
    ------
    ModelFileError
        If the model holds something that `load_model` would refuse, such as a function, or the
        file cannot be written. An existing file is kept unchanged.
    TypeError
        If JSON cannot hold the metadata, or the path is not a path.
    ImportError
        If skops is not installed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from looms import KernelRegressor
    >>> from looms.model_files import load_model, save_model
    >>> model = KernelRegressor("linear", mu=1e-3).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> with TemporaryDirectory() as folder:
    ...     save_model(Path(folder, "model.looms"), model, {"unit": "m"})
    ...     load_model(Path(folder, "model.looms")).metadata["unit"]
    'm'
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"save_model takes the path first, then the model; got {type(path).__name__} as path."
        )
    path = Path(path)
    skops_io = require("skops.io", "Writing a model file")
    content = {
        "looms_model_file": _FORMAT,
        "metadata": json.dumps({"looms_version": __version__, **(metadata or {})}, allow_nan=False),
        "model": model,
    }
    try:
        data = packed(skops_io.dumps(content))
    except TypeError as error:  # of what cannot be pickled
        raise ModelFileError(path, f"the model cannot be written ({error})", _PARTS) from error
    problems, names = audited(schema_of(data), _names(trusted))
    if problems:
        raise ModelFileError(
            path,
            f"the model holds {listed(problems, quoted=str)}, which a model file may not hold",
            "Give kernels and criteria by name or as objects of looms, not as functions; keep "
            "what you add to a model in the metadata of looms.model_files.save_model; name other "
            "types, and their functions, in trusted=[...], to model.save and to looms.load.",
        )
    try:
        _built(skops_io, data, names, path)
    except ValueError as error:
        raise ModelFileError(
            path, f"the model could not be read again ({error})", _PARTS
        ) from error
    try:
        write_whole(path, data)
    except OSError as error:
        advice = advice_on(error, "name a file in a folder of yours")
        problem = f"it cannot be written ({error.strerror})"
        raise ModelFileError(path, problem, f"{advice[0].upper()}{advice[1:]}.") from error


def load_model(
    path: str | os.PathLike[str],
    *,
    trusted: Collection[type | str] = (),
    max_bytes: int = MAX_BYTES,
) -> SavedModel:
    """Model and metadata from a file written by `save_model`; no code in it is run.

    Parameters
    ----------
    path : path
        File to read.
    trusted : collection of types or of their names, default=()
        Types to admit besides those of looms and of `looms.tables.TablePreprocessor`, at your
        own risk: the values that the file gives them are not checked. Functions that they hold are
        named, too, such as ``"numpy.log1p"``. Many estimators of
        scikit-learn can be made to read or write beyond an array (``SVC``, trees,
        ``OneHotEncoder``), or to read a file of the sender's choice (``CountVectorizer``), when
        they predict.
    max_bytes : int, default=2**30
        Largest unpacked size of the file in bytes; its list of types counts sixteenfold.

    Returns
    -------
    saved : SavedModel
        The model and its metadata.

    Raises
    ------
    ModelFileError
        If there is no such file, or it is not a model file, is damaged, is of another version of
        looms, is larger than ``max_bytes``, or names types that are not allowed; or if the parts of
        the fit do not agree.
    ImportError
        If skops is not installed.

    Warns
    -----
    UserWarning
        If the model was saved with another version of scikit-learn, or with a newer looms.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from looms import KernelRegressor
    >>> from looms.model_files import load_model, save_model
    >>> model = KernelRegressor("linear", mu=1e-3).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> with TemporaryDirectory() as folder:
    ...     save_model(Path(folder, "model.looms"), model, {})
    ...     again = load_model(Path(folder, "model.looms")).model
    >>> bool(again.predict([[1.5]]) == model.predict([[1.5]]))
    True
    """
    path = Path(path)
    skops_io = require("skops.io", "Reading a model file")
    data, schema = _opened(path, max_bytes)
    metadata, version = _described(schema, path)
    newer = _release(version) > _release(__version__)
    remedy = "upgrade looms" if newer else "fit the model anew, and save it"
    if version == __version__:
        another = f"Other code of looms {version} wrote it, or it was changed: {remedy}."
    else:
        another = f"Another version of looms wrote it ({version}; this is {__version__}): {remedy}."
    try:
        problems, names = audited(schema, _names(trusted))
        model = None if problems else _built(skops_io, data, names, path)
    except Exception as error:  # a damaged or hostile file may raise any error
        problem = f"its content is damaged ({_brief(error)})"
        advice = _AGAIN if version == __version__ else another
        if trusted and isinstance(error, (ImportError, AttributeError)):
            problem = f"it holds a type of trusted= that cannot be imported here ({_brief(error)})"
            advice = (
                "Define it in a module that can be imported; a class of a script or a notebook "
                "exists only in its __main__: move it to a module, and save again."
            )
        raise ModelFileError(path, problem, advice) from error
    if problems:
        of_looms = any(name.startswith("looms.") for name in problems)
        holder = "a model of this version of looms does" if of_looms else "a model file may"
        advice = "In Python, looms.load(path, trusted=[...]) admits others from people you trust."
        raise ModelFileError(
            path,
            f"it names {listed(problems, quoted=str)}, which {holder} not hold",
            f"Nothing was loaded. {another if newer or of_looms else advice}",
        )
    if newer:
        warnings.warn(
            f"{path}: saved with looms {version}, read with {__version__}. If its predictions "
            "matter, upgrade looms.",
            stacklevel=2,
        )
    return SavedModel(model, metadata)


def load(path: str | os.PathLike[str], *, trusted: Collection[type | str] = ()) -> Any:
    """Fitted model from a file; no code in it is run.

    Parameters
    ----------
    path : path
        File that ``save`` of a model, `save_model` or ``looms fit`` wrote.
    trusted : collection of types or of their names, default=()
        As for `load_model`.

    Returns
    -------
    model : estimator
        The model; `load_model` also gives its metadata.

    Raises
    ------
    ModelFileError, ImportError
        As of `load_model`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import looms
    >>> model = looms.KernelRegressor("linear", mu=1e-3).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> with TemporaryDirectory() as folder:
    ...     model.save(Path(folder, "line.skops"))
    ...     again = looms.load(Path(folder, "line.skops"))
    >>> bool(again.predict([[1.5]]) == model.predict([[1.5]]))
    True
    """
    return load_model(path, trusted=trusted).model


def is_model_file(path: str | os.PathLike[str]) -> bool:
    """True for a file written by `save_model`, by its content, without building the model.

    Parameters
    ----------
    path : path
        File to check.

    Returns
    -------
    is_model : bool
        Also False for a file that cannot be read, or that is larger than `load_model` reads.
    """
    try:
        _, schema = _opened(Path(path), MAX_BYTES)
        return bool(schema["content"].keys() >= _KEYS)
    except ModelFileError:
        return False


def _opened(path: Path, max_bytes: int) -> tuple[bytes, Any]:
    """Content of the file, which is of limited size when unpacked, and its list of types."""
    with reading(path, ModelFileError):
        data = path.read_bytes()
    if not data:
        raise ModelFileError(path, "the file is empty", _AGAIN)
    if not data.startswith(b"PK"):
        raise ModelFileError(
            path, "it is not a model file", "looms fit and the models' save() write them."
        )
    try:
        bytes_left(data, max_bytes)
        schema = schema_of(data)
        schema["content"].keys()
        return data, schema
    except TooLarge:
        raise ModelFileError(
            path,
            f"unpacked it is larger than {max_bytes} bytes",
            f"If you trust its source, allow more by {setting('max_bytes')}.",
        ) from None
    except Exception as error:  # such as a compressed stream that is none
        problem = f"it is not a model file, or not a whole one ({_brief(error)})"
        raise ModelFileError(path, problem, _AGAIN) from error


def _names(trusted: Collection[type | str]) -> set[str]:
    return {one if isinstance(one, str) else type_name(one) for one in trusted}


def _described(schema: Any, path: Path) -> tuple[dict[str, Any], str]:
    """Metadata of a file, and the version of looms that wrote it.

    They are read before the model, because another version may have other types.
    """
    content = schema["content"]
    if not content.keys() >= _KEYS:
        raise ModelFileError(
            path, "it is a skops file, but not one of looms", "Name a file that looms wrote."
        )
    written = _plain(content["looms_model_file"])
    if written != _FORMAT:
        raise ModelFileError(
            path,
            f"it has the format {written!r}, and looms {__version__} reads format {_FORMAT}",
            "Upgrade looms.",
        )
    metadata = _plain({"content": _plain(content["metadata"])})
    if not isinstance(metadata, dict):
        raise ModelFileError(path, "its content is damaged (it has no metadata)", _AGAIN)
    version = metadata.get("looms_version")
    return metadata, version if isinstance(version, str) else "unknown"


def _plain(node: Any) -> Any:
    """Text or number of a node of a skops file, or None."""
    try:
        return json.loads(node["content"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


def _release(version: str) -> tuple[int, ...]:
    """Leading numbers of a version."""
    numbers = re.match(r"\d{1,9}(\.\d{1,9})*", version)
    return tuple(map(int, numbers[0].split("."))) if numbers else ()


def _built(skops_io: Any, data: bytes, names: set[str], path: Path) -> BaseEstimator:
    """Model built from names that are admitted, and checked; ValueError if it is no estimator."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", InconsistentVersionWarning)
        model = skops_io.loads(data, trusted=sorted(names))["model"]
    if not isinstance(model, BaseEstimator):
        raise ValueError(f"the model is of type {type(model).__name__}")
    check(model)
    other = [w for w in caught if issubclass(w.category, InconsistentVersionWarning)]
    if other:
        first: Any = other[0].message
        warnings.warn(
            f"{path}: saved with scikit-learn {first.original_sklearn_version}, read with "
            f"{first.current_sklearn_version}. If its predictions matter, fit it again or install "
            "that version.",
            stacklevel=3,
        )
    return model


def _brief(error: Exception) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}: {text[:120]}" if text else type(error).__name__
