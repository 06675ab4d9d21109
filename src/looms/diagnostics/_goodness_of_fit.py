"""Goodness of fit: the deviance compared with those of bootstrap replicates."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binomtest
from sklearn.utils import check_random_state

from looms._checks import check_count, check_known, check_share
from looms._optional import require
from looms._threads import openmp_threads
from looms._typing import Array
from looms.calibration._scores import deviance_of
from looms.diagnostics._left_out import axes_or_new, exact_solution, models_without
from looms.diagnostics._problem import Problem, pose
from looms.diagnostics._refits import (
    Likelihood,
    Progress,
    check_likelihood,
    check_possible,
    in_parallel,
    log_probabilities,
    own_class,
    refit,
    sigmoid_log_probabilities,
    with_kernel_matrix,
)
from looms.estimators._warnings import warn_of_order

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_CONFIDENCE = 0.95  # that more replicates would not change the verdict
_MOST = 100_000  # replicates that are worth naming
_ROUNDING = 1e-9  # of products of alpha and whole numbers


def goodness_of_fit(
    estimator: Any,
    X: Any,
    y: Any,
    n_bootstrap: int = 400,
    *,
    alpha: float = 0.05,
    resampling: str = "labels",
    random_state: int | np.random.RandomState | None = None,
    preprocessing: str = "auto",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> GoodnessOfFit:
    r"""Bootstrap of the deviance at fixed hyper-parameters.

    .. math:: D^*_{(j)}, \quad j = \lceil (1 - \alpha)(B + 1) \rceil, \qquad
              p = \frac{1 + \#\{b : D^*_b \ge D\}}{B + 1}

    Model and sigmoid are fitted to every bootstrap sample, and :math:`D^*` is their deviance
    on that same sample [T11 section 2.3], or with "held-out" their leave-one-out deviance. A
    deviance D above the order statistic, that is p ≤ alpha, indicates a poor fit, provided that p
    is farther from alpha than its Monte Carlo error. The same replicates give the extended
    information criterion, ``eic``.

    Parameters
    ----------
    estimator, X, y, preprocessing, n_jobs, progress : as for `left_out_fits`
        The refits are those to replicates.
    n_bootstrap : int, default=400
        Number of replicates, B; 400 to 1000 are advised.
    alpha : float, default=0.05
        Level of the test.
    resampling : {"labels", "held-out", "pairs"}, default="labels"
        "labels" keeps the samples and draws labels from the fitted probabilities. "held-out" draws
        them from the leave-one-out probabilities and compares leave-one-out deviances. It never
        rejected a model that is the truth, but finds only coarse misfit (see Notes). "pairs" draws
        samples with replacement, as in T11.
    random_state : int, RandomState instance or None, default=None
        The same int gives the same replicates for any `n_jobs`; a larger number of replicates
        begins with them.

    Returns
    -------
    goodness_of_fit : GoodnessOfFit
        Deviance, its bootstrap replicates, critical value and p-value.

    Raises
    ------
    ValueError
        As in `left_out_fits`; also if there are too few replicates for the level.

    Notes
    -----
    The cost is B refits; for "held-out" those of `left_out_fits`, B + 1 times. The kernel matrix of
    an SVC is computed once; repeated rows become sample weights if that gives the same model.
    Bootstrap samples that lack a class are drawn again.

    Shares of 150 samples of 80 that were rejected at the level 0.05, in percent (standard errors up
    to 4), where an SVC with its sigmoid is the truth, or a smooth curve is, or waves that a stiff
    model cannot follow (``benchmarks/goodness_of_fit_level.py``):

    ========  ============  ======  ========  =====
    model     truth         labels  held-out  pairs
    ========  ============  ======  ========  =====
    flexible  itself             9         0     17
    flexible  smooth curve      33         1     45
    flexible  waves              7        45     45
    stiff     itself             0         0      0
    stiff     smooth curve       0         0      0
    stiff     waves             14         9     20
    ========  ============  ======  ========  =====

    So no one of them is best. "pairs" rejects a flexible model too often for its rejections to mean
    much; "labels" sees what a flexible model adds to a smooth truth, not what it misses;
    "held-out" sees what it misses, and hardly anything else.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.svm import SVC
    >>> from looms.diagnostics import goodness_of_fit
    >>> X, y = make_classification(60, random_state=0)
    >>> result = goodness_of_fit(SVC(), X, y, 99, random_state=0)
    >>> len(result.bootstrapped), 0 < result.p_value <= 1
    (99, True)
    """
    check_share(alpha, "alpha")
    check_count(n_bootstrap, "n_bootstrap")
    level, total = float(alpha), int(n_bootstrap)
    least = least_replicates(level)
    if total < least:
        raise ValueError(
            f"{total} replicates cannot reach level {level:g}: take n_bootstrap={least} or "
            "more, 400 to 1000 if you can."
        )
    check_known(resampling, "resampling", ("labels", "held-out", "pairs"))
    warn_of_order(X=X, y=y)
    problem = pose(estimator, X, y, preprocessing)
    check_likelihood(problem)
    n, labels = problem.n_samples, problem.labels
    solution = exact_solution(problem)
    if solution is not None:
        log_p = sigmoid_log_probabilities(solution.outputs[:, None], labels, np.ones(n))
    else:
        with openmp_threads(n):
            log_p = log_probabilities(*refit(problem, np.ones(n)), labels, np.ones(n))
    observed = apparent = deviance_of(own_class(log_p, labels, np.ones(n)))
    problem, population = with_kernel_matrix(problem), np.exp(log_p)
    if resampling == "held-out":
        likelihood = left_out_likelihood(problem)
        observed, population = deviance_of(likelihood.left_out), np.exp(likelihood.held_out)
    elif resampling == "pairs":
        population = np.eye(len(problem.classes))[labels]
    task = partial(_replicate, problem, log_p, population, resampling)
    seeds = check_random_state(random_state).randint(2**31 - 1, size=total).tolist()
    bootstrapped, optimism = np.array(in_parallel(task, seeds, n_jobs, progress)).T
    of_problem = problem.preprocessing, problem.by_kernels
    return GoodnessOfFit(observed, apparent, bootstrapped, optimism, level, resampling, *of_problem)


def left_out_likelihood(problem: Problem) -> Likelihood:
    """Likelihood of models without each sample; ValueError if a class has probability zero."""
    _, _, likelihood = models_without(problem, np.arange(problem.n_samples), True)
    assert likelihood is not None
    check_possible(likelihood.left_out)
    return likelihood


def least_replicates(level: float) -> int:
    """Smallest number of replicates B that can reach the level: 1 / (B + 1) ≤ level."""
    return math.ceil(1 / level - _ROUNDING) - 1


@dataclass(frozen=True, eq=False, repr=False)
class GoodnessOfFit:
    """Deviance and its bootstrap replicates, by `goodness_of_fit`. Printing shows a summary.

    Attributes
    ----------
    deviance : float
        Deviance D of the model on its own sample, with "held-out" its leave-one-out deviance.
    apparent : float
        Deviance of the model on its own sample.
    bootstrapped : ndarray of shape (n_bootstrap,)
        Deviance D* of every replicate, in the order drawn.
    optimism : ndarray of shape (n_bootstrap,)
        For every replicate, the deviance of its model on what replicates are drawn from (the
        sample, or its rows with the probabilities of "labels" or "held-out" as weights of the
        classes) minus that on the replicate, each relative to the deviance of the model of the
        sample.
    alpha : float
        Level of the test.
    resampling : str
        "labels", "held-out" or "pairs".
    preprocessing : str
        "none", "held" or "refitted".
    by_kernels : str, default=""
        Words that say so if the kernels alone were judged, of a model that has members without a
        kernel, such as boosted trees.

    Examples
    --------
    >>> import numpy as np
    >>> result = GoodnessOfFit(9.0, 9.0, np.arange(19.0), np.full(19, 4.0), 0.05, "labels", "none")
    >>> result.critical_value, result.p_value, result.fits_poorly
    (18.0, 0.55, False)
    >>> result.eic
    13.0
    """

    deviance: float
    apparent: float
    bootstrapped: Array
    optimism: Array
    alpha: float
    resampling: str
    preprocessing: str
    by_kernels: str = ""

    @property
    def eic(self) -> float:
        """Extended information criterion, ``apparent`` plus the mean of ``optimism``.

        That mean estimates how far ``apparent`` is below the deviance of new samples; for a
        likelihood maximized over p parameters it corresponds to 2p in the AIC. With "pairs" it is
        the criterion of Ishiguro, Sakamoto & Kitagawa (1997), otherwise its parametric form. As
        with the CV score, smaller is better.
        """
        return self.apparent + float(np.mean(self.optimism))

    @property
    def critical_value(self) -> float:
        """Order statistic of D* at (1 − alpha)(B + 1), rounded up to a whole number."""
        n = len(self.bootstrapped)
        rank = math.ceil(round((1.0 - self.alpha) * (n + 1), 9))
        return float(np.sort(self.bootstrapped)[rank - 1])

    @property
    def p_value(self) -> float:
        """(1 + number of D* that reach D) / (B + 1)."""
        return (1 + self._n_reached) / (len(self.bootstrapped) + 1)

    @property
    def p_interval(self) -> tuple[float, float]:
        """Clopper–Pearson 95 % interval of the share of D* ≥ D with infinitely many replicates."""
        share = binomtest(self._n_reached, len(self.bootstrapped))
        interval = share.proportion_ci(_CONFIDENCE)  # Clopper and Pearson's by default
        return float(interval.low), float(interval.high)

    @property
    def decided(self) -> bool:
        """True if alpha is outside `p_interval`, so that more replicates would change little."""
        low, high = self.p_interval
        return not low <= self.alpha <= high

    @property
    def n_to_decide(self) -> float:
        """Number of replicates whose Monte Carlo error is the distance of the p-value from alpha.

        B = 1.96² alpha (1 − alpha) / (p − alpha)² for the share p of D* that reach D; inf if p
        equals alpha, and always more than there are.
        """
        distance = self._n_reached / len(self.bootstrapped) - self.alpha
        if distance == 0.0:
            return math.inf
        enough = math.ceil(1.96**2 * self.alpha * (1.0 - self.alpha) / distance**2)
        return float(max(enough, len(self.bootstrapped) + 1))

    @property
    def verdict(self) -> str:
        """The result in words: a poor fit, no evidence of one, or undecided by the replicates."""
        if self.decided:
            return "fits poorly" if self.fits_poorly else "no evidence of a poor fit"
        needed = self.n_to_decide
        more = f"about {needed:.0f}" if needed <= _MOST else f"more than {_MOST}"
        return f"undecided by {len(self.bootstrapped)} replicates, {more} would decide"

    @property
    def percentile(self) -> float:
        """Percentage of D* below D."""
        return 100.0 * float((self.bootstrapped < self.deviance).mean())

    @property
    def fits_poorly(self) -> bool:
        """True if D is above the critical value; `decided` tells if that can be trusted."""
        return self.deviance > self.critical_value

    @property
    def table(self) -> pd.DataFrame:
        """Table of the deviance, with a row per replicate, in the order drawn."""
        pandas = require("pandas", "The table of a bootstrap")
        index = pandas.RangeIndex(len(self.bootstrapped), name="replicate")
        return pandas.DataFrame({"deviance": self.bootstrapped}, index=index)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Histogram of D* with D and the critical value; returns the axes."""
        ax = axes_or_new(ax, self)
        ax.hist(self.bootstrapped, bins="auto", color="0.8", edgecolor="0.6")
        ax.axvline(self.deviance, color="C0", label=f"Observed: {self.deviance:.2f}")
        level = f"Critical at {self.alpha:g}: {self.critical_value:.2f}"
        ax.axvline(self.critical_value, color="C3", linestyle="--", label=level)
        ax.set(xlabel="Deviance", ylabel="Bootstrap samples")
        ax.legend()
        return ax

    @property
    def _n_reached(self) -> int:
        """Number of D* that are at least D."""
        return int((self.bootstrapped >= self.deviance).sum())

    def __repr__(self) -> str:
        low, high = self.p_interval
        mean, spread = self.bootstrapped.mean(), self.bootstrapped.std()
        return (
            f"Deviance {self.deviance:.2f}, critical value {self.critical_value:.2f} at level "
            f"{self.alpha:g}: {self.verdict} (p = {self.p_value:.4g}, in endless replicates "
            f"between {low:.3g} and {high:.3g})\n"
            f"{len(self.bootstrapped)} bootstrap samples of {self.resampling}: "
            f"{mean:.2f} ± {spread:.2f}; the deviance is at percentile {self.percentile:.1f}"
            f"{self.by_kernels}"
        )


def _replicate(
    problem: Problem, log_p: Array, population: Array, resampling: str, seed: int
) -> tuple[float, float]:
    """Deviance of the model fitted to one bootstrap replicate, on that replicate; its optimism.

    ``log_p``, (n_samples, n_classes), is of the model of the sample. Differences from its
    deviances have the same mean and less variance over the replicates. Labels are drawn by the
    probabilities of the ``population``. Replicates that lack a class, or for "held-out" have it
    once, are drawn again.
    """
    random = np.random.RandomState(seed)
    (n, n_classes), labels, weight = log_p.shape, problem.labels, np.ones(log_p.shape[0])
    least = 2 if resampling == "held-out" else 1
    while True:
        if resampling == "pairs":
            weight = np.bincount(random.randint(n, size=n), minlength=n).astype(np.float64)
        else:
            above = random.uniform(size=(n, 1)) > np.cumsum(population, axis=1)
            labels = np.minimum(above.sum(axis=1), n_classes - 1)
        if np.bincount(labels[weight > 0], minlength=n_classes).min() >= least:
            break
    drawn = replace(problem, labels=labels, y=problem.classes[labels])
    model, X = refit(drawn, weight)
    own, likely = (np.arange(n), labels), population > 0
    of_model = log_probabilities(model, X, labels, weight)
    apparent = deviance_of(own_class(of_model, labels, weight), weight)
    on_population, of_sample = (
        deviance_of(log[likely], population[likely]) for log in (of_model, log_p)
    )
    optimism = on_population - of_sample + deviance_of(log_p[own], weight) - apparent
    if resampling == "held-out":
        return deviance_of(left_out_likelihood(drawn).left_out), optimism
    return apparent, optimism
