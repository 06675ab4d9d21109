"""Tables of several sets against the papers' overall rows, and dimensions against hand counts."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from papers.challenge._choices import Entry
from papers.challenge._data import DATASETS, ChallengeData
from papers.challenge._over_sets import dimensions_table, overall_table
from papers.challenge._papers import paper_table
from papers.challenge._plans import PaperExperiment
from papers.challenge._tables import ENTRY_FIGURES, entries_table


def made_entries(rates, rules=("loo", "validation5")):
    experiment = PaperExperiment("press", "none", "rbf")
    return [
        Entry(k, "loo_ber", rule, experiment, guess, 0.0, 0.1, 0.2, guess - 0.2, 0.2 + guess)
        for k in range(2)
        for rule, guess in zip(rules, rates, strict=True)
    ]


@pytest.mark.slow
def test_overall_rows_of_the_paper_are_the_printed_ones():
    tables = {name: entries_table(made_entries([0.1, 0.3]), name) for name in DATASETS}
    overall = overall_table(tables).query("dataset == 'overall' and of == 'paper'")
    printed = paper_table("c06_tables5_6").query("dataset == 'overall'").iloc[0]
    figures = overall.set_index("guess_by").loc["validation100", list(ENTRY_FIGURES)]
    np.testing.assert_allclose(
        figures.to_numpy(float), printed[list(ENTRY_FIGURES)].to_numpy(float), atol=6e-5
    )
    ranks = overall.set_index("guess_by")["rank"]
    assert ranks.to_dict() == {"loo": 1.8, "validation100": 1.2}  # NOVA the other way


def test_overall_entries_are_means_over_the_sets_that_share_a_rule():
    tables = {
        "a": entries_table(made_entries([0.1, 0.4])),
        "b": entries_table(made_entries([0.3, 0.2])),
        "c": entries_table(made_entries([0.2, 0.1], ("loo", "validation9"))),
    }
    table = overall_table(tables)
    overall = table[table["dataset"] == "overall"]
    assert overall["guess_by"].tolist() == ["loo"]
    row = overall.iloc[0]
    assert row["guess"] == pytest.approx(0.2)
    assert row["guess_error"] == pytest.approx((0.1 + 0.1 + 0.0) / 3)
    assert row["rank"] == pytest.approx((1 + 2 + 2) / 3)
    assert table["dataset"].value_counts().to_dict() == {"a": 2, "b": 2, "c": 2, "overall": 1}


def test_overall_experiments_are_ranked_among_those_of_all_sets():
    names = ["press-linear", "press-rbf", "wmw-rbf"]
    tables = {
        "ada": pd.DataFrame({"ber": [0.3, 0.2, 0.1], "paper": [0.3, 0.1, 0.2]}, names),
        "gina": pd.DataFrame({"ber": [0.1, 0.3, np.nan], "paper": [0.1, 0.3, 0.5]}, names),
    }
    table = overall_table(tables)
    assert table.index.tolist() == names[:2]
    assert table["mean"].tolist() == pytest.approx([0.2, 0.25])
    assert table["rank"].tolist() == [1.5, 1.5]
    assert table["paper_mean"].tolist() == pytest.approx([0.2, 0.2])
    assert list(overall_table({"a": tables["ada"].assign(paper=np.nan)}))[-1] == "rank"


def test_tables_of_different_kinds_are_refused():
    one = pd.DataFrame({"ber": [0.1], "paper": [0.1]}, ["press-rbf"])
    for other in (entries_table(made_entries([0.1, 0.2])), one.set_axis(["wmw-rbf"])):
        with pytest.raises(ValueError, match=r"one kind|no experiment"):
            overall_table({"a": one, "b": other})


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_dimensions(kind):
    X = np.array([[0.0, 2.0, 0.0], [1.0, 2.0, 0.0], [0.0, 2.0, 0.0], [0.0, 2.0, 0.0]])
    table = dimensions_table(ChallengeData("hiva", kind(X), np.array([1, -1, -1, -1]), "table"))
    assert table.loc["looms"].to_list() == [1, 3, 0.25, 3, 1, 7 / 12]
    assert table.loc["paper"].to_list() == [135, 3710, 0.035, 1617, 1617, 0.918]
