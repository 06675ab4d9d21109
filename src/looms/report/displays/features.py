"""Importance of every column by permutation of held-out rows, and relevances of ARD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from looms._advice import setting
from looms._checks import check_count
from looms._threads import blas_threads
from looms._typing import Array, Matrix
from looms.criteria import standard_error
from looms.lssvm import NotPositiveDefiniteError
from looms.report.displays.base import ModelDisplay, ink, label_axes, label_ticks, numbers_of
from looms.report.model import model_of, relevances, sampled_rows

#: Kernel values between permuted rows and those of the fit: a second or two on one thread.
_VALUES = 1.5e8
_MOST_REPEATS = 5
#: Kernel values that take the time of an output of boosted trees, and flops that one takes.
_OF_OTHERS, _FLOPS = 1000, 25
#: Columns drawn as bars, and the label of their axis.
MOST_BARS, _RISE = 20, "rise of the squared held-out error when permuted"


@dataclass(eq=False, repr=False, kw_only=True)
class ImportanceDisplay(ModelDisplay):
    """Rise of the held-out error when a column is permuted, the largest on top.

    ``plot(max_features=20)`` draws at most so many, from the top, with lines of one standard error
    to each side. More columns whose names are numbers, such as wavelengths, are drawn along these
    numbers.

    Parameters
    ----------
    names : names of the columns examined.
    value : (n_columns,) rise of PRESS, the mean squared held-out residual, when the values of the
        column are permuted among the rows. Negative if the model does better with wrong values.
    standard_error : (n_columns,) standard error of the rise, which is a mean over samples.
    press : PRESS with all columns as they are.
    n_samples, n_repeats : numbers of samples that were permuted, and of permutations.
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
    ('petal length (cm)', 'rise of the squared held-out error when permuted')
    """

    names: list[str]
    value: Array
    standard_error: Array
    press: float
    n_samples: int
    n_repeats: int
    n_columns: int

    @classmethod
    def compute(
        cls,
        estimator: Any,
        *,
        n_repeats: int | None = None,
        n_samples: int | None = None,
        max_columns: int = 250,
        random_state: int = 0,
    ) -> Self:
        r"""Rise of the held-out error when a column tells nothing of its row.

        .. math:: \frac{1}{\sum_i ζ_i} \sum_i ζ_i \bigl((y_i - f^{(-i)}(x_i'))^2
                  - (y_i - f^{(-i)}(x_i))^2\bigr)

        where :math:`x_i'` is the row with the value of the column in another row [B01 section 10].
        All features that were made from a column are permuted together. The model is that without
        the row, or without its group or the fold that the model was tuned by. In a stack with
        estimators of scikit-learn, such as the boosted trees of the default, it is the stack
        without one of their folds. Nothing is fitted: models of kernels are in closed form, and
        those of estimators were kept by the fit. The hyper-parameters stay the same. Correlated
        columns stand in for each other, and a permuted row may be unlike any of the table.

        Parameters
        ----------
        estimator : estimator
            A fitted looms model, a pipeline that ends in one, or a search with such a
            ``best_estimator_``.
        n_repeats : int, default=None
            Number of permutations; by default up to 5, if 1.5·10⁸ kernel values allow.
        n_samples : int, default=None
            Number of samples permuted, drawn by class; by default all, or as many as take 1.5·10⁸
            kernel values.
        max_columns : int, default=250
            Number of columns examined: those whose features have the largest variance, or the
            largest relevance for an ARD kernel.
        random_state : int, default=0
            Draws the samples and the permutations.

        Raises
        ------
        TypeError
            If the estimator contains no looms model.
        ValueError
            For a precomputed kernel, which has no features, or rows in blocks, which are not kept.

        Notes
        -----
        A permutation of a column takes n_samples × n kernel values for each kernel, or n_samples ×
        m on m landmarks, after n³ flops for the models without each unit, or 3 n m².

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
        if model.fitted.pairwise:
            raise ValueError("A precomputed kernel has no features that could be permuted.")
        for name, given in (("n_repeats", n_repeats), ("n_samples", n_samples)):
            if given is not None:
                check_count(given, name)
        fitted, columns = model.fitted, model.features.columns
        names = list(columns)
        if len(names) > max_columns:
            worth = relevances(model)
            worth = model.variances if worth is None else worth
            names = sorted(names, key=lambda name: -float(worth[columns[name]].sum()))[:max_columns]
        shape = model.n, fitted.n_features
        members = fitted.kernel_members
        widths = [one.order_of_refits(shape) for one in members]
        on_landmarks = [len(m.landmarks) ** 2 for m in members if m.landmarks is not None]
        width = _OF_OTHERS + sum(widths) + sum(on_landmarks) / _FLOPS
        affordable = _VALUES / (width * len(names))
        rows = sampled_rows(model, n_samples or max(1, int(affordable)), random_state)
        left_out, units = fitted.left_out, fitted.units_at_hand
        place = np.searchsorted(fitted.rows.train, rows)
        tested = (units.own[place] >= 0) & units.counts[place]  # not those in gaps of windows
        rows, place = rows[tested], place[tested]
        repeats = n_repeats or int(np.clip(affordable / len(rows), 1, _MOST_REPEATS))
        y = fitted.rows.targets[rows].reshape(len(rows), -1)
        X, rng = fitted.X[rows], np.random.default_rng(random_state)
        orders = [rng.permutation(len(rows)) for _ in range(repeats)]

        def squares(X: Matrix) -> Array:
            """Squared held-out residuals; their mean over several targets."""
            try:
                with blas_threads(model.n):
                    return np.asarray(np.square(y - left_out.own(X, place, units)).mean(axis=1))
            except NotPositiveDefiniteError:
                return np.full(len(rows), np.nan)

        share = fitted.rows.fit_weight[rows] / fitted.rows.fit_weight[rows].sum()
        base = squares(X)
        changes = []
        for name in names:
            features, values = columns[name], values_of(X, columns[name])
            each = [squares(with_values(X, features, values[order])) for order in orders]
            changes.append(np.mean(each, axis=0) - base)
        rise = np.array([share @ change for change in changes])
        together = model.fitted.units.scored_together[rows]
        order = np.argsort(-rise, kind="stable")
        return cls(
            names=[names[k] for k in order],
            value=rise[order],
            standard_error=np.array(
                [standard_error(share * (changes[k] - rise[k]), together) for k in order]
            ),
            press=float(share @ base),
            n_samples=len(rows),
            n_repeats=repeats,
            n_columns=len(columns),
        )

    @property
    def along_numbers(self) -> bool:
        """True if names are numbers, such as wavelengths, and more than have bars."""
        return len(self.names) > MOST_BARS and numbers_of(self.names) is not None

    def _draw(self, ax: Any, *, max_features: int = MOST_BARS) -> None:
        places = numbers_of(self.names)
        if places is not None and len(places) > max_features:
            style = {"fmt": "none", "ecolor": ink(), "elinewidth": 0.6}
            ax.errorbar(places, self.value, self.standard_error, **style)
            ax.vlines(places, 0, self.value, color="C0", linewidth=1.5)
            ax.axhline(0, color=ink(), linewidth=0.6)
            label_axes(ax, "column", _RISE)
            return
        shown = slice(max_features)
        value, error = self.value[shown], self.standard_error[shown]
        ax.barh(range(len(value)), value, height=0.62, color="C0")
        ax.errorbar(value, range(len(value)), xerr=error, fmt="none", ecolor=ink(), elinewidth=0.8)
        label_ticks(ax, self.names[shown])
        ax.set_xlabel(_RISE)


#: The same under its own name, for the values without a drawing.
feature_importance = ImportanceDisplay.compute


def values_of(X: Matrix, features: list[int]) -> Array:
    """Values of some features, (n, k), dense."""
    values = X[:, features]
    return np.asarray(values.toarray() if sparse.issparse(values) else values)


def with_values(X: Matrix, features: list[int], values: Array) -> Matrix:
    """Samples with other values of some features, (n, k), or (k,) for all samples the same."""
    if sparse.issparse(X):
        keep, place = np.ones(X.shape[1]), np.arange(len(features))
        keep[features] = 0.0
        values = np.broadcast_to(values, (X.shape[0], len(features)))
        to = sparse.csr_array((np.ones(len(place)), (place, features)), (len(place), X.shape[1]))
        return (X @ sparse.diags_array(keep) + sparse.csr_array(values) @ to).tocsr()
    changed = X.copy()
    changed[:, features] = values
    return changed


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
                f"{model.kernel or 'A model without kernels'} has no scale for each feature; fit "
                f"with {setting('kernel', 'ard')}, or use feature_importance, which works for all "
                "kernels of features."
            )
        return cls(names=model.features.names, relevance=relevance)

    def _draw(self, ax: Any, *, max_features: int = MOST_BARS) -> None:
        order = np.argsort(-self.relevance, kind="stable")[:max_features]
        ax.barh(range(len(order)), self.relevance[order], height=0.62, color="C0")
        label_ticks(ax, [self.names[k] for k in order])
        ax.set_xlabel("share of the mean squared distance")
