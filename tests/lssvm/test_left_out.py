"""Machines without each unit of rows, of every kind, against refits and differences."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pairwise import pairwise

from looms.blocks import ArrayBlocks, RowBlocks
from looms.folds import ForwardSplit, GapKFold
from looms.kernels import ARD, Pairs
from looms.kernels._samples import Samples, center_of
from looms.lssvm import landmarks
from looms.lssvm.dense import Dense
from looms.lssvm.features import decompose_features
from looms.lssvm.landmarks import Landmarks, Streamed
from looms.lssvm.left_out import Chosen, Refits, Sum
from looms.lssvm.spectral import decompose
from looms.units import Units

N, M = 18, 6
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
X[3] = X[7]  # a duplicate
NEW = RNG.normal(size=(4, 3))
ALL = np.vstack([X, NEW])  # refits have rows by their number
NUMBERS = np.arange(N)
NEW_NUMBERS = np.arange(N, len(ALL))
SIGNAL = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * RNG.normal(size=N)
TARGETS = {
    "one": SIGNAL[:, None],
    "labels": np.sign(SIGNAL)[:, None],
    "two": np.column_stack([SIGNAL, X[:, 2] ** 2]),
}


def mean_one(weight):
    return weight * N / weight.sum()


WEIGHTS = {
    "equal": np.ones(N),
    "uneven": mean_one(RNG.uniform(0.2, 3.0, N)),
    "wide": mean_one(10.0 ** RNG.uniform(-2, 2, N)),
}
WINDOW = np.repeat(np.arange(3), 6)
UNITS = {
    "rows": Units.rows(N),
    "groups": Units.of_numbers(RNG.integers(0, 6, N)),
    "folds": Units.of_numbers(np.arange(N) % 3),
    "2x2": Units.of_numbers(np.stack([RNG.permutation(N) % 2, np.arange(N) // 12])),
    "2x8": Units.of_numbers(np.stack([RNG.permutation(N) % 8 for _ in range(2)])),
    "gaps": Units.of_numbers(np.where(np.arange(N) % 6 % 5 == 0, -2 - WINDOW, WINDOW)),
    "windows": Units.of(GapKFold(4, gap=2), SIGNAL),  # whose gaps meet
    "forward": Units.of(ForwardSplit(3, gap=2), SIGNAL),
    "some": Units.of_numbers(np.where(np.arange(N) < 8, -1, np.arange(N) // 4)),
}
INNER = Units.of_numbers(np.arange(N) // 2 % 7)
THETA = np.array([-1.0, -2.0, -1.5, -5.0])  # log₂ of the scales and of μ


@dataclass(frozen=True)
class Problem:
    y: np.ndarray
    zeta: np.ndarray
    fit_intercept: bool

    def kernel(self, theta):
        return ARD().started(Samples(X)).with_theta(theta[:-1])

    def refits(self, cross, theta):
        """Refits with a kernel, at the ridges of all rows."""
        ridge, K = N * 2.0 ** theta[-1] / self.zeta, cross(ALL, ALL)

        def fit(rows):
            m, border = len(rows), float(self.fit_intercept)
            C = np.zeros((m + 1, m + 1))
            C[:m, :m] = K[np.ix_(rows, rows)] + np.diag(ridge[rows])
            C[m, :m] = C[:m, m] = border
            C[m, m] = 1.0 - border
            s = np.linalg.solve(C, np.vstack([self.y[rows], np.zeros((1, self.y.shape[1]))]))
            return lambda new: K[np.ix_(new, rows)] @ s[:m] + s[m]

        return Refits(fit, NUMBERS, self.y, self.zeta)


def dense(problem, theta):
    kernel = problem.kernel(theta)
    K = np.asfortranarray(kernel(X))
    return Dense(
        K,
        problem.y,
        2.0 ** theta[-1],
        problem.zeta,
        fit_intercept=problem.fit_intercept,
        cross=lambda new: kernel(new, X),
    )


def spectral(problem, theta):
    kernel = problem.kernel(theta)
    spectrum = decompose(kernel(X), sample_weight=problem.zeta)
    projection = spectrum.solve(problem.y, 2.0 ** theta[-1], fit_intercept=problem.fit_intercept)
    projection.cross = lambda new: kernel(new, X)
    return projection


def features(problem, theta):
    spectrum = decompose_features(X, problem.zeta, fit_intercept=problem.fit_intercept)
    return spectrum.solve(problem.y, 2.0 ** theta[-1])


class Fixed(ArrayBlocks):
    """Rows that stay in their blocks, as those of a distributed table."""

    holding = RowBlocks.holding


def streamed(blocks):
    def solve(problem, theta):
        samples = Samples(X[:M], center=center_of(X[:M]))
        return Streamed(
            blocks,
            problem.y,
            2.0 ** theta[-1],
            problem.zeta,
            Landmarks(problem.kernel(theta), samples),
            fit_intercept=problem.fit_intercept,
        )

    return solve


def of_landmarks(problem, theta):
    samples = Samples(X[:M], center=center_of(X[:M]))
    on = Landmarks(problem.kernel(theta), samples)
    return lambda a, b: on.cross(a).T @ np.linalg.solve(on.gram(), on.cross(b))


PROJECTIONS = {
    "dense": (dense, lambda problem, theta: problem.kernel(theta)),
    "spectral": (spectral, lambda problem, theta: problem.kernel(theta)),
    "features": (features, lambda problem, theta: lambda a, b: a @ b.T),
    "landmarks": (streamed(ArrayBlocks(X, size=7)), of_landmarks),
    "landmarks in fixed blocks": (streamed(Fixed(X, size=5)), of_landmarks),
}


def neighbors(rows_of, samples):
    """Mean of the two nearest rows; new rows are given as those of ``samples`` are."""

    def of(problem, units):
        def fit(rows):
            def mean(new):
                d = np.square(rows_of(new)[:, None] - X[rows]).sum(axis=2)
                return problem.y[rows[np.argsort(d, axis=1, kind="stable")[:, :2]]].mean(axis=1)

            return mean

        return Refits(fit, samples, problem.y, problem.zeta)

    return of


def both(name):
    """A machine by its projection, and by refits."""
    solve, cross = PROJECTIONS[name]
    return (
        lambda problem, units: solve(problem, THETA),
        lambda problem, units: problem.refits(cross(problem, THETA), THETA),
    )


def stack(*members):
    twice = neighbors(np.asarray, X), neighbors(ALL.__getitem__, NUMBERS)
    pairs = [twice if m == "neighbors" else both(m) for m in members]
    weights = np.arange(1.0, 1 + len(members))
    return tuple(
        lambda p, units, k=k: Sum(weights, [pair[k](p, units) for pair in pairs]) for k in range(2)
    )


def chosen(*names):
    """Candidates of the least mean square outside of each unit, of rows without their own."""

    def least(candidates, units):
        losses = np.empty((len(candidates), units.n_units))
        for of_candidate, candidate in zip(losses, candidates, strict=True):
            for ids, F in candidate.everywhere(units, INNER):
                stays, squares = units.stays(ids), ((F - candidate.y) ** 2).mean(axis=2)
                of_candidate[ids] = np.mean(squares, axis=1, where=stays)
        y, weight = candidates[0].y, candidates[0].weight
        return Chosen(candidates, units, losses.argmin(axis=0), y, weight)

    def of(k):
        return lambda problem, units: least(
            [
                solve(problem, theta) if k == 0 else problem.refits(cross(problem, theta), theta)
                for solve, cross in map(PROJECTIONS.get, names)
                for theta in THETA + np.outer([-2.0, 0.0, 2.0], [1, 1, 1, 2])
            ],
            units,
        )

    return of(0), of(1)


LEFT_OUTS = {
    **{name: both(name) for name in PROJECTIONS},
    "stack": stack("dense", "landmarks", "features"),
    "stack with an estimator": stack("landmarks", "neighbors"),
    "chosen": chosen("dense", "landmarks"),
}


def of_rows(left_out, units, inner=None):
    F = np.full((units.n_units, *left_out.y.shape), np.nan)
    for ids, some in left_out.everywhere(units, inner):
        F[ids] = some
    return F


@pytest.mark.parametrize(
    ("name", "units", "targets", "weights", "fit_intercept", "largest"),
    pairwise(LEFT_OUTS, UNITS, TARGETS, WEIGHTS, [True, False], [256, 2]),
)
def test_equals_refits(monkeypatch, name, units, targets, weights, fit_intercept, largest):
    monkeypatch.setattr(landmarks, "_WITHIN_BLOCK", largest)
    problem = Problem(TARGETS[targets], WEIGHTS[weights], fit_intercept)
    units = UNITS[units]
    ours, refits = (make(problem, units) for make in LEFT_OUTS[name])
    closely = {"rtol": 1e-8, "atol": 1e-9}
    outputs = ours.outputs(units)
    assert (np.isfinite(outputs).all(axis=2) == units.tested).all()
    assert_allclose(outputs, refits.outputs(units), **closely)
    assert_allclose(of_rows(ours, units), of_rows(refits, units), **closely)
    assert_allclose(of_rows(ours, units, INNER), of_rows(refits, units, INNER), **closely)
    alone = UNITS["rows"]
    assert_allclose(of_rows(ours, units, alone), of_rows(refits, units, alone), **closely)
    assert_allclose(ours.at(NEW, units), refits.at(NEW_NUMBERS, units), **closely)
    tested = np.flatnonzero(units.own >= 0)
    rows = np.append(tested[::2], tested[:3])  # some twice, changed in other ways
    changed = np.arange(len(rows)) % len(NEW)
    own = refits.own(NEW_NUMBERS[changed], rows, units)
    assert_allclose(ours.own(NEW[changed], rows, units), own, **closely)
    if name != "chosen":  # its machine of all rows is another question
        assert_allclose(ours.fitted(), refits.fitted(), **closely)
        changes = refits.mean_square_changes(units)
        assert_allclose(ours.mean_square_changes(units), changes, rtol=1e-7, atol=1e-12)


def slopes(projection, problem, theta, units, slope):
    """∂J/∂θ in log₂ units, of the scales if there are any, and μ."""
    if isinstance(projection, Dense):
        G, of_mu = projection.contract(units, slope)
        G = np.tril(G) + np.tril(G, -1).T
        of_theta = problem.kernel(theta).values_gradient(Pairs(Samples(X), Samples(X)), G)
    elif isinstance(projection, Streamed):
        of_theta, of_mu = projection.slopes(units, slope)
    else:
        of_theta, of_mu = np.zeros(3), projection.slope_mu(units, slope)
    return np.log(2) * np.exp2(theta) * np.append(of_theta, of_mu)


@pytest.mark.parametrize(
    ("name", "units", "targets", "weights", "fit_intercept", "largest"),
    pairwise(
        ["dense", "features", "landmarks", "landmarks in fixed blocks"],
        UNITS,
        TARGETS,
        ["equal", "uneven"],
        [True, False],
        [256, 2],
    ),
)
def test_slopes_equal_differences(
    monkeypatch, name, units, targets, weights, fit_intercept, largest
):
    monkeypatch.setattr(landmarks, "_WITHIN_BLOCK", largest)
    units = UNITS[units]
    problem = Problem(TARGETS[targets], WEIGHTS[weights], fit_intercept)
    solve, _ = PROJECTIONS[name]

    def residuals(theta):
        return np.nan_to_num(solve(problem, theta).outputs(units) - problem.y)

    def loss(theta):
        return float((residuals(theta) ** 2).sum())

    ours = slopes(solve(problem, THETA), problem, THETA, units, 2 * residuals(THETA))
    steps = 2.0**-9 * np.eye(4)
    theirs = [
        (8 * (loss(THETA + h) - loss(THETA - h)) - (loss(THETA + 2 * h) - loss(THETA - 2 * h)))
        / (12 * 2.0**-9)
        for h in steps
    ]
    assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7 * np.abs(theirs).max())


@pytest.mark.parametrize("name", PROJECTIONS)
def test_verbs_of_a_projection_are_those_of_its_matrix(name):
    problem = Problem(TARGETS["two"], np.ones(N), True)
    projection = PROJECTIONS[name][0](problem, THETA)
    V = RNG.normal(size=(N, 3))
    P = projection.matrix().copy()
    assert_allclose(P @ problem.y, projection.alpha, atol=1e-10)
    assert_allclose(projection.diagonal(), P.diagonal(), rtol=1e-9)
    if name in ("dense", "spectral"):  # others have its order of magnitude
        K = problem.kernel(THETA)(X)
        assert_allclose(projection.size, K.diagonal() + projection.ridge, rtol=1e-10)
    units = UNITS["2x8"]
    solved = projection.solve(units, V)
    for rows, r in zip(units, units.repetition, strict=True):
        expected = np.linalg.solve(P[np.ix_(rows, rows)], V[rows])
        assert_allclose(solved[r, rows], expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["dense", "landmarks", "stack with an estimator"])
def test_units_may_have_rows_in_common(name):
    problem = Problem(TARGETS["one"], WEIGHTS["uneven"], True)
    ours, refits = (make(problem, None) for make in LEFT_OUTS[name])
    rows = np.array([[0, 4, 7], [4, 5, 6], [0, 1, 17]])
    assert_allclose(ours.of_own(rows), refits.of_own(rows), rtol=1e-8, atol=1e-9)
