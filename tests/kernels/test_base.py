"""The algebra of kernels: operators, nesting of parameters, hyper-parameters, errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from looms.kernels import ARD, RBF, Boolean, Constant, Linear, Normalized, Polynomial, Precomputed
from looms.kernels._base import Product, Sum
from looms.kernels._samples import Samples

X = np.random.default_rng(0).standard_normal((8, 3))
G = np.random.default_rng(1).standard_normal((8, 8))


def names(kernel):
    return [h.name for h in kernel.hyperparameters]


@pytest.mark.parametrize("two", [2, 2.0, np.float64(2), np.float32(2), np.int64(2)])
def test_operators_with_numbers(two):
    K = RBF(0.5)(X)
    for kernel, expected in [
        (two * RBF(0.5), 2 * K),
        (RBF(0.5) * two, 2 * K),
        (two + RBF(0.5), 2 + K),
        (RBF(0.5) + two, 2 + K),
    ]:
        assert_allclose(kernel(X), expected, rtol=1e-14)
    assert repr(two * RBF()) == "Product(k1=Constant(value=2.0), k2=RBF())"
    assert repr(RBF() + two) == "Sum(k1=RBF(), k2=Constant(value=2.0))"


def numbers_of(kernel):
    parameters = kernel.get_params()
    return {name: parameters[name] for name in parameters if name.endswith(("gamma", "value"))}


def test_operators_with_kernels():
    a, b = RBF(0.5), Polynomial(2, c=1.0)
    assert_allclose((a + b)(X), a(X) + b(X), rtol=1e-14)
    assert_allclose((a * b)(X), a(X) * b(X), rtol=1e-14)
    combined = a + b * a
    assert isinstance(combined, Sum)
    assert isinstance(combined.k2, Product)
    assert combined.k1 is a
    assert combined.k2.k1 is b


@pytest.mark.parametrize("other", [-1, 0, 0.0, np.nan, "rbf", None, np.ones(3), [1.0]])
@pytest.mark.parametrize(
    "combine",
    [lambda k, o: k + o, lambda k, o: o + k, lambda k, o: k * o, lambda k, o: o * k],
)
def test_operators_refuse_what_is_no_weight(combine, other):
    with pytest.raises(TypeError, match="kernels and positive numbers only"):
        combine(RBF(), other)


def test_parameters_nest():
    kernel = Normalized(0.5 * RBF(0.1) + Polynomial(3, c=2.0)) * ARD(0.3)
    parameters = kernel.get_params()
    assert parameters["k1__kernel__k1__k1__value"] == 0.5
    assert parameters["k1__kernel__k1__k2__gamma"] == 0.1
    assert parameters["k1__kernel__k2__c"] == 2.0
    assert parameters["k2__gammas"] == 0.3
    twin = clone(kernel).set_params(k1__kernel__k1__k2__gamma=7.0, k2__gammas_bounds="fixed")
    assert twin.k1.kernel.k1.k2.gamma == 7.0
    assert kernel.k1.kernel.k1.k2.gamma == 0.1
    assert twin.k2.gammas_bounds == "fixed"
    with pytest.raises(ValueError, match="Invalid parameter"):
        kernel.set_params(k3__gamma=1.0)


def test_names_are_those_of_the_parameters():
    kernel = Normalized(0.5 * RBF() + Polynomial()) + ARD() * Boolean()
    started = kernel.started(Samples(X))
    assert names(started) == [
        "k1__kernel__k1__k1__value",
        "k1__kernel__k1__k2__gamma",
        "k1__kernel__k2__c",
        "k2__k1__gammas[0]",
        "k2__k1__gammas[1]",
        "k2__k1__gammas[2]",
        "k2__k2__gamma",
    ]
    for h in started.hyperparameters:
        if "[" not in h.name:
            assert started.get_params()[h.name] == h.value


@pytest.mark.parametrize(
    ("kernel", "free"),
    [
        (RBF(1.0, "fixed"), []),
        (Polynomial(2, 1.0, "fixed"), []),
        (Boolean(1.0, "fixed"), []),
        (Constant(1.0, "fixed"), []),
        (ARD(1.0, "fixed"), []),
        (Normalized(Polynomial(2, 1.0, "fixed")), []),
        (Constant(2.0, "fixed") * RBF(0.5) + Linear(), ["k1__k2__gamma"]),
        (2.0 * RBF(0.5, "fixed") + ARD(1.0, "fixed"), ["k1__k1__value"]),
        (RBF(0.5) + Linear() * Boolean(0.5), ["k1__gamma", "k2__k2__gamma"]),
    ],
)
def test_fixed_takes_out_of_theta(kernel, free):
    kernel = kernel.started(Samples(X))
    assert names(kernel) == free
    assert kernel.theta.shape == kernel.contract(X, G).shape == (len(free),)
    before, after = (numbers_of(k) for k in (kernel, kernel.with_theta(kernel.theta + 1.0)))
    changed = {name for name in before if np.any(before[name] != after[name])}
    assert changed == set(free)


def test_fixed_without_a_value_is_taken_from_the_data():
    fixed = RBF(gamma_bounds="fixed").started(Samples(X))
    assert fixed.gamma == RBF().started(Samples(X)).gamma
    assert fixed.theta.size == 0


def test_bounds_in_natural_units():
    assert RBF(1.0, (0.5, 4)).hyperparameters[0].bounds == (0.5, 4.0)
    assert RBF(1.0).hyperparameters[0].bounds is None
    assert [h.bounds for h in ARD([1.0, 2.0], (0.1, 9)).hyperparameters] == [(0.1, 9.0)] * 2


@pytest.mark.parametrize(
    "bounds", [(2, 1), (0, 1), (-1, 1), (1, np.inf), (np.nan, 1), (1,), (1, 2, 3), 5, "free", "ab"]
)
@pytest.mark.parametrize(
    "kernel",
    [
        lambda b: RBF(1.0, b),
        lambda b: Boolean(1.0, b),
        lambda b: Polynomial(2, 1.0, b),
        lambda b: Constant(1.0, b),
        lambda b: ARD([1.0], b),
    ],
)
def test_bad_bounds_name_kernel_and_argument(kernel, bounds):
    kernel = kernel(bounds)
    with pytest.raises(ValueError, match=rf"{type(kernel).__name__}: \w+_bounds must be None"):
        _ = kernel.hyperparameters


@pytest.mark.parametrize("value", [0, -1, -0.5, np.nan, np.inf, "a", [1.0], np.ones(1), 1j])
@pytest.mark.parametrize(
    ("kernel", "name"),
    [(RBF, "gamma"), (Boolean, "gamma"), (lambda v: Polynomial(2, v), "c"), (Constant, "value")],
)
def test_bad_value_names_kernel_and_argument(kernel, name, value):
    kernel = kernel(value)
    message = rf"{type(kernel).__name__}: {name} must be a positive number"
    with pytest.raises(ValueError, match=message):
        kernel(X)
    with pytest.raises(ValueError, match=message):
        Normalized(kernel + Linear()).started(Samples(X))


@pytest.mark.parametrize("kernel", [RBF(), Boolean(), Polynomial(), ARD(), RBF() + Linear()])
def test_value_to_be_set_from_the_samples_is_refused(kernel):
    with pytest.raises(ValueError, match=r"fit sets it from the training samples"):
        _ = kernel.theta


def test_constant_waits_as_one():
    assert_array_equal(Constant(None)(X), np.ones((8, 8)))


def test_samples_must_be_a_matrix():
    with pytest.raises(ValueError, match="rows of a matrix, got an array of 1 dimensions"):
        RBF()(X[0])


@pytest.mark.parametrize(
    "kernel",
    [Precomputed() + RBF(), RBF() * Precomputed(), 2.0 * Precomputed() + 0.5 * RBF() * RBF()],
    ids=str,
)
def test_precomputed_and_features_do_not_combine(kernel):
    with pytest.raises(ValueError, match="precomputed kernel and a kernel of features do not"):
        kernel(np.eye(3))


def test_constants_combine_with_either():
    K = np.eye(3)
    assert_allclose((2.0 * Precomputed() + 0.5 + Precomputed())(K), 3.0 * K + 0.5)
