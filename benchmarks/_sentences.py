"""Sentences of the pages with numbers of the tables in `benchmarks/results/`.

In braces stand a table, a row by its first columns (`KEYS` has their number; else the first), a
column, and the form of the number: ``2`` decimals, ``s2`` significant digits, ``%1`` percent in so
many decimals, ``+3`` always with a sign. The rows ``least`` and ``most`` have the extremes of each
column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_UP, Decimal
from string import Formatter

Rows = list[dict[str, str]]

#: Tables with short names.
NAMES = {
    "suite500": "tables_report_500",
    "suite2000": "tables_report_2000",
    "suiteall": "tables_report_all",
    "flights": "large_tables_flights_100000_rank_500",
    "synthetic": "large_tables_synthetic_100000_rank_500",
    "million": "large_tables_synthetic_1000000_rank_1000",
    "grid": "against_grid_search",
    "liquid": "against_liquidsvm",
}
#: Number of the first columns by which a row is found.
KEYS = {
    **dict.fromkeys(("suite500", "suite2000", "suiteall", "liquid", "full_kernel_rows"), 2),
    **dict.fromkeys(("nested_coverage", "noise", "wide_features", "windows_of_time"), 2),
    **dict.fromkeys(("nonconformity", "nonconformity_rules"), 2),
    **dict.fromkeys(("when_loo_lies", "evaluation_cost", "pooled_figures", "pair_wmw"), 3),
    **dict.fromkeys(("goodness_of_fit_level", "row_order_tables"), 3),
    **{"mislabelled": 4, "jackknife_coverage": 4, "honest_scores": 5},
}
#: Estimators in the tables of the page on noise.
_CLASSES = {
    "`KernelClassifier()`": "KernelClassifier()",
    '`Search(method="grid")`': "KernelClassifier(search=Search(method='grid'))",
    "`cv=10`": "KernelClassifier(cv=10)",
    '`kernel="ard"`': "KernelClassifier(kernel='ard')",
    '`calibration="beta"`': "KernelClassifier(calibration='beta')",
    '`loss="hinge"`': "KernelClassifier(loss='hinge')",
    "`n_landmarks=30`, 240 rows": "KernelClassifier(n_landmarks=30); 240 rows; nested=True",
    "16 groups of 4 rows": "KernelClassifier().fit(groups=); nested=True",
    'candidates `["linear", "rbf"]`, the best': (
        "TabularClassifier(['linear'; 'rbf']; combine='best')"
    ),
    "the same, stacked": "TabularClassifier(['linear'; 'rbf']; combine='stack')",
    "the same and boosted trees, 120 rows": (
        "TabularClassifier(['linear'; 'rbf'] and boosted trees)"
    ),
    "`TabularClassifier()` on a frame with texts and gaps": "TabularClassifier(); texts and gaps",
    "`TabularClassifier()`, 1100 rows, with boosted trees": "TabularClassifier(); 1100 rows",
}
_NUMBERS = {
    "`()`": "KernelRegressor()",
    "`(cv=10)`": "KernelRegressor(cv=10)",
    "`()`, `evaluate(nested=False)`": "KernelRegressor(); nested=False",
}
_OTHERS = (
    (
        "leave-one-out error of the tuned model, `evaluate(nested=False)`",
        "0.5",
        "KernelClassifier(); nested=False error",
    ),
    ("the same with groups", "0.5", "KernelClassifier().fit(groups=); nested=False error"),
    (
        "`NonconformityClassifier`, least of 110 validation errors",
        "0.5",
        "NonconformityClassifier() least validation error",
    ),
    ('"own" column of `assess`: error', "0.5", "assess error: leave-one-out column"),
    ('"own" column of `assess`: AUC', "0.5", "assess auc: leave-one-out column"),
    (
        "importance of a column above twice its standard error",
        "0.025",
        "report features of importance > 2 s.e.",
    ),
    (
        "coverage of 90 % sets, `KernelClassifier()`",
        "0.9",
        "KernelClassifier().predict_set coverage of new rows",
    ),
    (
        "share of flipped labels among the six most suspect, a tenth flipped",
        "0.1",
        "case_deletion precision of suspects",
    ),
    (
        "rows that `looms diagnose` flags as influential",
        "0.05",
        "diagnose rows flagged as influential",
    ),
    ("BER + 2 s.e. below ½", "0.025", "report BER + 2 s.e. below a guess"),
)
_OUTER = {
    "`assess`, 10 random splits": "assess",
    **{
        f'`method="{name}"`': f"assess; method='{name}'"
        for name in ("kfold", "forward", "bootstrap")
    },
}
_FIELD = re.compile(r"(\w+)\[(.*)\]\[(\w+)\]")
_NUMBER = r"([-−+]?\d(?:[\d.,]*\d)?)"


def significant(text: str, digits: int = 3) -> str:
    """A number in few digits; empty for NaN."""
    value = float(f"{float(text or 'nan'):.{digits}g}")
    return "" if value != value else f"{value:,.10g}" if value >= 10_000 else f"{value:.10g}"


def decimals(text: str, digits: int) -> str:
    """Rounded as it stands in the table, halves up."""
    return str(Decimal(text).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


class Cell(str):
    """A number of a table."""

    def __format__(self, form: str) -> str:
        kind, digits = (form[0], int(form[1:])) if form[0] in "s%+" else ("", int(form))
        if kind == "s":
            return significant(self, digits)
        text = decimals(str(Decimal(self) * 100) if kind == "%" else self, digits)
        text = f"{Decimal(text):,.{digits}f}"
        return "+" * (kind == "+" and text[0] != "-") + text.replace("-", "−")


def plus_minus(cell: str, form: int, error: str = "standard_error", value: str = "mean") -> str:
    """Braces of a mean and its standard error."""
    return f"{{{cell}[{value}]:{form}}} ± {{{cell}[{error}]:{form}}}"


def of_noise(estimator: str, *figures: str) -> str:
    """Cells of a line on scores of noise."""
    cells = (plus_minus(f"noise[{estimator} {figure}]", 3) for figure in figures)
    return f"{' | '.join(cells)} |"


class Tables(dict[str, dict[str, dict[str, Cell]]]):
    """Tables by name, with their rows, read when they are asked for."""

    def __init__(self, read: Callable[[str], Rows]) -> None:
        self.read = read

    def __missing__(self, name: str) -> dict[str, dict[str, Cell]]:
        rows, n_keys = self.read(NAMES.get(name, name)), KEYS.get(name, 1)
        found = {}
        for row in rows:
            found[" ".join([*row.values()][:n_keys])] = {k: Cell(v) for k, v in row.items()}
        for extreme, take in (("least", min), ("most", max)):
            found[extreme] = {}
            for column in rows[0]:
                numbers = [row[column] for row in rows if _is_number(row[column])]
                if numbers:
                    found[extreme][column] = Cell(take(numbers, key=float))
        self[name] = found
        return found


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d[\d.]*(e[-+]\d+)?", text) is not None


def filled(text: str, sentences: Iterable[str], read: Callable[[str], Rows]) -> str:
    """A page with the numbers of its sentences, each of which stands there once, in any lines."""
    tables = Tables(read)
    for sentence in sentences:
        pattern, values = "", []
        for words, field, form, _ in Formatter().parse(sentence):
            pattern += re.sub(r"(?:\\\s)+", r"\\s+", re.escape(words))
            if field is not None:
                pattern += _NUMBER
                table, row, column = _FIELD.fullmatch(field).groups()
                values.append(format(tables[table][row][column], form))
        matches = list(re.finditer(pattern, text))
        if len(matches) != 1:
            raise ValueError(f"The page has {len(matches)} sentences like {sentence!r}.")
        for k, value in reversed([*enumerate(values, 1)]):
            start, end = matches[0].span(k)
            text = text[:start] + value + text[end:]
    return text


def at(spread: str) -> str:
    """Distance and bias of an estimate of the error."""
    cell = f"when_loo_lies[spread given; n = {spread}]"
    return f"{{{cell}[away]:3}}, {{{cell}[lean]:+3}} ± {{{cell}[lean_error]:3}}"


def tuned(nested: str) -> str:
    """Error rates of balanced noise with 30, 60 and 200 rows."""
    rows = (f"honest_scores[classes {n} 0.5 {nested} error]" for n in (30, 60, 200))
    return " | ".join(plus_minus(row, 3) for row in rows)


def repeated(held_out: str) -> str:
    """Error rates of noise with one row, and with four rows, of each unit."""
    rows = (f"when_loo_lies[repeats noise; {n} rows a unit {held_out}]" for n in (1, 4))
    return " | ".join(plus_minus(row, 3, "lean_error", "figure") for row in rows)


def pooled(column: str) -> str:
    """Areas under the curve on noise by ridges."""
    machines = ("ridge 1", "ridge 10", "ridge 100", "tuned")
    return " | ".join(f"{{pooled_figures[60 0.5 {name}][{column}]:3}}" for name in machines)


def coverage(machine: str, *sizes: int) -> str:
    """Coverage of intervals by a machine, and the number of rows."""
    return ", ".join(f"{{nested_coverage[{n} {machine}][coverage]:3}} ({n})" for n in sizes)


def window(series: str, held_out: str, shown: str) -> str:
    """Line of errors from windows of time."""
    cell = f"windows_of_time[{series} {held_out}]"
    return f"| {shown} | {held_out} | {{{cell}[own]:2}} | {{{cell}[later]:2}} |"


def rejected(title: str, machine: str) -> str:
    """Line of the shares of models whose fit is called poor."""
    tests = ("labels", "held-out", "pairs")
    cells = (f"{{goodness_of_fit_level[{machine} {test}][rejected]:2}}" for test in tests)
    return f"| {title} | {' | '.join(cells)} |"


def in_order(table: str, n: int) -> str:
    """Line of the test of row order."""
    cell = f"row_order_tables[{table} {n} "
    return (
        f"| {table} | {{{cell}as they are][error]:3}} | {{{cell}as they are][error_by_blocks]:3}} "
        f"| {{{cell}as they are][p]:s3}} | {{{cell}shuffled][p]:s3}} |"
    )


def report(method: str, size: str = "suite500") -> str:
    """Relative error of a method on the twenty tables, with its interval."""
    cell = f"{size}[loss {method}]"
    low, high = (f"{{{cell}[error_ratio_{end}]:2}}" for end in ("low", "high"))
    return f"{{{cell}[error_ratio]:2}} ({low} to {high})"


SENTENCES: dict[str, list[str]] = {
    "README.md": [
        "which takes {default_call[least][evaluations_to_fit]:1} to"
        " {default_call[most][evaluations_to_fit]:1} times as long as the fit",
        "the default call takes {flights[looms_auto][seconds]:0} seconds, and LightGBM"
        " {flights[lightgbm][seconds]:1}, at an error of {flights[looms_auto][test_error]:3} and"
        " {flights[lightgbm][test_error]:3}",
        "has the lowest loss on {suite500[loss looms][better_than_all_peers]:0} tables",
        "it has {suite500[error looms][error_ratio]:2} × that of the best, and a grid-searched SVM"
        " {suite500[error svc_grid][error_ratio]:2} ×",
        *(
            f"| {title} | {report(name)} | {{suite500[loss {name}][cpu_seconds]:{digits}}} |"
            for title, name, digits in (
                ("looms", "looms", 1),
                ("CatBoost", "catboost", 1),
                ("SVM, grid of 110 points", "svc_grid", 1),
                ("LightGBM", "lightgbm", 2),
            )
        ),
        f"With up to 2000 rows looms has {report('looms', 'suite2000')} and CatBoost"
        " {suite2000[loss catboost][error_ratio]:2}, with all, up to 6666,"
        f" {report('looms', 'suiteall')} and {{suiteall[loss catboost][error_ratio]:2}}.",
        "300 rows take {default_call[300][fit_seconds]:1} s for the fit and"
        " {default_call[300][evaluate_seconds]:1} s more for `evaluate()`, 1000 rows"
        " {default_call[1000][fit_seconds]:1} s and {default_call[1000][evaluate_seconds]:1} s;",
        "of 11 columns takes {default_call[100000][fit_seconds]:0} s, and that of CatBoost"
        " {default_call[100000][catboost_seconds]:0} s",
    ],
    "docs/start/choosing.md": [
        "{default_call[300][fit_seconds]:1} for 300 rows, {default_call[1000][fit_seconds]:1} for"
        " 1000 |",
        "| {default_call[2000][fit_seconds]:1} for 2000, {default_call[6000][fit_seconds]:0} for"
        ' 6000; with `"rbf"` {liquid[synthetic 5000][looms_seconds]:0} for 5000 |',
        "| {default_call[20000][fit_seconds]:0} for 20,000, {default_call[100000][fit_seconds]:0}"
        " for 100,000 |",
        "`n_landmarks=1000` | {million[looms_rbf][seconds]:0} |",
        'is {pair_wmw[all all rbf][press]:3} for `"press"`,'
        ' {pair_wmw[all all rbf][cross_entropy]:3} for `"cross_entropy"` and'
        ' {pair_wmw[all all rbf][wmw_10]:3} for `"wmw"`',
    ],
    "docs/start/which_score.md": [
        *(
            f"| {title} | {at(f'40 {name}')} | {at(f'100 {name}')} |"
            for title, name in (
                ("leave-one-out", "leave-one-out"),
                ("10 folds", "10 folds"),
                ("5 folds", "5 folds"),
            )
        ),
        f"| AUC of pooled leave-one-out outputs | {pooled('pooled_auc')} |",
        f"| AUC of pairs | {pooled('pair_auc')} |",
        "| the same, nested | | | | {pooled_figures[60 0.5 tuned and nested][pair_auc]:3} |",
        f"| leave-one-out, tuned model (`evaluate(nested=False)`) | {tuned('plain')} |",
        f"| nested, ten folds (`evaluate()`) | {tuned('folds')} |",
        f'| nested, each row (`Search(method="grid")`) | {tuned("grid")} |',
        f"| each row left out | {repeated('each row leave-one-out')} |",
        f"| each unit left out (`groups=`) | {repeated('each unit leave-one-out')} |",
        f"| each unit, nested | {repeated('each unit nested')} |",
    ],
    "docs/guide/coming_from.md": [
        "the mean log loss is {calibration[mean][ours_log_loss]:3}, in scikit-learn"
        " {calibration[mean][fixed_log_loss]:3} with `cv=5`, and"
        " {calibration[mean][selecting_log_loss]:3} if tuning",
    ],
    "docs/guide/comparison.md": [
        "has errors of {grid[banana][grid_test_error]:3}, {grid[breast_cancer][grid_test_error]:3},"
        " {grid[heart][grid_test_error]:3} and {grid[ada][grid_test_error]:3}; looms has"
        " {grid[banana][looms_test_error]:3}, {grid[breast_cancer][looms_test_error]:3},"
        " {grid[heart][looms_test_error]:3} and {grid[ada][looms_test_error]:3}, in"
        " 1/{grid[least][times_faster]:0} to 1/{grid[most][times_faster]:0} of the time",
        "looms has {suite500[error looms][error_ratio]:2} × that of the best method, and the SVM"
        " {suite500[error svc_grid][error_ratio]:2} ×",
        "the error of LightGBM is {flights[lightgbm][test_error]:3}, after"
        " {flights[lightgbm][seconds]:1} seconds, and that of the default call of looms, with trees"
        " beside its kernels, {flights[looms_auto][test_error]:3} after"
        " {flights[looms_auto][seconds]:0}.",
        "a fit of LightGBM takes {suite500[loss lightgbm][cpu_seconds]:2} CPU seconds, one of looms"
        " {suite500[loss looms][cpu_seconds]:1}.",
        "is {suite500[loss looms][error_ratio]:2} for the default,"
        " {suite500[loss catboost][error_ratio]:2} for CatBoost and"
        " {suite500[loss lightgbm][error_ratio]:2} for LightGBM",
        "has an error of {synthetic[looms_ard][test_error]:3} in"
        " {synthetic[looms_ard][seconds]:0} seconds, and LightGBM"
        " {synthetic[lightgbm][test_error]:3} in {synthetic[lightgbm][seconds]:1}",
        "they take 1/{jackknife_mapie[concrete][times_faster]:0} of the time on 500 rows and"
        " 1/{jackknife_mapie[yacht][times_faster]:0} on 100",
    ],
    "docs/guide/intervals.md": [
        "that leave out each row | at least 2c − 1 |"
        " {nested_coverage[20 fixed][coverage]:3} (20 rows),"
        " {nested_coverage[100 fixed][coverage]:3} (100) |",
        '| the same, `method="minmax"` | at least c |'
        " {jackknife_coverage[concrete 500 100 minmax][coverage]:3},"
        " {jackknife_coverage[yacht 100 100 minmax][coverage]:3} (real) |",
        '| the same, `method="scaled"` | at least 2c − 1 |'
        " {jackknife_coverage[concrete 500 100 scaled][coverage]:3},"
        " {jackknife_coverage[yacht 100 100 scaled][coverage]:3} (real) |",
        f"by the scale of all features | {coverage('grid', 20, 100)} |",
        f"at least 2c − 1 − √(2 / rows) | {coverage('folds', 20, 100)};",
        f"stacked with boosted trees {coverage('trees', 20, 100, 450)} |",
        f"`evaluate(nested=False)` | none | {coverage('plain', 20, 100)} |",
        f"`ard` kernel of five widths | none | {coverage('plain ard', 20, 100)} |",
    ],
    "docs/guide/kernels.md": [
        "the default has {suite500[loss looms][error_ratio]:2} × the error of the best of seven"
        ' other methods, and `"rbf"` alone {suite500[loss looms_rbf][error_ratio]:2} ×; a fit takes'
        " {suite500[loss looms][cpu_seconds]:1} CPU seconds instead of"
        " {suite500[loss looms_rbf][cpu_seconds]:1}",
    ],
    "docs/guide/large_tables.md": [
        "with a tenth of the labels flipped its error is {synthetic[looms_ard][test_error]:3}, and"
        ' that of `"rbf"` {synthetic[looms_rbf][test_error]:3}.',
        "the default call has an error of {flights[looms_auto][test_error]:3}, LightGBM"
        ' {flights[lightgbm][test_error]:3}, `"ard"` {flights[looms_ard][test_error]:3} and `"rbf"`'
        " {flights[looms_rbf][test_error]:3}",
    ],
    "docs/guide/noisy_labels.md": [
        "On 2007 digits, odd or even, {mislabelled[usps_test odd or even 2007 3 looms]"
        "[precision]:%0} % of them are wrong, as by cleanlab with the same model; by cleanlab with"
        " a logistic regression {mislabelled[usps_test odd or even 2007 3 cleanlab logistic"
        " regression][precision]:%0} %.",
        "A new fit to 1000 rows of 20 features takes {liquid[synthetic 1000][looms_seconds]:1} s,"
        " to 5000 rows {liquid[synthetic 5000][looms_seconds]:0} s",
    ],
    "docs/guide/performance.md": [
        *(
            f"| {rows} | default | {{default_call[{number}][fit_seconds]:{digits}}} s |"
            f"{evaluate} | {{default_call[{number}][peak_gb]:2}} GB |"
            for rows, number, digits, evaluate in (
                ("300", 300, 1, " {default_call[300][evaluate_seconds]:1} s"),
                ("1000", 1000, 1, " {default_call[1000][evaluate_seconds]:1} s"),
                ("2000", 2000, 1, " {default_call[2000][evaluate_seconds]:0} s"),
                ("6000", 6000, 0, ""),
                ("20,000", 20000, 0, ""),
                ("100,000", 100000, 0, ""),
            )
        ),
        '| 1000 | `"rbf"` | {liquid[synthetic 1000][looms_seconds]:1} s |',
        '| 5000 | `"rbf"`, all rows | {liquid[synthetic 5000][looms_seconds]:0} s |',
        *(
            f'| 10,000 | `"rbf"`, {what} | {{full_kernel_rows[10000 {name}][seconds]:s2}} s | |'
            f" {{full_kernel_rows[10000 {name}][peak_gigabytes]:s2}} GB |"
            for what, name in (("landmarks", "auto"), ("all rows", "None"))
        ),
        '| 100,000 | `"rbf"`, 500 landmarks | {synthetic[looms_rbf][seconds]:0} s | |'
        " {synthetic[looms_rbf][peak_gigabytes]:2} GB |",
        '| 1,000,000 | `"rbf"`, 1000 landmarks | {million[looms_rbf][seconds]:0} s | |'
        " {million[looms_rbf][peak_gigabytes]:1} GB |",
        "and takes {default_call[least][ratio]:1} to {default_call[most][ratio]:1} times as long as"
        " CatBoost",
    ],
    "docs/guide/rocket.md": [
        '`KernelClassifier("linear")` takes {wide_features[10000x500 looms][seconds]:2} CPU'
        " seconds, `RidgeClassifierCV` with 17 values"
        " {wide_features[10000x500 RidgeClassifierCV][seconds]:1} s and `LogisticRegressionCV`"
        " {wide_features[10000x500 LogisticRegressionCV][seconds]:1} s, which has the lowest error,"
        " {wide_features[10000x500 LogisticRegressionCV][error]:%1} % against"
        " {wide_features[10000x500 looms][error]:%1} %.",
    ],
    "docs/guide/row_order.md": [
        in_order("mackerel", 634),
        in_order("ionosphere", 351),
        in_order("bupa", 345),
        in_order("pima", 768),
        in_order("breastw", 683),
        in_order("haberman", 306),
    ],
    "docs/guide/nonconformity.md": [
        "on pure noise it is {noise[NonconformityClassifier() least validation error][mean]:3},",
        "the error with a split is {nonconformity_rules[split mean][within_se]:%1} %, against"
        " {nonconformity_rules[split mean][paper]:%1} % for the rule of the paper,"
        " {nonconformity_rules[split mean][hold_out]:%1} % for hold-out and"
        " {nonconformity_rules[split mean][refit]:%1} % for the best model of the split",
        "On seven tables of the paper it has {nonconformity[standard mean][within_se_beside_cv]:%1}"
        " %, and a grid search in the same ten folds {nonconformity[standard mean][cv]:%1} %",
    ],
    "docs/guide/diagnostics.md": [
        rejected("flexible model, which is true", "flexible itself"),
        rejected("flexible model, a smooth curve is true", "flexible curve"),
        rejected("flexible model, waves are true", "flexible waves"),
        rejected("stiff model, which is true", "stiff itself"),
        rejected("stiff model, waves are true", "stiff waves"),
    ],
    "docs/guide/groups_and_time.md": [
        window(series, held_out, shown)
        for series, shown in (
            ("0", "neighbors uncorrelated"),
            ("0.97", "correlated by 0.97"),
            ("level, time given", "a level that drifts, the time a feature"),
            ("coefficients, time given", "coefficients that drift, the time a feature"),
        )
        for held_out in ("each row", "10 windows", "5 windows by rows before")
    ],
    "docs/guide/svm.md": [
        "all 634 models take {svm_loo_speed[least][seconds]:2} to"
        " {svm_loo_speed[C=100 gamma=0.5][seconds]:2} s; `cross_val_predict` with `LeaveOneOut`"
        " takes {svm_loo_speed[least][refits_seconds]:1} to"
        " {svm_loo_speed[most][refits_seconds]:1} s",
        "at 5000 rows liquidSVM's SVM has {liquid[synthetic 5000][hinge_test_error]:%1} %, the"
        " squared loss {liquid[synthetic 5000][looms_test_error]:%1} %",
    ],
    "docs/explanation/how_it_works.md": [
        "Value and gradient for a kernel with 20 widths take"
        " {evaluation_cost[4000 ARD press][value_and_gradient_ratio]:1} times as long",
    ],
    "docs/explanation/trust.md": [
        "Three rows take {certificate_cost[300][certificate]:3} CPU seconds at 300 rows,"
        " {certificate_cost[1000][certificate]:2} at 1000 and"
        " {certificate_cost[2000][certificate]:2} at 2000",
    ],
    "docs/explanation/noise.md": [
        *(
            f"| {title} | {of_noise(name, 'error', 'auc', 'log_loss')}"
            for title, name in _CLASSES.items()
        ),
        *(
            f"| {title} | {of_noise(name, 'r2', 'r2 of new rows', 'coverage of new rows')}"
            for title, name in _NUMBERS.items()
        ),
        *(
            f"| {title} | {of_noise(name, 'error', 'auc', 'error: interval better than chance')}"
            for title, name in _OUTER.items()
        ),
        *(
            f"| {title} | {chance} | {plus_minus(f'noise[{row}]', 3)} |"
            for title, chance, row in _OTHERS
        ),
    ],
}
