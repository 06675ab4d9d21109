"""Any estimator of scikit-learn as a candidate, with weights and groups, beside fits by hand."""

import inspect

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pairwise import in_turn
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier
from sklearn.compose import (
    TransformedTargetRegressor,
    make_column_transformer,
)
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    StackingRegressor,
    VotingClassifier,
)
from sklearn.feature_selection import RFE, RFECV
from sklearn.linear_model import Lasso, LassoCV, LogisticRegression, LogisticRegressionCV, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    PredefinedSplit,
    StratifiedGroupKFold,
    check_cv,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import RadiusNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import all_estimators
from stacks import stacked_classifier, stacked_regressor

from looms import (
    Intervals,
    KernelClassifier,
    KernelRegressor,
    TabularRegressor,
    assess,
    load,
)
from looms.folds import GapKFold
from looms.kernels import RBF

N = 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * RNG.normal(size=N)
LABELS = (Y > 0.2).astype(int)
WEIGHT = RNG.integers(1, 4, size=N).astype(float)
WEIGHT /= WEIGHT.mean()  # as models scale them
GROUPS = RNG.permutation(np.arange(N) // 4)
NEW = RNG.normal(size=(5, 3))
SCALED_RIDGE = make_pipeline(StandardScaler(), Ridge())

INNER = {"classifier": LogisticRegression(), "regressor": Ridge()}
#: Values with which estimators fit forty rows of three features, and fast.
CHEAP = {
    **{"n_estimators": 3, "random_state": 0, "cv": 2, "n_components": 1, "radius": 9.0},
    **{"voting": "soft", "hidden_layer_sizes": (3,), "max_subpopulation": 50, "Cs": 2},
    **{"thresholds": 5},
}
_AXES = [(kind, name, cls) for kind in INNER for name, cls in all_estimators(type_filter=kind)]
#: Words of those that cannot stand among these candidates, or not with these rows.
REFUSED = {
    **dict.fromkeys(["CategoricalNB", "ComplementNB", "MultinomialNB"], "Negative values in data"),
    **dict.fromkeys(["MultiOutputClassifier", "MultiOutputRegressor"], "at least two dimensions"),
    **dict.fromkeys(["ClassifierChain", "RegressorChain"], "tuple index out of range"),
    **dict.fromkeys(["GammaRegressor", "PoissonRegressor"], "out of the valid range"),
    **{name: "mono-task" for _, name, _ in _AXES if name.startswith("MultiTask")},
    "IsotonicRegression": "1 feature",
    "OutputCodeClassifier": "has neither predict_proba nor decision_function",
}


def made(cls, kind):
    """An estimator, of an inner one if it needs that."""
    takes, inner = inspect.signature(cls).parameters, INNER[kind]
    values = {name: value for name, value in CHEAP.items() if name in takes}
    if "hidden_layer_sizes" in takes:
        values["max_iter"] = 20
    if "estimators" in takes:
        values["estimators"] = [("a", inner), ("b", clone(inner).set_params(tol=1e-5))]
    holds = {"estimator", "base_estimator"} & {*takes} and "n_estimators" not in takes
    if holds and cls.__name__ not in ("RANSACRegressor", "CalibratedClassifierCV"):
        values["estimator"] = inner
    for grid in {"param_grid", "param_distributions"} & {*takes}:
        values[grid] = {"tol": [1e-4, 1e-3]}
    return cls(**values)


def wrapped(estimator, form):
    """The estimator alone, in a pipeline or a search; the prefix of its options in fit."""
    if form == "pipeline":
        pipeline = make_pipeline(StandardScaler(), estimator)
        return pipeline, f"{pipeline.steps[-1][0]}__"
    if form == "search":
        return GridSearchCV(estimator, {}, cv=2), ""
    return estimator, ""


def model_of(kind, candidates, **options):
    """Model of numbers without preparation; its targets."""
    if kind == "classifier":
        return stacked_classifier(candidates, **options), LABELS
    return stacked_regressor(candidates, **options), Y


def values_of(estimator, rows):
    """Outputs of a fitted estimator, by hand."""
    if not hasattr(estimator, "classes_"):
        return estimator.predict(rows).ravel()
    if hasattr(estimator, "predict_proba"):
        return 2.0 * estimator.predict_proba(rows)[:, 1] - 1.0
    return estimator.decision_function(rows)


#: In turn.
WAYS = [
    ("alone", "weights"),
    ("pipeline", "weights"),
    ("search", "groups"),
    ("alone", "nothing"),
    ("pipeline", "groups"),
    ("search", "weights"),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # scikit-learn's own: of convergence, of what is deprecated
@pytest.mark.parametrize(
    ("of", "form", "given"),
    [(of, *way) for of, way in in_turn(_AXES, WAYS)],
    ids=lambda value: value if isinstance(value, str) else value[1],
)
def test_every_estimator_fits_or_says_why_not(of, form, given):
    kind, name, cls = of
    candidate, prefix = wrapped(made(cls, kind), form)
    by_hand, options = {}, {}
    if given == "weights":
        by_hand, options = {f"{prefix}sample_weight": WEIGHT}, {"sample_weight": WEIGHT}
    if given == "groups":
        options = {"groups": GROUPS}
        if form == "search":
            candidate.set_params(cv=GroupKFold(2))
            by_hand = options
    model, y = model_of(kind, [candidate])
    try:
        whole = clone(candidate).fit(X, y, **by_hand)
        expected = values_of(whole, NEW) if name not in REFUSED else None
    except Exception:
        whole = None
    if whole is None or name in REFUSED:
        assert name in REFUSED or given == "weights"
        words = [REFUSED[name]] if name in REFUSED else []
        words += ["takes no sample_weight"] * (given == "weights")
        with pytest.raises(ValueError, match="|".join(words)) as refused:
            model.fit(X, y, **options)
        assert name in str(refused.value)
        assert "\n" not in str(refused.value)
        return
    model.fit(X, y, **options)
    assert_allclose(model._outputs(NEW), expected, rtol=1e-6, atol=1e-9)
    out = next(iter(model.members_[0].units))
    rest = np.delete(np.arange(N), out)
    without = clone(candidate).fit(X[rest], y[rest], **{k: v[rest] for k, v in by_hand.items()})
    found = model.held_out_.outputs[out]
    assert_allclose(found, values_of(without, X[out]), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("candidate", "name", "routing"),
    [
        (TransformedTargetRegressor(SCALED_RIDGE), "ridge__sample_weight", False),
        (
            make_pipeline("passthrough", GridSearchCV(SCALED_RIDGE, {"ridge__alpha": [1.0]})),
            "gridsearchcv__ridge__sample_weight",
            True,
        ),
        (RFE(Ridge(), n_features_to_select=2), "sample_weight", False),
        (StackingRegressor([("a", Ridge()), ("b", Lasso(0.1))], cv=3), "sample_weight", True),
    ],
    ids=["target", "pipeline", "features", "stack"],
)
@pytest.mark.slow
def test_weights_arrive_by_nested_names(candidate, name, routing):
    expected = clone(candidate).fit(X, Y, **{name: WEIGHT}).predict(NEW)
    assert not np.allclose(expected, clone(candidate).fit(X, Y).predict(NEW))
    table = TabularRegressor([candidate], preprocess=None, target="none")
    with config_context(enable_metadata_routing=routing):
        for model in (table, Intervals(candidate, cv=4)):
            model.fit(X, Y, sample_weight=WEIGHT)
            assert_allclose(model.predict(NEW), expected)
            out = next(iter(model.members_[0].units if model is table else model.units_))
            rest = np.delete(np.arange(N), out)
            without = clone(candidate)
            with config_context(enable_metadata_routing=False):
                without.fit(X[rest], Y[rest], **{name: WEIGHT[rest]})
            assert_allclose(model.held_out_.outputs[out], without.predict(X[out]))


def test_with_metadata_routing_all_that_ask_for_weights_get_them():
    ask = {"sample_weight": True}
    with config_context(enable_metadata_routing=True):
        candidate = make_pipeline(
            StandardScaler().set_fit_request(**ask),
            OneVsRestClassifier(LogisticRegression().set_fit_request(**ask)),
        )
        expected = clone(candidate).fit(X, LABELS, sample_weight=WEIGHT).predict_proba(NEW)
        model = stacked_classifier([candidate]).fit(X, LABELS, sample_weight=WEIGHT)
    assert_allclose(model._outputs(NEW), 2.0 * expected[:, 1] - 1.0)
    with pytest.raises(ValueError, match="sample_weight in fit"):
        clone(model).fit(X, LABELS, sample_weight=WEIGHT)


def test_who_asks_for_no_weights_by_routing_is_refused_with_weights():
    with config_context(enable_metadata_routing=True):
        candidate = make_pipeline("passthrough", Ridge().set_fit_request(sample_weight=False))
        for fit in (
            lambda **options: stacked_regressor([candidate]).fit(X, Y, **options),
            lambda **options: Intervals(candidate).fit(X, Y, **options),
            lambda **options: assess(candidate, X, Y, 2, **options),
        ):
            fit()
            with pytest.raises(ValueError, match="sample_weight in fit"):
                fit(sample_weight=WEIGHT)


SEARCH = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0, 10.0]}, cv=GroupKFold(3))
OF_CLASSES = GridSearchCV(
    LogisticRegression(), {"C": [0.01, 1.0]}, cv=StratifiedGroupKFold(2), scoring="neg_log_loss"
)


