"""Random machines on little data, their leave-one-out outputs against refits by plain NumPy."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

import looms
from looms import KernelClassifier, KernelRegressor
from looms._typing import Array
from looms.lssvm import NotPositiveDefiniteError, solve

#: Where rounding of the kernel matrix is amplified by no more, outputs must agree ...
ADMITTED = 1e-10
#: ... by this much of the largest target or output.
TOLERANCE = 1e-8

_MACHINES: dict[str, Any] = {
    "KernelRegressor": KernelRegressor,
    "KernelClassifier": KernelClassifier,
    "KernelClassifier of a hinge": partial(KernelClassifier, loss="hinge"),
    "KernelRegressor of features": KernelRegressor,
    "KernelClassifier of features": KernelClassifier,
}

_EPS = float(np.finfo(float).eps)


def kernel_matrix(X: Array, Y: Array, name: str, scale: float) -> Array:
    """Plain formulas of kernels, none of looms'."""
    squares = ((X[:, None] - Y[None]) ** 2).sum(axis=2)
    matrices = {
        "linear": lambda: X @ Y.T,
        "cubic": lambda: (1 + scale * (X @ Y.T)) ** 3,
        "rbf": lambda: np.exp(-scale * squares),
        "zero": lambda: np.zeros((len(X), len(Y))),
        "constant": lambda: np.full((len(X), len(Y)), scale),
    }
    return matrices[name]()


def refits(K: Array, Y: Array, ridge: Array, intercept: bool) -> Array:
    """Output for each sample of the machine that is solved without it, with refinement."""
    n = len(K)
    outputs = np.empty_like(Y)
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        A = np.zeros((len(rest) + intercept,) * 2)
        A[: len(rest), : len(rest)] = K[np.ix_(rest, rest)] + np.diag(ridge[rest])
        row = K[i, rest]
        right = Y[rest]
        if intercept:
            A[-1, :-1] = A[:-1, -1] = 1
            row, right = np.append(row, 1), np.vstack([right, np.zeros(Y.shape[1])])
        # Rows and columns scaled to a unit diagonal, the intercept to about that.
        scale = 1 / np.sqrt(np.append(np.diag(A)[: len(rest)], [1.0] * intercept))
        if intercept:
            scale[-1] = 1 / np.sqrt((scale[:-1] ** 2).sum())
        A, right, row = A * scale * scale[:, None], right * scale[:, None], row * scale
        factors = linalg.lu_factor(A)
        x = linalg.lu_solve(factors, right).astype(np.longdouble)
        for _ in range(5):
            x = x + linalg.lu_solve(factors, (right - A.astype(np.longdouble) @ x).astype(float))
        outputs[i] = (row.astype(np.longdouble) @ x).astype(float)
    return outputs


def run_problem(rng: np.random.Generator) -> tuple[str, str, str]:
    """Route, how a random problem ended, and if that is a finding, what it is."""
    route = str(rng.choice(["solve", "regressor", "classifier", *_MACHINES]))
    if route in _MACHINES:
        return route, *run_features(rng, route)
    extreme = rng.random() < 0.15
    spread = 150 if extreme else 4
    n, p = int(rng.integers(1, 41)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-spread / 2, spread / 2)
    if rng.random() < 0.2:
        X = X[rng.integers(0, n, n)]  # replicates
    name = str(rng.choice(["linear", "cubic", "rbf", "zero", "constant"]))
    scale, mu = 10.0 ** rng.uniform(-spread, spread), 10.0 ** rng.uniform(-spread - 6, spread)
    intercept, m = bool(rng.integers(2)), int(rng.integers(1, 4))
    Y = rng.normal(size=(n, m)) * 10.0 ** rng.uniform(-spread, spread)
    if rng.random() < 0.1:
        Y[:] = Y[0]
    if route == "classifier":
        Y = rng.choice([-1.0, 1.0], (n, 1))
    weight = None if rng.random() < 0.5 else 10.0 ** rng.uniform(-spread, spread / 2, n)
    if weight is not None and route != "solve" and rng.random() < 0.3:
        weight[rng.random(n) < 0.3] = 0
    what = f"{route} n={n} p={p} {name}({scale:.3g}) mu={mu:.3g} intercept={intercept} " + (
        f"targets={Y.shape[1]} up to {abs(Y).max():.3g} weights={'no' if weight is None else 'yes'}"
    )
    with np.errstate(all="ignore"):
        K = kernel_matrix(X, X, name, scale)
    if not np.isfinite(K).all():
        return route, "no problem", ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            outputs, used, zeta = _outputs(route, K, Y, mu, weight, intercept)
    except (ValueError, NotPositiveDefiniteError) as error:
        message = f"{type(error).__name__}: {error}"
        taking_part = Y if weight is None else Y[weight > 0]
        if (
            len(taking_part) < 3
            or len(np.unique(taking_part)) < 2
            or not _well_posed(K, mu, weight)
        ):
            return route, "refused", ""
        return route, "finding", f"refused, though well-conditioned: {message[:160]} | {what}"
    except Exception as error:
        return route, "finding", f"{type(error).__name__}: {str(error)[:160]} | {what}"
    if not np.isfinite(outputs).all():
        return route, "finding", f"not finite | {what}"
    if not _well_posed(K, mu, weight) or used.sum() < 3:
        return route, "finite", ""
    part = np.flatnonzero(used)
    ridge = len(part) * mu / zeta[part]
    expected = refits(K[np.ix_(part, part)], Y[part], ridge, intercept)
    size = max(abs(Y).max(), abs(expected).max())
    error = abs(outputs[part] - expected).max() / size if size else 0.0
    if not error <= TOLERANCE:
        return route, "finding", f"wrong by {error:.2g} | {what}"
    return route, "equal", ""


