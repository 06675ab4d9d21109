"""The page of benchmarks, `docs/reference/benchmarks.md`, from the tables in `benchmarks/results/`.

python benchmarks/pages.py

Every number on it is one of a table; dates are those of the commits in their first lines.
"""

from __future__ import annotations

import csv
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from string import Template

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "reference" / "benchmarks.md"

Row = dict[str, str]

METHODS = {
    "looms": "looms, the default call",
    "looms_auto": "looms, the default call",
    "looms_rbf": 'looms, `"rbf"`',
    "looms_ard": 'looms, `"ard"`',
    "nystroem_ridge": "Nystroem and ridge",
    "hist_gradient_boosting": "HistGradientBoosting",
    "lightgbm": "LightGBM",
    "catboost": "CatBoost",
    "xrfm": "xRFM",
    "svc_grid": "SVM, grid of 110 points",
    "linear": "linear",
    "rate_of_noise": "(share of flipped labels)",
}
PEERS = (
    *("nystroem_ridge", "hist_gradient_boosting", "lightgbm", "catboost", "xrfm"),
    *("svc_grid", "linear"),
)
#: Most training rows in the tables of the suite.
SIZES = {"500": "up to 500 rows", "2000": "up to 2000 rows", "all": "all rows"}
LARGE = {
    "large_tables_synthetic_100000_rank_500": "synthetic, 100,000 rows",
    "large_tables_synthetic_1000000_rank_1000": "synthetic, 1,000,000 rows",
    "large_tables_flights_100000_rank_500": "flights, 100,000 rows",
}


@dataclass
class Comparison:
    """A score of looms and of peers on several cases, named in the column `where`.

    They are in the columns `ours` and `peers`, or, for a `method` column, in rows with these names.
    """

    file: str
    title: str
    score: str
    where: str
    ours: str
    peers: dict[str, str]
    rows: Callable[[Row], bool] = lambda row: True
    method: str = ""
    column: str = ""
    greater_is_better: bool = False

    def cases(self) -> Iterator[tuple[str, float, dict[str, float]]]:
        """Name of each case, the score of looms, and those of the peers."""
        scores: dict[str, dict[str, str]] = {}
        for row in filter(self.rows, read(self.file)):
            found = {row[self.method]: row[self.column]} if self.method else row
            scores.setdefault(row[self.where], {}).update(found)
        for case, values in scores.items():
            peers = {name: float(values[name]) for name in self.peers if name in values}
            if self.ours in values and peers:
                yield case, float(values[self.ours]), peers

    def lost(self) -> list[tuple[float, str, float, str, float]]:
        """Cases in which a peer is better: ratio, case, score of looms, best peer, its score."""
        found, sign = [], -1 if self.greater_is_better else 1
        for case, ours, peers in self.cases():
            name, best = min(peers.items(), key=lambda item: sign * item[1])
            if sign * best < sign * ours:
                found.append(((ours / best) ** sign, case, ours, self.peers[name], best))
        return sorted(found, reverse=True)


MISLABELED = {
    "cleanlab same machine": "cleanlab, the same model",
    "cleanlab logistic regression": "cleanlab, logistic regression",
}
SEARCH = {"GridSearchCV(SVC) on the same grid": "`GridSearchCV(SVC)`"}
COMPARISONS = [
    Comparison(
        "against_grid_search",
        "`GridSearchCV(SVC)`, 110 points",
        "error rate",
        "data",
        "looms_test_error",
        {"grid_test_error": "grid search"},
        lambda row: ":" not in row["data"],
    ),
    Comparison(
        "against_liquidsvm",
        "liquidSVM, the whole kernel matrix",
        "error rate",
        "rows",
        "looms_test_error",
        {"least_squares_test_error": "least squares", "hinge_test_error": "hinge"},
    ),
    Comparison(
        "wide_features",
        "linear models of many features",
        "error rate",
        "size",
        "looms",
        {name: f"`{name}`" for name in ("RidgeClassifierCV", "LogisticRegressionCV")},
        method="classifier",
        column="error",
    ),
    Comparison(
        "calibration",
        "`CalibratedClassifierCV(cv=5)`",
        "log loss",
        "set",
        "ours_log_loss",
        {"fixed_log_loss": "tuned once", "selecting_log_loss": "tuned in each fold"},
        lambda row: row["set"] != "mean",
    ),
    Comparison(
        "svm_search",
        "tuning an SVM by leave-one-out",
        "seconds",
        "data",
        "pattern",
        SEARCH,
        method="search",
        column="seconds",
    ),
    Comparison(
        "mislabelled",
        "finding mislabeled rows",
        "precision",
        "data",
        "looms",
        MISLABELED,
        method="ranking",
        column="precision",
        greater_is_better=True,
    ),
    Comparison(
        "mislabelled",
        "finding mislabeled rows",
        "seconds",
        "data",
        "looms",
        MISLABELED,
        method="ranking",
        column="median_seconds",
    ),
    Comparison(
        "nonconformity",
        "a model for each row, `NonconformityClassifier`",
        "error rate",
        "dataset",
        "within_se_beside_cv",
        {"cv": "`GridSearchCV(cv=10)`"},
        lambda row: (
            row["scaling"] == "standard"
            and row["dataset"] not in ("mean", "less paper", "less cv", "standard error")
        ),
    ),
]


