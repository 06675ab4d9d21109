"""Models of tables: columns prepared inside, and again in every fold that is scored."""

import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from evaluated import evaluated
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from pairwise import in_turn
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stacks import stacked_classifier

import looms
from looms import (
    ColumnsWarning,
    KernelClassifier,
    KernelRegressor,
    TabularClassifier,
    TabularRegressor,
)
from looms.conformal import jackknife_minmax, jackknife_plus
from looms.estimators._selection import cost_on
from looms.folds import GapKFold
from looms.held_out import HeldOut
from looms.selection._target_transforms import TARGET_TRANSFORMS, best_transform, smeared_means
from looms.tables import TablePreprocessor

N, M = 90, 15


def made(n, seed):
    """Columns of numbers with gaps, categories, dates and flags, two classes, and a number."""
    rng = np.random.default_rng(seed)
    size, color = rng.normal(size=n), rng.choice(["red", "blue", "green"], n)
    table = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.15, np.nan, size),
            "color": color,
            "day": pd.date_range("2021-03-01", periods=n).astype(str),
            "flag": rng.random(n) < 0.5,
        }
    )
    signal = size + (color == "red") + 0.3 * rng.normal(size=n)
    return table, np.where(signal > 0.4, "yes", "no"), np.exp(0.5 * signal)


