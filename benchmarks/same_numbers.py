"""The numbers of two states of looms, beside each other: forty models on ten tables.

Every model is fitted to rows of every table of its kind. Kept are outputs of the rows held out and
of new rows, probabilities, scores with their errors, both nested and own, rules, weights of
candidates, intervals and sets, and the outputs of the model without and with some rows.

    PYTHONPATH=before/src python benchmarks/same_numbers.py --write before.pkl
    PYTHONPATH=after/src python benchmarks/same_numbers.py --write after.pkl
    python benchmarks/same_numbers.py --compare before.pkl after.pkl

The comparison prints each quantity of which a bit differs, or that only one state has, with the
largest difference, relative to the largest value; its table counts the others.
"""

import argparse
import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from _report import data_or_exit, quietly, write_table
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.linear_model import LinearRegression, LogisticRegression

from looms import (
    KernelClassifier,
    KernelRegressor,
    Search,
    TabularClassifier,
    TabularRegressor,
)
from looms.estimators._trees import BoostedTreesClassifier, BoostedTreesRegressor
from looms.folds import GapKFold

N_ROWS, N_NEW = 90, 8
STACK = ["linear", "rbf"]


def of_kernel(kernel="rbf", search=None, **options):
    """Kernel model of classes or of numbers."""
    return lambda classes: (KernelClassifier if classes else KernelRegressor)(
        kernel, search=Search(**search) if search else None, **options
    )


def of_table(candidates="auto", **options):
    """Model of a table of classes or of numbers; of a pair of candidates, the one that fits."""

    def one_of(candidate, classes):
        if isinstance(candidate, tuple):
            return candidate[not classes]
        return candidate(classes) if callable(candidate) else candidate

    def made(classes):
        is_list = isinstance(candidates, list)
        own = [one_of(each, classes) for each in candidates] if is_list else candidates
        return (TabularClassifier if classes else TabularRegressor)(own, **options)

    return made


TREES = BoostedTreesClassifier(), BoostedTreesRegressor()
LINEAR = LogisticRegression(), LinearRegression()
#: Models of both kinds of targets, with what is given to their fits; those of classes; of numbers.
BOTH = {
    "default": (of_table(), ""),
    "default, groups": (of_table(), "groups"),
    "default, weights": (of_table(), "weights"),
    "default, best": (of_table(combine="best"), ""),
    "default, five folds": (of_table(cv=5), ""),
    "default, windows": (of_table(cv=GapKFold(5, gap=2)), ""),
    "stack of two": (of_table(STACK), ""),
    "stack of two, groups and weights": (of_table(STACK), "groups weights"),
    "stack of two, repeated folds": (of_table(STACK, cv="2x5"), ""),
    "one candidate": (of_table(["rbf"]), ""),
    "trees in the stack": (of_table(["rbf", TREES]), ""),
    "trees in the stack, groups": (of_table(["rbf", TREES]), "groups"),
    "an estimator of scikit-learn": (of_table(["rbf", LINEAR]), "weights"),
    "stack on landmarks": (of_table([of_kernel(n_landmarks=20), of_kernel("linear")]), ""),
    "kernel": (of_kernel(), ""),
    "kernel, groups": (of_kernel(), "groups"),
    "kernel, weights": (of_kernel(), "weights"),
    "kernel, five folds": (of_kernel(cv=5), ""),
    "kernel, given": (of_kernel(mu=0.01), ""),
    "linear": (of_kernel("linear"), ""),
    "ard": (of_kernel("ard"), ""),
    "grid": (of_kernel(search={"method": "grid"}), ""),
    "grid, groups": (of_kernel(search={"method": "grid"}), "groups"),
    "landmarks": (of_kernel(n_landmarks=20), ""),
    "landmarks, groups": (of_kernel(n_landmarks=20), "groups"),
}
OF_CLASSES = {
    "hinge": (of_kernel("linear", loss="hinge"), ""),
    "squared hinge": (of_kernel(loss="squared_hinge"), ""),
    "cross-entropy": (of_kernel(search={"criterion": "cross_entropy"}), ""),
    "pairs": (of_kernel(search={"criterion": "wmw"}), "groups"),
    "two criteria": (of_table([of_kernel(), of_kernel(search={"criterion": "cross_entropy"})]), ""),
    "isotonic": (of_table(STACK, calibration="isotonic"), ""),
    "beta": (of_table(STACK, calibration="beta", class_weight="balanced"), ""),
    "no probabilities": (of_table(STACK, calibration=None), ""),
    "threshold of balance": (of_table(STACK, threshold="balanced"), ""),
    "threshold of f1": (of_table(STACK, threshold="f1", pos_label="first"), "weights"),
}
OF_NUMBERS = {
    "log": (of_table(["linear"], target="log"), ""),
    "transforms": (of_table(STACK, target=["none", "sqrt", "log1p"]), ""),
    "transforms, groups": (of_table(STACK, target=["none", "log1p"]), "groups"),
    "no transform": (of_table(STACK, target="none"), ""),
    "transforms with trees": (of_table(["linear", TREES], target=["none", "log1p"]), ""),
}