@dataclass
class Speed:
    """Seconds of looms and of refits, in a row for each case."""

    file: str
    title: str
    ours: str
    theirs: str
    rows: Callable[[Row], bool] = lambda row: True


SPEEDS = [
    Speed(
        "against_grid_search",
        "tuning, beside `GridSearchCV(SVC)` with 110 points and five folds",
        "looms_seconds",
        "grid_seconds",
        lambda row: ":" not in row["data"],
    ),
    Speed(
        "folds_against_grid_search",
        "ten folds of 64 models, beside `GridSearchCV(KernelRidge)`",
        "cholesky_seconds",
        "grid_search_seconds",
    ),
    Speed(
        "svm_loo_speed",
        "`looms.svm.leave_one_out`, beside `cross_val_predict(SVC)`",
        "seconds",
        "refits_seconds",
        lambda row: row["refits_seconds"] != "",
    ),
    Speed(
        "jackknife_mapie",
        "jackknife+ intervals, beside those of MAPIE",
        "looms_seconds",
        "mapie_seconds",
    ),
    Speed(
        "intervals_of_any",
        "`looms.Intervals` of ridge regressions, beside those of MAPIE",
        "looms_seconds",
        "mapie_seconds",
        lambda row: row["left_out"] == "each row",
    ),
]

#: Tables to download by what they are about; the others are listed by their names.
TABLES = {
    **{f"tables_report_{n}": f"twenty tables, {size}" for n, size in SIZES.items()},
    **{f"tables_report_{n}_each": f"twenty tables, {size}, each" for n, size in SIZES.items()},
    "certificate_cost": "time of one kernel, in CPU seconds",
    "default_call": "time of the default stack",
    **{speed.file: "" for speed in SPEEDS},
    **LARGE,
    **{each.file: "" for each in COMPARISONS},
    "evaluation_cost": "time of a criterion and its gradient, beside LAPACK",
    "low_rank_cost": "the same on landmarks",
    "noise": "scores of pure noise",
}


def first_line(name: str) -> str:
    return (RESULTS / f"{name}.csv").read_text(encoding="utf-8").partition("\n")[0]


def head_of(name: str) -> str:
    """The command of a table."""
    return first_line(name).removeprefix("# ").partition(";")[0]


def read(name: str) -> list[Row]:
    lines = (RESULTS / f"{name}.csv").read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def short(text: str, digits: int = 3) -> str:
    """A number in few digits; empty for NaN."""
    value = float(f"{float(text or 'nan'):.{digits}g}")
    return "" if value != value else f"{value:,.10g}" if value >= 10_000 else f"{value:.10g}"


def hundredths(text: str) -> str:
    """Rounded as it stands in the table, halves up."""
    return str(Decimal(text).quantize(Decimal("0.01"), ROUND_HALF_UP))


def span(values: list[float]) -> str:
    low, high = (short(str(value), 2) for value in (min(values), max(values)))
    return f"{low} to {high}"


