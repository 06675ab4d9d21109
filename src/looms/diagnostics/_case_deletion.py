"""Influential, surprising and probably mislabeled samples, or groups, of a least-squares model.

Sources are cited by the keys of docs/references.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from looms._checks import label_array
from looms._optional import require
from looms._threads import blas_threads
from looms._typing import AnyArray, Array
from looms.criteria import WMW, Criterion, as_criterion
from looms.diagnostics._problem import model_without_rows
from looms.estimators._warnings import warn_of_order
from looms.folds import group_numbers
from looms.held_out import HeldOut
from looms.lssvm.left_out import LeftOut
from looms.units import Units

if TYPE_CHECKING:
    import pandas as pd

#: Samples up to which every pair of them is left out: n² numbers.
MOST_PAIRED = 5000


@dataclass(frozen=True, eq=False, repr=False)
class CaseDeletion:
    """Effect of every training sample, or group, on a model: the result of `case_deletion`.

    Changes are exact. They compare the model trained on all samples with the one trained without
    a sample, or a group of samples, at the same hyper-parameters. A sample of weight zero takes no
    part in training: it has a residual and a margin, and NaN elsewhere.

    Attributes
    ----------
    names : (n,) names of the samples.
    unit : what is held out at a time, "sample" or "group".
    labels : (m,) names of the samples, or labels of the groups, that are held out.
    group : (n,) place of each sample's unit in ``labels``.
    residual : (n,) or (n, t) residual of the model without the sample, or its group, in units of
        the targets; ±1 for classes. For a model that holds out folds but no groups, the residual
        and the margin are those without the fold.
    leverage : (n,) ∂f(x_i) / ∂y_i, from 0 to 1.
    own_change : (n,) or (n, t) f⁽⁻ᴳ⁾(x_i) − f(x_i), where G is the group of sample i, or i itself.
    surprise : (m,) standardized residual, √(e_Gᵀ P_GG e_G / |G|) divided by its root mean square:
        about 1 for an ordinary sample or group. P_GG⁻¹ is the covariance that a Gaussian process
        expects of the residuals e_G [SK01], which is larger where samples are few. The root mean
        square over several targets. P is ζ (1 − H) for the smoother H, but for a factor; for a
        stack it is the weighted sum over its members.
    largest_change : (m,) largest |f⁽⁻ᴳ⁾(x_j) − f(x_j)| over the other samples j.
    rms_change : (m,) root mean square of f⁽⁻ᴳ⁾(x_j) − f(x_j) over the other samples j.
    criterion_change : (m,) criterion on held-out outputs of the model trained on the others,
        minus that of the model trained on all, with each sample, or group, held out by itself.
        It is negative if the criterion would be better without the sample or group, and NaN if
        undefined, such as "wmw" without the only member of a class.
    criterion : name of the criterion. None for more than 5000 samples: the largest change and the
        change of criterion take every pair of samples, so they are NaN.
    by_kernels : words that say so if all values are of the kernels alone of a model that has
        members without a kernel, such as boosted trees; else empty.
    margin : (n,) held-out margin, the output for the sample's own class minus the largest of
        the others (t (f − threshold) for two classes; of ordered classes how far the output is
        inside of the two cuts about the class); None for regression.
    label, predicted : (n,) class given, and class predicted by the model without the sample,
        which differs where the margin is negative; None for regression.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import KernelClassifier
    >>> result = case_deletion(KernelClassifier(mu=1e-4).fit(*load_iris(return_X_y=True)))
    >>> result.mislabeled(3).index.tolist()
    [83, 106, 133]
    """

    names: AnyArray
    unit: str
    labels: AnyArray
    group: AnyArray
    residual: Array
    leverage: Array
    own_change: Array
    surprise: Array
    largest_change: Array
    rms_change: Array
    criterion_change: Array
    criterion: str | None
    by_kernels: str = ""
    margin: Array | None = None
    label: AnyArray | None = None
    predicted: AnyArray | None = None

    @property
    def table(self) -> pd.DataFrame:
        """All quantities, with a row per sample, or group, by name.

        Several targets are combined into norms. A group has the number of its samples, the root
        mean square over them of residual and own change, the mean of the leverage, and, instead of
        margin and classes, the number of samples with a negative margin, ``n_contradicted``.
        """
        pandas = require("pandas", "The table of case deletions")
        own = self._of_groups() if self.unit == "group" else self._of_samples()
        order = [
            *("rms_change", "largest_change", "own_change", "criterion_change"),
            *("leverage", "residual", "surprise"),
        ]
        columns = {name: own[name] if name in own else getattr(self, name) for name in order}
        return pandas.DataFrame(columns | own, pandas.Index(self.labels, name=self.unit))

    def _of_samples(self) -> dict[str, AnyArray]:
        """Columns that each sample has of its own."""
        columns = {
            "own_change": _norm(self.own_change),
            "leverage": self.leverage,
            "residual": _norm(self.residual),
        }
        of_classes = {"margin": self.margin, "label": self.label, "predicted": self.predicted}
        return columns | {name: each for name, each in of_classes.items() if each is not None}

    def _of_groups(self) -> dict[str, AnyArray]:
        """Columns that sum up the samples of non-zero weight of each group."""
        taking, m = np.isfinite(self.leverage), len(self.labels)
        group = self.group[taking]
        sizes = np.bincount(group, minlength=m)

        def mean(values: Array) -> Array:
            totals = np.bincount(group, values[taking], m)
            return np.asarray(np.divide(totals, sizes, out=np.full(m, np.nan), where=sizes > 0))

        columns = {
            "own_change": np.sqrt(mean(_norm(self.own_change) ** 2)),
            "leverage": mean(self.leverage),
            "residual": np.sqrt(mean(_norm(self.residual) ** 2)),
            "n_samples": sizes,
        }
        if self.margin is not None:
            against = self.margin[taking] < 0
            columns["n_contradicted"] = np.bincount(group[against], minlength=m)
        return columns

    def most_influential(self, n: int = 10) -> pd.DataFrame:
        """The `n` samples, or groups, that change the outputs of the others most."""
        return self.table.iloc[_order(-self.rms_change)[:n]]

    def most_surprising(self, n: int = 10) -> pd.DataFrame:
        """The `n` samples, or groups, with the largest `surprise`."""
        return self.table.iloc[_order(-self.surprise)[:n]]

    def mislabeled(self, n: int | None = None) -> pd.DataFrame:
        """Samples whose label contradicts the model trained without them, the clearest first.

        They have a negative ``margin``, and are sorted by it. If classes overlap, most of these
        labels are not wrong; look at the first ones. If groups are held out, the table has the
        group of each sample.

        Parameters
        ----------
        n : int, default=None
            Largest number of samples to return; by default all.

        Raises
        ------
        ValueError
            For a regressor, whose samples have no labels.
        """
        if self.margin is None:
            raise ValueError("A regressor has no labels; see most_surprising() for its samples.")
        order = _order(self.margin)
        chosen = order[self.margin[order] < 0][:n]
        if self.unit == "sample":
            return self.table.iloc[chosen]
        pandas = require("pandas", "The table of case deletions")
        columns = {"group": self.labels[self.group]} | self._of_samples()
        columns = {k: v for k, v in columns.items() if k not in ("own_change", "leverage")}
        return pandas.DataFrame(columns, pandas.Index(self.names, name="sample")).iloc[chosen]

    def __repr__(self) -> str:
        sizes = {"n_samples": len(self.names), f"n_{self.unit}s": len(self.labels)}
        parts = [f"{name}={size}" for name, size in sizes.items()]
        if self.criterion is not None:
            parts.append(f"criterion={self.criterion!r}")
        order = _order(-self.rms_change)
        if len(order):
            parts.append(f"most_influential={self.labels[order[:1]].tolist()[0]!r}")
        if self.margin is not None:
            parts.append(f"n_contradicted={int((self.margin < 0).sum())}")
        return f"CaseDeletion({', '.join(parts)}{self.by_kernels})"


def case_deletion(
    model: Any,
    *,
    names: Any = None,
    groups: Any = None,
    criterion: str | Criterion | None = None,
) -> CaseDeletion:
    """Effect of every training sample, or group, on a fitted least-squares model, without refits.

    With α, P and λ as in docs/references.md, and the residuals e_G = P_GG⁻¹ α_G of the model
    without the samples G,

        f⁽⁻ᴳ⁾(x_j) − f(x_j) = λ_j P_jG e_G for j not in G, and λ_j α_j − e_j for j in G.

    The criterion without G depends on the held-out outputs of the model without G, which follow
    from P⁽⁻ᴳ⁾ = P − P_:G P_GG⁻¹ P_G: and α⁽⁻ᴳ⁾ = α − P_:G e_G. A stack
    is a weighted sum of such models.

    Parameters
    ----------
    model : KernelClassifier or KernelRegressor
        Fitted model; also a pipeline whose last step is one, or a search, whose
        ``best_estimator_`` is used. Of a stack with estimators of scikit-learn, such as the boosted
        trees of the default, the kernels alone are taken. For a support vector machine ``leverage``
        and ``surprise`` are NaN, since it is not linear in its targets.
    names : array-like of shape (n_samples,), or a DataFrame or Series, default=None
        Names of the training samples, or a table with them as its index. By default positions
        from 0.
    groups : array-like of shape (n_samples,), default=None
        Labels of the training samples; samples with the same label are held out together. By
        default the groups that the model was fitted with, by their numbers, or each sample by
        itself.
    criterion : str or looms.criteria.Criterion, default=None
        Criterion of ``criterion_change``. By default that of the selection, for a model that
        tuned its hyper-parameters along gradients or on a grid, the loss of a support vector
        machine, else "press". Samples count by their `sample_weight`, without
        the weights that the search gave the classes.

    Returns
    -------
    case_deletion : CaseDeletion
        A table, and lists of the samples to look at.

    Raises
    ------
    TypeError
        If ``model`` is none of these. `influence` takes other classifiers. For a
        `TabularRegressor` all values are on the scale of the transform.
    ValueError
        If the number of names or groups is not the number of samples; if there are fewer than three
        samples or groups; if the criterion is one of classes for a regressor; or if a saved model
        was fitted to rows in blocks, which are not saved with it.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Notes
    -----
    The cost is n³ flops and one n×n array, once for a model; then O(n²) per target, or 3 n² s
    with groups of s samples, in blocks of bounded memory; and m times the cost of the criterion,
    which for "wmw" is O(n₊ n₋). With m landmarks about 8 n m² flops, plus n s (m + s) with groups.

    Examples
    --------
    >>> import numpy as np
    >>> from looms import KernelRegressor
    >>> from looms.diagnostics import case_deletion
    >>> X = np.linspace(0, 1, 30)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> y[20] += 1                                    # a slip of the pen
    >>> model = KernelRegressor(mu=1e-3).fit(X, y)
    >>> result = case_deletion(model)
    >>> result
    CaseDeletion(n_samples=30, criterion='press', most_influential=20)
    >>> result.most_surprising(1).index.tolist()
    [20]
    >>> case_deletion(model, groups=np.repeat(["Mon", "Tue", "Wed", "Thu", "Fri"], 6))
    CaseDeletion(n_samples=30, n_groups=5, criterion='press', most_influential='Thu')
    """
    fitted, by_kernels = model_without_rows(model, "Case deletion")
    n = fitted.loo.n_samples
    warn_of_order(names=names, groups=groups)
    names = names.index if hasattr(names, "iloc") else names
    names = np.arange(n) if names is None else np.asarray(names)
    if names.shape != (n,):
        raise ValueError(
            f"names must have one name for each of the {n} training samples, but has shape "
            f"{names.shape}."
        )
    criterion = fitted.criterion_of_outputs if criterion is None else criterion
    chosen = as_criterion(criterion)
    if chosen.needs_labels and not fitted.outcome.labeled:
        raise ValueError(f"Criterion {criterion!r} judges classes; for regression use 'press'.")
    unit, labels, group = "sample", names, np.arange(n)
    each = fitted.units.clusters if groups is None else groups
    numbers = group_numbers(each, n)
    by_group = groups is not None or fitted.units.grouped
    if by_group:
        _, first, group = np.unique(numbers, return_index=True, return_inverse=True)
        unit, labels = "group", label_array(each)[first]
    train = fitted.rows.train
    present, first = np.unique(group[train], return_index=True)
    m, paired = len(present), len(train) <= MOST_PAIRED
    if m < 3:
        raise ValueError(f"Case deletion needs three {unit}s of non-zero weight or more, got {m}.")
    y, _, weight = (each[train] for each in fitted.loo)
    left_out, sets = fitted.left_out, Units.of_numbers(group[train])
    with blas_threads(len(train)):
        leverage, own = left_out.leverage(), left_out.outputs(sets)[0]
        own_change = own - left_out.fitted()
        rms_change = np.sqrt(left_out.mean_square_changes(sets))
        energy = left_out.energies(sets)  # e_Gᵀ P_GG e_G, of which only ratios count
        largest, of_criterion = np.full((2, m), np.nan)
        if paired:
            largest, of_criterion = _changes(left_out, sets, chosen, y, weight)
    usual = energy.sum(axis=0) / len(train) + np.finfo(np.float64).tiny  # all may be zero
    sizes = np.bincount(sets.number[0])
    surprise = np.sqrt(np.mean(energy / sizes[:, None] / usual, axis=1))
    held_out, of_classes = fitted.held_out, {}
    if unit == "group":
        outputs = fitted.loo.outputs.copy()
        outputs[train] = own.reshape(y.shape)
        held_out = HeldOut(held_out.y, outputs, held_out.sample_weight)
    if fitted.outcome.decides:
        outcome, of_rule = fitted.outcome, (held_out.outputs, fitted.rule)
        label = outcome.codes(fitted.loo.y)
        of_classes = {
            "margin": outcome.decision_margins(*of_rule)[np.arange(n), label],
            "label": outcome.classes[label],
            "predicted": outcome.classes[outcome.indices(*of_rule)],
        }
    place = sets.number[0, first]  # of the units, in the order of their labels
    surprise, largest, rms_change, of_criterion = (
        _spread(each[place], present, len(labels))
        for each in (surprise, largest, rms_change, of_criterion)
    )
    return CaseDeletion(
        names=names,
        unit=unit,
        labels=labels,
        group=group,
        residual=held_out.residuals,
        leverage=_spread(leverage, train, n),
        own_change=_spread(own_change.reshape(y.shape), train, n),
        surprise=surprise,
        largest_change=largest,
        rms_change=rms_change,
        criterion_change=of_criterion,
        criterion=str(criterion) if paired else None,
        by_kernels=by_kernels,
        **of_classes,
    )


def _changes(
    left_out: LeftOut, units: Units, criterion: Criterion, y: Array, weight: Array
) -> tuple[Array, Array]:
    """Largest change of an output, and change of the criterion, without each unit, (n_units,)."""
    largest, of_criterion = np.empty((2, units.n_units))
    whole = left_out.fitted()
    for ids, F in left_out.everywhere(units):
        change = np.where(units.stays(ids)[:, :, None], np.abs(F - whole), 0.0)
        largest[ids] = change.max(axis=(1, 2))
    for ids, F in left_out.everywhere(units, inner=units):
        for k, outputs, rest in zip(ids, F, units.stays(ids), strict=True):
            if isinstance(criterion, WMW) and np.ptp(y[rest], axis=0).min() == 0:
                of_criterion[k] = np.nan
                continue
            f = outputs[rest].reshape(y[rest].shape)
            of_criterion[k] = criterion.evaluate(y[rest], f, weight[rest]).value
    own = left_out.outputs(units)[0].reshape(y.shape)
    return largest, of_criterion - criterion.evaluate(y, own, weight).value


def _spread(values: Array, places: AnyArray, n: int) -> Array:
    """Values at their places among n, NaN elsewhere."""
    spread = np.full((n, *values.shape[1:]), np.nan)
    spread[places] = values
    return spread


def _norm(values: Array) -> Array:
    """Values of one target unchanged, or Euclidean norms over several targets."""
    return values if values.ndim == 1 else np.asarray(np.linalg.norm(values, axis=1))


def _order(values: Array) -> AnyArray:
    """Positions of the finite values, smallest first."""
    order: AnyArray = np.argsort(values, kind="stable")
    return np.asarray(order[np.isfinite(values[order])])
