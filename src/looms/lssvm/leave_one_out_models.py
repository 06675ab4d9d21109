"""Leave-one-out models, with their outputs for new points and for the samples.

Leaving out sample i changes the machine by one column of the inverse P of its system [C06 II-E],

    α⁽⁻ⁱ⁾ = α − r_i P e_i,    b⁽⁻ⁱ⁾ = b − r_i η_i / Ση,

so all n models follow from products with P. P⁽⁻ⁱ⁾ = P − P e_i e_iᵀ P / p_i also gives the models
without two samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import blas

from looms._typing import AnyArray, Array
from looms.lssvm._system import Fit, LeverageError, targets_as_columns

_ALL = slice(None)


@dataclass(frozen=True, eq=False)
class LeaveOneOutModels:
    """The n machines f⁽⁻ⁱ⁾ trained without one of the samples, in closed form.

    Created by `Solution.models`.

    Attributes
    ----------
    fit : the machine trained on all samples, and its leave-one-out outputs.
    P : (n, n) M⁻¹ − η ηᵀ / Ση, symmetric, both triangles valid.
    share : (n,) η / Ση; zero without an intercept.
    ridge : (n,) λ_i = n mu / ζ_i, which stays the same while a sample is left out.
    residuals : y_i − f⁽⁻ⁱ⁾(x_i), shaped like the targets; f⁽⁻ⁱ⁾ is trained without the
        whole set of i.
    corner : 1 / Ση; zero without an intercept.
    sets : rows of each set of two or more that are held out together.
    """

    fit: Fit
    P: Array
    share: Array
    ridge: Array
    residuals: Array
    corner: float
    sets: tuple[AnyArray, ...] = ()

    @property
    def p(self) -> Array:
        """Diagonal of P, (n,), positive. 1 / p_i is the leave-one-out variance of x_i, noise
        included, for the Gaussian process of covariance K and noise variances λ."""
        return self.P.diagonal()

    @property
    def leverage(self) -> Array:
        """∂f(x_i) / ∂y_i = 1 − λ_i p_i, (n,), in [0, 1]: the leverage."""
        return 1.0 - self.ridge * self.p

    def outputs(self, K_new: Array) -> Array:
        """Outputs of every leave-one-out model at new points, from one matrix product.

        F_ti = f⁽⁻ⁱ⁾(x_t) = f(x_t) − (K_new P + 1 (η / Ση)ᵀ)_ti r_i, or with the sum of these
        products over the set of i.

        Parameters
        ----------
        K_new : (m, n) kernel values between new points and training samples.

        Returns
        -------
        outputs : (m, n), or (m, n, t) for (n, t) targets.

        Notes
        -----
        2 m n² flops; three m×n arrays for one target: limit m to limit the memory.

        Examples
        --------
        >>> import numpy as np
        >>> from looms.lssvm import solve
        >>> y = np.array([1.0, 2.0, 6.0])         # K = 0 predicts the mean of the others
        >>> solve(np.zeros((3, 3)), y, mu=1.0).models().outputs(np.zeros((1, 3))).round(12)
        array([[4. , 3.5, 1.5]])
        """
        (outputs,) = self.output_blocks(K_new, max(1, len(K_new)))
        return outputs

    def output_blocks(self, K_new: Array, n_rows: int) -> Iterator[Array]:
        """Blocks of `outputs` by rows, (n_rows, n) or (n_rows, n, t) each.

        There is one matrix product for all blocks; its size does not depend on the number of
        targets.

        Parameters
        ----------
        K_new : (m, n) kernel values between new points and training samples.
        n_rows : number of new points in a block, positive; the last block may have fewer.
        """
        alpha, r = targets_as_columns(self.fit.alpha), targets_as_columns(self.residuals)
        change = blas.dgemm(-1.0, self.P, K_new.T).T  # with rows together, as they are read
        change -= self.share
        whole = blas.dgemm(1.0, K_new, alpha) + self.fit.intercept
        for start in range(0, max(1, len(K_new)), n_rows):
            rows = slice(start, start + n_rows)
            outputs = outputs_without(whole[rows], change[rows], r, self.sets)
            yield outputs.reshape(len(outputs), *self.fit.alpha.shape)

    def without(self, G: AnyArray) -> tuple[Array, Array]:
        """Coefficients, (n, t), and intercept, (t,), without rows that are held out together."""
        e = targets_as_columns(self.residuals)[G]
        alpha = targets_as_columns(self.fit.alpha) - self.P[:, G] @ e
        return alpha, self.fit.intercept - self.share[G] @ e

    def changes(self, left_out: slice = _ALL) -> Array:
        """Changes of the outputs if a sample is left out, D_ji = f⁽⁻ⁱ⁾(x_j) − f(x_j).

        D_ji = λ_j P_ji r_i for j ≠ i, and D_ii = −r_i (1 − λ_i p_i).

        Parameters
        ----------
        left_out : the samples i; all by default.

        Returns
        -------
        changes : (n, n_left_out), or (n, n_left_out, t) for (n, t) targets, in their units.

        Notes
        -----
        O(n n_left_out t).

        Examples
        --------
        >>> import numpy as np
        >>> from looms.lssvm import solve
        >>> y = np.array([1.0, 2.0, 6.0])         # K = 0: the mean is 3, and 4 without y_0
        >>> solve(np.zeros((3, 3)), y, mu=1.0).models().changes()[:, 0].round(12)
        array([1., 1., 1.])
        """
        r = self._single_residuals[left_out]
        changes = (self.ridge[:, None] * self.P[:, left_out])[:, :, None] * r
        changes[self._own(left_out)] -= r
        return changes.reshape(len(self.P), len(r), *self.fit.alpha.shape[1:])

    def pair_residuals(self, left_out: slice = _ALL) -> Array:
        """Leave-one-out residuals of each leave-one-out model, with two samples left out.

        R_ji = y_j − f⁽⁻ⁱ⁻ʲ⁾(x_j) = (α_j − P_ji r_i) / (p_j − P_ji² / p_i), R_ii = r_i

        Parameters
        ----------
        left_out : the samples i; all by default.

        Returns
        -------
        residuals : (n, n_left_out), or (n, n_left_out, t) for (n, t) targets, in their units.

        Raises
        ------
        NotPositiveDefiniteError
            If the system without some pair of samples is singular in double precision.

        Notes
        -----
        O(n n_left_out t) in total, without refits. With an intercept it needs three samples.

        Examples
        --------
        >>> import numpy as np
        >>> from looms.lssvm import solve
        >>> y = np.array([1.0, 2.0, 6.0])         # K = 0: y_1 from y_2 alone, without y_0
        >>> solve(np.zeros((3, 3)), y, mu=1.0).models().pair_residuals()[:, 0].round(12)
        array([-3., -4.,  4.])
        """
        alpha, p = targets_as_columns(self.fit.alpha), self.p
        P, r, own = self.P[:, left_out], self._single_residuals, self._own(left_out)
        left = p[:, None] - P**2 / p[left_out]
        left[own] = p[left_out]
        if not (left > len(p) * np.finfo(np.float64).eps * p[:, None]).all():
            worst = np.argmin(left / p[:, None])
            raise LeverageError(self._mu, int(np.unravel_index(worst, left.shape)[0]))
        residuals = alpha[:, None, :] - P[:, :, None] * r[left_out]
        residuals /= left[:, :, None]
        residuals[own] = r[left_out]
        return residuals.reshape(len(p), -1, *self.fit.alpha.shape[1:])

    @property
    def _single_residuals(self) -> Array:
        """Residuals α_i / p_i, (n, t), of each row left out alone."""
        return targets_as_columns(self.fit.alpha) / self.p[:, None]

    def _own(self, left_out: slice) -> tuple[Any, Any]:
        """Indices of the entries of the left-out samples themselves in an (n, n_left_out) array."""
        rows = np.arange(len(self.P))[left_out]
        return rows, np.arange(len(rows))

    @property
    def _mu(self) -> float:
        return float(self.ridge[0] * self.fit.sample_weight[0] / len(self.ridge))


def outputs_without(whole: Array, change: Array, factors: Array, sets: Sequence[AnyArray]) -> Array:
    """Outputs of the models without each row, or its set, (m, n, t): f_j + D_ji e_i.

    Products are summed over each set.

    Parameters
    ----------
    whole : (m, t) outputs of the machine of all rows at new points.
    change : (m, n) D.
    factors : (n, t) e.
    sets : rows of each set of two or more that are held out together.
    """
    outputs = np.multiply(change[:, :, None], factors)
    for G in sets:
        outputs[:, G] = outputs[:, G].sum(axis=1, keepdims=True)
    outputs += whole[:, None, :]
    return np.asarray(outputs)
