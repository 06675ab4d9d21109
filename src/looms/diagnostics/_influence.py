"""Influence of every sample on the deviance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import stats

from looms._optional import require
from looms._typing import AnyArray, Array
from looms.diagnostics._axes import axes_or_new, positions
from looms.diagnostics._checks import check_level
from looms.diagnostics._left_out import left_out
from looms.diagnostics._likelihood import check_probabilities
from looms.diagnostics._problem import posed
from looms.diagnostics._refits import Progress

if TYPE_CHECKING:
    import pandas as pd


def influence(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    alpha: float = 0.05,
    preprocessing: str = "auto",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Influence:
    r"""Change of the deviance when a sample is deleted, of every sample.

    .. math:: \mathrm{values}_i = D - D_{(-i)}

    where :math:`D_{(-i)}` is the deviance over the n − 1 other samples of the machine, and of
    its sigmoid, fitted to them [T11 section 2.4]. Beside the level of χ² with one degree of
    freedom, which it would follow about if the model were true.

    Parameters
    ----------
    estimator : classifier
        Fitted or not; stays as it is. See `deviance` for where its probabilities come from and
        for what is held.
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        The sample. Cases are named by the index of a data frame, else by position from 0.
    y : array-like of shape (n_samples,)
        Classes, each with two members or more.
    alpha : float, default=0.05
        Level: a case is flagged above the 1 − alpha quantile of χ²₁. Of n ordinary cases about
        ``alpha * n`` would be.
    preprocessing : {"auto", "held", "refitted"}, default="auto"
        Of a pipeline: whether what comes before the machine is fitted once to all samples, or
        again without each. "auto" refits it if it learns from `y`.
    n_jobs : int, default=None
        Refits at once, as joblib takes it.
    progress : callable, default=None
        Called with the refits done and their number.

    Returns
    -------
    influence : Influence
        Values, level and flagged cases.

    Raises
    ------
    ValueError
        For one class, a class with one member, an `alpha` outside (0, 1), values that are not
        finite, an estimator without decision values and probabilities, or one that gives a
        sample probability zero of its class.

    Notes
    -----
    The cost is n refits; for a `sklearn.svm.SVC` of two classes none, as one decremental path a
    support vector gives the machine without it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from looms.diagnostics import influence
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[:100], y[:100]
    >>> y[7] = 1                                       # a mistake
    >>> influence(SVC(kernel="linear"), X, y).flagged.tolist()
    [7]
    """
    level = check_level(alpha)
    problem = posed(estimator, X, y, preprocessing)
    check_probabilities(problem)
    found = left_out(problem, n_jobs, progress)
    whole = float(-2.0 * found.whole.sum())
    return Influence(
        whole - found.deviance,
        float(stats.chi2.isf(level, 1)),
        level,
        whole,
        problem.names,
        problem.y,
        problem.preprocessing,
    )


@dataclass(frozen=True, eq=False, repr=False)
class Influence:
    """Change of the deviance when a sample is deleted. Printed, it is a summary.

    Attributes
    ----------
    values : ndarray of shape (n_samples,)
        D − D₍₋ᵢ₎.
    critical_value : float
        Quantile of χ²₁ above which a case is flagged.
    alpha : float
        Its level.
    deviance : float
        D, of the whole sample.
    names : ndarray of shape (n_samples,)
        Names of the samples.
    y : ndarray of shape (n_samples,)
        Their classes.
    preprocessing : str
        "none", "held" or "refitted".
    """

    values: Array
    critical_value: float
    alpha: float
    deviance: float
    names: AnyArray
    y: AnyArray
    preprocessing: str

    @property
    def flagged(self) -> AnyArray:
        """Names of the cases above the critical value, the most influential first."""
        order = np.argsort(-self.values, kind="stable")
        return np.asarray(self.names[order[self.values[order] > self.critical_value]])

    @property
    def table(self) -> pd.DataFrame:
        """A row a sample, named as it is, in order: class, influence, p_value, flagged."""
        pandas = require("pandas", "The table of influences")
        columns = {
            "class": self.y,
            "influence": self.values,
            "p_value": stats.chi2.sf(np.maximum(self.values, 0.0), 1),
            "flagged": self.values > self.critical_value,
        }
        return pandas.DataFrame(columns, index=pandas.Index(self.names, name="sample"))

    def plot(self, ax: Any = None) -> InfluenceDisplay:
        """Draw the index plot on ``ax``, or on new axes."""
        return InfluenceDisplay(self).plot(ax)

    def __repr__(self) -> str:
        n, flagged = len(self.values), self.flagged
        lines = [
            f"Influence on the deviance {self.deviance:.2f} of {n} samples",
            f"{len(flagged)} above {self.critical_value:.2f}, the {1 - self.alpha:g} quantile of "
            f"chi-squared with 1 degree of freedom ({self.alpha * n:.3g} expected by chance)",
        ]
        order = np.argsort(-self.values, kind="stable")[:10]
        shown = order[self.values[order] > self.critical_value]
        lines += [f"  {self.names[i]!s:<12} {self.y[i]!s:<12} {self.values[i]:8.3f}" for i in shown]
        if len(flagged) > len(shown):
            lines.append(f"  and {len(flagged) - len(shown)} more")
        return "\n".join(lines)


class InfluenceDisplay:
    """Index plot of influences with the flagged cases named.

    Parameters
    ----------
    influence : Influence
        What to draw.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    line_ : matplotlib Line2D
        The level.
    """

    ax_: Any
    figure_: Any
    line_: Any

    def __init__(self, influence: Influence) -> None:
        self.influence = influence

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, ax: Any = None, **options: Any
    ) -> Self:
        """Compute the influences and draw them; ``options`` as for `influence`."""
        return cls(influence(estimator, X, y, **options)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on new axes."""
        ax = axes_or_new(ax, self)
        found = self.influence
        position = positions(found.names)
        above = found.values > found.critical_value
        ax.vlines(position, 0.0, found.values, color="0.7", linewidth=0.7)
        ax.scatter(position, found.values, s=8, c=np.where(above, "C3", "C0"))
        self.line_ = ax.axhline(
            found.critical_value,
            color="C3",
            linestyle="--",
            label=rf"$\chi^2_1$ at {found.alpha:g}: {found.critical_value:.2f}",
        )
        for i in np.flatnonzero(above):
            ax.annotate(
                str(found.names[i]),
                (position[i], found.values[i]),
                xytext=(3, 2),
                textcoords="offset points",
                fontsize="small",
            )
        ax.set(xlabel="Sample", ylabel="Change of deviance when deleted")
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self
