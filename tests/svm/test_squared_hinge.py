"""The 2-norm machine and its leave-one-out, against equations solved without each sample."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.svm import SVC, LinearSVC

from looms import KernelClassifier, lssvm
from looms.calibration._sigmoid import fit_sigmoid
from looms.kernels import RBF
from looms.svm import leave_one_out
from looms.svm.dual import solve


def refitted(K, y, C):
    """Outputs at the rows of K, by Newton steps on the primal: a ridge system of the support."""
    train = C > 0
    support = train.copy()
    for _ in range(200):
        s = np.flatnonzero(support)
        system = np.ones((len(s) + 1, len(s) + 1))
        system[:-1, :-1] = K[np.ix_(s, s)] + np.diag(0.5 / C[s])
        system[-1, -1] = 0
        *beta, b = np.linalg.solve(system, np.append(y[s], 0.0))
        outputs = K[:, s] @ beta + b
        before, support = support, train & (y * outputs < 1)
        if (support == before).all():
            return outputs
    pytest.fail("the support goes round")


@pytest.mark.parametrize("seed", [3, 10, 14, 21])
def test_leave_one_out_against_refitting(seed, random_problem):
    K, y, C = random_problem(seed, 40)
    solution = solve(K, y, C, loss="squared_hinge")
    np.testing.assert_allclose(solution.outputs, refitted(K, y, C), atol=1e-9)
    np.testing.assert_allclose(
        solution.alpha, 2 * C * np.maximum(0, 1 - y * solution.outputs), rtol=1e-7, atol=1e-9
    )
    outputs, _ = solution.leave_one_out()
    expected = [refitted(K, y, np.where(np.arange(len(y)) == i, 0, C)) for i in range(len(y))]
    np.testing.assert_allclose(outputs, expected, atol=1e-9)


def test_folds_against_refitting(random_problem):
    K, y, C = random_problem(10, 40)
    folds = np.arange(len(y)) % 4
    without = solve(K, y, C, loss="squared_hinge").left_out(folds)
    for fold in range(4):
        np.testing.assert_allclose(
            without.outputs[fold], refitted(K, y, np.where(folds == fold, 0, C)), atol=1e-9
        )


def test_where_all_samples_support_it_the_machine_is_the_least_squares_one(random_problem):
    K, y, _ = random_problem(1)
    C, n = 1e-3, len(y)
    loo = solve(K, y, C, loss="squared_hinge").leave_one_out()[0].diagonal()
    of_least_squares = lssvm.solve(K, y, mu=1 / (2 * C * n)).loo  # the ridge n mu is 1/2C
    assert (y * loo < 1).all()
    np.testing.assert_allclose(loo, of_least_squares.outputs, atol=1e-12)


def test_C_is_that_of_scikit_learn():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:, 2:] - X[50:, 2:].mean(axis=0), np.where(y[50:] == 1, -1, 1)
    # The penalty of its bias vanishes with the scaling.
    theirs = LinearSVC(C=0.7, intercept_scaling=30, dual=False, tol=1e-10, max_iter=10_000)
    ours = solve(X @ X.T, y, 0.7, loss="squared_hinge")
    np.testing.assert_allclose(ours.outputs, theirs.fit(X, y).decision_function(X), atol=1e-3)


@pytest.mark.parametrize("fitted", [False, True])
def test_an_svc_gives_kernel_C_and_weights(fitted):
    X, y = load_iris(return_X_y=True)
    X, y = X[50:, :2], y[50:]
    weight = np.where(np.arange(100) % 7, 1.5, 0.0)
    svc = SVC(C=2.0, gamma=0.3, class_weight={1: 3.0})
    svc = svc.fit(X, y, weight) if fitted else svc
    loo = leave_one_out(svc, X, y, weight, loss="squared_hinge")
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=-1))
    C = 2.0 * weight * np.where(y == 1, 3.0, 1.0)
    for i in range(0, 100, 5):
        expected = refitted(K, loo.y, np.where(np.arange(100) == i, 0, C))[i]
        np.testing.assert_allclose(loo.outputs[i], expected, atol=1e-9)


def test_the_search_judges_machines_of_its_loss():
    X, y = load_iris(return_X_y=True)
    X, y = X[50::2, 1:3], y[50::2]
    kernel = RBF(0.5, gamma_bounds="fixed")
    machine = KernelClassifier(kernel, loss="squared_hinge").fit(X, y)
    K, C = kernel(X), np.full(len(y), 1 / (len(y) * machine.mu_))
    targets = machine.loo_.y
    held_out = [refitted(K, targets, np.where(np.arange(len(y)) == i, 0, C)) for i in range(len(y))]
    np.testing.assert_allclose(machine.loo_.outputs, np.diagonal(held_out), atol=1e-9)
    outputs = machine.decision_function(X) + machine.threshold_
    np.testing.assert_allclose(outputs, refitted(K, targets, C), atol=1e-9)
    f, score = np.diagonal(held_out), 0.0
    for i, rest in enumerate(~np.eye(len(y), dtype=bool)):
        sigmoid = fit_sigmoid(f[rest], targets[rest].astype(int))
        score += 2 * np.logaddexp(0, targets[i] * (sigmoid.slope * f[i] + sigmoid.intercept))
    assert machine.selection_.value == pytest.approx(score, rel=1e-6)


def test_an_unknown_loss_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="loss must be 'hinge' or 'squared_hinge', got 'square'"):
        solve(np.eye(4), [1, -1, 1, -1], 1.0, loss="square")
    with pytest.raises(ValueError, match="Unknown loss 'logistic'"):
        KernelClassifier(loss="logistic").fit(X, y)
