"""Runs, choices among them, and guesses, against the same done by hand."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import LeaveOneOut
from sklearn.pipeline import Pipeline
from stacks import stacked_classifier

import looms
from looms import KernelClassifier, Search
from looms.held_out import HeldOut
from looms.threshold import find_threshold
from papers import challenge
from papers.challenge import Runs
from papers.challenge._choices import (
    game_entries,
    loo_choices,
    loo_entries,
    nested_entries,
    run_validation,
    stored_validation,
)
from papers.challenge._data import ChallengeData
from papers.challenge._plans import PaperExperiment, only
from papers.challenge._preparation import preparation
from papers.challenge._reduced import ReducedClassifier
from papers.challenge._run import (
    SCORING,
    Nested,
    estimator_of,
    run_nested,
    stored_nested,
    stored_plan,
)

PART = only(
    challenge.experiments_of("table3"),
    ["criterion=press,wmw", "weighting=none", "kernel=linear,rbf"],
)


@pytest.fixture(scope="module")
def data(draw):
    X, y = draw(70)
    X = X.copy()
    X[:, 1] += 0.8 * X[:, 2] * y  # so that kernels differ
    return ChallengeData("made", X, y, "standardize")


@pytest.fixture(scope="module")
def results(data):
    return challenge.run_plan(Runs(data), PART, 6)


@pytest.fixture(scope="module")
def nested(data):
    return run_nested(Runs(data), PART, 3, 2)


@pytest.mark.parametrize("weighting", ["none", "training", "both"])
def test_estimator_of_an_experiment(data, weighting):
    pipeline = estimator_of(data, PaperExperiment("wmw", weighting, "cubic"))
    machine = pipeline[-1]
    search = machine.search
    assert (machine.kernel, search.criterion, machine.threshold) == ("cubic", "wmw", "balanced")
    assert machine.class_weight == (None if weighting == "none" else "balanced")
    assert search.class_weight == ("balanced" if weighting == "both" else None)
    assert type(machine) is looms.KernelClassifier
    assert type(search) is looms.Search
    sylva = ChallengeData("sylva", data.X, data.y, "sylva")
    reduced = estimator_of(sylva, PART[0])[-1]
    assert type(reduced) is ReducedClassifier


@pytest.mark.parametrize("kind", ["standardize", "sylva"])
def test_rates_of_the_rows_that_trained(data, kind):
    X = np.column_stack([data.X, data.y < 0])
    X[::2, -1] = 0.0  # settles half of the negative rows
    of = ChallengeData("sylva", X, data.y, kind)
    model = estimator_of(of, PART[1]).fit(X[:50], data.y[:50])
    outputs = model.decision_function(X[:50])
    assert np.isfinite(outputs).all()
    rates = {name: SCORING[name](model, X[50:], data.y[50:]) for name in SCORING if "train" in name}
    wrong = [np.mean((outputs[data.y[:50] == t] > 0) != (t > 0)) for t in (-1, 1)]
    assert rates["ber_train"] == pytest.approx(np.mean(wrong))
    threshold, _ = find_threshold(HeldOut(data.y[:50], outputs))
    predicted = model.decision_function(X[50:]) > threshold
    wrong = [np.mean(predicted[data.y[50:] == t] != (t > 0)) for t in (-1, 1)]
    assert rates["ber_train_threshold"] == pytest.approx(np.mean(wrong))


@pytest.mark.slow
def test_optimizers_are_of_the_estimator_and_kept_apart(data, tmp_path):
    runs = Runs(data, tmp_path / "store", optimizer="nelder-mead")
    estimator = estimator_of(data, PART[0], "nelder-mead")
    assert estimator[-1].search.optimizer == "nelder-mead"
    result = runs.run(PART[0], 2)
    assert result.mean["ber"] < 0.5
    assert stored_plan(runs, PART, 2).keys() == {PART[0]}
    assert stored_plan(Runs(data, tmp_path / "store"), PART, 2) == {}


@pytest.mark.slow
def test_the_choice_is_that_of_one_estimator_with_all_candidates(data, results):
    """The whole selection repeated in every split, by the estimator that selects by itself."""
    machine = stacked_classifier(
        [
            KernelClassifier(k, search=Search(c))
            for k in ["linear", "rbf"]
            for c in ["press", "wmw"]
        ],
        combine="best",
        threshold="balanced",
        cv=LeaveOneOut(),
    )
    steps = [("prepare", preparation("standardize", data.X)), ("machine", machine)]
    whole = looms.assess(Pipeline(steps), data.X, data.y, 6, scoring=SCORING, random_state=0)
    choices = loo_choices(results)
    assert list(choices) == list(range(6))
    assert len({chosen for chosen, _ in choices.values()}) > 1
    for k, split in enumerate(whole.splits):
        _, ours = choices[k]
        assert ours.loo_scores["ber"] == split.loo_scores["ber"]
        if (
            sum(r.splits[k].loo_scores["ber"] == ours.loo_scores["ber"] for r in results.values())
            == 1
        ):
            assert ours.scores == split.scores
            assert ours.chosen == split.chosen


@pytest.mark.slow
def test_entries_by_leave_one_out(data, results, tmp_path):
    runs = Runs(data, tmp_path / "store")
    entries = loo_entries(run_validation(runs, results, 6))
    assert loo_entries(stored_validation(runs, results, 6)) == entries
    parts = runs.parts(6)
    for entry in entries:
        within = data.of_rows(parts[entry.held_out][0])
        train, test = Runs(within).parts(2)[0]
        model = estimator_of(within, entry.experiment).fit(within.X[train], within.y[train])
        wrong = [np.mean(model.predict(within.X[test])[within.y[test] == t] != t) for t in (-1, 1)]
        assert entry.ber_valid == pytest.approx(np.mean(wrong))
        split = results[entry.experiment].splits[entry.held_out]
        least = min(r.splits[entry.held_out].loo_scores["ber"] for r in results.values())
        assert entry.guess == least
        assert entry.ber_test == split.scores["ber"]
        assert entry.guess_error == entry.guess - entry.ber_test
        assert entry.test_score >= entry.ber_test


@pytest.mark.slow
def test_guesses_are_of_the_training_part_alone(data, nested):
    train, test = Runs(data).parts(2)[0]
    again = challenge.run_plan(Runs(data).within(train), PART, 3)
    chosen = loo_choices(again)
    guess = np.mean([split.scores["ber"] for _, split in chosen.values()])
    entries = nested_entries(nested)
    assert [(e.held_out, e.guess_by) for e in entries] == [
        (k, by) for k in range(2) for by in ("loo", "validation3")
    ]
    assert entries[1].guess == pytest.approx(guess)
    machine = clone(estimator_of(data, entries[1].experiment)).fit(data.X[train], data.y[train])
    assert entries[1].ber_train == SCORING["ber_train"](machine, data.X[test], data.y[test])
    assert entries[1].ber_valid == again[entries[1].experiment].splits[0].scores["ber"]
    assert entries[0].ber_test == entries[1].ber_test
    assert entries[0].guess != entries[1].guess
    np.testing.assert_array_equal(nested.tests[0], data.y[test])


@pytest.mark.slow
def test_strategies_of_the_game(nested):
    entries = game_entries(nested)
    rules = ["validation3", "validation_set", "loo_ber"]
    assert [e.choice_by for e in entries] == [e.guess_by for e in entries] == 2 * rules
    inner = nested.inner[0]
    by_mean = min(inner.values(), key=lambda r: r.mean["ber"]).mean["ber"]
    by_first = min(r.splits[0].scores["ber"] for r in inner.values())
    by_loo = min(r.splits[0].loo_scores["ber"] for r in nested.outer.values())
    assert [e.guess for e in entries[:3]] == pytest.approx([by_mean, by_first, by_loo])
    assert entries[1].ber_valid == entries[1].guess
    for entry in entries:
        split = nested.outer[entry.experiment].splits[entry.held_out]
        assert (entry.ber_train, entry.ber_test) == (split.scores["ber_train"], split.scores["ber"])
        inner = nested.inner[entry.held_out][entry.experiment]
        assert entry.ber_valid == inner.splits[0].scores["ber"]


@pytest.mark.slow
def test_a_store_resumes_and_is_read_alone(data, tmp_path, nested):
    runs = Runs(data, tmp_path / "store")
    assert stored_plan(runs, PART, 3) == {}
    assert not (tmp_path / "store").exists()
    challenge.run_plan(runs, PART[:1], 2)
    told = []
    results = challenge.run_plan(
        runs, PART[:2], 3, progress=lambda done, total, split: told.append((done, total))
    )
    assert told == [(2, 3), (3, 3), (0, 3), (1, 3), (2, 3), (3, 3)]
    found = stored_plan(runs, PART, 5)
    assert list(found) == PART[:2]
    for experiment, result in found.items():
        assert result.table.equals(results[experiment].table)
    run_nested(runs, PART, 3, 2)
    there = stored_nested(runs, PART, 3, 2)
    assert nested_entries(there) == nested_entries(nested)
    less = stored_nested(runs, PART, 3, 4)  # two parts are not there
    assert {e.held_out for e in nested_entries(less)} == {0, 1}
    other = Runs(data, tmp_path / "store", random_state=1)
    assert stored_plan(other, PART, 3) == {}


@pytest.fixture
def one_fails(monkeypatch):
    """The RBF machine tuned by PRESS raises whenever it is fitted."""
    fit = looms.KernelClassifier.fit

    def not_that(self, X, y, sample_weight=None):
        if (self.kernel, self.search.criterion) == ("rbf", "press"):
            raise FloatingPointError("no luck")
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(looms.KernelClassifier, "fit", not_that)
    return next(e for e in PART if e.name == "press-rbf")


@pytest.mark.slow
def test_an_experiment_that_always_raises_does_not_end_the_plan(
    data, one_fails, results, nested, tmp_path
):
    others = {e: result for e, result in results.items() if e != one_fails}
    runs = Runs(data, tmp_path / "store")
    found = challenge.run_plan(runs, PART, 6)
    assert list(found) == PART
    assert set(found[one_fails].failures.values()) == {"FloatingPointError: no luck"}
    assert len(found[one_fails].failures) == 6
    of_found, of_others = (run_validation(runs, each, 6) for each in (found, others))
    assert loo_entries(of_found) == loo_entries(of_others)
    there = stored_plan(runs, PART, 6)
    assert [e for e in PART if there[e].failures] == [one_fails]
    assert challenge.experiments_table(there).equals(challenge.experiments_table(found))

    without = run_nested(runs, [e for e in PART if e != one_fails], 3, 2)
    for read in (run_nested, stored_nested):
        again = read(runs, PART, 3, 2)
        assert nested_entries(again) == nested_entries(without)
        assert game_entries(again) == game_entries(without)
    # Where it failed on the splits of the training parts alone, it is no candidate there.
    inner = tuple({**part, one_fails: found[one_fails]} for part in without.inner)
    partly = Nested(nested.outer, inner, without.tests)
    validated = [e for e in game_entries(partly) if e.choice_by != "loo_ber"]
    assert validated
    assert all(e.experiment != one_fails for e in validated)
    assert len(nested_entries(partly)) == 4
