"""Leave-one-out by elimination with cached partial states: the reference algorithm.

It solves each left-out system, and needs only nonzero pivots. The closed form gives the same
outputs in O(n³) operations and O(n²) memory, against n⁴/6 and n³/3 here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from looms._typing import Array
from looms.held_out import HeldOut
from looms.lssvm._system import checked_system, ridge


def gauss_jordan_loo(
    K: npt.ArrayLike,
    y: npt.ArrayLike,
    mu: float,
    *,
    sample_weight: npt.ArrayLike | None = None,
    fit_intercept: bool = True,
) -> HeldOut:
    """Leave-one-out outputs of a weighted LS-SVM, by elimination resumed from cached states.

    f⁽⁻ⁱ⁾(x_i) = Σ_{j ≠ i} α_j⁽⁻ⁱ⁾ K_ij + b⁽⁻ⁱ⁾, where α⁽⁻ⁱ⁾ and b⁽⁻ⁱ⁾ solve the system
    [[K + diag(λ), 1], [1ᵀ, 0]] [α; b] = [y; 0] with row and column i struck out and
    λ_i = n mu / ζ_i.

    The augmented system A⁰, with its right-hand sides, is eliminated once, which gives A¹, A², …;
    the system without sample i resumes from Aⁱ⁻¹ with row and column i struck out. Source:
    [S04 section 3], whose Ω is K + diag(λ).

    Parameters
    ----------
    K : (n, n) symmetric kernel matrix. Not checked to be positive semi-definite.
    y : (n,) or (n, t) targets, labels as ±1. One elimination serves all columns.
    mu : regularization, positive; not its logarithm.
    sample_weight : (n,) ζ, positive, not rescaled; ones by default.
    fit_intercept : False for kernel ridge regression: the border is dropped and b = 0.

    Returns
    -------
    loo : exact, in units of ``y``. λ_i keeps its full-sample value, n not n − 1, while a
        sample is left out.

    Raises
    ------
    ValueError
        If shapes do not agree, the kernel matrix is asymmetric, weights or μ are not
        positive, values are not finite, or there are fewer than two samples.
    numpy.linalg.LinAlgError
        If a pivot is zero.

    Notes
    -----
    About n⁴/6 + 5n³/3 operations for one target (counted in papers/flops.py). An
    elimination step does not change the rows above and the columns to the left, so only the
    trailing block of each state is kept: n³/3 numbers in total, 21 MB at n = 200 and
    2.7 GB at n = 1000.

    There is no pivoting. For a positive semi-definite ``K`` and μ > 0 none is needed:
    every pivot before the border is at least min λ. Otherwise a pivot that is small but
    not zero loses digits silently.

    Examples
    --------
    A zero kernel and λ = 1 predict each target by the mean of the others.

    >>> import numpy as np
    >>> gauss_jordan_loo(np.zeros((3, 3)), [1.0, 2.0, 6.0], mu=1 / 3).outputs
    array([4. , 3.5, 1.5])
    """
    K, y, zeta = checked_system(K, y, mu, sample_weight)
    n = len(y)
    # Row i of [K 1] evaluates a model at x_i; the border of the system repeats its last column.
    K1 = np.hstack([K, np.ones((n, 1))]) if fit_intercept else K
    targets = y.reshape(n, -1)
    n_unknowns, n_targets = K1.shape[1], targets.shape[1]
    A0 = np.zeros((n_unknowns, n_unknowns + n_targets))
    A0[:n, :n_unknowns] = K1
    A0[:n_unknowns, :n] = K1.T
    A0[np.diag_indices(n)] += ridge(mu, zeta)
    A0[:n, n_unknowns:] = targets

    states = list(islice(partial_states(A0), n))
    done = _first_rows(states, A0.shape)
    outputs = np.empty_like(targets)
    for i in range(n):
        U = np.zeros((n_unknowns - 1, n_unknowns - 1 + n_targets))
        U[:i] = np.delete(done[:i], i, axis=1)
        U[i:, i:] = triangular_form(states[i][1:, 1:])  # resumed, row and column i struck out
        beta = solve_triangular(U[:, :-n_targets], U[:, -n_targets:])
        outputs[i] = np.delete(K1[i], i) @ beta
    return HeldOut(y, outputs.reshape(y.shape), zeta)


def partial_states(A: Array) -> Iterator[Array]:
    """Partial states A⁰, A¹, … of an elimination, each as its trailing block.

    Aᵏ_rc = Aᵏ⁻¹_rc − Aᵏ⁻¹_rk Aᵏ⁻¹_kc / Aᵏ⁻¹_kk for r, c > k [S04 section 3]. The source prints
    the full states; entries of Aᵏ outside its trailing block are zero or equal to those in the
    first row of an earlier state.

    Parameters
    ----------
    A : (m, m + t) square system with its right-hand sides. Not modified.

    Yields
    ------
    state : (m − k, m − k + t) trailing block of Aᵏ for k = 0, …, m − 1, computed lazily.
        Its first row is row k + 1 of the triangular form, from the diagonal on.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the first entry of a state is zero; raised when the next state is computed.

    Examples
    --------
    >>> import numpy as np
    >>> for state in partial_states(np.array([[2.0, 1.0, 5.0], [4.0, 5.0, 13.0]])):
    ...     print(state)
    [[ 2.  1.  5.]
     [ 4.  5. 13.]]
    [[3. 3.]]
    """
    while len(A):
        yield A
        pivot = A[0, 0]
        if pivot == 0:
            raise np.linalg.LinAlgError(
                "Zero pivot: the linear system is singular, or would need pivoting. "
                "Increase mu, and check that K is positive semidefinite."
            )
        A = A[1:, 1:] - (A[1:, :1] / pivot) * A[:1, 1:]


def triangular_form(A: Array) -> Array:
    """Upper triangular form of a linear system, to be solved by back-substitution.

    U_kc = Aᵏ⁻¹_kc for c ≥ k: the last partial state [S04 section 3].

    Parameters
    ----------
    A : (m, m + t) square system with its right-hand sides. Not modified.

    Returns
    -------
    U : (m, m + t) equivalent system, zero below the diagonal and nonzero on it.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a pivot is zero.

    Examples
    --------
    >>> import numpy as np
    >>> triangular_form(np.array([[2.0, 1.0, 5.0], [4.0, 5.0, 13.0]]))
    array([[2., 1., 5.],
           [0., 3., 3.]])
    """
    return _first_rows(partial_states(A), A.shape)


def _first_rows(states: Iterable[Array], shape: tuple[int, ...]) -> Array:
    U = np.zeros(shape)
    for k, state in enumerate(states):
        U[k, k:] = state[0]
    return U
