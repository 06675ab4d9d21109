"""Tables against the results they are made of, and against the papers'."""

import numpy as np
import pytest

from looms.assessment._result import Assessment
from looms.assessment._split_run import SplitResult
from papers import challenge
from papers.challenge._choices import Entry
from papers.challenge._papers import FACTORS, factor_weights, paper_table
from papers.challenge._shown import markdown
from papers.challenge._tables import entries_table, factors_table

PART = challenge.experiments_of("table3")[:3]


def assessment(rates, loo, best):
    splits = tuple(
        SplitResult(
            k,
            90,
            10,
            scores={
                "ber": r,
                "ber_train": r - 0.1,
                "ber_train_threshold": r + 0.05,
                "ber_at_zero": r + 0.1,
                "ber_best_on_test": b,
            },
            loo_scores={"ber": q},
            seconds=2.0,
        )
        for k, (r, q, b) in enumerate(zip(rates, loo, best, strict=True))
    )
    return Assessment(splits, None, tuple(splits[0].scores), "shuffle", 0, "")


@pytest.fixture
def results():
    rates = ([0.20, 0.18, 0.19], [0.17, 0.19, 0.21], [0.15, 0.16, 0.17])
    return {
        e: assessment(r, [0.16, 0.17, 0.18], [x - 0.02 for x in r])
        for e, r in zip(PART, rates, strict=True)
    }


def test_experiments_beside_the_paper(results):
    table = challenge.experiments_table(results, "ada")
    assert table.index.tolist() == ["press-linear", "press-quadratic", "press-cubic"]
    row = table.loc["press-linear"]
    assert row["ber"] == pytest.approx(0.19)
    assert row["standard_error"] == pytest.approx(0.01 / np.sqrt(3))
    assert row["loo_ber"] == pytest.approx(0.17)
    assert row["paper"] == 0.1766
    assert row["off"] == pytest.approx((0.19 - 0.1766) * np.sqrt(3) / 0.01)
    assert row["best_off"] == pytest.approx((0.17 - 0.1766) * np.sqrt(3) / 0.01)
    assert row["ber_at_zero"] == pytest.approx(0.29)
    assert row["ber_train"] == pytest.approx(0.09)
    assert row["ber_train_threshold"] == pytest.approx(0.24)
    assert (row["splits"], row["seconds"]) == (3, 2.0)


def test_factors_beside_the_paper(results):
    table = factors_table(results, "ada")
    assert table.index.tolist() == ["press", "linear", "quadratic", "cubic"]
    assert table.loc["linear", "paper"] == 0.5679
    expected = factor_weights(PART, [0.1766, 0.1687, 0.1701])
    assert table["paper_same_rows"].to_dict() == pytest.approx(expected)
    assert table.loc["cubic", "weight"] < table.loc["linear", "weight"]
    assert list(factors_table(results)) == ["weight"]


def entries(choice="loo_ber", guesses=("loo", "validation4")):
    return [
        Entry(k, choice, guess, PART[0], 0.1 + 0.01 * k, 0.05, 0.15, 0.2, -0.1 + 0.01 * k, 0.3)
        for k in range(2)
        for guess in guesses
    ]


def test_entries_beside_the_paper():
    table = entries_table(entries(), "ada")
    mean = table[(table["held_out"] == "mean") & (table["guess_by"] == "loo")].iloc[0]
    assert mean["guess"] == pytest.approx(0.105)
    error = table[(table["held_out"] == "s.e.") & (table["guess_by"] == "loo")].iloc[0]
    assert error["guess"] == pytest.approx(0.005)
    paper = table[table["held_out"] == "paper"].set_index("guess_by")
    assert paper.loc["loo", "guess_error"] == pytest.approx(0.1683 - 0.1845)
    assert paper.loc["validation100", "test_score"] == 0.1947
    assert paper.loc["loo", ["ber_train", "ber_valid"]].tolist() == [0.1490, 0.1542]
    assert mean[["ber_train", "ber_valid"]].tolist() == pytest.approx([0.05, 0.15])
    alone = entries_table(entries(guesses=("loo",)), "ada")
    assert (alone["held_out"] == "paper").sum() == 1


def test_game_beside_the_paper():
    rules = ("validation7", "validation_set", "loo_ber")
    game = [Entry(0, s, s, PART[0], 0.1, 0.05, np.nan, 0.2, -0.1, 0.3) for s in rules]
    table = entries_table(game, "hiva")
    assert table["choice_by"][:3].tolist() == list(rules)
    paper = table[table["held_out"] == "paper"].set_index("choice_by")
    assert paper.loc["validation_set", "experiment"] == "press-cubic"
    assert paper.loc["loo_ber", "guess"] == 0.2358
    assert paper.loc["validation100", "guess"] == 0.2444
    assert np.isnan(paper.loc["validation_set", "guess"])
    assert "s.e." not in set(table["held_out"])


def test_other_data_have_no_figures_of_the_papers(results):
    blank = markdown(challenge.experiments_table(results)).splitlines()[2]
    assert "|  |" in blank
    assert "nan" not in blank
    with pytest.raises(ValueError, match="'iris'"):
        factors_table(results, "iris")


def test_papers_tables_are_whole():
    assert paper_table("c06_table2").shape == (5, 7)
    assert paper_table("c06_table3").shape == (70, 9)
    assert paper_table("c06_table4")["factor"].tolist() == list(FACTORS)
    assert len(paper_table("c06_tables5_6")) == 11
    assert len(paper_table("g06_game")) == 15
