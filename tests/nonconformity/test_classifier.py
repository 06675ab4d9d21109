"""Classifiers that choose a member for each sample against their definitions."""

from copy import copy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_blobs, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    LeaveOneOut,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from looms import KernelClassifier, NonconformityClassifier
from looms.nonconformity._bounds import dkw_bound, vc_bound
from looms.nonconformity._choice import joint_p_values, within_standard_errors

PAPER = {"within_se": None, "ties": "random"}
GRID = {"C": [0.1, 10.0, 1000.0], "gamma": [0.03, 0.3, 3.0]}
MIXED = [
    SVC(C=1.0),
    make_pipeline(StandardScaler(), LogisticRegression()),
    KernelClassifier(mu=0.1),
]


def data(n_classes=2, n=150, seed=0):
    X, y = make_classification(
        n_samples=n,
        n_features=4,
        n_informative=3,
        n_redundant=0,
        n_classes=n_classes,
        n_clusters_per_class=1,
        class_sep=0.8,
        flip_y=0.1,
        random_state=seed,
    )
    return X, np.array(["a", "b", "c", "d"])[y]


def machines(**options):
    grid = ((C, gamma) for gamma in GRID["gamma"] for C in GRID["C"])
    return [SVC(C=C, gamma=gamma, tol=1e-5, **options) for C, gamma in grid]


@parametrize_with_checks([NonconformityClassifier({"C": [1.0, 100.0], "gamma": [0.1, 1.0]})])
def test_sklearn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [NonconformityClassifier([LogisticRegression(), SVC()], measure="neighbors", validation="2x3")]
)
def test_sklearn_checks_of_variants(estimator, check):
    check(estimator)


def test_the_default_pool_is_the_papers():
    X, y = data(n=60)
    model = NonconformityClassifier().fit(X, y)
    assert len(model.pool_) == 110
    values = {name: sorted({member[name] for member in model.pool_}) for name in ("C", "gamma")}
    np.testing.assert_array_equal(np.log2(values["C"]), np.arange(-5, 16, 2))
    np.testing.assert_array_equal(np.log2(values["gamma"]), np.arange(-15, 4, 2))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_grid_is_the_list_of_its_machines(n_classes):
    """One kernel matrix a gamma and coefficients copied for larger C: the same margins."""
    X, y = data(n_classes)
    shape = {} if n_classes == 2 else {"decision_function_shape": "ovo"}
    members = machines(**shape)
    grid = NonconformityClassifier(GRID, tol=1e-5, random_state=0).fit(X[:100], y[:100])
    listed = NonconformityClassifier(members, random_state=0).fit(X[:100], y[:100])
    of_grid, of_list = ((m._pool.margins(m._pool.outputs(X[100:]))) for m in (grid, listed))
    np.testing.assert_allclose(of_grid, of_list, atol=1e-3, rtol=1e-3)
    for member, machine in zip(grid.pool_, members, strict=True):
        assert member == {name: getattr(machine, name) for name in ("C", "gamma")}


def reference_counts(model, X, y, X_new):
    """Counts from refitted members, label by label."""
    rows = np.delete(np.arange(len(X)), model.validation_)
    counts = np.empty((len(model.pool), len(X_new), len(model.classes_)), dtype=int)
    for k, member in enumerate(model.pool):
        fitted = clone(member).fit(X[rows], y[rows])

        def margins(Z, fitted=fitted):
            f = fitted.decision_function(Z)
            f = np.column_stack([-f / 2, f / 2]) if f.ndim == 1 else f
            others = [np.delete(f, label, axis=1).max(axis=1) for label in range(f.shape[1])]
            return f - np.column_stack(others)

        own = np.searchsorted(model.classes_, y[model.validation_])
        calibration = margins(X[model.validation_])[np.arange(len(own)), own]
        counts[k] = (calibration[:, None, None] <= margins(X_new)).sum(axis=0)
    return counts


