"""Deviance of a machine, on its own sample and left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from looms._optional import require
from looms._typing import AnyArray, Array
from looms.diagnostics._axes import axes_or_new, positions
from looms.diagnostics._left_out import left_out
from looms.diagnostics._likelihood import check_probabilities, deviance_of
from looms.diagnostics._problem import posed
from looms.diagnostics._refits import Progress

if TYPE_CHECKING:
    import pandas as pd


def deviance(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    preprocessing: str = "auto",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Deviance:
    r"""Deviance of a machine on its sample, and the cross-validation score.

    .. math:: D = -2 \sum_i \log \hat p_{y_i}(x_i), \qquad
              \mathrm{CV} = -2 \sum_i \log \hat p^{(-i)}_{y_i}(x_i)

    where :math:`\hat p^{(-i)}` is of the machine *and* the sigmoid fitted without sample i
    [T11 section 2.2.1 and eq. 15]. T11 calls CV an average; its values are this sum.

    Parameters
    ----------
    estimator : classifier
        Fitted or not; stays as it is. One with predict_proba gives the probabilities itself.
        A `sklearn.svm.SVC`, a least-squares machine of looms on two classes, and any other with
        decision values only, gets Platt's sigmoid fitted to the decision values of the one
        machine on its sample; for several classes one for each pair of an SVC, coupled.
        Hyper-parameters are held: ``gamma="scale"``, the "balanced" weights of an SVC, the
        choice of a search, an `LSSVMClassifierCV` or an `SVCCV`, which is held as the SVC that
        it chose, are taken from a fit to the whole sample, or from the fitted estimator, also at
        the end of a pipeline. Others that choose while they are fitted, such as
        `LogisticRegressionCV`, choose again in every refit. Every sample counts once: weights
        that it was fitted with are not kept by it, and so have no part in this.
    X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        The sample.
    y : array-like of shape (n_samples,)
        Classes, each with two members or more.
    preprocessing : {"auto", "held", "refitted"}, default="auto"
        Of a pipeline: whether what comes before the machine is fitted once to all samples, or
        again without each. "auto" refits it if it learns from `y`.
    n_jobs : int, default=None
        Refits at once, as joblib takes it.
    progress : callable, default=None
        Called with the refits done and their number.

    Returns
    -------
    deviance : Deviance
        Both figures and what each sample adds to them.

    Raises
    ------
    ValueError
        As `influence`.

    Notes
    -----
    The cost is n refits; for an SVC of two classes none.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from looms.diagnostics import deviance
    >>> X, y = load_iris(return_X_y=True)
    >>> found = deviance(LogisticRegression(max_iter=1000), X[50:], y[50:])
    >>> found.deviance < found.cv_score
    True
    """
    problem = posed(estimator, X, y, preprocessing)
    check_probabilities(problem)
    found = left_out(problem, n_jobs, progress)
    deviance_of(found.log_likelihood, np.ones(problem.n_samples))
    return Deviance(
        -2.0 * found.whole,
        -2.0 * found.log_likelihood,
        problem.names,
        problem.y,
        problem.preprocessing,
    )


@dataclass(frozen=True, eq=False, repr=False)
class Deviance:
    """Deviance and cross-validation score. Printed, it is a summary.

    Attributes
    ----------
    contributions : ndarray of shape (n_samples,)
        −2 log p̂ of the class of each sample.
    cv_contributions : ndarray of shape (n_samples,)
        The same by the machine without it.
    names : ndarray of shape (n_samples,)
        Names of the samples.
    y : ndarray of shape (n_samples,)
        Their classes.
    preprocessing : str
        "none", "held" or "refitted".
    """

    contributions: Array
    cv_contributions: Array
    names: AnyArray
    y: AnyArray
    preprocessing: str

    @property
    def deviance(self) -> float:
        """D, of the machine on its own sample."""
        return float(self.contributions.sum())

    @property
    def cv_score(self) -> float:
        """−2 Σ log p̂₍ᵢ₎: D of samples left out."""
        return float(self.cv_contributions.sum())

    @property
    def table(self) -> pd.DataFrame:
        """A row a sample, named as it is, in order: class, deviance, cv_score."""
        pandas = require("pandas", "The table of a deviance")
        columns = {
            "class": self.y,
            "deviance": self.contributions,
            "cv_score": self.cv_contributions,
        }
        return pandas.DataFrame(columns, index=pandas.Index(self.names, name="sample"))

    def plot(self, ax: Any = None) -> DevianceDisplay:
        """Draw what each sample adds on ``ax``, or on new axes."""
        return DevianceDisplay(self).plot(ax)

    def __repr__(self) -> str:
        n = len(self.contributions)
        return (
            f"Deviance of {n} samples {self.deviance:.2f}, {self.deviance / n:.3f} a sample\n"
            f"CV score (leave-one-out) {self.cv_score:.2f}, {self.cv_score / n:.3f} a sample"
        )


class DevianceDisplay:
    """Index plot of what each sample adds to the deviance, seen and left out.

    Parameters
    ----------
    deviance : Deviance
        What to draw.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    """

    ax_: Any
    figure_: Any

    def __init__(self, deviance: Deviance) -> None:
        self.deviance = deviance

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, ax: Any = None, **options: Any
    ) -> Self:
        """Compute the deviance and draw it; ``options`` as for `deviance`."""
        return cls(deviance(estimator, X, y, **options)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on new axes."""
        ax = axes_or_new(ax, self)
        found = self.deviance
        position = positions(found.names)
        ax.vlines(position, found.contributions, found.cv_contributions, color="0.7", linewidth=0.7)
        ax.scatter(position, found.contributions, s=8, label=f"Seen: {found.deviance:.2f}")
        ax.scatter(position, found.cv_contributions, s=8, label=f"Left out: {found.cv_score:.2f}")
        ax.set(xlabel="Sample", ylabel="−2 log probability of its class")
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self
