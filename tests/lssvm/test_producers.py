"""Every producer of leave-one-out outputs against refitting, refitting against scikit-learn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import pairwise
from sklearn.kernel_ridge import KernelRidge

from looms.kernels import RBF, Boolean, Linear, Normalized, Polynomial
from looms.lssvm import NotPositiveDefiniteError, solve
from looms.lssvm.refit import refit_loo
from looms.lssvm.spectral import decompose

N = 14
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3))
X[3] = X[7]  # a duplicate


def frozen(array):
    array = np.array(array, dtype=np.float64)
    array.flags.writeable = False
    return array


KERNELS = {
    "rbf": frozen(RBF()(X)),
    "linear": frozen(Linear()(X)),
    "cubic": frozen(Polynomial(3)(X)),
    "cosine": frozen(Normalized(Linear())(X)),
    "sum": frozen((0.3 * RBF(2.0) + Boolean(0.2))(X)),
    "zero": frozen(np.zeros((N, N))),
}
WEIGHTS = {
    "unweighted": None,
    "weighted": frozen(RNG.uniform(0.2, 3.0, N)),
    "uneven": frozen(10.0 ** RNG.uniform(-2, 2, N)),
}
TARGETS = {
    "one": frozen(RNG.standard_normal(N)),
    "labels": frozen(np.where(X[:, 0] > 0, 1.0, -1.0)),
    "column": frozen(RNG.standard_normal((N, 1))),
    "three": frozen(RNG.standard_normal((N, 3))),
}


def loo_outputs(spectrum, y, mu, **options):
    solved = spectrum.solve(y, mu, **options)
    return (solved.y - solved.loo_residuals).reshape(np.shape(y))


PRODUCERS = {
    "solve": lambda K, y, mu, sample_weight=None, fit_intercept=True: (
        solve(K, y, mu, sample_weight=sample_weight, fit_intercept=fit_intercept).loo.outputs
    ),
    "decompose": lambda K, y, mu, sample_weight=None, fit_intercept=True: loo_outputs(
        decompose(K, sample_weight=sample_weight), y, mu, fit_intercept=fit_intercept
    ),
    "refit_loo": lambda *args, **options: refit_loo(*args, **options).outputs,
}
each_producer = pytest.mark.parametrize("producer", PRODUCERS.values(), ids=PRODUCERS.keys())
FAST_PRODUCERS = ["solve", "decompose"]
fast_producers = pytest.mark.parametrize("name", FAST_PRODUCERS)
intercepts = pytest.mark.parametrize("fit_intercept", [True, False])


def assert_close(ours, theirs, rtol=1e-8):
    """Equal to ``rtol`` of the largest; outputs y − r beside targets of one also have 1e-14."""
    assert ours.shape == theirs.shape
    assert_allclose(ours, theirs, rtol=rtol, atol=rtol * np.abs(theirs).max() + 1e-14)


@pytest.mark.parametrize(
    ("name", "kernel", "weights", "targets", "fit_intercept"),
    pairwise(FAST_PRODUCERS, KERNELS, WEIGHTS, TARGETS, [True, False]),
)
def test_equals_refitting(name, kernel, weights, targets, fit_intercept):
    K, weight, y = KERNELS[kernel], WEIGHTS[weights], TARGETS[targets]
    mu = 0.02 * max(np.trace(K) / N, 0.1)
    ours, theirs = (
        PRODUCERS[producer](K, y, mu, sample_weight=weight, fit_intercept=fit_intercept)
        for producer in (name, "refit_loo")
    )
    assert_close(ours, theirs)


@fast_producers
@pytest.mark.parametrize("mu", [1e-8, 1e-4, 1.0, 1e4, 1e8])
@intercepts
def test_large_and_small_mu(name, mu, fit_intercept):
    K, y = KERNELS["rbf"], TARGETS["three"]
    ours, theirs = (
        PRODUCERS[producer](K, y, mu, fit_intercept=fit_intercept)
        for producer in (name, "refit_loo")
    )
    # K / n has a largest eigenvalue of about one: as many digits go as mu is below it.
    assert_close(ours, theirs, rtol=max(1e-8, 1e-14 / mu))


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("targets", ["one", "three"])
@pytest.mark.parametrize("kernel", ["rbf", "cubic"])
def test_refitting_is_scikit_learns_kernel_ridge(kernel, weights, targets):
    # KernelRidge minimizes Σ ζ (y − f)² + alpha ‖w‖²: alpha = n mu at the full n.
    K, weight, y, mu = KERNELS[kernel], WEIGHTS[weights], TARGETS[targets], 0.05
    theirs = np.empty_like(y)
    for i in range(N):
        rest = np.delete(np.arange(N), i)
        ridge = KernelRidge(alpha=N * mu, kernel="precomputed")
        ridge.fit(K[np.ix_(rest, rest)], y[rest], None if weight is None else weight[rest])
        theirs[i] = ridge.predict(K[i : i + 1, rest])[0]
    ours = refit_loo(K, y, mu, sample_weight=weight, fit_intercept=False)
    assert_close(ours.outputs, theirs, rtol=1e-9)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_refitting_with_intercept_is_a_flat_direction(weights):
    """A constant kernel of 10⁷ is an intercept that is hardly penalized."""
    K, weight, y, mu = KERNELS["rbf"], WEIGHTS[weights], TARGETS["one"], 0.05
    ours = refit_loo(K, y, mu, sample_weight=weight)
    theirs = refit_loo(K + 1e7, y, mu, sample_weight=weight, fit_intercept=False)
    assert_close(ours.outputs, theirs.outputs, rtol=1e-4)


@each_producer
def test_by_hand(producer):
    # K = 0 predicts the mean of the others; weighted, their weighted mean.
    assert_allclose(producer(np.zeros((3, 3)), np.array([1.0, 2.0, 6.0]), 1.0), [4, 3.5, 1.5])
    weight = np.array([1.0, 3.0, 2.0])
    outputs = producer(np.zeros((3, 3)), np.array([1.0, 2.0, 6.0]), 1.0, sample_weight=weight)
    assert_allclose(outputs, [(6 + 12) / 5, (1 + 12) / 3, (1 + 6) / 4], rtol=1e-13)
    # Without an intercept, two samples: f(x_i) = K_ij y_j / (K_jj + 2 mu).
    K = np.array([[2.0, 1.0], [1.0, 3.0]])
    outputs = producer(K, np.array([4.0, 12.0]), 0.5, fit_intercept=False)
    assert_allclose(outputs, [12 / 4, 4 / 3], rtol=1e-13)


@each_producer
@intercepts
def test_an_indefinite_kernel_that_the_ridge_makes_definite(producer, fit_intercept):
    K = KERNELS["linear"] - 0.5 * np.eye(N)
    y = TARGETS["one"]
    ours = producer(K, y, 0.3, fit_intercept=fit_intercept)
    theirs = refit_loo(K, y, 0.3, fit_intercept=fit_intercept)
    assert_close(ours, theirs.outputs)


@pytest.mark.parametrize("name", ["solve", "decompose"])
@intercepts
def test_indefinite_system_advises(name, fit_intercept):
    K = KERNELS["linear"] - 0.5 * np.eye(N)
    with pytest.raises(NotPositiveDefiniteError, match=r"mu = 0.001. Use a larger mu") as raised:
        PRODUCERS[name](K, TARGETS["one"], 0.001, fit_intercept=fit_intercept)
    assert raised.value.mu == 0.001
    assert isinstance(raised.value, np.linalg.LinAlgError)


@pytest.mark.parametrize("name", ["solve", "decompose"])
def test_mu_lost_in_rounding_advises(name):
    with pytest.raises(NotPositiveDefiniteError, match="larger mu"):
        PRODUCERS[name](np.ones((3, 3)), np.array([1.0, 2.0, 3.0]), 1e-20)


EYE, ONES = np.eye(3), np.ones(3)
TILTED = np.array([[1.0, 0.5, 0.0], [0.4, 1.0, 0.0], [0.0, 0.0, 1.0]])


@each_producer
@pytest.mark.parametrize(
    ("K", "y", "mu", "weight", "message"),
    [
        (EYE[:2], ONES, 1, None, r"K must be a square matrix, but has shape \(2, 3\)"),
        (EYE, np.ones(4), 1, None, r"y has shape \(4,\) and K has shape \(3, 3\)"),
        (EYE, np.ones((3, 0)), 1, None, r"y has shape \(3, 0\) and K"),
        (EYE, np.ones((3, 1, 1)), 1, None, r"y has shape \(3, 1, 1\) and K"),
        (EYE, ONES, 1, np.ones(2), "sample_weight must have one entry per row"),
        (EYE, ONES, 1, np.array([1.0, 0, 1]), "positive, but row 1 has 0"),
        (EYE, ONES, 1, np.array([1.0, -1, 1]), "positive, but row 1 has -1"),
        (EYE, ONES, 0, None, "mu must be positive and finite, but is 0"),
        (EYE, ONES, np.nan, None, "mu must be positive and finite, but is nan"),
        (EYE * np.nan, ONES, 1, None, "K must be finite"),
        (EYE, ONES * np.inf, 1, None, "y must be finite"),
        (EYE, ONES, 1, np.array([1, np.nan, 1]), "sample_weight must be finite"),
        (EYE[:1, :1], ONES[:1], 1, None, "needs two samples or more"),
    ],
)
def test_bad_input_is_refused(producer, K, y, mu, weight, message):
    with pytest.raises(ValueError, match=message):
        producer(K, y, mu, sample_weight=weight)


@pytest.mark.parametrize("producer", [solve, refit_loo])
def test_asymmetry_is_refused(producer):
    with pytest.raises(ValueError, match=r"symmetric, but K and its transpose differ by 0.1"):
        producer(TILTED, ONES, 1)


def test_decompose_reads_the_lower_triangle():
    for garbage in (np.nan, np.inf, 1e308):
        lower = np.where(np.tri(N), KERNELS["rbf"], garbage)
        for K in (lower, np.asfortranarray(lower)):
            ours, theirs = (
                loo_outputs(decompose(k, sample_weight=WEIGHTS["uneven"]), TARGETS["one"], 0.1)
                for k in (K, KERNELS["rbf"])
            )
            assert_close(ours, theirs)


@each_producer
@pytest.mark.parametrize("order", ["C", "F"])
def test_inputs_are_not_changed(producer, order):
    K, y, weight = (
        np.array(a, order=order) for a in (KERNELS["rbf"], TARGETS["three"], WEIGHTS["weighted"])
    )
    producer(K, y, 0.1, sample_weight=weight)
    assert_array_equal(K, KERNELS["rbf"])
    assert_array_equal(y, TARGETS["three"])
    assert_array_equal(weight, WEIGHTS["weighted"])
