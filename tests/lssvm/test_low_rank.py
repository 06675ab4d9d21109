"""The machine on landmarks against refits with the landmarks held fixed, and differences."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from looms.blocks import ArrayBlocks, RowBlocks
from looms.folds import GapKFold, fold_numbers
from looms.kernels import ARD, RBF, Linear, Matern, Polynomial
from looms.kernels._landmarks import pivoted_landmarks
from looms.kernels._samples import Samples, center_of
from looms.lssvm import NotPositiveDefiniteError, low_rank, low_rank_folds, solve
from looms.lssvm._folds import repetitions
from looms.lssvm._system import LeverageError

KERNELS = {
    "rbf": RBF(gamma=0.1),
    "ard": ARD(gammas=[0.1, 0.2, 0.3, 0.05]),
    "matern": Matern(nu=1.5, gamma=0.2),
    "sum": 2.0 * RBF(gamma=0.1) + Linear(),
    "polynomial": Polynomial(degree=2, c=1.0),
}
N_PROBLEMS = 40  # of each kernel


def problem(kernel, seed, n=90):
    """Rows, targets, weights, μ and landmarks: sparse, weighted, of two targets for some seeds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)
    if seed % 3 == 1:
        y = np.column_stack([y, X[:, 1] ** 2])
    zeta = rng.uniform(0.3, 3.0, n) if seed % 2 else np.ones(n)
    if seed % 5 == 2:
        X = sp.csr_array(np.where(np.abs(X) > 0.8, X, 0.0))
    Z = X[rng.choice(n, int(rng.integers(3, 40)), replace=False)]
    mu = 10.0 ** rng.uniform(-5, 0)
    samples = Samples(Z, center=center_of(Z))
    return X, y, zeta * (n / zeta.sum()), mu, low_rank.Landmarks(KERNELS[kernel], samples)


def differences(value, theta):
    """Gradient by differences of fourth order."""
    gradient = []
    for step in 1e-3 * np.eye(len(theta)):
        near, far = (value(theta + k * step) - value(theta - k * step) for k in (1, 2))
        gradient.append((8 * near - far) / 12e-3)
    return gradient


def refitted(X, y, zeta, mu, landmarks, fit_intercept, left_out):
    """Outputs for some rows of the machine that was trained without them."""
    n, m, rest = len(y), len(landmarks), np.setdiff1d(np.arange(len(y)), left_out)
    phi = landmarks.cross(X).T
    if fit_intercept:
        phi = np.column_stack([phi, np.ones(n)])
    # The least squares problem itself, of rows √ζ φ and of the penalty.
    R = np.linalg.cholesky(landmarks.gram()).T * np.sqrt(n * mu)
    penalty = np.hstack([R, np.zeros((m, phi.shape[1] - m))])
    root = np.sqrt(zeta[rest])[:, None]
    rows = np.vstack([root * phi[rest], penalty])
    targets = np.vstack([root * y.reshape(n, -1)[rest], np.zeros((m, y.reshape(n, -1).shape[1]))])
    theta = np.linalg.lstsq(rows, targets, rcond=None)[0]
    return (phi[left_out] @ theta).reshape(-1, *y.shape[1:])


@pytest.mark.parametrize("kernel", KERNELS)
def test_leave_one_out_is_what_refits_give(kernel):
    for seed in range(N_PROBLEMS):
        X, y, zeta, mu, landmarks = problem(kernel, seed)
        intercept = seed % 4 != 3
        solution = low_rank.solve(
            ArrayBlocks(X, 32), y, mu, zeta, landmarks, fit_intercept=intercept
        )
        for i in (0, 17, 89):
            refit = refitted(X, y, zeta, mu, landmarks, intercept, [i])[0]
            assert_allclose(solution.fit.outputs[i], refit, atol=1e-8 * np.abs(y).max())