def counted(n, seed):
    """Columns, and counts of many zeros and a heavy tail."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    mean = np.exp(1.2 * X[:, 0] - 0.5) * (rng.random(n) < 0.7)
    return X, rng.poisson(rng.gamma(0.7, mean / 0.7)).astype(float)


TABLE, LABELS, NUMBERS = made(N, 0)
NEW, *_ = made(M, 1)
FEW = ["linear", "rbf"]


@pytest.fixture(scope="module")
def classifier():
    return evaluated(TabularClassifier(FEW).fit(TABLE, LABELS), nested=True)


@pytest.fixture(scope="module")
def regressor():
    return evaluated(TabularRegressor(FEW).fit(TABLE, NUMBERS), nested=True)


class TestFit:
    def test_is_that_of_candidates_on_prepared_columns(self, classifier):
        before = TablePreprocessor().fit(TABLE)
        by_hand = stacked_classifier(FEW).fit(before.transform(TABLE), LABELS)
        X = before.transform(NEW)
        assert_array_equal(classifier.predict_proba(NEW), by_hand.predict_proba(X))
        assert_array_equal(classifier.predict(NEW), by_hand.predict(X))
        assert_array_equal(classifier.decision_function(NEW), by_hand.decision_function(X))
        assert_array_equal(classifier.loo_.outputs, by_hand.loo_.outputs)

    def test_takes_arrays_and_numbers_as_they_are(self, classifier):
        objects = TabularClassifier(FEW).fit(TABLE.to_numpy(dtype=object), LABELS)
        expected = classifier.predict_proba(NEW)
        assert_array_equal(objects.predict_proba(NEW.to_numpy(dtype=object)), expected)
        X = TablePreprocessor().fit_transform(TABLE)
        plain = TabularClassifier("rbf", preprocess=None).fit(X, LABELS)
        machine = KernelClassifier().fit(X, LABELS)
        assert_array_equal(plain.predict_proba(X), machine.predict_proba(X))
        scaled = TabularClassifier(["linear"], preprocess=StandardScaler()).fit(X, LABELS)
        assert_array_equal(scaled.X_fit_, StandardScaler().fit_transform(X))

    def test_what_is_no_table(self, classifier):
        for X, y in ((TABLE, "target"), ("t.csv", LABELS), (dict(TABLE), LABELS), (Path(), LABELS)):
            with pytest.raises(TypeError):
                TabularClassifier(FEW).fit(X, y)
        for X in ("table.csv", Path("table.csv"), dict(TABLE)):
            for use in (classifier.predict, classifier.predictions, classifier.predict_set):
                with pytest.raises(TypeError, match="X must be a table"):
                    use(X)

    @pytest.mark.parametrize(
        ("names", "problem"),
        [
            ({"color": "Color "}, r"missing: 'color' \('Color ' is there\)"),
            ({name: f"x{k}" for k, name in enumerate(TABLE)}, "none of .* the table has 'x0'"),
        ],
    )
    def test_columns_that_a_table_lacks(self, classifier, names, problem):
        with pytest.raises(ValueError, match=problem):
            classifier.predict(NEW.rename(columns=names))

    def test_names_of_columns_are_kept_as_text(self):
        """The advice of the FAQ on columns in another order."""
        table = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)))
        named = table.set_axis(table.columns.astype(str), axis=1)
        for model in (TabularRegressor(["linear"], target="none"), KernelRegressor(mu=0.1)):
            model.fit(named, table[0])
            turned = named[["2", "0", "1"]]
            assert_array_equal(model.predict(turned[model.feature_names_in_]), model.predict(named))
        numbered = TabularRegressor(["linear"], target="none").fit(table, table[0])
        assert_array_equal(numbered.predict(table[[2, 0, 1]]), numbered.predict(table))
        assert numbered.feature_names_in_.tolist() == ["0", "1", "2"]

    def test_verbose_tells_candidates_and_folds(self, capsys):
        model = TabularClassifier(["linear"], verbose=True).fit(TABLE, LABELS)
        assert "candidate 1 of 1: linear" in capsys.readouterr().err
        model.evaluate()
        assert "fold 10 of 10" in capsys.readouterr().err
        clone(model).set_params(verbose=False).fit(TABLE, LABELS)
        assert not capsys.readouterr().err
        for verbose in ("yes", -1, None, 0.5):
            with pytest.raises(ValueError, match="verbose"):
                clone(model).set_params(verbose=verbose).fit(TABLE, LABELS)

    @pytest.mark.parametrize("kind", [TabularClassifier, KernelClassifier, TabularRegressor])
    def test_says_where_the_target_has_gaps(self, kind):
        gaps, rows = np.isin(range(N), [4, 6]), TABLE[["flag"]].astype(float)
        if kind is TabularRegressor:
            y = pd.Series(np.where(gaps, np.nan, NUMBERS))
        else:
            y = pd.Series(LABELS, dtype="string").where(~gaps)
        for named, first in ((y, "4"), (y.set_axis([f"P{k}" for k in range(N)]), "P4")):
            with pytest.raises(ValueError, match=f"2 of 90 rows, the first is row {first}"):
                kind().fit(rows, named)

    def test_rows_of_weight_zero_do_not_count(self):
        weight = np.ones(N)
        weight[60:] = 0
        odd = TABLE.copy()
        odd.loc[60:, "size"] = 1e6
        model = TabularClassifier(["linear"]).fit(odd, LABELS, sample_weight=weight)
        part = TabularClassifier(["linear"]).fit(TABLE[:60], LABELS[:60])
        assert_allclose(model.predict_proba(NEW), part.predict_proba(NEW), atol=1e-9)

    def test_auto_is_four_kernels_and_three_for_sparse_rows(self):
        X = sparse.random(40, 8, density=0.3, format="csr", random_state=0)
        y = X.toarray()[:, :3].sum(axis=1) > 0.5
        names = ["linear", "rbf", "ranked_laplacian", "weighted_matern12"]
        for rows, expected in ((X.toarray(), names), (X, [*names[:2], names[3]])):
            model = TabularClassifier(cv=3).fit(rows, y)
            assert [one.kernel_name for one in model.candidates_] == expected

    def test_of_many_rows_weights_come_from_held_out_outputs_of_the_fit(self, monkeypatch):
        monkeypatch.setattr("looms.estimators._selection.MOST_IN_FOLDS", N - 1)
        model = TabularRegressor(FEW, target="none").fit(TABLE, NUMBERS)
        X = model.preprocessor_.transform(TABLE)
        held_out = [KernelRegressor(kernel).fit(X, NUMBERS).loo_.outputs for kernel in FEW]
        weights = model.candidate_weights_
        stacked = weights @ np.array(held_out)
        assert_allclose(model.held_out_.outputs, stacked)
        for w in np.linspace(0, 1, 21):
            other = w * held_out[0] + (1 - w) * held_out[1]
            assert np.mean((NUMBERS - stacked) ** 2) <= np.mean((NUMBERS - other) ** 2) + 1e-12
        assert "optimistic" in model.evaluate(nested=False).kind

    @pytest.mark.parametrize("n_rows", [6000, 20_000, 100_000])
    def test_times_are_told_within_a_factor_of_two(self, n_rows):
        """Of the default call, at the speed of the machine that timed it."""
        table = Path(__file__).parents[2] / "benchmarks" / "results" / "default_call.csv"
        header, *rows = table.read_text(encoding="utf-8").splitlines()
        speed = 1e9 * float(re.search(r"dgemm (\d+) Gflop/s", header)[1])
        took = {int(row.split(",")[0]): float(row.split(",")[1]) for row in rows[1:]}
        X = np.broadcast_to(0.0, (n_rows, 11))
        told = cost_on(stacked_classifier(), X)[0] / speed
        assert 0.5 < told / took[n_rows] < 2.0

    @pytest.mark.parametrize(
        ("model", "landmarks"),
        [
            (KernelClassifier(mu=0.1), True),
            (KernelClassifier(loss="hinge", mu=1.0), False),
            (KernelClassifier("precomputed", mu=0.1), False),
            (TabularClassifier(FEW), True),
        ],
        ids=["kernel", "hinge", "matrix", "table"],
    )
    @pytest.mark.filterwarnings("ignore::looms.OneClassWarning", "ignore::looms.BoundWarning")
    def test_the_advice_is_what_the_model_can_do(self, monkeypatch, model, landmarks):
        monkeypatch.setattr("looms.estimators._warnings._LEAST_OPERATIONS", 0.0)
        monkeypatch.setattr("looms.estimators._warnings._MOST_SECONDS", 0.0)
        weight = np.arange(N) % 3 > 0
        with pytest.warns(UserWarning, match=f"{weight.sum()} rows will take") as caught:
            model.fit(np.eye(N), LABELS, sample_weight=weight)
        assert any("landmarks" in str(each.message) for each in caught) == landmarks

    def test_its_time_counts_the_candidates_and_the_fits_of_transforms(self, monkeypatch):
        monkeypatch.setattr("looms.estimators._warnings._LEAST_OPERATIONS", 0.0)
        monkeypatch.setattr("looms.estimators._warnings.operations_per_second", lambda: 1.0)

        def minutes(candidates, target):
            model = TabularRegressor(candidates, target=target)
            with warnings.catch_warnings(record=True, action="always") as caught:
                model.fit(TABLE, np.exp(NUMBERS))
            (told,) = [str(each.message) for each in caught if "will take" in str(each.message)]
            return float(re.search(r"some (\d+) minutes", told)[1])

        once = minutes(["rbf"], "none")
        assert minutes(["rbf"], ["none", "log"]) == pytest.approx(3 * once, rel=1e-3)
        assert minutes(["rbf", "ard"], "none") == pytest.approx(2 * once, rel=1e-3)

    @pytest.mark.parametrize(
        ("parameters", "words"),
        [
            ({"candidates": []}, "candidates"),
            ({"candidates": None}, "candidates"),
            ({"candidates": "gauss"}, "gauss"),
            ({"candidates": "linear,rbf"}, "list"),
            ({"candidates": ["rbf", "gauss"]}, "gauss"),
            ({"candidates": ["rbf", "linear", "rbf"]}, "'rbf'"),
            ({"candidates": ["rbf", KernelRegressor()]}, "KernelClassifier"),
            ({"candidates": ["rbf", KernelClassifier(fit_intercept=False)]}, "intercepts"),
            ({"candidates": ["precomputed", "rbf"], "preprocess": None}, "same X"),
            ({"n_jobs": 0}, "n_jobs=0"),
            ({"combine": "sum"}, "combine"),
            ({"threshold": 0.0}, "probability"),
            ({"pos_label": "maybe"}, "pos_label"),
            ({"preprocess": "some"}, "preprocess"),
        ],
    )
    def test_refuses_what_it_does_not_know(self, parameters, words):
        rows = TABLE if "preprocess" not in parameters else np.eye(N)
        with pytest.raises(ValueError, match=words):
            TabularClassifier(**({"candidates": FEW} | parameters)).fit(rows, LABELS)

    def test_what_there_is_nothing_to_learn_from(self, classifier):
        for use in (
            lambda: clone(classifier).fit(TABLE[:0], LABELS[:0]),
            lambda: classifier.predict(TABLE[:0]),
        ):
            with pytest.raises(ValueError, match="no rows"):
                use()
        with pytest.raises(ValueError, match=r"groups=table\['color'\]"):
            clone(classifier).fit(TABLE, LABELS, groups="color")
        with pytest.warns(UserWarning, match="only one value, 5"):
            TabularRegressor(["linear"]).fit(TABLE, np.full(N, 5))


class TestColumns:
    """One warning of what asks for a change of the table, and none of what is harmless."""

    X = np.random.default_rng(3).normal(size=40)
    Y = np.where(X + 0.5 * np.sin(40 * X) > 0.1, "yes", "no")

    def told_of(self, preprocess="auto", y=Y, **columns):
        table = pd.DataFrame({"x": self.X, **columns})
        kind = TabularClassifier if y is self.Y else TabularRegressor
        with warnings.catch_warnings(record=True, action="always") as caught:
            kind(["linear"], preprocess=preprocess).fit(table, y)
        return [str(one.message) for one in caught if one.category is ColumnsWarning]

    def test_are_told_in_one_warning(self):
        words = [str(k % 7) if k else "none" for k in range(40)]
        unclear = [f"0{1 + k % 9}/0{1 + k % 7}/2021" for k in range(40)]
        short = [f"{1 + k % 28}.{1 + k % 12}.{10 + k}" for k in range(40)]
        names = np.arange(1, 41)
        (told,) = self.told_of(dose=words, day=unclear, born=short, name=names)
        for words in (
            "'born': ",
            "'1.1.10'",
            "'none' in row 0",
            "'day': ",
            "'01/01/2021'",
            "'name'",
        ):
            assert words in told

    def test_a_column_of_the_groups_is_told(self):
        patient = [f"P{k // 2}" for k in range(40)]
        gaps = pd.array([0, pd.NA] * 20, dtype="Int64")
        table = pd.DataFrame({"x": self.X, "patient": patient, "gaps": gaps})
        for columns, groups, told in (
            (["x", "gaps", "patient"], patient, True),
            (["x", "gaps"], np.arange(40) // 2, False),  # of which the first is that of the gaps
            (["x", "patient"], None, False),
            (["x"], patient, False),
        ):
            with warnings.catch_warnings(record=True, action="always") as caught:
                TabularClassifier(["linear"]).fit(table[columns], self.Y, groups=groups)
            messages = [str(one.message) for one in caught]
            assert any("'patient' holds the groups" in text for text in messages) == told

    def test_rows_of_weight_zero_predict_nothing(self):
        x = np.abs(self.X)
        y = np.where(np.arange(40) < 30, x, -x)
        table = sparse.csr_array(np.column_stack([x, np.roll(x, 1)]))
        weight = (np.arange(40) < 30).astype(float)
        for given, told in ((weight, True), (None, False)):
            with warnings.catch_warnings(record=True, action="always") as caught:
                TabularRegressor(["rbf"], target="none").fit(table, y, sample_weight=given)
            assert any("alone predicts" in str(one.message) for one in caught) == told

    @pytest.mark.parametrize("kind", [TabularClassifier, TabularRegressor])
    def test_evaluation_tells_nothing_again(self, kind):
        rare = ["a", "b"] * 19 + ["only here", "and here"]
        table = pd.DataFrame({"x": self.X, "rare": rare})
        classes = kind is TabularClassifier
        model = kind(["linear"]).fit(
            table, self.Y if classes else 10 + self.X + np.sin(40 * self.X)
        )
        model.evaluate()
        predict = model.predict_set if classes else model.predict_interval
        assert predict(table).shape == (40, 2)


class TestEvaluate:
    def test_repeats_everything_without_each_fold(self, classifier, three_folds):
        scores = classifier.evaluate()
        units, rows = scores._nested.units, np.arange(N)
        p = np.empty((N, 2))
        for left, out in zip(units, units.tested_by, strict=True):
            rest = np.delete(rows, left)
            # Class proportions are those of all rows.
            factor = np.ones(N)
            for label in ("no", "yes"):
                own = label == LABELS
                factor[own] = own.sum() / own[rest].sum()
            weight = factor[rest] * (len(rest) / factor[rest].sum())
            model = TabularClassifier(FEW).fit(TABLE.iloc[rest], LABELS[rest], weight)
            p[out] = model.predict_proba(TABLE.iloc[out])
        assert scores["log_loss"] == pytest.approx(log_loss(LABELS, p), rel=1e-6)
        assert scores["accuracy"] == pytest.approx(np.mean((p[:, 1] > 0.5) == (LABELS == "yes")))
        assert scores.kind == "nested 5-fold"
        assert not scores.optimistic

    def test_sets_and_intervals_warn_of_new_values(self, classifier, regressor):
        new = NEW.assign(color="violet")
        with pytest.warns(ColumnsWarning, match="violet") as told:
            classifier.predict_set(new)
        assert len(told) == 1
        with pytest.warns(ColumnsWarning, match="violet") as told:
            regressor.predict_interval(new)
        assert len(told) == 1

    def test_needs_the_rows(self):
        model = TabularClassifier(["linear"]).fit(TABLE, LABELS)
        copied = pickle.loads(pickle.dumps(model))
        with pytest.raises(ValueError, match="does not hold the training rows"):
            copied.evaluate()
        assert copied.evaluate(nested=False)["accuracy"] > 0.5


class TestIntervals:
    def test_minmax_is_of_the_models_without_each_fold(self, regressor):
        nested = regressor._scores.get("nested")._nested
        folds = zip(nested.units, nested.models, strict=True)
        own = [
            (g, np.abs(g.forward(NUMBERS[rows]) - one.outputs_of_table(TABLE.iloc[rows])), one)
            for rows, one in folds
            for g in [one.outcome.function]
        ]
        spreads = [np.std(g.forward(NUMBERS)) for g, *_ in own]
        relative = [r / spread for (_, r, _), spread in zip(own, spreads, strict=True)]
        q = np.sort(np.concatenate(relative))[int(np.ceil(0.8 * (N + 1))) - 1]
        ends = [
            [g.inverse(one.outputs_of_table(NEW) + sign * q * spread) for sign in (-1, 1)]
            for (g, _, one), spread in zip(own, spreads, strict=True)
        ]
        lower, upper = np.min(ends, axis=0)[0], np.max(ends, axis=0)[1]
        found = regressor.predict_interval(NEW, 0.8, method="minmax")
        assert_allclose(found, np.stack([lower, upper], axis=-1))
        plus = regressor.predict_interval(NEW, 0.8)
        assert (found[:, 0] <= plus[:, 0]).all()
        assert (found[:, 1] >= plus[:, 1]).all()
        assert (np.diff(found) > np.diff(plus)).any()

    def test_minmax_of_folds_with_other_transforms(self):
        X, y = load_diabetes(return_X_y=True)
        model = evaluated(TabularRegressor(["linear"]).fit(X[:80], y[:80]), nested=True)
        nested = model._scores.get("nested")._nested
        assert {one.outcome.transform for one in nested.models} > {"log"}
        plus, minmax = (
            np.diff(model.predict_interval(X[80:], method=method)) for method in ("plus", "minmax")
        )
        assert (minmax >= plus).all()
        assert np.median(minmax) < 1.5 * np.median(plus)

    def test_scaled_says_that_it_takes_the_models_of_the_fit(self):
        model = evaluated(TabularRegressor(["linear"]).fit(TABLE, NUMBERS), nested=True)
        with pytest.raises(NotFittedError, match=r"which evaluate\(nested=False\) makes"):
            model.predict_interval(NEW, 0.8, method="scaled")
        model.evaluate(nested=False)
        assert model.predict_interval(NEW, 0.8, method="scaled").shape == (M, 2)


class TestTarget:
    @pytest.mark.parametrize(
        ("excess", "below", "together", "chosen"),
        [
            (0.04, True, 1, "sqrt"),
            (0.06, True, 1, "none"),
            (0.06, True, 4, "sqrt"),
            (0.04, False, 1, "none"),
        ],
    )
    def test_transform_keeps_the_range_if_it_is_as_good_within_noise(
        self, excess, below, together, chosen
    ):
        """The squared errors differ by 0.5 more or less than the excess: a standard error of 0.05,
        of groups of four rows 0.1.
        """
        groups = np.arange(100) // together
        squares = 1 + excess + 0.5 * (-1.0) ** groups
        y, plain = np.where(np.arange(100), 4.0, 0.0), np.full((1, 100), 5.0)
        plain[0, 0] = -1.0 if below else 1.0
        predicted = {"none": plain, "sqrt": (y + np.sqrt(squares))[None]}
        predicted["sqrt"][0, 0] = np.sqrt(squares[0] - below)  # "none" counts as zero there
        assert best_transform(y, predicted, np.ones(100), groups)[0] == chosen

    def test_transforms_are_compared_on_some_of_many_rows(self, monkeypatch):
        def errors(cv=None, seed=0, **options):
            model = TabularRegressor("linear", cv=cv, random_state=seed)
            return model.fit(TABLE, NUMBERS, **options).transforms_

        calls = {
            "rows": {},
            "folds of six groups": {"groups": np.arange(N) % 6, "cv": 5},
            "rows with weight": {"sample_weight": np.arange(N) % 4},  # no more than are drawn
            "folds of the rows": {"cv": np.arange(N) % 5},
            "as many folds as rows": {"cv": N},
        }
        on_all = {name: errors(**options) for name, options in calls.items()}
        assert set(on_all["rows"]) == {"none", "sqrt", "log"}
        monkeypatch.setattr("looms.estimators._tabular_regressor.ROWS_OF_TRANSFORMS", 3 * N // 4)
        on_some = {name: errors(**options) for name, options in calls.items()}
        assert [name for name in calls if on_all[name] == on_some[name]] == [*calls][2:]
        assert errors() == on_some["rows"] != errors(seed=1)

    @pytest.mark.parametrize("name", ["sqrt", "log", "log1p"])
    @pytest.mark.parametrize("level", [0.0, 900.0], ids=["usual", "far residuals"])
    def test_smeared_means_are_sums_over_residuals(self, name, level):
        """Also where outputs and residuals are far from each other, and from the range."""
        rng, transform = np.random.default_rng(0), TARGET_TRANSFORMS[name]
        residuals = rng.normal(size=80)
        weight = np.arange(80) % 3
        held_out = HeldOut(residuals - level, np.zeros(80), weight)
        outputs = np.append(2.0 * rng.normal(size=50), [-50.0, 8.0])
        each = transform.inverse(outputs[:, None] + residuals)
        found = smeared_means(transform, outputs + level, held_out)
        expected = np.average(each, axis=1, weights=weight)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
        assert (found >= 0.0).all()

    def test_is_transformed_back_by_smearing(self):
        model = TabularRegressor(["linear"], target="sqrt").fit(TABLE, NUMBERS)
        by_hand = TabularRegressor(["linear"], target="none").fit(TABLE, np.sqrt(NUMBERS))
        residuals = by_hand.held_out_.residuals
        means = [np.mean(np.maximum(f + residuals, 0) ** 2) for f in by_hand.predict(NEW)]
        assert_allclose(model.predict(NEW), means, rtol=1e-9)

    def test_held_out_predictions_leave_out_their_own_residual(self):
        model = TabularRegressor(["linear"], target="log").fit(TABLE, NUMBERS)
        _, f, _ = held_out = model.fitted_.held_out
        for i in (0, 7):
            others = np.delete(held_out.residuals, i)
            assert model.held_out_.outputs[i] == pytest.approx(np.mean(np.exp(f[i] + others)))

    @pytest.mark.parametrize(
        ("target", "y", "words"),
        [
            ("log", NUMBERS - NUMBERS.min(), "'log'"),
            ("cube", NUMBERS, "'cube'"),
            ("log", np.column_stack([NUMBERS, NUMBERS]), "one target"),
            ("none", pd.date_range("2021-01-01", periods=N), "dates"),
            ("none", [str(k) for k in range(N)], "'0'"),
            ("none", LABELS, "TabularClassifier"),
        ],
    )
    def test_refuses_what_the_targets_do_not_admit(self, target, y, words):
        with pytest.raises(ValueError, match=words):
            TabularRegressor(["linear"], target=target).fit(TABLE, y)

    @pytest.mark.slow
    def test_counts_are_never_predicted_negative(self):
        X, y = counted(200, 0)
        model = TabularRegressor(["linear"]).fit(X[:120], y[:120])
        plain = TabularRegressor(["linear"], target="none").fit(X[:120], y[:120])
        assert set(model.transforms_) == {"none", "sqrt", "log1p"}
        assert (plain.predict(X[120:]) < 0).any()
        assert (model.predict(X[120:]) >= 0).all()
        for scores in (model.evaluate(), model.evaluate(nested=False)):
            assert (scores.predictions.outputs >= 0).all()
        for method in ("plus", "minmax", "scaled"):
            assert (model.predict_interval(X[120:], method=method) >= 0).all()

    def test_plain_values_below_zero_count_as_zero_in_predictions_intervals_and_scores(self):
        """If the plain target is clearly better, its model is kept, cut off at zero."""
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(150, 2))
        y = np.maximum(10 * X[:, 0] - 1 + 0.3 * rng.normal(size=150), 0.0)
        model = TabularRegressor(["linear"]).fit(X[:90], y[:90])
        plain = TabularRegressor(["linear"], target="none").fit(X[:90], y[:90])
        assert (model.transform_, plain.transforms_) == ("none", {})
        assert (plain.held_out_.outputs < 0).any()
        for one, other in (
            (model.predict, plain.predict),
            (model.predict_interval, plain.predict_interval),
        ):
            model.evaluate(nested=False)
            plain.evaluate(nested=False)
            assert (other(X[90:]) < 0).any()
            assert_array_equal(one(X[90:]), np.maximum(other(X[90:]), 0))
        cut = np.maximum(plain.held_out_.outputs, 0)
        assert_array_equal(model.held_out_.outputs, cut)
        error = np.sqrt(np.mean((y[:90] - cut) ** 2))
        assert model.evaluate(nested=False)["rmse"] == pytest.approx(error)
        for changed in (model.without([3, 7]), pickle.loads(pickle.dumps(model))):
            assert (changed.predict(X[90:]) >= 0).all()
        with pytest.raises(ValueError, match="nonnegative targets"):
            model.with_rows(X[90:], -1 - y[90:])

    def test_models_without_a_fold_take_transforms_that_all_rows_admit(self):
        """The rows below zero are in one group, without which all targets are positive."""
        rng = np.random.default_rng(0)
        a, rows, n_negative = rng.normal(size=40), np.arange(40), 6
        y = np.exp(2 * a + 0.1 * rng.normal(size=40))
        y[:n_negative] *= -1
        groups = np.maximum(rows - n_negative + 1, 0)
        table = pd.DataFrame({"a": a})
        model = TabularRegressor(["linear"]).fit(table, y, groups=groups)
        nested = model.evaluate()._nested
        assert {one.outcome.transform for one in nested.models} == {"none"}

        refits, new = [], pd.DataFrame({"a": np.linspace(-2, 2, 7)})
        for out in nested.units:
            rest = np.delete(rows, out)
            plain = TabularRegressor(["linear"], target="none")
            refits.append(plain.fit(table.iloc[rest], y[rest], groups=groups[rest]))
        own = [refits[k] for k in nested.units.own]
        r = [abs(y[i] - one.predict(table.iloc[[i]])[0]) for i, one in enumerate(own)]
        F = np.stack([one.predict(new) for one in own], axis=1)
        for method, intervals in (("plus", jackknife_plus), ("minmax", jackknife_minmax)):
            found = model.predict_interval(new, 0.8, method=method)
            assert_allclose(found, intervals(r, F, 0.8), rtol=1e-6)


def test_columns_that_move_with_windows_of_time_are_said():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "day": pd.date_range("2021-03-01", periods=N),
            "left": 200.0 - np.arange(N) // 2,
            "born": rng.permutation(pd.date_range("1950-01-01", periods=N)),
            "season": np.sin(np.arange(N) / 8),
            "after": np.arange(N) > N / 2,
        }
    )
    y = table["season"] + 0.3 * rng.normal(size=N)

    def told(rows=slice(None), **options):
        with warnings.catch_warnings(record=True, action="always") as caught:
            TabularRegressor("linear", **options).fit(table.iloc[rows], y.iloc[rows])
        return [str(one.message) for one in caught if one.category is ColumnsWarning]

    (text,) = told(cv=GapKFold(5, gap=2))
    assert text.startswith("'day', 'left': later rows have values beyond all of the fit")
    mixed = rng.permutation(N)
    (text,) = told(mixed, cv=GapKFold(5, time=table["day"].to_numpy()[mixed]))
    assert text.startswith("'day', 'left': later rows")
    kinds = TablePreprocessor().fit(table).kinds_
    assert told() == told(cv=5) == told(mixed, cv=GapKFold(5)) == []
    assert told(cv=GapKFold(5), preprocess=TablePreprocessor(kinds=kinds)) == []


class TestChanged:
    def test_without_rows_nothing_was_selected(self, classifier):
        fewer = classifier.without([0])
        for name in ("candidates_", "cv_results_", "best_index_"):
            with pytest.raises(AttributeError, match=f"TabularClassifier has no {name}, since"):
                getattr(fewer, name)
        assert_array_equal(fewer.candidate_weights_, classifier.candidate_weights_)


def test_parameters_are_few():
    for kind in (TabularClassifier, TabularRegressor, KernelClassifier, KernelRegressor):
        assert len(kind._get_param_names()) <= 14


def test_a_kernel_matrix_is_cut_in_rows_and_columns():
    X = np.random.default_rng(0).normal(size=(40, 3))
    y, K, new = np.exp(X[:, 0]), X @ X.T, X[:4] + 0.1
    pair = [
        (TabularRegressor(["precomputed"], preprocess=None).fit(K, y), new @ X.T),
        (TabularRegressor(["linear"], preprocess=None).fit(X, y), new),
    ]
    scores, intervals = [], []
    for model, rows in pair:
        scores.append([*model.evaluate().values()])
        intervals.append(model.predict_interval(rows))
    assert_allclose(*scores, rtol=1e-6)
    assert_allclose(*intervals, rtol=1e-6)
    classes = TabularClassifier(["precomputed"], preprocess=None)
    assert cross_val_score(classes, K, y > 1, cv=3).mean() > 0.9
    assert classes.fit(K, y > 1).evaluate()["accuracy"] > 0.9
    assert classes.predict_set(new @ X.T).shape == (4, 2)


def test_a_splitter_is_asked_once():
    model = TabularClassifier(FEW, cv=KFold(5, shuffle=True)).fit(TABLE, LABELS)
    assert_array_equal(model.units_.codes, model.choice_units_.codes)


def test_workers_have_the_configuration_of_scikit_learn():
    """Steps that find columns by name need frames, in the threads that repeat the fit, too."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    y = table["a"] + 0.1 * rng.normal(size=40)
    by_name = make_column_transformer((StandardScaler(), ["a"]), (StandardScaler(), ["b"]))
    steps = make_pipeline(StandardScaler(), by_name)
    with config_context(transform_output="pandas"), parallel_config("threading"):
        model = TabularRegressor(["linear"], preprocess=steps, n_jobs=2).fit(table, y)
        assert model.evaluate()["r2"] > 0.9


