"""Influence of each sample on the deviance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from scipy import stats

from looms._checks import check_share
from looms._typing import AnyArray, Array
from looms.calibration._scores import deviance_of
from looms.diagnostics._axes import axes_or_new, positions
from looms.diagnostics._left_out import FitOptions, LeftOutFits, fits_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def influence(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    alpha: float = 0.05,
    **options: Unpack[FitOptions],
) -> Influence:
    r"""Change of the deviance when a sample is deleted, for every sample.

    .. math:: \mathrm{values}_i = D - D_{(-i)} = -2 \Bigl(\sum_j \log \hat p_{y_j}(x_j)
              - \sum_{j \ne i} \log \hat p^{(-i)}_{y_j}(x_j)\Bigr)

    where :math:`D_{(-i)}` is the deviance over the n − 1 other samples of the machine, and of
    its sigmoid, fitted to them [T11 section 2.4]. If the model were true, the change would follow
    about χ² with one degree of freedom.

    Parameters
    ----------
    estimator, X, y, **options : as for `left_out_fits`
        Or a `LeftOutFits` in place of the estimator, which has its own samples and options.
    alpha : float, default=0.05
        Level: a case is flagged above the 1 − alpha quantile of χ²₁. Of n ordinary cases about
        ``alpha * n`` would be.

    Returns
    -------
    influence : Influence
        Values, level and flagged cases.

    Raises
    ------
    ValueError
        As `left_out_fits`; also for an `alpha` outside (0, 1).

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
    check_share(alpha, "alpha")
    fits = fits_of(estimator, X, y, True, options)
    whole = fits.likelihood.fitted.sum()
    return Influence(fits, -2.0 * (whole - fits.likelihood.rest), float(alpha))


@dataclass(frozen=True, eq=False, repr=False)
class Influence:
    """Changes of the deviance, the result of `influence`. Printed, it is a summary.

    Attributes
    ----------
    fits : LeftOutFits
        With the names, classes and log likelihoods of the samples.
    values : ndarray of shape (n_samples,)
        D − D₍₋ᵢ₎.
    alpha : float
        Level of χ²₁ at which a case is flagged.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> print(influence(SVC(C=100), X[50:], y[50:]))
    Influence on the deviance 18.19 of 100 samples
    1 above 3.84, the 0.95 quantile of chi-squared with 1 degree of freedom (5 expected by chance)
      33           1               4.513
    """

    fits: LeftOutFits
    values: Array
    alpha: float

    @property
    def deviance(self) -> float:
        """D, of all samples."""
        return deviance_of(self.fits.likelihood.fitted)

    @property
    def critical_value(self) -> float:
        """The 1 − alpha quantile of χ²₁."""
        return float(stats.chi2.isf(self.alpha, 1))

    @property
    def flagged(self) -> AnyArray:
        """Names of the cases above the critical value, the most influential first."""
        return np.asarray(self.fits.names[self._flagged_rows()])

    @property
    def table(self) -> pd.DataFrame:
        """Class, influence, p_value and flagged: a row per sample, by name."""
        values = self.values
        p_value = stats.chi2.sf(np.maximum(values, 0.0), 1)
        flagged = values > self.critical_value
        return self.fits.table(influence=values, p_value=p_value, flagged=flagged)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Index plot of the changes with the flagged cases named; returns the axes."""
        names, values, rows = self.fits.names, self.values, self._flagged_rows()
        ax, position = axes_or_new(ax, self), positions(names)
        ax.vlines(position, 0.0, values, color="0.7", linewidth=0.7)
        ax.scatter(position, values, s=8, c=np.where(values > self.critical_value, "C3", "C0"))
        level = rf"$\chi^2_1$ at {self.alpha:g}: {self.critical_value:.2f}"
        ax.axhline(self.critical_value, color="C3", linestyle="--", label=level)
        for i in rows:
            ax.annotate(
                str(names[i]),
                (position[i], values[i]),
                xytext=(3, 2),
                textcoords="offset points",
                fontsize="small",
            )
        ax.set(xlabel="Sample", ylabel="Change of deviance when deleted")
        ax.legend()
        return ax

    def _flagged_rows(self) -> AnyArray:
        order = np.argsort(-self.values, kind="stable")
        return np.asarray(order[self.values[order] > self.critical_value])

    def __repr__(self) -> str:
        fits, values, rows = self.fits, self.values, self._flagged_rows()
        n = len(values)
        lines = [
            f"Influence on the deviance {self.deviance:.2f} of {n} samples",
            f"{len(rows)} above {self.critical_value:.2f}, the {1 - self.alpha:g} quantile of "
            f"chi-squared with 1 degree of freedom ({self.alpha * n:.3g} expected by chance)",
        ]
        lines += [f"  {fits.names[i]!s:<12} {fits.y[i]!s:<12} {values[i]:8.3f}" for i in rows[:10]]
        if len(rows) > 10:
            lines.append(f"  and {len(rows) - 10} more")
        return "\n".join(lines)
