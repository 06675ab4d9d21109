"""Displays: what they compute, and that drawing them is scikit-learn's way."""

import dataclasses

import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.tree import DecisionTreeClassifier
from stacks import stacked_classifier

from looms import KernelClassifier, KernelRegressor, Search, assess
from looms.calibration import (
    loo_probabilities,
    net_benefit,
    recalibration,
)
from looms.calibration._scores import reliability_curve
from looms.diagnostics import case_deletion
from looms.report import (
    CandidatesDisplay,
    CaseDeletionDisplay,
    CriterionHistoryDisplay,
    DecisionCurveDisplay,
    ImportanceDisplay,
    OptimismDisplay,
    PrecisionRecallDisplay,
    RelevanceDisplay,
    ReliabilityDisplay,
    ResidualsDisplay,
    RocDisplay,
    SearchPathDisplay,
    summary,
)
from looms.report.displays import classes
from looms.report.displays.classes import probabilities_of
from looms.report.displays.samples import spread_out
from looms.report.model import model_of

OF_SEARCH = [SearchPathDisplay, CriterionHistoryDisplay, CandidatesDisplay]
OF_ALL = [*OF_SEARCH, CaseDeletionDisplay, ImportanceDisplay]
OF_CLASSES = [RocDisplay, PrecisionRecallDisplay, ReliabilityDisplay]
OF_NUMBERS = [ResidualsDisplay, RelevanceDisplay]
CASES = [
    *(("binary", display) for display in (*OF_ALL, *OF_CLASSES)),
    ("binary", DecisionCurveDisplay),
    *(("regression", display) for display in (CaseDeletionDisplay, ImportanceDisplay)),
    *(("regression", display) for display in OF_NUMBERS),
    *(("hostile", display) for display in (*OF_ALL, *OF_CLASSES, RelevanceDisplay)),
]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Glyph .* missing:UserWarning")
@pytest.mark.parametrize(("which", "display"), CASES)
def test_drawing(which, display, request):
    model = request.getfixturevalue(which)[0]
    shown = display.compute(model)
    assert not hasattr(shown, "ax_")
    assert shown.plot() is shown
    assert shown.ax_.figure is shown.figure_
    assert shown.ax_.get_xlabel()
    shown.figure_.canvas.draw()
    _, ax = pyplot.subplots()
    assert shown.plot(ax).ax_ is ax
    assert ax.has_data()


def test_options_of_plot_go_to_plot(binary):
    _, ax = pyplot.subplots()
    shown = CandidatesDisplay.from_estimator(binary[0], max_candidates=2, ax=ax)
    assert shown.ax_ is ax
    assert len(ax.get_yticks()) == 2
    with pytest.raises(TypeError, match="nothing"):
        CandidatesDisplay.from_estimator(binary[0], nothing=1)


def test_columns_of_a_spectrum_are_drawn_along_their_numbers():
    names = [str(number) for number in np.random.default_rng(0).permutation(30) + 400.5]
    counts = {"n_samples": 50, "n_repeats": 1, "n_columns": 30}
    display = ImportanceDisplay(
        names=names, value=np.arange(30.0), standard_error=np.ones(30), press=1.0, **counts
    )
    text = repr(display)
    assert text.startswith("ImportanceDisplay(names=['4")
    assert text.endswith("press=1.0, n_samples=50, n_repeats=1, n_columns=30)")
    assert "0x" not in text
    assert len(text.splitlines()) == 1
    low, high = display.plot().ax_.get_xlim()
    assert repr(display) == text
    assert "rise of the squared held-out error" in display.ax_.get_ylabel()
    assert 390 < low < 401 < 429 < high < 440
    low, high = display.plot(max_features=30).ax_.get_xlim()  # bars, each with its name
    assert (low < 0, high < 390) == (True, True)


