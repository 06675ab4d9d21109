"""The selection criterion as a function of all hyper-parameters."""

from itertools import cycle, product

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import in_turn
from sklearn.model_selection import ShuffleSplit

from looms.criteria import DIFFERENTIABLE, as_criterion
from looms.folds import ForwardSplit, GapKFold
from looms.kernels import (
    ARD,
    RBF,
    Boolean,
    Function,
    Laplacian,
    Linear,
    Matern,
    Normalized,
    Polynomial,
    PowerExponential,
    PowerExponentialARD,
    Precomputed,
)
from looms.kernels._names import KERNEL_NAMES, as_kernel
from looms.kernels._samples import Samples
from looms.lssvm import NotPositiveDefiniteError
from looms.lssvm.forward import order_of
from looms.lssvm.refit import refit_loo
from looms.selection._objective import Objective
from looms.units import Units

N = 18
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3)) * [1.0, 2.0, 0.5]
X[RNG.random((N, 3)) < 0.3] = 0.0
LABELS = np.where(X[:, 0] + 0.5 * X[:, 1] + 0.7 * RNG.standard_normal(N) > 0, 1.0, -1.0)
THREE = np.column_stack([LABELS, -LABELS, np.where(RNG.random(N) < 0.5, 1.0, -1.0)])
WEIGHT = RNG.uniform(0.3, 4.0, N)
SELECTION = RNG.uniform(0.0, 2.0, N)
SELECTION[:3] = 0.0
GAPS = Units.of(GapKFold(4, gap=2), LABELS)
FORWARD = Units.of(ForwardSplit(4, gap=2), LABELS)


def drawn(**sizes):
    return Units.of(ShuffleSplit(12, random_state=0, **sizes), LABELS)


