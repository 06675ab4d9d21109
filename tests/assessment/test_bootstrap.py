"""The .632+ bootstrap by hand."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, r2_score, root_mean_squared_error
from sklearn.neighbors import KNeighborsClassifier

from looms import assess
from looms.assessment._bootstrap import NO_INFORMATION, no_information, plus_632
from looms.assessment._scoring import balanced_error_rate


def test_by_hand():
    # err = .1, Err(1) = .3, gamma = .5: R = .5, .632 estimate .0368 + .1896 = .2264,
    # correction .2 * .368 * .632 * .5 / (1 - .184)
    expected = 0.2264 + 0.2 * 0.368 * 0.632 * 0.5 / 0.816
    assert plus_632("error", 0.1, 0.3, 0.5) == pytest.approx(expected, rel=1e-12)
    assert plus_632("accuracy", 0.9, 0.7, 0.5) == pytest.approx(1 - expected, rel=1e-12)


def test_without_overfitting_it_is_the_632():
    assert plus_632("error", 0.2, 0.2, 0.5) == pytest.approx(0.2)
    assert plus_632("error", 0.3, 0.2, 0.5) == pytest.approx(0.368 * 0.3 + 0.632 * 0.2)
    assert plus_632("error", 0.5, 0.6, 0.4) == pytest.approx(0.368 * 0.5 + 0.632 * 0.6)


def test_full_overfitting_is_the_out_of_bag_error():
    assert plus_632("error", 0.0, 0.5, 0.5) == pytest.approx(0.5)


def test_no_information_is_the_score_over_all_pairs():
    rng = np.random.default_rng(0)
    y, predicted = rng.integers(3, size=40), rng.integers(3, size=40)
    pairs = np.repeat(y, 40), np.tile(predicted, 40)
    found = no_information(dict.fromkeys(NO_INFORMATION), y, predicted)
    assert found["accuracy"] == pytest.approx(accuracy_score(*pairs))
    assert found["error"] == pytest.approx(1 - accuracy_score(*pairs))
    assert found["ber"] == pytest.approx(balanced_error_rate(*pairs))
    assert found["auc"] == 0.5
    y, f = rng.normal(size=40), rng.normal(1.0, size=40)
    pairs = np.repeat(y, 40), np.tile(f, 40)
    found = no_information({"rmse": None, "r2": None}, y, f)
    assert found["rmse"] == pytest.approx(root_mean_squared_error(*pairs))
    assert found["r2"] == pytest.approx(r2_score(*pairs))


def test_assessment_puts_them_together(two_classes):
    X, y = two_classes
    nearest = KNeighborsClassifier(1)
    result = assess(
        nearest, X, y, 20, scoring=["error", "accuracy"], method="bootstrap", random_state=0
    )
    assert result.whole.scores["error"] == 0.0
    out_of_bag = result.table["error"].mean()
    expected = plus_632("error", 0.0, out_of_bag, result.whole.no_information["error"])
    assert 0.632 * out_of_bag < result.mean["error"] <= out_of_bag
    assert result.mean["error"] == pytest.approx(expected)
    assert result.mean["accuracy"] == pytest.approx(1 - expected)
    interval = result.interval()
    assert interval.loc["error", "low"] < expected < interval.loc["error", "high"]
    assert "20 bootstrap resamples" in result.summary()


def test_scores_without_a_definition(two_classes):
    with pytest.raises(ValueError, match=r"not for f1_macro, neg_log_loss; .*shuffle"):
        assess(
            KNeighborsClassifier(),
            *two_classes,
            scoring=["error", "f1_macro", "neg_log_loss"],
            method="bootstrap",
        )


def test_several_targets_are_refused():
    with pytest.raises(ValueError, match="takes one target"):
        assess(Ridge(), np.eye(9), np.eye(9), method="bootstrap")
