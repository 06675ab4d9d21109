"""Numbers of the pages, from the tables in `benchmarks/results/`.

python benchmarks/pages.py

writes the page of benchmarks, `docs/reference/benchmarks.md`, and the numbers in the sentences of
other pages (`_sentences.py`).
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, median
from string import Template

from _sentences import SENTENCES, decimals, filled
from _sentences import significant as short

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


def read(name: str) -> list[Row]:
    lines = (RESULTS / f"{name}.csv").read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def span(values: list[float]) -> str:
    low, high = (short(str(value), 2) for value in (min(values), max(values)))
    return f"{low} to {high}"


def markdown(heads: list[str], rows: Iterable[list[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in (heads, *rows)]
    return "\n".join([lines[0], "|---" * len(heads) + "|", *lines[1:]])


def suite() -> Iterator[list[str]]:
    """Methods on the twenty tables: relative errors, and CPU seconds of a fit."""
    found: dict[str, list[list[str]]] = {}
    for size in SIZES:
        for row in read(f"tables_report_{size}"):
            if row["measure"] == "loss" and row["method"] in METHODS:
                names = "error_ratio", "error_ratio_low", "error_ratio_high"
                ratio, low, high = (decimals(row[name], 2) for name in names)
                each = [f"{ratio} ({low} to {high})", short(row["cpu_seconds"], 2)]
                found.setdefault(row["method"], []).append(each)
    for method, sizes in found.items():
        errors, seconds = zip(*sizes, strict=True)
        missing = [""] * (len(SIZES) - len(sizes))
        yield [METHODS[method], *errors, *missing, ", ".join(seconds)]


def of_looms(column: str) -> str:
    """A figure of the default call on the twenty tables, one for each size."""
    found = [
        short(row[column], 2)
        for size in SIZES
        for row in read(f"tables_report_{size}")
        if (row["measure"], row["method"]) == ("loss", "looms")
    ]
    return listed(found)


def listed(figures: list[str]) -> str:
    """Figures in a sentence, one for each size."""
    return f"{', '.join(figures[:-1])} and {figures[-1]}"


def two_that_carry() -> tuple[str, str]:
    """The two tables on which the default call is best, and its mean errors without them."""
    by_size = [ratios("looms", size) for size in SIZES]
    two = list(by_size[0])[-2:]  # of the smallest ratios
    means = [
        decimals(str(geometric_mean(one[name][0] for name in one if name not in two)), 2)
        for one in by_size
    ]
    return " and ".join(two), listed(means)


def medians() -> str:
    """Median error of the default call relative to the best peer, one for each size."""
    return listed(
        [
            decimals(str(median(ratio for ratio, _ in ratios("looms", size).values())), 3)
            for size in SIZES
        ]
    )


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
        yield [download(speed.file, speed.title), span(ours), span(theirs), span(times)]


def large() -> Iterator[list[str]]:
    columns = "seconds", "cpu_seconds", "peak_gigabytes", "test_error", "test_log_loss"
    for file, title in LARGE.items():
        rows = [row for row in read(file) if row["method"] != "rate_of_noise"]
        for k, row in enumerate(rows):
            numbers = [short(row[name]) for name in columns]
            yield ["" if k else download(file, title), METHODS[row["method"]], *numbers]


def losses() -> Iterator[list[str]]:
    """Comparisons in which a peer is better: in how many cases, and the one with the most."""
    for each in COMPARISONS:
        lost, cases = each.lost(), list(each.cases())
        if lost:
            _, case, ours, peer, best = lost[0]
            name = f"{case} rows" if case.isdigit() else case
            most = f"{name}: {short(str(ours))}; {peer} {short(str(best))}"
            title = download(each.file, each.title)
            yield [title, each.score, f"{len(lost)} of {len(cases)}", most]


def download(name: str, about: str) -> str:
    """Link to a table, by what it is about."""
    return f"{{download}}`{about.replace('`', '')} <../../benchmarks/results/{name}.csv>`"


def page() -> str:
    """The whole page."""
    one = ratios("looms_rbf", "500")
    suites, each = (
        [download(f"tables_report_{size}{ending}", about) for size, about in SIZES.items()]
        for ending in ("", "_each")
    )
    two, without_two = two_that_carry()
    text = TEXT.substitute(
        medians=medians(),
        two=two,
        without_two=without_two,
        suite=markdown(["", *suites, "CPU s of a fit"], suite()),
        won=of_looms("better_than_all_peers"),
        evaluate=of_looms("evaluate_cpu_seconds"),
        lost=markdown(["table", *each], lost()),
        lost_by_one=sum(ratio > 1 for ratio, _ in one.values()),
        worst=" and ".join(
            f"{name} ({short(str(ratio))})" for name, (ratio, _) in list(one.items())[:2]
        ),
        times=markdown(["rows", "fit", "fit and `evaluate()`"], times()),
        of_times=download("certificate_cost", "CPU seconds"),
        speeds=markdown(["", "looms: s", "refits: s", "ratio"], speeds()),
        large=markdown(["", "method", "s", "CPU s", "GB", "test error", "log loss"], large()),
        losses=markdown(["comparison", "score", "cases", "largest difference"], losses()),
    )
    return text.lstrip()


TEXT = Template("""
# Benchmarks

