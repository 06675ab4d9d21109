"""Target leakage: columns that alone predict the target, as a copy, a code, or the same order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import comb
from scipy.stats import norm, rankdata

from looms._advice import setting
from looms._typing import AnyArray, Array, Matrix
from looms.duplicates import duplicate_groups

#: A feature gives the classes away above this area under the ROC curve, and a numeric target above
#: this rank correlation.
_AREA, _CORRELATION = 0.995, 0.999
#: A feature nearly does so above these.
_NEARLY_AREA, _NEARLY_CORRELATION = 0.95, 0.98
#: Shares of two classes that have a value differ by more than this if they have that area.
_NEARLY_PTP = 2 * _NEARLY_AREA - 1
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


class Evidence(NamedTuple):
    """What shows that a column predicts the target.

    Attributes
    ----------
    text : the score.
    gives : False if it only nearly predicts the target.
    strength : the larger, the more nearly.
    """

    text: str
    gives: bool
    strength: float


class LeakingColumn(NamedTuple):
    """A column that alone predicts the target, and its `Evidence`."""

    name: str
    text: str
    gives: bool
    strength: float


def leaking_columns(
    sources: Sequence[str], gaps: Mapping[str, int], X: Matrix, y: AnyArray, classes: bool
) -> list[LeakingColumn]:
    """Columns that alone predict the target, or nearly.

    For classes: a feature that orders them one after the other, so that the area under the ROC
    curve of any two neighbors is above 0.995; a category, or number of few values, nearly all
    of whose values belong to one class each; or, of two classes, a value, such as zero, that
    nearly all rows of one have and next to none of the other, and that is rare outside of it, so
    that most rows with the value are of one class, and most others of the other. For
    numbers: a feature whose rank correlation with the target is beyond 0.999. An area above 0.95,
    or a correlation above 0.98, is nearly as much. Where there are gaps, samples without gaps are
    also examined alone. Some tables are not searched: see `reason_to_skip`.

    Parameters
    ----------
    sources : name of the column that each feature was made from.
    gaps : place of the feature that marks the gaps of a column, by column.
    X : (n_samples, n_features) samples; sparse columns are made dense one at a time. O(n log n) for
        each.
    y : (n_samples,) targets, or for ``classes`` their numbers from 0.
    """
    if reason_to_skip(sources, X, y, classes):
        return []
    columns: dict[str, list[int]] = {}
    for k, name in enumerate(sources):
        columns.setdefault(name, []).append(k)
    find_evidence = _class_evidence if classes else _number_evidence
    X = X.tocsc() if sparse.issparse(X) else X
    leaking = []
    for name, members in columns.items():
        features = {k: _feature(X, k) for k in members}
        found = [find_evidence(list(features.values()), y)]
        if name in gaps:
            present = features.pop(gaps[name]) == 0
            without_gaps = [feature[present] for feature in features.values()]
            again = find_evidence(without_gaps, y[present])
            found.append(again and again._replace(text=f"{again.text} where it is known"))
        best = max(filter(None, found), key=lambda it: (it.gives, it.strength), default=None)
        targets = y[present] if best and best is found[-1] and name in gaps else y
        by_chance = classes and X.shape[1] * _chance_of_area(targets) > _CHANCE
        if best and (best.gives or not by_chance):
            leaking.append(LeakingColumn(name, *best))
    return leaking


def reason_to_skip(sources: Sequence[str], X: Matrix, y: AnyArray, classes: bool) -> str:
    """Reason not to look for leaking columns in a table; empty if there is none.

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


def leakage_remarks(
    columns: Sequence[LeakingColumn], shown: Callable[[str], str] = repr
) -> Iterator[tuple[bool, str]]:
    """Sentences on those of `leaking_columns` that give the target, and on those that nearly do.

    Each comes after True if its columns do. Names are as they are ``shown``.
    """
    for gives in (True, False):
        named = [column for column in columns if column.gives == gives]
        if not gives:
            named.sort(key=lambda column: -column.strength)
        names = ", ".join(f"{shown(column.name)} ({column.text})" for column in named[:_MOST_NAMES])
        more = f" and {len(named) - _MOST_NAMES} more" if len(named) > _MOST_NAMES else ""
        if named:
            predict = f"{'' if gives else 'nearly '}{'predicts' if len(named) == 1 else 'predict'}"
            yield (
                gives,
                f"{names}{more} alone {predict} the target. Is it known before the target is? If "
                f"not, leave it out{setting('drop', text='')}.",
            )


