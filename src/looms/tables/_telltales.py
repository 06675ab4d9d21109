"""Columns that alone predict the target: a copy of it, a code for it, the same order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from scipy import sparse
from scipy.special import comb
from scipy.stats import rankdata

from looms._typing import AnyArray, Array, Matrix
from looms.duplicates import duplicate_groups

#: A feature gives the classes away above this area under the ROC curve, and a numeric target above
#: this rank correlation.
_AREA, _CORRELATION = 0.995, 0.999
#: With fewer samples, or fewer in a class, chance or an ordinary feature separates the targets.
_FEWEST, _FEWEST_IN_CLASS = 30, 5
#: With fewer samples per value of a category, its values may be names of the samples.
_PER_CATEGORY = 5
#: Tables with more entries are not searched.
_MOST_ENTRIES = 50_000_000
#: Probability that some column orders the classes by chance, from which none is examined.
_CHANCE = 1e-3
#: Columns named in a remark.
_MOST_NAMES = 3


def telltales(
    sources: Sequence[str],
    gaps: Mapping[str, int],
    X: Matrix,
    y: AnyArray,
    classes: bool,
) -> list[tuple[str, str]]:
    """Columns that alone predict the target, and the score that shows it.

    For classes: a feature that orders them one after the other, so that the area under the ROC
    curve of any two neighbors is above 0.995; or a category, or number of few values, nearly all
    of whose values belong to one class each. For numbers: a feature whose rank correlation with
    the target is beyond 0.999. Where there are gaps, samples without gaps are also examined
    alone. Some tables give no telltales: see `why_none`.

    Parameters
    ----------
    sources : name of the column that each feature was made from.
    gaps : place of the feature that marks the gaps of a column, by column.
    X : (n_samples, n_features) samples; sparse columns are made dense one at a time. O(n log n) for
        each.
    y : (n_samples,) targets, or for ``classes`` their numbers from 0.
    """
    if why_none(sources, X, y, classes):
        return []
    columns: dict[str, list[int]] = {}
    for k, name in enumerate(sources):
        columns.setdefault(name, []).append(k)
    sign_of = _sign_of_classes if classes else _sign_of_numbers
    X = X.tocsc() if sparse.issparse(X) else X
    telling = []
    for name, members in columns.items():
        features = {k: _feature(X, k) for k in members}
        sign = sign_of(list(features.values()), y)
        if not sign and name in gaps:
            known = features.pop(gaps[name]) == 0
            sign = sign_of([feature[known] for feature in features.values()], y[known])
            sign = f"{sign} where it is known" if sign else ""
        if sign:
            telling.append((name, sign))
    return telling


def why_none(sources: Sequence[str], X: Matrix, y: AnyArray, classes: bool) -> str:
    """Reason why `telltales` finds none, whatever the columns hold; empty if it may find some.

    One column may well be all there is to learn from. With few samples, or many columns, one orders
    the classes by chance.
    """
    n, n_columns = len(y), len(set(sources))
    least = np.bincount(y).min() if classes and y.ndim == 1 else n
    reasons = {
        "there are several targets": y.ndim > 1,
        "there is only one column": n_columns < 2,
        f"there are fewer than {_FEWEST} rows": n < _FEWEST,
        f"a class has fewer than {_FEWEST_IN_CLASS} rows": least < _FEWEST_IN_CLASS,
        "the table is too large": X.shape[0] * X.shape[1] > _MOST_ENTRIES,
    }
    for reason, holds in reasons.items():
        if holds:
            return reason
    if classes and n_columns * _chance_of_order(y) > _CHANCE:
        return "so many columns hold one that gives so few rows by chance"
    return ""


def remark_on_telltales(
    telling: Sequence[tuple[str, str]], shown: Callable[[str], str] = repr
) -> str:
    """Sentences on `telltales`, of which there are some, with names as they are ``shown``."""
    names = [f"{shown(name)} ({sign})" for name, sign in telling[:_MOST_NAMES]]
    more = f" and {len(telling) - _MOST_NAMES} more" if len(telling) > _MOST_NAMES else ""
    return (
        f"{', '.join(names)}{more} alone {'predicts' if len(telling) == 1 else 'predict'} the "
        "target. Is it known before the target is? If not, leave it out."
    )


def _sign_of_numbers(columns: list[Array], y: AnyArray) -> str:
    """The score by which the features of one column give a numeric target, or an empty string."""
    if len(y) < _FEWEST:
        return ""
    value = max(_rank_correlation(column, y) for column in columns)
    return f"rank correlation {value:.4f}" if value > _CORRELATION else ""


def _sign_of_classes(columns: list[Array], labels: AnyArray) -> str:
    """The score by which the features of one column give the class, or an empty string."""
    n_in_class = np.bincount(labels)
    if len(labels) < _FEWEST or len(n_in_class) < 2 or n_in_class.min() < _FEWEST_IN_CLASS:
        return ""
    value = max(_least_area(column, labels) for column in columns)
    if value > _AREA:
        return f"ROC AUC {value:.3f}"
    return "each of its values is of one class" if _parts(columns, labels) else ""


def _chance_of_order(labels: AnyArray) -> float:
    """Probability that a column of different numbers orders two classes, the others apart."""
    sizes = np.sort(np.bincount(labels))
    return float(2.0 / comb(sizes[0] + sizes[-1], sizes[0]))


def _feature(X: Matrix, k: int) -> Array:
    if not sparse.issparse(X):
        return np.asarray(X[:, k])
    dense, own = np.zeros(X.shape[0]), slice(*X.indptr[k : k + 2])
    dense[X.indices[own]] = X.data[own]
    return dense


def _least_area(column: Array, labels: AnyArray) -> float:
    """Smallest area under the ROC curve of two classes that are neighbors in the column."""
    members = [column[labels == label] for label in np.unique(labels)]
    members.sort(key=np.median)
    least = 1.0
    for low, high in pairwise(members):
        ranks = rankdata(np.concatenate([low, high]))[len(low) :]
        wins = ranks.sum() - len(high) * (len(high) + 1) / 2
        least = min(least, float(wins / (len(low) * len(high))))
        if least < _AREA:
            break
    return least


def _parts(columns: list[Array], labels: AnyArray) -> bool:
    """True if the values of a number, or of a category in zeros and ones, separate the classes."""
    codes = np.stack(columns, axis=1)
    if len(columns) > 1 and not np.isin(codes, (0, 1)).all():
        return False
    # Rows of zeros, of a rare value, are equal, too.
    value = duplicate_groups(codes)
    n_values = int(value.max()) + 1
    if len(labels) < _PER_CATEGORY * n_values:
        return False
    counts = np.zeros((n_values, labels.max() + 1))
    np.add.at(counts, (value, labels), 1)
    right = np.zeros(labels.max() + 1)
    np.add.at(right, counts.argmax(axis=1), counts.max(axis=1))
    return bool((right > _AREA * np.bincount(labels)).all())


def _rank_correlation(column: Array, y: Array) -> float:
    places = rankdata(column), rankdata(y)
    if min(map(np.ptp, places)) == 0:
        return 0.0
    return abs(float(np.corrcoef(*places)[0, 1]))
