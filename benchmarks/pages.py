"""The page of benchmarks, `docs/reference/benchmarks.md`, from the tables in `benchmarks/results/`.

python benchmarks/pages.py

Every figure on it is one of a table; dates are those of the last commit of the table.
"""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "reference" / "benchmarks.md"

Row = dict[str, str]


@dataclass
class Section:
    """A table of results with the columns shown, by the headings they get.

    Where a row is a case, named in the column `where`, `peers` are the columns of others beside the
    one of looms, `ours`, and less is better. Where it is a method, named in the column `method`,
    those of looms start with one of `machines`, and `figures` are the columns to compare, with a
    minus before one in which more is better.
    """

    file: str
    title: str
    text: str
    columns: dict[str, str]
    rows: Callable[[Row], bool] = lambda row: True
    ours: str = ""
    peers: dict[str, str] = field(default_factory=dict)
    where: str = ""
    figure: str = "error"
    method: str = "method"
    machines: tuple[str, ...] = ("looms",)
    figures: dict[str, str] = field(default_factory=dict)


METHODS = {
    "looms": 'looms, a stack of four kernels (`candidates="auto"`)',
    "looms_best": "looms, the best of the four instead of a stack",
    "looms_rbf": "looms, `rbf`",
    "looms_ard": "looms, `ard`",
    "nystroem_ridge": "Nystroem and ridge",
    "lightgbm": "LightGBM",
    "catboost": "CatBoost",
    "xrfm": "xRFM",
    "svc_grid": "SVM, 110 points",
    "linear": "linear",
    "rate_of_noise": "(share of flipped labels)",
}
AGGREGATES = ("less paper", "standard error")
OURS = {"looms_rbf": '`"rbf"`', "looms": "the stack of four"}
PEERS = ("nystroem_ridge", "lightgbm", "catboost", "xrfm", "svc_grid", "linear")
OF_LARGE = {
    "method": "method",
    "seconds": "seconds",
    "cpu_seconds": "CPU seconds",
    "peak_gigabytes": "GB",
    "test_error": "test error",
    "test_log_loss": "log loss",
}
SECTIONS = [
    Section(
        "tables_report",
        "Twenty real tables",
        "Every method at its defaults, with at most 500 training rows, on tables that played no "
        "part in the design of looms. The error is the log loss, or the root mean square error "
        "where the target is a number. The error ratio is to the best of the six peers on each "
        "table, which is known only afterwards. Each looms row is ranked against the six peers "
        "alone, and a table counts as won if it beats all six. The tables won by the peers are "
        "counted among the six, and add up to 20.",
        {
            "method": "method",
            "rank_beside_peers": "mean rank of seven",
            "error_ratio": "error ratio",
            "error_ratio_low": "95 % from",
            "error_ratio_high": "to",
            "better_than_all_peers": "tables won",
            "cpu_seconds": "CPU seconds a fit",
        },
        rows=lambda row: row["measure"] == "loss",
        figures={"cpu_seconds": "CPU seconds"},
    ),
    Section(
        "against_grid_search",
        "Compared with a grid search",
        "`GridSearchCV(SVC)` with 110 points, five folds and two processes. looms decides at "
        "output 0.",
        {
            "data": "data",
            "splits": "splits",
            "looms_test_error": "looms: error",
            "grid_test_error": "grid: error",
            "standard_error_of_difference": "s.e. of the difference",
            "looms_seconds": "looms: s",
            "grid_seconds": "grid: s",
        },
        ours="looms_test_error",
        peers={"grid_test_error": "`GridSearchCV(SVC)`"},
        where="data",
    ),
    Section(
        "large_tables_synthetic_100000_rank_500",
        "100,000 rows",
        "A synthetic table of 20 features with a tenth of the labels flipped; 500 landmarks.",
        OF_LARGE,
        figures={"test_error": "error", "test_log_loss": "log loss", "seconds": "seconds"},
    ),
    Section(
        "large_tables_synthetic_1000000_rank_1000",
        "1,000,000 rows",
        "The same kind of table; 1000 landmarks.",
        OF_LARGE,
    ),
    Section(
        "large_tables_flights_100000_rank_500",
        "Delays of 100,000 flights",
        "Real data; 500 landmarks. Other jobs ran at the same time, so compare CPU seconds only.",
        OF_LARGE,
        figures={"test_error": "error", "test_log_loss": "log loss", "cpu_seconds": "CPU seconds"},
    ),
    Section(
        "against_liquidsvm",
        "Compared with liquidSVM",
        "A synthetic table of 20 features, with the whole kernel matrix. liquidSVM fits with the "
        "least squares loss and with the hinge loss.",
        {
            "rows": "rows",
            "looms_seconds": "looms: s",
            "least_squares_seconds": "least squares: s",
            "hinge_seconds": "hinge: s",
            "looms_test_error": "looms: error",
            "least_squares_test_error": "least squares: error",
            "hinge_test_error": "hinge: error",
        },
        ours="looms_test_error",
        peers={
            "least_squares_test_error": "liquidSVM, least squares",
            "hinge_test_error": "liquidSVM, hinge",
        },
        where="rows",
    ),
    Section(
        "wide_features",
        "Wide features",
        "Linear models on synthetic features, such as those of random convolutions: "
        '`KernelClassifier("linear")`, `RidgeClassifierCV` with 17 values and '
        "`LogisticRegressionCV`. All times are CPU seconds.",
        {
            "size": "rows × features",
            "classifier": "classifier",
            "seconds": "fit",
            "each_mu_seconds": "one more value of the regularization",
            "error": "error",
            "log_loss": "log loss",
        },
        where="size",
        method="classifier",
        figures={"seconds": "CPU seconds", "error": "error", "log_loss": "log loss"},
    ),
    Section(
        "jackknife_mapie",
        "Intervals compared with MAPIE",
        "The same jackknife+ intervals, from one factorization instead of n refits.",
        {
            "data": "data",
            "n": "rows",
            "looms_seconds": "looms: s",
            "mapie_seconds": "MAPIE: s",
            "looms_width": "looms: width",
            "largest_difference": "largest difference",
        },
    ),
    Section(
        "calibration",
        "Probabilities",
        "Log loss of `predict_proba`, compared with `CalibratedClassifierCV(cv=5)` with fixed "
        "hyper-parameters, and with hyper-parameters selected again in each fold.",
        {
            "set": "data",
            "ours_log_loss": "looms",
            "fixed_log_loss": "fixed",
            "selecting_log_loss": "selecting",
            "difference_se": "s.e. of a difference",
            "calibration_s": "looms: s",
            "fixed_s": "fixed: s",
            "selecting_s": "selecting: s",
        },
        ours="ours_log_loss",
        peers={
            "fixed_log_loss": "`CalibratedClassifierCV`, hyper-parameters fixed",
            "selecting_log_loss": "`CalibratedClassifierCV`, selecting anew",
        },
        where="set",
        figure="log loss",
    ),
    Section(
        "svm_loo_speed",
        "Leave-one-out of an SVM",
        "`looms.svm.leave_one_out` compared with `cross_val_predict(SVC, cv=LeaveOneOut())`; 634 "
        "rows.",
        {
            "problem": "problem",
            "seconds": "looms: s",
            "refits_seconds": "refits: s",
            "ratio": "times faster",
        },
    ),
    Section(
        "svm_search",
        "Tuning an SVM by leave-one-out",
        "A search by the leave-one-out deviance of the paper, compared with `GridSearchCV(SVC)`.",
        {
            "data": "data",
            "samples": "rows",
            "search": "search",
            "points": "points",
            "seconds": "seconds",
            "cv_score": "deviance",
            "loo_error": "leave-one-out error",
        },
        where="data",
        method="search",
        machines=("grid", "pattern"),
        rows=lambda row: row["samples"] in ("634", "218"),
        figures={"seconds": "seconds", "loo_error": "error"},
    ),
    Section(
        "mislabelled",
        "Mislabeled rows",
        "5 % of the labels are flipped. The precision is the share of flipped labels among the 5 % "
        "most suspect rows.",
        {
            "data": "data",
            "ranking": "ranking",
            "precision": "precision",
            "standard_error": "s.e.",
            "median_seconds": "seconds",
        },
        where="data",
        method="ranking",
        figures={"-precision": "precision", "median_seconds": "seconds"},
    ),
    Section(
        "nonconformity",
        "Choosing a model for each row",
        "Error rates of `NonconformityClassifier`, compared with a grid search with ten folds "
        "over the same 110 models.",
        {
            "dataset": "data",
            "scaling": "features",
            "within_se": "looms",
            "paper": "the paper's rule",
            "cv": "grid search",
        },
        ours="within_se",
        peers={"cv": "`GridSearchCV(cv=10)`, the same models"},
        where="dataset",
        rows=lambda row: row["scaling"] == "standard" and row["dataset"] not in AGGREGATES,
    ),
    Section(
        "evaluation_cost",
        "Cost of the criterion",
        "Time of the criterion, alone and with its gradient, relative to the time that LAPACK "
        "takes to factorize and invert the same matrix.",
        {
            "n": "rows",
            "kernel": "kernel",
            "criterion": "criterion",
            "value_ratio": "value",
            "value_and_gradient_ratio": "with gradient",
            "peak_n_by_n_arrays": "n × n arrays",
        },
        rows=lambda row: row["criterion"] == "press",
    ),
]


