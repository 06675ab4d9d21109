"""Rows held out together, in one partition or several, against refitting without them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import pairwise

from looms.folds import GapKFold, fold_numbers
from looms.kernels import RBF, Polynomial
from looms.lssvm import NotPositiveDefiniteError, decompose, refit_loo, solve
from looms.lssvm._folds import HeldOutBlocks, repetitions

N = 14
RNG = np.random.default_rng(1)
X = RNG.standard_normal((N, 3))
X[3] = X[7]
KERNELS = {"rbf": RBF()(X), "cubic": Polynomial(3)(X), "zero": np.zeros((N, N))}
WEIGHTS = {"unweighted": None, "weighted": RNG.uniform(0.2, 3.0, N)}
TARGETS = {"one": RNG.standard_normal(N), "three": RNG.standard_normal((N, 3))}
EACH = np.arange(N)
UNEVEN = np.array([0, 1, 1, 2, 0, 3, 3, 3, 3, 4, 5, 1, 6, 0])
FOLDS = {
    "each": EACH,
    "a pair": np.where(EACH == 7, 3, EACH),
    "uneven": UNEVEN,
    "halves": EACH % 2,
    "twice": np.vstack([EACH % 3, UNEVEN]),
    "in part": np.vstack([np.where(k == EACH % 3, 0, -1) for k in range(3)] + [EACH]),
    "gaps": fold_numbers(GapKFold(4, gap=2), EACH),
    "rows and gaps": fold_numbers(GapKFold(N, gap=1), EACH),
}
CASES = pairwise(KERNELS, WEIGHTS, TARGETS, FOLDS, [True, False])
each_case = pytest.mark.parametrize(("kernel", "weight", "target", "fold", "intercept"), CASES)


def problem(kernel, weight, target):
    K = KERNELS[kernel]
    return K, TARGETS[target], 0.02 * max(np.trace(K) / N, 0.1), WEIGHTS[weight]


@each_case
def test_outputs_are_those_of_machines_trained_without_the_fold(
    kernel, weight, target, fold, intercept
):
    K, y, mu, zeta = problem(kernel, weight, target)
    folds, options = FOLDS[fold], {"fit_intercept": intercept}
    theirs = np.stack(
        [
            refit_loo(K, y, mu, sample_weight=zeta, folds=labels, **options).outputs
            for labels in np.atleast_2d(folds)
        ]
    )
    close = {"rtol": 1e-8, "atol": 1e-9 * np.nanmax(np.abs(theirs)) + 1e-14}
    fit = solve(K, y, mu, sample_weight=zeta, folds=folds, **options).fit
    assert_allclose(fit.held_out, theirs, **close)
    assert_allclose(fit.mean_held_out.outputs, np.nanmean(theirs, axis=0), **close)
    spectral = decompose(K, sample_weight=zeta).outputs(y, mu, folds=folds, **options)
    assert_allclose(spectral, theirs if folds.ndim == 2 else theirs[0], **close)
    single = refit_loo(K, y, mu, sample_weight=zeta, **options).outputs
    assert_allclose(fit.loo.outputs, single, **close)


@each_case
def test_derivative_in_the_kernel_matrix_and_in_mu(kernel, weight, target, fold, intercept):
    K, y, mu, zeta = problem(kernel, weight, target)
    folds = FOLDS[fold]
    slope = np.cos(np.arange(len(np.atleast_2d(folds)) * y.size, dtype=float)).reshape(-1, *y.shape)
    slope[np.atleast_2d(folds) < 0] = 0.0
    direction = RBF(0.3)(X[:, :2])

    def value(step, mu_step=0.0):
        solution = solve(
            K + step * direction,
            y,
            mu + mu_step,
            sample_weight=zeta,
            fit_intercept=intercept,
            folds=folds,
        )
        return float(np.nansum(slope * solution.fit.held_out)), solution

    G, slope_mu = value(0.0)[1].contract(slope)
    symmetric = np.tril(G) + np.tril(G, -1).T
    for ours, h, arguments in [
        (float((symmetric * direction).sum()), 1e-3 * mu, lambda s: (s,)),
        (slope_mu, 1e-3 * mu, lambda s: (0.0, s)),
    ]:
        f = [value(*arguments(k * h))[0] for k in (-2, -1, 1, 2)]
        assert_allclose(ours, (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("intercept", [True, False])
def test_models_at_new_points_have_not_seen_the_fold(target, intercept):
    y, mu, zeta = TARGETS[target], 0.02, WEIGHTS["weighted"]
    kernel, new = RBF(0.5), RNG.standard_normal((4, 3))
    solution = solve(kernel(X), y, mu, sample_weight=zeta, fit_intercept=intercept, folds=UNEVEN)
    models = solution.models()
    F = models.outputs(kernel(new, X))
    for label in np.unique(UNEVEN):
        rest = label != UNEVEN
        n = int(rest.sum())
        # λ = n μ / ζ is held while rows are out.
        refitted = solve(
            kernel(X[rest]), y[rest], mu * N / n, sample_weight=zeta[rest], fit_intercept=intercept
        ).fit
        theirs = kernel(new, X[rest]) @ refitted.alpha + refitted.intercept
        for i in np.flatnonzero(~rest):
            assert_allclose(F[:, i], theirs, rtol=1e-8, atol=1e-10)
    assert_allclose(models.residuals, y - models.fit.held_out[0], atol=1e-12)


def test_deletion_of_single_rows_stays_that_of_single_rows():
    K, y, mu, zeta = problem("rbf", "weighted", "one")
    grouped = solve(K, y, mu, sample_weight=zeta, folds=UNEVEN).models()
    single = solve(K, y, mu, sample_weight=zeta).models()
    assert_array_equal(grouped.changes(), single.changes())
    assert_array_equal(grouped.pair_residuals(), single.pair_residuals())


def test_a_row_and_its_copy_are_one_row_of_twice_the_weight():
    rows = np.append(np.arange(N), [2, 5])
    K, y = RBF()(X), TARGETS["one"]
    copied = solve(K[np.ix_(rows, rows)], y[rows], 0.05, folds=rows).fit.held_out[0]
    weight = np.bincount(rows, minlength=N).astype(float)
    # λ = n μ / ζ: the same ridge a copy.
    merged = solve(K, y, 0.05 * len(rows) / N, sample_weight=weight).loo.outputs
    assert_allclose(copied, merged[rows], rtol=1e-10)


@pytest.mark.parametrize(
    ("folds", "match"),
    [
        (np.zeros(N, dtype=int), "one fold"),
        ([1, 2], "one per row"),
        (np.arange(N) / 2, "must be integers"),
        (np.where(EACH == 4, -1, EACH), "Row 4 is never held out"),
    ],
)
def test_folds_that_cannot_be_held_out_are_refused(folds, match):
    with pytest.raises(ValueError, match=match):
        solve(KERNELS["rbf"], TARGETS["one"], 0.1, folds=folds)


def test_a_fold_without_which_the_machine_is_singular_is_named():
    together = np.isin(EACH, [3, 5, 7])
    heavy, folds = np.where(together, 1e18, 1.0), np.where(together, 3, EACH)
    # Of three samples that outweigh all others any two can be left out, but not the third.
    with pytest.raises(NotPositiveDefiniteError, match=r"sample 7 .* singular"):
        solve(np.zeros((N, N)), TARGETS["one"], 1.0, sample_weight=heavy, folds=folds)


def test_models_are_those_of_one_repetition():
    with pytest.raises(ValueError, match="one repetition"):
        solve(KERNELS["rbf"], TARGETS["one"], 0.1, folds=FOLDS["twice"]).models()


def test_the_square_of_blocks_is_that_of_the_full_matrix():
    P = KERNELS["rbf"] @ KERNELS["rbf"]
    parts = repetitions(FOLDS["twice"], N)
    blocks = HeldOutBlocks(P.diagonal(), parts, lambda G: np.eye(len(G)), 1.0)
    for t in (1, 3):
        e, v = RNG.standard_normal((2, len(parts), N, t))
        v *= 1e12
        e[:, UNEVEN == 3, 0] = 0.0
        H = np.zeros((N, N))
        for r, part in enumerate(parts):
            for G in part.folds:
                H[np.ix_(G, G)] += (e[r, G] @ v[r, G].T + v[r, G] @ e[r, G].T) / 2
        start = np.asfortranarray(RNG.standard_normal((N, N)))
        expected = start + P @ H @ P
        ours = blocks.add_square(P, e, v, start)
        assert_allclose(np.tril(ours), np.tril(expected), rtol=1e-10, atol=1e-10 * H.max())
