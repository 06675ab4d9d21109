"""Influence of each sample, or group of samples, on the deviance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from scipy import stats

from looms._checks import check_share
from looms._optional import require
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
    r"""Change of the deviance when a sample, or a group, is deleted, for each of them.

    .. math:: \mathrm{values}_i = D - D_{(-i)} = -2 \Bigl(\sum_j \log {\hat p}_{y_j}(x_j)
              - \sum_{j \ne i} \log {\hat p}^{(-i)}_{y_j}(x_j)\Bigr)

    where :math:`D_{(-i)}` is the deviance over the n − 1 other samples of the machine and sigmoid
    fitted to them [T11 section 2.4]. If the model were true, the change would approximately follow
    χ² with one degree of freedom; for a group of independent samples, with one degree per sample.

    Parameters
    ----------
    estimator, X, y, **options : as for `left_out_fits`
        Instead of the estimator a `LeftOutFits`, which has its own samples and options.
    alpha : float, default=0.05
        Level: a case is flagged if it exceeds the 1 − alpha quantile of its χ². Of n ordinary
        cases about ``alpha * n`` would be flagged.

    Returns
    -------
    influence : Influence
        Values, level and flagged cases.

    Raises
    ------
    ValueError
        As in `left_out_fits`; also for an `alpha` outside (0, 1).

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
    """Changes of the deviance: the result of `influence`. Printing shows a summary.

    Attributes
    ----------
    fits : LeftOutFits
        Names, classes and log likelihoods of the samples.
    values : ndarray of shape (n_samples,) or (n_groups,)
        Changes D − D₍₋ᵢ₎.
    alpha : float
        Level of χ² at which a case is flagged.

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
        """Deviance D of all samples."""
        return deviance_of(self.fits.likelihood.fitted)

    @property
    def n_samples(self) -> AnyArray:
        """Number of samples of each case, the degrees of freedom of its χ²."""
        return np.bincount(self.fits.group)

    @property
    def names(self) -> AnyArray:
        """Names of the cases: names of the samples, or labels of the groups."""
        return self.fits.labels

    @property
    def critical_values(self) -> Array:
        """The 1 − alpha quantile of each case's χ²."""
        return np.asarray(stats.chi2.isf(self.alpha, self.n_samples))

    @property
    def flagged(self) -> AnyArray:
        """Names of the cases above the critical value, smallest p-value first."""
        return np.asarray(self.names[self._flagged()])

    @property
    def table(self) -> pd.DataFrame:
        """Table of class (or n_samples), influence, p_value and flagged, a row per case by name."""
        pandas, (name, about) = require("pandas", "A table of samples"), self.fits.about
        columns = {
            name: about,
            "influence": self.values,
            "p_value": self._p_values,
            "flagged": self.values > self.critical_values,
        }
        return pandas.DataFrame(columns, pandas.Index(self.names, name=self.fits.unit))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Index plot of the changes, with the flagged cases named; returns the axes."""
        names, values, critical = self.names, self.values, self.critical_values
        ax, position = axes_or_new(ax, self), positions(names)
        ax.vlines(position, 0.0, values, color="0.7", linewidth=0.7)
        ax.scatter(position, values, s=8, c=np.where(values > critical, "C3", "C0"))
        label = f"χ² at {self.alpha:g}"
        ax.plot(position, critical, "C3--", drawstyle="steps-mid", label=label)
        for i in self._flagged():
            ax.annotate(
                str(names[i]),
                (position[i], values[i]),
                xytext=(3, 2),
                textcoords="offset points",
                fontsize="small",
                parse_math=False,
            )
        ax.set(xlabel=self.fits.unit.capitalize(), ylabel="Change of deviance when deleted")
        ax.legend()
        return ax

    @property
    def _p_values(self) -> Array:
        return np.asarray(stats.chi2.sf(np.maximum(self.values, 0.0), self.n_samples))

    def _flagged(self) -> AnyArray:
        order = np.lexsort((-self.values, self._p_values))
        return np.asarray(order[self.values[order] > self.critical_values[order]])

    def __repr__(self) -> str:
        fits, values, rows = self.fits, self.values, self._flagged()
        quantile, critical = f"the {1 - self.alpha:g} quantile", self.critical_values
        beyond = f"{quantile} of chi-squared with as many degrees of freedom as samples"
        if self.n_samples.max() == 1:
            beyond = f"{critical[0]:.2f}, {quantile} of chi-squared with 1 degree of freedom"
        about, by_chance = fits.about[1], self.alpha * len(values)
        lines = [
            f"Influence on the deviance {self.deviance:.2f} of {len(values)} {fits.unit}s",
            f"{len(rows)} above {beyond} ({by_chance:.3g} expected by chance)",
        ]
        lines += [f"  {self.names[i]!s:<12} {about[i]!s:<12} {values[i]:8.3f}" for i in rows[:10]]
        if len(rows) > 10:
            lines.append(f"  and {len(rows) - 10} more")
        return "\n".join(lines)
