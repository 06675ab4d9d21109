"""Data sets of two classes for the plans, from the challenge or from any file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import fetch_openml
from sklearn.model_selection import train_test_split

from looms._checks import check_known
from looms._optional import require
from looms._typing import AnyArray, Matrix
from looms.datasets import TableError, read_table
from looms.tables import Columns
from looms.tables._kinds import texts_of
from papers.challenge._files import read_challenge
from papers.challenge._preparation import DENSE, PREPARATIONS, Preparation

DATASETS = ("ada", "gina", "hiva", "nova", "sylva")

#: Data ids of the agnostic-track sets, ``NAME_agnostic``.
OPENML = {"ada": 1043, "gina": 1038, "hiva": 1039, "sylva": 1040}

#: Environment variable that names the local folder, if no folder is given.
FOLDER_VARIABLE = "LOOMS_DATA"


class ChallengeDataError(ValueError):
    """Error for a data set that is unavailable or does not have two classes, with advice."""


@dataclass(frozen=True, eq=False)
class ChallengeData:
    """Data set of two classes.

    Attributes
    ----------
    name : "ada", "gina", "hiva", "nova" or "sylva", or the name of a file.
    X : samples as an array of floats, a sparse array, or a data frame.
    y : labels -1 and 1.
    preparation : how the columns are prepared in every split.
    positive : classes of a file that became 1; empty if there are no other labels.

    Raises
    ------
    ChallengeDataError
        If the labels are not one -1 or 1 per sample, or the samples are sparse and the
        preparation would make them dense.
    ValueError
        If the preparation is unknown.
    """

    name: str
    X: Any
    y: AnyArray
    preparation: Preparation
    positive: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_known(self.preparation, "preparation", PREPARATIONS)
        if np.shape(self.y) != self.X.shape[:1] or not np.isin(self.y, (-1, 1)).all():
            raise ChallengeDataError(
                f"{self.name}: y must hold one label, -1 or 1, for each of the {self.X.shape[0]} "
                f"samples, but has shape {np.shape(self.y)} and the values "
                f"{', '.join(map(str, np.unique(self.y)[:5]))}; np.where(y == positive, 1, -1) "
                "makes such labels."
            )
        if sparse.issparse(self.X) and self.preparation in DENSE:
            raise ChallengeDataError(
                f"{self.name}: the preparation {self.preparation!r} is not for sparse samples, "
                "which it would fill; use 'table', which scales them and keeps their zeros."
            )

    @property
    def paper_name(self) -> str | None:
        """Name of the papers' set that this set belongs to, or None."""
        stem = self.name.partition("_")[0]
        return stem if stem in DATASETS else None

    def of_rows(self, rows: AnyArray) -> ChallengeData:
        """Data set of some of the rows, in the given order."""
        X = self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows]
        return replace(self, X=X, y=self.y[rows])

    def subsample(self, n_rows: int, random_state: int = 0) -> ChallengeData:
        """Data set of random rows, keeping the share of each class.

        Raises
        ------
        ValueError
            If there are not more rows than that, or a class would have none.
        """
        rows, _ = train_test_split(
            np.arange(len(self.y)), train_size=n_rows, stratify=self.y, random_state=random_state
        )
        return self.of_rows(np.sort(rows))


def fetch(
    name: str,
    folder: str | os.PathLike[str] | None = None,
    *,
    preparation: Preparation | None = None,
) -> ChallengeData:
    r"""Data set of the challenge, from a local folder or else from OpenML.

    Parameters
    ----------
    name : str
        "ada", "gina", "hiva", "nova" or "sylva", in upper or lower case, or the name of another
        part that is in the folder, such as "sylva_valid".
    folder : path, optional
        Folder to look in first, for ``NAME_train.data`` with ``NAME_train.labels`` as the
        challenge published them, ``NAME.data`` with ``NAME.labels`` ("ada_valid" is the
        validation part), or ``NAME.csv`` with a column ``target``; ``.gz`` may follow. By default
        the environment variable LOOMS_DATA names it.
    preparation : str, optional
        Name of a preparation; by default that of the papers for the set.

    Returns
    -------
    data : ChallengeData
        The samples.

    Raises
    ------
    ChallengeDataError
        If the folder holds only some of the files, or the download fails.
    TableError
        If a file is damaged.
    ValueError
        If the preparation is unknown.

    Notes
    -----
    ``sklearn.datasets.fetch_openml``, which keeps a copy, gets the agnostic-track sets ada (1043),
    gina (1038), hiva (1039) and sylva (1040) from OpenML. They are described as the training and
    validation parts together, while the papers trained on the training part. These data ids are
    not tested over the network; a set with another name is an error. NOVA is not known to be on
    OpenML.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from papers.challenge import fetch
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "hiva_train.data").write_text("0.5 1\n1 0\n0 2\n")
    ...     _ = Path(folder, "hiva_train.labels").write_text("-1\n1\n-1\n")
    ...     data = fetch("hiva", folder)
    >>> data.X.shape, data.y.tolist()
    ((3, 2), [-1, 1, -1])
    """
    stem = name.lower().partition("_")[0]
    name = name.lower() if stem in DATASETS else name
    own: Preparation = next((kind for kind in PREPARATIONS if kind == stem), "table")
    kind = preparation or own
    check_known(kind, "preparation", PREPARATIONS)
    where = folder if folder is not None else os.environ.get(FOLDER_VARIABLE)
    path = None if where is None else local_file(name, Path(where))
    if path is None:
        X, y = openml(name, where)
        return ChallengeData(name, X, _signs(y, (), name)[0], kind)
    if ".data" in path.suffixes:
        X, y = _read_pair(path)
    else:
        table = read_table(path, "target")
        X, y = _typed(table.X), table.y
    return ChallengeData(name, _matrix(X), _signs(y, (), str(path))[0], kind)


