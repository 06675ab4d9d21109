"""Statistics of left-out fits: deviance, excess error, and influence on the deviance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from scipy import stats

from looms._checks import check_share
from looms._optional import require
from looms._typing import AnyArray, Array
from looms.calibration._scores import deviance_of
from looms.diagnostics._left_out import FitOptions, LeftOutFits, axes_or_new, fits_of, positions

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def deviance(
    estimator: Any, X: Any = None, y: Any = None, **options: Unpack[FitOptions]
) -> Deviance:
    r"""Deviance of a classifier on its training samples, and its leave-one-out version.

    .. math:: D = -2 \sum_i \log {\hat p}_{y_i}(x_i), \qquad
              \mathrm{CV} = -2 \sum_i \log {\hat p}^{(-i)}_{y_i}(x_i)

    where :math:`\hat p^{(-i)}` comes from the model *and* the sigmoid fitted without sample i,
    or its group [T11 section 2.2.1 and eq. 15]. T11 calls CV an average; its values are this sum.

    Parameters
    ----------
    estimator, X, y, **options : as for `left_out_fits`
        Instead of the estimator the result of `left_out_fits`, with its samples and options.

    Returns
    -------
    deviance : Deviance
        Both scores, and the contribution of each sample to them.

    Raises
    ------
    ValueError
        As in `left_out_fits`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from looms.diagnostics import deviance
    >>> X, y = load_iris(return_X_y=True)
    >>> result = deviance(LogisticRegression(max_iter=1000), X[50:], y[50:])
    >>> result.deviance < result.cv_score
    True
    """
    return Deviance(fits_of(estimator, X, y, True, options))


@dataclass(frozen=True, eq=False, repr=False)
class Deviance:
    """Deviance and cross-validation score: the result of `deviance`. Printing shows a summary.

    Attributes
    ----------
    fits : LeftOutFits
        Names, classes and log likelihoods of the samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> deviance(SVC(), *load_iris(return_X_y=True))
    Deviance of 150 samples 28.72, 0.191 a sample
    CV score (leave-one-out) 32.14, 0.214 a sample
    """

    fits: LeftOutFits

    @property
    def contributions(self) -> Array:
        """−2 log p̂ of each sample's class by the model of all samples, (n_samples,)."""
        return -2.0 * self.fits.likelihood.fitted

    @property
    def cv_contributions(self) -> Array:
        """−2 log p̂ of each sample's class by the model without it, (n_samples,)."""
        return -2.0 * self.fits.likelihood.left_out

    @property
    def deviance(self) -> float:
        """Deviance D of the model on its own training samples."""
        return deviance_of(self.fits.likelihood.fitted)

    @property
    def cv_score(self) -> float:
        """−2 Σ log p̂₍ᵢ₎, the deviance of held-out samples; inf if any has probability zero."""
        return deviance_of(self.fits.likelihood.left_out)

    @property
    def n_impossible(self) -> int:
        """Number of samples whose class has probability zero when they are held out."""
        return int(np.isneginf(self.fits.likelihood.left_out).sum())

    @property
    def table(self) -> pd.DataFrame:
        """Table of class, deviance and cv_score, with a row per sample, by name."""
        return self.fits.table(deviance=self.contributions, cv_score=self.cv_contributions)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Index plot of the contributions, fitted and held out; returns the axes."""
        ax, position = axes_or_new(ax, self), positions(self.fits.names)
        fitted, left_out = self.contributions, self.cv_contributions
        ax.vlines(position, fitted, left_out, color="0.7", linewidth=0.7)
        ax.scatter(position, fitted, s=8, label=f"Fitted: {self.deviance:.2f}")
        ax.scatter(position, left_out, s=8, label=f"Held out: {self.cv_score:.2f}")
        ax.set(xlabel="Sample", ylabel="−2 log probability of its class")
        ax.legend()
        return ax

    def __repr__(self) -> str:
        n = len(self.fits.y)
        lines = [
            f"Deviance of {n} samples {self.deviance:.2f}, {self.deviance / n:.3f} a sample",
            f"CV score ({self.fits.method}) {self.cv_score:.2f}, {self.cv_score / n:.3f} a sample",
        ]
        if self.n_impossible:
            lines.append(f"Held out, {self.n_impossible} have probability 0 of their class")
        return "\n".join(lines)


def excess_error(
    estimator: Any, X: Any = None, y: Any = None, **options: Unpack[FitOptions]
) -> ExcessError:
    r"""Apparent, leave-one-out and excess error.

    .. math:: \mathrm{excess} = \mathrm{err}_{cv} - \mathrm{err}_{app}

    The leave-one-out error is the share of samples misclassified by the model without them; the
    apparent error is the share misclassified by the model of all samples [T11 section 2.2.2].

    Parameters
    ----------
    estimator, X, y, **options : as for `left_out_fits`
        Instead of the estimator the result of `left_out_fits`, with its samples and options.

    Returns
    -------
    excess_error : ExcessError
        The three rates and the predictions.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from looms.diagnostics import excess_error
    >>> X, y = load_iris(return_X_y=True)
    >>> result = excess_error(SVC(C=100), X[50:], y[50:])
    >>> round(result.apparent, 2), round(result.leave_one_out, 2), round(result.excess, 2)
    (0.02, 0.04, 0.02)
    """
    return ExcessError(fits_of(estimator, X, y, False, options))


@dataclass(frozen=True, eq=False, repr=False)
class ExcessError:
    """Error rates: the result of `excess_error`. Printing shows a summary.

    Attributes
    ----------
    fits : LeftOutFits
        True and predicted classes of the samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import KernelClassifier
    >>> result = excess_error(KernelClassifier(mu=1e-4), *load_iris(return_X_y=True))
    >>> result.table.loc["all"].round(3).tolist()
    [150.0, 0.007, 0.04, 0.033]
    """

    fits: LeftOutFits

    @property
    def apparent(self) -> float:
        """Error rate of the model on its own training samples."""
        return float((self.fits.predicted != self.fits.y).mean())

    @property
    def leave_one_out(self) -> float:
        """Error rate on samples that are held out, each by itself or with its group."""
        return float((self.fits.predicted_without != self.fits.y).mean())

    @property
    def excess(self) -> float:
        """Leave-one-out error minus apparent error."""
        return self.leave_one_out - self.apparent

    @property
    def table(self) -> pd.DataFrame:
        """Table of n_samples, apparent, leave_one_out and excess, per class and for all."""
        pandas = require("pandas", "The table of excess errors")
        columns = ["class", "n_samples", "apparent", "leave_one_out"]
        table = pandas.DataFrame(self._rates(), columns=columns).set_index("class")
        return table.assign(excess=table["leave_one_out"] - table["apparent"])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Error of every class on training and held-out samples; returns the axes."""
        ax = axes_or_new(ax, self)
        names, _, apparent, leave_one_out = zip(*self._rates(), strict=True)
        position = np.arange(len(names))
        ax.bar(position - 0.2, apparent, 0.4, label="Training")
        ax.bar(position + 0.2, leave_one_out, 0.4, label=self.fits.method.capitalize())
        ax.set_xticks(position, [str(name) for name in names])
        ax.set(xlabel="Class", ylabel="Error rate")
        ax.legend()
        return ax

    def _rates(self) -> list[tuple[Any, int, float, float]]:
        """Name, number of samples, apparent and leave-one-out error of each class and of all."""
        y, fits = self.fits.y, self.fits
        groups = [(label, y == label) for label in np.unique(y).tolist()]
        groups.append(("all", np.full(len(y), True)))
        wrong, wrong_without = fits.predicted != y, fits.predicted_without != y
        return [
            (name, int(of.sum()), float(wrong[of].mean()), float(wrong_without[of].mean()))
            for name, of in groups
        ]

    def __repr__(self) -> str:
        return (
            f"Error of {len(self.fits.y)} samples: apparent {self.apparent:.4f}, "
            f"{self.fits.method} {self.leave_one_out:.4f}, excess {self.excess:.4f}"
        )


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

    where :math:`D_{(-i)}` is the deviance over the n − 1 other samples of the model and sigmoid
    fitted to them [T11 section 2.4]. If the model were true, the change would approximately follow
    χ² with one degree of freedom; for a group of independent samples, with one degree per sample.

    Parameters
    ----------
    estimator, X, y, **options : as for `left_out_fits`
        Instead of the estimator the result of `left_out_fits`, with its samples and options.
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
