"""The course of a search: the criterion at every evaluation."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Self

import numpy as np

from looms._typing import AnyArray, Array
from looms.report._axes import axes_for, ink, label_axes, plain_frame
from looms.report._model import check_selected, model_of
from looms.report._training import chosen_criterion


class CriterionHistoryDisplay:
    """The leave-one-out criterion at every evaluation of a search, and the best so far.

    Parameters
    ----------
    value : ndarray of shape (n_evaluations,)
        Criterion at every evaluation, in order; infinite where it could not be evaluated.
    n_samples : ndarray of shape (n_evaluations,)
        Samples that it was evaluated on: searches begin on some of them.
    criterion : str
        Its name.
    standard_error : float
        Of the criterion where the search ended.

    Attributes
    ----------
    ax_, figure_ : axes and figure drawn on.
    """

    ax_: Any
    figure_: Any

    def __init__(
        self, *, value: Array, n_samples: AnyArray, criterion: str, standard_error: float
    ) -> None:
        self.value = value
        self.n_samples = n_samples
        self.criterion = criterion
        self.standard_error = standard_error

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """The search that found the hyper-parameters of a fitted machine.

        Parameters
        ----------
        estimator : self-tuned machine of looms, or pipeline that ends in one
            Fitted.
        ax : matplotlib axes, default=None
            To draw on; those of a new figure unless given.
        **kwargs
            For `plot`.

        Returns
        -------
        display : CriterionHistoryDisplay
            Drawn; `compute` gives it without, and needs no matplotlib.
        """
        return cls.compute(estimator).plot(ax, **kwargs)

    @classmethod
    def compute(cls, estimator: Any) -> Self:
        """What `from_estimator` draws, not drawn."""
        machine: Any = model_of(estimator).machine
        check_selected(machine, cls.__name__)
        stages = machine.selection_.stages
        points = [(p.value, size) for size, search in stages for p in search.history]
        name = chosen_criterion(machine)
        if machine.prior:
            name = f"log {name}, with prior"
        return cls(
            value=np.array([value for value, _ in points]),
            n_samples=np.array([size for _, size in points]),
            criterion=str(name),
            standard_error=stages[-1][1].best.standard_error,
        )

    def plot(self, ax: Any = None) -> Self:
        """Draw a point an evaluation, and a line for the best so far in each stage.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Those of a new figure unless given.

        Returns
        -------
        self : CriterionHistoryDisplay
            With ``ax_`` and ``figure_``.
        """
        ax = axes_for(self, ax)
        place = 1 + np.arange(len(self.value))
        finite = np.where(np.isfinite(self.value), self.value, np.nan)
        starts = [0, *(1 + np.flatnonzero(np.diff(self.n_samples))), len(place)]
        for k, (begin, end) in enumerate(pairwise(starts)):
            stage = slice(begin, end)
            best = np.fmin.accumulate(finite[stage])
            ax.step(place[stage], best, where="post", color="C0", linewidth=1.5)
            ax.plot(place[stage], finite[stage], "o", color=ink(), markersize=3)
            if k:
                ax.axvline(place[begin] - 0.5, color=ink(), linewidth=0.5, linestyle=":")
            ax.annotate(
                f"n = {self.n_samples[begin]}",
                (place[begin], 1.0),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                xytext=(2, 3),
                fontsize="small",
            )
        if np.isfinite(finite).any() and 0 < 20 * np.nanmin(finite) < np.nanmax(finite):
            ax.set_yscale("log")
        ax.xaxis.get_major_locator().set_params(integer=True)
        label_axes(ax, "evaluation", f"{self.criterion}, leave-one-out")
        plain_frame(ax)
        return self