def test_rows_held_out_together_are_what_refits_give():
    for seed in range(N_PROBLEMS):
        X, y, zeta, mu, landmarks = problem("ard", seed)
        sets = np.random.default_rng(seed).integers(0, 30, len(y))
        blocks, intercept = ArrayBlocks(X, 32).holding(sets), seed % 4 != 3
        solution = low_rank.solve(
            blocks, y, mu, zeta, landmarks, fit_intercept=intercept, sets=sets
        )
        for label in sets[:3]:
            rows = np.flatnonzero(sets == label)
            refit = refitted(X, y, zeta, mu, landmarks, intercept, rows)
            assert_allclose(solution.fit.held_out[0, rows], refit, atol=1e-8 * np.abs(y).max())
    with pytest.raises(ValueError, match="in several blocks of the table: sort it by group"):
        RowBlocks.holding(ArrayBlocks(X, 32), sets)


FOLDS = {
    "three": np.random.default_rng(0).integers(0, 3, (1, 90)),
    "2x2": np.random.default_rng(1).integers(0, 2, (2, 90)),
    "gaps": fold_numbers(GapKFold(3, gap=4), np.arange(90.0)),
}


@pytest.mark.parametrize("folds", FOLDS)
def test_folds_are_what_refits_give(folds):
    folds = FOLDS[folds]
    for seed in range(N_PROBLEMS // 2):
        X, y, zeta, mu, landmarks = problem("matern", seed)
        blocks, intercept = ArrayBlocks(X, 32), seed % 4 != 3
        fit = low_rank_folds.solve(
            *(blocks, y, mu, zeta, landmarks, repetitions(folds, 90)), fit_intercept=intercept
        ).fit
        single = low_rank.solve(blocks, y, mu, zeta, landmarks, fit_intercept=intercept).fit
        assert_allclose(fit.outputs, single.outputs, atol=1e-9)
        if (folds[0] >= 0).all():
            alone = low_rank_folds.held_out_outputs(
                blocks, y, mu, zeta, landmarks, folds[0], fit_intercept=intercept
            )
            assert_allclose(alone, fit.held_out[0], atol=1e-9)
        for held_out, numbers in zip(fit.held_out, folds, strict=True):
            assert_array_equal(np.isnan(held_out.reshape(90, -1)[:, 0]), numbers < 0)
            for label in np.unique(numbers[numbers >= 0]):
                rows = np.flatnonzero(numbers == label)
                out = np.flatnonzero(np.isin(numbers, (label, -2 - label)))
                refit = refitted(X, y, zeta, mu, landmarks, intercept, out)
                tested = refit[np.isin(out, rows)]
                assert_allclose(held_out[rows], tested, atol=1e-8 * np.abs(y).max())


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("seed", [0, 1, 3, 4])
def test_gradient_is_that_of_differences(kernel, seed):
    X, y, zeta, mu, landmarks = problem(kernel, seed)
    sets = np.random.default_rng(0).integers(0, 40, len(y)) if seed % 2 else None
    blocks, intercept, mu = ArrayBlocks(X, 32), seed != 3, max(mu, 1e-3)
    blocks = blocks if sets is None else blocks.holding(sets)
    w = np.random.default_rng(0).normal(size=y.shape)

    def solved(theta):
        other = low_rank.Landmarks(landmarks.kernel.with_theta(theta[:-1]), landmarks.samples)
        options = {"fit_intercept": intercept, "sets": sets}
        return low_rank.solve(blocks, y, 2.0 ** theta[-1], zeta, other, **options)

    def value(theta):
        f = solved(theta).fit.held_out[0]
        return float((w * f + f**2).sum())

    theta = np.append(landmarks.kernel.theta, np.log2(mu))
    solution = solved(theta)
    slopes, slope_mu = solution.contract(w + 2 * solution.fit.held_out[0], blocks)
    gradient = np.append(slopes, slope_mu) * np.log(2.0) * 2.0**theta
    expected = differences(value, theta)
    assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7 * np.abs(gradient).max())


