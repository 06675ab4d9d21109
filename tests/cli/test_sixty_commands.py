"""What sixty commands make: files, tables, keys and kinds of messages, without the wording.

The commands are those of `benchmarks/command_outputs.py`, and what they make is that of a committed
table. Whoever changes it on purpose writes it anew:

    PYTHONPATH=src:benchmarks python tests/cli/test_sixty_commands.py
"""

import json
import re
import tempfile
from collections import Counter
from functools import cache
from importlib.util import find_spec
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_outputs import COMMANDS, outcomes
from sklearn.base import clone
from sklearn.metrics import f1_score
from typer.testing import CliRunner

import looms as package
from looms._scores import scale_of
from looms._words import estimate_text, score_text
from looms.cli._app import app
from looms.cli._errors import writable
from looms.estimators._model import Model, scores_of
from looms.model_files import load_model

pytestmark = pytest.mark.slow

TABLE = Path(__file__).with_name("sixty_commands.json")
#: The line below the names of the columns of a table.
RULE = re.compile(r" ?[─-]+ ?")


def headings(text):
    """Names of the columns of each table that a person reads."""
    lines, found = text.splitlines(), []
    for k, line in enumerate(lines):
        if RULE.fullmatch(line):
            above = next(n for n in range(1, k) if not lines[k - n - 1].strip())
            cells = [re.finditer(r"\S+(?: \S+)*", each) for each in lines[k - above : k]]
            placed = [(one.end(), n, one[0]) for n, each in enumerate(cells) for one in each]
            found.append(" | ".join(cell for *_, cell in sorted(placed)))
    return found


def keys(value, name=""):
    """Names of all values of a JSON, in their places; of a list, those of its elements."""
    inside = [(f"{name}[]", one) for one in value] if isinstance(value, list) else []
    if isinstance(value, dict):
        inside = [(f"{name}.{key}", one) for key, one in value.items()]
    return {each for place, one in inside for each in keys(one, place)} or {name}


