"""Importance of every feature: leave-one-out residuals without it, and relevances of ARD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from looms._typing import Array, Matrix
from looms.criteria import standard_error
from looms.lssvm import NotPositiveDefiniteError
from looms.report.displays.base import ModelDisplay, ink, label_axes, label_ticks, numbers_of
from looms.report.model import (
    model_of,
    relevances,
    sampled_rows,
)
from looms.selection._subsamples import log2_mu_shift

_FLOPS = 1.5e10  # of all factorizations: a second or two on one thread
#: Columns drawn as bars.
MOST_BARS = 20


@dataclass(eq=False, repr=False, kw_only=True)
class ImportanceDisplay(ModelDisplay):
    """Rise of PRESS without each column of a table, the largest on top, with standard errors.

    ``plot(max_features=20)`` draws at most so many, from the top. More columns whose names are
    numbers, such as wavelengths, are all drawn along these numbers.

    Parameters
    ----------
    names : names of the columns examined.
    value : (n_columns,) rise of PRESS, the mean squared leave-one-out residual, when the
        column is held at its mean, or at zero if sparse. Negative if the model does better
        without it.
    standard_error : (n_columns,) standard error of the rise, which is a mean over samples.
    press : PRESS with all columns.
    n_samples : number of samples it was computed on.
    n_columns : number of columns of the table, of which only some may be examined.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import KernelClassifier
    >>> from looms.report import ImportanceDisplay
    >>> data = load_iris(as_frame=True)
    >>> model = KernelClassifier().fit(data.data, data.target)
    >>> display = ImportanceDisplay.from_estimator(model)
    >>> display.names[0], display.ax_.get_xlabel()
    ('petal length (cm)', 'rise of PRESS without it')
    """

    names: list[str]
    value: Array
    standard_error: Array
    press: float
    n_samples: int
    n_columns: int

    @classmethod
    def compute(
        cls,
        estimator: Any,
        *,
        n_samples: int | None = None,
        max_columns: int = 60,
        random_state: int = 0,
    ) -> Self:
        r"""Rise of the leave-one-out error when a column carries no information.

        .. math:: \frac{1}{\sum_i ζ_i} \sum_i ζ_i \bigl(r_i^{(k)\,2} - r_i^2\bigr)

        with r the leave-one-out residuals, and r⁽ᵏ⁾ those when all features made from column k are
        held at their means, or at zero if sparse. The hyper-parameters stay the same: if they were
        tuned without the column, they might make up for some of the rise, and correlated columns
        stand in for each other.

        Parameters
        ----------
        n_samples : int, default=None
            Number of samples drawn, m; by default all, or as many as cost about 1.5·10¹⁰ flops.
            On a few of many samples other hyper-parameters might be better, and a column may then
            seem to do harm.
        max_columns : int, default=60
            Number of columns examined: those whose features have the largest variance, or the
            largest relevance for an ARD kernel.
        random_state : int, default=0
            Draws the samples.

        Raises
        ------
        ValueError
            For a precomputed kernel, which has no features, or rows in blocks, which are not kept.

        Notes
        -----
        Every column takes a kernel matrix and a factorization with inverse of m samples, m³ flops
        beside the kernel, for each model of a stack. For a model on landmarks, the values are
        those of the whole kernel on the samples drawn.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from looms import KernelClassifier
        >>> from looms.report import feature_importance
        >>> data = load_iris(as_frame=True)
        >>> importance = feature_importance(KernelClassifier().fit(data.data, data.target))
        >>> importance.names[0]
        'petal length (cm)'
        """
        model = model_of(estimator)
        if model.pairwise:
            raise ValueError(
                "A precomputed kernel has no features that could be held at their means."
            )
        if not model.closed:
            raise TypeError(
                f"{cls.__name__} needs a kernel model, got {type(model.fitted).__name__}."
            )
        fitted, columns = model.fitted, model.columns
        names = list(columns)
        if len(names) > max_columns:
            worth = relevances(model)
            worth = model.variances if worth is None else worth
            names = sorted(names, key=lambda name: -float(worth[columns[name]].sum()))[:max_columns]
        if n_samples is None:
            n_fits = (1 + len(names)) * len(model.members)
            n_samples = int(np.cbrt(_FLOPS / n_fits))
        rows = sampled_rows(model, n_samples, random_state)
        X, shift = fitted.X_fit_[rows], log2_mu_shift(model.n_with_weight, len(rows))
        together, units, y = (
            model.units.clusters[rows],
            model.units.among(rows),
            fitted.loo_.y[rows],
        )
        zeta = fitted.fit_weight_[rows] * (len(rows) / fitted.fit_weight_[rows].sum())

        def squares(X: Matrix) -> Array:
            """Squared held-out residuals; their mean over several targets."""
            outputs = np.zeros((len(rows), *y.shape[1:])).reshape(len(rows), -1)
            for one in model.members:
                fresh = one.anew(one.mu * 2.0**shift)
                try:
                    left_out = fresh.left_out(X, y, zeta, fitted.fit_intercept_)
                    outputs += one.weight * np.nanmean(left_out.outputs(units), axis=0)
                except NotPositiveDefiniteError:
                    return np.full(len(rows), np.nan)
            residuals = y.reshape(outputs.shape) - outputs
            return np.asarray(np.square(residuals).mean(axis=1))

        share = fitted.fit_weight_[rows] / fitted.fit_weight_[rows].sum()
        base = squares(X)
        changes = [squares(_at_means(X, columns[name])) - base for name in names]
        rise = np.array([share @ change for change in changes])
        order = np.argsort(-rise, kind="stable")
        return cls(
            names=[names[k] for k in order],
            value=rise[order],
            standard_error=np.array(
                [standard_error(share * (changes[k] - rise[k]), together) for k in order]
            ),
            press=float(share @ base),
            n_samples=len(rows),
            n_columns=len(columns),
        )

    def _draw(self, ax: Any, *, max_features: int = MOST_BARS) -> None:
        places = numbers_of(self.names)
        if places is not None and len(places) > max_features:
            style = {"fmt": "none", "ecolor": ink(), "elinewidth": 0.6}
            ax.errorbar(places, self.value, self.standard_error, **style)
            ax.vlines(places, 0, self.value, color="C0", linewidth=1.5)
            ax.axhline(0, color=ink(), linewidth=0.6)
            label_axes(ax, "column", "rise of PRESS without it")
            return
        shown = slice(max_features)
        value, error = self.value[shown], self.standard_error[shown]
        ax.barh(range(len(value)), value, height=0.62, color="C0")
        ax.errorbar(value, range(len(value)), xerr=error, fmt="none", ecolor=ink(), elinewidth=0.8)
        label_ticks(ax, self.names[shown])
        ax.set_xlabel("rise of PRESS without it")


#: The same under its own name, for the values without a drawing.
feature_importance = ImportanceDisplay.compute


def _at_means(X: Matrix, features: list[int]) -> Matrix:
    """The samples with some features at their means, or at zero if sparse."""
    if sparse.issparse(X):
        keep = np.ones(X.shape[1])
        keep[features] = 0.0
        return (X @ sparse.diags_array(keep)).tocsr()
    held = X.copy()
    held[:, features] = X[:, features].mean(axis=0)
    return held


@dataclass(eq=False, repr=False, kw_only=True)
class RelevanceDisplay(ModelDisplay):
    r"""Relevances of the features of an ARD or a weighted kernel, the largest on top.

    .. math:: \mathrm{relevance}_k = \frac{\gamma_k \mathrm{var}_k}{\sum_l \gamma_l \mathrm{var}_l}

    The mean over pairs of samples of γ_k (x_k − x'_k)², which the exponent of the kernel sums,
    is 2 γ_k var_k; so relevances do not depend on units. For a `Weighted` kernel γ_k is the weight.
    For a stack, the model with the largest weight is shown.
    ``plot(max_features=20)`` draws at most so many, the largest.

    Parameters
    ----------
    names : sequence of str
        Names of all features.
    relevance : ndarray of shape (n_features,)
        Share of each feature in the mean squared distance of the kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from looms import KernelRegressor
    >>> from looms.report import RelevanceDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = KernelRegressor("ard").fit(X, np.sin(X[:, 1]))
    >>> display = RelevanceDisplay.from_estimator(model)
    >>> display.names[display.relevance.argmax()]
    'feature 2'
    """

    names: list[str]
    relevance: Array

    @classmethod
    def compute(cls, estimator: Any) -> Self:
        """Relevances in a fitted model whose kernel is weighted, ARD, or has an ARD part."""
        model = model_of(estimator)
        relevance = relevances(model)
        if relevance is None:
            raise ValueError(
                f"{model.fitted.kernel_!r} has no scale for each feature; fit with kernel='ard', "
                "or use feature_importance, which works for all kernels of features."
            )
        return cls(names=model.features, relevance=relevance)

    def _draw(self, ax: Any, *, max_features: int = MOST_BARS) -> None:
        order = np.argsort(-self.relevance, kind="stable")[:max_features]
        ax.barh(range(len(order)), self.relevance[order], height=0.62, color="C0")
        label_ticks(ax, [self.names[k] for k in order])
        ax.set_xlabel("share of the mean squared distance")