@pytest.mark.parametrize(
    ("kind", "candidate", "name", "routing"),
    [
        ("regressor", make_pipeline(StandardScaler(), SEARCH), "gridsearchcv__groups", True),
        ("regressor", TransformedTargetRegressor(SEARCH), "groups", False),
        ("regressor", make_pipeline(RFECV(Ridge(), cv=GroupKFold(3)), Ridge()), "rfecv__groups", 0),
        ("regressor", LassoCV(alphas=3, cv=GroupKFold(3)), None, False),
        ("classifier", OF_CLASSES, "groups", True),
    ],
    ids=["pipeline", "target", "step", "by routing", "classes"],
)
@pytest.mark.slow
def test_every_fit_of_what_is_tuned_by_groups_gets_those_of_its_rows(
    kind, candidate, name, routing
):
    def by_hand(rows):
        with config_context(enable_metadata_routing=name is None):
            one = clone(candidate)
            return one.fit(X[rows], y[rows], **{name or "groups": GROUPS[rows]})

    model, y = model_of(kind, [candidate])
    with config_context(enable_metadata_routing=bool(routing)):
        model.fit(X, y, groups=GROUPS)
    (member,) = model.members_
    assert_allclose(model._outputs(NEW), values_of(by_hand(np.arange(N)), NEW))
    for out in member.units:
        rest = np.delete(np.arange(N), out)
        assert_allclose(model.held_out_.outputs[out], values_of(by_hand(rest), X[out]))


