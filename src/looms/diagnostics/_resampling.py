"""Deviance, excess error and influence: three views of the fits without each sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from scipy import stats

from looms._optional import require
from looms._typing import AnyArray, Array
from looms.diagnostics._left_out import FitOptions, LeftOutFits, left_out_fits
from looms.diagnostics._problem import check_level
from looms.diagnostics._refits import deviance_of

if TYPE_CHECKING:
    import pandas as pd


def deviance(
    estimator: Any, X: Any = None, y: Any = None, **options: Unpack[FitOptions]
) -> Deviance:
    r"""Deviance of a classifier on its training samples, and its leave-one-out version.

    .. math:: D = -2 \sum_i \log \hat p_{y_i}(x_i), \qquad
              \mathrm{CV} = -2 \sum_i \log \hat p^{(-i)}_{y_i}(x_i)

    where :math:`\hat p^{(-i)}` is of the machine *and* the sigmoid fitted without sample i
    [T11 section 2.2.1 and eq. 15]. T11 calls CV an average; its values are this sum.

    Parameters
    ----------
    estimator : classifier or LeftOutFits
        `left_out_fits` says where the probabilities come from and what is held fixed.
    X, y, **options : as for `left_out_fits`
        None of them with a `LeftOutFits`, which has its own.

    Returns
    -------
    deviance : Deviance
        Both figures and the contribution of each sample to them.

    Raises
    ------
    ValueError
        As `left_out_fits`; also if a sample has probability zero of its class once it is left out.

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
    fits = _fits_of(estimator, X, y, True, options)
    deviance_of(fits.likelihood.left_out, np.ones(len(fits.y)))  # finite, or refused
    return Deviance(fits)


def excess_error(
    estimator: Any, X: Any = None, y: Any = None, **options: Unpack[FitOptions]
) -> ExcessError:
    r"""Apparent, leave-one-out and excess error.

    .. math:: \mathrm{excess} = \mathrm{err}_{cv} - \mathrm{err}_{app}

    The share of samples that the machine without each one puts in a wrong class, less the share
    that the machine of all samples does [T11 section 2.2.2].

    Parameters
    ----------
    estimator : classifier or LeftOutFits
        Any classifier, with probabilities or without.
    X, y, **options : as for `left_out_fits`
        None of them with a `LeftOutFits`, which has its own.

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
    return ExcessError(_fits_of(estimator, X, y, False, options))


def influence(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    alpha: float = 0.05,
    **options: Unpack[FitOptions],
) -> Influence:
    r"""Change of the deviance when a sample is deleted, for every sample.

    .. math:: \mathrm{values}_i = D - D_{(-i)}

    where :math:`D_{(-i)}` is the deviance over the n − 1 other samples of the machine, and of
    its sigmoid, fitted to them [T11 section 2.4]. If the model were true, the change would follow
    about χ² with one degree of freedom.

    Parameters
    ----------
    estimator : classifier or LeftOutFits
        `left_out_fits` says where the probabilities come from and what is held fixed.
    X, y, **options : as for `left_out_fits`
        None of them with a `LeftOutFits`, which has its own.
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
    level = check_level(alpha)
    fits = _fits_of(estimator, X, y, True, options)
    whole = float(-2.0 * fits.likelihood.fitted.sum())
    return Influence(fits, whole - fits.likelihood.rest_deviance, level)