@pytest.mark.parametrize("n_classes", [2, 3])
def test_everything_follows_from_refitted_members(n_classes):
    X, y = data(n_classes, 200)
    model = NonconformityClassifier(MIXED, random_state=1, **PAPER).fit(X[:150], y[:150])
    counts = reference_counts(model, X[:150], y[:150], X[150:])
    m = len(model.validation_)
    assert m == 30
    np.testing.assert_allclose(model.model_p_values(X[150:]), (counts + 1) / (m + 1), rtol=1e-12)
    rejected = np.stack(
        [np.delete(counts, label, axis=2).max(axis=2) for label in range(n_classes)], axis=2
    )
    np.testing.assert_allclose(model.epsilon_crit(X[150:]), rejected.min(axis=(0, 2)) / m)
    chosen, label = model.chosen_model(X[150:]), np.searchsorted(model.classes_, model.predict(X))
    at_choice = rejected[chosen, np.arange(50), label[150:]]
    np.testing.assert_array_equal(at_choice, rejected.min(axis=(0, 2)))
    for k in range(len(MIXED)):
        p = model.model_p_values(X[150:], k)
        np.testing.assert_allclose(p, (counts[k] + 1) / (m + 1), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_leave_one_out_calibration_is_refitting(n_classes):
    X, y = data(n_classes, 40)
    svc = SVC(C=10.0, gamma=0.3, tol=1e-6)
    least_squares = KernelClassifier(mu=0.1, threshold="balanced" if n_classes == 2 else 0.5)
    pool = [svc, clone(svc).set_params(decision_function_shape="ovo"), LogisticRegression()]
    model = NonconformityClassifier([*pool, least_squares], validation="loo").fit(X, y)
    np.testing.assert_array_equal(model.validation_, np.arange(40))
    outputs = [
        cross_val_predict(member, X, y, cv=LeaveOneOut(), method="decision_function")
        for member in pool
    ]
    own = clone(least_squares).fit(X, y)
    outputs.append(own.loo_.outputs - own.threshold_)
    labels = np.searchsorted(model.classes_, y)
    scores = model._pool.margins(outputs)[:, np.arange(40), labels]
    # Refits by LIBSVM are good to its tolerance and single precision.
    np.testing.assert_allclose(model.validation_scores_, scores, atol=1e-4)


@pytest.mark.slow
def test_leave_one_out_of_a_grid_is_refitting():
    X, y = data(3, 40)
    model = NonconformityClassifier(GRID, validation="loo", tol=1e-4).fit(X, y)
    labels = np.searchsorted(model.classes_, y)
    outputs = [
        -cross_val_predict(machine, X, y, cv=LeaveOneOut(), method="decision_function")
        for machine in machines(decision_function_shape="ovo")
    ]  # of a pair the first is positive
    scores = model._pool.margins(outputs)[:, np.arange(len(y)), labels]
    np.testing.assert_allclose(model.validation_scores_, scores, atol=5e-3, rtol=5e-3)


def test_neighbors_are_those_in_output_space():
    X, y = data(2, 100)
    member = LogisticRegression()
    model = NonconformityClassifier([member], measure="neighbors", n_neighbors=3, random_state=0)
    model.fit(X, y)
    rows = np.delete(np.arange(100), model.validation_)
    fitted = clone(member).fit(X[rows], y[rows])
    seen = fitted.decision_function(X[rows])
    for i, score in zip(model.validation_, model.validation_scores_[0], strict=True):
        distance = np.abs(seen - fitted.decision_function(X[[i]]))
        same, other = (
            np.sort(distance[of])[:3].mean() for of in (y[rows] == y[i], y[rows] != y[i])
        )
        assert score == pytest.approx((other - same) / (other + same), rel=1e-9)
    once = clone(model).set_params(n_neighbors=1).fit(X, y)
    assert not np.allclose(once.validation_scores_, model.validation_scores_)


def test_sets_have_the_classes_whose_p_value_is_above_the_level():
    """With nine validation samples a p-value is 1/10, and 1 - 0.9 is a little less."""
    X, y = data(2, 60)
    model = NonconformityClassifier(GRID, validation_size=9, random_state=0).fit(X, y)
    p = model.p_values(X)
    assert (p == 0.1).any()
    np.testing.assert_array_equal(model.predict_set(X), p > 0.1)
    np.testing.assert_array_equal(model.predict_set(X, 0.55), p > 0.45)


def test_bounds_of_an_estimator():
    X, y = data()
    model = NonconformityClassifier(GRID, random_state=0).fit(X, y)
    epsilon, n = model.epsilon_crit(X), len(model.validation_)
    np.testing.assert_allclose(model.error_bound(X), dkw_bound(epsilon, n, 9), rtol=1e-12)
    vc = vc_bound(epsilon, n, 9, delta=0.1)
    np.testing.assert_allclose(model.error_bound(X, delta=0.1, method="vc"), vc, rtol=1e-12)
    model.set_params(validation="loo").fit(X[:40], y[:40])
    with pytest.raises(ValueError, match="no model has seen"):
        model.error_bound(X)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        *((lambda m, k=k: m.model_p_values(None, k), "0 to 8") for k in (-1, 9, 0.5)),
        *((lambda m, d=d: m.error_bound(X, delta=d), "delta") for d in ("a", 0.0, 1.0, None)),
        *((lambda m, c=c: m.predict_set(X, c), "confidence_level") for c in (0.0, 1.0, 90, "0.9")),
        (lambda m: m.error_bound(None, method="hoeffding"), "dkw, vc"),
        *((lambda m, s=s: m.evaluate(scoring=s), "rank") for s in ("roc_auc", "neg_log_loss")),
    ],
)
def test_what_is_refused_before_the_samples_are_read(ask, words):
    fitted = NonconformityClassifier(GRID, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=words):
        ask(fitted)


