"""`evaluate()`: what it makes, what it costs, and that nothing else trains."""

import pickle
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import in_turn
from scipy.linalg import lapack
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import (
    average_precision_score,
    fbeta_score,
    get_scorer,
    log_loss,
    make_scorer,
    mean_absolute_error,
    roc_auc_score,
    root_mean_squared_error,
    zero_one_loss,
)
from stacks import stacked_classifier, stacked_regressor

import looms
from looms import (
    KernelClassifier,
    KernelRegressor,
    Search,
    TabularRegressor,
)
from looms.assessment._splits import plan
from looms.blocks import ArrayBlocks
from looms.estimators._metrics import roc_auc
from looms.folds import ForwardSplit, GapKFold
from looms.kernels import RBF
from looms.lssvm.fit import KernelMember, LandmarkMember
from looms.model_files import load_model, save_model
from looms.svm import member

N = 48
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
NEW = RNG.normal(size=(5, 2))
SIGNAL = X[:, 0] + np.sin(3 * X[:, 1]) + 0.3 * RNG.normal(size=N)
NUMBERS, CLASSES = np.exp(SIGNAL), np.where(SIGNAL > 0, "yes", "no")
GROUPS = np.arange(N) // 3
SVM = {"kernel": "linear", "loss": "hinge", "search": Search("hinge", resolution=4.0)}
TUNED = ", of the rows it was tuned on: optimistic"
#: Machine, targets, groups, kinds of nested scores and of those of the fit.
MACHINES = {
    "given": (KernelClassifier(mu=1e-3), CLASSES, None, "leave-one-out", "leave-one-out"),
    "given, groups": (KernelRegressor(mu=1e-3), NUMBERS, GROUPS, *2 * ("leave-one-group-out",)),
    "classes": (
        KernelClassifier("linear"),
        CLASSES,
        None,
        "nested 10-fold",
        f"leave-one-out{TUNED}",
    ),
    "groups": (
        KernelRegressor("linear"),
        NUMBERS,
        GROUPS,
        "nested 10-fold, groups kept together",
        f"leave-one-group-out{TUNED}",
    ),
    "repeated": (
        KernelRegressor("linear", cv="2x4"),
        NUMBERS,
        None,
        "nested 10-fold",
        f"2 × 4-fold{TUNED}",
    ),
    "windows": (
        KernelRegressor("linear", cv=GapKFold(4, gap=1)),
        NUMBERS,
        None,
        "nested 4-fold by windows of time",
        f"4-fold by windows of time{TUNED}",
    ),
    "forward": (
        KernelRegressor("linear", cv=ForwardSplit(3, gap=1)),
        NUMBERS,
        None,
        "nested 3 windows of time, each by the rows before it",
        f"3 windows of time, each by the rows before it{TUNED}",
    ),
    "stack": (
        stacked_regressor(["linear", RBF(0.5, gamma_bounds="fixed")]),
        NUMBERS,
        None,
        "nested 5-fold",
        "5-fold, candidates weighted on the other folds",
    ),
    "best of two": (
        stacked_classifier(["linear", RBF(0.5, gamma_bounds="fixed")], combine="best"),
        CLASSES,
        None,
        "nested 5-fold",
        "5-fold, candidates compared on the other folds",
    ),
    "landmarks": (
        KernelRegressor("linear", n_landmarks=8),
        NUMBERS,
        None,
        "nested 10-fold",
        f"leave-one-out{TUNED}",
    ),
    "grid": (
        KernelClassifier("linear", search=Search(method="grid")),
        CLASSES,
        None,
        "nested leave-one-out",
        f"leave-one-out{TUNED}",
    ),
    "svm": (KernelClassifier(**SVM), CLASSES, None, "nested 10-fold", f"leave-one-out{TUNED}"),
    "transformed": (
        TabularRegressor(["linear"]),
        NUMBERS,
        None,
        "nested 10-fold",
        f"leave-one-out{TUNED}",
    ),
}
IN_CLOSED_FORM = {"given", "given, groups", "grid"}


def predicted(model, **options):
    """Intervals of a regressor, sets of a classifier."""
    if hasattr(model, "predict_interval"):
        return model.predict_interval(NEW, 0.8, **options)
    return model.predict_set(NEW, 0.8, **options)


