"""Which way of a score is better, and where it can lie."""

import numpy as np
import pytest
from scipy import stats
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, get_scorer, make_scorer, mean_absolute_error
from sklearn.svm import SVC, LinearSVC

import looms
from looms.assessment._scoring import ScoreKind, default_scoring, kind_of, smaller_is_better
from looms.estimators._metrics import named_scorer, scorers_of


def test_ranks_are_scored_where_the_estimator_has_them():
    """`test_assess.py` has the other defaults."""
    votes = VotingClassifier([("logistic", LogisticRegression())])
    assert default_scoring(LinearSVC(), [0, 1]) == ["balanced_accuracy", "roc_auc"]
    assert default_scoring(votes, [0, 1]) == ["balanced_accuracy", "accuracy"]


def test_what_an_unfitted_estimator_does_not_show_is_not_refused():
    stack, classes = StackingClassifier([("logistic", LogisticRegression())]), np.arange(9) % 3
    assert not hasattr(stack, "predict_proba")
    assert list(scorers_of("neg_log_loss", stack, classes)) == ["neg_log_loss"]
    assert list(scorers_of("roc_auc", SVC(), classes)) == ["roc_auc"]
    of_pairs = SVC(probability=True, decision_function_shape="ovo")
    for name, model in (("neg_log_loss", LinearSVC()), ("roc_auc", of_pairs)):
        with pytest.raises(ValueError, match=f"'{name}'"):
            scorers_of(name, model, classes)


def share_of_yes(model, X, y):
    return float(np.mean(model.predict(X) == "yes"))


@smaller_is_better
def rate(model, X, y):
    return float(np.mean(model.predict(X) != y))


INF = np.inf


@pytest.mark.parametrize(
    ("scorer", "smaller", "low", "high"),
    [
        (named_scorer("balanced_accuracy"), False, 0, 1),
        (named_scorer("accuracy"), False, 0, 1),
        (named_scorer("rmse"), True, 0, INF),
        (named_scorer("mae"), True, 0, INF),
        (named_scorer("roc_auc"), False, 0, 1),
        (named_scorer("r2"), False, -INF, 1),
        (named_scorer("neg_log_loss"), False, -INF, 0),
        (named_scorer("neg_root_mean_squared_error"), False, -INF, 0),
        (named_scorer("matthews_corrcoef"), False, -INF, INF),
        (make_scorer(mean_absolute_error), True, 0, INF),
        (make_scorer(accuracy_score, normalize=False), False, -INF, INF),
        (share_of_yes, None, -INF, INF),
        (rate, True, -INF, INF),
    ],
)
def test_kinds(scorer, smaller, low, high):
    kind = kind_of(scorer)
    assert (kind.smaller_is_better, kind.low, kind.high) == (smaller, low, high)


@pytest.mark.parametrize(
    ("name", "n"),
    [
        ("accuracy", 60),
        ("f1_micro", 60),
        ("recall_weighted", 60),
        ("balanced_accuracy", 12),
        ("f1_macro", 12),
        ("roc_auc", 12),
        ("recall", 6),
        ("neg_log_loss", 60),
    ],
)
def test_rows_that_a_score_is_a_share_of(name, n):
    assert kind_of(get_scorer(name)).n_rows(60, [6, 54]) == n


@pytest.mark.parametrize("right", [0, 7, 30])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 0.0), (2.0, 5.0)])
def test_interval_of_a_share_is_wilsons(right, low, high):
    share, scale = right / 30, high - low
    error = scale * np.sqrt(share * (1 - share) / 30)
    wilson = stats.binomtest(right, 30).proportion_ci(0.9, method="wilson")
    args = low + scale * share, error, stats.norm.ppf(0.95), 30
    found = ScoreKind(None, low, high).interval(*args)
    assert found == pytest.approx([low + scale * p for p in wilson])


def test_no_share_is_known_better_than_from_its_rows():
    of_less = ScoreKind(None, 0.0, 1.0).interval(0.2, 1e-9, 2.0, 60)
    of_rows = ScoreKind(None, 0.0, 1.0).interval(0.2, np.sqrt(0.2 * 0.8 / 60), 2.0, 60)
    assert of_less == pytest.approx(of_rows)
    assert ScoreKind(None, 0.0, 1.0).interval(1.0, 0.0, 2.0, INF) == (1.0, 1.0)


@pytest.mark.parametrize(("low", "high"), [(0.0, INF), (-INF, 1.0), (-INF, 0.0)])
def test_interval_beside_one_end(low, high):
    end, sign = (low, 1) if np.isfinite(low) else (high, -1)
    found = np.array(ScoreKind(None, low, high).interval(end + sign * 0.5, 0.1, 2.0, 60))
    assert found[0] < found[1]
    logs = np.sort(np.log(sign * (found - end)))
    assert logs == pytest.approx(np.log(0.5) + np.array([-0.4, 0.4]))  # of log 0.5 ± 0.1 / 0.5
    assert ScoreKind(None, low, high).interval(end, 0.0, 2.0, 60) == (end, end)
    widest = ScoreKind(None, low, high).interval(end + sign * 0.5, 1.0, 1e6, 60)
    assert sorted(np.abs(widest)) == [abs(end), INF]


def test_interval_without_ends():
    assert ScoreKind().interval(0.5, 0.1, 2.0, 60) == pytest.approx((0.3, 0.7))


@pytest.mark.parametrize("ends", [(), (0.0,), (0.0, 1.0)])
def test_interval_of_an_unknown_error(ends):
    assert np.isnan(ScoreKind(None, *ends).interval(0.0, np.nan, 2.0, 60)).all()


@pytest.mark.slow
def test_directions_are_told_or_not(two_classes):
    always = lambda model, X, y: float(len(y) > 20)  # noqa: E731  (1 of leave-one-out outputs)
    scoring = {"wrong": rate, "yes": share_of_yes, "right": "accuracy", "always": always}
    model = looms.KernelClassifier(mu=1e-3)
    result = looms.assess(model, *two_classes, 4, 0.2, scoring, random_state=0)
    wrong, unknown, right, _ = map(result.estimate, scoring)
    assert wrong.signed_optimism == -wrong.optimism == pytest.approx(right.signed_optimism)
    assert unknown.smaller_is_better is unknown.signed_optimism is None
    assert "cannot tell the difference of" in result.optimism_text("yes")
    assert "is higher by 1 ± 0 (always)" in result.optimism_text("always")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["shuffle", "bootstrap"])
def test_estimates_are_those_of_the_tables(two_classes, method):
    model = looms.KernelClassifier(mu=1e-3)
    result = looms.assess(model, *two_classes, 20, random_state=0, method=method)
    for name in result.scores:
        found = result.estimate(name, 0.8)
        assert found.value == result.mean[name]
        assert found.standard_error == result.standard_error[name]
        assert [found.low, found.high] == result.interval(0.8).loc[name].tolist()
        assert found.optimism == pytest.approx(result.optimism[name], nan_ok=True)
        assert found.loo == pytest.approx(result.table[f"loo_{name}"].mean(), nan_ok=True)
    with pytest.raises(ValueError, match="'f1'"):
        result.estimate("f1")
