"""Effects of one column or two: mean predictions if all rows had the same values, with bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Self

import numpy as np
from sklearn.utils import check_array

from looms._checks import check_count, check_known
from looms._optional import require
from looms._typing import AnyArray, Array, Matrix
from looms.fitted._without_units import jackknife_errors, predictions_without
from looms.report.displays.base import ModelDisplay, label_axes, label_ticks
from looms.report.displays.features import values_of, with_values
from looms.report.model import Reported, model_of, sampled_rows
from looms.report.text import short
from looms.tables._preprocessor import cells_of_features, features_of_cells

#: Kinds of effects.
_KINDS = ("average", "accumulated")
#: Largest number of usual values of the second of two columns, each of which has a line.
_MOST_LINES = 4


@dataclass(eq=False, repr=False, kw_only=True)
class EffectDisplay(ModelDisplay):
    """Mean prediction if all rows had the same value of a column, or of two, with bands.

    It is drawn along numbers and dates, with a dot at each value, and beside the names of
    categories. Bands and bars are two standard errors wide on either side. Of two columns each
    value of the second has a line, or dots, of its own.

    Parameters
    ----------
    column : str, or tuple of two str
        Name of the column, or of both.
    values : ndarray of shape (n_values,), or tuple of two
        Values that all rows got: floats, times, or texts of categories. A gap is NaN or NaT.
    mean : ndarray of shape (n_values,), or (n_values, n_values of the second column)
        Mean prediction with each value, in units of the target, or of probability; of the kind
        "accumulated" its change from that of the rows as they are.
    standard_error : ndarray of the same shape
        Jackknife standard error of the mean.
    mean_of : str
        What the mean is of, such as "probability of yes".
    kind : {"average", "accumulated"}
        What was asked for.
    n_samples, n_units : int
        Number of rows, and of models without a unit.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import KernelClassifier
    >>> from looms.report import EffectDisplay
    >>> data = load_iris(as_frame=True)
    >>> model = KernelClassifier().fit(data.data, data.target_names[data.target])
    >>> display = EffectDisplay.from_estimator(model, "petal width (cm)", target="virginica")
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('petal width (cm)', 'mean probability of virginica')
    """

    column: str | tuple[str, str]
    values: AnyArray | tuple[AnyArray, AnyArray]
    mean: Array
    standard_error: Array
    mean_of: str
    kind: str
    n_samples: int
    n_units: int

    @classmethod
    def compute(
        cls,
        estimator: Any,
        column: str | int | tuple[str | int, str | int],
        *,
        kind: str = "average",
        values: Sequence[Any] | None = None,
        target: Any = None,
        n_values: int = 20,
        n_samples: int = 200,
        random_state: int = 0,
    ) -> Self:
        r"""Partial dependence on a column or two, and its jackknife standard error.

        .. math:: \bar f(v) = \frac{1}{\sum_i w_i} \sum_i w_i f(x_i^v), \quad
                  \mathrm{se}(v)^2 = \frac{m - 1}{m} \sum_k (\bar f_k(v) - \bar f_\cdot(v))^2

        where :math:`x_i^v` is row i with the value v in the column, in all features that were made
        of it, :math:`w_i` its weight, :math:`\bar f_k` the same mean by the model without unit k of
        m, and :math:`\bar f_\cdot` the mean of these [F01 section 8.2; ES81]. Of two columns v is a
        pair. Of the kind "accumulated", for numbers and dates, in the place of the mean is

        .. math:: \bar f(v_b) = c + \sum_{a \le b} \frac{1}{\sum_{i \in a} w_i}
                  \sum_{i \in a} w_i (f(x_i^{v_a}) - f(x_i^{v_{a-1}}))

        over the rows i whose value is above :math:`v_{a-1}` and at most :math:`v_a`, with c such
        that the mean over rows is zero, between the values by trapezoids [AZ20 section 2]. So no
        row gets a value far from its own. Units are rows or groups. In a stack with estimators of
        scikit-learn, such as the boosted trees of the default, they are the folds that the fit kept
        models without; of windows that earlier rows test there is no error. Nothing is fitted.
        Hyper-parameters, calibration, and the residuals by which
        a transform goes back, stay the same: the error does not include their choice. By the
        average, rows get values that may not go together, and where there are no rows the model
        extrapolates.

        Parameters
        ----------
        estimator : estimator
            A fitted looms model, a pipeline that ends in one, or a search with such a
            ``best_estimator_``.
        column : str or int, or tuple of two
            Name of the column, as in `ImportanceDisplay`, or its place in the table, from 0. Of
            features that other steps than a `looms.tables.TablePreprocessor` made, such as a
            scaler, it is one of these, and has the values that they made. Of two columns the first
            is drawn along the axis.
        kind : {"average", "accumulated"}, default="average"
            The mean with the value in all rows, or the accumulated local effect. Where columns are
            correlated the first extrapolates, and the second does not.
        values : sequence, or tuple of two, default=None
            Cells, as in the table; None is a gap. By default quantiles of numbers and dates, and
            the most common categories. Of two columns the sequence of either may be None.
        target : object, default=None
            A class, whose probability is shown, or, without a calibrator, whose decision value; by
            default the positive one of two. Of several numbers, the place of one, from 0.
        n_values : int, default=20
            Largest number of values, if they are not given; of the second of two columns it is 4.
        n_samples : int, default=200
            Number of predictions in a mean, by rows drawn by class, if there are more. Of the kind
            "accumulated" each row is predicted twice, at either end of an interval of values.
        random_state : int, default=0
            Draws the rows.

        Returns
        -------
        display : EffectDisplay
            The display, not drawn.

        Raises
        ------
        TypeError
            If the estimator contains no looms model.
        ValueError
            If there is no such column, or the model does not use it; a value is of another kind
            than the column, or no row of the fit has that category; a class or number has to be
            named; of the kind "accumulated", for two columns, for categories, which have no order,
            for gaps, and for an interval of values without rows; for a precomputed kernel, which
            has no columns, or rows in blocks, which are not kept.

        Notes
        -----
        A value takes n_samples × n kernel values for each kernel, and n_samples × n × m flops,
        after n³ flops for the models without each unit. Of two columns a value is a pair.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from looms import TabularRegressor
        >>> from looms.report import EffectDisplay
        >>> rng = np.random.default_rng(0)
        >>> table = pd.DataFrame({"size": rng.random(60), "color": rng.choice(["blue", "red"], 60)})
        >>> y = table["size"] + (table["color"] == "red") + 0.1 * rng.normal(size=60)
        >>> effect = EffectDisplay.compute(TabularRegressor("linear").fit(table, y), "color")
        >>> effect.values.tolist(), effect.mean.round(1).tolist()
        (['blue', 'red'], [0.5, 1.5])
        >>> effect.standard_error.round(2).tolist()
        [0.02, 0.02]
        """
        check_count(n_values, "n_values")
        check_count(n_samples, "n_samples")
        check_known(kind, "kind", _KINDS)
        model = model_of(estimator)
        if model.fitted.pairwise:
            raise ValueError("A precomputed kernel has no columns that could have other values.")
        names, given = _asked(model, column, values)
        place, mean_of = _target(model, target)
        along = kind == "accumulated"
        if along and len(names) > 1:
            raise ValueError("Accumulated effects are of one column: take kind='average' for two.")
        size = n_samples * (n_values + 1) // 2 if along else n_samples
        rows = sampled_rows(model, size, random_state)
        of_kind = _accumulated if along else _averages
        shown, means = of_kind(model, place, names, given, n_values, rows)
        columns = [f"{name}, as prepared" if model.features.prepared else name for name in names]
        return cls(
            column=columns[0] if len(columns) == 1 else (columns[0], columns[1]),
            values=shown[0] if len(shown) == 1 else (shown[0], shown[1]),
            mean=means[..., 0],
            standard_error=jackknife_errors(model.fitted, means[..., 1:, None])[..., 0],
            mean_of=mean_of,
            kind=kind,
            n_samples=len(rows),
            n_units=means.shape[-1] - 1,
        )

    def _draw(self, ax: Any) -> None:
        columns = (self.column,) if isinstance(self.column, str) else self.column
        values = self.values if isinstance(self.values, tuple) else (self.values,)
        of = f"{'mean' if self.kind == 'average' else 'accumulated effect on'} {self.mean_of}"
        labels = [None] if len(values) == 1 else [short(value_text(value)) for value in values[1]]
        means, errors = (x.reshape(len(x), -1).T for x in (self.mean, 2 * self.standard_error))
        named = values[0].dtype == object
        if named:
            label_ticks(ax, [value_text(value) for value in values[0]])
        label_axes(ax, *((of, columns[0]) if named else (columns[0], of)))
        order, alpha = np.argsort(values[0]), 0.25 if len(labels) == 1 else 0.15
        for k, (label, mean, error) in enumerate(zip(labels, means, errors, strict=True)):
            style = {"color": f"C{k}", "label": label}
            if named:
                places = np.arange(len(mean)) + 0.15 * (k - (len(labels) - 1) / 2)
                ax.errorbar(mean, places, xerr=error, fmt="o", markersize=4, **style)
                continue
            x, y, band = values[0][order], mean[order], error[order]
            ax.fill_between(x, y - band, y + band, color=f"C{k}", alpha=alpha, linewidth=0)
            ax.plot(x, y, "o-", markersize=3, **style)
        if values[0].dtype.kind == "M":
            dates = require("matplotlib.dates", "EffectDisplay.plot", "plot")
            ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(ax.xaxis.get_major_locator()))

    def _legend(self, ax: Any) -> dict[str, Any]:
        title = {"title": short(self.column[1]), "title_fontsize": "small"}
        return super()._legend(ax) | title


def value_text(value: Any) -> str:
    """A value as a label has it, a time to the second."""
    if isinstance(value, str):
        return value
    if value is None or value != value:
        return "missing"
    if isinstance(value, float):
        return f"{value:.4g}"
    rounded = (value + np.timedelta64(500, "ms")).astype("M8[s]")
    return str(np.datetime_as_string(rounded, unit="auto"))


def _asked(model: Reported, column: Any, values: Any) -> tuple[list[str], list[Any]]:
    """Names of a column or two, and for each the values given, or None."""
    pair = isinstance(column, tuple)
    given = [values] if not pair else [None, None] if values is None else list(values)
    names = [model.features.column(one) for one in (column if pair else [column])]
    if len({*names}) != len(given) or len(given) > 2:
        raise ValueError(f"Two columns are different, and have values of each; got {column!r}.")
    if any(one is not None and (np.ndim(one) != 1 or not len(one)) for one in given):
        raise ValueError("Values are a list of cells of each column, or None for usual ones.")
    return names, given


def _target(model: Reported, target: Any) -> tuple[int, str]:
    """Place of a class, or of one of several targets, and words for what its mean is of."""
    fitted, outcome = model.fitted, model.outcome
    labels = outcome.classes.tolist() or list(range(fitted.rows.targets[0].size))
    if target is None and len(labels) == (2 if outcome.decides else 1):
        target = labels[0 if outcome.positive_first else -1]
    if target not in labels:
        got = "" if target is None else f", got {target!r}"
        raise ValueError(f"Give target=, one of {', '.join(map(str, labels))}{got}.")
    place = labels.index(target)
    if not outcome.decides:
        name = f"target {place}" if len(labels) > 1 else model.target or "the target"
        return place, f"prediction of {name}"
    kind = "decision value for" if fitted.rule.calibrator is None else "probability of"
    return place, f"{kind} {model.classes[place]}"


def _usual(model: Reported, column: str, most: int) -> AnyArray:
    """Quantiles of the numbers of a column, or its most common categories, in order."""
    values = _cells(model, column, model.fitted.X[model.fitted.rows.train])
    different, counts = np.unique(values, return_counts=True)
    if len(different) <= most:
        return different
    if different.dtype == object:
        return different[np.sort(np.argsort(-counts, kind="stable")[:most])]
    shares = (np.arange(most) + 0.5) / most * len(values)
    return different[np.unique(np.searchsorted(np.cumsum(counts), shares))]


def _cells(model: Reported, column: str, X: Matrix) -> AnyArray:
    """Cells of a column in some rows, without gaps and rare categories."""
    made, table = values_of(X, model.features.columns[column]), model.features.preprocessor
    return made[:, 0] if table is None else cells_of_features(table, column, made)


def _made(model: Reported, column: str, given: Any) -> tuple[AnyArray, Array]:
    """Values of a column, (n,), and the features that are made of them, (n, k)."""
    if model.features.preprocessor is not None:
        return features_of_cells(model.features.preprocessor, column, given)
    made = check_array(np.reshape(given, (-1, 1)), dtype=np.float64)
    return made[:, 0], made


def _averages(
    model: Reported, place: int, names: list[str], given: list[Any], most: int, rows: AnyArray
) -> tuple[list[AnyArray], Array]:
    """Values of each column, and mean predictions with them by each model, (..., 1 + n_units)."""
    limits = [most, min(most, _MOST_LINES)]
    cells = [
        _made(model, name, _usual(model, name, limit) if one is None else one)
        for name, one, limit in zip(names, given, limits, strict=False)
    ]
    features = [k for name in names for k in model.features.columns[name]]
    X = model.fitted.X[rows]
    shown, made = [one for one, _ in cells], [one for _, one in cells]
    means = [
        _means(model, place, with_values(X, features, np.concatenate(values)), rows)
        for values in product(*made)
    ]
    return shown, np.reshape(means, (*map(len, shown), -1))


def _accumulated(
    model: Reported, place: int, names: list[str], given: list[Any], most: int, rows: AnyArray
) -> tuple[list[AnyArray], Array]:
    """Ends of intervals of a column, and effects up to them by each model, (n, 1 + n_units)."""
    (name,), (ends,) = names, given
    X, features = model.fitted.X[rows], model.features.columns[name]
    cells = _cells(model, name, X)
    if cells.dtype == object:
        raise ValueError(
            f"Categories, as in column {name!r}, have no order along which effects accumulate: "
            "take kind='average'."
        )
    if ends is None:
        ends = np.sort(cells)[np.linspace(0, len(cells) - 1, most).astype(int)]
    shown, made = _made(model, name, ends)
    shown, first = np.unique(shown, return_index=True)
    made = made[first]
    if len(shown) < 2 or made[:, 1:].any():
        raise ValueError(f"Accumulated effects take two values of {name!r} at least, and no gaps.")
    inside = (shown[0] <= cells) & (cells <= shown[-1])
    present = np.flatnonzero(~values_of(X, features)[:, 1:].any(axis=1))[inside]
    numbers, steps, shares = np.maximum(np.searchsorted(shown, cells[inside]), 1), [], []
    for k in range(1, len(shown)):
        own = present[numbers == k]
        if not len(own):
            between = f"{value_text(shown[k - 1])} and {value_text(shown[k])}"
            raise ValueError(f"No row has a value of {name!r} between {between}: leave one out.")
        low, high = (
            _means(model, place, with_values(X[own], features, one), rows[own])
            for one in made[k - 1 : k + 1]
        )
        steps.append(high - low)
        shares.append(model.fitted.rows.weight[rows[own]].sum())
    effects = np.concatenate([np.zeros((1, len(steps[0]))), np.cumsum(steps, axis=0)])
    return [shown], effects - np.average((effects[1:] + effects[:-1]) / 2, axis=0, weights=shares)


def _means(model: Reported, place: int, X: Matrix, rows: AnyArray) -> Array:
    """Mean predictions of changed rows with these numbers, (1 + n_units,).

    The first is that of the model, the others of the models without each unit.
    """
    each = predictions_without(model.fitted, X)[:, :, place]
    return np.asarray(np.average(each, axis=0, weights=model.fitted.rows.weight[rows]))