def local_file(name: str, folder: Path) -> Path | None:
    """File of a set in a folder, with labels in it or in another file there; or None.

    Raises
    ------
    ChallengeDataError
        If there is no such folder, or it has only some of the files of the set.
    """
    if not folder.is_dir():
        raise ChallengeDataError(f"{folder}: there is no such folder; name the data's folder.")
    for stem in (f"{name}_train", name):
        data, labels = (_there(folder, f"{stem}.{kind}") for kind in ("data", "labels"))
        if data is not None and labels is not None:
            return data
    table = _there(folder, f"{name}.csv")
    if table is not None:
        return table
    present = sorted(
        path.name
        for path in (*folder.glob(f"{name}_*"), *folder.glob(f"{name}.*"))
        if {".data", ".labels"} & {*path.suffixes}
    )
    if present:
        stem = name if f"{name}." in "".join(present) else f"{name}_train"
        absent = [f"{stem}.{k}" for k in ("data", "labels") if not _there(folder, f"{stem}.{k}")]
        raise ChallengeDataError(
            f"{folder} has {', '.join(present)} but not {' nor '.join(absent)}: put the missing "
            "file there too, or name another folder."
        )
    return None


def openml(name: str, folder: str | os.PathLike[str] | None) -> tuple[Any, Any]:
    """Samples and labels of an agnostic-track set from OpenML.

    Raises
    ------
    ChallengeDataError
        If the set is not on OpenML, or the download fails or has another name.
    """
    looked = "" if folder is None else f" in {folder}"
    by_hand = (
        f"put {name}_train.data and {name}_train.labels, or {name}.csv with a column target, into "
        f"a folder, and name it by `folder` or in {FOLDER_VARIABLE}"
    )
    if name not in OPENML:
        raise ChallengeDataError(
            f"There is no set {name!r}{looked}, and OpenML is known to have only "
            f"{', '.join(OPENML)}: {by_hand}."
        )
    try:
        bunch = fetch_openml(data_id=OPENML[name], as_frame=False)
    except (OSError, ValueError) as error:  # OSError: all that networks and caches raise
        raise ChallengeDataError(
            f"{name} is not{looked or ' in a folder'}, and could not be downloaded from "
            f"OpenML (data id {OPENML[name]}: {error}). Connect to the network, or {by_hand}."
        ) from error
    called = str(bunch.details.get("name", ""))
    if not called.lower().startswith(name):
        raise ChallengeDataError(
            f"OpenML's set {OPENML[name]} is {called!r}, not {name}: {by_hand}."
        )
    return bunch.data, bunch.target


def _there(folder: Path, name: str) -> Path | None:
    files = (folder / name, folder / f"{name}.gz")
    return next((path for path in files if path.exists()), None)


