"""Excess error: how much the error rate on the machine's own sample flatters it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from looms._optional import require
from looms._typing import AnyArray
from looms.diagnostics._axes import axes_or_new
from looms.diagnostics._left_out import left_out_predictions
from looms.diagnostics._problem import posed
from looms.diagnostics._refits import Progress

if TYPE_CHECKING:
    import pandas as pd


def excess_error(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    preprocessing: str = "auto",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> ExcessError:
    r"""Apparent, leave-one-out and excess error.

    .. math:: \mathrm{excess} = \mathrm{err}_{cv} - \mathrm{err}_{app}

    The share of samples that the machine without each one puts in a wrong class, less the share
    that the machine of all samples does [T11 section 2.2.2].

    Parameters
    ----------
    estimator : classifier
        Fitted or not; stays as it is. See `deviance` for what is held.
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
    excess_error : ExcessError
        The three rates and the predictions.

    Raises
    ------
    ValueError
        As `influence`, but for what is of probabilities.

    Notes
    -----
    For least-squares machines of looms one factorisation (their ``loo_``), for a
    `sklearn.svm.SVC` of two classes one decremental path a support vector, else n refits.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from looms.diagnostics import excess_error
    >>> X, y = load_iris(return_X_y=True)
    >>> found = excess_error(SVC(C=100), X[50:], y[50:])
    >>> round(found.apparent, 2), round(found.leave_one_out, 2), round(found.excess, 2)
    (0.02, 0.04, 0.02)
    """
    problem = posed(estimator, X, y, preprocessing)
    predicted, predicted_without = left_out_predictions(problem, n_jobs, progress)
    return ExcessError(
        predicted,
        predicted_without,
        problem.y,
        problem.names,
        problem.preprocessing,
    )


@dataclass(frozen=True, eq=False, repr=False)
class ExcessError:
    """Apparent, leave-one-out and excess error. Printed, it is a summary.

    Attributes
    ----------
    predicted : ndarray of shape (n_samples,)
        Class of each sample by the machine of all.
    predicted_without : ndarray of shape (n_samples,)
        By the machine without it.
    y : ndarray of shape (n_samples,)
        The true classes.
    names : ndarray of shape (n_samples,)
        Names of the samples.
    preprocessing : str
        "none", "held" or "refitted".
    """

    predicted: AnyArray
    predicted_without: AnyArray
    y: AnyArray
    names: AnyArray
    preprocessing: str

    @property
    def apparent(self) -> float:
        """Error rate of the machine on its own sample."""
        return float((self.predicted != self.y).mean())

    @property
    def leave_one_out(self) -> float:
        """Error rate on samples left out."""
        return float((self.predicted_without != self.y).mean())

    @property
    def excess(self) -> float:
        """Leave-one-out error less apparent error."""
        return self.leave_one_out - self.apparent

    @property
    def table(self) -> pd.DataFrame:
        """A row a class and one for all: n_samples, apparent, leave_one_out, excess."""
        pandas = require("pandas", "The table of excess errors")
        classes = np.unique(self.y)
        rows = [self._rates(self.y == label) for label in classes]
        rows.append(self._rates(np.full(len(self.y), True)))
        index = pandas.Index([*classes.tolist(), "all"], name="class")
        columns = ["n_samples", "apparent", "leave_one_out", "excess"]
        return pandas.DataFrame(rows, index=index, columns=columns)

    def plot(self, ax: Any = None) -> ExcessErrorDisplay:
        """Draw the rates of every class on ``ax``, or on new axes."""
        return ExcessErrorDisplay(self).plot(ax)

    def _rates(self, of: AnyArray) -> tuple[int, float, float, float]:
        apparent = float((self.predicted != self.y)[of].mean())
        without = float((self.predicted_without != self.y)[of].mean())
        return int(of.sum()), apparent, without, without - apparent

    def __repr__(self) -> str:
        return (
            f"Error of {len(self.y)} samples: apparent {self.apparent:.4f}, leave-one-out "
            f"{self.leave_one_out:.4f}, excess {self.excess:.4f}"
        )


class ExcessErrorDisplay:
    """Apparent and leave-one-out error of every class.

    Parameters
    ----------
    excess_error : ExcessError
        What to draw.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    """

    ax_: Any
    figure_: Any

    def __init__(self, excess_error: ExcessError) -> None:
        self.excess_error = excess_error

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, ax: Any = None, **options: Any
    ) -> Self:
        """Compute the errors and draw them; ``options`` as for `excess_error`."""
        return cls(excess_error(estimator, X, y, **options)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on new axes."""
        ax = axes_or_new(ax, self)
        found = self.excess_error
        classes = np.unique(found.y)
        groups = [(str(label), found.y == label) for label in classes]
        groups.append(("all", np.full(len(found.y), True)))
        rates = np.array([found._rates(of)[1:3] for _, of in groups])
        position = np.arange(len(groups))
        ax.bar(position - 0.2, rates[:, 0], 0.4, label="Apparent")
        ax.bar(position + 0.2, rates[:, 1], 0.4, label="Leave-one-out")
        ax.set_xticks(position, [name for name, _ in groups])
        ax.set(xlabel="Class", ylabel="Error rate")
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self