def shape(outcome, folder):
    """What a command made, without numbers and wording; empty parts are left out."""
    out, err = outcome["out"], outcome["err"]
    tables = {name: (folder / name).read_text() for name in outcome["files"] if ".csv" in name}
    tables |= {"": out} if out.startswith("row,") else {}
    made = {
        "status": outcome["status"],
        "files": outcome["files"],
        "streams": [name for name in ("out", "err") if outcome[name]],
        "said": dict(Counter(sorted(re.findall(r"(?m)^(Note|Warning|Error): ", err)))),
        "headings": headings(out),
        "csv": {name: text.partition("\n")[0] for name, text in tables.items()},
        "json": " ".join(sorted(keys(json.loads(out)))) if out.startswith("{") else "",
    }
    return {name: part for name, part in made.items() if part not in ({}, [], "")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder in which the commands ran, whose files are only read."""
    return tmp_path_factory.mktemp("sixty")


@pytest.fixture(scope="module")
def sixty(folder):
    """Outcome of each command, with few partitions and pictures as in their fixtures."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("looms.diagnostics._row_order.N_RANDOM", 39)
        drawn = "matplotlib.figure.Figure.savefig"
        patched.setattr(drawn, lambda self, file, **options: file.write("<svg></svg>"))
        return outcomes(folder)


def test_each_makes_what_the_table_says(sixty, folder):
    expected = json.loads(TABLE.read_text(encoding="utf-8"))
    assert list(expected) == COMMANDS.strip().splitlines()
    for command, outcome in sixty.items():
        if not command.startswith("export") or find_spec("skl2onnx"):
            assert shape(outcome, folder) == expected[command], (command, outcome["err"])


@pytest.fixture(scope="module")
def model(sixty, folder):
    """Read the model of a file that a command made, once."""
    return cache(lambda name: load_model(folder / name).model)


def test_the_scores_that_are_printed_are_those_of_the_model(sixty, model):
    commands = [each for each in sixty if each.startswith("fit") and not sixty[each]["status"]]
    for command in commands:
        if "--json" in command:
            continue
        name = re.search(r"-o (\S+)", command)[1]
        scores = scores_of(model(name))
        (row,) = re.findall(rf"(?m)^ *{re.escape(scores.kind)}  +(.*)$", sixty[command]["out"])
        texts = [score_text(value, scale_of(key, value)) for key, value in scores.items()]
        assert row.split() == texts
        assert scores.optimistic == ("--no-evaluate" in command)
        told = "tuned this model, so its scores are optimistic" in sixty[command]["err"]
        assert told == scores.optimistic
        (rest,) = re.findall(r"(?m)^ *baseline  +(.*)$", sixty[command]["out"])[:1]
        assert len(rest.split()) == len(row.split())


def test_candidates_are_listed_with_their_losses_and_weights(sixty, model):
    for name in ("c.skops", "p.skops", "o.skops", "n.skops"):
        of_fit = next(sixty[command] for command in sixty if f"-o {name}" in command)
        shown = re.findall(r"(?m)^ (→| ) +(\w+) +squared error .*? ± \S+ +(.*)$", of_fit["out"])
        machine = model(name)
        tried, best = machine.candidates_, machine.best_index_
        assert [k for k, (mark, *_) in enumerate(shown) if mark == "→"] == [best]
        assert [kernel for _, kernel, _ in shown] == [one.kernel_name for one in tried]
        losses, weights, *_ = zip(*(numbers.split() for *_, numbers in shown), strict=True)
        expected = [np.sqrt(one.loss) if "p" in name[0] else one.loss for one in tried]
        assert [*map(float, losses)] == pytest.approx(expected, rel=1e-3)
        if len(tried) > 1:
            members = [f"{one.weight:.3f}" for one in machine.members_]
            assert [weight for weight in weights if weight != "–"] == members


def test_a_model_keeps_its_options_and_show_writes_them(sixty, folder):
    saved = {name: load_model(folder / f"{name}.skops") for name in "cgvx"}
    columns = ["patient", "age", "crp", "smoker", "visit", "weight", "note"]
    for name, without in {"c": (), "g": ("patient",), "v": ("visit",)}.items():
        kept = saved[name].metadata["columns"]
        assert list(kept) == [each for each in columns if each not in without]
        assert kept["age"] == "number"
    metadata = saved["c"].metadata
    assert (metadata["task"], metadata["target"]) == ("classification", "ill")
    assert (metadata["file"], metadata["n_rows"]) == ("clinic.csv", 90)
    assert {"date", "looms_version", "sklearn_version", "seconds"} <= metadata.keys()
    shown = sixty["show c.skops"]["out"]
    begins = (
        "Classification of 'ill', clinic.csv: 90 rows, 7 features\nOptions: all at their defaults\n"
    )
    assert shown.startswith(begins)
    assert "\nColumns: number 'patient', 'age', 'crp', 'weight'; category 'smoker'; date " in shown
    assert sixty["fit clinic.csv -t ill -o c.skops"]["out"] in shown
    options = "\nOptions: --order low,middle,high --candidates linear,rbf\n"
    assert options in sixty["show o.skops"]["out"]
    assert saved["v"].metadata["options"]["gap"] == 2
    assert saved["x"].metadata["n_rows"] == len(saved["x"].metadata["rows"]) == 80
    table = pd.read_csv(folder / "gaps.csv")
    assert saved["x"].metadata["rows"] == (table.index[table["ill"].notna()] + 1).tolist()


@pytest.mark.parametrize(
    ("command", "coverage"),
    [
        ("predict c.skops new.csv", None),
        ("predict c.skops new.csv --confidence-level 0.8", 0.8),
        ("predict g.skops new.csv --confidence-level 0.8 --class-conditional", (0.8, True)),
        ("predict p.skops houses.csv --confidence-level 0.9 --method minmax", (0.9, "minmax")),
        ("predict o.skops grades.csv -o graded.csv --force", None),
        ("predict c.skops new.csv --prevalence yes=0.1", "yes"),
    ],
)
def test_predictions_are_those_of_python(sixty, folder, model, command, coverage):
    _, name, file, *_ = command.split()
    machine, rows = model(name), pd.read_csv(folder / file)
    if coverage == "yes":
        machine, coverage = package.at_prevalence(machine, {"yes": 0.1}), None
    text = sixty[command]["out"] or (folder / "graded.csv").read_text()
    written = pd.read_csv(StringIO(text), keep_default_na=False)
    assert written["row"].tolist() == list(range(1, len(rows) + 1))
    found = machine.predict(rows)
    if name == "p.skops":
        expected = np.column_stack([found, machine.predict_interval(rows, *coverage)])
        numbers = written[["prediction", "lower", "upper"]]
        assert not np.allclose(expected[:, 1:], machine.predict_interval(rows, coverage[0]))
    else:
        assert written["prediction"].tolist() == found.tolist()
        decisions = machine.decision_function(rows).reshape(len(rows), -1)
        p, order = machine.predict_proba(rows), np.arange(len(machine.classes_))
        if name == "o.skops":
            order = [machine.classes_.tolist().index(each) for each in ("low", "middle", "high")]
            decisions = decisions[:, order]
        expected = np.hstack([decisions, p[:, order]])
        numbers = written.filter(regex="decision_|probability_")
    np.testing.assert_allclose(numbers, expected, rtol=1e-5)
    if coverage and name != "p.skops":
        level = coverage[0] if name == "g.skops" else coverage
        members = machine.predict_set(rows, level, name == "g.skops")
        sets = ["|".join(machine.classes_[each]) for each in members]
        assert written["set"].tolist() == sets


def test_scores_of_new_rows_are_those_of_python(sixty, folder, model):
    new = pd.read_csv(folder / "new.csv")
    told = json.loads(sixty["score g.skops new.csv --json"]["out"])["scores"]
    expected = model("g.skops").scores(new, new["ill"], groups=new["patient"])
    pd.testing.assert_frame_equal(pd.DataFrame(told).T, expected, check_names=False)
    with pytest.warns(UserWarning, match="groups"):
        alone = model("g.skops").scores(new, new["ill"])
    assert not np.allclose(alone["standard_error"], expected["standard_error"])
    test = sixty["fit clinic.csv -t ill -c linear --groups patient -o g.skops --test new.csv"]
    (row,) = re.findall(r"(?m)^ new.csv, 20 rows +(.*)$", test["out"])
    assert row.split() == [f"{value:.4f}" for value in expected["value"]]
    grades = pd.read_csv(folder / "grades.csv")
    of_ranks = model("o.skops").scores(grades, grades["grade"])["value"]
    scored = sixty["score o.skops grades.csv"]["out"]
    (row,) = re.findall(r"(?m)^ 80 rows of grades.csv +(.*)$", scored)
    assert row.split() == [f"{value:.4f}" for value in of_ranks]


def test_metrics_of_scikit_learn_are_of_the_nested_scores(sixty, model):
    command = "fit clinic.csv -t ill -c linear --cv 5x2 --metric f1 --metric roc_auc -o f.skops"
    out, scores = sixty[command]["out"], scores_of(model("f.skops"))
    decisions = scores.decisions
    f1 = f1_score(model("f.skops").held_out_.y > 0, decisions.predicted == 1)
    assert f"\nf1: {f1:.4g}\n" in out
    assert f"\nroc_auc: {estimate_text(*scores.with_errors['roc_auc'])}\n" in out


def test_an_assessment_is_that_of_python(sixty, folder):
    """Its table has every digit."""
    clinic = pd.read_csv(folder / "clinic.csv")
    estimator = package.TabularClassifier(["linear"])
    X, y = clinic.drop(columns="ill"), clinic["ill"]
    expected = package.assess(estimator, X, y, 4, random_state=0)
    found = pd.read_csv(folder / "splits.csv", index_col="split")
    for name in ("balanced_accuracy", "roc_auc", "loo_roc_auc"):
        assert found[name].tolist() == expected.table[name].tolist()
    out = sixty["assess clinic.csv -t ill -c linear -n 4 -o splits.csv --report splits.html"]["out"]
    assert f"balanced_accuracy   {expected.mean['balanced_accuracy']:.4f}" in out
    page = (folder / "splits.html").read_text(encoding="utf-8")
    assert "an optimistic score" not in page
    assert "Nested cross-validation report" in page  # of the smaller standard error


def test_pages_have_the_command_in_words_of_the_command_line(folder):
    for name, asked in {
        "t.html": "clinic.csv --target ill -c linear --threshold recall=0.9 --positive yes",
        "o.html": "grades.csv --target grade -c linear,rbf --order low,middle,high",
    }.items():
        page = (folder / name).read_text(encoding="utf-8")
        title = f"{'ill' if name == 't.html' else 'grade'}, {asked.split()[0]}"
        assert f"<title>{title}</title>" in page
        command = re.search(r"<dt>Command</dt><dd><bdi>looms fit (.*?)</bdi>", page)[1]
        assert sorted(command.split()) == sorted(asked.replace("-c", "--candidates").split())
        assert "counted from 1" in page


@pytest.mark.filterwarnings("ignore::looms.ColumnsWarning")
def test_fits_are_those_of_python(model, folder):
    """Groups, weights, a grid and a transformed target, with the scores of what was repeated."""
    clinic, prices = (pd.read_csv(folder / f"{name}.csv") for name in ("clinic", "prices"))
    X, y = clinic.drop(columns="ill"), clinic["ill"]
    linear, patient = package.TabularClassifier(["linear"]), X["patient"]
    grid = package.KernelRegressor("linear", search=package.Search(method="grid"))
    of_rooms = package.TabularRegressor([grid])
    two = package.TabularRegressor(["rbf"], target=["log", "sqrt"])
    fitted = {
        "g.skops": linear.fit(X.drop(columns="patient"), y, groups=patient),
        "d.skops": clone(linear).fit(X.drop(columns="weight"), y, sample_weight=X["weight"]),
        "r.skops": of_rooms.fit(prices.drop(columns="rooms"), prices["rooms"]),
        "q.skops": two.fit(prices.drop(columns="price"), prices["price"]),
    }
    for name, expected in fitted.items():
        assert model(name).get_params().keys() == expected.get_params().keys()
        np.testing.assert_array_equal(model(name).held_out_.outputs, expected.held_out_.outputs)
        if name != "q.skops":
            assert dict(scores_of(model(name))) == pytest.approx(dict(expected.evaluate()))


def test_a_saved_model_never_trains(sixty, folder, monkeypatch):
    """Intervals and sets are of the models that the evaluation made."""

    def trained(*arguments, **options):
        raise AssertionError("a model was tuned")

    monkeypatch.chdir(folder)
    monkeypatch.setattr(Model, "_fit_on", trained)
    for command in (each for each in sixty if "--confidence-level" in each):
        result = CliRunner().invoke(app, command.split())
        assert (result.exit_code, result.stdout) == (0, sixty[command]["out"])


def test_a_fit_prints_the_summary_that_show_prints(sixty, folder):
    for name in ("b", "q"):
        command = next(each for each in sixty if f"{name}.skops --json" in each)
        shown = CliRunner().invoke(app, ["show", str(folder / f"{name}.skops"), "--json"])
        fitted, shown = json.loads(sixty[command]["out"]), json.loads(shown.stdout)
        for part in ("title", "data", "loo", "samples", "chosen", "candidates"):
            assert fitted[part] == shown[part]
        assert "counted from 1" in fitted["samples"]["named_by"]


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437"])
def test_signs_of_our_own_are_written_in_every_encoding(sixty, encoding):
    stream = TextIOWrapper(BytesIO(), encoding=encoding)
    for command, outcome in sixty.items():
        if outcome["out"].startswith("{"):
            assert outcome["out"].isascii()
            continue
        for name in ("out", "err"):
            text = writable(outcome[name], stream).replace("true \\ predicted", "")
            assert "\\" not in text, (command, text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        found = outcomes(Path(name))
        made = {command: shape(outcome, Path(name)) for command, outcome in found.items()}
    text = {command: json.dumps(each, ensure_ascii=False) for command, each in made.items()}
    lines = [f"{json.dumps(command)}: {each}" for command, each in text.items()]
    TABLE.write_text("\n".join(["{", ",\n".join(lines), "}", ""]), encoding="utf-8")
