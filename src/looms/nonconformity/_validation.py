"""Validation: rows that are split off, and outputs of rows that are held out in folds."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing

from looms._typing import AnyArray, Array
from looms.nonconformity._pool import Plan
from looms.units import Units

LARGEST_VALIDATION = 50


def split_rows(
    classes: AnyArray, labels: AnyArray, size: Any, stratify: bool, seed: int
) -> tuple[AnyArray, AnyArray]:
    """Sorted training and validation rows; ValueError if either part lacks classes."""
    n_validation = _n_validation(size, len(labels), len(classes), stratify)
    train, validation = train_test_split(
        np.arange(len(labels)),
        test_size=n_validation,
        stratify=labels if stratify else None,
        random_state=seed,
    )
    remedy = "Use stratify=True, another random_state or more samples."
    missing = np.setdiff1d(labels, labels[train])
    if len(missing):
        raise ValueError(
            f"The training part of the split, {len(train)} samples, has none of class "
            f"{classes[missing].tolist()}. {remedy}"
        )
    if len(np.unique(labels[validation])) < 2:
        raise ValueError(
            f"The validation part of the split, {n_validation} samples, has only class "
            f"{classes[labels[validation[:1]]].tolist()[0]!r}. {remedy}"
        )
    return np.sort(train), np.sort(validation)


def held_out_outputs(
    plan: Plan, X: Any, labels: AnyArray, units: Units, n_jobs: int | None
) -> list[Array]:
    """Outputs of every member for each sample, trained without its unit: means over repetitions."""
    total: list[Array] = []
    for rows in units:
        pool = plan.fit(X, labels, np.delete(np.arange(len(labels)), rows), n_jobs)
        for k, values in enumerate(pool.outputs(_safe_indexing(X, rows))):
            if k == len(total):
                total.append(np.zeros((len(labels), *values.shape[1:])))
            total[k][rows] += values / len(units.number)
    return total


def check_classes_have_two(classes: AnyArray, labels: AnyArray) -> None:
    """ValueError for a class with one member, which cannot be both trained on and held out."""
    alone = classes[np.bincount(labels) == 1]
    if len(alone):
        raise ValueError(
            f"Class {alone.tolist()} has only one member; a class needs two, one of which can be "
            "held out. Leave it out or collect more."
        )


def _n_validation(size: Any, n_samples: int, n_classes: int, stratify: bool) -> int:
    """Number of validation samples: a fifth, at most 50, unless given."""
    if size is None:
        return max(min(n_samples // 5, LARGEST_VALIDATION), n_classes)
    least = n_classes if stratify else 2
    if isinstance(size, Integral) and least <= int(size) <= n_samples - least:
        return int(size)
    if isinstance(size, Real) and not isinstance(size, Integral) and 0 < float(size) < 1:
        return min(max(round(float(size) * n_samples), n_classes), n_samples - n_classes)
    raise ValueError(
        f"validation_size must be None, a number of samples from {least} to n_samples - {least} = "
        f"{n_samples - least}, or a share between 0 and 1, got {size!r}."
    )
