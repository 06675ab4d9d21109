"""Text, tables and figures of the results."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy import stats
from sklearn.svm import SVC

from looms.diagnostics import deviance, excess_error, goodness_of_fit, influence, left_out_fits


@pytest.fixture(autouse=True)
def _no_window():
    plt.switch_backend("agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def hauls():
    """A sample with named rows of which one is mislabeled."""
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(40, 2)), columns=["lon", "lat"])
    X.index = [f"haul {i + 1}" for i in range(40)]
    y = np.where(X["lon"] > 0, "present", "absent")
    y[X["lon"].argmax()] = "absent"
    return X, y


def test_influence(hauls):
    found = influence(SVC(kernel="linear"), *hauls, alpha=0.01)
    name = hauls[0]["lon"].idxmax()
    assert found.flagged[0] == name
    table = found.table
    assert table.index.tolist() == hauls[0].index.tolist()
    assert table["class"].tolist() == hauls[1].tolist()
    assert set(table.index[table["flagged"]]) == set(found.flagged)
    assert (table["p_value"][table["flagged"]] < 0.01).all()
    assert found.critical_values == pytest.approx(stats.chi2.ppf(0.99, 1))
    assert f"  {name}" in str(found)
    ax = found.plot()
    assert name in [text.get_text() for text in ax.texts]
    assert len(ax.texts) == len(found.flagged)
    assert ax.lines[0].get_ydata()[0] == found.critical_values[0]


@pytest.mark.slow
def test_goodness_of_fit(hauls):
    found = goodness_of_fit(SVC(), *hauls, 39, random_state=0)
    assert found.table["deviance"].tolist() == found.bootstrapped.tolist()
    assert found.table.index.name == "replicate"
    assert f"critical value {found.critical_value:.2f} at level 0.05" in str(found)
    assert found.verdict in str(found)
    ax = found.plot()
    assert [line.get_xdata()[0] for line in ax.lines] == [found.deviance, found.critical_value]
    assert sum(bar.get_height() for bar in ax.patches) == 39


def test_deviance(hauls):
    found = deviance(SVC(), *hauls)
    assert found.table[["deviance", "cv_score"]].sum().tolist() == pytest.approx(
        [found.deviance, found.cv_score]
    )
    assert f"CV score (leave-one-out) {found.cv_score:.2f}" in str(found)


def test_excess_error(hauls):
    found = excess_error(SVC(), *hauls)
    table = found.table
    assert table.index.tolist() == ["absent", "present", "all"]
    assert table.loc["all"].tolist() == pytest.approx(
        [40, found.apparent, found.leave_one_out, found.excess]
    )
    wrong = (found.fits.predicted_without != hauls[1])[hauls[1] == "absent"]
    assert table.loc["absent", "leave_one_out"] == wrong.mean()
    assert f"excess {found.excess:.4f}" in str(found)


@pytest.mark.parametrize(
    ("statistic", "options"),
    [
        (deviance, {}),
        (excess_error, {}),
        (goodness_of_fit, {"n_bootstrap": 19, "random_state": 0}),
        (influence, {"alpha": 0.1}),
    ],
)
def test_results_draw_on_axes_given_or_new(statistic, options, hauls, monkeypatch):
    result = statistic(SVC(), *hauls, **options)
    ax = Figure().subplots()
    assert result.plot(ax) is ax
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    assert result.plot() is plt.gca()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=rf'{type(result).__name__}.plot needs .*"\.\[plot\]"'):
        result.plot()


def test_names_of_flagged_cases_agree_with_the_axis(hauls):
    fits = left_out_fits(SVC(kernel="linear"), *hauls)
    found = influence(fits.named(np.arange(1, len(hauls[1]) + 1)))
    ax = found.plot(Figure().subplots())
    assert [text.xy[0] for text in ax.texts] == found.flagged.tolist()
    assert all(text.get_text() == str(text.xy[0]) for text in ax.texts)
