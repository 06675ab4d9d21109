"""What every feature is worth: the leave-one-out residuals without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from looms._typing import Array
from looms.criteria import standard_error
from looms.lssvm import NotPositiveDefiniteError
from looms.report._axes import axes_for, bars
from looms.report._model import Model, model_of
from looms.report._relevance import relevances, variances
from looms.report._training import sampled_rows, training_objective
from looms.selection._tune import log2_mu_shift

_FLOPS = 1.5e10  # of all factorisations, a second or two on one thread


@dataclass(frozen=True, eq=False)
class Importance:
    """What the columns of a table are worth to a machine.

    Attributes
    ----------
    names : of the columns looked at.
    value : (n_columns,) rise of PRESS, the mean squared leave-one-out residual, when the
        column is held at its mean, of sparse features at zero. Negative: the machine does
        better without it.
    standard_error : (n_columns,) of the rise, which is a mean over samples.
    press : with all columns.
    n_samples : that it was computed on.
    n_columns : of the table, of which the ones looked at may be a part.
    """

    names: list[str]
    value: Array
    standard_error: Array
    press: float
    n_samples: int
    n_columns: int


def feature_importance(
    estimator: Any,
    *,
    n_samples: int | None = None,
    max_columns: int = 60,
    random_state: int = 0,
) -> Importance:
    r"""Rise of the leave-one-out error when a column tells nothing.

    .. math:: \frac{1}{\sum_i ζ_i} \sum_i ζ_i \bigl(r_i^{(k)\,2} - r_i^2\bigr)

    with r the leave-one-out residuals, and r⁽ᵏ⁾ those when all features made of column k are
    held at their means, or of sparse features at zero. The hyper-parameters stay; those chosen
    without the column might make up for some of the rise, and correlated columns stand in for
    each other.

    Parameters
    ----------
    estimator : machine of looms, or pipeline that ends in one
        Fitted, with a kernel of features.
    n_samples : int, default=None
        Samples drawn for it, m; unless given all, or as many as cost about 1.5·10¹⁰ flops in
        all. On a few of many samples other hyper-parameters might be better, and a column
        may then seem to do harm.
    max_columns : int, default=60
        Columns looked at: those whose features have the largest variance, for an ARD
        kernel relevance.
    random_state : int, default=0
        Draws the samples.

    Returns
    -------
    importance : Importance
        Columns in the order of their value, the largest first.

    Raises
    ------
    ValueError
        For a precomputed kernel, which has no features.

    Notes
    -----
    A kernel matrix and a factorisation with inverse of m samples for every column: m³ flops
    beside the kernel.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import LSSVMClassifierCV
    >>> from looms.report import feature_importance
    >>> data = load_iris(as_frame=True)
    >>> importance = feature_importance(LSSVMClassifierCV().fit(data.data, data.target))
    >>> importance.names[0]
    'petal length (cm)'
    """
    model = model_of(estimator)
    if model.pairwise:
        raise ValueError("A precomputed kernel has no features that could be held at their means.")
    groups = _groups(model)
    looked_at = _foremost(model, groups, max_columns)
    if n_samples is None:
        n_samples = int(np.cbrt(_FLOPS / (1 + len(looked_at))))
    rows = sampled_rows(model, n_samples, random_state)
    theta = _theta(model, len(rows))
    X = model.machine.X_fit_[rows]
    together = None if model.groups is None else model.groups[rows]
    base, share = _squares(model, rows, theta, None)
    found = []
    for name in looked_at:
        squares, _ = _squares(model, rows, theta, _held(X, groups[name]))
        difference = squares - base
        rise = float(share @ difference)
        error = standard_error(share * (difference - rise), together)
        found.append((name, rise, error))
    found.sort(key=lambda row: -row[1])
    return Importance(
        names=[name for name, _, _ in found],
        value=np.array([value for _, value, _ in found]),
        standard_error=np.array([error for _, _, error in found]),
        press=float(share @ base),
        n_samples=len(rows),
        n_columns=len(groups),
    )


class ImportanceDisplay:
    """What the columns of a table are worth to a machine, the most on top.

    Parameters
    ----------
    importance : Importance
        Of `feature_importance`.

    Attributes
    ----------
    ax_, figure_ : axes and figure drawn on.
    """

    ax_: Any
    figure_: Any

    def __init__(self, importance: Importance) -> None:
        self.importance = importance

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        n_samples: int | None = None,
        max_columns: int = 60,
        random_state: int = 0,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Compute `feature_importance` of a fitted machine.

        Parameters
        ----------
        estimator : machine of looms, or pipeline that ends in one
            Fitted, with a kernel of features.
        n_samples, max_columns, random_state
            For `feature_importance`.
        ax : matplotlib axes, default=None
            To draw on; those of a new figure unless given.
        **kwargs
            For `plot`.

        Returns
        -------
        display : ImportanceDisplay
            Drawn; `compute` gives it without, and needs no matplotlib.
        """
        return cls.compute(
            estimator, n_samples=n_samples, max_columns=max_columns, random_state=random_state
        ).plot(ax, **kwargs)

    @classmethod
    def compute(
        cls,
        estimator: Any,
        *,
        n_samples: int | None = None,
        max_columns: int = 60,
        random_state: int = 0,
    ) -> Self:
        """What `from_estimator` draws, not drawn."""
        return cls(
            feature_importance(
                estimator, n_samples=n_samples, max_columns=max_columns, random_state=random_state
            )
        )

    def plot(self, ax: Any = None, *, max_features: int = 20) -> Self:
        """Draw a bar a column, with a standard error to either side.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Those of a new figure unless given.
        max_features : int, default=20
            So many are drawn, the first.

        Returns
        -------
        self : ImportanceDisplay
            With ``ax_`` and ``figure_``.
        """
        ax = axes_for(self, ax)
        found, shown = self.importance, slice(max_features)
        bars(ax, found.value[shown], found.names[shown], found.standard_error[shown])
        ax.set_xlabel("rise of PRESS without it")
        return self


