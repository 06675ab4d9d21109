"""Digits that leave-one-out outputs and gradients keep, on a ladder of condition numbers.

Kernel matrices K and ridges λ such that M = K + diag(λ) has a condition number of 1e2 to 1e16, of
several origins: the spectrum of K, its rank, a wide Gaussian kernel, features of other scales,
weights. Every row is left out by solving the system without it with 60 decimal digits. Errors are
of the leave-one-out outputs, in standard deviations of the targets, and of the derivative of PRESS
along the logarithm of the ridge and of the kernel's scale, over PRESS. "bound" is that of
`certify()`, "largest_over_bound" the largest of the three errors over it in one system, "refused"
the systems that raise an error.

    python benchmarks/conditioning.py [--rows 20] [--seeds 3]

The table is written to ``benchmarks/results/conditioning.csv``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any, NamedTuple

import numpy as np
from _report import write_table

from looms.lssvm import NotPositiveDefiniteError, solve
from looms.lssvm._system import ridge
from looms.lssvm.conditioning import condition_of, rounding_bound
from looms.units import Units

_DIGITS = 60
LADDER = tuple(10.0**k for k in range(2, 17, 2))


class Problem(NamedTuple):
    """Kernel matrix, targets, regularization and weights."""

    K: Any
    y: Any
    mu: float
    zeta: Any


def spectrum(condition: float, n: int, rng: np.random.Generator) -> Problem:
    """Eigenvalues of K in geometric progression down to the ridge."""
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    K = (Q * np.geomspace(1.0, 1.0 / condition, n)) @ Q.T
    return Problem((K + K.T) / 2, rng.normal(size=n), 1.0 / condition / n, np.ones(n))


def low_rank(condition: float, n: int, rng: np.random.Generator) -> Problem:
    """A linear kernel of few features, classes as targets."""
    X = rng.normal(size=(n, 4))
    K = X @ X.T
    mu = np.linalg.norm(K, 2) / condition / n
    return Problem(K, np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0), mu, np.ones(n))


def wide(condition: float, n: int, rng: np.random.Generator) -> Problem:
    """A Gaussian kernel much wider than the samples, a smooth target."""
    X = rng.uniform(-1, 1, size=(n, 2))
    K = np.exp(-0.01 * ((X[:, None] - X) ** 2).sum(axis=2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.01 * rng.normal(size=n)
    return Problem(K, y, np.linalg.norm(K, 2) / condition / n, np.ones(n))


def scales(condition: float, n: int, rng: np.random.Generator) -> Problem:
    """A linear kernel of features whose scales differ by the root of the condition number."""
    X = rng.normal(size=(n, n // 2)) * np.geomspace(1.0, condition**-0.5, n // 2)
    K = X @ X.T
    y = X @ rng.normal(size=n // 2) + 0.1 * rng.normal(size=n)
    return Problem(K, y, np.linalg.norm(K, 2) / condition / n, np.ones(n))


def weights(condition: float, n: int, rng: np.random.Generator) -> Problem:
    """Copies of one row that weigh much more than the others, and have so much smaller ridges."""
    X = rng.normal(size=(n, 3))
    X[:3] = X[0]
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    zeta = np.ones(n)
    zeta[:3] = condition**0.5
    mu = np.linalg.norm(K, 2) / condition**0.5 / n
    return Problem(K, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n), mu, zeta)


def offset(condition: float, n: int, rng: np.random.Generator) -> Problem:
    """A constant beside the kernel, which the intercept takes up, and targets far from zero."""
    K, y, _, zeta = wide(1e2, n, rng)
    return Problem(K + condition**0.5, y + 100.0, condition**-0.5, zeta)


FAMILIES: tuple[Callable[..., Problem], ...] = (spectrum, low_rank, wide, scales, weights, offset)


def decimals(values: Any) -> Any:
    """The same numbers, exactly, as Decimal."""
    return np.vectorize(lambda v: Decimal(float(v)), otypes=[object])(values)


def inverse(C: Any) -> Any:
    """Inverse of a matrix of Decimal by Gauss-Jordan elimination with partial pivoting."""
    n = len(C)
    A = np.hstack([C, decimals(np.eye(n))])
    for k in range(n):
        pivot = k + int(np.argmax(np.abs(A[k:, k])))
        A[[k, pivot]] = A[[pivot, k]]
        A[k] = A[k] / A[k, k]
        others = np.arange(n) != k
        A[others] = A[others] - np.outer(A[others, k], A[k])
    return A[:, n:]


def reference(problem: Problem, directions: list[tuple[Any, Any]]) -> tuple[Any, list[float]]:
    """Leave-one-out outputs, and derivatives of PRESS along changes of K and the ridge.

    Without row i the parameters p solve C p = r; along dC they change by −C⁻¹ dC p, and the output
    c·p by dc·p − c C⁻¹ dC p.
    """
    n = len(problem.y)
    with localcontext() as context:
        context.prec = _DIGITS
        K, y = decimals(problem.K), decimals(problem.y)
        lam = n * decimals(problem.mu) / decimals(problem.zeta)
        C = decimals(np.ones((n + 1, n + 1)))
        C[n, n] = Decimal(0)
        C[:n, :n] = K + np.diag(lam)
        right = np.append(y, Decimal(0))
        outputs, slopes = decimals(np.zeros(n)), [Decimal(0) for _ in directions]
        for i in range(n):
            others = np.delete(np.arange(n + 1), i)
            C_inverse = inverse(C[np.ix_(others, others)])
            p = C_inverse @ right[others]
            outputs[i] = C[i, others] @ p
            back = C[i, others] @ C_inverse
            for k, (dK, dlam) in enumerate(directions):
                dC = decimals(np.zeros((n + 1, n + 1)))
                dC[:n, :n] = decimals(dK) + np.diag(decimals(dlam) * lam)
                change = dC[i, others] @ p - back @ (dC[np.ix_(others, others)] @ p)
                slopes[k] += 2 * (outputs[i] - y[i]) * change / n
        return outputs.astype(float), [float(slope) for slope in slopes]


class Errors(NamedTuple):
    """Of one problem: condition number, bound, and errors; None of what was refused."""

    condition: float
    bound: float
    outputs: float | None
    along_ridge: float | None
    along_kernel: float | None


def measure(problem: Problem) -> Errors:
    """Errors of looms beside the reference."""
    K, y, mu, zeta = problem
    n = len(y)
    condition = condition_of(K + np.diag(ridge(mu, zeta)))
    try:
        machine = solve(K, y, mu, sample_weight=zeta)
    except NotPositiveDefiniteError:
        return Errors(condition, float("nan"), None, None, None)
    loo = machine.loo
    bound = rounding_bound(condition, loo)
    zero = np.zeros_like(K)
    expected, slopes = reference(problem, [(zero, np.ones(n)), (K, np.zeros(n))])
    press = np.mean((expected - y) ** 2)
    slope = -2 * loo.residuals / n
    G, slope_mu = machine.contract(Units.rows(n), slope[None, :, None])
    lower = np.tril(G, -1)
    along_kernel = np.vdot(lower + lower.T + np.diag(G.diagonal()), K)
    return Errors(
        condition,
        bound,
        float(np.abs(loo.outputs - expected).max() / y.std()),
        float(abs(slope_mu * mu - slopes[0]) / press),
        float(abs(along_kernel - slopes[1]) / press),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    table = []
    for family in FAMILIES:
        for condition in LADDER:
            errors = [
                measure(family(condition, options.rows, np.random.default_rng(seed)))
                for seed in range(options.seeds)
            ]
            solved = [e for e in errors if e.outputs is not None]
            worst = [max((e[k] for e in solved), default="") for k in (2, 3, 4)]
            ratio = max((max(e[2:]) / e.bound for e in solved), default="")
            table.append(
                (
                    *(family.__name__, f"{condition:.0e}", max(e.condition for e in errors)),
                    *(max(e.bound for e in errors), *worst, ratio, len(errors) - len(solved)),
                )
            )
    header = ("origin", "asked", "condition", "bound", "outputs", "along_ridge", "along_kernel")
    write_table("conditioning", (*header, "largest_over_bound", "refused"), table)


if __name__ == "__main__":
    main()