KERNELS = {
    "linear": Linear(),
    "quadratic": Polynomial(2),
    "boolean": Boolean(),
    "rbf": RBF(),
    "laplacian": Laplacian(),
    "ard": ARD(),
    "matern": Matern(),
    "powexp": PowerExponential(),
    "powexp ard": PowerExponentialARD(1.5),
    "fixed rbf": RBF(0.2, "fixed"),
    "normalized cubic": Normalized(Polynomial(3)),
    "nested": 0.5 * RBF() * Linear() + Normalized(Boolean()) + 1.0,
    "function": Function(lambda A, B: np.exp(A @ B.T / 8)),
}
VARIANTS = {
    "plain": {},
    "weighted": {"sample_weight": WEIGHT},
    "weighted selection": {"selection_weight": SELECTION},
    "both": {"sample_weight": WEIGHT, "selection_weight": SELECTION},
    "no intercept": {"fit_intercept": False, "sample_weight": WEIGHT},
    "prior": {"prior": True},
    "groups": {"units": Units.of(None, LABELS, np.arange(N) // 3 % 5), "sample_weight": WEIGHT},
    "three folds": {"units": Units.of(3, LABELS), "sample_weight": WEIGHT},
    "5x2 folds": {"units": Units.of("5x2", LABELS), "selection_weight": SELECTION},
    "folds of groups": {
        "units": Units.of(2, LABELS, np.arange(N) // 3),
        "fit_intercept": False,
    },
    "half of the rows": {"units": drawn(test_size=0.5)},
    "parts of the rows": {"units": drawn(train_size=0.4, test_size=0.5)},
    "windows and gaps": {"units": GAPS, "sample_weight": WEIGHT, "selection_weight": SELECTION},
    "windows": {"units": GAPS, "fit_intercept": False},
    "forward": {"units": FORWARD, "selection_weight": WEIGHT * FORWARD.counts},
}
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
STEP = 1e-3


def kinks(objective, theta):
    fit = objective.fit(theta)
    return fit.loo.y * fit.held_out < 1.0


def check_gradient(objective, theta, numerical_gradient):
    value, gradient = objective(theta)
    expected = numerical_gradient(lambda t: objective(t)[0], theta, STEP)
    # The hinge has kinks where t f = 1: no sample may cross one between the differences.
    for moved in 2 * STEP * np.vstack([np.eye(len(theta)), -np.eye(len(theta))]):
        assert_array_equal(kinks(objective, theta + moved), kinks(objective, theta))
    assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max() + 1e-11)
    assert objective.evaluate(theta, gradient=False).value == value


@pytest.mark.parametrize("variant", ["half of the rows", "parts of the rows"])
def test_passes_count_by_the_weight_of_the_rows_that_they_test(variant):
    units = VARIANTS[variant]["units"]
    objective = Objective(X, LABELS, criterion="press", units=units, selection_weight=SELECTION)
    fit = objective.fit(objective.theta0)
    weight = np.where(units.tested, SELECTION, 0.0)
    squares = np.where(units.tested, (LABELS - fit.held_out) ** 2, 0.0)
    value = objective.evaluate(objective.theta0, gradient=False).value
    assert value == pytest.approx(np.sum(weight * squares) / weight.sum())


@pytest.mark.parametrize(("kernel", "criterion"), in_turn(KERNELS, DIFFERENTIABLE, each=2))
def test_gradient_against_differences(kernel, criterion, numerical_gradient):
    objective = Objective(
        X, LABELS, kernel=KERNELS[kernel], criterion=criterion, sample_weight=WEIGHT
    )
    theta = objective.theta0 + 0.5 * np.random.default_rng(1).standard_normal(len(objective.theta0))
    check_gradient(objective, theta, numerical_gradient)


@pytest.mark.parametrize(
    ("variant", "criterion", "y"),
    [
        (variant, criterion, y)
        for (variant, criterion), y in zip(
            in_turn(VARIANTS, DIFFERENTIABLE, each=2), cycle([LABELS, LABELS[:, None], THREE])
        )
    ],
)
def test_gradient_of_variants(variant, criterion, y, numerical_gradient):
    options = VARIANTS[variant]
    kernel = 0.5 * RBF() + Polynomial(2)
    objective = Objective(X, y, kernel=kernel, criterion=criterion, **options)
    theta = objective.theta0 + np.array([0.3, -0.5, 0.4, -1.0])
    check_gradient(objective, theta, numerical_gradient)


SHARED = np.where(np.arange(N) == 15, 6, np.arange(N))  # a group in the first and the last


@pytest.mark.parametrize("together", [None, SHARED])
@pytest.mark.parametrize("y", [LABELS, THREE], ids=["one target", "three"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_windows_by_earlier_rows_at_many_mu(y, together, fit_intercept):
    time = np.random.default_rng(2).permutation(N)
    time = time if together is None else np.arange(N)
    units = Units.of(ForwardSplit(3, gap=1, time=time), y, together)
    assert (order_of(units) is None) == (together is not None)  # else one factor has all windows
    options = {"sample_weight": WEIGHT, "selection_weight": WEIGHT * units.counts}
    objective = Objective(X, y, kernel="rbf", units=units, fit_intercept=fit_intercept, **options)
    points = objective.along_mu(objective.theta0[:-1], np.arange(-9.0, 3.0, 3.0))
    for point in points:
        expected = objective.evaluate(point.theta, gradient=False)
        assert_allclose(point.value, expected.value, rtol=1e-10)
        assert_allclose(point.standard_error, expected.standard_error, rtol=1e-10)
    singular = Objective(X, y, kernel="linear", units=units, fit_intercept=fit_intercept, **options)
    (far,) = singular.along_mu(singular.theta0[:-1], np.array([-200.0]))
    assert not np.isfinite(far.value)


@pytest.mark.parametrize("log_mu", [-8.0, -3.0, 3.0, 10.0])
def test_gradient_along_mu(log_mu, numerical_gradient):
    objective = Objective(X, LABELS, kernel="rbf")
    theta = objective.theta0.copy()
    theta[-1] += log_mu + 3
    check_gradient(objective, theta, numerical_gradient)


@pytest.mark.parametrize(("variant", "kernel"), in_turn(VARIANTS, KERNELS, each=2))
def test_value_is_that_of_refitting(variant, kernel):
    kernel = KERNELS[kernel]
    options = {k: v for k, v in VARIANTS[variant].items() if k != "prior"}
    for y, criterion in product([LABELS, THREE], ["press", "wmw"]):
        objective = Objective(X, y, kernel=kernel, criterion=criterion, **options)
        theta = objective.theta0
        zeta = options.get("sample_weight", np.ones(N))
        zeta = zeta * N / zeta.sum()
        K = objective.kernel_at(theta)(X)
        weight = options.get("selection_weight", zeta)
        units = options.get("units", Units.rows(N))
        fit, parts, repetitions = objective.fit(theta), [], []
        for r, number in enumerate(np.where(units.tested, units.number, -2 - units.number)):
            outputs = refit_loo(
                K,
                y,
                objective.mu_at(theta),
                sample_weight=zeta,
                fit_intercept=options.get("fit_intercept", True),
                folds=number,
            ).outputs
            assert_allclose(fit.held_out[r], outputs, rtol=1e-8, atol=1e-9)
            repetitions.append(outputs)
        if units in (GAPS, FORWARD):  # windows whose gaps meet, each row in one
            assert len(repetitions) > 1
            repetitions = [np.nanmax(repetitions, axis=0)]
        for outputs in repetitions:
            out = np.isfinite(outputs.reshape(N, -1)[:, 0])
            rows = y[out], outputs[out], weight[out], units.clusters[out]
            part = as_criterion(criterion).evaluate(*rows)
            parts.append((weight[out].sum(), part.value, part.standard_error))
        share, values, errors = np.array(parts).T
        point = objective.evaluate(theta)
        assert_allclose(point.value, np.average(values, weights=share), rtol=1e-9)
        assert_allclose(point.standard_error, np.average(errors, weights=share), rtol=1e-8)


@pytest.mark.parametrize(
    ("kernel", "sparse"),
    in_turn(
        [name for name in KERNELS if name != "function"],
        [sp.csr_array, sp.csr_matrix, sp.csc_array],
    ),
)
def test_sparse_samples(kernel, sparse):
    dense, sparse = (Objective(A, LABELS, kernel=KERNELS[kernel]) for A in (X, sparse(X)))
    assert_allclose(sparse.theta0, dense.theta0, rtol=1e-10, atol=1e-10)
    for ours, theirs in zip(sparse(dense.theta0), dense(dense.theta0), strict=True):
        assert_allclose(ours, theirs, rtol=1e-7, atol=1e-10)


@each_kernel
def test_precomputed_is_the_kernel_itself(kernel):
    objective = Objective(X, LABELS, kernel=kernel)
    theta = objective.theta0
    given = Objective(objective.kernel(X), LABELS, kernel=Precomputed())
    assert given.names == ["mu"]
    assert_allclose(given.theta0, theta[-1:], rtol=1e-10)
    assert_allclose(given(theta[-1:])[0], objective(theta)[0], rtol=1e-10)
    assert_allclose(given(theta[-1:])[1], objective(theta)[1][-1:], rtol=1e-7)


def bits_for(name, X):
    """Zeros and ones for a kernel of fingerprints, the samples themselves for others."""
    return (X > 0).astype(float) if "tanimoto" in name else X


@pytest.mark.parametrize("name", KERNEL_NAMES[:-1])
def test_start_is_in_the_box_and_at_the_kernels_own(name):
    samples = bits_for(name, X)
    objective = Objective(samples, LABELS, kernel=name)
    low, high = objective.bounds.T
    assert objective.bounds.shape == (len(objective.theta0), 2)
    assert (low < objective.theta0).all()
    assert (objective.theta0 < high).all()
    assert objective.names[-1] == "mu"
    assert len(objective.names) == len(objective.theta0)
    started = as_kernel(name).started(Samples(samples, center=samples.mean(axis=0)))
    assert_allclose(objective.theta0[:-1], started.theta, rtol=1e-12, atol=1e-12)
    assert np.isfinite(objective(objective.theta0)[0])


def test_given_bounds_are_the_box_that_a_start_is_moved_into():
    for gamma, start in ((1.0, 0.0), (100.0, 3.0)):
        objective = Objective(X, LABELS, kernel=RBF(gamma, (0.25, 8.0)))
        assert_array_equal(objective.bounds[0], [-2.0, 3.0])
        assert objective.theta0[0] == start


def test_ridge_follows_the_scale_of_the_kernel():
    one, thousand = (
        Objective(c * Linear()(X), LABELS, kernel="precomputed") for c in (1.0, 1000.0)
    )
    assert_allclose(thousand.mu_at(thousand.theta0), 1000 * one.mu_at(one.theta0), rtol=1e-10)
    assert_allclose(thousand(thousand.theta0)[0], one(one.theta0)[0], rtol=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_indefinite_kernel_is_stepped_over(fit_intercept):
    K = Linear()(X) - 0.5 * np.eye(N)
    objective = Objective(K, LABELS, kernel="precomputed", fit_intercept=fit_intercept)
    theta = np.array([-20.0])
    value, gradient = objective(theta)
    assert value == np.inf
    assert np.isnan(gradient).all()
    assert gradient.shape == (1,)
    point = objective.evaluate(theta)
    assert point.value == point.standard_error == np.inf
    assert point.gradient is None
    with pytest.raises(NotPositiveDefiniteError):
        objective.fit(theta)
    assert np.isfinite(objective(np.array([0.0]))[0])  # and nothing is left behind


@pytest.mark.parametrize(
    ("name", "criterion", "scale"),
    [
        (name, *corner)
        for name, corner in in_turn(
            KERNEL_NAMES[:-1],
            product(["press", "wmw", "cross_entropy", "smoothed_error"], [1.0, 30.0]),
        )
    ],
)
def test_corners_of_the_box_give_numbers_or_infinity(name, criterion, scale):
    # Of thirty features, for which the Boolean kernel overflows.
    samples = scale * np.tile(bits_for(name, X), 10)
    objective = Objective(samples, LABELS, kernel=name, criterion=criterion)
    for theta in ([low_high[i] for low_high in objective.bounds] for i in (0, 1)):
        for mu in (0, 1):
            corner = np.append(theta[:-1], objective.bounds[-1, mu])
            value, _ = objective(corner)
            assert not np.isnan(value)


def test_gradients_and_outputs_are_the_callers_own():
    objective = Objective(X, LABELS)
    _, gradient = objective(objective.theta0)
    outputs = objective.fit(objective.theta0).loo.outputs
    kept = gradient.copy(), outputs.copy()
    objective(objective.theta0 + 1.0)
    assert_array_equal(gradient, kept[0])
    assert_array_equal(outputs, kept[1])


def test_inputs_are_not_changed(read_only):
    arrays = {"sample_weight": read_only(WEIGHT), "selection_weight": read_only(SELECTION)}
    objective = Objective(read_only(X), read_only(THREE), kernel=KERNELS["nested"], **arrays)
    theta = read_only(objective.theta0)
    objective(theta)
    objective.fit(theta)


@pytest.mark.parametrize("kernel", ["rbf", ARD(), Precomputed()])
def test_subset_is_the_objective_of_its_rows(kernel):
    A = RBF(0.3)(X) if isinstance(kernel, Precomputed) else X
    options = {"sample_weight": WEIGHT, "selection_weight": SELECTION}
    whole = Objective(A, LABELS, kernel=kernel, criterion="wmw", **options)
    rows = np.array([0, 2, 3, 5, 6, 7, 9, 11, 12, 16])
    part = whole.subset(rows)
    rows_of = (
        (lambda M: M[np.ix_(rows, rows)])
        if isinstance(kernel, Precomputed)
        else (lambda M: M[rows])
    )
    alone = Objective(
        rows_of(A),
        LABELS[rows],
        kernel=whole.kernel,
        criterion="wmw",
        sample_weight=WEIGHT[rows],
        selection_weight=SELECTION[rows],
    )
    theta = whole.theta0
    assert part.n_samples == len(rows)
    assert part.names == whole.names
    for ours, theirs in zip(part(theta), alone(theta), strict=True):
        assert_allclose(ours, theirs, rtol=1e-12)
    # The same box of ridges n μ.
    n_mu = [o.n_samples * np.exp2(o.bounds[-1]) for o in (whole, part)]
    assert_allclose(n_mu[1], n_mu[0], rtol=1e-12)
    assert_array_equal(part.bounds[:-1], whole.bounds[:-1])


BAD = [
    ({"y": LABELS[:-1]}, "18 samples need as many targets"),
    ({"y": np.arange(N), "criterion": "hinge"}, "Criterion Hinge needs labels -1 and"),
    ({"sample_weight": np.zeros(N)}, "sample_weight must be finite and positive"),
    ({"selection_weight": -np.ones(N)}, "selection_weight must be finite and zero"),
    ({"selection_weight": np.zeros(N)}, "selection_weight is zero for every sample"),
    ({"criterion": "auc"}, "'auc'"),
    ({"kernel": RBF(1.0, (3, 2))}, "gamma_bounds"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Objective(X, **{"y": LABELS, **options})