def load_file(
    path: str | os.PathLike[str],
    target: str | None = None,
    *,
    positive: Sequence[str] = (),
    preparation: Preparation = "table",
) -> ChallengeData:
    r"""Data set of two classes from any file.

    Parameters
    ----------
    path : path
        File that `looms.datasets.read_table` can read; ``NAME.data`` with ``NAME.labels`` in the
        same folder; or ``NAME_X.npz``, a sparse matrix written by ``scipy.sparse.save_npz``, with
        its labels in ``NAME_y.csv`` in the same folder.
    target : str, optional
        Column to predict; for ``.npz`` by default the only column of the labels. Not for ``.data``.
    positive : sequence of str, optional
        Classes that together are positive; for two classes by default the last in order.
    preparation : str, default="table"
        How columns are prepared: "table" as for `looms fit`, or the name of a set of the papers
        as they do for that set.

    Raises
    ------
    ChallengeDataError
        If there are not two classes and ``positive`` is empty, the labels are missing, or the
        samples are sparse and the preparation would make them dense.
    TableError
        If a file cannot be read.
    ValueError
        If the preparation is unknown.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from papers.challenge import load_file
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "iris.csv")
    ...     _ = path.write_text("width,kind\n3.5,setosa\n3.0,versicolor\n")
    ...     data = load_file(path, "kind", positive=["setosa"])
    >>> data.y.tolist()
    [1, -1]
    """
    check_known(preparation, "preparation", PREPARATIONS)
    path = Path(path)
    if path.suffix == ".npz":
        X, y = _read_npz(path, target)
        name = path.stem.removesuffix("_X")
    elif ".data" in path.suffixes:
        if target is not None:
            raise ChallengeDataError(
                f"{path}: its labels are in a file of their own; leave out the target {target!r}."
            )
        (X, y), name = _read_pair(path), path.name.partition(".data")[0]
    else:
        table = read_table(path, target)
        X, y, name = _typed(table.X), table.y, table.name
    if y is None:
        raise ChallengeDataError(
            f"{path}: it has no labels; name their column as the target, or put them next to it."
        )
    if preparation != "table":
        X = _matrix(X)
    signs, taken = _signs(y, positive, str(path))
    return ChallengeData(name, X, signs, preparation, taken)


def _read_pair(data: Path) -> tuple[Matrix, AnyArray]:
    name = f"{data.name.partition('.data')[0]}.labels"
    labels = _there(data.parent, name)
    if labels is None:
        raise ChallengeDataError(f"{data}: its labels are missing; put them next to it as {name}.")
    return read_challenge(data, labels)


def _read_npz(path: Path, target: str | None) -> tuple[Any, Any]:
    X = read_table(path).X
    beside = path.with_name(f"{path.stem.removesuffix('_X')}_y.csv")
    if not beside.exists():
        raise ChallengeDataError(
            f"{path}: its labels are missing; put them next to it as {beside.name}, with a header."
        )
    labels = read_table(beside).X
    column = target if target is not None else labels.columns[0]
    if column not in labels.columns or (target is None and labels.shape[1] != 1):
        raise TableError(
            beside,
            f"the column of labels is not clear among {', '.join(labels.columns)}",
            "Name it as the target.",
        )
    if len(labels) != X.shape[0]:
        raise TableError(
            beside,
            f"there are {len(labels)} labels for {X.shape[0]} rows",
            "Get both again, whole.",
        )
    return X, labels[column]


def _signs(y: Any, positive: Sequence[str], where: str) -> tuple[AnyArray, tuple[str, ...]]:
    """Labels -1 and 1, and the classes coded as 1."""
    labels = texts_of(require("pandas", "Reading tables").Series(np.asarray(y)))
    classes = sorted(set(labels.tolist()), key=_order)
    chosen = set(positive)
    unknown = sorted(chosen - set(classes))
    if unknown:
        raise ChallengeDataError(
            f"{where}: there is no class {unknown[0]!r}; the classes are {', '.join(classes[:20])}."
        )
    if not chosen and len(classes) != 2:
        raise ChallengeDataError(
            f"{where}: there are {len(classes)} classes, but an experiment has two; say which "
            f"together are `positive` among {', '.join(classes[:20])}."
        )
    chosen = chosen or {classes[-1]}
    if len(chosen) == len(classes):
        raise ChallengeDataError(
            f"{where}: all classes are positive, which leaves nothing to learn."
        )
    taken = tuple(label for label in classes if label in chosen)
    return np.where(np.isin(labels.astype(str), taken), 1, -1), taken


def _order(label: str) -> tuple[float, str]:
    try:
        return float(label), label
    except ValueError:
        return float("inf"), label


def _typed(X: Any) -> Any:
    """Samples of a file, their types those of the whole table, the same in every split."""
    return X if sparse.issparse(X) else Columns.of(X).typed(X)


def _matrix(X: Any) -> Matrix:
    """Samples as floats, for the preparations of the papers."""
    if not hasattr(X, "to_numpy"):
        return X
    try:
        return X.to_numpy(dtype=float)
    except ValueError as error:
        raise ChallengeDataError(
            f"A preparation of the papers needs columns of numbers ({error}); use 'table'."
        ) from error
