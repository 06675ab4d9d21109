"""Rows that are held out together: folds, groups and copies."""

import numpy as np
import pytest
from evaluated import evaluated
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import pairwise
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    PredefinedSplit,
)

from looms import KernelClassifier, KernelRegressor, Search
from looms._classes import class_indices
from looms.calibration import fit_calibrator
from looms.calibration._calibrators import output_at
from looms.conformal import jackknife_minmax, jackknife_plus, prediction_sets
from looms.conformal._sets import class_margins
from looms.duplicates import duplicate_groups
from looms.folds import ForwardSplit, GapKFold
from looms.held_out import HeldOut
from looms.kernels import RBF
from looms.threshold import find_threshold

N = 40
RNG = np.random.default_rng(11)
X = RNG.normal(size=(N, 3))
X[[21, 23, 25, 27]] = X[[0, 2, 4, 6]]  # copies in other groups
SIGNAL = np.sin(2 * X[:, 0]) + X[:, 1] + 0.6 * RNG.normal(size=N)
GROUPS = np.array([f"patient {i % 10}" for i in range(N)])
TARGETS = {
    "numbers": SIGNAL,
    "two targets": np.column_stack([SIGNAL, X[:, 2] + RNG.normal(size=N)]),
    "two classes": np.where(SIGNAL > 0.4, "yes", "no"),
    "three classes": np.digitize(SIGNAL, [-0.7, 0.7]),
}
WEIGHTS = {"unweighted": None, "some are zero": RNG.choice([0.0, 0.5, 1.0, 2.0], N)}
TOGETHER = {"rows": None, "groups": GROUPS, "duplicates": duplicate_groups(X)}
FIFTHS = np.arange(N) % 10 // 2  # keep groups and copies together
SPLITS = list(PredefinedSplit(FIFTHS).split())
CVS = {
    "one at a time": lambda groups: None,
    "number": lambda groups: 4,
    "repetitions": lambda groups: "3x2",
    "splitter": lambda groups: KFold(5) if groups is None else GroupKFold(5),
    "splits": lambda groups: SPLITS,
    "gaps": lambda groups: GapKFold(5, gap=1, time=np.arange(N) % 10),  # two patients a window
    "forward": lambda groups: ForwardSplit(4, gap=1, time=np.arange(N) % 10),
}

N_FOLDS = {"number": 4, "repetitions": 6, "splitter": 5, "splits": 5, "gaps": 5, "forward": 5}

# The data have copies on purpose, and are few.
pytestmark = [
    pytest.mark.filterwarnings("ignore::looms.DuplicatesWarning"),
    pytest.mark.filterwarnings("ignore::looms.BoundWarning"),
    pytest.mark.filterwarnings("ignore::looms.OneClassWarning"),
]


def machine(target, **options):
    estimator = KernelClassifier if "classes" in target else KernelRegressor
    return estimator(**{"search": Search(max_iter=10), **options})


def refitted(model, fold, K, new=None):
    """Outputs for a fold by the machine without it, or for new rows of kernel values.

    λ_i = n μ / ζ_i is held, and is μ Σw / w_i.
    """
    w = model.fit_weight_
    rest = np.setdiff1d(np.flatnonzero(w), fold)
    given = KernelRegressor(
        "precomputed", mu=model.mu_ * w.sum() / w[rest].sum(), fit_intercept=model.fit_intercept_
    ).fit(K[np.ix_(rest, rest)], model.loo_.y[rest], sample_weight=w[rest])
    return given.predict((K[fold] if new is None else new)[:, rest])


def gram(model):
    return model.X_fit_ if model.kernel == "precomputed" else model.kernel_(X)


