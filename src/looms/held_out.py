"""Held-out outputs of a model, which every criterion takes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from looms import _html
from looms._advice import setting
from looms._scores import number_scores, score_with_error
from looms._typing import Array
from looms._words import count

__all__ = ["HeldOut"]


class ReadOnly:
    """Base class of frozen dataclasses whose arrays are read-only copies."""

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            if np.ndim(value):
                array = np.array(value)
                array.flags.writeable = False
                object.__setattr__(self, name, array)

    def __setstate__(self, state: dict[str, Any]) -> None:
        type(self).__init__(self, **state)  # a pickled array forgets that it was read-only


@dataclass(frozen=True, eq=False, init=False, repr=False)
class HeldOut(ReadOnly):
    r"""Targets, and outputs of models trained without them.

    .. math:: \mathrm{outputs}_i = f^{(-i)}(x_i), \qquad
              \mathrm{residuals}_i = y_i - f^{(-i)}(x_i)

    Source: Cawley (2006), Section II-E; its :math:`r_i^{(-i)}` is ``residuals[i]``
    and its :math:`\zeta_i` is ``sample_weight[i]``.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Targets; labels are coded as -1 and +1.
    outputs : array-like of the shape of `y`
        Row ``i`` is the output for sample ``i`` of the model trained without it,
        in units of `y`. Not checked to be finite.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each sample in a criterion; ones by default. Sign and scale are
        not checked.

    Attributes
    ----------
    y, outputs, sample_weight : ndarray
        The arguments as read-only float64 copies.

    Raises
    ------
    ValueError
        If the shapes do not agree, or there is no sample.

    Notes
    -----
    O(n_samples n_targets) in time and memory; ``residuals`` is computed at
    each access. An object is equal only to itself.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([1.0, 2.0, 6.0])
    >>> mean_of_the_others = (y.sum() - y) / 2
    >>> loo = HeldOut(y, mean_of_the_others)
    >>> loo
    HeldOut(n_samples=3: rmse=3.24 ± 0.81, mae=3 ± 0.87, r2=-1.25 ± 0)
    >>> loo.residuals
    array([-3. , -1.5,  4.5])
    """

    y: Array
    outputs: Array
    sample_weight: Array

    def __init__(
        self,
        y: npt.ArrayLike,
        outputs: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> None:
        y, outputs = np.asarray(y, np.float64), np.asarray(outputs, np.float64)
        if y.ndim not in (1, 2) or y.size == 0:
            raise ValueError(
                "y must have shape (n_samples,) or (n_samples, n_targets), at least one of each, "
                f"but has shape {y.shape}."
            )
        if outputs.shape != y.shape:
            raise ValueError(
                f"y and outputs must have the same shape, but y has shape {y.shape} "
                f"and outputs has shape {outputs.shape}."
            )
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        if weight.shape != y.shape[:1]:
            raise ValueError(
                f"{setting('sample_weight')} must have one entry per row of y, but sample_weight "
                f"has shape {weight.shape} and y has shape {y.shape}."
            )
        vars(self).update(y=y, outputs=outputs, sample_weight=weight)
        self.__post_init__()

    def __iter__(self) -> Iterator[Array]:
        """``y``, ``outputs`` and ``sample_weight``, as criteria take them: ``error_rate(*loo)``."""
        return iter((self.y, self.outputs, self.sample_weight))

    @property
    def n_samples(self) -> int:
        """Number of samples, each held out once."""
        return len(self.y)

    @property
    def residuals(self) -> Array:
        """Leave-one-out residuals, ``y - outputs``."""
        return self.y - self.outputs

    def _scores(self) -> list[tuple[str, str]]:
        """Names and texts of scores of the outputs as they are; none if no sample is finite and has
        a weight."""
        y, outputs, weight = (values[self.sample_weight > 0] for values in self)
        with np.errstate(all="ignore"):  # nothing here is checked to be finite
            if not (len(y) and all(np.isfinite(values).all() for values in (y, outputs, weight))):
                return []
            scores = number_scores(y, outputs[None], weight)
        return [(name, score_with_error(name, *pair)) for name, pair in scores.items()]

    def _remarks(self) -> list[str]:
        """Where to find scores of classes; those of these outputs, which are biased, mislead."""
        coded = bool((np.abs(self.y) == 1).all())
        return ["if ±1 are classes, accuracies and AUC are in evaluate() of the model"] * coded

    def __repr__(self) -> str:
        parts = [f"n_samples={self.n_samples}"]
        if self.y.ndim == 2:
            parts.append(f"n_targets={self.y.shape[1]}")
        if (self.sample_weight != self.sample_weight[0]).any():
            parts.append("weighted=True")
        scores = ", ".join(map("=".join, self._scores()))
        text = "; ".join(filter(None, [scores, *self._remarks()]))
        return f"HeldOut({', '.join(parts)}{': ' if text else ''}{text})"

    def _repr_html_(self) -> str:
        remarks = [*self._remarks(), "standard errors take each sample for one draw"]
        notes = [f"{remark[0].upper()}{remark[1:]}." for remark in remarks]
        caption = f"Held-out outputs of {count(self.n_samples, 'sample')}"
        return _html.table(["score", "value ± s.e."], self._scores(), caption, notes)
