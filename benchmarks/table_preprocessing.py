"""Which transformer for mixed tables: looms' TablePreprocessor or skrub's TableVectorizer?

Prints, for a CSV file with a column ``target``: ten-fold accuracy of two classifiers on what each
makes of the table, the size of its skops file, the time to load it, the number of output columns,
and what has to be installed beyond looms[cli]. Needs skrub, which looms does not.

    python benchmarks/table_preprocessing.py "$LOOMS_DATA/credit.csv"
"""

import argparse
import io
import time
import zipfile
from importlib.metadata import PackageNotFoundError, distribution

import numpy as np
import skops.io
from packaging.requirements import Requirement
from sklearn.base import clone
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from skrub import TableVectorizer

from looms.datasets import read_table
from looms.tables import Columns, TablePreprocessor

LOOMS_CLI = ("scikit-learn", "typer", "rich", "pandas", "pyarrow", "skops")


def vectorizer():
    """A TableVectorizer with what a kernel needs behind it."""
    return make_pipeline(
        TableVectorizer(),
        SimpleImputer(strategy="median", add_indicator=True),
        VarianceThreshold(),
        StandardScaler(),
    )


def accuracies(transformer, X, y, repeats):
    """Mean accuracy and standard deviation over the repeats, by classifier."""
    folds = RepeatedStratifiedKFold(n_splits=10, n_repeats=repeats, random_state=0)
    for classifier in (LogisticRegression(max_iter=1000), SVC()):
        pipeline = make_pipeline(clone(transformer), classifier)
        scores = cross_val_score(pipeline, X, y, cv=folds).reshape(repeats, 10).mean(axis=1)
        yield type(classifier).__name__, scores.mean(), scores.std()


def stored(transformer):
    """Bytes of the skops file, stored and deflated, and seconds to load it (best of five)."""
    content = skops.io.dumps(transformer)
    small = skops.io.dumps(transformer, compression=zipfile.ZIP_DEFLATED)
    trusted = skops.io.get_untrusted_types(data=content)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        skops.io.load(io.BytesIO(content), trusted=trusted)
        seconds.append(time.perf_counter() - start)
    return len(content), len(small), min(seconds)


def closure(names):
    """Installed distributions that these need, themselves included."""
    found, waiting = set(), list(names)
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        try:
            requirements = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        if name not in found:
            found.add(name)
            parsed = map(Requirement, requirements)
            waiting += [
                r.name for r in parsed if r.marker is None or r.marker.evaluate({"extra": ""})
            ]
    return found


def installed(names):
    """Bytes of the files of installed distributions."""
    files = [file.locate() for name in names for file in distribution(name).files or ()]
    return sum(file.stat().st_size for file in files if file.is_file())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--target", default="target")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    table = read_table(arguments.file, arguments.target)
    X, y = Columns.of(table.X).typed(table.X), np.asarray(table.y, dtype=object).astype(str)
    extra = sorted(closure(["skrub"]) - closure(LOOMS_CLI))
    rivals = {
        "TablePreprocessor": (TablePreprocessor(), []),
        "TableVectorizer": (vectorizer(), extra),
    }
    for name, (transformer, packages) in rivals.items():
        print(name)
        for classifier, mean, deviation in accuracies(transformer, X, y, arguments.repeats):
            print(f"  {classifier:20s} accuracy {mean:.4f} ± {deviation:.4f} over repeats")
        n_columns = transformer.fit_transform(X, y).shape[1]
        size, deflated, seconds = stored(transformer)
        print(f"  columns out {n_columns}")
        print(f"  skops file {size / 1e3:.0f} kB, deflated {deflated / 1e3:.0f} kB")
        print(f"  load {seconds * 1e3:.0f} ms")
        print(f"  beyond looms[cli]: {len(packages)} packages, {installed(packages) / 1e6:.0f} MB")
        print(f"    {', '.join(packages)}")


if __name__ == "__main__":
    main()
