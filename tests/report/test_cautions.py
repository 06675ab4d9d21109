"""What is said to be distrusted: each caution where it is due, and not elsewhere."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from evaluated import evaluated
from scipy.signal import lfilter
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_iris,
    load_wine,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from stacks import stacked_classifier

from looms import KernelClassifier, KernelRegressor, Search, TabularRegressor, assess
from looms.assessment._experiment import estimator_key
from looms.assessment._result import Assessment
from looms.assessment._split_run import SplitResult
from looms.diagnostics import _row_order, row_order
from looms.duplicates import duplicate_groups
from looms.folds import GapKFold
from looms.kernels import RBF, Linear
from looms.report import cautions, summary
from looms.report.model import model_of
from looms.report.scores import gain_over_shares
from looms.report.text import score
from looms.tables import TablePreprocessor

WORSE = "Probabilities worse than the baseline"


def titles(estimator, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = summary(estimator, **options)["cautions"]
    assert all(c["level"] in ("serious", "note") and c["text"].endswith(".") for c in found)
    levels = [c["level"] for c in found]
    assert levels == sorted(levels, reverse=True)
    return {c["title"]: (c["level"], c["text"]) for c in found}


#: Titles of the cautions of a good fit to `points`, whose first feature has a ROC AUC of 0.968.
STRONG = {"A feature nearly gives the target"}


X = np.random.default_rng(0).normal(size=(160, 3))
Y = X[:, 0] + 0.5 * np.random.default_rng(1).normal(size=160) > 0
NUMBERS = X[:, 0] + 0.3 * np.random.default_rng(2).normal(size=160)
RNG = np.random.default_rng(2)
NOISE = RNG.normal(size=(80, 5)), RNG.permutation(80) % 2
TWICE = np.vstack([X, X[:20]]), np.append(Y, Y[:20])
#: No feature alone parts the classes, which their sum does.
PARTED = np.column_stack([9 * X[:, 0] + 2 * Y, 2 * Y - 9 * X[:, 0]])
SOME = np.concatenate([np.flatnonzero(~Y)[:40], np.flatnonzero(Y)[:4]])
#: Classes of very unequal size that the outputs rank well.
RARE = np.arange(600) < 36
RANKED = np.random.default_rng(3).normal(size=(600, 3)) + 2.0 * RARE[:, None]
GIVEN = KernelClassifier(mu=1e-3)
UNCALIBRATED = KernelClassifier("linear", mu=1e-3, calibration=None)


@pytest.fixture(scope="module")
def points():
    return X, Y


def fit(model, X, y, *weight, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model).fit(X, y, *weight, **options)


#: Level, what is named, a model of which the caution is due, and one of which it is not.
DUE = {
    "Duplicates": (
        *("serious", "20 of 180 rows"),
        lambda: fit(GIVEN, *TWICE),
        lambda: fit(KernelClassifier(), *TWICE, groups=duplicate_groups(TWICE[0])),
    ),
    "Few rows": ("note", "44", lambda: fit(GIVEN, X[SOME], Y[SOME]), lambda: fit(GIVEN, X, Y)),
    "A small class": (
        *("serious", "\u2068True\u2069 has 4 rows"),
        lambda: fit(GIVEN, X[SOME], Y[SOME]),
        lambda: fit(GIVEN, X, Y),
    ),
    "One class for all": (
        *("serious", "\u2068False\u2069"),
        lambda: fit(KernelClassifier("linear", mu=1.0, calibration=None), RANKED, RARE),
        lambda: fit(UNCALIBRATED, RANKED, RARE),
    ),
    "A class is seldom predicted": (
        *("serious", "\u2068True\u2069, but 36 are"),
        lambda: fit(UNCALIBRATED, RANKED, RARE),
        lambda: fit(KernelClassifier("linear", mu=1e-3, threshold=0.2), RANKED, RARE),
    ),
    WORSE: (
        *("serious", "0.693"),
        lambda: evaluated(
            fit(KernelClassifier("ard", calibration="isotonic"), *NOISE), nested=True
        ),
        lambda: fit(UNCALIBRATED, *NOISE),
    ),
    "Too good": (
        *("note", "wrong"),
        lambda: fit(KernelClassifier("linear", mu=1e-3), PARTED, Y),
        lambda: fit(GIVEN, X, Y),
    ),
    "Columns of other scales": (
        *("serious", "\u2068feature 3\u2069"),
        lambda: fit(KernelClassifier(), X * [1, 1, 1000], Y),
        lambda: fit(KernelClassifier(), X, Y),
    ),
    "Search stopped early": (
        *("serious", "max_iter"),
        lambda: fit(KernelRegressor("ard", search=Search(max_iter=1)), X, X[:, 0] ** 2),
        lambda: fit(KernelRegressor("linear"), X, NUMBERS),
    ),
    "The choice is not settled": (
        *("note", "candidates of 3"),
        lambda: fit(stacked_classifier(["linear", "rbf", "quadratic"], combine="best"), X, Y),
        lambda: fit(
            stacked_classifier(["linear", "rbf"], combine="best"), X, X[:, 0] * X[:, 1] > 0
        ),
    ),
    "Preprocessing saw all rows": (
        *("note", "(standardscaler)"),
        lambda: fit(make_pipeline(StandardScaler(), GIVEN), X, Y),
        lambda: fit(GIVEN, X, Y),
    ),
    "Rows of weight zero": (
        *("note", "7 of 160"),
        lambda: fit(GIVEN, X, Y, 1.0 * (np.arange(160) > 6)),
        lambda: fit(GIVEN, X, Y, np.ones(160)),
    ),
    "Windows of time": (
        *("note", "forward"),
        lambda: fit(KernelClassifier(mu=1e-3, cv=GapKFold(5)), X, Y),
        lambda: fit(KernelClassifier(mu=1e-3, cv=5), X, Y),
    ),
    "Intervals": (
        *("note", "interval"),
        lambda: fit(KernelRegressor("linear"), X, NUMBERS),
        lambda: fit(GIVEN, X, Y),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("title", DUE)
def test_each_caution_is_told_where_it_is_due_and_not_elsewhere(title):
    level, named, due, other = DUE[title]
    found = titles(due())
    assert found[title][0] == level
    assert named in found[title][1]
    assert title not in titles(other())


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gradient", "grid", None])
def test_a_good_fit_has_few(points, method):
    search = Search(method=method or "gradient")
    model = fit(KernelClassifier("linear", mu=None if method else 1e-3, search=search), *points)
    found = titles(model)
    assert set(found) == ({"No outer estimate", *STRONG} if method else STRONG)
    assert not method or "1 hyper-parameter" in found["No outer estimate"][1]
    if method:
        model.evaluate()
        assert set(titles(model)) == STRONG
        found = summary(model)
        assert found["headline"]["optimistic"] is False
        assert found["headline"]["value"] == model.evaluate()["balanced_accuracy"]
        assert found["loo"]["nested"] is True


@pytest.mark.slow
def test_outer_estimate(points):
    X, y = points
    model = fit(stacked_classifier(["linear", "rbf"], combine="best", threshold="balanced"), X, y)
    assert "No outer estimate" not in titles(model)  # two are compared by outer folds
    alone = fit(KernelClassifier("linear", threshold="balanced"), X, y)
    assert "threshold" in titles(alone)["No outer estimate"][1]
    result = assess(model, X, y, n_splits=3, random_state=0)
    found = titles(model, assessment=result)
    assert not {"No outer estimate", "Failed splits"} & set(found)
    text = found["Optimism of 5-fold cross-validation"][1]
    assert "2 candidates" in text
    assert result.optimism_text("balanced_accuracy", "5-fold cross-validation") in text
    first = summary(model, assessment=result)["assessment"]["scores"][0]
    assert first["standard_error"] == result.standard_error["balanced_accuracy"]
    assert first["optimism_error"] == result.estimate("balanced_accuracy").optimism_error


@pytest.mark.slow
def test_failed_splits(points):
    X, y = points

    mean = X[:, 0].mean()

    class Sometimes(StandardScaler):
        def fit(self, X, y=None, sample_weight=None):
            if X[:, 0].mean() > mean:
                raise ValueError("not today")
            return super().fit(X, y)

    model = fit(make_pipeline(Sometimes(), KernelClassifier("linear")), X, y)
    result = assess(model, X, y, n_splits=8, random_state=0)
    assert 0 < len(result.failures) < 8
    level, text = titles(model, assessment=result)["Failed splits"]
    assert level == "serious"
    assert "not today" in text


@pytest.mark.slow
def test_many_hyperparameters():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    y = X[:, 0]
    ard, with_prior = (
        KernelRegressor("ard", search=Search(max_iter=5, prior=prior)) for prior in (False, True)
    )
    level, text = titles(fit(ard, X, y))["Many hyper-parameters"]
    assert level == "serious"
    assert "9 hyper-parameters were tuned on 60 rows" in text
    of_table = TabularRegressor([with_prior], target="none")
    assert titles(fit(of_table, X, y))["Many hyper-parameters"][0] == "note"
    fitted = fit(TabularRegressor([ard], target="none"), X, y)
    assert titles(fitted)["Many hyper-parameters"][0] == "serious"
    fitted.evaluate()  # repeats the tuning, so that its scores count an over-fitted criterion
    assert titles(fitted)["Many hyper-parameters"][0] == "note"


@pytest.mark.slow
def test_a_bound_is_a_note_if_nested_scores_are_good():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    noise = rng.normal(size=60)
    for y, level, name in [(X @ [1.0, 2.0], "note", "mu"), (noise, "serious", "gamma")]:
        model = fit(KernelRegressor(RBF(1.5, gamma_bounds=(1, 2))), X, y)
        found = titles(model)["Hyper-parameter at a bound"]
        assert found[0] == "serious"  # tuned on these rows
        assert f"\u2068{name}\u2069" in found[1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.evaluate()
        assert titles(model)["Hyper-parameter at a bound"][0] == level


@pytest.mark.slow
def test_held_out_outputs_that_are_not_those_of_refits(points):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    machine = KernelRegressor("linear", mu=1e-2).fit(X, X[:, 0] + rng.normal(size=120))
    certificate = summary(machine)["certificate"]
    assert certificate["holds"]
    assert certificate["n_rows"] == 3
    assert not hasattr(machine, "certificate_")
    wrong = machine.loo_.outputs + 1e-3
    machine.fitted_ = replace(machine.fitted_, loo_outputs=wrong)
    assert "Outputs differ from refits" in titles(machine)
    few = KernelRegressor("rbf", mu=1e-16).fit(X[:, :1], X[:, 0])
    few.certify()
    (level,) = (c["level"] for c in cautions(few) if "without certain digits" in c["title"])
    assert level == "serious"
    assert summary(few)["certificate"]["verdict"] == "cannot tell"
    few.certificate_ = replace(
        few.certificate_, relative=np.inf, solver="none that could be fitted"
    )
    assert "Use a larger mu" in titles(few)["Outputs differ from refits"][1]
    few.certificate_ = replace(few.certificate_, relative=4e-12, bound=3e-12)
    assert titles(few)["Outputs differ from refits"][0] == "note"  # no digit that is shown


@pytest.mark.slow
def test_remedies_of_unequal_classes_are_named_unless_they_are_taken():
    level, text = titles(fit(GIVEN, X[SOME], Y[SOME]))["Unequal classes"]
    assert level == "note"
    assert "threshold='balanced'" in text
    for options in ({"class_weight": "balanced"}, {"threshold": "balanced"}):
        heeded = titles(KernelClassifier(mu=1e-3, **options).fit(X[SOME], Y[SOME]))
        assert "='balanced'" not in heeded["Unequal classes"][1]
    assert "Unequal classes" not in titles(fit(GIVEN, X, Y))


@pytest.mark.slow
def test_no_better_than_the_baseline(points):
    X, noise = points[0], np.random.default_rng(1).normal(size=len(points[0]))
    for fitted in (
        KernelClassifier(mu=1.0, calibration=None).fit(X, noise > 0),
        fit(KernelRegressor("linear"), X, noise),
        fit(KernelClassifier("linear"), *events(316, 0.17, 0.0)),
    ):
        assert titles(fitted)["May be no better than the baseline"][0] == "serious"


@pytest.mark.slow
def test_an_assessment_of_something_else(points):
    X, y = points
    model = fit(KernelClassifier("linear"), X, y)
    same = assess(KernelClassifier("linear"), X, y, 2, random_state=0, method="forward", gap=5)
    assert not {"Another estimator was assessed", "Other rows were assessed"} & set(
        titles(model, assessment=same)
    )
    other = assess(KernelClassifier("linear", mu=1e-3), X[:100], y[:100], 2, random_state=0)
    found = titles(model, assessment=other)
    level, text = found["Another estimator was assessed"]
    assert level == "serious"
    assert "mu=0.001" in text
    assert "100 rows" in found["Other rows were assessed"][1]


@pytest.mark.parametrize(
    ("change", "other"),
    [
        ({"machine__mu": 0.1}, True),
        ({"scale__with_mean": False}, True),  # the text of a pipeline has only the names of steps
        ({"machine__kernel": Linear()}, False),
        ({"machine__kernel": RBF(2.0)}, True),
        ({"machine__random_state": np.random.RandomState(1)}, False),
        ({"verbose": True}, False),
        ({"search__n_jobs": 2}, False),
        ({"search__estimator__kernel": "linear"}, True),
    ],
    ids=lambda value: "".join(value) if isinstance(value, dict) else None,
)
def test_estimators_are_compared_by_content(change, other):
    machine = KernelClassifier(Linear(), mu=1.0, random_state=np.random.RandomState(0))
    search = GridSearchCV(KernelClassifier("rbf"), {})
    model = Pipeline([("scale", StandardScaler()), ("machine", machine), ("search", search)])
    changed = clone(model).set_params(**change)
    assert (estimator_key(changed) != estimator_key(model)) == other


@pytest.mark.slow
def test_optimism_is_told_of_the_first_score_that_has_it(points):
    X, y = points
    model = fit(KernelClassifier("linear"), X, y)

    def share(model, X, y):
        return float(np.mean(model.predict(X)))

    # The log loss needs probabilities, without held-out values; of the share nobody says
    # which way is better.
    for scoring, told in ((["log_loss", "accuracy"], "accuracy"), (share, None)):
        result = assess(model, X, y, n_splits=3, random_state=0, scoring=scoring)
        text = titles(model, assessment=result).get("Optimism of leave-one-out", ("", ""))[1]
        assert (told is None) == (text == "")
        assert told is None or result.optimism_text(told, "leave-one-out") in text
    (only,) = summary(model, assessment=result)["assessment"]["scores"]
    assert only["optimism"] is only["smaller_is_better"] is None


@pytest.mark.slow
def test_a_class_that_is_seldom_predicted_is_counted_and_the_remedy_named():
    machine = fit(UNCALIBRATED, RANKED, RARE)
    text = titles(machine)["A class is seldom predicted"][1]
    predicted = int((machine.loo_.outputs > 0).sum())
    assert predicted < 0.6 * 36
    assert f"{predicted} are predicted" in text
    assert "threshold='balanced', class_weight='balanced'" in text
    given = fit(clone(UNCALIBRATED).set_params(class_weight="balanced"), RANKED, RARE)
    assert "A class is seldom predicted" not in titles(given)


def events(n, share, difference):
    """A rare outcome, and four columns of which one tells something of it, or none."""
    rng = np.random.default_rng(0)
    y = rng.permutation(n) < share * n
    X = rng.normal(size=(n, 4))
    X[:, 0] += difference * y
    return X, np.where(y, "event", "none")


@pytest.mark.slow
@pytest.mark.parametrize("model", [KernelClassifier("linear"), stacked_classifier(["linear"])])
def test_probabilities_of_rare_events_are_judged_by_log_loss(model):
    X, y = events(316, 0.17, 0.95)
    model = fit(model, X, y)
    scores = model.evaluate()
    value, error = scores.with_errors["balanced_accuracy"]
    assert value - 3 * error < 0.5  # at ½
    found = titles(model)
    assert found["Unequal classes"][0] == "note"
    assert "log loss and ROC AUC" in found["Unequal classes"][1]
    assert not {level for level, _ in found.values()} & {"serious"}
    head = summary(model)["headline"]
    assert (head["key"], head["value"]) == ("log_loss", scores["log_loss"])
    assert (head["baseline"], head["roc_auc"]) == (scores.baselines["log_loss"], scores["roc_auc"])


@pytest.mark.slow
def test_a_threshold_that_was_asked_for_is_judged_by_its_decisions():
    X, y = events(316, 0.17, 0.95)
    for options in ({"threshold": "balanced"}, {"class_weight": "balanced"}, {"threshold": 0.2}):
        told = summary(KernelClassifier("linear", mu=0.1, **options).fit(X, y))
        assert (told["headline"]["key"], told["headline"]["roc_auc"]) == ("balanced_accuracy", None)
    nearly_even = np.arange(316) % 3 > 0  # two thirds
    told = summary(KernelClassifier("linear", mu=0.1).fit(X, nearly_even))
    assert told["headline"]["key"] == "balanced_accuracy"


def test_gains_over_the_shares_are_paired():
    X, y = events(120, 0.2, 1.0)
    model = model_of(KernelClassifier("linear", mu=0.1).fit(X, y))
    losses, shares = model.scores.decisions.losses, np.where(y == "event", 0.2, 0.8)
    gains = -np.log(shares) - losses
    expected = gains.mean(), gains.std(ddof=1) / np.sqrt(120)
    assert gain_over_shares(model) == pytest.approx(expected)


@pytest.mark.slow
def test_splits_of_rare_events_are_judged_by_the_area():
    X, y = events(316, 0.17, 0.95)
    model = KernelClassifier("linear", mu=0.1).fit(X, y)
    for area, told in ((0.75, False), (0.55, True)):
        scores = {"balanced_accuracy": 0.5, "roc_auc": area, "log_loss": 0.4}
        splits = tuple(
            SplitResult(k, 90, 10, {n: v + 0.1 * (-1) ** k for n, v in scores.items()})
            for k in range(10)
        )
        made = Assessment(splits, None, tuple(scores), "shuffle", 0, "a machine")
        found = titles(model, assessment=made)
        assert ("May be no better than the baseline" in found) == told


def test_an_accuracy_within_noise_of_the_baseline_is_no_better():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    model = KernelClassifier(mu=1e-3, calibration=None).fit(X, y)
    accuracy, error = model.evaluate(nested=False).with_errors["balanced_accuracy"]
    assert accuracy > 0.5 > accuracy - 2 * error
    assert "50.0 %" in titles(model)["May be no better than the baseline"][1]


def test_an_explained_variance_within_noise_is_no_better_than_the_mean():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 1))
    y = X[:, 0] * 0.4 + rng.standard_t(2, size=60)
    model = KernelRegressor("linear", mu=1e-3).fit(X, y)
    scores = summary(model)["loo"]["scores"]
    assert 0 < next(each["value"] for each in scores if each["key"] == "r2") < 0.1
    assert "within noise" in titles(model)["May be no better than the baseline"][1]


def test_a_few_large_targets_do_not_hide_what_a_model_explains():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 3))
    y = np.exp(1.6 * X[:, 0] + 0.4 * X[:, 1] + 0.3 * rng.normal(size=150))
    model = KernelRegressor(mu=1e-2).fit(X, y)
    assert model.evaluate()["r2"] > 0.2
    assert "May be no better than the baseline" not in titles(model)


def codes_of(y):
    """A category with several values a class, and one that is noise."""
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "code": [f"{'ab'[int(k)]}{rng.integers(3)}" for k in y],
            "ward": rng.choice(["north", "south", "east"], len(y)),
        }
    )


@pytest.mark.parametrize(
    "kind",
    [
        *("copy", "identifier", "several", "category", "number", "code"),
        *("number with gaps", "code with gaps"),
    ],
)
@pytest.mark.slow
def test_a_feature_that_alone_gives_the_target_is_named(points, kind):
    X, y = points
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    name, y = "leak", y.astype(int)
    kind, *gaps = kind.split(" with ")
    if kind == "copy":
        frame["leak"] = y
    elif kind == "code":  # one for yes, and on either side no
        frame["leak"] = np.where(y, 1.0, np.random.default_rng(3).choice([0.0, 2.0], len(y)))
    elif kind == "identifier":
        frame["leak"] = np.argsort(np.argsort(y, kind="stable"))
    elif kind == "several":
        y = np.digitize(X[:, 1] + X[:, 2], [-0.5, 0.5])
        frame["leak"] = np.array([5.0, 1.0, 9.0])[y]
    elif kind == "category":
        frame, name = frame.join(codes_of(y)), "code"
    else:
        y = np.exp(X[:, 0] + X[:, 1] ** 2)
        frame["leak"] = np.log(y)
    if gaps:
        frame.loc[np.random.default_rng(4).random(len(y)) < 0.05, "leak"] = np.nan
    estimator = (KernelRegressor if kind == "number" else KernelClassifier)("linear")
    model = make_pipeline(TablePreprocessor(), estimator).fit(frame, y)
    level, text = titles(model, X=frame)["A feature gives the target"]
    assert level == "serious"
    assert text.startswith(f"\u2068{name}\u2069 (")
    assert ("where it is known)" in text) == bool(gaps)
    frame = frame.drop(columns=name)
    model = make_pipeline(TablePreprocessor(), estimator).fit(frame, y)
    assert "A feature gives the target" not in titles(model, X=frame)


def test_the_only_column_may_be_all_that_is_known():
    x = np.linspace(0, 1, 50)[:, None]
    assert "A feature gives the target" not in titles(
        KernelRegressor(mu=1e-3).fit(x, np.exp(x[:, 0]))
    )


@pytest.mark.slow
def test_cautions_of_a_fit_are_those_of_its_report(points):
    X, y = points
    model = fit(KernelClassifier("linear"), np.column_stack([X, y]), y)
    of_fit = cautions(model)
    assert [each["title"] for each in of_fit] == [
        "A feature gives the target",
        "A feature nearly gives the target",
    ]
    assert all(each in summary(model)["cautions"] for each in of_fit)
    with pytest.raises(TypeError, match="StandardScaler is not a looms model"):
        cautions(StandardScaler())


def test_a_few_values_that_do_not_part_the_classes_are_no_leak(points):
    X, y = points
    rng = np.random.default_rng(5)
    codes = np.where(rng.random(len(y)) < 0.1, ~y, y) + 2 * rng.integers(0, 2, len(y))
    model = fit(KernelClassifier("linear", mu=1e-3), np.column_stack([X, codes]), y)
    assert "A feature gives the target" not in titles(model)


def patients(n_patients=40, n_repeats=8, noise=0.3):
    """Repeats of patients whose label is random, and the number of the patient of each."""
    rng = np.random.default_rng(0)
    centers, number = rng.normal(size=(n_patients, 5)), np.repeat(np.arange(n_patients), n_repeats)
    X = centers[number] + noise * rng.normal(size=(len(number), 5))
    return X, rng.permutation(np.arange(n_patients) % 2)[number], number


@pytest.mark.slow
@pytest.mark.parametrize(
    ("Estimator", "sizes"),
    [
        (KernelClassifier, (40, 8, 0.3)),
        (KernelRegressor, (50, 3, 0.1)),
        (KernelClassifier, (30, 2, 0.1)),
        (KernelRegressor, (12, 20, 0.03)),
        (KernelClassifier, (10, 8, 0.1)),
    ],
)
def test_repeats_that_no_groups_hold_out_together_are_pointed_out(Estimator, sizes):
    X, y, number = patients(*sizes)
    level, text = titles(fit(Estimator(), X, y))["Rows like repeats of others"]
    assert level == "note"
    assert "groups=..." in text
    assert sizes[0] > 12 or f"cluster (there are {sizes[0]})" in text
    grouped = fit(Estimator(), X, y, groups=number)
    assert "Rows like repeats of others" not in titles(grouped)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("load", "kernel", "scaled"),
    [
        (load_iris, "rbf", True),
        (load_wine, "linear", False),
        (load_breast_cancer, "linear", True),
        (load_diabetes, "rbf", False),
    ],
)
def test_samples_of_their_own_are_no_repeats(load, kernel, scaled):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X) if scaled else X
    machine = KernelRegressor if load is load_diabetes else KernelClassifier
    found = cautions(fit(machine(kernel), X, y))
    assert "Rows like repeats of others" not in {each["title"] for each in found}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("Estimator", "n_groups"),
    [(KernelRegressor, 5), (KernelRegressor, 6), (KernelClassifier, 3)],
)
def test_few_groups_are_named_as_the_cause(Estimator, n_groups):
    rng = np.random.default_rng(0)
    X, groups, few = rng.normal(size=(90, 2)), np.arange(90) // 3 % n_groups, n_groups < 6
    y = rng.normal(size=90) if Estimator is KernelRegressor else np.arange(90) % 2
    found = titles(fit(Estimator("linear"), X, y, groups=groups))
    assert (f"{n_groups} groups" in found["May be no better than the baseline"][1]) == few
    assert ("Few groups" in found) == few
    assert few or "Few groups" not in titles(fit(Estimator("linear"), X, y))


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        stacked_classifier(["linear", "rbf"]),
        KernelClassifier(n_landmarks=60),
        KernelClassifier(loss="hinge", search=Search(resolution=8.0)),
    ],
    ids=["stack", "landmarks", "hinge"],
)
def test_clusters_are_found_whatever_the_model_is(model):
    X, y, _ = patients(12, 4, 0.03)
    text = titles(fit(model, X, y > np.median(y)))["Rows like repeats of others"][1]
    assert "cluster (there are 12)" in text


@pytest.mark.slow
@pytest.mark.usefixtures("all_partitions")
@pytest.mark.parametrize("Estimator", [KernelClassifier, KernelRegressor])
def test_rows_in_an_order_are_pointed_out_once(Estimator, monkeypatch):
    rng = np.random.default_rng(0)
    series = lfilter([1], [1, -0.95], rng.normal(size=(150, 4)), axis=0)
    X, y = series[:, :3], np.sin(series[:, 0]) + series[:, 3]
    y = y > np.median(y) if Estimator is KernelClassifier else y
    some = rng.permutation(150)
    assert "Rows in an order" not in titles(Estimator(mu=1e-3).fit(X[some], y[some]))
    calls = []
    tested = _row_order._tested
    monkeypatch.setattr(_row_order, "_tested", lambda machine: calls.append(1) or tested(machine))
    model = Estimator(mu=1e-3).fit(X, y)
    level, text = titles(model)["Rows in an order"]
    assert level == "serious"
    key = "accuracy" if Estimator is KernelClassifier else "rmse"
    for scores in (model.evaluate(), row_order(model).scores):
        assert score(scores[key], key, 3) in text
    assert "p = 0.005" in text
    assert text in [each["text"] for each in cautions(model)]
    assert len(calls) == 1


@pytest.mark.parametrize(("by", "told"), [(1.0, True), (2.0, False)])
@pytest.mark.parametrize("name", ["balanced_accuracy", "roc_auc"])
def test_an_interval_of_splits_that_holds_the_baseline(points, name, by, told):
    """Of ten splits, each 0.1 from their mean: standard error 0.06, half of the interval 0.13."""
    splits = tuple(SplitResult(k, 90, 10, {name: 0.5 + 0.1 * (by + (-1) ** k)}) for k in range(10))
    made = Assessment(splits, None, (name,), "shuffle", 0, "a machine")
    # The caution of a fit is that of the splits, whatever the fit says.
    noise = np.random.default_rng(0).normal(size=(20, 2))
    for X, y in (points, (noise, np.arange(20) % 2)):
        model = KernelClassifier(mu=1e-3, calibration=None).fit(X, y)
        remark = titles(model, assessment=made).get("May be no better than the baseline")
        assert (remark is not None) == told
        assert remark is None or "of outer splits" in remark[1]
