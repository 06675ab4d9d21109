"""The candidates of a selection side by side."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from looms._typing import Array
from looms.report._axes import axes_for, ink, label_axes, label_ticks
from looms.report._model import candidate_names, check_selected, model_of, score_name


class CandidatesDisplay:
    """What the candidates of a selection competed by, the best on top.

    Parameters
    ----------
    names : sequence of str
        Kernel and criterion of every candidate.
    score : ndarray of shape (n_candidates,)
        Smaller is better; infinite for one that could not be evaluated.
    score_name : str
        What the score is.
    chosen : int
        The candidate taken.

    Attributes
    ----------
    ax_, figure_ : axes and figure drawn on.
    """

    ax_: Any
    figure_: Any

    def __init__(self, *, names: list[str], score: Array, score_name: str, chosen: int) -> None:
        self.names = names
        self.score = score
        self.score_name = score_name
        self.chosen = chosen

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """The candidates of a fitted machine.

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
        display : CandidatesDisplay
            Drawn. The score is the leave-one-out balanced error rate of classes, or
            the loss that the threshold is set for; and for regression √PRESS, the root mean
            square leave-one-out residual.
        """
        return cls.compute(estimator).plot(ax, **kwargs)

    @classmethod
    def compute(cls, estimator: Any) -> Self:
        """What `from_estimator` draws, not drawn."""
        model = model_of(estimator)
        machine: Any = model.machine
        check_selected(machine, cls.__name__)
        score = np.array([candidate.score for candidate in machine.candidates_])
        return cls(
            names=[", ".join(names) for names in candidate_names(machine)],
            score=score if model.classification else np.sqrt(score),
            score_name=f"leave-one-out {score_name(machine)[0]}",
            chosen=machine.best_index_,
        )

    def plot(self, ax: Any = None, *, max_candidates: int = 20) -> Self:
        """Draw a dot a candidate.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Those of a new figure unless given.
        max_candidates : int, default=20
            So many are drawn, the best.

        Returns
        -------
        self : CandidatesDisplay
            With ``ax_`` and ``figure_``.
        """
        ax = axes_for(self, ax)
        order = np.argsort(self.score, kind="stable")[:max_candidates]
        score = np.where(np.isfinite(self.score), self.score, np.nan)
        for place, k in enumerate(order):
            ax.axhline(place, color=ink(), linewidth=0.4, linestyle=":", zorder=0)
            ax.plot(score[k], place, "o", color="C1" if k == self.chosen else "C0", markersize=7)
        label_ticks(ax, range(len(order)), [self.names[k] for k in order])
        ax.set_ylim(len(order) - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
        label_axes(ax, self.score_name)
        return self
