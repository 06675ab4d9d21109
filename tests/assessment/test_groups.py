"""Groups of rows, such as patients measured repeatedly: on one side of every split, and in fits."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.feature_selection import RFECV
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from looms import DuplicatesWarning, KernelClassifier
from looms.assessment import assess, compare
from looms.assessment._assess import stored
from looms.assessment._experiment import Experiment
from looms.estimators._fit_routing import fit_arguments
from looms.folds import GapKFold

NEAREST, BY_GROUPS = KNeighborsClassifier(1), GroupKFold(3)
METHODS = ["shuffle", "kfold", "bootstrap"]


class Recorder(ClassifierMixin, BaseEstimator):
    """Constant class; remembers the groups that it was given."""

    def fit(self, X, y, groups=None):
        self.groups_, self.X_, self.classes_ = groups, X, np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


class Weighted(Recorder):
    """Takes weights too."""

    def fit(self, X, y, sample_weight=None, groups=None):
        return super().fit(X, y, groups)


@pytest.fixture(scope="module")
def patients():
    """40 patients of 8 measurements around a center each, with a random label a patient."""
    rng = np.random.default_rng(0)
    center = rng.normal(size=(40, 3)).repeat(8, axis=0)
    order = rng.permutation(320)
    X = (center + 0.05 * rng.normal(size=center.shape))[order]
    y = rng.permutation(np.arange(40) % 2).repeat(8)[order]
    return X, y, np.array([f"patient {k}" for k in range(40)]).repeat(8)[order]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore:KNeighborsClassifier cannot be given sample_weight")
def test_what_remembers_patients_is_no_better_than_chance(patients, method):
    X, y, groups = patients
    options = {"n_splits": 40, "random_state": 0, "scoring": "balanced_accuracy", "method": method}
    assert assess(NEAREST, X, y, **options).mean["balanced_accuracy"] > 0.98
    result = assess(NEAREST, X, y, groups=groups, **options)
    error = result.standard_error["balanced_accuracy"]
    assert abs(result.mean["balanced_accuracy"] - 0.5) < 2 * error
    assert error > 0.05  # that of 40 patients, not of 320 rows


def fitted_models(estimator, patients, **options):
    """Model of every split, and the numbers of the groups of rows in the order of the labels."""
    X, y, groups = patients
    models = []

    def keep(model, X_test, y_test):
        models.append(model)
        return 0.0

    result = assess(estimator, X, y, 4, scoring=keep, groups=groups, random_state=0, **options)
    assert result.failures == {}
    numbers = np.unique(groups, return_inverse=True)[1].tolist()
    number_of = {row.tobytes(): group for row, group in zip(X, numbers, strict=True)}
    return models, lambda rows: [number_of[row.tobytes()] for row in rows]


@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: make_pipeline("passthrough", m)])
def test_fits_are_given_the_groups_of_their_rows(patients, wrap):
    models, numbers = fitted_models(wrap(Recorder()), patients)
    for model in models:
        last = model[-1] if hasattr(model, "steps") else model
        assert last.groups_.tolist() == numbers(last.X_)
        assert len(last.X_) == 288


def test_resamples_give_the_group_of_every_distinct_row(patients):
    X, y, groups = patients
    given = []

    class Model(Weighted):
        def fit(self, X, y, sample_weight=None, groups=None):
            given.append((len(X), sample_weight, groups))
            return super().fit(X, y, sample_weight, groups)

    assess(Model(), X, y, 3, groups=groups, method="bootstrap", scoring="accuracy", random_state=0)
    for n, weight, labels in given[1:]:
        assert n == len(labels) < 320
        for label in set(labels):  # of one weight, the times that the patient was drawn
            assert len(set(weight[labels == label])) == 1
            assert np.sum(labels == label) == 8
        assert weight.sum() == 320


@pytest.mark.slow
def test_a_search_splits_by_group(patients):
    search = GridSearchCV(NEAREST, {"n_neighbors": [1, 3]}, cv=GroupKFold(3), scoring="accuracy")
    models, _ = fitted_models(search, patients)
    assert max(model.best_score_ for model in models) < 0.7
    in_routing = make_pipeline(StandardScaler(), search)
    with sklearn.config_context(enable_metadata_routing=True):
        models, _ = fitted_models(in_routing, patients)
        assert max(model[-1].best_score_ for model in models) < 0.7


@pytest.mark.slow
def test_leave_one_out_of_a_machine_leaves_out_patients(patients):
    X, y, groups = patients
    options = {"n_splits": 4, "random_state": 0, "scoring": "accuracy"}
    apart, together = (
        assess(KernelClassifier("rbf"), X, y, groups=each, **options).table
        for each in (None, groups)
    )
    assert apart["loo_accuracy"].min() > 0.95
    assert together["loo_accuracy"].max() < 0.8


def test_metadata_routing_asks_what_takes_groups(patients):
    with sklearn.config_context(enable_metadata_routing=True):
        for wants in (True, False):
            models, _ = fitted_models(Recorder().set_fit_request(groups=wants), patients)
            assert [model.groups_ is not None for model in models] == 4 * [wants]
        with pytest.raises(UnsetMetadataPassedError, match=r"groups.*set_fit_request"):
            fitted_models(Recorder(), patients)


@pytest.mark.parametrize(
    ("estimator", "names"),
    [
        (Recorder(), {"groups"}),
        (NEAREST, set()),
        (make_pipeline(StandardScaler(), Recorder()), {"recorder__groups"}),
        (GridSearchCV(NEAREST, {}, cv=BY_GROUPS), {"groups"}),
        (GridSearchCV(NEAREST, {}, cv=GapKFold(3)), {"groups"}),
        (GridSearchCV(NEAREST, {}), set()),  # which would warn that it ignores them
        (GridSearchCV(make_pipeline(Recorder()), {}, cv=3), {"recorder__groups"}),
        (
            GridSearchCV(make_pipeline(Recorder()), {}, cv=BY_GROUPS),
            {"groups", "recorder__groups"},
        ),
        (make_pipeline(GridSearchCV(NEAREST, {}, cv=BY_GROUPS)), {"gridsearchcv__groups"}),
        (TransformedTargetRegressor(Recorder()), {"groups"}),
        (RFECV(NEAREST, cv=BY_GROUPS), {"groups"}),
        (RFECV(make_pipeline(Recorder())), set()),
        (LogisticRegressionCV(), set()),  # which takes any argument, to refuse it
    ],
    ids=lambda value: str(sorted(value)) if isinstance(value, set) else str(value),
)
def test_names_of_the_argument(estimator, names):
    assert set(fit_arguments(estimator, groups=np.arange(3))) == names


@pytest.mark.parametrize("method", METHODS)
def test_groups_and_copies_are_merged(method):
    """A row of group 0 equals one of group 1: the two are on one side."""
    groups = np.repeat(["a", "b", *map(str, range(18))], 5)
    X, y = np.random.default_rng(0).normal(size=(100, 2)), np.tile([0, 1], 50)
    X[5] = X[0]
    options = {"method": method, "random_state": 0, "scoring": "accuracy", "groups": groups}
    for duplicates in ("ignore", "group"):
        experiment = Experiment.of(Recorder(), X, y, 40, duplicates=duplicates, **options)
        tested = [
            groups[experiment.rows(split)[1]] for split in experiment.splits if split.index >= 0
        ]
        apart = [("a" in labels) != ("b" in labels) for labels in tested]
        assert any(apart) == (duplicates == "ignore")


def test_copies_within_a_group_are_no_reason_to_warn():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)).repeat(3, axis=0), rng.integers(0, 2, 100).repeat(3)
    options = {"n_splits": 2, "scoring": "accuracy", "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error", DuplicatesWarning)
        assess(NEAREST, X, y, groups=np.arange(300) // 3, **options)
    with pytest.warns(DuplicatesWarning, match="of 300 rows are duplicates of other rows"):
        assess(NEAREST, X, y, groups=np.arange(300) % 150, **options)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["shuffle", "kfold"])
def test_a_comparison_keeps_groups_together(patients, tmp_path, method):
    X, y, groups = patients
    models = {"one": NEAREST, "line": LogisticRegression()}
    options = {"n_splits": 10, "scoring": "roc_auc", "random_state": 0, "method": method}
    options |= {"groups": groups, "store": tmp_path}
    together = compare(models, X, y, **options)
    assert together.table.loc["one", "roc_auc"] < 0.8
    for name, model in models.items():
        again = stored(model, X, y, **options)
        assert again.table.equals(together.results[name].table)


def test_forward_splits_see_no_later_row():
    """A target that a later row repeats: known to what trains on it, and not ahead of time."""
    rng = np.random.default_rng(0)
    day = np.arange(300)
    X, y = day[:, None] + 0.1 * rng.random((300, 1)), rng.integers(0, 2, 100).repeat(3)
    options = {"scoring": "accuracy", "random_state": 0}
    assert assess(NEAREST, X, y, 10, **options).mean["accuracy"] > 0.7
    result = assess(NEAREST, X, y, 10, 0.05, method="forward", gap=3, **options)
    assert result.mean["accuracy"] == pytest.approx(0.5, abs=0.15)
    assert result.table["n_train"].tolist() == [282 - 15 * k for k in range(10)]
    assert "10 forward splits" in str(result)


def test_groups_that_cannot_be_held_out_are_refused(patients):
    X, y, groups = patients
    for given, said in ((groups[:-1], "groups"), (np.where(y == y[0], "a", groups), "Class")):
        with pytest.raises(ValueError, match=said):
            assess(NEAREST, X, y, groups=given, random_state=0)
