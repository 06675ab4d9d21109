"""Ordered classes: numbers by rank, cut between ranks by held-out outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from looms._advice import setting
from looms._classes import class_factors, merge_ties, tie_width
from looms._optional import require
from looms._scores import (
    ValuesAndErrors,
    class_shares_of,
    ordered_baselines,
    ordered_scores,
    ranked_probability_scores,
)
from looms._typing import AnyArray, Array
from looms.fitted._outcome import Outcome
from looms.held_out import HeldOut
from looms.selection._candidates import HeldOutLoss
from looms.selection._decisions import Decided, Decisions, Made, Rule, means
from looms.threshold import ordinal_thresholds

#: Least distance of two constants, in log odds; the class between them has no rows.
_LEAST_STEP = 1e-6


@dataclass(frozen=True, eq=False)
class CumulativeSigmoid:
    r"""Probabilities of k ranks, proportional odds of those up to each.

    .. math:: P(\text{rank} \le j \mid f) = 1 / (1 + \exp(\text{slope} f - \text{constants}_j))

    Parameters
    ----------
    slope : per unit of output; not negative.
    constants : (k - 1,) increasing.

    Examples
    --------
    >>> CumulativeSigmoid(2.0, np.array([1.0, 3.0])).probability([0.0, 1.0, 2.0]).round(3)
    array([[0.731, 0.222, 0.047],
           [0.269, 0.462, 0.269],
           [0.047, 0.222, 0.731]])
    """

    slope: float
    constants: Array

    def probability(self, outputs: npt.ArrayLike) -> Array:
        """Probability of each rank, (m, k), for outputs (m,)."""
        z = self.constants - self.slope * np.asarray(outputs, dtype=np.float64)[:, None]
        p = np.ones((len(z), len(self.constants) + 1))
        p[:, :-1] *= expit(z)
        p[:, 1:] *= expit(-z)
        p[:, 1:-1] *= -np.expm1(-np.diff(self.constants))
        return np.asarray(p / p.sum(axis=1, keepdims=True))


def fit_cumulative_sigmoid(held_out: HeldOut, n_ranks: int) -> CumulativeSigmoid:
    r"""Maximum-likelihood proportional odds with smoothed targets.

    Minimizes over the slope and the constants, with the probabilities p of `CumulativeSigmoid`,

    .. math:: -\sum_i w_i \sum_k t_{ik} \log p_{ik}

    where t is (n_c + 1)/(n_c + 2) for the rank c of the row, and the other ranks share the rest
    evenly, as for the softmax of unordered classes. Source: McCullagh (1980), Regression models for
    ordinal data, JRSS B 42.

    Parameters
    ----------
    held_out : ranks from 0, outputs (n,) and weights.
    n_ranks : number of ranks.

    Notes
    -----
    With z_j = constants_j − slope f, log p_j = log σ(z_j) + log σ(−z_{j−1}) + log(1 − e^{z_{j−1} −
    z_j}), so that the loss is convex in the slope, the first constant and the steps between them.

    Examples
    --------
    >>> sigmoid = fit_cumulative_sigmoid(HeldOut([0, 0, 1, 1, 2], [0.1, 0.6, 0.5, 1.4, 1.6]), 3)
    >>> sigmoid.slope > 0, bool(np.diff(sigmoid.constants)[0] > 0)
    (True, True)
    """
    used = held_out.sample_weight > 0
    rank, f = held_out.y[used].astype(int), held_out.outputs[used]
    weight = held_out.sample_weight[used] / held_out.sample_weight[used].mean()
    n = np.bincount(rank, weights=weight, minlength=n_ranks)[rank]
    targets = np.repeat((1 / (n + 2) / (n_ranks - 1))[:, None], n_ranks, axis=1)
    targets[np.arange(len(rank)), rank] = (n + 1) / (n + 2)
    targets *= (weight / weight.sum())[:, None]
    center, spread = float(f.mean()), float(f.std()) or 1.0
    g = (f - center) / spread
    inside = targets[:, 1:-1].sum(axis=0)

    def loss(x: Array) -> tuple[float, Array]:
        slope, constants = x[0], np.cumsum(x[1:])
        z = constants - slope * g[:, None]
        of_z = targets[:, :-1] * expit(-z) - targets[:, 1:] * expit(z)
        value = np.sum(targets[:, :-1] * log_expit(z)) + np.sum(targets[:, 1:] * log_expit(-z))
        value += inside @ np.log(-np.expm1(-x[2:]))
        of_constants = np.cumsum(of_z.sum(axis=0)[::-1])[::-1]
        of_constants[1:] += inside / np.expm1(x[2:])
        return -float(value), -np.append(-float(g @ of_z.sum(axis=1)), of_constants)

    shares = np.cumsum(targets.sum(axis=0))[:-1]
    start = np.log(shares / (1 - shares))
    x = np.concatenate([[0.0], start[:1], np.maximum(np.diff(start), _LEAST_STEP)])
    bounds = [(0.0, None), (None, None), *[(_LEAST_STEP, None)] * (n_ranks - 2)]
    options = {"maxiter": 1000, "ftol": 1e-14, "gtol": 1e-9}
    x = minimize(loss, x, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    slope = float(x[0] / spread)
    return CumulativeSigmoid(slope, np.cumsum(x[1:]) + slope * center)


@dataclass(frozen=True, eq=False, repr=False)
class OrderedDecisions(Decisions):
    """Decisions on ordered classes.

    Attributes
    ----------
    shares : (n, n_classes) share of the decisions that predict each class.
    ranked : (n,) mean of the ranked probability score, or None.
    """

    shares: Array
    ranked: Array | None


@dataclass(frozen=True, eq=False)
class OrderedClasses(Outcome):
    """Three ordered classes or more, whose targets are their ranks, (n,), from 0.

    Attributes
    ----------
    labels : (k,) the classes, sorted as labels are.
    ranks : (k,) rank of each.
    calibration : "sigmoid", or None.
    weighted : whether the fit has class weights, which cuts take and probabilities are without.
    """

    stratified = decides = True
    labeled = False
    headline = "mean_rank_error"
    labels: AnyArray
    ranks: AnyArray
    calibration: Any = "sigmoid"
    weighted: bool = False

    @classmethod
    def of(cls, labels: AnyArray, order: AnyArray, calibration: Any, weighted: bool) -> Self:
        """Sorted classes, which stand in this ``order`` among others."""
        if calibration not in ("sigmoid", None):
            raise ValueError(
                f"{setting('calibration', calibration)} is for classes without order: use "
                f"'sigmoid', or {setting('no order', text='give y.astype(str)')}."
            )
        place = {label: k for k, label in enumerate(order.tolist())}
        places = [place[label] for label in labels.tolist()]
        return cls(labels, np.argsort(np.argsort(places)), calibration, weighted)

    @property
    def classes(self) -> AnyArray:
        return self.labels

    @property
    def in_order(self) -> AnyArray:
        """(k,) indices of the classes by rank."""
        return np.argsort(self.ranks)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"calibration": self.calibration}

    def codes_targets(self, targets: Array) -> bool:
        ordered = np.array_equal(np.sort(self.ranks), np.arange(len(self.labels)))
        return ordered and targets.ndim == 1 and bool(np.isin(targets, self.ranks).all())

    def makes_rule(self, rule: Rule) -> bool:
        cuts, shape = np.asarray(rule.threshold), (len(self.ranks) - 1,)
        if isinstance(rule.calibrator, CumulativeSigmoid):
            of_ranks = rule.calibrator.constants.shape == shape
        else:
            of_ranks = rule.calibrator is None
        return of_ranks and cuts.shape == shape and np.array_equal(cuts, np.sort(cuts))

    def passed(self, values: AnyArray) -> Any:
        pandas: Any = require("pandas", "A fit to ordered classes")
        return pandas.Categorical(values, self.labels[self.in_order], ordered=True)

    def values(self, targets: Array) -> AnyArray:
        return np.asarray(self.labels[self.codes(targets)])

    def coded(self, codes: AnyArray) -> Array:
        return np.asarray(self.ranks[codes], dtype=np.float64)

    def codes(self, targets: Array) -> AnyArray:
        return np.asarray(self.in_order[targets.astype(int)])

    def factors(self, targets: Array, weight: Array, rest: AnyArray) -> Array:
        return class_factors(targets.astype(int), weight, rest)

    def tied(self, outputs: Array, tie: float) -> Array:
        return merge_ties(outputs, self._tie(tie))

    def _tie(self, tie: float) -> float:
        """A tie of targets up to one, for ranks."""
        return float(tie * (len(self.ranks) - 1))

    def outputs_of_estimator(self, values: Array, classes: AnyArray, likely: bool) -> Array:
        """Mean rank under the probabilities, or the rank of the largest decision value."""
        ranks = self.coded(np.searchsorted(self.labels, classes))
        if not likely:
            values = np.hstack([-values, values]) if values.shape[1] == 1 else values
            return np.asarray(ranks[values.argmax(axis=1), None])
        return np.asarray(values @ ranks / values.sum(axis=1))[:, None]

    def loss(self, held_out: HeldOut, fit_weight: Array) -> HeldOutLoss:
        """Mean absolute rank error at the cuts of the least error, these and the calibrator.

        Cuts take the weights of the fit if it has class weights.
        """
        calibrator = None
        if self.calibration is not None:
            calibrator = fit_cumulative_sigmoid(held_out, len(self.ranks))
        weight = fit_weight if self.weighted else held_out.sample_weight
        used = HeldOut(*(each[weight > 0] for each in (held_out.y, held_out.outputs, weight)))
        # The largest output of each rank but the last; none has a rank without rows.
        between = np.concatenate([[-np.inf], ordinal_thresholds(used), [np.inf]])
        cuts = between[np.searchsorted(np.unique(used.y), np.arange(1, len(self.ranks)))]
        away = np.abs(np.searchsorted(cuts, held_out.outputs) - held_out.y)
        return HeldOutLoss(float(np.average(away, weights=weight)), cuts, calibrator)

    def thresholds(self, rule: Rule) -> dict[str, float]:
        names = self.labels[self.in_order].tolist()
        cuts = zip(names, names[1:], np.asarray(rule.threshold).tolist(), strict=False)
        return {f"threshold[{lower}|{upper}]": cut for lower, upper, cut in cuts}

    def margins(self, outputs: Array) -> Array:
        """Distance of the output from each rank, below zero."""
        return np.asarray(-np.abs(outputs - self.ranks))

    def indices(self, outputs: Array, rule: Rule) -> AnyArray:
        return np.asarray(self.in_order[np.searchsorted(np.asarray(rule.threshold), outputs)])

    def decision(self, outputs: Array, rule: Rule) -> Array:
        """How far the output is inside of the cuts about each class."""
        over = outputs[:, None] - np.concatenate([[-np.inf], np.asarray(rule.threshold)])
        under = np.concatenate([np.asarray(rule.threshold), [np.inf]]) - outputs[:, None]
        return np.asarray(np.minimum(over, under)[:, self.ranks])

    def decision_margins(self, outputs: Array, rule: Rule) -> Array:
        return self.decision(outputs, rule)

    def probabilities(self, outputs: Array, rule: Rule) -> Array:
        assert isinstance(rule.calibrator, CumulativeSigmoid)
        return rule.calibrator.probability(outputs)[:, self.ranks]

    def scores_of_new(
        self, values: AnyArray, outputs: Array, rule: Rule, weight: Array, groups: AnyArray | None
    ) -> tuple[ValuesAndErrors, dict[str, float]]:
        """ValueError for labels that are no class, and so have no rank."""
        place = {label: k for k, label in enumerate(self.labels.tolist())}
        if unknown := sorted({str(label) for label in values.tolist() if label not in place}):
            order = self.labels[self.in_order].tolist()
            raise ValueError(f"the target has {unknown}, which have no place in {order}")
        y = self.coded(np.array([place[label] for label in values.tolist()]))
        decisions = self.decisions([self.decided(np.arange(len(y)), outputs, rule)], y)
        scores = self.scores(y, outputs[None], weight, groups, (decisions, None))
        baselines = self.baselines(y, weight)
        return scores, {name: baselines[name] for name in scores}

    def decided(self, rows: AnyArray, outputs: Array, rule: Rule) -> Decided:
        p = None if rule.calibrator is None else self.probabilities(outputs, rule)
        near = self.decision(outputs, rule) >= -tie_width(outputs, self._tie(rule.tie))[:, None]
        return Decided(rows, outputs, near / near.sum(axis=1, keepdims=True), p)

    def decisions(self, decided: Sequence[Decided], targets: Array) -> OrderedDecisions:
        made = Decisions.of(decided, self.codes(targets))
        rows, n = np.concatenate([one.rows for one in decided]), len(targets)
        shares = means(rows, np.concatenate([one.shares for one in decided]), n)
        ranked = None
        if made.probabilities is not None:
            known = (one.probabilities for one in decided if one.probabilities is not None)
            by_rank = np.concatenate([*known])[:, self.in_order]
            ranked = means(rows, ranked_probability_scores(targets[rows], by_rank), n)
        return OrderedDecisions(**vars(made), shares=shares, ranked=ranked)

    def scores(
        self, y: Array, outputs: Array, weight: Array, groups: AnyArray | None, made: Made | None
    ) -> ValuesAndErrors:
        decisions = None if made is None else made[0]
        assert isinstance(decisions, OrderedDecisions)
        more = decisions.ranked, decisions.losses
        return ordered_scores(y, decisions.shares[:, self.in_order], weight, groups, *more)

    def without_columns(self, y: Array, weight: Array) -> Array:
        return class_shares_of(y.astype(int), weight, len(self.labels))

    def baselines(self, y: Array, weight: Array, known: Array | None = None) -> dict[str, float]:
        return ordered_baselines(y, weight, known)
