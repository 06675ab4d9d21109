"""Options of a search for hyper-parameters."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from looms._advice import setting
from looms._checks import check_count, check_flag, check_share
from looms.optimize._minimize import minimize


class Search(BaseEstimator):  # type: ignore[misc]
    """Options of the search for the hyper-parameters of a kernel model.

    The defaults suit most tables. The options are for studies of the search itself.

    Parameters
    ----------
    criterion : str, looms.criteria.Criterion or None, default=None
        Loss of the held-out outputs that is minimized: "press", the mean squared error; for classes
        also "hinge", "squared_hinge", "smoothed_error", "wmw" (smoothed 1 − AUC) or
        "cross_entropy". With ``loss="hinge"`` also "deviance", the held-out deviance
        −2 Σ_i w_i log p_i [T11], for which model and sigmoid are both fitted without row i, or its
        unit. None is "press", and "deviance" of the hinge losses.
    method : {"gradient", "pattern", "grid"} or None, default=None
        "gradient" searches along gradients by L-BFGS-B, the way of the squared loss. "pattern" is
        the way of the hinge losses: it tries every second value of C and of the kernel's
        hyper-parameter, powers of two, and moves from the best of these to better neighbors, in
        steps that are halved down to `resolution`, some fifty points. "grid" tries all points of a
        fixed grid: for the squared loss 63 around the start, where the parameters of one kernel
        move together; on landmarks the start is the best point of the same grid for a sample of
        the rows. None is the first of these that the loss has.
    max_iter : int, default=100
        Maximum number of iterations of each search along gradients.
    n_restarts : int, default=0
        Number of starts beside the first. All starts are the best points of a scan of the
        hyper-parameters on a subsample, one for each of five kernels between a narrow and a
        wide one, so more than four restarts change nothing.
    tol : float, default=0.1
        A search ends when an iteration gains less than this fraction of the standard error of
        the criterion, and less than the standard error of the gain itself, from the differences
        of the samples' losses; on subsamples, where iterations are cheap, less than a fraction of
        that. From 1600 samples on, a search on all is on landmarks if these give the criterion to
        within ten times this tolerance, and the kernel matrix of all samples is factorized only
        once; with 0 never.
    max_samples : int, float or None, default=None
        Number of samples that the search along gradients ends on, after which the model is fitted
        to all. None is all of up to 2000 samples, or 100 for each hyper-parameter; of more, so
        many; then the point where it ended and, of up to 5000 samples, one extrapolated from the
        last two numbers of samples are evaluated on all. A share is one of as many, and at least
        200; it is 0.25 in the folds of an evaluation of several candidates, unless it is given. On
        landmarks a search is on a quarter of the samples at most, or 5000.
    prior : bool, default=False
        Bayesian regularization of the kernel's hyper-parameters (Cawley & Talbot 2007), for
        kernels that have many, such as "ard" on few samples.
    resolution : float, default=0.5
        Step in log₂ of the hyper-parameters at which a pattern search ends.
    class_weight : "same", dict, "balanced" or None, default="same"
        Weights of the classes in the criterion, by default the ``class_weight`` of the model; they
        multiply ``sample_weight``. With None the criterion ignores class weights, even if the fit
        has some, so the selected model may neglect a rare class.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from looms import KernelClassifier, Search
    >>> model = KernelClassifier(search=Search("cross_entropy", max_iter=20))
    >>> model.fit(*load_iris(return_X_y=True)).candidates_[0].criterion
    'cross_entropy'
    """

    #: Search along gradients, of each start on each number of samples.
    _minimizer = staticmethod(minimize)

    def __init__(
        self,
        criterion: Any = None,
        *,
        method: str | None = None,
        max_iter: int = 100,
        n_restarts: int = 0,
        tol: float = 0.1,
        max_samples: float | None = None,
        prior: bool = False,
        resolution: float = 0.5,
        class_weight: Any = "same",
    ) -> None:
        self.criterion = criterion
        self.method = method
        self.max_iter = max_iter
        self.n_restarts = n_restarts
        self.tol = tol
        self.max_samples = max_samples
        self.prior = prior
        self.resolution = resolution
        self.class_weight = class_weight

    def check(self) -> None:
        """Check the options.

        Raises
        ------
        ValueError
            For an unknown name, a number out of range, or options that contradict each other.
        """
        check_flag("prior", self.prior)
        if self.method == "grid" and self.prior:
            grid = setting("grid", text="method='grid'")
            raise ValueError(
                f"{grid} compares its points without a prior: give {setting('prior', False)}."
            )
        check_count(self.max_iter, "max_iter")
        check_count(self.n_restarts, "n_restarts", least=0)
        if not (isinstance(self.tol, Real) and 0 <= float(self.tol) < np.inf):
            raise ValueError(f"tol must be a nonnegative number, got {self.tol!r}.")
        if isinstance(self.max_samples, Integral):
            check_count(self.max_samples, "max_samples", 3, ", a share of them or None")
        elif self.max_samples not in (None, 1.0):
            check_share(self.max_samples, "max_samples")
        step = self.resolution
        if not (isinstance(step, Real) and 0 < float(step) < np.inf):
            raise ValueError(f"resolution must be a positive number, got {step!r}.")