@pytest.mark.filterwarnings("ignore")  # scikit-learn's own: of defaults that will change
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "candidate", "prefix"),
    [
        (
            "regressor",
            make_pipeline(StandardScaler(), LassoCV(alphas=9, cv=GroupKFold(3))),
            "lassocv__",
        ),
        ("classifier", LogisticRegressionCV(Cs=3, cv=GroupKFold(3), scoring="neg_log_loss"), ""),
    ],
    ids=["pipeline", "logistic"],
)
def test_weights_reach_what_gets_groups_by_routing(kind, candidate, prefix):
    """As by their names, in fits to the same splits by groups."""
    model, y = model_of(kind, [candidate])
    model.fit(X, y, groups=GROUPS, sample_weight=WEIGHT)
    (member,) = model.members_
    for one, rows in ((member, np.arange(N)), *zip(member.without, member.units, strict=True)):
        rest = rows if one is member else np.delete(np.arange(N), rows)
        splits = list(GroupKFold(3).split(X[rest], y[rest], GROUPS[rest]))
        by_hand = clone(candidate).set_params(**{f"{prefix}cv": splits})
        by_hand.fit(X[rest], y[rest], **{f"{prefix}sample_weight": WEIGHT[rest]})
        assert_allclose(one.values(NEW)[:, 0], values_of(by_hand, NEW))


@pytest.mark.slow
def test_groups_reach_candidates_in_stacks_nested_folds_and_after_updates():
    model = stacked_regressor([SEARCH, "linear"]).fit(X, np.abs(Y), groups=GROUPS)
    assert len(model.members_) == 2
    assert model.evaluate()._nested is not None
    without = next(one for one in model.without([0, 1]).members_ if not one.closed)
    alone = clone(SEARCH).fit(X[2:], np.abs(Y)[2:], groups=GROUPS[2:])
    assert_allclose(without.values(NEW)[:, 0], alone.predict(NEW))