def markdown(heads: list[str], rows: Iterable[list[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in (heads, *rows)]
    return "\n".join([lines[0], "|---" * len(heads) + "|", *lines[1:]])


def suite(size: str) -> Iterator[list[str]]:
    """Methods on the twenty tables."""
    for row in read(f"tables_report_{size}"):
        if row["measure"] == "loss" and row["method"] in METHODS:
            names = "error_ratio", "error_ratio_low", "error_ratio_high"
            ratio, low, high = (hundredths(row[name]) for name in names)
            ratio = f"{ratio} ({low} to {high})"
            rank, won = short(row["rank_beside_peers"]), row["better_than_all_peers"]
            times = (short(row[name], 2) for name in ("cpu_seconds", "evaluate_cpu_seconds"))
            yield [METHODS[row["method"]], ratio, rank, won, *times]


def lost() -> Iterator[list[str]]:
    """Tables on which a peer is better than the stack: relative error, and the best peer."""
    by_size = [ratios("looms", size) for size in SIZES]
    for table in sorted(by_size[0], key=lambda name: -max(one[name][0] for one in by_size)):
        each = [one[table] for one in by_size]
        if max(ratio for ratio, _ in each) > 1:
            yield [table, *(f"{short(str(ratio))} ({peer})" for ratio, peer in each)]


def ratios(method: str, size: str) -> dict[str, tuple[float, str]]:
    """Error of a method relative to the best peer, and that peer, by table; largest first."""
    found = {}
    for row in read(f"tables_report_{size}_each"):
        if row["measure"] == "loss":
            peer = min(PEERS, key=lambda name: float(row[name] or "inf"))
            found[row["table"]] = float(row[method]) / float(row[peer]), METHODS[peer]
    return dict(sorted(found.items(), key=lambda item: -item[1][0]))


def times() -> Iterator[list[str]]:
    """CPU seconds of a fit, and with ``evaluate()``, where it repeats the tuning."""
    for row in read("certificate_cost")[:2]:
        yield [short(row[name], 2) for name in ("rows", "fit", "fit_and_nested")]


def speeds() -> Iterator[list[str]]:
    for speed in SPEEDS:
        rows = list(filter(speed.rows, read(speed.file)))
        ours, theirs = ([float(row[name]) for row in rows] for name in (speed.ours, speed.theirs))
        times = [b / a for a, b in zip(ours, theirs, strict=True)]
        yield [speed.title, span(ours), span(theirs), span(times)]


def large() -> Iterator[list[str]]:
    columns = "seconds", "cpu_seconds", "peak_gigabytes", "test_error", "test_log_loss"
    for file, title in LARGE.items():
        for row in read(file):
            if row["method"] != "rate_of_noise" or file.endswith("100000_rank_500"):
                numbers = [short(row[name]) for name in columns]
                yield [title, METHODS[row["method"]], *numbers]


def losses() -> Iterator[list[str]]:
    """Comparisons in which a peer is better: in how many cases, and the one with the most."""
    for each in COMPARISONS:
        lost, cases = each.lost(), list(each.cases())
        if lost:
            _, case, ours, peer, best = lost[0]
            name = f"{case} rows" if case.isdigit() else case
            most = f"{name}: {short(str(ours))}; {peer} {short(str(best))}"
            yield [each.title, each.score, f"{len(lost)} of {len(cases)}", most]


def date_of(name: str) -> str:
    """Date of the last commit that the first line of a table names."""
    commit = re.findall(r"\b[0-9a-f]{7,8}\b", first_line(name).partition("; commit")[2])[-1]
    git = ["git", "log", "-1", "--format=%cs", commit]
    return subprocess.run(git, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def download(name: str) -> str:
    return f"{{download}}`{name}.csv <../../benchmarks/results/{name}.csv>`"


def tables(date_of: Callable[[str], str]) -> Iterator[list[str]]:
    """Tables to download, with their commands and dates."""
    for name, about in TABLES.items():
        titles = [each.title for each in (*SPEEDS, *COMPARISONS) if each.file == name]
        yield [about or titles[0], download(name), f"`{head_of(name)}`", date_of(name)]


def page(date_of: Callable[[str], str] = date_of) -> str:
    """The whole page."""
    stack, one = {size: ratios("looms", size) for size in SIZES}, ratios("looms_rbf", "500")
    head = ["", "relative error (95 % interval)", "mean rank", "won", "CPU s", "of `evaluate()`"]
    others = sorted({path.stem for path in RESULTS.glob("*.csv")} - set(TABLES))
    text = TEXT.substitute(
        suites="\n\n".join(
            f"With {rows} to train on:\n\n{markdown(head, suite(size))}"
            for size, rows in SIZES.items()
        ),
        n_lost=", ".join(
            f"{sum(ratio > 1 for ratio, _ in stack[size].values())} with {rows}"
            for size, rows in SIZES.items()
        ),
        lost=markdown(["table", *SIZES.values()], lost()),
        lost_by_one=sum(ratio > 1 for ratio, _ in one.values()),
        worst=" and ".join(
            f"{name} ({short(str(ratio))})" for name, (ratio, _) in list(one.items())[:2]
        ),
        times=markdown(["rows", "fit", "fit and `evaluate()`"], times()),
        speeds=markdown(["", "looms: s", "refits: s", "ratio"], speeds()),
        large=markdown(["", "method", "s", "CPU s", "GB", "test error", "log loss"], large()),
        losses=markdown(["comparison", "score", "cases", "largest difference"], losses()),
        tables=markdown(["", "table", "command", "date"], tables(date_of)),
        others=", ".join(map(download, others)),
    )
    return text.lstrip()


TEXT = Template("""
# Benchmarks

Accuracy and time of looms beside other methods, and where looms loses. Each comparison was measured
in one run on two x86-64 cores. The [tables](#tables) can be downloaded; the first line of each has
the command, the versions and the commit of the code, or, if that is not known, the commit that the
table came with.

## Accuracy

Twenty real tables, by which nothing of looms was chosen, with every method at its defaults.
The error is the log loss, or the root mean square error where the target is a number. It is divided
by that of the best of the seven peers on the same table: 1 is as good as the best of seven, which
is known only afterwards.

```{figure} ../gallery/3_kernels/images/sphx_glr_plot_suite_001.png
:target: ../gallery/3_kernels/plot_suite.html
:alt: Errors of looms and seven other methods on twenty tables, relative to the best of the seven.
:width: 460px

Error relative to the best of the seven peers on each table, with 500 rows.
```

$suites

The seconds are those of a fit, and of `evaluate()` after it. Each row of looms has its rank among
eight, beside the seven peers alone, and wins a table if it beats all seven. Four tables have less
than 500 rows to train on.

Tables on which the default call has a larger error than the best peer: $n_lost.

$lost

`"rbf"` alone has a larger one on $lost_by_one with 500 rows, most on $worst.
`benchmarks/tables/README.md` has other measures of error, and what was tried on other tables
without success.

## Time

`evaluate()` repeats the tuning without each of up to ten folds, so it takes longer than the fit.
CPU seconds of `KernelClassifier()`, one kernel:

$times

```{figure} ../gallery/3_kernels/images/sphx_glr_plot_time_001.png
:target: ../gallery/3_kernels/plot_time.html
:alt: Seconds over rows: the default call from 300 to 100,000 rows, and one kernel to a million.
:width: 460px

Time over the number of rows; [Time and memory](../guide/performance.md) has the numbers, and the
memory.
```

## Compared with refits

```{figure} ../gallery/4_benchmarks/images/sphx_glr_plot_refits_001.png
:target: ../gallery/4_benchmarks/plot_refits.html
:alt: Time of refits divided by that of looms, between 18 and 143 for four tasks.
:width: 460px

How many times as long refits take.
```

$speeds

looms tunes a least-squares model and the grid search an SVM, so these two differ; the other results
are equal up to rounding or the tolerance of a solver. The seconds are without `evaluate()`; the
score of a grid search needs an outer cross-validation, too.

## Many rows

With 500 landmarks, and 1000 for a million rows. A tenth of the labels of the synthetic table is
flipped. The default call takes its own number of landmarks, and has trees beside its kernels.

$large

## Where looms loses

Besides the tables above, a peer is better in some cases of these comparisons:

$losses

## Tables

$tables

:::{dropdown} All other tables
$others
:::
""")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