def _groups(model: Model) -> dict[str, list[int]]:
    """Features by the column that they were made of."""
    groups: dict[str, list[int]] = {}
    for k, source in enumerate(model.sources):
        groups.setdefault(source, []).append(k)
    return groups


def _foremost(model: Model, groups: dict[str, list[int]], most: int) -> list[str]:
    if len(groups) <= most:
        return list(groups)
    worth = relevances(model)
    worth = variances(model.machine.X_fit_) if worth is None else worth
    return sorted(groups, key=lambda name: -float(worth[groups[name]].sum()))[:most]


def _theta(model: Model, n_rows: int) -> Array:
    machine = model.machine
    n_all = int((model.loo.sample_weight > 0).sum())
    log2_mu = np.log2(machine.mu_) + log2_mu_shift(n_all, n_rows)
    return np.append(machine.kernel_.theta, log2_mu)


def _held(X: Any, features: list[int]) -> Any:
    """The samples with some features at their means; sparse ones stay so where these are zero."""
    if sparse.issparse(X):
        keep = np.ones(X.shape[1])
        keep[features] = 0.0
        return (X @ sparse.diags_array(keep)).tocsr()
    held = X.copy()
    held[:, features] = X[:, features].mean(axis=0)
    return held


def _squares(model: Model, rows: Any, theta: Array, X: Any) -> tuple[Array, Array]:
    """Squared leave-one-out residuals, a mean over targets, and the share of each sample."""
    objective = training_objective(model, rows, X)
    share = objective.sample_weight / objective.sample_weight.sum()
    try:
        residuals = objective.fit(theta).loo.residuals
    except NotPositiveDefiniteError:
        return np.full(len(rows), np.nan), share
    squares = np.square(residuals)
    return np.asarray(squares if squares.ndim == 1 else squares.mean(axis=1)), share
