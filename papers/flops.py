"""Operations of leave-one-out by Gauss–Jordan elimination, counted by formula [S04]."""

from __future__ import annotations


def cached_flops(n: int, *, fit_intercept: bool = True) -> int:
    """Floating-point operations of `gauss_jordan_loo` for one target.

    E(N) − E(N − n + 1) + Σ_{i=1..n} E(N − i) + n (M² + 2M − 1) with N = n + 1 unknowns
    (n without intercept), M = N − 1 of them left, and E(m) = Σ_{k=1..m} (k − 1)(2k + 1),
    the elimination of m rows below the pivots. The terms are the cached elimination, the
    resumed ones, and for each sample the back-substitution and the output. Counted on the
    code; [S04] gives no formula.

    Parameters
    ----------
    n : number of samples, two or more; not checked.
    fit_intercept : whether the system is bordered.

    Returns
    -------
    flops : multiplications, additions, subtractions and divisions, each as one. Neither
        ``K`` nor λ is counted. Asymptotically n⁴/6.

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
    """Floating-point operations of leave-one-out by n separate eliminations, for one target.

    n (M³ + M² − M + 2M − 1) with M = n unknowns left (n − 1 without intercept):
    Gauss–Jordan elimination above and below each pivot, then the output. Eliminating below
    only, then substituting back, takes E(M) + M² (`cached_flops`) in place of the first
    three terms, asymptotically two thirds of them. Counted on the code; [S04] gives no
    formula.

    Parameters
    ----------
    n : number of samples, two or more; not checked.
    eliminate_above : whether the entries above a pivot are eliminated as well.
    fit_intercept : whether the system is bordered.

    Returns
    -------
    flops : counted as in `cached_flops`.

    Notes
    -----
    Over `cached_flops` this tends to 6, as in [S04], and to 4 without
    ``eliminate_above``. [S04] prints 5.83 at n = 400, the ratio here being 5.82, and 2.28
    at n = 20, where it is 3.68.

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
