"""Fits in several threads at a time give, bit for bit, what they give one after the other."""

import pickle
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from evaluated import evaluated
from sklearn.base import clone
from stacks import stacked_classifier

from looms import KernelClassifier, KernelRegressor, Search, TabularRegressor
from looms.kernels import RBF, Linear, Matern, Ranked

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.sin(X[:, 0]) + X[:, 1] + 0.3 * RNG.normal(size=40)
CLASSES = np.digitize(Y, [-0.6, 0.6])
N_THREADS = 3

#: Machines that share their kernels, as the copies of one parameter in a search do.
KERNEL = RBF() + 0.1 * Ranked(Matern()) * Linear()
MACHINES = {
    "classifier": (KernelClassifier(KERNEL, mu=1e-3), CLASSES),
    "regressor": (KernelRegressor(KERNEL, mu=1e-3), Y),
    "classifier that tunes": (stacked_classifier([RBF(), Linear()], combine="best"), CLASSES),
    "regressor that tunes": (KernelRegressor("ard"), Y),
    "regressor on landmarks": (KernelRegressor(n_landmarks=20, random_state=0), Y),
    "support vector machine": (
        KernelClassifier(RBF(0.1, gamma_bounds="fixed"), loss="hinge"),
        CLASSES,
    ),
}


def numbers(machine, y):
    """What a fit gives, in bytes."""
    machine.fit(X, y)
    return pickle.dumps(
        (
            machine.dual_coef_,
            machine.intercept_,
            machine.loo_.outputs,
            machine.kernel_.theta,
            machine.predict(X[:9] + 0.1),
        )
    )


@pytest.mark.slow
def test_folds_of_fits_side_by_side_leave_the_filters_of_warnings_alone():
    """Those belong to the process: who sets them for a while in one thread may undo another's."""
    before = list(warnings.filters)
    ready = threading.Barrier(N_THREADS)

    def fit(_):
        ready.wait(60)
        for _ in range(2):
            KernelRegressor().fit(X, Y)
            TabularRegressor(["rbf"], target="none").fit(X, Y)

    with ThreadPoolExecutor(N_THREADS) as pool:
        list(pool.map(fit, range(N_THREADS)))
    assert warnings.filters == before


@pytest.mark.slow
def test_fits_side_by_side_are_those_one_after_the_other():
    one_by_one = {name: numbers(clone(machine), y) for name, (machine, y) in MACHINES.items()}
    ready = threading.Barrier(N_THREADS)

    def some(first):
        names = [*MACHINES]
        ready.wait(60)
        order = names[first:] + names[:first]
        return {name: numbers(clone(MACHINES[name][0]), MACHINES[name][1]) for name in order}

    with ThreadPoolExecutor(N_THREADS) as pool:
        for side_by_side in pool.map(some, range(N_THREADS)):
            assert side_by_side == one_by_one


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        (KERNEL, {"mu": 1e-3}),
        ("linear", {"search": Search(method="grid")}),
        ("rbf", {"n_landmarks": 20}),
    ],
)
def test_a_fitted_machine_predicts_in_several_threads(kernel, options):
    """Predictions only read what an evaluation has made."""
    machine = evaluated(KernelRegressor(kernel, **options).fit(X, Y))
    expected = evaluated(clone(machine).fit(X, Y)).predict_interval(X).tobytes()
    ready = threading.Barrier(N_THREADS)

    def intervals(_):
        ready.wait(60)
        return machine.predict_interval(X).tobytes()

    with ThreadPoolExecutor(N_THREADS) as pool:
        assert set(pool.map(intervals, range(N_THREADS))) == {expected}
