"""Names that a model file may hold, by kind of node: what a model of looms is made of.

They are the classes of looms that its estimators, kernels, criteria and rules declare as parts,
some transformers and the splitters of scikit-learn, arrays and plain containers; no functions.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache
from typing import Any, get_args, get_type_hints

import numpy as np
from scipy import sparse
from sklearn import model_selection
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, StandardScaler

from looms.calibration._beta import Beta
from looms.calibration._isotonic import Isotonic
from looms.calibration._sigmoid import Sigmoid
from looms.calibration._softmax import Softmax
from looms.criteria import Criterion
from looms.estimators._model import Model
from looms.estimators._prevalence import PrevalenceClassifier
from looms.estimators._search import Search
from looms.estimators._trees import BoostedTrees
from looms.fitted._ordered import CumulativeSigmoid
from looms.folds import TimeWindows
from looms.kernels import Kernel
from looms.nonconformity import NonconformityClassifier
from looms.scores import WithoutUnits
from looms.selection._objective import HyperPrior
from looms.tables import TablePreprocessor
from looms.threshold import ThresholdRule

#: What inherits from them may be saved. The last are parts that no class declares by their names.
_ROOTS = (
    *(Model, PrevalenceClassifier, NonconformityClassifier, BoostedTrees, TablePreprocessor),
    *(Search, Kernel, Criterion, ThresholdRule, TimeWindows),
    *(Beta, CumulativeSigmoid, Isotonic, Sigmoid, Softmax, HyperPrior),
)
#: Rooms of such classes, which use no files: others may inherit from them, wherever imported.
_ROOMS = re.compile(
    r"looms\.(calibration|criteria|estimators|fitted|folds|held_out|kernels|lssvm|nonconformity"
    r"|optimize|scores|selection|svm|tables|threshold|units)\b"
)
#: Whatever numbers a file gives them, they stay within arrays, as OneHotEncoder, for one, does not.
#: A ColumnTransformer makes a FunctionTransformer of "passthrough".
_TRANSFORMERS = (
    *(ColumnTransformer, FunctionTransformer, MaxAbsScaler, MissingIndicator, Pipeline),
    *(SimpleImputer, StandardScaler),
)
_PLAIN = (np.number, np.str_, np.datetime64, np.timedelta64)


def type_name(kind: Any) -> str:
    """Module and name of a type or function."""
    return f"{kind.__module__}.{kind.__qualname__}"


def classes() -> set[type]:
    """Classes of looms in a model: the roots, what they declare, and what inherits from these."""
    waiting: list[Any] = [*_ROOTS]
    found: set[type] = set()
    while waiting:
        kind = waiting.pop()
        waiting += get_args(kind)  # of unions and containers
        if kind in found or kind is WithoutUnits:  # which is not saved
            continue
        if isinstance(kind, type) and _ROOMS.match(kind.__module__):
            found.add(kind)
            waiting += [*get_type_hints(kind).values(), *kind.__subclasses__()]
    return found


@cache
def admitted() -> dict[str, set[str]]:
    """Names by kind of node, each of which builds what it names in another way."""
    scalars = {type_name(kind) for kind in {*np.sctypeDict.values()} if issubclass(kind, _PLAIN)}
    scalars |= {"numpy.bool", "numpy.bool_"}  # one type; its name depends on the version of NumPy
    members = (kind for kind in vars(model_selection).values() if isinstance(kind, type))
    splitters = {type_name(kind) for kind in members if hasattr(kind, "get_n_splits")}
    plain = ("dict", "list", "set", "slice", "tuple")
    names = {f"{name.title()}Node": {f"builtins.{name}"} for name in plain}
    names |= {
        "JsonNode": {"builtins.str"},
        "NdArrayNode": {"numpy.ndarray", *scalars},
        "DTypeNode": {"numpy.dtype"},
        "SparseMatrixNode": {type_name(sparse.csr_array), type_name(sparse.csr_matrix)},
        # Repeated folds hold the type of their folds.
        "TypeNode": {*map(type_name, (str, int, float, bool)), *scalars, *splitters},
        "ConstructorFromReduceNode": set(),
        "ObjectNode": {*map(type_name, _TRANSFORMERS), *splitters},
    }
    for kind in classes():
        node = "ConstructorFromReduceNode" if issubclass(kind, Enum) else "ObjectNode"
        names["ListNode" if issubclass(kind, list) else node].add(type_name(kind))
    return names