@pytest.mark.parametrize(
    ("target", "cv", "together", "weight", "kernel", "method", "intercept"),
    pairwise(
        TARGETS,
        CVS,
        TOGETHER,
        WEIGHTS,
        ["rbf", "precomputed"],
        ["gradient", "grid", "given"],
        [True, False],
    ),
)
def test_held_out_outputs_are_those_of_refits(
    target, cv, together, weight, kernel, method, intercept
):
    groups, w = TOGETHER[together], WEIGHTS[weight]
    how = {"mu": 0.01} if method == "given" else {"search": Search(method=method, max_iter=10)}
    model = machine(target, kernel=kernel, cv=CVS[cv](groups), fit_intercept=intercept, **how)
    samples = RBF(0.3)(X) if kernel == "precomputed" else X
    model.fit(samples, TARGETS[target], sample_weight=w, groups=groups)
    counts = cv != "forward" or np.arange(N) % 10 > 1  # the first window does not
    expected_weight = counts * (np.ones(N) if w is None else w)
    assert_array_equal(model.held_out_.sample_weight, expected_weight)
    train = np.flatnonzero(model.fit_weight_)
    labels = np.arange(N) if groups is None else np.unique(groups, return_inverse=True)[1]
    numbers = model.units_.codes
    if cv == "one at a time":
        numbers = np.where(model.fit_weight_ > 0, labels, -1)[None]
    folds = [np.flatnonzero(row == k) for row in numbers for k in np.unique(row[row >= 0])]
    assert len(folds) == N_FOLDS.get(cv, len(set(labels[train])))

    expected, K = np.zeros(model.loo_.y.shape), gram(model)
    for fold in folds:
        out = fold
        if cv == "gaps":  # the patients beside the window, too
            window = np.unique(fold % 10)
            out = np.flatnonzero(np.isin(np.arange(N) % 10, [window - 1, window, window + 1]))
        if cv == "forward" and (fold % 10).min() > 1:  # later patients, and one before
            out = np.flatnonzero(np.arange(N) % 10 >= (fold % 10).min() - 1)
        assert not set(labels[fold]) & set(labels[np.setdiff1d(train, out)])
        expected[fold] += refitted(model, out, K, K[fold]) / (3 if cv == "repetitions" else 1)
    assert_allclose(model.held_out_.outputs[train], expected[train], rtol=1e-6, atol=1e-8)
    single = [refitted(model, np.array([i]), K)[0] for i in train]
    assert_allclose(model.loo_.outputs[train], single, rtol=1e-6, atol=1e-8)
    unseen = np.setdiff1d(np.arange(N), train)
    if len(unseen):
        ordinary = refitted(model, unseen, K)
        assert_allclose(model.held_out_.outputs[unseen], ordinary, rtol=1e-6, atol=1e-8)
        assert_allclose(model.loo_.outputs[unseen], ordinary, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("options", [{"cv": 4}, {}])
def test_threshold_and_probabilities_are_of_the_outputs_held_out(options):
    y = TARGETS["two classes"]
    weight = np.maximum(WEIGHTS["some are zero"], 0.1)
    for threshold in (0.5, 0.3, "balanced"):
        model = machine("two classes", threshold=threshold, **options)
        model.fit(X, y, sample_weight=weight, groups=GROUPS)
        held_out = HeldOut(np.where(y == "yes", 1.0, -1.0), model.held_out_.outputs, weight)
        calibrator = fit_calibrator(held_out, "sigmoid")
        assert model.calibrator_.slope == pytest.approx(calibrator.slope)
        assert model.calibrator_.slope != pytest.approx(
            fit_calibrator(model.loo_, "sigmoid").slope, rel=1e-4
        )
        if threshold == "balanced":
            cut = find_threshold(held_out, "balanced")[0]
        else:
            cut = output_at(calibrator, held_out.outputs, threshold)
        assert model.threshold_ == pytest.approx(cut)


class TestSplits:
    @pytest.mark.slow
    def test_splits_and_splitters_number_all_rows_also_those_of_weight_zero(self):
        weight = np.where(np.arange(N) % 3 == 0, 0.0, 1.0)
        masks = [[np.isin(np.arange(N), part) for part in split] for split in SPLITS]
        for cv in (SPLITS, masks, FIFTHS, np.stack([FIFTHS, FIFTHS]), PredefinedSplit(FIFTHS)):
            model = KernelRegressor(cv=cv).fit(X, SIGNAL, sample_weight=weight)
            assert_array_equal(model.units_.codes[0], np.where(weight > 0, FIFTHS, -1))
            kept = weight > 0
            alone = KernelRegressor(cv=FIFTHS[kept]).fit(X[kept], SIGNAL[kept])
            assert model.mu_ == pytest.approx(alone.mu_)

    @pytest.mark.parametrize(
        ("cv", "groups", "message"),
        [
            (KFold(5), GROUPS, "group"),
            (LeaveOneGroupOut(), None, "give groups"),
            (None, GROUPS[1:], "one label per row"),
            (None, TARGETS["two classes"], "'no'"),
        ],
    )
    @pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
    def test_what_cannot_be_held_out_is_refused_before_any_work(self, cv, groups, message):
        model = KernelClassifier(cv=cv)
        with pytest.raises(ValueError, match=message):
            model.fit(X, TARGETS["two classes"], groups=groups)
        assert not hasattr(model, "kernel_")


@pytest.mark.parametrize("target", TARGETS)
def test_intervals_and_sets_leave_out_the_whole_group(target):
    weight = WEIGHTS["some are zero"]
    new = RNG.normal(size=(5, 3))
    model = machine(target).fit(X, TARGETS[target], sample_weight=weight, groups=GROUPS)
    train = np.flatnonzero(weight)
    K, K_new = gram(model), model.kernel_(new, X)
    F = np.empty((len(new), *model.loo_.y.shape))
    for group in np.unique(GROUPS):
        fold = np.flatnonzero(group == GROUPS)
        F[:, fold] = refitted(model, fold, K, K_new)[:, None]
    r = model.held_out_.residuals[train]
    single = machine(target).fit(X, TARGETS[target], sample_weight=weight)
    if "classes" in target:
        labels = class_indices(model.loo_.y[train])
        own = class_margins(model.held_out_.outputs[train].reshape(len(r), -1))
        margins = class_margins(F[:, train].reshape(len(new), len(r), -1))
        for share in (0.6, 0.85):
            sets = prediction_sets(own[np.arange(len(r)), labels], margins, share)
            assert_array_equal(evaluated(model).predict_set(new, share), sets)
        return
    for method, jackknife in (("plus", jackknife_plus), ("minmax", jackknife_minmax)):
        ours = evaluated(model).predict_interval(new, 0.8, method)
        assert_allclose(ours, jackknife(r, F[:, train], 0.8), rtol=1e-6, atol=1e-8)
        assert (np.abs(ours - evaluated(single).predict_interval(new, 0.8, method)) > 1e-3).any()
    ours, theirs = (evaluated(one).predict_interval(new, 0.8, "scaled") for one in (model, single))
    assert (np.abs(ours - theirs) > 1e-3).any()


@pytest.mark.parametrize("n", [3, 4, 5, 6])
@pytest.mark.parametrize("target", ["numbers", "two classes"])
@pytest.mark.filterwarnings("ignore")
def test_few_rows_have_figures_all_the_same(n, target):
    y = np.arange(n) % 2 if "classes" in target else np.arange(n) * 1.0
    model = machine(target).fit(RNG.normal(size=(n, 2)), y)
    names = ("accuracy", "balanced_accuracy") if "classes" in target else ("rmse", "mae", "r2")
    assert np.isfinite([model.evaluate(nested=False)[name] for name in names]).all()
    if n < (6 if "classes" in target else 4):
        with pytest.raises(ValueError, match=r"fewer than 3|too few.*nested=False"):
            model.evaluate()
    else:
        assert np.isfinite([model.evaluate()[name] for name in names]).all()
