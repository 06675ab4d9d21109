"""Leave-one-out outputs of a regression against its targets."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from looms._typing import Array
from looms.report._axes import axes_for, ink, plain_frame
from looms.report._model import model_of


class ResidualsDisplay:
    """Leave-one-out outputs against targets, with the band that holds a share of them.

    Parameters
    ----------
    target, output : ndarray of shape (n_samples,)
        Targets and the outputs of the machines that did not see them.
    interval : ndarray of shape (n_samples, 2) or None
        Ends of an interval around each output.
    coverage : float
        Share of the targets that the intervals are to hold.

    Attributes
    ----------
    ax_, figure_ : axes and figure drawn on.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from looms import LSSVMRegressor
    >>> from looms.report import ResidualsDisplay
    >>> model = LSSVMRegressor(mu=1e-2).fit(*load_diabetes(return_X_y=True))
    >>> display = ResidualsDisplay.from_estimator(model, coverage=0.8)
    >>> low, high = display.interval.T
    >>> float(((low <= display.target) & (display.target <= high)).mean().round(2))
    0.8
    """

    ax_: Any
    figure_: Any

    def __init__(
        self, *, target: Array, output: Array, interval: Array | None = None, coverage: float = 0.9
    ) -> None:
        self.target = target
        self.output = output
        self.interval = interval
        self.coverage = coverage

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        coverage: float = 0.9,
        target: int = 0,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """The leave-one-out outputs of a fitted regressor.

        Parameters
        ----------
        estimator : regressor of looms, or pipeline that ends in one
            Fitted.
        coverage : float, default=0.9
            The interval around every output is as wide on both sides as the
            ⌈coverage · n⌉-th smallest absolute residual, samples counted by their weight.
            Hyper-parameters that were chosen
            by the same residuals make it narrower than new samples need.
        target : int, default=0
            Which one, of several.
        ax : matplotlib axes, default=None
            To draw on; those of a new figure unless given.
        **kwargs
            For `plot`.

        Returns
        -------
        display : ResidualsDisplay
            Drawn; `compute` gives it without, and needs no matplotlib.
        """
        return cls.compute(estimator, coverage=coverage, target=target).plot(ax, **kwargs)

    @classmethod
    def compute(cls, estimator: Any, *, coverage: float = 0.9, target: int = 0) -> Self:
        """What `from_estimator` draws, not drawn."""
        model = model_of(estimator)
        if model.classification:
            raise TypeError(f"{cls.__name__} is of regressors; RocDisplay of classifiers.")
        if not 0 < coverage < 1:
            raise ValueError(f"coverage must be between 0 and 1, got {coverage!r}.")
        seen = model.seen
        y, outputs, share = model.loo.y[seen], model.loo.outputs[seen], model.share[seen]
        if y.ndim == 2:
            if not 0 <= target < y.shape[1]:
                raise ValueError(f"target must be 0 to {y.shape[1] - 1}, got {target!r}.")
            y, outputs = y[:, target], outputs[:, target]
        sizes = np.abs(y - outputs)
        order = np.argsort(sizes, kind="stable")
        # Less by rounding, so that of equal weights the ⌈coverage · n⌉-th is met.
        place = int(np.searchsorted(np.cumsum(share[order]), coverage * (1 - 1e-12)))
        half = sizes[order[min(place, len(y) - 1)]]
        interval = np.column_stack([outputs - half, outputs + half])
        return cls(target=y, output=outputs, interval=interval, coverage=coverage)

    @property
    def residual(self) -> Array:
        """Target less output."""
        return self.target - self.output

    def plot(self, ax: Any = None, *, max_points: int = 2000) -> Self:
        """Draw targets against outputs, and the interval.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Those of a new figure unless given.
        max_points : int, default=2000
            Of more samples, those with the largest residuals and an even choice of the
            others are drawn.

        Returns
        -------
        self : ResidualsDisplay
            With ``ax_`` and ``figure_``.
        """
        ax = axes_for(self, ax)
        ends = np.array([self.output.min(), self.output.max()])
        ax.plot(ends, ends, color=ink(), linewidth=0.6, linestyle=":")
        if self.interval is not None:
            order = np.argsort(self.output, kind="stable")
            ax.fill_between(
                self.output[order],
                *self.interval[order].T,
                color="C1",
                alpha=0.18,
                linewidth=0,
                label=f"{100 * self.coverage:g} % of the leave-one-out residuals",
            )
            ax.legend(fontsize="small", frameon=False, loc="upper left")
        shown = spread_out(np.abs(self.residual), max_points)
        ax.plot(self.output[shown], self.target[shown], "o", color="C0", markersize=2.5, alpha=0.6)
        ax.set(xlabel="leave-one-out output", ylabel="target")
        plain_frame(ax)
        return self


def spread_out(size: Array, most: int) -> Any:
    """Indices of at most ``most`` values: half of them the largest, the others spread evenly."""
    if len(size) <= most:
        return np.arange(len(size))
    order = np.argsort(-size, kind="stable")
    rest = order[most // 2 :]
    even = rest[np.linspace(0, len(rest) - 1, most - most // 2).round().astype(int)]
    return np.sort(np.concatenate([order[: most // 2], even]))
