"""Effect of a column: mean predictions if all rows had the same value of it, with bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils import check_array

from looms._checks import check_count
from looms._optional import require
from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.report.displays.base import Display, label_axes, label_ticks
from looms.report.displays.features import values_of, with_values
from looms.report.model import Reported, model_of, sampled_rows
from looms.tables._preprocessor import cells_of_features, features_of_cells


@dataclass(eq=False, repr=False, kw_only=True)
class EffectDisplay(Display):
    """Mean prediction if all rows had the same value of a column, with bands.

    It is drawn along numbers and dates, with a dot at each value, and beside the names of
    categories. Bands and bars are two standard errors wide on either side.

    Parameters
    ----------
    column : str
        Name of the column.
    values : ndarray of shape (n_values,)
        Values that all rows got: floats, times, or texts of categories. A gap is NaN or NaT.
    mean : ndarray of shape (n_values,)
        Mean prediction with each value, in units of the target, or of probability.
    standard_error : ndarray of shape (n_values,)
        Jackknife standard error of the mean.
    mean_of : str
        What the mean is of, such as "probability of yes".
    n_samples, n_units : int
        Number of rows in each mean, and of models without a unit.

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

    column: str
    values: AnyArray
    mean: Array
    standard_error: Array
    mean_of: str
    n_samples: int
    n_units: int

    @classmethod
    def from_estimator(
        cls, estimator: Any, column: str | int, *, ax: Any = None, **options: Any
    ) -> Self:
        """Compute the display of a fitted model, and draw it on ``ax``, or a new figure.

        The other arguments are those of `compute`, which does not draw, and needs no matplotlib.
        """
        return cls.compute(estimator, column, **options).plot(ax)

    @classmethod
    def compute(
        cls,
        estimator: Any,
        column: str | int,
        *,
        values: Sequence[Any] | None = None,
        target: Any = None,
        n_values: int = 20,
        n_samples: int = 200,
        random_state: int = 0,
    ) -> Self:
        r"""Partial dependence on a column, and its jackknife standard error.

        .. math:: \bar f(v) = \frac{1}{\sum_i w_i} \sum_i w_i f(x_i^v), \quad
                  \mathrm{se}(v)^2 = \frac{m - 1}{m} \sum_k (\bar f_k(v) - \bar f_\cdot(v))^2

        where :math:`x_i^v` is row i with the value v in the column, in all features that were made
        of it, :math:`w_i` its weight, :math:`\bar f_k` the same mean by the model without unit k of
        m, and :math:`\bar f_\cdot` the mean of these [F01 section 8.2; ES81]. Units are rows,
        groups, or the folds that the model was tuned by; of repeated folds those of one repetition.
        In a stack with estimators of scikit-learn, such as the boosted trees of the default, they
        are the folds that the fit kept models without. Nothing is fitted. Hyper-parameters,
        calibration, and the residuals by which a transform goes back, stay the same: the error does
        not include their choice. Rows get values that may not go together, and where there are no
        rows the model extrapolates.

        Parameters
        ----------
        estimator : estimator
            A fitted looms model, a pipeline that ends in one, or a search with such a
            ``best_estimator_``.
        column : str or int
            Name of the column, as in `ImportanceDisplay`, or its place in the table, from 0. Of
            features that other steps than a `looms.tables.TablePreprocessor` made, such as a
            scaler, it is one of these, and has the values that they made.
        values : sequence, default=None
            Cells, as in the table; None is a gap. By default quantiles of numbers and dates, and
            the most common categories.
        target : object, default=None
            A class, whose probability is shown, or, without a calibrator, whose decision value; by
            default the positive one of two. Of several numbers, the place of one, from 0.
        n_values : int, default=20
            Largest number of values, if they are not given.
        n_samples : int, default=200
            Number of rows in a mean, drawn by class, if there are more.
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
            named; for a precomputed kernel, which has no columns, or rows in blocks, which are not
            kept.

        Notes
        -----
        A value takes n_samples × n kernel values for each kernel, and n_samples × n × m flops,
        after n³ flops for the models without each unit. A transform of the target takes as many
        values of its inverse, half a minute for 20 values, 200 samples and n = m = 1000.

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
        model = model_of(estimator)
        if model.fitted.pairwise:
            raise ValueError("A precomputed kernel has no columns that could have other values.")
        if values is not None and np.size(values) == 0:
            raise ValueError("values are empty: give cells of the column, or None for usual ones.")
        features, name = model.features, model.features.column(column)
        place, mean_of = _target(model, target)
        rows = sampled_rows(model, n_samples, random_state)
        X, weight = model.fitted.X[rows], model.fitted.rows.weight[rows]
        given = _usual(model, name, n_values) if values is None else values
        if features.preprocessor is None:
            made = check_array(np.reshape(given, (-1, 1)), dtype=np.float64)
            shown = made[:, 0]
        else:
            shown, made = features_of_cells(features.preprocessor, name, given)
        changed = (with_values(X, features.columns[name], value) for value in made)
        means = np.array([_means(model, one, weight, place) for one in changed])
        away, m = means[:, 1:] - means[:, 1:].mean(axis=1, keepdims=True), means.shape[1] - 1
        return cls(
            column=f"{name}, as prepared" if features.prepared else name,
            values=shown,
            mean=means[:, 0],
            standard_error=np.sqrt((m - 1) / m * np.square(away).sum(axis=1)),
            mean_of=mean_of,
            n_samples=len(rows),
            n_units=m,
        )

    def _draw(self, ax: Any) -> None:
        error, of = 2 * self.standard_error, f"mean {self.mean_of}"
        if self.values.dtype == object:
            ax.errorbar(self.mean, range(len(error)), xerr=error, fmt="o", color="C0", markersize=4)
            label_ticks(ax, [text if isinstance(text, str) else "missing" for text in self.values])
            return label_axes(ax, of, self.column)
        order = np.argsort(self.values)
        values, mean, error = self.values[order], self.mean[order], error[order]
        ax.fill_between(values, mean - error, mean + error, color="C0", alpha=0.25, linewidth=0)
        ax.plot(values, mean, "o-", color="C0", markersize=3)
        if values.dtype.kind == "M":
            dates = require("matplotlib.dates", "EffectDisplay.plot", "plot")
            ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(ax.xaxis.get_major_locator()))
        label_axes(ax, self.column, of)


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
    table = model.features.preprocessor
    made = values_of(model.fitted.X[model.fitted.rows.train], model.features.columns[column])
    values = made[:, 0] if table is None else cells_of_features(table, column, made)
    different, counts = np.unique(values, return_counts=True)
    if len(different) <= most:
        return different
    if different.dtype == object:
        return different[np.sort(np.argsort(-counts, kind="stable")[:most])]
    shares = (np.arange(most) + 0.5) / most * len(values)
    return different[np.unique(np.searchsorted(np.cumsum(counts), shares))]


def _means(model: Reported, X: Matrix, weight: Array, place: int) -> Array:
    """Mean prediction by the model, and by that without each unit, (1 + n_units,)."""
    fitted, outcome, units = model.fitted, model.outcome, model.fitted.units_at_hand
    units = units.only(np.unique(units.own[units.own >= 0]))  # once, if they are repeated
    with blas_threads(model.n):
        f, without = fitted.outputs(X), fitted.left_out.at(X, units)
    outputs = np.concatenate([f.reshape(len(f), 1, -1), without], axis=1)
    values = outputs.reshape(-1, *f.shape[1:])
    if outcome.decides:
        values = outcome.of_classes(values, fitted.rule)
    else:
        values = fitted.predicted(values)
    return np.asarray(weight @ values.reshape(*outputs.shape[:2], -1)[:, :, place] / weight.sum())
