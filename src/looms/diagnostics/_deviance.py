"""Deviance of the training samples, fitted and held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from looms._typing import Array
from looms.calibration._scores import deviance_of
from looms.diagnostics._axes import axes_or_new, positions
from looms.diagnostics._left_out import FitOptions, LeftOutFits, fits_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def deviance(
    estimator: Any, X: Any = None, y: Any = None, **options: Unpack[FitOptions]
) -> Deviance:
    r"""Deviance of a classifier on its training samples, and its leave-one-out version.

    .. math:: D = -2 \sum_i \log {\hat p}_{y_i}(x_i), \qquad
              \mathrm{CV} = -2 \sum_i \log {\hat p}^{(-i)}_{y_i}(x_i)

    where :math:`\hat p^{(-i)}` comes from the machine *and* the sigmoid fitted without sample i,
    or its group [T11 section 2.2.1 and eq. 15]. T11 calls CV an average; its values are this sum.

    Parameters
    ----------
    estimator, X, y, **options : as for `left_out_fits`
        Instead of the estimator a `LeftOutFits`, which has its own samples and options.

    Returns
    -------
    deviance : Deviance
        Both figures, and the contribution of each sample to them.

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
        """−2 log p̂ of each sample's class by the machine of all samples, (n_samples,)."""
        return -2.0 * self.fits.likelihood.fitted

    @property
    def cv_contributions(self) -> Array:
        """−2 log p̂ of each sample's class by the machine without it, (n_samples,)."""
        return -2.0 * self.fits.likelihood.left_out

    @property
    def deviance(self) -> float:
        """Deviance D of the machine on its own training samples."""
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
        ax.scatter(position, left_out, s=8, label=f"Left out: {self.cv_score:.2f}")
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
            lines.append(f"Left out, {self.n_impossible} have probability 0 of their class")
        return "\n".join(lines)