@pytest.fixture(scope="module")
def fitted():
    """A function that gives a machine anew, with what was evaluated."""
    made = {}

    def get(name, *, evaluated=False, nested=True):
        if name == "transformed":  # copies do not hold the rows of a table
            model, y, groups, *_ = MACHINES[name]
            model = clone(model).fit(X, y, groups=groups)
            if evaluated:
                model.evaluate(nested=nested)
            return model
        if name not in made:
            model, y, groups, *_ = MACHINES[name]
            made[name] = pickle.dumps(clone(model).fit(X, y, groups=groups))
        key = name, evaluated, nested
        if evaluated and key not in made:
            model = pickle.loads(made[name])
            model.evaluate(nested=nested)
            made[key] = pickle.dumps(model)
        return pickle.loads(made[key if evaluated else name])

    return get


class Work(AssertionError):
    """A machine is solved, or fitted."""


#: What solves and fits machines: of looms, of scikit-learn, and of LAPACK.
WORKERS = [
    *((kind, "fit") for kind in (KernelClassifier, KernelRegressor, TabularRegressor)),
    *((kind, "left_out") for kind in (KernelMember, LandmarkMember)),
    (member, "solved_pairs"),
    *((lapack, name) for name in ("dpotrf", "dpotri", "dpstrf", "dsytrf")),
    *((np.linalg, name) for name in ("cholesky", "inv")),
    (scipy.linalg, "eigh"),
]


@contextmanager
def idle():
    """Context in which nothing is factorized or fitted."""
    with ExitStack() as stack:
        for owner, name in WORKERS:
            stack.enter_context(mock.patch.object(owner, name, side_effect=Work(name)))
        yield


def test_the_workers_are_those_that_work():
    for model, y, *_ in MACHINES.values():
        with idle(), pytest.raises(Work):
            clone(model).fit(X, y)
    for name in ("given", "svm"):
        model, y, *_ = MACHINES[name]
        model = clone(model).fit(X, y)
        with idle(), pytest.raises(Work):
            model.left_out()


