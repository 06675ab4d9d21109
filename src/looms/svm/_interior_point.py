"""Interior-point method: the default start of the active-set method."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from looms._typing import Array
from looms.svm._problem import NotConvergedError, Problem

_STEPS = 100
_CLOSE = 1e-9
_JITTERS = (0.0, *10.0 ** np.arange(-12, 7))


def interior_point(problem: Problem) -> Array:
    """β close to the solution, by Mehrotra's predictor and corrector [FS01].

    Works on x = |β| in [0, C] with multipliers z of x ≥ 0 and w of x ≤ C; each step costs one
    Cholesky factorization of K plus a diagonal. The result is close, not exact.
    """
    part = np.flatnonzero(problem.lower < problem.upper)
    y = problem.y[part]
    if abs(y.sum()) == len(y):
        return np.zeros(len(problem.y))
    Q = problem.K[np.ix_(part, part)] * np.outer(y, y)
    C = (problem.upper - problem.lower)[part]
    x = _solved(Q, y, C)
    x[x < 1e-6 * C] = 0.0
    near = x > (1 - 1e-6) * C
    x[near] = C[near]
    beta = np.zeros(len(problem.y))
    beta[part] = y * x
    return beta


def _solved(Q: Array, y: Array, C: Array) -> Array:
    x, z, w, b = 0.5 * C, np.ones(len(y)), np.ones(len(y)), 0.0
    z *= max(1.0, float(np.abs(Q @ x).max()))
    w = z.copy()
    for _ in range(_STEPS):
        s = C - x
        gradient = Q @ x - 1.0
        dual = gradient + b * y - z + w
        primal = float(y @ x)
        mu = float(x @ z + s @ w) / (2 * len(y))
        if mu * 2 * len(y) <= _CLOSE * (1 + abs(float(x.sum()))) and np.abs(dual).max() <= 1e-9:
            break
        system = _System(Q, y, z / x + w / s)
        dx, db = system.solve(-dual - z + w, -primal)
        dz, dw = -z - z / x * dx, -w + w / s * dx
        step = min(_longest(x, dx), _longest(s, -dx), _longest(z, dz), _longest(w, dw), 1.0)
        after = float((x + step * dx) @ (z + step * dz) + (s - step * dx) @ (w + step * dw))
        target = (after / (2 * len(y) * mu)) ** 3 * mu
        low, high = target - dx * dz, target + dx * dw
        dx, db = system.solve(-dual - z + w + low / x - high / s, -primal)
        dz, dw = low / x - z - z / x * dx, high / s - w + w / s * dx
        step = min(_longest(x, dx), _longest(s, -dx), _longest(z, dz), _longest(w, dw)) * 0.995
        step = min(step, 1.0)
        x, b, z, w = x + step * dx, b + step * db, z + step * dz, w + step * dw
        x = np.clip(x, 1e-14 * C, C * (1 - 1e-14))
    return x


class _System:
    """Factorized [[Q + diag(d), y], [yᵀ, 0]]; NotConvergedError if it is singular."""

    def __init__(self, Q: Array, y: Array, d: Array) -> None:
        self.y = y
        if not np.isfinite(d).all():
            raise NotConvergedError(np.inf, np.inf)
        for jitter in _JITTERS:
            A = Q.copy(order="F")
            A[np.diag_indices(len(y))] += d + jitter
            self.factor, info = lapack.dpotrf(A, lower=1, overwrite_a=1)
            if info == 0:
                break
        else:
            raise NotConvergedError(np.inf, np.inf)
        self.Ay, _ = lapack.dpotrs(self.factor, y, lower=1)

    def solve(self, r: Array, s: float) -> tuple[Array, float]:
        Ar, _ = lapack.dpotrs(self.factor, r, lower=1)
        db = float(self.y @ Ar - s) / float(self.y @ self.Ay)
        return Ar - db * self.Ay, db


def _longest(x: Array, dx: Array) -> float:
    falling = dx < 0
    return float(np.min(-x[falling] / dx[falling], initial=np.inf))