def mixed(classes):
    """Columns of every kind with gaps, and targets that follow from them."""
    rng = np.random.default_rng(5)
    n = 160
    size, day = rng.normal(size=n), rng.integers(0, 400, n)
    ward, flag = rng.choice(["01", "02", "A3"], n), rng.random(n) < 0.4
    signal = size + (ward == "A3") + 0.7 * flag + 0.003 * day + 0.4 * rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.1, np.nan, size),
            "ward": pd.Series(ward).where(rng.random(n) > 0.1),
            "flag": flag,
            "day": np.datetime64("2020-01-01") + day,
            "count": rng.poisson(1.0, n),
        }
    )
    return frame, np.where(signal > np.median(signal), "yes", "no") if classes else np.exp(signal)


def of_sklearn(load):
    """Table of scikit-learn."""
    X, y = load(return_X_y=True, as_frame=True)
    return X.iloc[:, :8], y.to_numpy()


def of_file(name):
    """Table of the suite; the target is its column of this name."""
    X = pd.read_csv(data_or_exit(f"{name}.csv"))
    return X.drop(columns="target"), X["target"].to_numpy()


TABLES = {
    "mixed classes": (True, partial(mixed, True)),
    "breast cancer": (True, partial(of_sklearn, load_breast_cancer)),
    "iris": (True, partial(of_sklearn, load_iris)),
    "wine": (True, partial(of_sklearn, load_wine)),
    "pima": (True, partial(of_file, "pima")),
    "ionosphere": (True, partial(of_file, "ionosphere")),
    "mixed numbers": (False, partial(mixed, False)),
    "diabetes": (False, partial(of_sklearn, load_diabetes)),
    "concrete": (False, partial(of_file, "concrete")),
    "yacht": (False, partial(of_file, "yacht")),
}


def rows_of(name):
    """Rows and targets of a table, and rows that are new."""
    X, y = TABLES[name][1]()
    rows = np.random.default_rng(0).permutation(len(y))[: N_ROWS + N_NEW]
    X, y = X.iloc[rows].reset_index(drop=True), y[rows]
    return X[:N_ROWS], y[:N_ROWS], X[N_ROWS:], y[N_ROWS:]


