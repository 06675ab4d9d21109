"""Leave-one-out scores against the scores of outer splits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from looms._typing import Array
from looms.assessment._result import Assessment
from looms.report.displays.base import Display, diagonal, label_axes
from looms.report.text import short


@dataclass(eq=False, repr=False, kw_only=True)
class OptimismDisplay(Display):
    """Leave-one-out score and test score of every outer split.

    A dot is a split, the cross their means; on the line both scores are equal.

    Parameters
    ----------
    loo, outer : ndarray of shape (n_splits,)
        Leave-one-out score and test score of each split.
    score : str
        Name of the score.
    smaller_is_better : bool or None
        Direction of the score; None if it is unknown.
    """

    loo: Array
    outer: Array
    score: str
    smaller_is_better: bool | None

    @classmethod
    def from_assessment(
        cls, assessment: Assessment, *, score: str | None = None, ax: Any = None
    ) -> Self:
        """Draw the splits of an assessment.

        Parameters
        ----------
        assessment : Assessment
            Of `looms.assess`, of a machine of looms.
        score : str, default=None
            One of its scores; the first unless given.
        ax : matplotlib axes, default=None
            To draw on; those of a new figure unless given.

        Returns
        -------
        display : OptimismDisplay
            Drawn; `compute` gives it without, and needs no matplotlib.
        """
        return cls.compute(assessment, score=score).plot(ax)

    @classmethod
    def compute(cls, assessment: Assessment, *, score: str | None = None) -> Self:
        """The display that `from_assessment` draws, not drawn."""
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
        direction = assessment.figures(name).smaller_is_better
        return cls(loo=loo, outer=outer, score=name, smaller_is_better=direction)

    @property
    def optimism(self) -> float | None:
        """Mean of leave-one-out score less test score, signed so that positive flatters.

        None where the direction of the score is unknown.
        """
        if self.smaller_is_better is None:
            return None
        difference = float(np.mean(self.loo - self.outer))
        return -difference if self.smaller_is_better else difference

    def _draw(self, ax: Any) -> None:
        both = np.append(self.loo, self.outer)
        diagonal(ax, both.min(), both.max())
        ax.plot(self.loo, self.outer, "o", color="C0", markersize=3.5, alpha=0.6, label="a split")
        means = self.loo.mean(), self.outer.mean()
        ax.plot(*means, "+", color="C1", markersize=12, mew=2, label="mean")
        label_axes(ax, f"{short(self.score)}, leave-one-out", f"{short(self.score)}, test part")
