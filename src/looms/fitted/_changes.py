"""Models with rows removed or added, from the inverse of their system.

The hyper-parameters stay, and so does the ridge λ_i = n mu / ζ_i of every remaining row. Weights
have mean one over the rows of a model, so that mu' = mu Σζ / Σζ', with sums over the rows before
and after [docs/references.md, Rows removed and added].
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from looms._threads import blas_threads
from looms._typing import AnyArray, Array, Matrix
from looms.blocks import joined_rows, rows_in_memory
from looms.fitted._fitted import Fitted
from looms.fitted._rows import Rows
from looms.kernels._samples import training_rows
from looms.units import Units


def remove_rows(model: Fitted, rows: Any) -> Fitted:
    """The model without some rows; ValueError if too few are left, or `rows` are no rows."""
    n, X = len(model.rows.weight), rows_in_memory(model.X)
    rows = checked_rows(rows, n)
    rest = np.delete(np.arange(n), rows)
    left = rest[model.rows.fit_weight[rest] > 0]
    if len(left) < 2:
        raise ValueError(
            f"rows leaves {len(left)} of {n} samples of non-zero weight: leave-one-out needs two "
            "or more."
        )
    missing = model.outcome.missing(model.rows.targets[left])
    if missing:
        raise ValueError(
            f"rows leaves no sample of non-zero weight in class {missing}: keep some, or "
            "fit a model to the other classes."
        )
    out = np.flatnonzero(np.isin(model.rows.train, rows))
    before, weight = model.rows, model.rows.weight[rest]
    groups = np.unique(model.units.clusters[rest], return_inverse=True)[1]
    numbers = None if before.numbers is None else before.numbers[rest]
    data = training_rows(X, rest, model.pairwise), before.targets[rest], weight, groups
    some = Rows.of(*data, before.outcome, numbers=numbers)
    return _changed(model, out, np.delete(model.left_out.weight, out), some)


def add_rows(
    model: Fitted, X_new: Matrix, targets: Array, numbers: Array | None, weights: Array
) -> Fitted:
    """The model with rows added after its own.

    Parameters
    ----------
    X_new, targets : samples and coded targets to add, validated.
    numbers : targets as they were given, if a transform of them is fitted.
    weights : of all rows, as given.
    """
    rows, X = model.rows, rows_in_memory(model.X)
    weight = weights[len(rows.weight) :]
    zeta = weight * weight_factors(model)[model.outcome.codes(targets)]
    if sp.issparse(X_new) and not sp.issparse(X):
        X_new = X_new.toarray()
    X = joined_rows([X, X_new])
    if rows.numbers is None or numbers is None:
        numbers = None
    else:
        numbers = np.concatenate([rows.numbers, numbers])
    data = X, np.concatenate([rows.targets, targets]), weights, np.arange(len(weights))
    together = Rows.of(*data, rows.outcome, numbers=numbers)
    zeta = np.append(model.left_out.weight, zeta[weight > 0])
    return _changed(model, np.empty(0, dtype=np.intp), zeta, together)


def _changed(model: Fitted, out: AnyArray, zeta: Array, rows: Rows) -> Fitted:
    """Model of ``rows``, with weights ``zeta``: those of the fit less those at ``out``, and new."""
    if not model.kernel_members:
        raise ValueError(
            "This model has no kernel, whose system rows could leave or join: fit it anew."
        )
    train = rows.train
    data = training_rows(rows.X, train, model.pairwise), rows.targets[train]
    units = Units.of_numbers(rows.groups[train], rows.groups[train])
    with blas_threads(len(train)):
        pairs = zip(model.members, model.left_out.members, strict=True)
        systems = [
            member.changed(known, out, *data, zeta, model.fit_intercept) for member, known in pairs
        ]
        fits = [
            member.fit(system, units, data[1], model.tie)  # much the same
            for member, system in zip(model.members, systems, strict=True)
        ]
    keeps_rule = model.in_folds is not None or model.keeps_rule
    weights = [member.weight for member in model.members]
    changed = Fitted.of(
        rows,
        units,
        list(zip(weights, fits, strict=True)),
        model.fit_intercept,
        rule=model.rule if keeps_rule else None,
        candidate_weights=model.candidate_weights,
        columns=model.columns,
        tuned_before=model.tuned,
        keeps_rule=keeps_rule,
    )
    # Refits without folds are in the members.
    closed = {k: system for k, system in enumerate(systems) if fits[k].member.closed}
    changed.solved.update(closed)
    return changed


def weight_factors(model: Fitted) -> Array:
    """For each class, weight in the fit over weight as given; of numbers, for all."""
    rows, train = model.rows, model.rows.train
    _, first = np.unique(model.outcome.codes(rows.own(rows.targets)), return_index=True)
    return np.asarray(rows.fit_weight[train[first]] / rows.weight[train[first]])


def class_weight(model: Fitted) -> dict[Any, float] | None:
    """Factors of the weights of classes; None if they are equal, or there are no classes."""
    factors = weight_factors(model)
    if np.allclose(factors, factors[0], rtol=1e-12, atol=0):
        return None
    return dict(zip(model.outcome.classes.tolist(), factors.tolist(), strict=True))


def checked_rows(rows: Any, n: int) -> AnyArray:
    """Indices of rows to remove, from indices or a mask."""
    named = hasattr(rows, "get_indexer")
    rows = rows if named else np.atleast_1d(np.asarray(rows))
    if named or any(isinstance(row, str) for row in rows.flat):
        raise ValueError(
            "rows are labels of an index, but rows are counted by position, from 0: give "
            "X.index.get_indexer(labels), or the mask X.index.isin(labels)."
        )
    if rows.dtype == bool:
        if rows.shape != (n,):
            raise ValueError(
                f"rows is a mask of shape {rows.shape}, but the model has {n} rows: give one "
                "value for each."
            )
        return np.flatnonzero(rows)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise ValueError(
            "rows must be a list of indices or a mask, but is an array of "
            f"{rows.dtype} of shape {rows.shape}."
        )
    rows = rows.astype(np.intp)
    outside = rows[(rows < 0) | (rows >= n)]
    if len(outside):
        raise ValueError(f"rows must be from 0 to {n - 1}, got {outside[0]}.")
    values, counts = np.unique(rows, return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"rows names row {values[counts > 1][0]} more than once.")
    return values
