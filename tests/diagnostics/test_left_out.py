"""Machines without one sample: every route against plain refits, written out here."""

import warnings

import numpy as np
import pytest
from joblib import parallel_config
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Perceptron,
    RidgeClassifier,
)
from sklearn.model_selection import (
    GridSearchCV,
    LeaveOneOut,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC

from looms import KernelClassifier
from looms.calibration._coupling import couple
from looms.calibration._sigmoid import fit_sigmoid
from looms.diagnostics import deviance, excess_error, influence, left_out_fits
from looms.diagnostics._problem import frozen
from looms.kernels import RBF
from looms.svm import NotConvergedError
from looms.svm._svc import SVCProblem
from looms.svm.dual import DualSolution


def sample(n=40, k=2, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    score = X[:, 0] + 0.7 * X[:, 1] ** 2 + random.normal(scale=0.6, size=n)
    cuts = np.quantile(score, np.arange(1, k) / k)
    return X, np.array(["ant", "bee", "cow", "dog"])[np.searchsorted(cuts, score)]


def log_p(machine, X_train, y_train, X):
    """Log probabilities, (len(X), k): the definition in other words than the package's."""
    classes = np.unique(y_train)
    if hasattr(machine, "predict_proba") and not isinstance(machine, SVC):
        return np.log(machine.predict_proba(X))
    if len(classes) == 2:
        signs = np.where(y_train == classes[1], 1, -1)
        p = fit_sigmoid(machine.decision_function(X_train), signs).probability(
            machine.decision_function(X)
        )
        return np.log(np.stack([1 - p, p], axis=1))
    pairwise = np.full((len(X), len(classes), len(classes)), 0.5)
    column = 0
    for a in range(len(classes)):
        for b in range(a + 1, len(classes)):
            mine = np.isin(y_train, classes[[a, b]])
            sigmoid = fit_sigmoid(
                machine.decision_function(X_train[mine])[:, column],
                np.where(y_train[mine] == classes[a], 1, -1),
            )
            p = sigmoid.probability(machine.decision_function(X)[:, column])
            pairwise[:, a, b], pairwise[:, b, a] = p, 1 - p
            column += 1
    return np.log(couple(pairwise))


def by_refits(machine, X, y, group=None):
    """Contributions left out, deviances without each unit, predictions without it, deviance."""
    classes, every = np.unique(y), np.arange(len(y))
    labels, group = np.searchsorted(classes, y), every if group is None else group
    own, predicted, rest = np.empty(len(y)), np.empty(len(y), y.dtype), []
    for unit in np.unique(group):
        out = group == unit
        fitted = clone(machine)
        if isinstance(machine, KernelClassifier):  # n mu stays as it is
            fitted.set_params(mu=machine.mu * len(y) / np.sum(~out))
        fitted.fit(X[~out], y[~out])
        p = log_p(fitted, X[~out], y[~out], X)[every, labels]
        own[out], predicted[out] = -2 * p[out], fitted.predict(X[out])
        rest.append(-2 * p[~out].sum())
    fitted = clone(machine).fit(X, y)
    return own, np.array(rest), predicted, -2 * log_p(fitted, X, y, X)[every, labels].sum()


MACHINES = {
    "svc": (SVC(C=3.0, gamma=0.4, tol=1e-9), 2),
    "svc_three": (SVC(C=3.0, gamma=0.4, tol=1e-9, decision_function_shape="ovo"), 3),
    "logistic": (LogisticRegression(), 2),
    "logistic_four": (LogisticRegression(), 4),
    "decision_values_only": (LinearSVC(C=0.1), 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_statistics_equal_refits(name):
    machine, k = MACHINES[name]
    X, y = sample(k=k)
    own, rest, predicted, whole = by_refits(machine, X, y)
    tolerance = {"rtol": 2e-4, "atol": 2e-4} if "svc" in name else {"rtol": 1e-9}
    found = deviance(machine, X, y)
    np.testing.assert_allclose(found.cv_contributions, own, **tolerance)
    np.testing.assert_allclose(found.deviance, whole, **tolerance)
    found = influence(machine, X, y)
    np.testing.assert_allclose(found.values, whole - rest, **(tolerance | {"atol": 1e-2}))
    np.testing.assert_allclose(found.deviance, whole, **tolerance)
    found = excess_error(machine, X, y)
    assert found.fits.predicted_without.tolist() == predicted.tolist()
    assert found.leave_one_out == np.mean(predicted != y)
    assert found.apparent == np.mean(clone(machine).fit(X, y).predict(X) != y)
    assert found.excess == found.leave_one_out - found.apparent


def test_least_squares_class_weights():
    X, y = sample()
    y[:12] = "ant"
    weight = {"ant": 1.0, "bee": 4.0}
    machine = KernelClassifier("linear", mu=0.01, class_weight=weight).fit(X, y)
    found = influence(machine, X, y)
    wrong = (machine.loo_.outputs > machine.threshold_) != (y == machine.classes_[1])
    np.testing.assert_array_equal(found.fits.predicted_without != y, wrong)
    plain = influence(KernelClassifier("linear", mu=0.01), X, y)
    assert np.abs(found.values - plain.values).max() > 0.1


@pytest.mark.slow
def test_several_classes_of_least_squares_machines():
    X, y = sample(k=3)
    machine = KernelClassifier("linear", mu=0.01)
    outputs = machine.fit(X, y).loo_.outputs - machine.threshold_
    fits = left_out_fits(machine, X, y, groups=np.arange(len(y)) // 2)
    predicted = excess_error(machine, X, y).fits.predicted_without
    np.testing.assert_array_equal(predicted, machine.classes_[outputs.argmax(axis=1)])
    log_p = np.log(machine.predict_proba(X))[
        np.arange(len(y)), np.unique(y, return_inverse=True)[1]
    ]
    np.testing.assert_allclose(deviance(machine, X, y).contributions, -2 * log_p)
    without = machine.fit(X[2:], y[2:]).predict_proba(X[:2])
    np.testing.assert_allclose(np.exp(fits.likelihood.held_out[:2]), without)


def test_a_tuned_machine_keeps_its_choice():
    X, y = sample()
    tuned = KernelClassifier(threshold="balanced").fit(X, y)
    wrong = (tuned.loo_.outputs > tuned.threshold_) != (y == "bee")
    assert excess_error(tuned, X, y).leave_one_out == wrong.mean()
    assert excess_error(KernelClassifier(threshold="balanced"), X, y).leave_one_out == wrong.mean()


@pytest.mark.slow
def test_hyper_parameters_are_held():
    X, y = sample()
    y[:12] = "ant"
    X = X * [1.0, 1.0, 9.0]
    gamma = 1 / (3 * X.var())
    share = {label: len(y) / (2 * np.sum(y == label)) for label in ("ant", "bee")}
    explicit = influence(SVC(gamma=gamma, class_weight=share), X, y)
    found = influence(SVC(gamma="scale", class_weight="balanced"), X, y)
    np.testing.assert_allclose(found.values, explicit.values, rtol=1e-12)
    search = GridSearchCV(SVC(), {"C": [0.01, 10.0]}).fit(X, y)
    best = SVC(C=search.best_params_["C"], gamma=gamma)
    expected = deviance(best, X, y).cv_score
    assert deviance(search, X, y).cv_score == pytest.approx(expected, rel=1e-12)
    found = influence(NuSVC(nu=0.3, class_weight="balanced"), X, y)
    explicit = influence(NuSVC(nu=0.3, gamma=gamma, class_weight=share), X, y)
    np.testing.assert_allclose(found.values, explicit.values, rtol=1e-12)
    fitted = SVC(gamma="scale").fit(5 * X, y)  # to other samples
    held = deviance(fitted, X, y).cv_score
    assert held == deviance(SVC(gamma=1 / (75 * X.var())), X, y).cv_score
    auto = deviance(SVC(gamma="auto"), X, y).cv_score
    assert auto == deviance(SVC(gamma=1 / 3), X, y).cv_score
    assert auto != deviance(SVC(), X, y).cv_score


@pytest.mark.parametrize(("fitted", "inner"), [(False, True), (True, False)])
def test_a_search_at_the_end_of_a_pipeline_is_held(fitted, inner, monkeypatch):
    X, y = sample()
    machine = make_pipeline(PCA(2), SVC()) if inner else SVC()
    grid = {"svc__C" if inner else "C": [0.01, 10.0], "svc__gamma" if inner else "gamma": [0.3]}
    pipeline = make_pipeline(StandardScaler(), GridSearchCV(machine, grid))
    best = clone(pipeline).fit(X, y)[-1].best_params_
    expected = make_pipeline(StandardScaler(), clone(machine).set_params(**best))
    searches = []
    fit = GridSearchCV.fit
    if fitted:
        pipeline.fit(X, y)
    monkeypatch.setattr(GridSearchCV, "fit", lambda *args: searches.append(1) or fit(*args))
    found = deviance(pipeline, X, y).cv_score
    assert found == pytest.approx(deviance(expected, X, y).cv_score, rel=1e-12)
    assert len(searches) == (0 if fitted else 1)


@pytest.mark.filterwarnings("ignore:.*probability.*:FutureWarning")
def test_refits_do_not_train_the_probabilities_of_an_svc():
    X, y = sample()
    plain, asked = (SVC(), SVC(probability=True))
    assert frozen(asked.fit(X, y)).get_params() == frozen(plain.fit(X, y)).get_params()


@pytest.mark.slow
def test_preprocessing_is_held_or_refitted():
    X, y = sample()
    X[0] *= 30.0
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    refitted, *_ = by_refits(pipeline, X, y)
    held, *_ = by_refits(LogisticRegression(), StandardScaler().fit_transform(X), y)
    assert np.abs(refitted - held).max() > 0.01
    for choice, expected in (("refitted", refitted), ("held", held), ("auto", held)):
        found = deviance(pipeline, X, y, preprocessing=choice)
        np.testing.assert_allclose(found.cv_contributions, expected, rtol=1e-9)
        assert found.fits.preprocessing == {"auto": "held"}.get(choice, choice)


@pytest.mark.slow
def test_preprocessing_that_learns_from_targets_is_refitted():
    random = np.random.default_rng(1)
    X, y = random.normal(size=(40, 1000)), np.repeat(["a", "b"], 20)
    pipeline = make_pipeline(StandardScaler(), SelectKBest(k=10), LogisticRegression())
    found = excess_error(pipeline, X, y)
    assert found.fits.preprocessing == "refitted"
    right = cross_val_score(pipeline, X, y, cv=LeaveOneOut()).mean()
    assert found.leave_one_out == pytest.approx(1 - right)
    held = excess_error(pipeline, X, y, preprocessing="held")
    assert held.leave_one_out < 0.3 < 0.5 < found.leave_one_out  # noise


@pytest.mark.slow
@pytest.mark.parametrize(
    ("machine", "k"),
    [(KernelClassifier("linear", mu=0.01), 3), (LogisticRegression(), 2)],
    ids=["closed form", "refits"],
)
def test_statistics_of_given_fits_are_those_of_the_estimator(machine, k):
    X, y = sample(n=24, k=k)
    fits = left_out_fits(machine, X, y)
    for statistic in (deviance, excess_error, influence):
        assert statistic(fits).table.equals(statistic(machine, X, y).table)
    for given in ((fits, X, y), (machine, X)):
        with pytest.raises(TypeError, match=r"give nothing else|y is missing"):
            deviance(*given)
    fits = left_out_fits(Perceptron(), X, y, likelihood=False)
    assert excess_error(fits).table.equals(excess_error(Perceptron(), X, y).table)
    with pytest.raises(ValueError, match="likelihood=True"):
        deviance(fits)


@pytest.mark.slow
def test_workers_change_nothing():
    X, y = sample()
    steps = []
    one = influence(LogisticRegression(), X, y, progress=lambda *step: steps.append(step))
    with parallel_config("threading"):
        two = influence(LogisticRegression(), X, y, n_jobs=2)
    assert one.values.tolist() == two.values.tolist()
    assert steps == [(i + 1, 40) for i in range(40)]


def test_arguments_stay_as_they_are(read_only):
    X, y = sample()
    machine = SVC(C=3.0).fit(X, y)
    before = machine.dual_coef_.copy()
    influence(machine, read_only(X), y)
    assert machine.gamma == "scale"
    assert (machine.dual_coef_ == before).all()


def test_warnings_are_given_once_with_their_number():
    X, y = sample()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        influence(LogisticRegression(max_iter=1), X, y)
    said = [str(warning.message) for warning in caught]
    assert [message.endswith("(in 40 of 40 refits)") for message in said].count(True) == 1
    assert caught[-1].category is ConvergenceWarning
    assert len(said) < 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, np.full(len(y), "ant")), "one class"),
        (lambda X, y: (X, np.array(["bee", *["ant"] * (len(y) - 1)])), "'bee'"),
        (lambda X, y: (np.where(X[3, 1] == X, np.nan, X), y), "NaN"),
        (lambda X, y: (X, np.where(np.arange(len(y)) == 2, np.nan, 1.0)), "no value in 1 of"),
        (lambda X, y: (X[1:], y), "numbers of samples"),
        (lambda X, y: (X, X[:, 0]), "label type"),
    ],
)
def test_bad_samples(change, message):
    with pytest.raises(ValueError, match=message):
        left_out_fits(SVC(), *change(*sample()))


@pytest.mark.slow
def test_bad_estimators():
    X, y = sample()
    for statistic, machine, k, message in (
        (excess_error, LinearRegression(), 2, "LinearRegression"),
        (deviance, RidgeClassifier(), 3, "classes"),
        (deviance, KernelClassifier(mu=0.1, calibration=None), 3, "predict_proba"),
        (deviance, GridSearchCV(SVC(), {"C": [1, 2]}, refit=False), 2, "refit=True"),
    ):
        with pytest.raises(ValueError, match=message):
            statistic(machine, *sample(k=k))
    for options in ({"preprocessing": "never"}, {"alpha": 1.0}, {"alpha": np.nan}):
        with pytest.raises(ValueError, match=r"preprocessing|alpha"):
            influence(SVC(), X, y, **options)
    assert 0 < excess_error(Perceptron(), *sample(k=3)).leave_one_out < 1


@pytest.mark.slow
@pytest.mark.parametrize("method", ["leave_one_out", "solve"])
def test_machines_that_cannot_be_solved_exactly_are_refitted(method, monkeypatch):
    X, y = sample()
    machine = SVC(C=3.0, gamma=0.4, tol=1e-9)
    expected = deviance(machine, X, y), excess_error(machine, X, y)

    def fails(*arguments, **options):
        raise NotConvergedError(0.1, 0.2)

    monkeypatch.setattr(DualSolution if method == "leave_one_out" else SVCProblem, method, fails)
    with pytest.warns(RuntimeWarning, match="0.2"):
        found = deviance(machine, X, y), excess_error(machine, X, y)
    np.testing.assert_allclose(found[0].cv_score, expected[0].cv_score, rtol=1e-4)
    assert found[1].table.equals(expected[1].table)


LEAST_SQUARES = {"least squares": (KernelClassifier("linear", mu=0.01, calibration=None), 2)}
WARD = np.repeat([f"ward {k}" for k in (3, 1, 2, 0, 4, 5, 6, 7)], 5)


@pytest.mark.parametrize("name", ["svc", "svc_three", "logistic", "least squares"])
def test_groups_are_left_out_together(name):
    machine, k = (MACHINES | LEAST_SQUARES)[name]
    X, y = sample(k=k)
    wards = np.unique(WARD)
    own, rest, predicted, _ = by_refits(machine, X, y, WARD)
    fits = left_out_fits(machine, X, y, groups=WARD)
    tolerance = {"rtol": 2e-4, "atol": 2e-4} if "svc" in name else {"rtol": 1e-8}
    np.testing.assert_allclose(deviance(fits).cv_contributions, own, **tolerance)
    found = influence(fits)
    np.testing.assert_allclose(found.values, found.deviance - rest, **(tolerance | {"atol": 1e-6}))
    assert fits.predicted_without.tolist() == predicted.tolist()
    assert fits.labels.tolist() == found.table.index.tolist() == wards.tolist()
    assert found.table.n_samples.tolist() == [5] * 8
    assert "of 8 groups" in repr(found)
    assert "CV score (leave-one-group-out)" in repr(deviance(fits))


def test_the_only_group_of_a_class_is_not_left_out():
    X, y = sample()
    with pytest.raises(ValueError, match="All rows of class 'ant' are in one group"):
        left_out_fits(LogisticRegression(), X, y, groups=np.where(y == "ant", -1, np.arange(40)))


@pytest.mark.parametrize("classes", [[1, 2], [0, 1, 2]])
@pytest.mark.slow
def test_a_machine_of_the_squared_hinge_keeps_its_loss_and_its_choice(classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[np.isin(y, classes)][::12, 2:], y[np.isin(y, classes)][::12]
    options = {"kernel": RBF(0.7), "loss": "squared_hinge"}
    machine = KernelClassifier(mu=1 / (2 * len(y)), **options).fit(X, y)
    fits = left_out_fits(machine, X, y)
    n_kept = len(y) - (len(classes) == 2)  # paths keep C, and refits of several classes mu
    held = KernelClassifier(mu=1 / (2 * n_kept), **options)
    expected = np.empty((len(y), len(classes)))
    for i, rest in enumerate(~np.eye(len(y), dtype=bool)):
        expected[i] = held.fit(X[rest], y[rest]).predict_log_proba(X[[i]])[0]
        if len(classes) == 2:  # the sigmoid of T11, of outputs for the samples it was fitted to
            sigmoid = fit_sigmoid(held._outputs(X[rest]), held.loo_.y)
            p = sigmoid.probability(held._outputs(X[[i]]))[0]
            expected[i] = np.log([1 - p, p])
    own = expected[np.arange(len(y)), np.searchsorted(classes, y)]
    np.testing.assert_allclose(fits.likelihood.left_out, own, rtol=1e-4, atol=1e-6)


def test_folds_are_left_out_together():
    X, y = sample()
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    model = LogisticRegression()
    p = cross_val_predict(model, X, y, cv=folds, method="predict_proba")
    fits = left_out_fits(model, X, y, cv=folds)
    own = -2 * np.log(p[np.arange(40), (y == model.fit(X, y).classes_[1]).astype(int)])
    np.testing.assert_allclose(deviance(fits).cv_contributions, own)
    assert "error of 40 samples" in repr(excess_error(fits)).lower()
    assert "4-fold" in repr(excess_error(fits))
    assert len(influence(fits).values) == 4
    assert left_out_fits(SVC(), X, y, cv=5, groups=WARD).method == "5-fold"
    with pytest.raises(ValueError, match=r"held out once, but cv='2x5' repeats it"):
        left_out_fits(model, X, y, cv="2x5")


@pytest.mark.slow
def test_samples_that_a_forest_calls_impossible_cost_the_cv_score_alone():
    X, y = sample()
    fits = left_out_fits(RandomForestClassifier(5, random_state=0), X, y, cv=10)
    spread = deviance(fits)
    assert spread.cv_score == np.inf
    assert np.isfinite(spread.deviance)
    assert spread.n_impossible == np.isinf(spread.cv_contributions).sum() > 0
    assert f"{spread.n_impossible} have probability 0" in repr(spread)
    assert np.isfinite(influence(fits).values).all()
    spread.plot(Figure().subplots())
