"""Scores of test parts against leave-one-out scores."""

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

    Each dot is a split, and the cross is at the means; on the line both scores are equal.

    Parameters
    ----------
    loo, outer : ndarray of shape (n_splits,)
        Leave-one-out score and test score of each split.
    score : str
        Name of the score.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import KernelClassifier, assess
    >>> from looms.report import OptimismDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = OptimismDisplay.from_assessment(assess(KernelClassifier(), X, y, n_splits=5))
    >>> display.score, len(display.loo), bool(abs(display.loo - display.outer).mean() < 0.1)
    ('balanced_accuracy', 5, True)
    """

    loo: Array
    outer: Array
    score: str

    @classmethod
    def from_assessment(
        cls, assessment: Assessment, *, score: str | None = None, ax: Any = None
    ) -> Self:
        """Compute the display of an assessment, and draw it on ``ax``, or a new figure."""
        return cls.compute(assessment, score=score).plot(ax)

    @classmethod
    def compute(cls, assessment: Assessment, *, score: str | None = None) -> Self:
        """Splits of an assessment, not drawn.

        Parameters
        ----------
        assessment : Assessment
            Result of `looms.assess` for a looms model.
        score : str, default=None
            One of its scores; by default the first.
        """
        if not isinstance(assessment, Assessment):
            raise TypeError(
                f"{cls.__name__} draws an Assessment, which looms.assess(model, X, y) makes; got "
                f"{type(assessment).__name__}."
            )
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
                "The assessment has no held-out scores of training rows, which looms models have."
            )
        loo, outer = np.array(pairs).T
        return cls(loo=loo, outer=outer, score=name)

    def _draw(self, ax: Any) -> None:
        values = np.append(self.loo, self.outer)
        diagonal(ax, values.min(), values.max())
        ax.plot(self.loo, self.outer, "o", color="C0", markersize=3.5, alpha=0.6, label="a split")
        means = self.loo.mean(), self.outer.mean()
        ax.plot(*means, "+", color="C1", markersize=12, mew=2, label="mean")
        label_axes(ax, f"{short(self.score)}, held out", f"{short(self.score)}, test part")
