"""Which samples a machine rests on, which surprise it, and which are probably mislabelled.

Sources are cited by the keys of docs/references.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from looms._classes import class_indices
from looms._optional import require
from looms._typing import AnyArray, Array
from looms.criteria import WMW, Criterion, as_criterion
from looms.diagnostics._margins import loo_margins
from looms.estimators import (
    LSSVMClassifier,
    LSSVMClassifierCV,
    LSSVMRegressor,
    LSSVMRegressorCV,
    machine_of,
)
from looms.estimators._loo_models import machine_models
from looms.lssvm import LeaveOneOutModels

if TYPE_CHECKING:
    import pandas as pd

_NUMBERS = 1 << 20
_CLASSIFIERS = (LSSVMClassifier, LSSVMClassifierCV)
_MACHINES = (*_CLASSIFIERS, LSSVMRegressor, LSSVMRegressorCV)


@dataclass(frozen=True, eq=False, repr=False)
class CaseDeletion:
    """What leaving out each sample does to a fitted machine. The result of `case_deletion`.

    All arrays have one entry, or row, a training sample. Changes are those from the machine
    trained on all samples to the one trained on the others, exact, hyper-parameters held. A
    sample of weight zero, which the machine has not seen, has its residual and margin; the
    rest is NaN.

    Attributes
    ----------
    names : (n,) names of the samples.
    residual : (n,) or (n, t) leave-one-out residual, in units of the targets; ±1 for classes.
    surprise : (n,) standardised leave-one-out residual, r_i √p_i over its root mean square:
        about 1 is what the machine expects. 1 / p_i is the variance that a Gaussian process
        expects there [SK01], larger where samples are few. Over several targets the root
        mean square.
    leverage : (n,) ∂f(x_i) / ∂y_i, from 0 to 1.
    own_change : (n,) or (n, t) f⁽⁻ⁱ⁾(x_i) − f(x_i).
    largest_change : (n,) largest |f⁽⁻ⁱ⁾(x_j) − f(x_j)| over the other samples j.
    rms_change : (n,) root mean square of the same.
    criterion_change : (n,) criterion on leave-one-out outputs of the machine trained on the
        others less the one on all: negative if the criterion would be better without the
        sample. NaN where it is not defined, as "wmw" without the only member of a class.
    criterion : name of the criterion.
    margin : (n,) leave-one-out margin, the output for the sample's own class less the largest of
        the others (t (f − threshold) for two classes); None for regression.
    label, predicted : (n,) class given, and that of the machine without the sample, which is
        another one where the margin is negative; None for regression.
    """

    names: AnyArray
    residual: Array
    surprise: Array
    leverage: Array
    own_change: Array
    largest_change: Array
    rms_change: Array
    criterion_change: Array
    criterion: str
    margin: Array | None = None
    label: AnyArray | None = None
    predicted: AnyArray | None = None

    @property
    def table(self) -> pd.DataFrame:
        """A row a sample in the order of training, by name; of several targets norms."""
        pandas = require("pandas", "The table of case deletions")
        columns: dict[str, Any] = {
            "rms_change": self.rms_change,
            "largest_change": self.largest_change,
            "own_change": _norm(self.own_change),
            "criterion_change": self.criterion_change,
            "leverage": self.leverage,
            "residual": _norm(self.residual),
            "surprise": self.surprise,
        }
        if self.margin is not None:
            columns |= {"margin": self.margin, "label": self.label, "predicted": self.predicted}
        return pandas.DataFrame(columns, index=pandas.Index(self.names, name="sample"))

    def most_influential(self, n: int = 10) -> pd.DataFrame:
        """The `n` samples that change the outputs at the others most, by `rms_change`."""
        return self.table.iloc[_order(-self.rms_change)[:n]]

    def most_surprising(self, n: int = 10) -> pd.DataFrame:
        """The `n` samples of the largest `surprise`."""
        return self.table.iloc[_order(-self.surprise)[:n]]

    def mislabelled(self, n: int | None = None) -> pd.DataFrame:
        """Samples whose label the machine trained without them contradicts, the clearest first.

        Those of negative `margin`, smallest first. Where classes overlap, most of them are not
        wrong; the first are the ones to look at.

        Parameters
        ----------
        n : int, optional
            How many at most; all unless given.

        Raises
        ------
        ValueError
            For a regressor, whose samples have no labels.
        """
        if self.margin is None:
            raise ValueError("A regressor has no labels; see most_surprising() for its samples.")
        order = _order(self.margin)
        return self.table.iloc[order[self.margin[order] < 0][:n]]

    def __repr__(self) -> str:
        parts = [f"n_samples={len(self.names)}", f"criterion={self.criterion!r}"]
        seen = np.flatnonzero(np.isfinite(self.rms_change))
        if len(seen):
            top = self.names[seen[np.argmax(self.rms_change[seen])]]
            parts.append(f"most_influential={_plain(top)!r}")
        if self.margin is not None:
            parts.append(f"n_contradicted={int((self.margin < 0).sum())}")
        return f"CaseDeletion({', '.join(parts)})"


def case_deletion(model: Any, *, names: Any = None, criterion: Any = None) -> CaseDeletion:
    """What leaving out each training sample does to a fitted machine, without refitting.

    With α, r, P, p and λ as in docs/references.md,

        f⁽⁻ⁱ⁾(x_j) − f(x_j) = λ_j P_ji r_i for j ≠ i, and −r_i (1 − λ_i p_i) for j = i;

    and the leave-one-out outputs of the machine without sample i, on which the criterion
    without it depends, follow from (α_j − P_ji r_i) / (p_j − P_ji² / p_i).

    Parameters
    ----------
    model : LSSVMClassifier, LSSVMClassifierCV, LSSVMRegressor or LSSVMRegressorCV
        Fitted; of a pipeline the last step counts, of a search its ``best_estimator_``.
    names : array-like of shape (n_samples,), or a DataFrame or Series, default=None
        Names of the training samples, or what has them as its index. Their positions
        unless given.
    criterion : str or looms.criteria.Criterion, default=None
        The criterion whose change is wanted; that of the selection for a machine that
        chose its hyper-parameters, else "press". Samples count by their `sample_weight`,
        without the `selection_weight` of the classes there.

    Returns
    -------
    found : CaseDeletion
        With a table, and lists of the samples to look at.

    Raises
    ------
    TypeError
        If the model is none of these machines.
    ValueError
        If there are not as many names as samples, fewer than three samples, or the criterion
        judges classes and the model is a regressor.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Notes
    -----
    n³ flops and one n×n array, once for a machine; O(n²) a target beyond, in blocks of bounded
    memory; and n times the cost of the criterion, which for "wmw" is O(n₊ n₋).

    Examples
    --------
    >>> import numpy as np
    >>> from looms import LSSVMRegressor
    >>> from looms.diagnostics import case_deletion
    >>> X = np.linspace(0, 1, 30)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> y[20] += 1                                    # a slip of the pen
    >>> found = case_deletion(LSSVMRegressor(mu=1e-3).fit(X, y))
    >>> found
    CaseDeletion(n_samples=30, criterion='press', most_influential=20)
    >>> found.most_surprising(1).index.tolist()
    [20]
    """
    machine = _fitted_machine(model)
    names = _checked_names(names, machine.loo_.n_samples)
    chosen, criterion_name = _chosen_criterion(machine, criterion)
    trained = machine_models(machine)
    models, seen = trained.models, trained.seen
    if len(models.P) < 3:
        raise ValueError(
            f"Case deletion needs three samples of non-zero weight or more, got {len(models.P)}."
        )
    y, weight = machine.loo_.y[seen], machine.loo_.sample_weight[seen]
    seen_only = {
        "surprise": _surprise(models),
        "leverage": models.leverage,
        **_changes(models),
        "criterion_change": _criterion_changes(models, chosen, y, weight),
    }
    return CaseDeletion(
        names=names,
        residual=machine.loo_.residuals,
        criterion=criterion_name,
        **{name: _among_all(values, seen) for name, values in seen_only.items()},
        **(_labels(machine) if isinstance(machine, _CLASSIFIERS) else {}),
    )


def _surprise(models: LeaveOneOutModels) -> Array:
    z = models.residuals.reshape(len(models.P), -1) * np.sqrt(models.p)[:, None]
    z /= np.sqrt(np.mean(z**2, axis=0)) + np.finfo(np.float64).tiny  # all may be zero
    return np.asarray(np.sqrt(np.mean(z**2, axis=1)))


def _changes(models: LeaveOneOutModels) -> dict[str, Array]:
    """Of the own output, and over the other samples and all targets."""
    n = len(models.P)
    own = np.empty_like(models.residuals)
    largest, squares = np.empty(n), np.empty(n)
    for block in _blocks(models):
        changes = models.changes(block)
        places = np.arange(n)[block], np.arange(changes.shape[1])
        own[block] = changes[places]
        others = np.abs(changes.reshape(*changes.shape[:2], -1))
        others[places] = 0.0
        largest[block] = others.max(axis=(0, 2))
        squares[block] = (others**2).sum(axis=(0, 2)) / ((n - 1) * others.shape[2])
    return {"own_change": own, "largest_change": largest, "rms_change": np.sqrt(squares)}


def _blocks(models: LeaveOneOutModels) -> Iterator[slice]:
    """Samples to leave out, as many as give an array of samples × them × targets 2²⁰ numbers."""
    step = max(1, _NUMBERS // models.fit.alpha.size)
    return (slice(start, start + step) for start in range(0, len(models.P), step))


def _criterion_changes(
    models: LeaveOneOutModels, criterion: Criterion, y: Array, weight: Array
) -> Array:
    """Criterion of the machine without each sample, on the others, less that of the whole."""
    n = len(y)
    whole = criterion.evaluate(y, y - models.residuals, weight).value
    changes = np.empty(n)
    for block in _blocks(models):
        residuals = models.pair_residuals(block)
        for column, i in enumerate(range(n)[block]):
            rest = np.arange(n) != i
            if isinstance(criterion, WMW) and np.ptp(y[rest], axis=0).min() == 0:
                changes[i] = np.nan
                continue
            outputs = y[rest] - residuals[rest, column]
            changes[i] = criterion.evaluate(y[rest], outputs, weight[rest]).value - whole
    return changes


def _labels(machine: Any) -> dict[str, AnyArray]:
    margins, label = loo_margins(machine), class_indices(machine.loo_.y)
    return {
        "margin": margins[np.arange(len(label)), label],
        "label": machine.classes_[label],
        "predicted": machine.classes_[margins.argmax(axis=1)],
    }


def _among_all(values: Array, seen: Any) -> Array:
    """Values of the samples seen at their places among all, NaN at the others."""
    spread = np.full((len(seen), *values.shape[1:]), np.nan)
    spread[seen] = values
    return spread


def _fitted_machine(model: Any) -> Any:
    machine = machine_of(model)
    if not isinstance(machine, _MACHINES):
        raise TypeError(
            "Case deletion in closed form is for fitted LSSVMClassifier, LSSVMRegressor, their CV "
            f"versions, and pipelines and searches that end in one, got {type(model).__name__}."
        )
    check_is_fitted(machine, "dual_coef_")
    return machine


def _checked_names(names: Any, n: int) -> AnyArray:
    if names is None:
        return np.arange(n)
    names = names.index if hasattr(names, "iloc") else names
    found: AnyArray = np.asarray(names)
    if found.shape != (n,):
        raise ValueError(
            f"names must hold one name for each of the {n} training samples, but has shape "
            f"{found.shape}."
        )
    return found


def _chosen_criterion(machine: Any, criterion: Any) -> tuple[Criterion, str]:
    if criterion is None:
        chosen = hasattr(machine, "candidates_")
        criterion = machine.candidates_[machine.best_index_].criterion if chosen else "press"
    found = as_criterion(criterion)
    if found.needs_labels and not isinstance(machine, _CLASSIFIERS):
        raise ValueError(f"Criterion {criterion!r} judges classes; for regression use 'press'.")
    return found, criterion if isinstance(criterion, str) else repr(criterion)


def _norm(values: Array) -> Array:
    """Values of one target as they are, Euclidean norms over several."""
    return values if values.ndim == 1 else np.asarray(np.linalg.norm(values, axis=1))


def _order(values: Array) -> AnyArray:
    """Positions of the finite values, smallest first."""
    order: AnyArray = np.argsort(values, kind="stable")
    return np.asarray(order[np.isfinite(values[order])])


def _plain(name: Any) -> Any:
    return name.item() if isinstance(name, np.generic) else name