@dataclass(frozen=True, eq=False, repr=False)
class Deviance:
    """Deviance and cross-validation score, the result of `deviance`. Printed, it is a summary.

    Attributes
    ----------
    fits : LeftOutFits
        With the names, classes and log likelihoods of the samples.

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
        """−2 log p̂ of the class of each sample by the machine of all samples, (n_samples,)."""
        return -2.0 * self.fits.likelihood.fitted

    @property
    def cv_contributions(self) -> Array:
        """−2 log p̂ of the class of each sample by the machine without it, (n_samples,)."""
        return -2.0 * self.fits.likelihood.left_out

    @property
    def deviance(self) -> float:
        """D, of the machine on its own training samples."""
        return float(self.contributions.sum())

    @property
    def cv_score(self) -> float:
        """−2 Σ log p̂₍ᵢ₎, the deviance of samples left out."""
        return float(self.cv_contributions.sum())

    @property
    def table(self) -> pd.DataFrame:
        """Class, deviance and cv_score: a row per sample, by name."""
        return self.fits.table(deviance=self.contributions, cv_score=self.cv_contributions)

    def plot(self, ax: Any = None) -> Any:
        """Index plot of the contributions, fitted and left out; returns the axes."""
        ax, position = axes_or_new(ax, self), positions(self.fits.names)
        fitted, left_out = self.contributions, self.cv_contributions
        ax.vlines(position, fitted, left_out, color="0.7", linewidth=0.7)
        ax.scatter(position, fitted, s=8, label=f"Fitted: {self.deviance:.2f}")
        ax.scatter(position, left_out, s=8, label=f"Left out: {self.cv_score:.2f}")
        ax.set(xlabel="Sample", ylabel="−2 log probability of its class")
        ax.legend()
        return ax

    def __repr__(self) -> str:
        n = len(self.fits.y)
        return (
            f"Deviance of {n} samples {self.deviance:.2f}, {self.deviance / n:.3f} a sample\n"
            f"CV score (leave-one-out) {self.cv_score:.2f}, {self.cv_score / n:.3f} a sample"
        )


@dataclass(frozen=True, eq=False, repr=False)
class ExcessError:
    """Error rates, the result of `excess_error`. Printed, it is a summary.

    Attributes
    ----------
    fits : LeftOutFits
        With the classes of the samples, true and predicted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import LSSVMClassifier
    >>> result = excess_error(LSSVMClassifier(mu=1e-4), *load_iris(return_X_y=True))
    >>> result.table.loc["all"].round(3).tolist()
    [150.0, 0.007, 0.033, 0.027]
    """

    fits: LeftOutFits

    @property
    def apparent(self) -> float:
        """Error rate of the machine on its own training samples."""
        return float((self.fits.predicted != self.fits.y).mean())

    @property
    def leave_one_out(self) -> float:
        """Error rate on samples left out."""
        return float((self.fits.predicted_without != self.fits.y).mean())

    @property
    def excess(self) -> float:
        """Leave-one-out error less apparent error."""
        return self.leave_one_out - self.apparent

    @property
    def table(self) -> pd.DataFrame:
        """n_samples, apparent, leave_one_out and excess: a row per class, and one for all."""
        pandas = require("pandas", "The table of excess errors")
        rates = self._rates()
        index = pandas.Index([name for name, *_ in rates], name="class")
        table = pandas.DataFrame([row for _, *row in rates], index=index)
        table.columns = ["n_samples", "apparent", "leave_one_out"]
        return table.assign(excess=table["leave_one_out"] - table["apparent"])

    def plot(self, ax: Any = None) -> Any:
        """Apparent and leave-one-out error of every class; returns the axes."""
        ax = axes_or_new(ax, self)
        names, _, apparent, leave_one_out = zip(*self._rates(), strict=True)
        position = np.arange(len(names))
        ax.bar(position - 0.2, apparent, 0.4, label="Apparent")
        ax.bar(position + 0.2, leave_one_out, 0.4, label="Leave-one-out")
        ax.set_xticks(position, [str(name) for name in names])
        ax.set(xlabel="Class", ylabel="Error rate")
        ax.legend()
        return ax

    def _rates(self) -> list[tuple[Any, int, float, float]]:
        """Name, samples, apparent and leave-one-out error of each class and of all."""
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
            f"Error of {len(self.fits.y)} samples: apparent {self.apparent:.4f}, leave-one-out "
            f"{self.leave_one_out:.4f}, excess {self.excess:.4f}"
        )


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
        return float(-2.0 * self.fits.likelihood.fitted.sum())

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

    def plot(self, ax: Any = None) -> Any:
        """Index plot of the changes with the flagged cases named; returns the axes."""
        names, values, rows = self.fits.names, self.values, self._flagged_rows()
        ax, position = axes_or_new(ax, self), positions(names)
        ax.vlines(position, 0.0, values, color="0.7", linewidth=0.7)
        ax.scatter(position, values, s=8, c=np.where(values > self.critical_value, "C3", "C0"))
        level = rf"$\chi^2_1$ at {self.alpha:g}: {self.critical_value:.2f}"
        ax.axhline(self.critical_value, color="C3", linestyle="--", label=level)
        for i in rows:
            place = position[i], values[i]
            offset = {"xytext": (3, 2), "textcoords": "offset points"}
            ax.annotate(str(names[i]), place, fontsize="small", **offset)
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


def _fits_of(estimator: Any, X: Any, y: Any, likelihood: bool, options: FitOptions) -> LeftOutFits:
    """The left-out fits given in place of an estimator, or those of the estimator."""
    if not isinstance(estimator, LeftOutFits):
        if X is None or y is None:
            raise TypeError("X or y is missing: only left-out fits have their own.")
        return left_out_fits(estimator, X, y, likelihood=likelihood, **options)
    if X is not None or y is not None or options:
        raise TypeError("Left-out fits have their own samples and options: give nothing else.")
    return estimator


def axes_or_new(ax: Any, result: Any) -> Any:
    """``ax`` itself, or the axes of a new figure of pyplot."""
    if ax is not None:
        return ax
    return require("matplotlib.pyplot", f"{type(result).__name__}.plot", extra="plot").subplots()[1]


def positions(names: AnyArray) -> AnyArray:
    """(n,) places of samples on an axis: their names where these count up, else from 0."""
    count = np.arange(len(names))
    if len(names) and np.issubdtype(names.dtype, np.integer):
        counted: AnyArray = names[0] + count
        return counted if np.array_equal(names, counted) else count
    return count
