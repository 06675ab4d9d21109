"""Per-sample model selection by nonconformity [H10].

Scores measure how well a label conforms: larger is better. The axes of every array are models,
samples and labels, in this order; m validation samples are scored with their true labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from looms._classes import tie_width
from looms._typing import AnyArray, Array

Counts = npt.NDArray[np.int64]

_ROUNDING = 1e-8  # tie of scores, as for `tie_width`: solvers leave more than rounding errors
_BLOCK = 4_000_000  # entries of the largest temporary


def pairwise_margins(outputs: Array, n_classes: int) -> Array:
    r"""Margins by which each label wins its closest duel, from one-against-one outputs.

    .. math:: A(x, y) = \min_{y' \ne y} f_{y y'}(x), \qquad f_{y' y} = -f_{y y'}

    Parameters
    ----------
    outputs : (..., n_classes (n_classes - 1) / 2), with a column for every pair of
        classes, (0, 1), (0, 2), .. (1, 2), .., positive for the first of the pair.
    n_classes : number of classes.

    Returns
    -------
    scores : (..., n_classes), positive for a label that wins all duels; no
        label does if the duels form a cycle.

    Examples
    --------
    >>> pairwise_margins(np.array([[[1.0, 2.0, -0.5]]]), 3)
    array([[[ 1., -1., -2.]]])
    """
    scores = np.full((*outputs.shape[:-1], n_classes), np.inf)
    for pair, (first, second) in enumerate(combinations(range(n_classes), 2)):
        for label, sign in ((first, 1.0), (second, -1.0)):
            np.minimum(scores[..., label], sign * outputs[..., pair], out=scores[..., label])
    return scores


def neighbor_scores(
    outputs: Array,
    reference: Array,
    labels: AnyArray,
    n_neighbors: int = 1,
    own: AnyArray | None = None,
) -> Array:
    r"""Relative difference between the distances to other labels and to a label, in output space.

    .. math:: A(x, y) = \min_{y' \ne y} \frac{D_{y'}(x) - D_y(x)}{D_{y'}(x) + D_y(x)}

    where :math:`D_y(x)` is the mean distance from f(x) to the nearest outputs of reference samples
    with label y. It orders labels and samples as the ratio :math:`D_{y'} / D_y` does.
    Source: Shafer & Vovk (2008), Section 4.1 [SV08], there with one neighbor and in input
    space. Here outputs are compared, so that the scores depend on the model.

    Parameters
    ----------
    outputs : (n_samples,) or (n_samples, n_outputs) outputs of one model.
    reference : (n_reference,) or (n_reference, n_outputs) outputs of samples with known labels.
    labels : (n_reference,) their labels, 0 to n_classes - 1, all of which occur.
    n_neighbors : number of neighbors to average over, or all of a label if it has fewer.
    own : (n_samples,) row of each sample in ``reference``, as a sample is not its own
        neighbor; None if no sample is in there.

    Returns
    -------
    scores : (n_samples, n_classes), from -1 to 1.

    Examples
    --------
    >>> reference, labels = np.array([-1.0, 1.0, 2.0]), np.array([0, 1, 1])
    >>> neighbor_scores(np.array([1.0, -0.5]), reference, labels)
    array([[-1. ,  1. ],
           [ 0.5, -0.5]])
    """
    outputs, reference = (a[:, None] if a.ndim == 1 else a for a in (outputs, reference))
    distances, n_classes = cdist(outputs, reference), int(labels.max()) + 1
    if own is not None:
        distances[np.arange(len(own)), own] = np.inf
    mean = np.empty((len(outputs), n_classes))
    for label in range(n_classes):
        of_label = np.sort(distances[:, labels == label], axis=1)[:, :n_neighbors]
        finite = np.isfinite(of_label)
        mean[:, label] = np.where(finite, of_label, 0.0).sum(axis=1) / finite.sum(axis=1)
    scores = np.full((len(outputs), n_classes), np.inf)
    for label, other in ((a, b) for a in range(n_classes) for b in range(n_classes) if a != b):
        total = mean[:, other] + mean[:, label]
        contrast = (mean[:, other] - mean[:, label]) / np.where(total > 0, total, 1.0)
        np.minimum(scores[:, label], contrast, out=scores[:, label])
    return scores


@dataclass(frozen=True)
class Neighbors:
    """Neighbors with known labels in the output space of each model, for `neighbor_scores`.

    Attributes
    ----------
    reference : their outputs under each model.
    labels : (n_reference,) their labels, 0 to n_classes - 1, all of which occur.
    n_neighbors : number of neighbors to average over.
    """

    reference: tuple[Array, ...]
    labels: AnyArray
    n_neighbors: int

    def only(self, k: int) -> Neighbors:
        """Neighbors for model ``k`` alone."""
        return replace(self, reference=self.reference[k : k + 1])

    def scores(self, outputs: list[Array], own: AnyArray | None = None) -> Array:
        """Scores, (n_models, n_samples, n_classes), from the outputs of each model."""
        return np.stack(
            [
                neighbor_scores(values, reference, self.labels, self.n_neighbors, own)
                for values, reference in zip(outputs, self.reference, strict=True)
            ]
        )


def conformity_counts(calibration: Array, scores: Array) -> Counts:
    r"""Number of validation samples that conform no better than each label would.

    .. math:: c_{k,y}(x) = \#\{j : A_k(x_j, y_j) \le A_k(x, y)\}

    Source: [H10 Section 3]; its p-value :math:`\epsilon_{k,y}` is :math:`c_{k,y} / m`.

    Parameters
    ----------
    calibration : (n_models, m) scores of the validation samples with their labels.
    scores : (n_models, n_samples, n_classes) scores of every label of new samples.

    Returns
    -------
    counts : (n_models, n_samples, n_classes), from 0 to m. Scores equal up to rounding
        (1e-8) count as equal.

    Notes
    -----
    O(n_models (m + n_samples n_classes) log m).

    Examples
    --------
    Figure 1 of [H10]: two of six validation samples are on the wrong side.

    >>> from looms.conformal._sets import class_margins
    >>> calibration = np.array([[-2.0, -0.8, 0.5, 1.5, 2.0, 2.5]])
    >>> conformity_counts(calibration, class_margins(np.array([[[1.0]]])))
    array([[[1, 3]]])
    """
    ordered = np.sort(calibration, axis=1)
    highest = _up_to_rounding(scores)
    counts = np.empty(scores.shape, dtype=np.int64)
    for model, values in enumerate(ordered):
        counts[model] = np.searchsorted(values, highest[model], side="right")
    return counts


def p_values(counts: Counts, n_validation: int) -> Array:
    """P-values of labels under each model, (counts + 1) / (n_validation + 1).

    The sample itself counts among those that conform no better. Only then, for one model, does
    the true label of a new sample have a p-value of at most epsilon with a probability of at most
    epsilon. With ``counts / n_validation`` as in [H10] this probability can reach
    ``(floor(epsilon n) + 1) / (n + 1)``, which is 0.118 for epsilon = 0.1 and n = 50.

    Parameters
    ----------
    counts : numbers of validation samples, as from `conformity_counts`.
    n_validation : number of validation samples.

    Returns
    -------
    p : p-values in (0, 1], shaped like ``counts``.

    Examples
    --------
    >>> p_values(np.array([0, 4, 9]), 9)
    array([0.1, 0.5, 1. ])
    """
    return np.asarray((counts + 1.0) / (n_validation + 1.0))


@dataclass(frozen=True, eq=False)
class NonconformityChoice:
    """Model and label selected for every sample.

    Attributes
    ----------
    model : (n_samples,) index of the model.
    label : (n_samples,) label that it predicts.
    count : (n_samples,) number of validation samples that conform to that model no better than
        the best rejected label does. Divided by the number of validation samples, it is the
        critical epsilon.
    """

    model: Counts
    label: Counts
    count: Counts


def within_standard_errors(errors: Array, n_validation: int, width: float | None) -> Counts:
    r"""Models whose validation error is the smallest, or only slightly larger.

    .. math:: \{k : e_k \le e + w \sqrt{e (1 - e) / m}\}, \qquad e = \min_k e_k

    Parameters
    ----------
    errors : (n_models,) share e_k of the validation samples that each model gets wrong.
    n_validation : m, the number of validation samples.
    width : w, a nonnegative number of standard errors; None for all models.

    Returns
    -------
    models : ascending indices, at least one.

    Examples
    --------
    >>> errors = np.array([0.1, 0.12, 0.2])
    >>> [within_standard_errors(errors, 50, width) for width in (0.0, 1.0, None)]
    [array([0]), array([0, 1]), array([0, 1, 2])]
    """
    if width is None:
        return np.arange(len(errors))
    least = errors.min()
    margin = width * np.sqrt(least * (1.0 - least) / n_validation)
    return np.flatnonzero(errors <= least + margin + _ROUNDING)


def choose(counts: Counts, seed: int, *, vote: bool = False) -> NonconformityChoice:
    r"""Model that most clearly rejects all labels but one, and that label, for every sample.

    .. math:: (k^*, \hat y) = \arg\min_{k, y} \max_{y' \ne y} c_{k,y'}(x)

    Source: [H10 eq. 4, Algorithm 1]. For two classes the rejected label is their
    :math:`y_\mathrm{crit}`, and :math:`\hat y` is the other one.

    Parameters
    ----------
    counts : (n_models, n_samples, n_classes) from `conformity_counts`.
    seed : breaks ties, which are frequent, since m validation samples give m + 1 counts. Under
        one seed, equal counts are decided alike, wherever the sample is in the array.
    vote : True to take the label that most of the tied models predict, and one of these models;
        the seed then only decides between labels with equally many models.

    Returns
    -------
    choice : NonconformityChoice

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.array([[[9, 4]], [[1, 8]]])  # two models, one sample, two classes
    >>> choice = choose(counts, seed=0)
    >>> choice.model, choice.label, choice.count
    (array([1]), array([1]), array([1]))
    """
    n_samples, n_classes = counts.shape[1:]
    largest = np.partition(counts, (-2, -1), axis=-1)[..., -2:]
    second, first = largest[..., 0], largest[..., 1]
    unique = (counts == first[..., None]) & (first > second)[..., None]
    rejected = np.where(unique, second[..., None], first[..., None])
    rejected = np.ascontiguousarray(np.moveaxis(rejected, 0, 1)).reshape(n_samples, -1)
    key = int(seed).to_bytes(8, "little", signed=True)
    voters = n_classes if vote else 0
    picks = [_any_minimum(row, key, voters) for row in rejected]
    pick = np.array(picks, dtype=np.int64).reshape(-1)
    return NonconformityChoice(
        pick // n_classes, pick % n_classes, rejected[np.arange(n_samples), pick]
    )


def labels_by_others(
    scores: Array, labels: AnyArray, width: float | None, seed: int, *, vote: bool = False
) -> Counts:
    """Label of each validation sample, by models selected on the other validation samples.

    Their errors determine which models decide, and their margins how strange a label is. The
    selected model does not depend on the sample's own label, so the share of wrong labels is an
    error rate of the classifier.

    Parameters
    ----------
    scores : (n_models, m, n_classes) scores of every label of the validation samples.
    labels : (m,) their labels.
    width : as for `within_standard_errors`.
    seed, vote : as for `choose`.

    Returns
    -------
    labels : (m,)
    """
    m = len(labels)
    own = scores[:, np.arange(m), labels]
    counts = conformity_counts(own, scores) - (own[..., None] <= _up_to_rounding(scores))
    wrong = own <= 0
    errors = (wrong.sum(axis=1, keepdims=True) - wrong) / (m - 1)
    deciding = [within_standard_errors(of_others, m - 1, width) for of_others in errors.T]
    choices = [choose(counts[k, j : j + 1], seed, vote=vote) for j, k in enumerate(deciding)]
    return np.concatenate([choice.label for choice in choices])


def joint_p_values(calibration: Array, scores: Array, labels: AnyArray | None = None) -> Array:
    r"""P-values of labels that stay valid when a model is selected for every sample.

    The score of a label, also of each validation sample, is a minimum over the models:

    .. math:: s(z) = \min_k \#\{z' \in B : A_k(z') \le A_k(z)\}, \qquad
              p_y(x) = \frac{\#\{z \in B : s(z) \le s(x, y)\}}{m + 1}

    where the bag B contains the validation samples and (x, y). Ties of s are broken by the sum
    over the models in place of the minimum.
    Source: the full conformal predictor of Shafer & Vovk (2008), Section 4.2 [SV08].

    Parameters
    ----------
    calibration : (n_models, m) scores of the validation samples with their labels.
    scores : (n_models, n_samples, n_classes) scores of every label of new samples.
    labels : (m,) labels of the validation samples, to compare each label only with samples of
        that label; None compares with all.

    Returns
    -------
    p : (n_samples, n_classes). If a new sample is exchangeable with the validation samples, the
        p-value of its label is at most epsilon with probability at most epsilon, whatever the
        number of models. For the minimum of the models' own p-values, this probability is only
        known to be at most n_models epsilon.

    Notes
    -----
    O(n_models m n_samples n_classes).
    """
    n_models, m = calibration.shape
    _, n_samples, n_classes = scores.shape
    if labels is not None:
        each = (
            joint_p_values(calibration[:, labels == k], scores[..., [k]]) for k in range(n_classes)
        )
        return np.hstack(list(each))
    own = conformity_counts(calibration, calibration[..., None])[..., 0]
    flat = scores.reshape(n_models, -1)
    new = conformity_counts(calibration, scores).reshape(n_models, -1) + 1
    above = _up_to_rounding(calibration)
    lexicographic = n_models * (m + 2)
    of_new = new.min(axis=0) * lexicographic + new.sum(axis=0)
    p = np.empty(flat.shape[1])
    step = max(1, _BLOCK // (n_models * m))
    for start in range(0, flat.shape[1], step):
        block = slice(start, start + step)
        # A validation sample conforms better by one place where the new one is no better.
        moved = own[:, None] + (flat[:, block, None] <= above[:, None])
        of_validation = moved.min(axis=0) * lexicographic + moved.sum(axis=0)
        p[block] = p_values((of_validation <= of_new[block, None]).sum(axis=1), m)
    return p.reshape(n_samples, n_classes)


def _up_to_rounding(scores: Array) -> Array:
    return np.asarray(scores + tie_width(scores, _ROUNDING))


def _any_minimum(row: Counts, key: bytes, n_labels: int) -> int:
    """Index of one of the smallest entries, drawn by the entries themselves and the key.

    Where labels are given, indices are 0 to n_labels - 1 of one model after another, and those of
    the most frequent label are drawn from.
    """
    smallest = np.flatnonzero(row == row.min())
    if n_labels:
        votes = np.bincount(smallest % n_labels)
        smallest = smallest[votes[smallest % n_labels] == votes.max()]
    if len(smallest) == 1:
        return int(smallest[0])
    digest = blake2b(row.tobytes(), digest_size=8, key=key).digest()
    return int(smallest[int.from_bytes(digest, "little") % len(smallest)])