def numbers_of(model, new, y_new):
    """What users see of a fitted model, by name."""
    output = model.decision_function if hasattr(model, "decision_function") else model.predict
    found = {"outputs": output(new), "predictions": model.predict(new)}
    found["held out"] = model.held_out_.outputs
    for name in ("candidate_weights_", "threshold_"):
        if getattr(model, name, None) is not None:
            found[name] = getattr(model, name)
    for nested in (False, True):
        kind = "nested " * nested
        try:
            scores = model.evaluate(nested=nested)
        except ValueError as error:
            found[f"{kind}refused"] = str(error)
            continue
        found[f"{kind}kind"] = scores.kind
        found |= {f"{kind}{name}": value for name, value in scores.items()}
        found |= {f"error of {kind}{n}": value for n, value in scores.standard_errors.items()}
        found[f"{kind}held out"] = scores.predictions.outputs
        if hasattr(model, "predict_set"):
            found[f"{kind}sets"] = model.predict_set(new, 0.7)
            found[f"{kind}sets of classes"] = model.predict_set(new, 0.6, class_conditional=True)
        for method in ("plus", "minmax", "scaled") if hasattr(model, "predict_interval") else ():
            found[f"{kind}interval {method}"] = model.predict_interval(new, 0.7, method=method)
    if hasattr(model, "predict_proba"):
        found["probabilities"] = model.predict_proba(new)
    for name, change in (("without", ([0, 4, 9],)), ("with_rows", (new, y_new))):
        try:
            found[name] = getattr(model, name)(*change).predict(new)
        except (ValueError, AttributeError, RuntimeError) as error:
            found[f"{name} refused"] = str(error)
    return {name: np.asarray(value) for name, value in found.items()}


def fitted(name, make, given):
    """Numbers of one model on one table; of an error its text."""
    X, y, new, y_new = rows_of(name)
    classes, options = TABLES[name][0], {}
    if "groups" in given:
        options["groups"] = np.arange(len(y)) // 2
    if "weights" in given:
        options["sample_weight"] = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    model = make(classes)
    if getattr(model, "pos_label", None) == "first":
        model.set_params(pos_label=np.unique(y)[0])
    if not hasattr(model, "preprocess"):  # kernels take numbers without gaps
        X, new = (rows.select_dtypes("number").fillna(0.0).to_numpy(float) for rows in (X, new))
        new = (new - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)
        X = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)
    try:
        return numbers_of(model.fit(X, y, **options), new, y_new)
    except (ValueError, TypeError, RuntimeError) as error:
        return {"refused": np.asarray(str(error))}


def write(path, names):
    """Numbers of all models on some tables, kept after each table."""
    found = {}
    for name in names:
        models = BOTH | (OF_CLASSES if TABLES[name][0] else OF_NUMBERS)
        for words, (make, given) in models.items():
            found[words, name] = quietly(fitted, name, make, given)
        path.write_bytes(pickle.dumps(found))
        print(name, len(found), flush=True)


def difference(one, other):
    """Largest difference, relative to the largest value; infinite for others than numbers."""
    if one is None or other is None or one.shape != other.shape:
        return np.inf
    if np.array_equal(one, other, equal_nan=one.dtype.kind == "f"):
        return 0.0
    if one.dtype.kind not in "iuf":
        return np.inf
    far = np.abs(one - other)[~(np.isnan(one) & np.isnan(other))]
    return float(far.max() / max(1.0, np.nanmax(np.abs(one))))


def compare(before, after):
    """Print and keep each quantity that differs."""
    one, other = (pickle.loads(path.read_bytes()) for path in (before, after))
    rows, n_same = [], 0
    for key in one | other:
        was, now = one.get(key, {}), other.get(key, {})
        for quantity in was | now:
            far = difference(was.get(quantity), now.get(quantity))
            n_same += far == 0
            if far:
                rows.append((*key, quantity, far))
                print(*rows[-1], flush=True)
    rows.append(("all", "all", f"{n_same} equal to the bit", 0.0))
    write_table("same_numbers", ("model", "table", "quantity", "difference"), rows)


def main():
    """Write the numbers of this state, or compare two."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", type=Path)
    parser.add_argument("--tables", nargs="+", default=[*TABLES], choices=[*TABLES])
    parser.add_argument("--compare", type=Path, nargs=2)
    options = parser.parse_args()
    if options.write:
        write(options.write, options.tables)
    if options.compare:
        compare(*options.compare)


if __name__ == "__main__":
    main()