def test_optimism(binary):
    assessment = binary[3]
    shown = OptimismDisplay.from_assessment(assessment)
    assert shown.score == "balanced_accuracy"
    np.testing.assert_allclose(shown.outer, assessment.table["balanced_accuracy"])
    np.testing.assert_allclose(shown.loo, assessment.table["loo_balanced_accuracy"])
    other = OptimismDisplay.from_assessment(assessment, score="roc_auc")
    np.testing.assert_allclose(other.outer, assessment.table["roc_auc"])
    np.testing.assert_allclose(other.loo, assessment.table["loo_roc_auc"])
    with pytest.raises(ValueError, match=r"score .*balanced_accuracy"):
        OptimismDisplay.from_assessment(assessment, score="f1")


def test_optimism_needs_a_machine_of_looms(regression):
    _, X, y = regression
    with pytest.raises(ValueError, match="held-out"):
        OptimismDisplay.from_assessment(assess(Ridge(), X, y, n_splits=2, random_state=0))
    with pytest.raises(TypeError, match="Ridge"):
        OptimismDisplay.compute(Ridge())


@pytest.mark.parametrize("display", [*OF_ALL, *OF_CLASSES])
def test_unfitted_and_foreign(display):
    with pytest.raises(NotFittedError):
        display.from_estimator(KernelClassifier())
    with pytest.raises(TypeError, match="Ridge"):
        display.from_estimator(Ridge())


def test_given_hyperparameters_have_no_search(several):
    model = KernelClassifier(mu=1e-3).fit(*several[1:])
    for display in OF_SEARCH:
        with pytest.raises(TypeError, match="KernelClassifier"):
            display.from_estimator(model)


def test_curves_of_predictions():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(60) < 0.4, "b", "a")
    f, w = rng.normal(size=60) + (y == "b"), rng.integers(0, 3, 60) * 1.0
    _, ax = pyplot.subplots()
    roc = RocDisplay.from_predictions(y, f, sample_weight=w, threshold=0.5, ax=ax)
    assert roc.ax_ is ax
    assert roc.areas == {"b": pytest.approx(roc_auc_score(y == "b", f, sample_weight=w))}
    rate = np.average(f[y == "b"] > 0.5, weights=w[y == "b"])
    curve = PrecisionRecallDisplay.from_predictions(y, f, sample_weight=w, threshold=0.5)
    assert roc.chosen[1] == pytest.approx(rate) == pytest.approx(curve.chosen[0])
    assert PrecisionRecallDisplay.from_predictions(y, f).chosen is None


def test_residuals_of_predictions(regression):
    model, _, y = regression
    shown = ResidualsDisplay.from_predictions(
        y, model.loo_.outputs, confidence_level=0.8, max_points=9
    )
    of_estimator = ResidualsDisplay.compute(model, confidence_level=0.8)
    np.testing.assert_array_equal(shown.interval, of_estimator.interval)
    assert len(shown.ax_.lines[-1].get_xdata()) == 9


def test_of_the_other_task(several, regression):
    for display in OF_CLASSES:
        with pytest.raises(TypeError, match="ResidualsDisplay"):
            display.from_estimator(regression[0])
    with pytest.raises(TypeError, match="regressors"):
        ResidualsDisplay.from_estimator(several[0])
    trees = stacked_classifier([DecisionTreeClassifier(max_depth=1)]).fit(*several[1:])
    for model in (several[0], trees):
        with pytest.raises(ValueError, match=r"kernel='ard'|without kernels"):
            RelevanceDisplay.from_estimator(model)


def test_curves_are_of_the_positive_class(binary):
    _, X, y, _ = binary
    model = KernelClassifier(mu=0.1, threshold="balanced", pos_label="benign").fit(X, y)
    outputs, positive = model.evaluate().predictions.outputs, y.to_numpy() == "benign"
    shown = PrecisionRecallDisplay.from_estimator(model)
    area = average_precision_score(positive, -outputs)
    assert shown.areas == {"benign": pytest.approx(area)}
    above = outputs <= model.threshold_
    assert shown.chosen == pytest.approx((above[positive].mean(), positive[above].mean()))
    curve = ReliabilityDisplay.from_estimator(model, n_bins=1).curves["benign"]
    assert curve.share == pytest.approx(positive.mean())


