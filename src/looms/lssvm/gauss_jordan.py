"""Leave-one-out by elimination with cached partial states: the reference algorithm.

It asks nothing of the linear system but pivots that are not zero, and takes no formula on trust:
each left-out system is really solved. The closed form gives the same outputs in
O(n^3) operations and O(n^2) memory, against n^4/6 and n^3/3 here.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from looms._typing import Array
from looms.leave_one_out import LeaveOneOut
from looms.lssvm._system import checked_system, ridge


def gauss_jordan_loo(
    K: npt.ArrayLike,
    y: npt.ArrayLike,
    mu: float,
    *,
    sample_weight: npt.ArrayLike | None = None,
    fit_intercept: bool = True,
) -> LeaveOneOut:
    r"""Leave-one-out outputs of a weighted LS-SVM, by elimination resumed from cached states.

    .. math:: f^{(-i)}(x_i) = \sum_{j \neq i} \alpha_j^{(-i)} K_{ij} + b^{(-i)}, \quad
              \begin{bmatrix} K + \lambda & 1 \\ 1^\top & 0 \end{bmatrix}_{(-i)}
              \begin{bmatrix} \alpha^{(-i)} \\ b^{(-i)} \end{bmatrix} =
              \begin{bmatrix} y \\ 0 \end{bmatrix}_{(-i)}, \quad
              \lambda = n \mu \, \mathrm{diag}(1 / \zeta)

    The bordered matrix beside its right-hand sides, :math:`A^0`, is eliminated
    once, giving :math:`A^1, A^2, \dots`; the system without sample :math:`i`
    resumes from :math:`A^{i-1}` with row and column :math:`i` struck out.

    Source: Saadi, Cawley & Talbot (2002), Section 3; its :math:`\ell` is ``n``,
    its :math:`\gamma` is ``1 / mu``, its :math:`\Omega` is :math:`K + \lambda`.
    The weights :math:`\zeta` (``sample_weight``) are those of Cawley (2006).

    Parameters
    ----------
    K : array-like of shape (n_samples, n_samples)
        Kernel matrix, symmetric. Not checked to be positive semidefinite.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Targets; labels are coded as -1 and +1. One elimination serves all columns.
    mu : float
        Regularisation, positive; not its logarithm.
    sample_weight : array-like of shape (n_samples,), optional
        Positive weights in the training loss, ones by default; not rescaled.
    fit_intercept : bool, default=True
        Without it the border is dropped, :math:`b = 0`: kernel ridge regression.

    Returns
    -------
    LeaveOneOut
        Exact, in units of `y`, with `sample_weight` as its weights. ``lambda_i``
        keeps its full-sample value :math:`n \mu / \zeta_i`, ``n`` not ``n - 1``,
        while a sample is left out.

    Raises
    ------
    ValueError
        If the arguments are not finite, not positive or not of matching shapes,
        `K` is not symmetric, or there are fewer than two samples.
    numpy.linalg.LinAlgError
        If a pivot is zero.

    Notes
    -----
    About n^4/6 + 5n^3/3 operations for one target (`cached_flops` is exact).
    A step of the elimination leaves alone the rows above and the columns to the
    left, so only the trailing block of each state is kept: n^3/3 numbers in
    total, 21 MB at n = 200 and 2.7 GB at n = 1000.

    There is no pivoting. For a positive semidefinite `K` and ``mu > 0`` none is
    needed: every pivot before the border is at least ``min(lambda)``. Otherwise
    a pivot that is small but not zero loses digits silently.

    Examples
    --------
    A zero kernel and ``lambda = 1`` predict each target by the mean of the others.

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
    return LeaveOneOut(y, outputs.reshape(y.shape), zeta)