def test_models_near_the_best_decide():
    """By vote, as `test_choice.py` shows."""
    X, y = data(3, 260)
    new = X[120:]
    model = NonconformityClassifier(GRID, random_state=0).fit(X[:120], y[:120])
    every = clone(model).set_params(**PAPER).fit(X[:120], y[:120])
    errors, m = model.validation_errors_, len(model.validation_)
    np.testing.assert_array_equal(errors, (every.validation_scores_ <= 0).mean(axis=1))
    near = np.flatnonzero(errors <= errors.min() + np.sqrt(errors.min() * (1 - errors.min()) / m))
    np.testing.assert_array_equal(model.deciding_, near)
    assert 1 < len(near) < len(every.deciding_) == 9
    assert np.isin(model.chosen_model(new), near).all()
    assert (model.predict(new) != every.predict(new)).any()
    np.testing.assert_array_equal(model.p_values(new), every.p_values(new))


@pytest.mark.parametrize("pool", [GRID, MIXED[:2]], ids=["grid", "list"])
@pytest.mark.slow
def test_margins_held_out_in_repeated_folds_are_means_of_refits(pool):
    X, y = data(3, 60)
    model = NonconformityClassifier(pool, validation="2x3", tol=1e-5, random_state=4).fit(X, y)
    members = machines(decision_function_shape="ovo") if pool is GRID else pool
    seed = int(np.random.RandomState(4).randint(2**31 - 1, size=2)[0])
    folds = [StratifiedKFold(3, shuffle=True, random_state=seed + k) for k in range(2)]
    outputs = [
        np.mean(
            [cross_val_predict(one, X, y, cv=cv, method="decision_function") for cv in folds], 0
        )
        for one in members
    ]
    outputs = [-values for values in outputs] if pool is GRID else outputs  # of a pair the first
    labels = np.searchsorted(model.classes_, y)
    scores = model._pool.margins(outputs)[:, np.arange(60), labels]
    np.testing.assert_allclose(model.validation_scores_, scores, atol=1e-3, rtol=1e-3)
    np.testing.assert_array_equal(model.validation_, np.arange(60))


@pytest.mark.slow
def test_validation_size_and_stratification():
    X, y = data(2, 400)
    y[:320] = "a"  # about one in ten
    pool = {"C": [1], "gamma": [1]}
    for size, expected in {None: 50, 7: 7, 0.25: 100}.items():
        model = NonconformityClassifier(pool, validation_size=size, random_state=0).fit(X, y)
        assert len(model.validation_) == expected

    def share(**options):
        model = NonconformityClassifier(pool, **options).fit(X, y)
        return np.mean(y[model.validation_] == "b")

    every = np.mean(y == "b")
    assert all(abs(share(random_state=seed) - every) <= 0.02 for seed in range(8))
    assert np.ptp([share(stratify=False, random_state=seed) for seed in range(8)]) > 0.02
    assert len(NonconformityClassifier(pool).fit(*data(2, 60)).validation_) == 12