FORMS_OF_TABLES = {
    "pyarrow": pa.Table.from_pandas,
    "array": lambda table: table[["a", "b"]].to_numpy(),
    "sparse": lambda table: sparse.csr_array(table[["a", "b"]].to_numpy() > 0, dtype=float),
}


@pytest.mark.slow
@pytest.mark.parametrize(("form", "output"), in_turn(FORMS_OF_TABLES, ["polars", "pandas"]))
def test_setting_of_outputs_changes_no_number(form, output, tmp_path, few_pictures):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    y = table["a"].to_numpy() + rng.normal(size=40)
    table["hue"] = rng.choice(["red", "blue"], 40)
    if form != "sparse":
        table.loc[3, "a"] = None
    table, weight = FORMS_OF_TABLES[form](table), np.r_[0.0, np.ones(39)]

    def numbers():
        regressor = TabularRegressor(["linear"]).fit(table, y, weight)
        own = TablePreprocessor().set_output(transform="pandas")
        classifier = TabularClassifier(["linear"], preprocess=own).fit(table, y > 0)
        yield from (regressor.evaluate()["rmse"], regressor.predict_interval(table, 0.8))
        yield from (classifier.predict_proba(table), classifier.without([1]).predict(table))
        yield regressor.with_rows(table[:2], y[:2]).predict(table)
        classifier.report(tmp_path / "page.html", table, y > 0)
        yield str(looms.assess(regressor, table, y, 2).splits[0].scores)
        whole = looms.Intervals(TabularRegressor(["linear"]), cv=3).fit(table, y)
        yield whole.predict_interval(table, 0.8)
        yield looms.diagnostics.influence(classifier, table, y > 0).values
        yield str(looms.check(table, y))

    expected = list(numbers())
    with config_context(transform_output=output):
        for one, of in zip(numbers(), expected, strict=True):
            np.testing.assert_array_equal(one, of)


class NoTable:
    """What has names of columns, and no columns."""

    columns, shape = ("size", "code"), (3, 2)

    def __len__(self):
        return 3


@pytest.mark.parametrize(
    ("table", "message"),
    [(pl.LazyFrame({"size": [1.0, 2.0, 3.0]}), "collect it first"), (NoTable(), "type NoTable")],
)
def test_what_cannot_be_read_as_a_table_is_refused(classifier, table, message):
    y = np.array(["a", "b", "a"])
    uses = (
        lambda: TabularClassifier().fit(table, y),
        lambda: classifier.predict(table),
        lambda: classifier.with_rows(table, y),
        lambda: looms.assess(TabularClassifier(), table, y),
        lambda: looms.check(table, y),
        lambda: looms.duplicates.duplicate_groups(table),
    )
    for use in uses:
        with pytest.raises(TypeError, match=message):
            use()