def run_features(rng: np.random.Generator, route: str) -> tuple[str, str]:
    """How a machine of features in any unit ended: no warning, no constant in place of a target.

    Features and targets are ordinary ones times a number. The machine learns them as it does the
    ordinary ones, or refuses them by the name of what is to be scaled.
    """
    n, p = int(rng.integers(12, 41)), int(rng.integers(1, 4))
    units = 10.0 ** np.array([-170, -155, -141, -100, -75, -20, 0, 0, 0, 20, 74, 77, 100, 155, 200])
    unit, target_unit = float(rng.choice(units)), float(rng.choice([1e-170, 1e-72, 1, 1, 1, 1e160]))
    if rng.random() < 0.5:
        unit *= 10.0 ** rng.uniform(-5, 5)
    X = rng.normal(size=(n, p))
    kernel = str(rng.choice(["linear", "quadratic", "cubic", "rbf", "ard"]))
    machine = _MACHINES[route](kernel)
    Y: Any = X[:, 0] + 0.1 * rng.normal(size=n)
    if not isinstance(machine, KernelRegressor | KernelRegressor):
        Y, target_unit = np.median(Y) < Y, 1
    what = f"{route}({kernel!r}) n={n} p={p} features * {unit:.3g} targets * {target_unit:.3g}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for category in (looms.BoundWarning, looms.DuplicatesWarning, ConvergenceWarning):
                warnings.simplefilter("ignore", category)
            if route.endswith("hinge"):  # whose range of C does not follow the features
                warnings.simplefilter("ignore", looms.OneClassWarning)
            outputs = machine.fit(unit * X, target_unit * Y).loo_.outputs
    except (ValueError, NotPositiveDefiniteError) as error:
        ordinary = 1e-20 < unit < 1e20 and target_unit == 1
        # A given mu may be too small; a hinge has few hyper-parameters.
        by_name = any(word in str(error) for word in ("cale ", "multiply K", "mu", "ARD has"))
        if by_name and not (ordinary and route in ("KernelRegressor", "KernelClassifier")):
            return "refused", ""
        return "finding", f"{type(error).__name__}: {str(error)[:160]} | {what}"
    except Exception as error:
        return "finding", f"{type(error).__name__}: {str(error)[:160]} | {what}"
    if not np.isfinite(outputs).all():
        return "finding", f"not finite | {what}"
    if route in ("KernelRegressor", "KernelClassifier") and kernel in ("linear", "rbf", "ard"):
        expected = Y if Y.dtype == float else 2.0 * Y - 1
        learned = np.corrcoef(outputs / target_unit, expected)[0, 1]
        if not learned > 0.3:  # by chance so in ordinary units too, or lost by the unit
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ordinary_outputs = _MACHINES[route](kernel).fit(X, Y).loo_.outputs
            if not learned > np.corrcoef(ordinary_outputs, expected)[0, 1] - 0.1:
                return "finding", f"did not learn | {what}"
    return "finite", ""


def _outputs(
    route: str, K: Array, Y: Array, mu: float, weight: Array | None, intercept: bool
) -> tuple[Array, Any, Array]:
    """Leave-one-out outputs, which samples take part, and the weights as the system has them."""
    n = len(K)
    zeta = np.ones(n) if weight is None else weight
    if route == "solve":
        loo = solve(K, Y, mu, sample_weight=weight, fit_intercept=intercept).loo
        return loo.outputs, zeta > 0, zeta
    machine: Any = KernelRegressor("precomputed", mu=mu, fit_intercept=intercept)
    if route == "classifier":
        machine = KernelClassifier("precomputed", mu=mu, fit_intercept=intercept, calibration=None)
    machine.fit(K, Y if Y.shape[1] > 1 else Y[:, 0], sample_weight=weight)
    used = zeta > 0
    return machine.loo_.outputs.reshape(Y.shape), used, zeta / zeta[used].mean()


def _well_posed(K: Array, mu: float, weight: Array | None) -> bool:
    """Whether rounding of K changes the solution by little, and the scale is moderate."""
    used = np.ones(len(K), bool) if weight is None else weight > 0
    if not used.any():
        return False
    zeta = np.ones(len(K)) if weight is None else weight[used] / weight[used].mean()
    with np.errstate(all="ignore"):
        ridge = len(K) * mu / zeta
        amplified = _EPS * (len(K) * abs(K).max() + ridge.max()) / ridge.min()
    return bool(amplified < ADMITTED and ridge.max() < 1e150 and ridge.min() > 1e-150)
