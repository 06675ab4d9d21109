"""Nested scores by machines that are tuned anew, against fits without each fold by hand."""

import numpy as np
import pytest
from evaluated import evaluated
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from stacks import stacked_classifier, stacked_regressor

from looms import KernelClassifier, KernelRegressor, Search
from looms.conformal import jackknife_plus
from looms.kernels import Matern
from looms.model_files import load_model, save_model

N = 45
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 3))
NEW = RNG.normal(size=(5, 3))
SIGNAL = np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * RNG.normal(size=N)
GROUPS = np.arange(N) // 2
#: Of four groups there are four folds: a stack without one of them has three of its own.
STACK = {
    "kernels": ["linear", Matern(0.5, 0.3, gamma_bounds="fixed")],
    "combine": "stack",
    "groups": np.arange(N) // 12,
}

GRID = Search(method="grid")
OPTIONS = {
    "landmarks, weights, groups": {
        "n_landmarks": 12,
        "groups": np.arange(N) // 8,
        "weight": np.where(np.arange(N) % 9 == 4, 0.0, 1.0 + X[:, 2] ** 2),
    },
    "landmarks, stack": {"n_landmarks": 12, **STACK},
    "landmarks, grid": {"n_landmarks": 12, "search": GRID, "groups": np.arange(N) // 12},
    "grid, repeated folds": {"search": GRID, "cv": "2x4"},
    "grid, two folds": {"search": GRID, "cv": 2, "kernels": ["linear", "rbf"]},
    "hinge": {"loss": "hinge", "groups": np.arange(N) // 8, "kernels": ["linear"]},
    "full kernel": {"cv": 4, "groups": GROUPS},
    "grid, stack": {"search": GRID, **STACK},
}


pytestmark = [
    pytest.mark.filterwarnings("ignore::looms.BoundWarning"),
    pytest.mark.filterwarnings("ignore::looms.OneClassWarning"),
]


def fitted(kinds, y, options):
    """A machine of one kernel, or of several; ``kinds`` has the class of each."""
    one, several = kinds
    options = {"combine": "best", **options}
    together, weight = options.pop("groups", None), options.pop("weight", None)
    kernels, combine = options.pop("kernels", ["rbf"]), options.pop("combine")
    own = {name: options.pop(name) for name in ("n_landmarks", "loss", "search") if name in options}
    machines = [one(kernel, **own) for kernel in kernels]
    model = machines[0].set_params(**options)
    if len(machines) > 1:
        model = several(machines, combine=combine, **options)
    return model.fit(X, y, sample_weight=weight, groups=together)


def anew(model, y, rest, options):
    """The machine tuned without some rows, with the shares of the classes of all."""
    weight = np.ones(N) if options.get("weight") is None else options["weight"]
    groups, own = options.get("groups"), weight[rest]
    if hasattr(model, "classes_"):
        own = own * [weight[y == c].sum() / own[y[rest] == c].sum() for c in y[rest]]
    return clone(model).fit(X[rest], y[rest], own, None if groups is None else groups[rest])


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [k for k in OPTIONS if k not in ("landmarks, stack", "hinge")],  # of classes
)
def test_numbers_and_intervals_are_of_machines_tuned_without_the_fold(options, tmp_path):
    options = OPTIONS[options]
    model = fitted((KernelRegressor, stacked_regressor), SIGNAL, options)
    nested = model.evaluate()._nested
    if "groups" in options:
        groups = options["groups"][model.fitted_.rows.train]
        assert all(len(set(nested.units.own[g == groups])) == 1 for g in np.unique(groups))
    assert nested.whole
    F = np.empty((len(NEW), len(model.fitted_.rows.train)))
    for k in np.unique(nested.units.own):
        out, rest = (
            model.fitted_.rows.train[nested.units.own == k],
            model.fitted_.rows.train[nested.units.own != k],
        )
        machine = anew(model, SIGNAL, rest, options)
        theirs = machine.predict(X[out])
        assert_allclose(
            nested.held_out.outputs[nested.units.own == k], theirs, rtol=1e-7, atol=1e-9
        )
        F[:, nested.units.own == k] = machine.predict(NEW)[:, None]
    y, outputs, weight = nested.held_out
    rmse = np.sqrt(np.average((y - outputs) ** 2, weights=weight))
    assert model.evaluate()["rmse"] == pytest.approx(rmse)
    error = nested.tie * np.abs(y).max()
    expected = jackknife_plus(nested.held_out.residuals, F, 0.6, rounding_error=error)
    assert_allclose(evaluated(model).predict_interval(NEW, 0.6), expected, rtol=1e-7, atol=1e-9)
    save_model(tmp_path / "m.skops", model, {})
    assert_array_equal(
        evaluated(load_model(tmp_path / "m.skops").model).predict_interval(NEW, 0.6),
        evaluated(model).predict_interval(NEW, 0.6),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        "full kernel",
        "hinge",
        "landmarks, weights, groups",
        "landmarks, stack",
        "grid, repeated folds",
    ],
)
def test_classes_and_probabilities_are_of_machines_tuned_without_the_fold(options):
    options = OPTIONS[options]
    y = np.where(SIGNAL > 0.3, "yes", "no")
    model = fitted((KernelClassifier, stacked_classifier), y, options)
    nested = model.evaluate()._nested
    right = total = 0.0
    for k in np.unique(nested.units.own):
        own = nested.units.own == k
        machine = anew(model, y, model.fitted_.rows.train[~own], options)
        made, out = nested.decisions, X[model.fitted_.rows.train[own]]
        assert_allclose(
            made.outputs[own],
            machine.decision_function(out) + machine.threshold_,
            rtol=1e-6,
            atol=1e-8,
        )
        assert_array_equal(model.classes_[made.predicted[own]], machine.predict(out))
        assert_allclose(made.probabilities[own], machine.predict_proba(out), rtol=1e-5, atol=1e-7)
        f, weight = machine.decision_function(out), nested.held_out.sample_weight[own]
        above = y[model.fitted_.rows.train[own]] == "yes"
        pairs = np.outer(weight[above], weight[~above])
        right += (pairs * (f[above][:, None] > f[~above])).sum()
        total += pairs.sum()
    if options.get("cv") != "2x4":  # whose area is a mean over repetitions
        assert model.evaluate()["roc_auc"] == pytest.approx(right / total)