@pytest.mark.parametrize(
    "fit",
    [
        lambda: TabularRegressor([SEARCH, "linear"]).fit(X, Y),
        lambda: Intervals(make_pipeline(StandardScaler(), SEARCH)).fit(X, Y),
        lambda: assess(SEARCH, X, Y),
        lambda: assess(LassoCV(cv=GroupKFold(2)), X, Y, groups=GROUPS),
    ],
    ids=["candidate", "intervals", "assessed", "no routing"],
)
def test_what_is_tuned_by_groups_says_that_it_gets_none(fit):
    with pytest.raises(ValueError, match=r"GroupKFold.* is tuned by groups"):
        fit()


class OnlyPart(Ridge):
    """It fails, or has no numbers, on all rows."""

    def __init__(self, raises=True):
        super().__init__()
        self.raises = raises

    def fit(self, X, y, sample_weight=None):
        if len(y) == N and self.raises:
            raise RuntimeError("Too many rows.\nMuch more.")
        super().fit(X, y, sample_weight)
        self.coef_ = self.coef_ * (np.nan if len(y) == N else 1.0)
        return self


@pytest.mark.filterwarnings("ignore:One or more samples have no neighbors")
@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        (GridSearchCV(Ridge(), {"alpha": [-1]}), "without fold 1 of 5: .*'alpha'"),
        (RadiusNeighborsRegressor(0.5), "without fold 1 of 5: .*NaN"),
        (OnlyPart(), "on all rows: Too many rows.$"),
        (OnlyPart(raises=False), "on all rows: .*NaN"),
    ],
    ids=["search", "neighbors", "all rows", "no numbers"],
)
@pytest.mark.parametrize(
    "model_with",
    [lambda one: stacked_regressor([one], cv=5), lambda one: Intervals(one, cv=5)],
    ids=["candidate", "intervals"],
)
def test_a_failing_fit_is_named_in_one_line(model_with, candidate, words):
    with pytest.raises(ValueError, match=f"^{type(candidate).__name__}.* {words}") as failed:
        model_with(candidate).fit(X, Y)
    assert "\n" not in str(failed.value)
    assert failed.value.__cause__ is not None


@pytest.mark.parametrize(
    "candidate",
    [
        make_pipeline(make_column_transformer((StandardScaler(), lambda X: X.columns)), Ridge()),
        make_pipeline(FunctionTransformer(lambda X: X[["crp"]]), Ridge()),
        GridSearchCV(HistGradientBoostingRegressor(categorical_features=["crp"]), {}),
    ],
    ids=["callable", "function", "search"],
)
def test_candidates_that_choose_columns_by_name_are_told_where_to(candidate):
    table = pd.DataFrame(X, columns=["crp", "age", "dose"])
    with pytest.raises(ValueError, match="preprocess="):
        TabularRegressor([candidate]).fit(table, Y)


TABLE = pd.DataFrame({"size": X[:, 0].round(1), "other": X[:, 1].round(1)})
TABLE["color"] = np.where(X[:, 2] > 0, "red", "blue")
TABLE.loc[::7, ["size", "color"]] = None


class OfColor(RegressorMixin, BaseEstimator):
    """Mean of the targets for each color, from a data frame."""

    def fit(self, X, y):
        colors = X["color"].astype(object).fillna("none")
        self.means_ = {color: float(np.mean(y[colors == color])) for color in set(colors)}
        self.columns_ = X.columns.to_list()
        return self

    def predict(self, X):
        return np.array([self.means_[c] for c in X["color"].astype(object).fillna("none")])


