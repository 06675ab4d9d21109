"""Held-out outputs of a model, returned by every producer and taken by every criterion."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from looms._typing import Array

__all__ = ["HeldOut"]


def _frozen(values: npt.ArrayLike) -> Array:
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


@dataclass(frozen=True, eq=False, init=False, repr=False)
class HeldOut:
    r"""Targets, and outputs of the models trained without them.

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
        Weight of each sample in a criterion; ones by default. Its sign and
        scale are not checked.

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
    each access. Equal only to itself, as comparing arrays has no single answer.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([1.0, 2.0, 6.0])
    >>> mean_of_the_others = (y.sum() - y) / 2
    >>> loo = HeldOut(y, mean_of_the_others)
    >>> loo
    HeldOut(n_samples=3, rms_residual=3.24)
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
        y, outputs = _frozen(y), _frozen(outputs)
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
        weight = _frozen(np.ones(len(y)) if sample_weight is None else sample_weight)
        if weight.shape != y.shape[:1]:
            raise ValueError(
                "sample_weight must have one entry per row of y, but sample_weight has shape "
                f"{weight.shape} and y has shape {y.shape}."
            )
        object.__setattr__(self, "y", y)
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "sample_weight", weight)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A pickled array forgets that it was read-only.
        HeldOut.__init__(self, **state)

    def __iter__(self) -> Iterator[Array]:
        """``y``, ``outputs`` and ``sample_weight``, as criteria take them: ``error_rate(*loo)``."""
        return iter((self.y, self.outputs, self.sample_weight))

    @property
    def n_samples(self) -> int:
        """Number of samples, each left out once."""
        return len(self.y)

    @property
    def residuals(self) -> Array:
        """Leave-one-out residuals, ``y - outputs``."""
        return self.y - self.outputs

    def __repr__(self) -> str:
        with np.errstate(all="ignore"):  # nothing here is checked to be finite
            rms = np.sqrt(np.mean(self.residuals**2))
            weighted = bool(np.ptp(self.sample_weight) > 0)
        parts = [f"n_samples={self.n_samples}"]
        if self.y.ndim == 2:
            parts.append(f"n_targets={self.y.shape[1]}")
        if weighted:
            parts.append("weighted=True")
        return f"HeldOut({', '.join(parts)}, rms_residual={rms:.3g})"