def partial_states(A: Array) -> Iterator[Array]:
    r"""Partial states :math:`A^0, A^1, \dots` of an elimination, each as its trailing block.

    .. math:: A^{k}_{rc} = A^{k-1}_{rc} - A^{k-1}_{rk} A^{k-1}_{kc} / A^{k-1}_{kk},
              \qquad r, c > k

    Source: Saadi, Cawley & Talbot (2002), Section 3, where the states are
    printed in full: those entries of :math:`A^k` that are not in its trailing
    block are zero or stand in the first row of an earlier state.

    Parameters
    ----------
    A : ndarray of shape (m, m + n_targets)
        A square system beside its right-hand sides. Not modified.

    Yields
    ------
    state : ndarray of shape (m - k, m - k + n_targets)
        That of :math:`A^k` for ``k = 0, ..., m - 1``, computed only when asked for. Its
        first row is row ``k + 1`` of the triangular form, from the diagonal on.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the first entry of a state is zero, once the next state is asked for.

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
    r"""Upper triangular form of a linear system, to be solved by back-substitution.

    .. math:: U_{kc} = A^{k-1}_{kc}, \qquad c \geq k

    Source: Saadi, Cawley & Talbot (2002), Section 3: the last partial state.

    Parameters
    ----------
    A : ndarray of shape (m, m + n_targets)
        A square system beside its right-hand sides. Not modified.

    Returns
    -------
    ndarray of shape (m, m + n_targets)
        The equivalent system, zero below the diagonal and nowhere on it.

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


def cached_flops(n: int, *, fit_intercept: bool = True) -> int:
    r"""Floating-point operations of `gauss_jordan_loo` for one target.

    .. math:: E(N) - E(N - n + 1) + \sum_{i=1}^{n} E(N - i) + n (M^2 + 2 M - 1), \quad
              E(m) = \sum_{k=1}^{m} (k - 1)(2 k + 1)

    with :math:`N = n + 1` unknowns (``n`` without intercept), :math:`M = N - 1`
    of them left; :math:`E(m)` is the elimination of ``m`` rows below the
    pivots. The terms are the cached elimination, the resumed ones, and for each
    sample the back-substitution and the output.

    Source: counted on the code; Saadi, Cawley & Talbot (2002) give no formula.

    Parameters
    ----------
    n : int
        Number of samples, two or more; not checked.
    fit_intercept : bool, default=True
        Whether the system is bordered.

    Returns
    -------
    int
        Multiplications, additions, subtractions and divisions, each as one.
        Neither `K` nor ``lambda`` is counted. Asymptotically n^4/6.

    Examples
    --------
    >>> plain_flops(400) / cached_flops(400)  # doctest: +ELLIPSIS
    5.82...
    """
    n_unknowns = n + fit_intercept
    m = n_unknowns - 1
    shared = _elimination_flops(n_unknowns) - _elimination_flops(n_unknowns - n + 1)
    resumed = sum(_elimination_flops(n_unknowns - i) for i in range(1, n + 1))
    return shared + resumed + n * (m**2 + 2 * m - 1)


def plain_flops(n: int, *, eliminate_above: bool = True, fit_intercept: bool = True) -> int:
    r"""Floating-point operations of leave-one-out by ``n`` separate eliminations.

    .. math:: n (M^3 + M^2 - M + 2 M - 1)

    with :math:`M = n` unknowns left (``n - 1`` without intercept): Gauss–Jordan
    elimination above and below each pivot, then the output. Eliminating below
    only, then substituting back, takes :math:`E(M) + M^2` (`cached_flops`) in
    place of the first three terms, asymptotically two thirds of them.

    Source: counted on the code; Saadi, Cawley & Talbot (2002) give no formula.

    Parameters
    ----------
    n : int
        Number of samples, two or more; not checked.
    eliminate_above : bool, default=True
        Whether the entries above a pivot are eliminated as well.
    fit_intercept : bool, default=True
        Whether the system is bordered.

    Returns
    -------
    int
        Operations for one target, counted as in `cached_flops`.

    Notes
    -----
    Over `cached_flops` this tends to 6, as in the paper, and to 4 without
    `eliminate_above`. The paper prints 5.83 at ``n = 400``, the ratio here being
    5.82, and 2.28 at ``n = 20``, where it is 3.68.

    Examples
    --------
    >>> round(plain_flops(10**4) / cached_flops(10**4), 2)
    5.99
    >>> round(plain_flops(10**4, eliminate_above=False) / cached_flops(10**4), 2)
    4.0
    """
    m = n - 1 + fit_intercept
    solve = m**3 + m**2 - m if eliminate_above else _elimination_flops(m) + m**2
    return n * (solve + 2 * m - 1)


def _elimination_flops(m: int) -> int:
    # The sum over k of k - 1 divisions and (k - 1) k multiplications, as many subtractions.
    return m * (m - 1) * (4 * m + 7) // 6


def _first_rows(states: Iterable[Array], shape: tuple[int, ...]) -> Array:
    U = np.zeros(shape)
    for k, state in enumerate(states):
        U[k, k:] = state[0]
    return U
