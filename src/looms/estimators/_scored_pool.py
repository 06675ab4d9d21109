"""Training a pool and scoring samples that its members did not see."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing

from looms._typing import AnyArray, Array
from looms.conformal._nonconformity import neighbor_scores
from looms.estimators._ensemble import Pool, PoolPlan

MEASURES = ("margin", "neighbors")
LARGEST_VALIDATION = 50


@dataclass(frozen=True)
class Conformity:
    """Conformity of labels to the outputs of the members of a pool.

    Attributes
    ----------
    pool : the members.
    n_classes : number of classes.
    n_neighbors : for neighbors of known label, else 0 for margins.
    reference, labels : outputs and labels of these neighbors.
    """

    pool: Pool
    n_classes: int
    n_neighbors: int = 0
    reference: tuple[Array, ...] = ()
    labels: AnyArray | None = None

    def only(self, k: int) -> Conformity:
        """The conformity to member ``k`` alone."""
        return replace(self, pool=self.pool.only(k), reference=self.reference[k : k + 1])

    def scores(self, outputs: list[Array], own: AnyArray | None = None) -> Array:
        """(n_models, n_samples, n_classes); ``own`` as for `neighbor_scores`."""
        if self.labels is None:
            return self.pool.margins(outputs)
        return np.stack(
            [
                neighbor_scores(
                    values,
                    reference,
                    self.labels,
                    self.n_classes,
                    n_neighbors=self.n_neighbors,
                    own=own,
                )
                for values, reference in zip(outputs, self.reference, strict=True)
            ]
        )


@dataclass(frozen=True)
class ScoredPool:
    """A trained pool with the conformity of samples that were not trained on.

    Attributes
    ----------
    conformity : the measure, with the pool.
    rows : (m,) indices of these samples.
    labels : (m,) their classes, 0 to n_classes - 1.
    scores : (n_models, m) their conformity, each with its own label.
    held_out : whether no member saw any of them; else each is left out by itself.
    """

    conformity: Conformity
    rows: AnyArray
    labels: AnyArray
    scores: Array
    held_out: bool


def score_by_split(
    plan: PoolPlan,
    X: Any,
    labels: AnyArray,
    split: tuple[AnyArray, AnyArray],
    n_neighbors: int,
    n_jobs: int | None,
) -> ScoredPool:
    """Train on the first part of a split, score the second; margins for no neighbors."""
    train, rows = split
    pool = plan.fit(X, labels, train, n_jobs)
    n_classes = int(labels.max()) + 1
    conformity = Conformity(pool, n_classes)
    if n_neighbors:
        seen = tuple(pool.outputs(_safe_indexing(X, train)))
        conformity = Conformity(pool, n_classes, n_neighbors, seen, labels[train])
    scores = conformity.scores(pool.outputs(_safe_indexing(X, rows)))
    return ScoredPool(conformity, rows, labels[rows], _of_own_label(scores, labels[rows]), True)


def score_by_loo(
    plan: PoolPlan, X: Any, labels: AnyArray, n_neighbors: int, n_jobs: int | None
) -> ScoredPool:
    """Train on all samples, score each by the models without it; margins for no neighbors."""
    rows = np.arange(len(labels))
    pool, outputs = plan.fit_loo(X, labels, n_jobs)
    n_classes = int(labels.max()) + 1
    conformity = Conformity(pool, n_classes)
    if n_neighbors:
        conformity = Conformity(pool, n_classes, n_neighbors, tuple(outputs), labels)
    scores = conformity.scores(outputs, own=rows)
    return ScoredPool(conformity, rows, labels, _of_own_label(scores, labels), False)


def _of_own_label(scores: Array, labels: AnyArray) -> Array:
    return np.asarray(scores[:, np.arange(len(labels)), labels])


def split_rows(
    classes: AnyArray, labels: AnyArray, size: Any, stratify: bool, seed: int
) -> tuple[AnyArray, AnyArray]:
    """Sorted training and validation rows; ValueError unless both can do their work."""
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