def test_estimators_may_take_the_columns_of_the_table(tmp_path):
    by_color = OfColor()
    model = TabularRegressor([by_color], columns="raw", target="none").fit(TABLE, Y)
    alone, (member,) = clone(by_color).fit(TABLE, Y), model.members_
    assert member.estimator.columns_ == ["size", "other", "color"]
    assert_allclose(model.predict(TABLE), alone.predict(TABLE))
    rest = np.ones(N, dtype=bool)
    rest[next(iter(member.units))] = False
    without = clone(by_color).fit(TABLE[rest], Y[rest]).predict(TABLE[~rest])
    assert_allclose(member.held_out[~rest], without)
    assert np.isfinite(model.evaluate()["rmse"])
    model.save(tmp_path / "model.looms", trusted=[OfColor])
    loaded = load(tmp_path / "model.looms", trusted=[OfColor])
    assert_allclose(loaded.predict(TABLE), alone.predict(TABLE))
    with pytest.raises(ValueError, match="columns='raw'"):
        TabularRegressor(["linear", by_color]).fit(TABLE, Y)
    numbers = TABLE[["other"]]
    with pytest.raises(ValueError, match="cannot undo"):
        TabularRegressor([by_color], preprocess=StandardScaler(), columns="raw").fit(numbers, Y)


def test_auto_stands_among_others():
    model = stacked_regressor(["auto", Ridge(), "rbf"]).fit(X, Y)
    auto = stacked_regressor().fit(X, Y)
    expected = [one.kernel_name for one in auto.candidates_ if one.kernel_name != "rbf"]
    found = [one.kernel_name for one in model.candidates_]
    assert found == [*expected, "Ridge()", "rbf"]
    own = stacked_regressor([KernelRegressor("rbf", mu=0.1), "auto"]).fit(X, Y)
    assert [one.kernel_name for one in own.candidates_] == ["rbf", *expected]
    assert_allclose(stacked_regressor(["auto"]).fit(X, Y).predict(X), auto.predict(X))


SPLITS = [(np.arange(20), np.arange(20, 30))]


@pytest.mark.parametrize(
    "cv",
    [SPLITS, PredefinedSplit([0, 1] * 20), check_cv(SPLITS)],
    ids=["list", "PredefinedSplit", "wrapper"],
)
def test_splits_of_given_rows_are_refused(cv):
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, cv=cv)
    for one in (search, TransformedTargetRegressor(search), RFECV(Ridge(), cv=cv)):
        for model in (stacked_regressor(["linear", one]), Intervals(one)):
            with pytest.raises(ValueError, match="splits of given rows"):
                model.fit(X, Y)


class Silent(RegressorMixin, BaseEstimator):
    """A mean, whose fit returns nothing, and which may give too few predictions."""

    def __init__(self, missing=0):
        self.missing = missing

    def fit(self, X, y):
        self.mean_ = y.mean()

    def predict(self, X):
        return np.full(len(X) - self.missing, self.mean_)


def test_a_fit_may_return_nothing():
    model = stacked_regressor([Silent()]).fit(X, Y)
    assert_allclose(model.predict(NEW), Y.mean())
    assert_allclose(Intervals(Silent()).fit(X, Y).predict(NEW), Y.mean())


UNKEPT = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, refit=False)
TIMED = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=GapKFold(3, time=np.arange(N) + 0.5))


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (stacked_classifier([make_pipeline(StandardScaler(), UNKEPT)]), "set refit=True"),
        (Intervals(GridSearchCV(Ridge(), {"alpha": [1.0]}, refit=False)), "set refit=True"),
        (
            stacked_classifier([make_pipeline(VotingClassifier([("a", LogisticRegression())]))]),
            "set voting='soft'",
        ),
        (stacked_classifier([LogisticRegression]), "candidates must be .*LogisticRegression"),
        (stacked_regressor([3]), "candidates must be .* got 3"),
        (KernelClassifier(RBF), r"give an object, RBF\(\.\.\.\)"),
        (stacked_regressor([Silent(1)]), r"predict gives an array of shape \(7,\) for 8 rows"),
        (Intervals(Silent(1)), r"predict gives an array of shape \(3,\) for 4 rows"),
        (stacked_regressor([TIMED]), "time must hold"),
        (Intervals(Ridge(), cv=2 * [*KFold(2).split(X)]), "more than once"),
        (Intervals(Pipeline([(f"step {k}", StandardScaler()) for k in range(30)])), "no regressor"),
    ],
)
def test_the_reason_is_the_right_one_in_one_line(model, reason):
    with pytest.raises((TypeError, ValueError), match=reason) as caught:
        model.fit(X, LABELS if is_classifier(model) else Y)
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)
    assert ("voting" in reason) == ("voting" in str(caught.value).rpartition(":")[2])