def test_one_against_rest(several):
    model, _, y = several
    shown = RocDisplay.from_estimator(model)
    assert shown.chosen is None
    for k, label in enumerate(model.classes_):
        area = roc_auc_score(y == label, model.evaluate(nested=False).decisions.outputs[:, k])
        assert shown.areas[str(label)] == pytest.approx(area)


def test_reliability_is_of_calibrators_that_did_not_see_the_sample(by_loo):
    model = by_loo
    shown = ReliabilityDisplay.from_estimator(model, calibration="isotonic", n_bins=4)
    (curve,) = shown.curves.values()
    p = loo_probabilities(model[-1].loo_, "isotonic")[:, 1]
    assert np.average(curve.probability, weights=curve.weight) == pytest.approx(p.mean())
    assert len(curve.probability) <= 4
    other = ReliabilityDisplay.from_estimator(model, calibration="sigmoid", n_bins=4)
    assert not np.allclose(next(iter(other.curves.values())).probability, curve.probability)


def test_intercept_and_slope_are_of_the_rows_and_groups_of_the_fit():
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(80, 2)), np.arange(80) // 4
    y, weight = X[:, 0] + rng.normal(size=80) > 0.5, np.where(np.arange(80) % 5, 1.0, 0.0)
    model = KernelClassifier("linear", mu=0.1).fit(X, y, weight, groups=group)
    shown = ReliabilityDisplay.compute(model)
    own, p = weight > 0, probabilities_of(model_of(model))[:, 1]
    labels = np.where(y, 1, -1)
    for found in (
        shown.recalibrations["True"],
        ReliabilityDisplay.from_predictions(y[own], p[own], groups=group[own]).recalibrations[
            "True"
        ],
    ):
        assert found == recalibration(labels, p, weight, group)
    assert found.slope_error != recalibration(labels, p, weight).slope_error
    assert summary(model)["loo"]["calibration"] == dataclasses.asdict(found)
    benefit = DecisionCurveDisplay.compute(model, thresholds=[0.1, 0.6]).benefit
    given = {"groups": group[own], "thresholds": [0.1, 0.6]}
    of_given = DecisionCurveDisplay.from_predictions(y[own], p[own], **given).benefit
    np.testing.assert_array_equal([*vars(benefit).values()], [*vars(of_given).values()])
    assert (shown.smooth.low <= shown.smooth.share).all()
    assert (shown.smooth.share <= shown.smooth.high).all()


def test_decisions_are_of_two_classes_with_probabilities(several, regression, by_loo):
    with pytest.raises(TypeError, match="two classes, and there are 3"):
        DecisionCurveDisplay.compute(several[0])
    with pytest.raises(TypeError, match="for classifiers"):
        DecisionCurveDisplay.compute(regression[0])
    X, y = np.arange(8.0)[:, None], np.arange(8) % 2
    for display in (DecisionCurveDisplay, ReliabilityDisplay):
        with pytest.raises(ValueError, match=r"probability, labels .* shapes \(\(8, 2\), \(8,\)"):
            display.from_predictions(y, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="calibration='sigmoid'"):
        DecisionCurveDisplay.compute(KernelClassifier(mu=1.0, calibration=None).fit(X, y))
    first = KernelClassifier(mu=1.0, pos_label=0).fit(X, y)
    display = DecisionCurveDisplay.compute(first, thresholds=[0.2])
    assert display.label == "0"
    p = probabilities_of(model_of(first))[:, 0]
    expected = net_benefit(1 - 2 * y, p, thresholds=[0.2])
    assert display.benefit.value == expected.value


