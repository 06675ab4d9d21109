"""Every figure that looms shows, of pure noise, beside what chance gives.

Features are normal, labels and targets drawn without looking at them, so that nothing can be
learned. "chance" is what a guess has: ½ for error rates and areas of equal classes, log 2 for the
log loss, 0 for R², the nominal coverage of intervals and sets, the level of tests, the share of
flipped labels for the precision of suspects. "reads" is

- chance: the mean over draws is within three standard errors of it;
- worse: on the modest side of it, as machines that learned from noise are;
- flatters: on the other side.

"honest" is what looms names in place of a figure of which it says that it flatters.

Claim checked: of the scores to report none flatters.

    python benchmarks/noise.py [--draws 100] [--jobs 1] [--only NAME]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from _report import as_errors, draws_of, write_table

import looms
from looms import (
    KernelClassifier,
    KernelRegressor,
    NonconformityClassifier,
    Search,
    TabularClassifier,
    TabularRegressor,
)
from looms.diagnostics import case_deletion, influence, left_out_fits
from looms.estimators._trees import BoostedTreesClassifier, BoostedTreesRegressor
from looms.folds import GapKFold
from looms.report import cautions, feature_importance

N, N_FEATURES, N_NEW, ROWS_OF_GROUP, COVERAGE, LEVEL, FLIPPED = 60, 5, 400, 4, 0.9, 0.05, 0.1
SEVERAL = ["linear", "rbf"]

#: Value of guesses, and the sign of what flatters: 1 where more is better.
CHANCE = {
    **{"error": (0.5, -1), "ber": (0.5, -1), "auc": (0.5, 1), "log_loss": (np.log(2), -1)},
    **{"r2": (0.0, 1), "coverage": (COVERAGE, -1)},
}
Figures = dict[str, tuple[float, float, int]]  #: value, chance and sign by name


@dataclass(frozen=True)
class Subject:
    """What is fitted to noise: figures of one draw.

    Attributes
    ----------
    name : of the estimator, with its options.
    figures : of a random generator.
    share : of the draws that it gets.
    instead : what looms names in place of figures of which it says that they flatter.
    """

    name: str
    figures: Callable[[np.random.Generator], Figures]
    share: float = 1.0
    instead: str = ""


def of_names(values: dict[str, float]) -> Figures:
    errors = as_errors(values)
    return {name: (value, *CHANCE[name]) for name, value in errors.items() if name in CHANCE}


def classes(
    rng: np.random.Generator, n: int = N, share: float = 0.5
) -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(size=(n, N_FEATURES)), rng.permutation(np.arange(n) < share * n)


def scores(machine: Any, rng: np.random.Generator, n: int = N, nested: bool = True) -> Figures:
    return of_names(machine.fit(*classes(rng, n)).evaluate(nested=nested))


def raw(rng: np.random.Generator, n: int = N) -> pd.DataFrame:
    """Columns to prepare: numbers of several scales, with gaps, texts of few and of many values."""
    X = rng.normal(size=(n, 3)) * [1.0, 100.0, 0.01]
    X[rng.random(X.shape) < 0.1] = np.nan
    table = pd.DataFrame(X, columns=["age", "income", "dose"])
    table["ward"] = rng.choice(["A", "B", "C"], n)
    table["doctor"] = rng.choice([f"Dr. {k}" for k in range(n // 4)], n)
    return table


def scores_of_tables(machine: Any, rng: np.random.Generator, n: int = N) -> Figures:
    """Scores whose columns are prepared anew without every fold."""
    return of_names(machine.fit(raw(rng, n), classes(rng, n)[1]).evaluate())


def numbers_of_tables(machine: Any, rng: np.random.Generator) -> Figures:
    """The same of numbers, and the share of new targets within intervals."""
    figures = of_names(machine.fit(raw(rng), rng.normal(size=N)).evaluate())
    table, y = raw(rng, N_NEW), rng.normal(size=N_NEW)
    low, high = machine.predict_interval(table, COVERAGE).T
    inside = float(np.mean((low <= y) & (y <= high)))
    return figures | {"coverage of new rows": (inside, *CHANCE["coverage"])}


def rare(machine: Any, rng: np.random.Generator) -> Figures:
    """Figures that the shares of the classes do not move, of one class in five rows."""
    values = machine.fit(*classes(rng, 2 * N, 0.2)).evaluate()
    return of_names({name: values[name] for name in ("balanced_accuracy", "roc_auc")})


def grouped(machine: Any, rng: np.random.Generator, nested: bool = True) -> Figures:
    """Rows of a group are alike and have one label, drawn for the group."""
    X, y = classes(rng, N // ROWS_OF_GROUP + 1)
    groups = np.repeat(np.arange(len(y)), ROWS_OF_GROUP)
    rows = X[groups] + 0.3 * rng.normal(size=(len(groups), N_FEATURES))
    return of_names(machine.fit(rows, y[groups], groups=groups).evaluate(nested=nested))


def numbers(machine: Any, rng: np.random.Generator, nested: bool = True) -> Figures:
    """R², and the share of new targets within intervals."""
    machine.fit(rng.normal(size=(N, N_FEATURES)), rng.normal(size=N))
    figures = of_names(machine.evaluate(nested=nested))
    X, y = rng.normal(size=(N_NEW, N_FEATURES)), rng.normal(size=N_NEW)
    low, high = machine.predict_interval(X, COVERAGE).T
    figures["coverage of new rows"] = (
        float(np.mean((low <= y) & (y <= high))),
        *CHANCE["coverage"],
    )
    figures["r2 of new rows"] = (machine.score(X, y), *CHANCE["r2"])
    return figures


def sets(machine: Any, rng: np.random.Generator) -> Figures:
    """Share of new labels within sets, and log loss of the probabilities of new rows."""
    machine.fit(*classes(rng)).evaluate()
    X, y = classes(rng, N_NEW)
    inside = machine.predict_set(X, COVERAGE)[np.arange(N_NEW), y.astype(int)].mean()
    figures = {"coverage": float(inside)}
    if hasattr(machine, "predict_proba"):
        p = machine.predict_proba(X)[np.arange(N_NEW), y.astype(int)]
        figures["log_loss"] = float(-np.log(p).mean())
    return {f"{name} of new rows": values for name, values in of_names(figures).items()}


def pool(rng: np.random.Generator) -> Figures:
    """The least of 110 validation errors, errors of the choice, and of new rows."""
    machine = NonconformityClassifier(random_state=int(rng.integers(2**31)))
    machine.fit(*classes(rng))
    X, y = classes(rng, N_NEW)
    return {
        **of_names(machine.evaluate()),
        "least validation error": (float(machine.validation_errors_.min()), *CHANCE["error"]),
        "error of new rows": (1 - machine.score(X, y), *CHANCE["error"]),
    }


def assessed(machine: Any, rng: np.random.Generator, **options: Any) -> Figures:
    """Outer figures, how often the interval leaves out chance, and the leave-one-out column."""
    seed = int(rng.integers(2**31))
    scoring = ["accuracy", "balanced_accuracy", "roc_auc"]
    result = looms.assess(machine, *classes(rng), scoring=scoring, random_state=seed, **options)
    figures: Figures = {}
    for name in scoring:
        estimate = result.estimate(name)
        ((key, value),) = as_errors({name: estimate.value}).items()
        chance, sign = CHANCE[key]
        figures[key] = (value, chance, sign)
        # A bound that is better than chance beyond it: one side of a 95 % interval.
        claims = float(estimate.low - chance > 1e-9)
        figures[f"{key}: interval better than chance"] = (claims, LEVEL / 2, 1)
        (loo,) = as_errors({name: estimate.loo}).values()
        figures[f"{key}: leave-one-out column"] = (loo, chance, sign)
    return figures


def compared(rng: np.random.Generator) -> Figures:
    """How often one of two machines is called better than the other."""
    both = {
        "rbf": KernelClassifier(),
        "linear": KernelClassifier("linear"),
    }
    X, y = classes(rng)
    seed = int(rng.integers(2**31))
    result = looms.compare(both, X, y, n_splits=10, scoring="accuracy", random_state=seed)
    p = float(result.differences()["p_value"].iloc[0])
    return {"difference at p < 0.05": (float(p < LEVEL), LEVEL, 1)}


def suspects(rng: np.random.Generator) -> Figures:
    """Share of the most suspect labels that were flipped, where no label tells of another."""
    X, y = classes(rng)
    flipped = rng.permutation(np.arange(N) < FLIPPED * N)
    machine = KernelClassifier().fit(X, y ^ flipped)
    first = case_deletion(machine).mislabeled(int(FLIPPED * N)).index
    precision = float(flipped[first].mean()) if len(first) else FLIPPED
    return {"precision of suspects": (precision, FLIPPED, 1)}


def influential(rng: np.random.Generator) -> Figures:
    """Share of the rows that are called influential."""
    X, y = classes(rng)
    machine = looms.KernelClassifier(mu=1e-3).fit(X, y)
    flagged = influence(left_out_fits(machine, X, y)).flagged
    return {"rows flagged as influential": (len(flagged) / N, LEVEL, 1)}


def report(rng: np.random.Generator) -> Figures:
    """What the report says of a fit: features that matter, cautions, better than a guess."""
    X, y = classes(rng)
    machine = KernelClassifier().fit(X, y)
    scores = machine.evaluate()
    importance = feature_importance(machine)
    matters = importance.value > 2 * importance.standard_error
    titles = {caution["title"] for caution in cautions(machine)}
    warned = bool(titles & {"May be no better than the baseline", "One class for all"})
    ber, error = as_errors(scores)["ber"], scores.standard_errors["balanced_accuracy"]
    return {
        "features of importance > 2 s.e.": (float(np.mean(matters)), LEVEL / 2, 1),
        "BER + 2 s.e. below a guess": (float(ber + 2 * error < 0.5), LEVEL / 2, 1),
        "not called a guess": (float(not warned), LEVEL / 2, 1),
        "a feature gives the target": (float("A feature gives the target" in titles), 0.0, 1),
    }


def subjects() -> Iterator[Subject]:
    C, R = KernelClassifier, KernelRegressor
    flattering: dict[str, Any] = {"instead": "nested or assess"}
    yield Subject("KernelClassifier()", partial(scores, C()))
    optimistic: dict[str, Any] = {"nested": False}
    yield Subject(
        "KernelClassifier(); nested=False", partial(scores, C(), **optimistic), **flattering
    )
    for name, options in {
        "search=Search(method='grid')": {"search": Search(method="grid")},
        "cv=10": {"cv": 10},
        "cv='5x2'": {"cv": "5x2"},
        "search=Search('wmw')": {"search": Search("wmw")},
        "calibration='isotonic'": {"calibration": "isotonic"},
        "calibration='beta'": {"calibration": "beta"},
        "kernel='ard'": {"kernel": "ard"},
    }.items():
        yield Subject(f"KernelClassifier({name})", partial(scores, C(**options)))
    for name, options in {
        "class_weight='balanced'": {"class_weight": "balanced"},
        "threshold='balanced'": {"threshold": "balanced"},
        "threshold='f1'": {"threshold": "f1"},
    }.items():
        yield Subject(f"KernelClassifier({name}), a fifth positive", partial(rare, C(**options)))
    few: dict[str, Any] = {"share": 0.4}
    for name in ("best", "stack"):
        machine = TabularClassifier(SEVERAL, combine=name)
        title = f"TabularClassifier({SEVERAL}, combine={name!r})"
        yield Subject(title, partial(scores, machine), **few)
        yield Subject(f"{title}, 240 rows", partial(scores, machine, n=240), **few)
    title = f"TabularClassifier({SEVERAL}), texts and gaps"
    yield Subject(title, partial(scores_of_tables, TabularClassifier(SEVERAL)), **few)
    tabular = partial(scores_of_tables, TabularClassifier())
    yield Subject("TabularClassifier(), texts and gaps", tabular, share=0.2)
    with_trees = TabularClassifier([*SEVERAL, BoostedTreesClassifier()])
    title = f"TabularClassifier({SEVERAL} and boosted trees)"
    yield Subject(title, partial(scores, with_trees, n=2 * N))
    own = partial(scores, with_trees, n=2 * N, **optimistic)
    yield Subject(f"{title}; nested=False", own, **flattering)
    auto = partial(scores, TabularClassifier(), n=1100)
    yield Subject("TabularClassifier(), 1100 rows", auto, share=0.3)
    auto = partial(numbers_of_tables, TabularRegressor([*SEVERAL, BoostedTreesRegressor()]))
    title = f"TabularRegressor({SEVERAL} and boosted trees), texts and gaps"
    yield Subject(title, auto, **few)
    of_numbers = partial(numbers_of_tables, TabularRegressor(SEVERAL))
    yield Subject(f"TabularRegressor({SEVERAL}), texts and gaps", of_numbers, **few)
    for nested in (True, False):
        more = {} if nested else flattering
        title = f"KernelClassifier().fit(groups=); nested={nested}"
        yield Subject(title, partial(grouped, C(), nested=nested), **more)
    grid = Search(method="grid")
    yield Subject("... search=Search(method='grid'), groups=", partial(grouped, C(search=grid)))
    assessed_instead = flattering | {"instead": "assess"}
    for nested in (True, False):
        more = {} if nested else flattering
        landmarks = partial(scores, C(n_landmarks=30), n=240, nested=nested)
        title = f"KernelClassifier(n_landmarks=30), 240 rows; nested={nested}"
        yield Subject(title, landmarks, **few | more)
    many = partial(scores, C(), n=1100, **optimistic)
    yield Subject("KernelClassifier(), 1100 rows; nested=False", many, share=0.2, **flattering)
    for name, machine in {
        "KernelRegressor()": R(),
        "KernelRegressor(search=Search(method='grid'))": R(search=grid),
        "KernelRegressor(cv=10)": R(cv=10),
    }.items():
        yield Subject(name, partial(numbers, machine))
    plainly = partial(numbers, R(), **optimistic)
    yield Subject("KernelRegressor(); nested=False", plainly, **flattering)
    timed = partial(numbers, R(cv=GapKFold(5, gap=2)), **optimistic)
    yield Subject("KernelRegressor(cv=GapKFold(5, gap=2)); nested=False", timed, **assessed_instead)
    for more in ("", ", cv=10"):
        hinge = C(loss="hinge", cv=10 if more else None)
        name = f"KernelClassifier(loss='hinge'{more}); nested=False"
        yield Subject(name, partial(scores, hinge, **optimistic), **few, **flattering)
    hinge = C(loss="hinge")
    yield Subject("KernelClassifier(loss='hinge')", partial(scores, hinge), share=0.3)
    yield Subject("KernelClassifier().predict_set", partial(sets, C()))
    yield Subject("KernelClassifier(loss='hinge').predict_set", partial(sets, hinge), share=0.2)
    nonconformity = NonconformityClassifier(random_state=0)
    yield Subject("NonconformityClassifier().predict_set", partial(sets, nonconformity), **few)
    yield Subject("NonconformityClassifier()", pool, **few, **assessed_instead)
    plain = C()
    yield Subject("assess", partial(assessed, plain, n_splits=10))
    yield Subject("assess, method='kfold'", partial(assessed, plain, n_splits=10, method="kfold"))
    yield Subject(
        "assess, method='forward'", partial(assessed, plain, n_splits=5, method="forward"), **few
    )
    yield Subject(
        "assess, method='bootstrap'",
        partial(assessed, plain, n_splits=25, method="bootstrap"),
        **few,
    )
    yield Subject("compare", compared, **few)
    yield Subject("case_deletion", suspects)
    yield Subject("diagnose", influential, **few)
    yield Subject("report", report)


def of_draw(subject: Subject, seed: int) -> Figures:
    """Figures of one draw, whose data no other subject has."""
    return subject.figures(np.random.default_rng([seed, *subject.name.encode()]))


def reading(mean: float, error: float, chance: float, sign: int) -> str:
    """Side of chance on which the mean is, by three standard errors."""
    better = sign * (mean - chance)
    return "chance" if abs(better) <= 3 * error + 1e-9 else "flatters" if better > 0 else "worse"


def table_rows(subject: Subject, draws: list[Figures]) -> Iterator[tuple[Any, ...]]:
    for name, (_, chance, sign) in draws[0].items():
        values = np.array([figures[name][0] for figures in draws])
        values = values[np.isfinite(values)]
        if len(values) < 2:
            continue
        mean, error = float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
        reads = reading(mean, error, chance, sign)
        instead = subject.instead if reads == "flatters" else ""
        yield (
            subject.name.replace(", ", "; "),
            name,
            len(values),
            chance,
            mean,
            error,
            reads,
            instead,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    rows: list[tuple[Any, ...]] = []
    for subject in subjects():
        if options.only not in subject.name:
            continue
        n_draws = max(2, round(subject.share * options.draws))
        draws = draws_of(of_draw, subject, n_draws=n_draws, n_jobs=options.jobs)
        for row in table_rows(subject, draws):
            rows.append(row)
            print(*row, sep=" | ", flush=True)
    header = ("estimator", "figure", "draws", "chance", "mean", "standard_error", "reads", "honest")
    if not options.only:
        write_table("noise", header, rows)


if __name__ == "__main__":
    main()
