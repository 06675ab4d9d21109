"""The fitted machine in an estimator, and the names of its features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from looms._typing import AnyArray, Array
from looms.estimators import machine_of
from looms.estimators._machine import LeastSquaresMachine, one_or_many
from looms.leave_one_out import LeaveOneOut
from looms.tables import SparseColumns, TableColumns
from looms.threshold import BalancedError


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted machine with names for its features.

    Attributes
    ----------
    machine : the last step.
    features : a readable name for every feature of the machine.
    sources : the column of the table that each feature was made of; the feature itself where
        no table is known.
    named : whether the names are more than numbers.
    """

    machine: LeastSquaresMachine
    features: list[str]
    sources: list[str]
    named: bool

    @property
    def classification(self) -> bool:
        return bool(is_classifier(self.machine))

    @property
    def loo(self) -> LeaveOneOut:
        return self.machine.loo_

    @property
    def share(self) -> Array:
        """Weight of every sample over the total, (n_samples,)."""
        weight = self.loo.sample_weight
        return np.asarray(weight / weight.sum())

    @property
    def seen(self) -> AnyArray:
        """Whether a sample has a weight: others took no part, and take none in figures."""
        return np.asarray(self.loo.sample_weight > 0)

    @property
    def weighted(self) -> bool:
        """Whether the samples that took part differ in weight."""
        return bool(np.ptp(self.loo.sample_weight[self.seen]) > 0)

    @property
    def groups(self) -> AnyArray | None:
        """Labels of the samples held out together, (n_samples,); None for each by itself."""
        groups: AnyArray | None = getattr(self.machine, "groups_", None)
        return groups

    @property
    def pairwise(self) -> bool:
        """Whether the samples are rows of a kernel matrix, so that there are no features."""
        return bool(self.machine.kernel_.pairwise)

    @property
    def classes(self) -> list[str]:
        return [str(label) for label in getattr(self.machine, "classes_", [])]

    @property
    def threshold(self) -> float:
        return float(getattr(self.machine, "threshold_", 0.0))


def model_of(estimator: Any) -> Model:
    """The machine of looms in a fitted estimator.

    Parameters
    ----------
    estimator : a fitted machine of looms, a pipeline that ends in one, or a search with such a
        ``best_estimator_``.

    Raises
    ------
    TypeError
        If there is no least-squares machine of looms in it.
    NotFittedError
        If it is not fitted.
    """
    machine = machine_of(estimator)
    if not isinstance(machine, LeastSquaresMachine):
        raise TypeError(
            f"A report shows least-squares machines of looms, such as LSSVMClassifierCV, and "
            f"pipelines that end in one; got {type(estimator).__name__}."
        )
    check_is_fitted(machine, "dual_coef_")
    return named(estimator, machine)


def named(estimator: Any, machine: Any) -> Model:
    """A fitted machine of looms with the names that the estimator around it has for features."""
    estimator = getattr(estimator, "best_estimator_", estimator)
    steps = list(_flattened(estimator[:-1])) if isinstance(estimator, Pipeline) else []
    if steps and isinstance(steps[0], SparseColumns):
        columns = [f"column {column}" for column in steps[0].columns_]
        return Model(machine, columns, columns, False)
    names, sources = _names(estimator, machine)
    if names is None:
        names = [f"feature {k + 1}" for k in range(machine.n_features_in_)]
        return Model(machine, names, names, False)
    return Model(machine, names, sources or names, True)


def candidate_names(machine: Any) -> list[tuple[str, str]]:
    """Kernel and criterion of every candidate, as they were asked for."""
    asked = product(one_or_many(machine.kernel), one_or_many(machine.criterion))
    return [(_name(k), _name(c)) for (k, c), _ in zip(asked, machine.candidates_, strict=False)]


def score_name(machine: Any) -> tuple[str, str]:
    """What the candidates competed by, and the key of the figure that it is, if it is one."""
    if not is_classifier(machine):
        return "root mean square error", "rmse"
    threshold = machine.threshold
    if threshold in (None, "ber") or isinstance(threshold, Real | BalancedError):
        return "balanced error rate", "ber"
    return f"loss of {_name(threshold)}", ""


def check_selected(machine: Any, purpose: str) -> None:
    """TypeError unless the machine chose its hyper-parameters itself."""
    if not hasattr(machine, "selection_"):
        name = type(machine).__name__
        raise TypeError(
            f"{purpose} shows how hyper-parameters were chosen, and {name} was given them; fit "
            f"{name}CV."
        )


def _name(part: Any) -> str:
    return part if isinstance(part, str) else getattr(part, "__name__", None) or repr(part)


def _names(estimator: Any, machine: Any) -> tuple[list[str] | None, list[str] | None]:
    if isinstance(estimator, Pipeline) and len(estimator.steps) > 1:
        readable = _of_table(estimator[:-1])
        if readable is not None:
            return readable
        try:
            names = estimator[:-1].get_feature_names_out()
        except (AttributeError, ValueError):  # a step without names, or names that it lacks
            return None, None
        plain = [str(name) for name in names]
        return (None, None) if _are_numbers(plain) else (plain, None)
    if hasattr(machine, "feature_names_in_"):
        return [str(name) for name in machine.feature_names_in_], None
    return None, None


def _are_numbers(names: Sequence[str]) -> bool:
    """Whether the names are those that scikit-learn makes up."""
    return all(name == f"x{k}" for k, name in enumerate(names))


def _of_table(steps: Any) -> tuple[list[str], list[str]] | None:
    """Readable names and source columns behind `looms.tables.table_preprocessor`."""
    flat = list(_flattened(steps))
    if not (
        len(flat) == 2
        and isinstance(flat[0], TableColumns)
        and isinstance(flat[1], ColumnTransformer)
    ):
        return None
    names: list[str] = []
    sources: list[str] = []
    for kind, transformer, columns in flat[1].transformers_:
        found = list(_columns_of(kind, transformer, [str(c) for c in columns]))
        names += [name for name, _ in found]
        sources += [source for _, source in found]
    return names, sources


def _flattened(steps: Any) -> Any:
    for _, step in steps.steps:
        if isinstance(step, Pipeline):
            yield from _flattened(step)
        else:
            yield step


def _columns_of(kind: str, transformer: Any, columns: list[str]) -> Any:
    """Name and source of every output of one of the transformers of a table."""
    if kind == "numbers":
        yield from ((column, column) for column in columns)
    elif kind == "gaps" and columns:
        for k in transformer.features_:
            yield f"{columns[k]} is missing", columns[k]
    elif kind == "categories" and columns:
        rare = getattr(transformer, "infrequent_categories_", [None] * len(columns))
        for column, values, few in zip(columns, transformer.categories_, rare, strict=True):
            kept = [v for v in values if few is None or v not in few]
            for value in kept:
                missing = isinstance(value, float) and np.isnan(value)
                yield (f"{column} is missing" if missing else f"{column} = {value}"), column
            if few is not None:
                yield f"{column} is rare", column
