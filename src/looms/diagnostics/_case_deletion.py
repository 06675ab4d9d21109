"""Influential, surprising and probably mislabeled samples of a least-squares machine.

Sources are cited by the keys of docs/references.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from looms._classes import class_indices
from looms._optional import require
from looms._typing import AnyArray, Array
from looms.conformal._sets import class_margins
from looms.criteria import WMW, Criterion, as_criterion
from looms.estimators import SVCCV, machine_of
from looms.estimators._search import chosen_criterion
from looms.held_out import HeldOut
from looms.lssvm.leave_one_out_models import LeaveOneOutModels

if TYPE_CHECKING:
    import pandas as pd

_NUMBERS = 1 << 20  # in an array of a block of samples left out


@dataclass(frozen=True, eq=False, repr=False)
class CaseDeletion:
    """Effect of every training sample on a machine, the result of `case_deletion`.

    All arrays have one entry, or row, per training sample. Changes are exact, from the machine
    trained on all samples to the one trained on the others at the same hyper-parameters. A sample
    of weight zero takes no part in the training: it has a residual and a margin, else NaN.

    Attributes
    ----------
    names : (n,) names of the samples.
    residual : (n,) or (n, t) leave-one-out residual, in units of the targets; ±1 for classes. Of
        a machine that holds out groups or folds, this and the margin are without those of the
        sample; all changes are those of one sample left out by itself.
    surprise : (n,) standardized leave-one-out residual, r_i √p_i over its root mean square:
        about 1 for an ordinary sample. 1 / p_i is the variance that a Gaussian process
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

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import LSSVMClassifier
    >>> result = case_deletion(LSSVMClassifier(mu=1e-4).fit(*load_iris(return_X_y=True)))
    >>> result.mislabeled(3).index.tolist()
    [83, 106, 133]
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
        """All quantities: a row per sample, by name; norms over several targets."""
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

    def mislabeled(self, n: int | None = None) -> pd.DataFrame:
        """Samples whose label contradicts the machine trained without them, the clearest first.

        These have a negative `margin`, smallest first. Where classes overlap, most of them are
        not wrong; look at the first ones.

        Parameters
        ----------
        n : int, default=None
            Largest number of them; all unless given.

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
        order = _order(-self.rms_change)
        if len(order):
            parts.append(f"most_influential={self.names[order[:1]].tolist()[0]!r}")
        if self.margin is not None:
            parts.append(f"n_contradicted={int((self.margin < 0).sum())}")
        return f"CaseDeletion({', '.join(parts)})"


def case_deletion(
    model: Any, *, names: Any = None, criterion: str | Criterion | None = None
) -> CaseDeletion:
    """Effect of every training sample on a fitted least-squares machine, without refitting.

    With α, r, P, p and λ as in docs/references.md,

        f⁽⁻ⁱ⁾(x_j) − f(x_j) = λ_j P_ji r_i for j ≠ i, and −r_i (1 − λ_i p_i) for j = i;

    and the leave-one-out outputs of the machine without sample i, on which the criterion
    without it depends, follow from (α_j − P_ji r_i) / (p_j − P_ji² / p_i).

    Parameters
    ----------
    model : LSSVMClassifier, LSSVMClassifierCV, LSSVMRegressor or LSSVMRegressorCV
        Fitted; of a pipeline the last step counts, of a search its ``best_estimator_``.
    names : array-like of shape (n_samples,), or a DataFrame or Series, default=None
        Names of the training samples, or a table with them as its index. Positions from 0
        unless given.
    criterion : str or looms.criteria.Criterion, default=None
        Criterion of ``criterion_change``. Unless given it is that of the selection for a machine
        that chose its hyper-parameters, else "press". Samples count by their `sample_weight`,
        without the `selection_weight` of the classes there.

    Returns
    -------
    case_deletion : CaseDeletion
        A table, and lists of the samples to look at.

    Raises
    ------
    TypeError
        If the model is none of these machines.
    ValueError
        If there are not as many names as samples, fewer than three samples, or a criterion of
        classes for a regressor.
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
    >>> result = case_deletion(LSSVMRegressor(mu=1e-3).fit(X, y))
    >>> result
    CaseDeletion(n_samples=30, criterion='press', most_influential=20)
    >>> result.most_surprising(1).index.tolist()
    [20]
    """
    machine = machine_of(model)
    if machine is None or isinstance(machine, SVCCV):
        raise TypeError(
            "Case deletion in closed form is for fitted LSSVMClassifier, LSSVMRegressor, their CV "
            f"versions, and pipelines and searches that end in one, got {type(model).__name__}."
        )
    check_is_fitted(machine, "dual_coef_")
    n, classifier = machine.loo_.n_samples, is_classifier(machine)
    names = names.index if hasattr(names, "iloc") else names
    names = np.arange(n) if names is None else np.asarray(names)
    if names.shape != (n,):
        raise ValueError(
            f"names must hold one name for each of the {n} training samples, but has shape "
            f"{names.shape}."
        )
    criterion = chosen_criterion(machine) if criterion is None else criterion
    chosen = as_criterion(criterion)
    if chosen.needs_labels and not classifier:
        raise ValueError(f"Criterion {criterion!r} judges classes; for regression use 'press'.")
    trained = machine.leave_one_out_models()
    models, train = trained.models, trained.train
    if len(models.P) < 3:
        raise ValueError(
            f"Case deletion needs three samples of non-zero weight or more, got {len(models.P)}."
        )
    z = models.residuals.reshape(len(models.P), -1) * np.sqrt(models.p)[:, None]
    z /= np.sqrt(np.mean(z**2, axis=0)) + np.finfo(np.float64).tiny  # all may be zero
    of_train = {
        "surprise": np.sqrt(np.mean(z**2, axis=1)),
        "leverage": models.leverage,
        **_changes(models, chosen, *(each[train] for each in machine.loo_)),
    }
    of_all = {}
    for quantity, values in of_train.items():
        of_all[quantity] = np.full((n, *values.shape[1:]), np.nan)
        of_all[quantity][train] = values
    if classifier:
        margins, label = loo_margins(machine), class_indices(machine.loo_.y)
        of_all["margin"] = margins[np.arange(n), label]
        of_all["label"] = machine.classes_[label]
        of_all["predicted"] = machine.classes_[margins.argmax(axis=1)]
    return CaseDeletion(
        names=names,
        residual=machine.held_out_.residuals,
        criterion=criterion if isinstance(criterion, str) else repr(criterion),
        **of_all,
    )


def held_out_of(machine: Any) -> HeldOut:
    """Outputs without the fold or group of a row; of a support vector machine without the row."""
    held_out: HeldOut = getattr(machine, "held_out_", machine.loo_)
    return held_out


def loo_margins(machine: Any) -> Array:
    """Leave-one-out margin of every class, (n_samples, n_classes), of ``held_out_``.

    For two classes ∓(f − threshold), for more each output less the largest of the others: the
    class of the largest margin, on equal terms the first, is the one that the machine without the
    sample predicts.

    Parameters
    ----------
    machine : fitted classifier of looms.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import LSSVMClassifier
    >>> from looms.diagnostics import loo_margins
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = LSSVMClassifier(mu=1e-3).fit(X, y)
    >>> int((loo_margins(machine).argmax(axis=1) != y).sum())  # the classes are 0, 1, 2
    4
    """
    outputs = held_out_of(machine).outputs
    outputs = outputs[:, None] - machine.threshold_ if outputs.ndim == 1 else outputs
    return class_margins(outputs)


def _changes(
    models: LeaveOneOutModels, criterion: Criterion, y: Array, loo: Array, weight: Array
) -> dict[str, Array]:
    """Changes of outputs and criterion when each sample is left out, by name.

    As many samples are left out at a time as give an array of samples × them × targets 2²⁰
    numbers.
    """
    n = len(models.P)
    whole = criterion.evaluate(y, loo, weight).value
    own = np.empty_like(models.residuals)
    largest, squares, of_criterion = np.empty(n), np.empty(n), np.empty(n)
    step = max(1, _NUMBERS // models.fit.alpha.size)
    for block in (slice(start, start + step) for start in range(0, n, step)):
        changes, residuals = models.changes(block), models.pair_residuals(block)
        left_out = np.arange(n)[block]
        places = left_out, np.arange(len(left_out))
        own[block] = changes[places]
        others = np.abs(changes.reshape(n, len(left_out), -1))
        others[places] = 0.0
        largest[block] = others.max(axis=(0, 2))
        squares[block] = (others**2).sum(axis=(0, 2)) / ((n - 1) * others.shape[2])
        for column, i in enumerate(left_out):
            rest = np.arange(n) != i
            if isinstance(criterion, WMW) and np.ptp(y[rest], axis=0).min() == 0:
                of_criterion[i] = np.nan
                continue
            outputs = y[rest] - residuals[rest, column]
            of_criterion[i] = criterion.evaluate(y[rest], outputs, weight[rest]).value - whole
    return {
        "own_change": own,
        "largest_change": largest,
        "rms_change": np.sqrt(squares),
        "criterion_change": of_criterion,
    }


def _norm(values: Array) -> Array:
    """Values of one target as they are, Euclidean norms over several."""
    return values if values.ndim == 1 else np.asarray(np.linalg.norm(values, axis=1))


def _order(values: Array) -> AnyArray:
    """Positions of the finite values, smallest first."""
    order: AnyArray = np.argsort(values, kind="stable")
    return np.asarray(order[np.isfinite(values[order])])
