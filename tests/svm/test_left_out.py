"""Support vector machines without each unit of rows, against machines solved from scratch."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pairwise import pairwise

from looms import KernelClassifier, Search
from looms.calibration._sigmoid import fit_increasing_sigmoid
from looms.diagnostics import case_deletion
from looms.folds import GapKFold
from looms.kernels import RBF
from looms.lssvm.left_out import Refits
from looms.svm._one_against_one import class_log_probabilities, solved_pairs
from looms.svm.left_out import Paths
from looms.units import Units

N = 24
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
X[3] = X[7]  # a duplicate
NEW = RNG.normal(size=(4, 3))
SIGNAL = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * RNG.normal(size=N)
CLASSES = {
    "two": (SIGNAL > 0).astype(int),
    "three": np.digitize(SIGNAL, np.quantile(SIGNAL, [0.4, 0.7])),
}
WEIGHTS = {"equal": np.ones(N), "uneven": RNG.uniform(0.2, 3.0, N)}
WINDOW = np.repeat(np.arange(4), 6)
UNITS = {
    "rows": Units.rows(N),
    "groups": Units.of_numbers(RNG.integers(0, 8, N)),
    "folds": Units.of_numbers(np.arange(N) % 4),
    "2x3": Units.of_numbers(np.stack([RNG.permutation(N) % 3 for _ in range(2)])),
    "gaps": Units.of_numbers(np.where(np.arange(N) % 6 % 5 == 0, -2 - WINDOW, WINDOW)),
    "windows": Units.of(GapKFold(4, gap=2), SIGNAL),  # whose gaps meet
    "some": Units.of_numbers(np.where(np.arange(N) < 12, -1, np.arange(N) // 4)),
}
INNER = Units.of_numbers(np.arange(N) % 7)
LOSSES = {"hinge": 4.0, "squared_hinge": 2.0}  # and C
#: Units of one repetition whose rows are all tested: sigmoids are of what they hold out.
TESTED = "rows", "groups", "folds"
CASES = [
    *pairwise(UNITS, ["two"], WEIGHTS, LOSSES),
    *pairwise(TESTED, ["three"], WEIGHTS, LOSSES),
]


def cross(new):
    return RBF(0.5)(new, X)


def both(classes, weight, loss, units):
    """Paths, and refits; sigmoids of several classes are fitted to what the units hold out."""
    labels, weight, C = CLASSES[classes], WEIGHTS[weight], LOSSES[loss]
    every, K = np.arange(N), cross(X)

    def solved(rows):
        data = K[np.ix_(rows, rows)], labels[rows], C, weight[rows], np.arange(len(rows))
        return solved_pairs(*data, loss=loss)

    def of_pairs(rows, new):
        machines = solved(rows)
        return cross(new)[:, rows] @ machines.coefficients + machines.intercepts

    held_out = np.empty((N, labels.max() * (labels.max() + 1) // 2))
    if classes == "three":
        for out in units:
            held_out[out] = of_pairs(np.delete(every, out), X[out])

    def fit(rows):
        def outputs(new):
            f = of_pairs(rows, new)
            if f.shape[1] == 1:
                return f
            log_odds = np.empty(f.shape)
            for q, pair in enumerate(combinations(range(3), 2)):
                own = rows[np.isin(labels[rows], pair)]
                y = np.where(labels[own] == pair[1], 1.0, -1.0)
                sigmoid = fit_increasing_sigmoid(held_out[own, q], y, weight[own])
                log_odds[:, q] = -(sigmoid.slope * f[:, q] + sigmoid.intercept)
            return class_log_probabilities(log_odds)

        return outputs

    machines = replace(solved(every), folds=units.number[0])
    known = [(one.slope, one.intercept) for one in machines.sigmoids()]
    paths = Paths(machines, C, loss, cross, np.array(known).T)
    return paths, Refits(fit, X, paths.y, weight)


@pytest.mark.slow
@pytest.mark.parametrize(("units", "classes", "weight", "loss"), CASES)
def test_machines_without_units_equal_refits(units, classes, weight, loss):
    units = UNITS[units]
    paths, expected = both(classes, weight, loss, units)
    close = {"rtol": 1e-5, "atol": 1e-6}  # where a sigmoid is steep
    assert_allclose(paths.fitted(), expected.fitted(), **close)
    assert_allclose(paths.outputs(units), expected.outputs(units), **close)
    assert_allclose(paths.at(NEW, units), expected.at(NEW, units), **close)
    tested = np.flatnonzero(units.own >= 0)
    rows, changed = np.append(tested, tested[:3]), np.arange(len(tested) + 3) % len(NEW)
    own = expected.own(NEW[changed], rows, units)
    assert_allclose(paths.own(NEW[changed], rows, units), own, **close)
    pairs = zip(paths.everywhere(units), expected.everywhere(units), strict=True)
    for (ids, F), (same, of_refits) in pairs:
        assert_allclose(ids, same)
        assert_allclose(F, of_refits, **close)
    changes = paths.mean_square_changes(units)
    assert_allclose(changes, expected.mean_square_changes(units), **close)


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.slow
def test_machines_without_sets_of_rows_equal_refits(classes):
    paths, expected = both(classes, "uneven", "hinge", UNITS["rows"])
    sets = np.array([[0, 5], [5, 9], [2, 20]])
    assert_allclose(paths.of_own(sets), expected.of_own(sets), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_inner_units_equal_refits():
    units = UNITS["folds"]
    paths, expected = both("two", "uneven", "hinge", units)
    for batch in units.batches:
        F = paths.of_rows(batch, units, INNER)
        assert_allclose(F, expected.of_rows(batch, units, INNER), rtol=1e-5, atol=1e-6)


def machine(**options):
    return KernelClassifier(RBF(0.5), **{"loss": "hinge", "mu": 1 / (4 * N), **options})


@pytest.mark.parametrize(
    ("classes", "options"),
    [("two", {"class_weight": "balanced", "loss": "squared_hinge"}), ("three", {})],
)
@pytest.mark.slow
def test_rows_leave_and_join(classes, options):
    y, weight = np.array(["a", "b", "c"])[CLASSES[classes]], np.arange(N) % 3 + 1.0
    weight[4] = 0.0
    whole = machine(**options).fit(X, y, sample_weight=weight)
    gone = [0, 7]
    rest = np.delete(np.arange(N), gone)
    ours = whole.without(gone)
    costs = whole.fit_weight_ / (whole.mu_ * whole.fit_weight_.sum())  # C of each row
    mu = 1.0 / costs[rest].sum()
    theirs = machine(mu=mu, loss=whole.loss).fit(X[rest], y[rest], sample_weight=costs[rest])
    assert_allclose(ours.fit_weight_ / (ours.mu_ * ours.fit_weight_.sum()), costs[rest])
    assert_allclose(ours._outputs(NEW), theirs._outputs(NEW), atol=1e-6)
    assert_allclose(ours.loo_.outputs, theirs.loo_.outputs, atol=1e-6)
    assert ours.certificate_.holds
    again = ours.with_rows(X[gone], y[gone], sample_weight=weight[gone])
    assert_allclose(again._outputs(NEW), whole._outputs(NEW), atol=1e-6)
    with pytest.raises(ValueError, match="z"):
        whole.with_rows(NEW, ["z"] * 4)
    with pytest.raises(ValueError, match="rows must be from 0 to 23"):
        whole.without([24])


@pytest.mark.slow
def test_case_deletion_is_of_refits():
    y, groups = CLASSES["two"], np.arange(N) // 2
    model = machine().fit(X, y, groups=groups)
    found = case_deletion(model)
    units = Units.of_numbers(groups)
    for k, out in enumerate(units):
        rest = np.delete(np.arange(N), out)
        given = machine(mu=model.mu_ * N / len(rest)).fit(X[rest], y[rest])
        change = given._outputs(X[rest]) - model._outputs(X[rest])
        assert found.rms_change[k] == pytest.approx(np.sqrt(np.mean(change**2)), abs=1e-8)
    assert np.isfinite(found.criterion_change).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:(These scores|1 of .* rows are duplicates)")
@pytest.mark.parametrize("cv", ["2x3", GapKFold(4, gap=2)], ids=["repeated", "gaps"])
def test_outputs_are_means_over_repetitions_without_folds_and_gaps(cv):
    y = CLASSES["two"]
    kernel, search = RBF(0.5, gamma_bounds="fixed"), Search("hinge", resolution=4.0)
    model = KernelClassifier(kernel, loss="hinge", cv=cv, search=search).fit(X, y)
    units = model.units_
    assert units.shape[0] == 2
    F = np.full(units.shape, np.nan)
    for k, out in enumerate(units):
        rest, r = np.delete(np.arange(N), out), units.repetition[k]
        tested = out[units.tested[r, out]]
        given = machine(mu=model.mu_ * N / len(rest)).fit(X[rest], y[rest])
        F[r, tested] = given._outputs(X[tested])
    assert_allclose(model.held_out_.outputs, np.nanmean(F, axis=0), atol=1e-8)
    losses = np.maximum(0.0, 1.0 - np.where(y == 1, 1.0, -1.0) * F)
    of_passes = [losses[r, rows].mean() for r, rows in units.passes]
    assert model.selection_.value == pytest.approx(np.mean(of_passes))
    assert model.certify().holds
    assert 0.5 < model.evaluate()["roc_auc"] < 1 + 1e-12
    three = machine(cv=cv).fit(X, CLASSES["three"])
    assert np.isfinite(three.held_out_.outputs).all()
    assert three.certify().holds
    assert_allclose(three.predict_proba(NEW).sum(axis=1), 1)
