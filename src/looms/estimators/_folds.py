"""Folds of a fit, and the same choice made anew without one of them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from looms._typing import AnyArray, Array, Matrix
from looms.folds import check_rest, fold_numbers
from looms.kernels._samples import training_rows

OUTER_FOLDS = 10


def folds_of_fit(
    cv: Any,
    targets: Array,
    groups: AnyArray | None,
    labels: AnyArray | None,
    train: AnyArray,
    seed: int,
) -> AnyArray | None:
    """Numbers of the folds of the rows ``train``; all else is of all rows.

    A number of folds is of these rows; splits number all.
    """
    own_labels = None if labels is None else labels[train]
    if cv is None or isinstance(cv, (int, str)):
        own = None if groups is None else groups[train]
        return fold_numbers(cv, targets[train], own, labels=own_labels, random_state=seed)
    folds: AnyArray = np.asarray(fold_numbers(cv, targets, groups, labels=labels))[:, train]
    check_rest(folds, own_labels, "fold")
    return folds


def outer_folds(
    cv: Any, targets: Array, groups: AnyArray | None, labels: AnyArray | None, seed: int
) -> AnyArray:
    """Number of the outer fold of each row, at most ten, classes in proportion.

    ValueError if the rows outside of some cannot be held out by ``cv``.
    """
    n_folds = min(OUTER_FOLDS, len(targets) if groups is None else len(np.unique(groups)))
    if labels is not None:
        n_folds = min(n_folds, int(np.unique(labels, return_counts=True)[1].min()))
    if n_folds < 2:
        raise ValueError("nested='folds': a class of one sample cannot be held out; leave it out.")
    try:
        folds = fold_numbers(f"1x{n_folds}", targets, groups, labels=labels, random_state=seed)
        numbers: AnyArray = np.asarray(folds)[0]
        for number in np.unique(numbers):
            rest = np.flatnonzero(numbers != number)
            folds_of_fit(cv, targets, groups, labels, rest, seed)
    except ValueError as error:
        raise ValueError(f"nested='folds': {error}") from None
    return numbers


def machine_without(
    machine: Any,
    rest: AnyArray,
    X: Matrix,
    y: AnyArray,
    weight: Array,
    groups: AnyArray | None,
    **parameters: Any,
) -> Any:
    """The machine, tuned anew on the rows ``rest``, where classes weigh what they do in all.

    Else a class would be rarer by the rows left out, and the machine lean away from it.
    """
    pairwise, own_weight = machine._kernels()[0].pairwise, weight[rest]
    if is_classifier(machine):
        _, labels = np.unique(y, return_inverse=True)
        mass = np.bincount(labels, weights=weight)
        own_mass = np.bincount(labels[rest], weights=own_weight, minlength=len(mass))
        own_weight = own_weight * (mass[labels[rest]] / own_mass[labels[rest]])
    machine = clone(machine).set_params(nested=None, **parameters)
    machine.__dict__.pop("_skl_callbacks", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the machine of all rows has the same to say
        return machine.fit(
            training_rows(X, rest, pairwise),
            y[rest],
            sample_weight=own_weight,
            groups=None if groups is None else groups[rest],
        )


def of_all_rows(folds: AnyArray, train: AnyArray, n: int) -> AnyArray:
    """Numbers of folds, (n_repetitions, n), -1 for rows of weight zero."""
    numbers = np.full((len(folds), n), -1)
    numbers[:, train] = folds
    return numbers