def test_random_state_decides_ties():
    X, y = make_blobs(120, centers=2, cluster_std=0.5, random_state=0)
    choices = []
    for seed in (0, 0, 1):
        model = NonconformityClassifier(GRID, random_state=seed, **PAPER).fit(X, y)
        choices.append(model.chosen_model(X))
    np.testing.assert_array_equal(choices[0], choices[1])
    assert (choices[0] != choices[2]).any()


def test_blocks_of_rows_change_nothing(monkeypatch):
    X, y = data(3)
    model = NonconformityClassifier(GRID, random_state=0).fit(X, y)
    whole = model.predict(X), model.p_values(X), model.model_p_values(X), model.chosen_model(X)
    monkeypatch.setattr("looms.nonconformity._pool._ROWS", 7)
    blocks = model.predict(X), model.p_values(X), model.model_p_values(X), model.chosen_model(X)
    for one, other in zip(whole, blocks, strict=True):
        np.testing.assert_array_equal(one, other)


X, Y = data(n=40)


@pytest.mark.parametrize(
    ("pool", "error", "words"),
    [
        ([], ValueError, "empty"),
        *((pool, TypeError, "pool must be") for pool in (iter([SVC()]), "rbf", SVC())),
        ([SVC(kernel="precomputed"), SVC()], ValueError, "X cannot be both"),
        ([SVC(kernel="precomputed")], ValueError, "square kernel matrix"),
        ([SVC(), StandardScaler()], TypeError, "Member 1"),
        ([SVC(), GaussianNB()], ValueError, r"Member 1 .* decision_function"),
        ({"C": [1.0]}, ValueError, "'gamma'"),
        ({"C": [1.0], "gamma": ["scale"]}, ValueError, "values of gamma"),
        *(({"C": C, "gamma": [1.0]}, ValueError, "of C") for C in ([0.0], [], [np.inf])),
    ],
)
def test_bad_pools(pool, error, words):
    with pytest.raises(error, match=words):
        NonconformityClassifier(pool).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"validation": "cv"}, "split, loo"),
        ({"validation": True}, "validation True"),
        ({"validation": 1}, "2 folds .* 40"),
        ({"ties": "first"}, "vote, random"),
        ({"within_se": -1.0}, "within_se"),
        ({"measure": "distance"}, "margin, neighbors"),
        ({"stratify": "no"}, "stratify"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"tol": 0.0}, "tol"),
        *(({"validation_size": size}, "from 2 to n_samples - 2 = 38") for size in (1, 39)),
        *(({"validation_size": size}, f"{size}") for size in (1.5, "half")),
    ],
    ids=str,
)
def test_bad_options(options, words):
    with pytest.raises(ValueError, match=words):
        NonconformityClassifier(GRID, **options).fit(X, Y)


VALIDATIONS = pytest.mark.parametrize("validation", ["split", "loo"])


def pooled(pool, validation):
    return NonconformityClassifier(pool, validation=validation, random_state=0)


@pytest.mark.slow
@VALIDATIONS
def test_members_are_given_the_samples_as_they_are(validation, monkeypatch):
    monkeypatch.setattr("looms.nonconformity._pool._ROWS", 16)
    frame = pd.DataFrame(X, columns=list("abcd"))
    expected = pooled([SVC(), LogisticRegression()], validation).fit(X, Y).predict(X)
    columns = make_column_transformer(("passthrough", list("abcd")))
    named = pooled([make_pipeline(columns, SVC()), LogisticRegression()], validation)
    named.fit(frame, Y)
    np.testing.assert_array_equal(named.predict(frame), expected)
    assert list(named.feature_names_in_) == list("abcd")
    assert named.n_features_in_ == 4
    for form in (sp.csr_array, sp.coo_array, sp.csc_matrix):
        sparse = pooled([SVC(), LogisticRegression()], validation).fit(form(X), Y)
        np.testing.assert_array_equal(sparse.predict(form(X)), expected)
    with pytest.raises(ValueError, match="feature names should match"):
        named.predict(frame[["a", "b"]])