@pytest.mark.parametrize("folds", FOLDS)
@pytest.mark.parametrize("kernel", ["ard", "polynomial"])
def test_gradient_of_folds_is_that_of_differences(kernel, folds):
    X, y, zeta, mu, landmarks = problem(kernel, 1)
    parts, intercept = repetitions(FOLDS[folds], 90), folds != "2x2"
    mu = max(mu, 1e-3)
    w = np.random.default_rng(0).normal(size=(len(parts), *y.shape))

    def solved(theta):
        other = low_rank.Landmarks(landmarks.kernel.with_theta(theta[:-1]), landmarks.samples)
        system = ArrayBlocks(X, 32), y, 2.0 ** theta[-1], zeta, other, parts
        return low_rank_folds.solve(*system, fit_intercept=intercept)

    def value(theta):
        f = solved(theta).fit.held_out
        return float(np.nansum(w * f + f**2))

    theta = np.append(landmarks.kernel.theta, np.log2(mu))
    solution = solved(theta)
    slope = np.nan_to_num(w + 2 * solution.fit.held_out)
    slopes, slope_mu = solution.contract(slope, ArrayBlocks(X, 32))
    gradient = np.append(slopes, slope_mu) * np.log(2.0) * 2.0**theta
    assert_allclose(gradient, differences(value, theta), rtol=1e-6)


def test_landmarks_at_every_row_give_the_machine_of_the_kernel_matrix():
    X, y, zeta, _, _ = problem("matern", 1)
    kernel, mu = KERNELS["matern"], 1e-3
    landmarks = low_rank.Landmarks(kernel, Samples(X, center=center_of(X)))
    on_landmarks = low_rank.solve(ArrayBlocks(X), y, mu, zeta, landmarks).fit
    whole = solve(kernel(X), y, mu, sample_weight=zeta).fit
    assert_allclose(on_landmarks.outputs, whole.outputs, atol=1e-8)
    assert_allclose(on_landmarks.intercept, whole.intercept, atol=1e-8)


def test_outputs_of_leave_one_out_models_at_new_points():
    X, y, zeta, mu, landmarks = problem("ard", 1)
    solution = low_rank.solve(ArrayBlocks(X), y, mu, zeta, landmarks)
    ((rows, F),) = solution.outputs_without_rows(X, ArrayBlocks(X))
    assert rows == slice(0, 90)
    own = np.arange(90)
    assert_allclose(F[own, own], solution.fit.outputs, atol=1e-9)


@pytest.mark.parametrize("n_threads", [2, 4])
def test_threads_give_the_same_bits(n_threads):
    X, y, zeta, mu, landmarks = problem("ard", 1)
    results = []
    for threads in (1, n_threads):
        blocks = ArrayBlocks(X, 8, threads)
        solution = low_rank.solve(blocks, y, mu, zeta, landmarks)
        results.append([solution.fit.outputs, *solution.contract(solution.fit.outputs, blocks)])
    for a, b in zip(*results, strict=True):
        assert_array_equal(a, b)


def test_what_cannot_be_solved():
    X, y, zeta, mu, landmarks = problem("rbf", 0)
    zeta[5] = 1e16
    with pytest.raises(LeverageError, match="sample 5"):
        low_rank.solve(ArrayBlocks(X), y, mu, zeta, landmarks)
    broken = low_rank.Landmarks(RBF(gamma=np.nan), landmarks.samples)
    with pytest.raises(NotPositiveDefiniteError):
        low_rank.solve(ArrayBlocks(X), y, mu, np.ones(90), broken)


def test_landmarks_are_different_and_span_more_than_any_others():
    rng = np.random.RandomState(0)
    X = np.concatenate([0.01 * rng.normal(size=(300, 3)), 3 * rng.normal(size=(60, 3))])
    X = np.concatenate([X, X])  # a copy of a landmark tells nothing
    samples, kernel = Samples(X, center=center_of(X)), RBF(gamma=0.05)

    def left(places):
        K, K_ZZ = kernel(X, X[places]), kernel(X[places]) + 1e-10 * np.eye(len(places))
        return len(X) - np.einsum("ij,ji->", K, np.linalg.solve(K_ZZ, K.T))

    drawn = [pivoted_landmarks(kernel, samples, 30, np.random.RandomState(k)) for k in range(5)]
    uniform = [rng.choice(len(X), 30, replace=False) for _ in range(5)]
    assert np.mean([left(p) for p in drawn]) < 0.2 * np.mean([left(p) for p in uniform])
    assert len(np.unique(X[drawn[0]], axis=0)) == 30
    line = Samples(np.arange(50.0)[:, None], center=np.zeros(1))
    assert len(pivoted_landmarks(Linear(), line, 20, rng)) == 1  # all that there is to span