@pytest.mark.parametrize("name", MACHINES)
def test_kinds_of_scores(name, fitted):
    *_, nested_kind, own_kind = MACHINES[name]
    nested = fitted(name, evaluated=True).evaluate()
    own = fitted(name, evaluated=True, nested=False).evaluate(nested=False)
    assert (nested.kind, own.kind) == (nested_kind, own_kind)
    assert not nested.optimistic
    assert own.optimistic == ("optimistic" in own_kind)
    assert (nested == own) == name.startswith("given")
    for scores in (nested, own):
        assert scores.keys() == scores.standard_errors.keys()
        assert np.isfinite([*scores.values(), *scores.standard_errors.values()]).all()
        assert scores.predictions.n_samples == N
        assert_array_equal(scores.rows, np.arange(N // 4 * name.startswith("forward"), N))
        lines = repr(scores).splitlines()
        assert lines[0] == f"{len(scores.rows)} rows, {scores.kind}"
        assert lines[1].split() == ["value", "s.e.", "95", "%", "interval", "baseline"]
        assert [line.split()[0] for line in lines[2:]] == list(scores)
        assert scores.kind in scores._repr_html_()


@pytest.mark.parametrize(("name", "nested"), in_turn(MACHINES, [True, False, False]))
def test_reading_trains_nothing(name, nested, fitted, tmp_path):
    model = fitted(name, evaluated=True, nested=nested)
    with idle():
        assert all([dir(model), vars(model), repr(model), model._repr_html_()])
        for attribute in dir(model):
            if not attribute.startswith("__"):
                getattr(model, attribute, None)
        save_model(tmp_path / "m.skops", model)
        for one in (pickle.loads(pickle.dumps(model)), load_model(tmp_path / "m.skops").model):
            known = one._scores.get("nested") or one._scores.get("fit")
            getattr(one, "predict_proba", one.predict)(NEW)
            one.predict(NEW)
            if known._nested is not None and not known._nested.in_closed_form:
                predicted(one)
            else:
                with pytest.raises(NotFittedError, match="call evaluate"):
                    predicted(one)


@pytest.mark.parametrize("name", MACHINES)
def test_an_evaluation_stays_until_the_next_fit(name, fitted, tmp_path):
    model = fitted(name, evaluated=True)
    scores, (_, y, groups, *_) = model.evaluate(), MACHINES[name]
    expected = predicted(model)
    save_model(tmp_path / "m.skops", model)
    for one in (model, pickle.loads(pickle.dumps(model)), load_model(tmp_path / "m.skops").model):
        if name not in IN_CLOSED_FORM:
            with idle():
                again = one.evaluate()
        else:
            again = one.evaluate()
        assert again == scores
        assert again.standard_errors == scores.standard_errors
        assert again.kind == scores.kind
        assert_array_equal(again.predictions.outputs, scores.predictions.outputs)
        assert_allclose(predicted(one), expected)
    own = model.evaluate(nested=False)
    assert model.evaluate() == scores  # both stay
    assert model.evaluate(nested=False) is own
    assert_allclose(predicted(model), expected)  # of the nested ones
    model.fit(X, y, groups=groups)
    with pytest.raises(NotFittedError, match="evaluate"):
        predicted(model)


@pytest.mark.parametrize("name", MACHINES)
def test_intervals_and_sets_need_an_evaluation(name, fitted):
    model, of_nested = fitted(name), fitted(name, evaluated=True)
    with pytest.raises(NotFittedError, match=r"evaluate\(\).*evaluate\(nested=False\)"):
        predicted(model)
    model.evaluate(nested=False)
    of_nested.evaluate()
    own, others = predicted(model), predicted(of_nested)
    assert own.shape == others.shape
    if own.dtype == float and not name.startswith("given"):
        assert not np.allclose(own, others)


@pytest.mark.parametrize("name", ["given", "given, groups"])
def test_scores_of_a_fit_and_what_follows_share_one_system(name, fitted):
    model, solved = fitted(name), KernelMember.left_out
    with mock.patch.object(KernelMember, "left_out", autospec=True, side_effect=solved) as solve:
        model.evaluate()
        predicted(model)
    assert solve.call_count == 1


def test_other_scores(fitted):
    model = fitted("classes", evaluated=True)
    made = model.evaluate().decisions
    scores = model.evaluate(
        scoring=[make_scorer(zero_one_loss), "average_precision", "neg_log_loss"]
    )
    expected = {
        "average_precision": average_precision_score(CLASSES == "yes", made.outputs),
        "zero_one_loss": (model.classes_[made.predicted] != CLASSES).mean(),
        "neg_log_loss": -model.evaluate()["log_loss"],
    }
    assert dict(scores) == pytest.approx(expected)
    assert np.isnan(list(scores.standard_errors.values())).all()
    assert scores.kind == model.evaluate().kind
    assert len(model.evaluate()) > 2  # which stays as it was
    assert list(model.evaluate(scoring="average_precision")) == ["average_precision"]
    with pytest.raises(ValueError, match="nested"):
        model.evaluate(nested="folds")


def test_callables_are_given_the_held_out_predictions(fitted):
    """By an estimator like others, with row numbers in place of the rows."""
    model = fitted("classes", evaluated=True)
    made, outputs = model.evaluate().decisions, model.evaluate().predictions.outputs

    def share_of_yes(estimator, X, y):
        assert X.tolist() == np.arange(N)[:, None].tolist()
        assert_array_equal(y, CLASSES)
        assert_array_equal(estimator.decision_function(X), outputs)
        assert_array_equal(estimator.predict_proba(X[:3]), made.probabilities[:3])
        assert_array_equal(estimator.classes_, model.classes_)
        return np.mean(estimator.predict(X) == "yes")

    scores = model.evaluate(scoring={"yes": share_of_yes, "right": "accuracy"})
    assert dict(scores) == {
        "yes": (model.classes_[made.predicted] == "yes").mean(),
        "right": model.evaluate()["accuracy"],
    }
    assert scores.with_errors["right"] == model.evaluate().with_errors["accuracy"]
    assert list(model.evaluate(scoring=share_of_yes)) == ["share_of_yes"]


def two_of_own(labels, predicted):
    return 0.0


@pytest.mark.parametrize(
    ("scoring", "error", "message"),
    [
        (mean_absolute_error, TypeError, r"make_scorer\(mean_absolute_error\)"),
        ([fbeta_score], TypeError, r"make_scorer\(fbeta_score\)"),
        ({"mine": two_of_own}, TypeError, r"make_scorer\(two_of_own\)"),
        ([3], TypeError, "scoring .* got 3"),
        ({}, ValueError, "scoring"),
        (["accuracy", "accuracy"], ValueError, "'accuracy'"),
        ({"area": "roc_acu"}, ValueError, "did you mean 'roc_auc'"),
    ],
)
def test_both_refuse_the_same(fitted, scoring, error, message):
    model = fitted("given")
    with pytest.raises(error, match=message):
        model.evaluate(scoring=scoring)
    with pytest.raises(error, match=message):
        looms.assess(model, X, CLASSES, n_splits=2, scoring=scoring)


def test_areas_of_several_classes_mean_the_same():
    """One class against the rest, by outputs: in `evaluate`, on test rows and left-out rows."""
    scorer = get_scorer("roc_auc")
    y = np.digitize(X[:, 0], [-0.5, 0.5]).astype(str)
    model = KernelClassifier(mu=0.1)
    own = model.fit(X, y).evaluate()
    assert (
        model.evaluate(scoring={"area": scorer}).with_errors["area"] == own.with_errors["roc_auc"]
    )
    options = {"n_splits": 2, "random_state": 0, "scoring": {"area": scorer}}
    result = looms.assess(model, X, y, test_size=0.3, **options)
    for split in plan(
        y, method="shuffle", n_splits=2, test_size=0.3, random_state=0, stratified=True
    ):
        train, test = split.rows(y)
        outputs = model.fit(X[train], y[train]).decision_function(X[test])
        areas = [roc_auc_score(y[test] == c, f) for c, f in zip("012", outputs.T, strict=True)]
        row = result.table.loc[split.index]
        assert row["area"] == pytest.approx(np.mean(areas))
        assert row["loo_area"] == pytest.approx(model.evaluate()["roc_auc"])


def test_areas_of_the_classes_that_are_there():
    y, outputs = np.array(["a", "b", "a", "b"]), RNG.normal(size=(4, 3))
    labels = np.array(["a", "b", "c"])
    expected = np.mean([roc_auc_score(y == c, f) for c, f in zip("ab", outputs.T, strict=False)])
    assert roc_auc(y, outputs, labels=labels) == pytest.approx(expected)
    weight = np.array([1.0, 2.0, 3.0, 1.0])
    copies = np.repeat(np.arange(4), weight.astype(int))
    assert roc_auc(y, outputs, weight, labels) == pytest.approx(
        roc_auc(y[copies], outputs[copies], labels=labels)
    )
    with pytest.raises(ValueError, match="not one output for each of 3 classes"):
        roc_auc(y, outputs[:, :2], labels=labels)


def test_errors_of_several_targets_mean_the_same():
    Y = np.column_stack([NUMBERS, 10 * NUMBERS**2])
    model = KernelRegressor(mu=0.1).fit(X, Y)
    own, theirs = model.evaluate(), make_scorer(root_mean_squared_error)
    residuals = own.predictions.residuals
    found = model.evaluate(scoring=["rmse", theirs])
    each = np.sqrt((residuals**2).mean(axis=0))
    assert found["rmse"] == pytest.approx(np.sqrt((residuals**2).mean()))
    assert found["root_mean_squared_error"] == pytest.approx(each.mean())
    result = looms.assess(model, X, Y, n_splits=2, random_state=0, scoring="rmse")
    (train, test), *_ = (
        one.rows(Y)
        for one in plan(
            Y, method="shuffle", n_splits=2, test_size=0.1, random_state=0, stratified=False
        )
    )
    errors = model.fit(X[train], Y[train]).predict(X[test]) - Y[test]
    assert result.table["rmse"][0] == pytest.approx(np.sqrt((errors**2).mean()))


def test_scorers_that_cannot_score_are_refused_before_anything_is_repeated():
    three = np.arange(N) % 3
    model = KernelClassifier(mu=0.1).fit(X, three)
    with pytest.raises(ValueError, match=r"'f1' cannot score these 3 classes .*'f1_m"):
        model.evaluate(scoring="f1")
    assert model._scores.get("nested") is None
    with pytest.raises(ValueError, match="'f1' cannot score these 3 classes"):
        looms.assess(model, X, three, n_splits=2, scoring="f1")
    assert model.evaluate(scoring="neg_mean_absolute_error")["neg_mean_absolute_error"] < 0
    with pytest.raises(ValueError, match="'r2' cannot score these 2 classes"):
        model.fit(X, CLASSES).evaluate(scoring="r2")
    with pytest.raises(ValueError, match="'f1' cannot score these numbers"):
        KernelRegressor(mu=0.1).fit(X, NUMBERS).evaluate(scoring="f1")


def test_own_signs_and_names_of_scorers():
    model = KernelClassifier(mu=0.1).fit(X, CLASSES)
    loss = make_scorer(log_loss, greater_is_better=False, response_method="predict_proba")
    value = model.evaluate(scoring=loss)["log_loss"]
    assert value == model.evaluate(scoring="neg_log_loss")["neg_log_loss"] < 0
    twice = [make_scorer(fbeta_score, beta=beta) for beta in (0.5, 2)]
    with pytest.raises(ValueError, match="Two scorers are called 'fbeta_score'"):
        model.evaluate(scoring=twice)
    named = model.evaluate(scoring=dict(zip(["half", "double"], twice, strict=True)))
    assert model.evaluate(scoring=twice[1])["fbeta_score"] == named["double"] > 0.5  # of "yes"


def test_a_scorer_that_fails_leaves_the_others():
    model = KernelRegressor("linear", mu=1e-3).fit(X, NUMBERS**3)
    assert model.evaluate().predictions.outputs.min() < 0
    with pytest.warns(UserWarning, match="'neg_mean_gamma_deviance' cannot score"):
        scores = model.evaluate(scoring=["neg_mean_gamma_deviance", "mae"])
    assert np.isnan(scores["neg_mean_gamma_deviance"])
    assert scores["mae"] == model.evaluate()["mae"]


def test_rows_of_weight_zero_refuse_no_scorer():
    y, weight = np.append(NUMBERS, -5.0), np.append(np.linspace(1, 2, N), 0.0)
    model = KernelRegressor("rbf", mu=0.1).fit(np.vstack([X, X[:1]]), y, weight)
    found = model.evaluate(scoring=["neg_mean_squared_log_error", "neg_mean_absolute_error"])
    assert found["neg_mean_absolute_error"] == pytest.approx(-model.evaluate()["mae"])
    assert len(found.rows) == N


@pytest.mark.filterwarnings("ignore::looms.OneClassWarning")
def test_too_few_rows_for_folds():
    few = np.r_[np.flatnonzero(CLASSES == "yes")[:2], np.flatnonzero(CLASSES == "no")[:20]]
    model = KernelClassifier("linear").fit(X[few], CLASSES[few])
    with pytest.raises(ValueError, match=r"'yes' .* 3 rows.*evaluate\(nested=False\)"):
        model.evaluate()
    assert model.evaluate(nested=False).optimistic
    many = KernelClassifier("linear", cv=np.arange(N) % 12)
    with pytest.raises(ValueError, match=r"12 folds.*evaluate\(nested=False\)"):
        many.fit(X, CLASSES).evaluate()


def test_an_iterator_of_folds_is_read_once():
    """Also where transforms of the target are compared first."""
    splits = [(np.flatnonzero(np.arange(N) % 3 != k), np.arange(k, N, 3)) for k in range(3)]
    expected = TabularRegressor("linear", cv=splits).fit(X, np.exp(NUMBERS))
    assert expected.evaluate().kind == "nested 3-fold"
    model = TabularRegressor("linear", cv=iter(splits)).fit(X, np.exp(NUMBERS))
    assert_array_equal(model.held_out_.outputs, expected.held_out_.outputs)
    assert dict(model.evaluate()) == dict(expected.evaluate())


@pytest.mark.parametrize(("name", "time"), [("groups", "3 minutes"), ("grid", "80 seconds")])
def test_a_long_evaluation_says_so(name, time, fitted):
    model = fitted(name)
    model.fitted_ = replace(model.fitted_, seconds=20.0)
    with pytest.warns(UserWarning, match=time) as caught:
        model.evaluate()
    assert caught[0].filename == __file__


def test_rows_in_blocks_that_are_gone():
    model = KernelRegressor("linear", n_landmarks=8).fit(ArrayBlocks(X), NUMBERS)
    again = pickle.loads(pickle.dumps(model))
    assert model.evaluate().kind == "nested 10-fold"
    assert model.evaluate(nested=False) == again.evaluate(nested=False)
    with pytest.raises(ValueError, match="needs the training rows"):
        again.evaluate()
    with pytest.raises(ValueError, match="needs the training rows"):
        again.predict_interval(NEW)


def test_scorers_of_predicted_classes_are_no_ranking():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    model = KernelClassifier(mu=1e-2).fit(X, y)
    hard = model.evaluate(scoring={"hard": make_scorer(roc_auc_score)})["hard"]
    assert hard == roc_auc_score(y, model.evaluate().decisions.predicted)
    assert hard != model.evaluate()["roc_auc"]
