"""Least-squares models, also on landmarks and stacked, fitted anew to some of their rows."""

import numpy as np


def refitted(X, model, rows, y=None):
    """Outputs (n, t) for all rows of the model trained on some, at its ridges and landmarks."""
    y = (model.loo_.y if y is None else y).reshape(len(X), -1)
    return sum(one.weight * _refitted_member(X, model, one, rows, y) for one in model.members_)


_KERNELS = {}


def _grams(X, one):
    """Kernel matrix with all rows or with the landmarks, and that of the landmarks; kept."""
    key = id(X), id(one.kernel)
    if key not in _KERNELS:
        own = None if one.landmarks is None else one.kernel(one.landmarks, one.landmarks)
        _KERNELS[key] = X, one.kernel, one.kernel(X, one.landmarks), own
    return _KERNELS[key][2:]


def _refitted_member(X, model, one, rows, y):
    """The same of a single machine, by its normal equations or its whole kernel matrix."""
    weight = model.fit_weight_
    ridge, bias = one.mu * weight.sum(), np.ones((len(X), int(model.fit_intercept_)))
    K, own = _grams(X, one)
    if one.landmarks is None:
        K = np.hstack([K[:, rows], bias])
        system = np.zeros((K.shape[1],) * 2)
        system[: len(rows)] = K[rows]
        system[: len(rows), : len(rows)] += np.diag(ridge / weight[rows])
        system[len(rows) :, : len(rows)] = bias[rows].T
        targets = np.vstack([y[rows], np.zeros((bias.shape[1], y.shape[1]))])
        return K @ np.linalg.solve(system, targets)
    phi, m = np.hstack([K, bias]), one.landmarks.shape[0]
    penalty = np.zeros((phi.shape[1],) * 2)
    penalty[:m, :m] = ridge * own
    weighted = weight[rows, None] * phi[rows]
    # of a linear kernel, landmarks are linearly dependent
    solution = np.linalg.pinv(phi[rows].T @ weighted + penalty, hermitian=True, rcond=1e-13)
    return phi @ (solution @ (weighted.T @ y[rows]))
