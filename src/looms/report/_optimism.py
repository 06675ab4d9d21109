"""Leave-one-out scores against the scores of outer splits."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from looms._typing import Array
from looms.assessment._result import Assessment
from looms.report._axes import axes_for, ink, label_axes, plain_frame, short


class OptimismDisplay:
    """What leave-one-out promised in every outer split, and what the test part gave.

    Parameters
    ----------
    loo, outer : ndarray of shape (n_splits,)
        Leave-one-out score and test score of each split.
    score : str
        Name of the score.
    smaller_is_better : bool or None
        Whether it is a rate or size of errors; None where nobody says.

    Attributes
    ----------
    ax_, figure_ : axes and figure drawn on.
    """

    ax_: Any
    figure_: Any

    def __init__(
        self, *, loo: Array, outer: Array, score: str, smaller_is_better: bool | None
    ) -> None:
        self.loo = loo
        self.outer = outer
        self.score = score
        self.smaller_is_better = smaller_is_better

    @classmethod
    def from_assessment(
        cls, assessment: Assessment, *, score: str | None = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """The splits of an assessment.

        Parameters
        ----------
        assessment : Assessment
            Of `looms.assess`, of a machine of looms.
        score : str, default=None
            Which of its scores; the first unless given.
        ax : matplotlib axes, default=None
            To draw on; those of a new figure unless given.
        **kwargs
            For `plot`.

        Returns
        -------
        display : OptimismDisplay
            Drawn; `compute` gives it without, and needs no matplotlib.
        """
        return cls.compute(assessment, score=score).plot(ax, **kwargs)

    @classmethod
    def compute(cls, assessment: Assessment, *, score: str | None = None) -> Self:
        """What `from_assessment` draws, not drawn."""
        name = assessment.scores[0] if score is None else score
        if name not in assessment.scores:
            raise ValueError(f"score must be one of {', '.join(assessment.scores)}; got {score!r}.")
        pairs = [
            (split.loo_scores[name], split.scores[name])
            for split in assessment.splits
            if split.error is None and name in split.loo_scores
        ]
        if not pairs:
            raise ValueError(
                "The assessment has no leave-one-out scores; these are of machines of looms."
            )
        loo, outer = np.array(pairs).T
        return cls(
            loo=loo,
            outer=outer,
            score=name,
            smaller_is_better=assessment.figures(name).smaller_is_better,
        )

    @property
    def optimism(self) -> float | None:
        """Mean of leave-one-out score less test score, signed so that positive flatters.

        None where nobody says which way is better.
        """
        if self.smaller_is_better is None:
            return None
        difference = float(np.mean(self.loo - self.outer))
        return -difference if self.smaller_is_better else difference

    def plot(self, ax: Any = None) -> Self:
        """Draw a dot a split, the means as a cross, and the line where both are equal.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Those of a new figure unless given.

        Returns
        -------
        self : OptimismDisplay
            With ``ax_`` and ``figure_``.
        """
        ax = axes_for(self, ax)
        ends = [
            min(self.loo.min(), self.outer.min()),
            max(self.loo.max(), self.outer.max()),
        ]
        ax.plot(ends, ends, color=ink(), linewidth=0.6, linestyle=":")
        ax.plot(self.loo, self.outer, "o", color="C0", markersize=3.5, alpha=0.6, label="a split")
        ax.plot(
            self.loo.mean(), self.outer.mean(), "+", color="C1", markersize=12, mew=2, label="mean"
        )
        label_axes(ax, f"{short(self.score)}, leave-one-out", f"{short(self.score)}, test part")
        ax.legend(fontsize="small", frameon=False)
        plain_frame(ax)
        return self