def test_residuals_of_several_targets(regression):
    _, X, y = regression
    Y = np.column_stack([y, -2 * y])
    model = KernelRegressor(mu=0.1).fit(X, Y)
    shown = ResidualsDisplay.from_estimator(model, target=1)
    np.testing.assert_allclose(shown.residual, model.loo_.residuals[:, 1])
    for options in ({"target": 2}, {"confidence_level": 1.0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            ResidualsDisplay.from_estimator(model, **options)


@pytest.mark.slow
def test_case_deletion_kinds(regression):
    model = regression[0]
    found = case_deletion(model)
    for kind in ("rms_change", "largest_change", "criterion_change", "leverage", "surprise"):
        shown = CaseDeletionDisplay.compute(model, kind=kind)
        np.testing.assert_allclose(shown.value, getattr(found, kind))
    names = [f"case {k}" for k in range(len(regression[1]))]
    residual = CaseDeletionDisplay.from_estimator(model, kind="residual", names=names)
    np.testing.assert_allclose(residual.value, np.abs(model.loo_.residuals))
    texts = [text.get_text() for text in residual.ax_.texts]
    assert names[int(residual.value.argmax())] in texts
    for options in ({"kind": "fame"}, {"names": ["a", "b"]}):
        with pytest.raises(ValueError, match=r"rms_change|2 names"):
            CaseDeletionDisplay.compute(model, **options)


def test_relevance_does_not_depend_on_units(regression):
    model, X, _ = regression
    shown = RelevanceDisplay.from_estimator(model)
    expected = np.asarray(model.kernel_.gammas) * X.to_numpy().var(axis=0)
    np.testing.assert_allclose(shown.relevance, expected / expected.sum())
    assert shown.names == list(X.columns)


def test_history_ends_where_the_search_did(several):
    model = several[0]
    shown = CriterionHistoryDisplay.from_estimator(model)
    assert np.nanmin(shown.value) == pytest.approx(model.selection_.value)
    assert len(shown.value) == sum(s.n_evaluations for _, s in model.selection_.stages)


def test_candidates(binary):
    shown = CandidatesDisplay.from_estimator(binary[0])
    assert shown.names == [
        "rbf, squared error",
        "rbf, hinge loss",
        "linear, squared error",
        "linear, hinge loss",
    ]
    assert shown.chosen == int(shown.loss.argmin())
    assert "5-fold cross-validation balanced error rate" in shown.loss_name


@pytest.mark.parametrize("n", [5, 101, 5000])
def test_spread_out_keeps_the_largest(n):
    size = np.random.default_rng(0).normal(size=n) ** 2
    shown = spread_out(size, 100)
    assert len(shown) == min(n, 100)
    assert set(np.argsort(-size)[:50]) <= set(shown)
    assert (np.diff(shown) > 0).all()


@pytest.mark.slow
def test_reliability_of_many_samples_is_of_one_calibrator(several, monkeypatch):
    model, shown = several[0], []
    n, k = model.loo_.y.shape
    for most in (n * n * k, n * n * k - 1):
        monkeypatch.setitem(classes._MOST_LEFT_OUT, "sigmoid", most)
        shown.append(ReliabilityDisplay.compute(model).curves["1"].probability)
    assert not np.array_equal(*shown)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_curves_are_of_what_is_held_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + rng.normal(size=60) > 0
    model = KernelClassifier().fit(X, y, groups=np.arange(60) // 3)
    roc = RocDisplay.compute(model)
    decided = model.evaluate(nested=False).decisions.outputs
    assert roc.areas["True"] == pytest.approx(roc_auc_score(y, decided))
    assert roc.areas["True"] != pytest.approx(roc_auc_score(y, model.held_out_.outputs))
    assert roc.chosen == pytest.approx(
        ((decided > model.threshold_)[~y].mean(), (decided > model.threshold_)[y].mean())
    )
    model = KernelClassifier(search=Search(method="grid")).fit(X, y)
    made = model.evaluate().decisions
    roc = RocDisplay.compute(model)
    assert roc.areas["True"] == pytest.approx(roc_auc_score(y, made.outputs))
    assert roc.chosen is None  # each row has a threshold of its own
    p = made.probabilities[:, 1]
    expected = reliability_curve(np.where(y, 1.0, -1.0), p)
    curve = ReliabilityDisplay.compute(model).curves["True"]
    np.testing.assert_allclose(curve.share, expected.share)