@VALIDATIONS
def test_precomputed_kernels(validation):
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=-1))
    features = pooled([SVC(gamma=0.3), SVC(gamma=0.3, C=10)], validation).fit(X, Y)
    kernel = pooled([SVC(kernel="precomputed"), SVC(kernel="precomputed", C=10)], validation)
    assert get_tags(kernel).input_tags.pairwise
    assert not get_tags(features).input_tags.pairwise
    np.testing.assert_array_equal(kernel.fit(K, Y).predict(K[:20]), features.predict(X[:20]))
    ours, theirs = (cross_val_score(model, Z, Y, cv=3) for model, Z in ((kernel, K), (features, X)))
    np.testing.assert_array_equal(ours, theirs)


def test_bad_classes():
    model = NonconformityClassifier(GRID, random_state=0)
    with pytest.raises(ValueError, match="only one class"):
        model.fit(X, np.full(40, "a"))
    for validation in ("split", "loo"):
        with pytest.raises(ValueError, match=r"\['b'\] has only one member"):
            model.set_params(validation=validation).fit(X, np.array(["a"] * 39 + ["b"]))
    rare = np.array(["a"] * 38 + ["b"] * 2)
    free = NonconformityClassifier(GRID, stratify=False, random_state=0)
    for size, words in ((4, "only class 'a'"), (38, r"none of class \['b'\]")):
        with pytest.raises(ValueError, match=words):
            free.set_params(validation_size=size).fit(X, rare)
    many, labels = data(3)
    with pytest.raises(ValueError, match="from 3 to n_samples - 3 = 147"):
        NonconformityClassifier(GRID, validation_size=2).fit(many, labels)
    assert len(free.set_params(validation_size=2).fit(many, labels).validation_) == 2


def test_decision_values_that_cannot_be_told_apart_are_refused():
    class TwoColumns(SVC):
        def decision_function(self, X):
            return np.column_stack([super().decision_function(X)] * 2)

    class Infinite(SVC):
        def decision_function(self, X):
            return np.full(len(X), np.inf)

    for member, message in ((TwoColumns(), "have shape"), (Infinite(), "NaN or infinity")):
        with pytest.raises(ValueError, match=message):
            NonconformityClassifier([member]).fit(X, Y)


@pytest.mark.slow
def test_class_conditional_sets_cover_a_rare_class():
    rng = np.random.default_rng(5)
    y = (rng.random(1400) < 0.15).astype(int)
    X = rng.normal(size=(1400, 2)) + 1.2 * y[:, None]
    model = NonconformityClassifier(GRID, validation_size=300, random_state=0).fit(X[:600], y[:600])
    rare = y[600:] == 1
    plain, conditional = (
        model.predict_set(X[600:], 0.9, class_conditional)[rare, 1].mean()
        for class_conditional in (False, True)
    )
    assert plain < 0.8 < 0.83 < conditional
    alone = model.predict_set(X[600:], 0.9, True)[:, 0]
    own = model._validation_labels == 0
    scores = next(model._scores(X[600:]))[..., [0]]
    p = joint_p_values(model.validation_scores_[:, own], scores)[:, 0]
    np.testing.assert_array_equal(alone, p > 0.1 + 1e-12)


def test_scores_are_of_a_choice_by_the_other_validation_samples():
    X, y = data(3)
    model = NonconformityClassifier(GRID, random_state=0).fit(X, y)
    truth, said = y[model.validation_], []
    for j, row in enumerate(model.validation_):
        without = copy(model)
        without.validation_scores_ = np.delete(model.validation_scores_, j, axis=1)
        without.deciding_ = within_standard_errors(without.validation_errors_, len(truth) - 1, 1.0)
        said.append(without.predict(X[[row]])[0])
    wrong = truth != said
    assert model.evaluate()["accuracy"] == pytest.approx(1 - wrong.mean())
    assert model.evaluate()["accuracy"] < 1 - model.validation_errors_.min()
    rates = [wrong[truth == label].mean() for label in model.classes_]
    assert model.evaluate()["balanced_accuracy"] == pytest.approx(1 - np.mean(rates))
    n_wrong, n = wrong.sum(), len(wrong)
    rate = (n_wrong + 1) / (n + 2)
    assert model.evaluate().standard_errors["accuracy"] == pytest.approx(
        np.sqrt(rate * (1 - rate) / n)
    )