def _number_evidence(columns: list[Array], y: AnyArray) -> Evidence | None:
    """The score by which the features of one column give a numeric target."""
    if len(y) < _FEWEST:
        return None
    value = max(_rank_correlation(column, y) for column in columns)
    if value <= _NEARLY_CORRELATION:
        return None
    return Evidence(f"rank correlation {value:.4f}", value > _CORRELATION, value)


def _class_evidence(columns: list[Array], labels: AnyArray) -> Evidence | None:
    """The score by which the features of one column give the class."""
    n_in_class = np.bincount(labels)
    if len(labels) < _FEWEST or len(n_in_class) < 2 or n_in_class.min() < _FEWEST_IN_CLASS:
        return None
    area = max(_least_area(column, labels) for column in columns)
    if area > _AREA:
        return Evidence(f"ROC AUC {area:.3f}", True, area)
    right = _share_right(columns, labels)
    if right > _AREA:
        return Evidence("each of its values is of one class", True, right)
    if len(n_in_class) == 2:
        shares = max((_shares_of_decisive_value(column, labels) for column in columns), key=np.ptp)
        if np.ptp(shares) > _NEARLY_PTP:
            first, second = (f"{100 * share:.1f} %" for share in sorted(shares, reverse=True))
            text = f"{first} of one class have one of its values, and {second} of the other"
            return Evidence(text, True, float(1 + np.ptp(shares)) / 2)
    if area > _NEARLY_AREA:
        return Evidence(f"ROC AUC {area:.3f}", False, area)
    if right > _NEARLY_AREA:
        return Evidence("nearly each of its values is of one class", False, right)
    return None


def _shares_of_decisive_value(column: Array, labels: AnyArray) -> Array:
    """Shares of each of two classes with the value in which they differ most, zeros for none.

    Next to no row of one class has it, or lacks it; most rows that have it are of one class, and
    more than half of the others of the other class.
    """
    values, n_in_class = np.unique(column, return_inverse=True)[1], np.bincount(labels)
    counts = np.zeros((values.max() + 1, 2))
    np.add.at(counts, (values, labels), 1)
    shares, others = counts / n_in_class, n_in_class - counts
    pure = np.minimum(shares, 1 - shares).min(axis=1) < 1 - _AREA
    of_one = counts.max(axis=1) > _NEARLY_PTP * counts.sum(axis=1)
    tells = pure & of_one & (counts.argmax(axis=1) != others.argmax(axis=1))
    return np.asarray(shares[(np.ptp(shares, axis=1) * tells).argmax()] * tells.any())


def _chance_of_order(labels: AnyArray) -> float:
    """Probability that a column of different numbers orders two classes, the others apart."""
    sizes = np.sort(np.bincount(labels))
    return float(2.0 / comb(sizes[0] + sizes[-1], sizes[0]))


def _chance_of_area(labels: AnyArray) -> float:
    """Probability that a column of numbers nearly orders two classes, the others apart."""
    sizes = np.sort(np.bincount(labels))
    few, many = sizes[0], sizes[-1]
    deviation = np.sqrt((few + many + 1) / (12 * few * many))
    return float(2.0 * norm.sf((_NEARLY_AREA - 0.5) / deviation))


def _feature(X: Matrix, k: int) -> Array:
    if not sparse.issparse(X):
        return np.asarray(X[:, k])
    dense, stored = np.zeros(X.shape[0]), slice(*X.indptr[k : k + 2])
    dense[X.indices[stored]] = X.data[stored]
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
        if least < _NEARLY_AREA:
            break
    return least


def _share_right(columns: list[Array], labels: AnyArray) -> float:
    """Share of the rows of a class whose value is most frequent in that class; the smallest share.

    Values are those of a number, or of a category in zeros and ones; 0 if there are too many.
    """
    codes = np.stack(columns, axis=1)
    if len(columns) > 1 and not np.isin(codes, (0, 1)).all():
        return 0.0
    # Rows of zeros, of a rare value, are equal, too.
    value = duplicate_groups(codes)
    n_values = int(value.max()) + 1
    if len(labels) < _PER_CATEGORY * n_values:
        return 0.0
    counts = np.zeros((n_values, labels.max() + 1))
    np.add.at(counts, (value, labels), 1)
    right = np.zeros(labels.max() + 1)
    np.add.at(right, counts.argmax(axis=1), counts.max(axis=1))
    return float((right / np.bincount(labels)).min())


def _rank_correlation(column: Array, y: Array) -> float:
    places = rankdata(column), rankdata(y)
    if min(map(np.ptp, places)) == 0:
        return 0.0
    return abs(float(np.corrcoef(*places)[0, 1]))
