"""Apparent, leave-one-out and excess error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from looms._optional import require
from looms.diagnostics._axes import axes_or_new
from looms.diagnostics._left_out import FitOptions, LeftOutFits, fits_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def excess_error(
    estimator: Any, X: Any = None, y: Any = None, **options: Unpack[FitOptions]
) -> ExcessError:
    r"""Apparent, leave-one-out and excess error.

    .. math:: \mathrm{excess} = \mathrm{err}_{cv} - \mathrm{err}_{app}

    The leave-one-out error is the share of samples misclassified by the machine without them; the
    apparent error is the share misclassified by the machine of all samples [T11 section 2.2.2].

    Parameters
    ----------
    estimator, X, y, **options : as for `left_out_fits`
        Instead of the estimator a `LeftOutFits`, which has its own samples and options.

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
    >>> from looms import LSSVMClassifier
    >>> result = excess_error(LSSVMClassifier(mu=1e-4), *load_iris(return_X_y=True))
    >>> result.table.loc["all"].round(3).tolist()
    [150.0, 0.007, 0.04, 0.033]
    """

    fits: LeftOutFits

    @property
    def apparent(self) -> float:
        """Error rate of the machine on its own training samples."""
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
        """Apparent and leave-one-out error of every class; returns the axes."""
        ax = axes_or_new(ax, self)
        names, _, apparent, leave_one_out = zip(*self._rates(), strict=True)
        position = np.arange(len(names))
        ax.bar(position - 0.2, apparent, 0.4, label="Apparent")
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