def read(name: str) -> tuple[str, list[Row]]:
    """First line of a table without its mark, the command and what it ran on, and the rows."""
    first, *lines = (RESULTS / f"{name}.csv").read_text(encoding="utf-8").splitlines()
    return first.removeprefix("# "), list(csv.DictReader(lines))


def cell(row: Row, column: str) -> str:
    """A name or a number as the page shows it."""
    text = row[column]
    return METHODS.get(text, text) if column == "method" else {"nan": ""}.get(text, text)


def markdown(heads: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def losses() -> Iterator[list[str]]:
    """Rows of the comparisons where a peer is better than a machine of looms."""
    for section in SECTIONS:
        rows = list(filter(section.rows, read(section.file)[1]))
        for row in rows if section.peers else ():
            peer = min(section.peers, key=lambda name: float(row[name]))
            if float(row[peer]) < float(row[section.ours]):
                names = [section.title, row[section.where], section.figure]
                yield [*names, row[section.ours], f"{section.peers[peer]}: {row[peer]}"]
        cases = dict.fromkeys(row.get(section.where, "") for row in rows)
        for case, (column, figure) in product(cases, section.figures.items()):
            of_case = [row for row in rows if row.get(section.where, "") == case]
            values = {
                row[section.method]: float(row[column.lstrip("-")]) * (-1) ** column.count("-")
                for row in of_case
                if row[section.method] != "rate_of_noise" and row[column.lstrip("-")] != "nan"
            }
            ours = [name for name in values if name.startswith(section.machines)]
            peer = min(set(values) - set(ours), key=values.__getitem__, default="")
            for name in ours:
                if peer and values[peer] < values[name]:
                    names = [cell({section.method: each}, section.method) for each in (name, peer)]
                    figures = [f"{abs(values[each]):.4g}" for each in (name, peer)]
                    yield [
                        section.title,
                        case,
                        figure,
                        *map(": ".join, zip(names, figures, strict=True)),
                    ]


def lost_tables() -> Iterator[list[str]]:
    """The real tables on which a machine of looms errs more than the best peer, with the ratios."""
    for row in read("tables_report_each")[1]:
        peer = min(PEERS, key=lambda name: float(row[name] or "inf"))
        ratios = [float(row[name]) / float(row[peer]) for name in OURS]
        if row["measure"] == "loss" and max(ratios) > 1:
            figure = "log loss" if int(row["n_classes"]) else "RMSE"
            best = f"{METHODS[peer]}: {row[peer]}"
            yield [row["table"], *(f"{ratio:.3f}" for ratio in ratios), figure, best]


def date_of(path: Path) -> str:
    """Date of the last commit of a file."""
    git = ["git", "log", "-1", "--format=%cs", "--", str(path)]
    return subprocess.run(git, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def page(date_of: Callable[[Path], str] = date_of) -> str:
    """The whole page."""
    lines = [
        "# Benchmarks",
        "",
        "Speed and accuracy of looms compared with other methods, measured in the same run; and "
        "where looms loses.",
        "",
        "`python benchmarks/pages.py` makes this page from the tables in `benchmarks/results/`. "
        "The line above each table has the command that produced it, the machine and the "
        "versions. Times are wall-clock seconds unless they are called CPU seconds.",
        "",
    ]
    for section in SECTIONS:
        head, rows = read(section.file)
        command, _, versions = head.rpartition("; 2 cores, ")
        date = date_of(RESULTS / f"{section.file}.csv")
        shown = [
            [cell(row, name) for name in section.columns] for row in filter(section.rows, rows)
        ]
        lines += [f"## {section.title}", "", section.text, ""]
        lines += [f"`{command}`, {date}. 2 cores, {versions}.", ""]
        lines += markdown(list(section.columns.values()), shown)
    lost = list(lost_tables())
    counts = {
        name: sum(float(row[place]) > 1 for row in lost)
        for place, name in enumerate(OURS.values(), 1)
    }
    lines += [
        "## Where looms loses",
        "",
        "On some of the twenty tables the best of the six peers has a smaller error: "
        + " and ".join(f"than {name} on {count}" for name, count in counts.items())
        + ". Error of looms relative to that of the best peer:",
        "",
    ]
    lines += markdown(["table", *OURS.values(), "score", "best peer"], lost)
    lines += [
        "The other comparisons in which the best peer has the better score:",
        "",
    ]
    lines += markdown(["comparison", "where", "score", "looms", "better"], list(losses()))
    lines += [
        "With the whole kernel matrix, memory grows with the square of the number of rows and "
        "time with the cube. `benchmarks/tables/README.md` lists what was tried on the other half "
        "of the tables without success. `benchmarks/results/` holds many more tables, each with "
        "its command in the first line.",
    ]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