Accuracy and time of looms beside other methods, and where looms loses. Links lead to the tables;
their first lines have command, versions, speed of the computer, of two x86-64 cores, and the commit
of the code, or, if that is not known, the commit that the table came with. The speed differs from
table to table: compare seconds, also CPU seconds, only within a table.

## Accuracy

Twenty real tables, by which nothing of looms was chosen, with every method at its defaults. The
error is the log loss, or the root mean square error where the target is a number, divided by that
of the best of the seven peers on the same table, which is known only afterwards. In brackets is the
95 % interval over tables.

```{figure} ../gallery/3_kernels/images/sphx_glr_plot_suite_001.png
:target: ../gallery/3_kernels/plot_suite.html
:alt: Errors of looms and seven other methods on twenty tables, relative to the best of the seven.
:width: 460px

Error relative to the best of the seven peers on each table, with 500 rows.
```

$suite

The figures are geometric means. Two tables, $two, carry those of the default call: without them it
has $without_two, and its medians are $medians. It beats all seven peers on $won tables;
`evaluate()` after the fit takes $evaluate CPU seconds. Four tables have less than 500 rows to train
on. Tables on which a peer is better:

$lost

A peer is better than `"rbf"` alone on $lost_by_one with 500 rows, most on $worst.
`benchmarks/tables/README.md` has other measures, and what was tried without success.

## Time

$of_times of `KernelClassifier()`, one kernel:

$times

```{figure} ../gallery/3_kernels/images/sphx_glr_plot_time_001.png
:target: ../gallery/3_kernels/plot_time.html
:alt: Seconds over rows: the default call from 300 to 100,000 rows, and one kernel to a million.
:width: 460px

[Time and memory](../guide/performance.md) has the numbers.
```

## Compared with refits

```{figure} ../gallery/4_benchmarks/images/sphx_glr_plot_refits_001.png
:target: ../gallery/4_benchmarks/plot_refits.html
:alt: Time of refits divided by that of looms, between 18 and 143 for four tasks.
:width: 460px

How many times as long refits take.
```

$speeds

looms tunes a least-squares model and the grid search an SVM; the other results are equal up to
rounding or the tolerance of a solver. No time has a nested score in it.

## Many rows

With 500 landmarks, and 1000 for a million rows; the default call takes its own number, and has
trees beside its kernels. A tenth of the labels of the synthetic table is flipped.

$large

## Where looms loses

A peer is better in some cases of these comparisons, too:

$losses

All other tables are in `benchmarks/results/` of a clone.
""")


def pages() -> dict[Path, str]:
    """Text of each page with numbers of tables."""
    found = {PAGE: page()}
    for name, sentences in SENTENCES.items():
        path = ROOT / name
        found[path] = filled(path.read_text(encoding="utf-8"), sentences, read)
    return found


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
