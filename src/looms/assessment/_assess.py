"""The outer protocol: everything that was chosen is chosen again in every split."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import _num_samples

from looms._typing import Array
from looms.assessment._bootstrap import check_defined, out_of_bag
from looms.assessment._execute import run_splits
from looms.assessment._key import content_key, package_versions
from looms.assessment._kinds import kind_of
from looms.assessment._result import Assessment
from looms.assessment._run import SplitResult
from looms.assessment._scoring import scorers_of, with_weights
from looms.assessment._splits import WHOLE, Split, plan
from looms.assessment._store import FORMAT, Store, StoreError
from looms.assessment._text import estimator_text
from looms.assessment._weights import checked_weights, route, takes_weights_in_fit

#: Told of every finished split: how many are done, of how many, and which; None once for those
#: that were in the store.
Progress = Callable[[int, int, SplitResult | None], object]


class AllSplitsRaisedError(ValueError):
    """An assessment of which no split went well.

    Attributes
    ----------
    result : Assessment
        With the reason of every split in ``failures``, and no figures.
    """

    def __init__(self, result: Assessment) -> None:
        super().__init__(result)
        self.result = result

    def __str__(self) -> str:
        first = next(iter(self.result.failures.values()))
        return f"All {len(self.result.splits)} splits raised; the first: {first}"


class AssessmentInterrupted(KeyboardInterrupt):
    """Ctrl-C during an assessment: how far it came, and how to go on.

    Attributes
    ----------
    result : Assessment or None
        Of the splits that are done; None if these give no figures yet.
    """

    def __init__(self, message: str, result: Assessment | None) -> None:
        super().__init__(message)
        self.result = result


def assess(
    estimator: Any,
    X: Any,
    y: Any,
    n_splits: int = 100,
    test_size: float = 0.1,
    scoring: Any = None,
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    *,
    method: str = "shuffle",
    sample_weight: Any = None,
    progress: Progress | None = None,
) -> Assessment:
    """Performance of an estimator on data that no part of its selection has seen.

    In every split the whole estimator is fitted to the training part, with all that it
    chooses by itself (preprocessing, kernel, hyper-parameters, threshold), and scored on
    the test part. Of machines of looms, also as the last step of a pipeline, the same
    scores of their leave-one-out outputs stand beside: the difference is the optimism of
    having been chosen by them.

    Parameters
    ----------
    estimator : estimator of scikit-learn or looms
        Cloned for every split. Every ``random_state`` in it that is None is set from the
        split's own seed, so that a split gives the same whenever and wherever it runs.
    X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
        All samples; a square kernel matrix for estimators that take one.
    y : array-like of shape (n_samples,)
        Targets.
    n_splits : int, default=100
        Number of splits; for "kfold" a multiple of the number of folds. More splits add
        to those there were and change none of them.
    test_size : float or int, default=0.1
        Share or number of the rows that test; 1/k for k-fold. The bootstrap ignores it.
    scoring : str, callable, list of str or dict, default=None
        Names of scores, callables ``(estimator, X, y)``, or a dict of these by name.
        "ber" (balanced error rate), "error" (error rate), "rmse", "auc" and "r2" are
        added to those of scikit-learn; of the first three smaller is better, of scorers of
        scikit-learn larger. Which it is of other callables is not known, so no direction of
        the optimism is told, unless `smaller_is_better` marks them, or an attribute of that
        name is False. The default is "ber" and "auc" for two
        classes, "ber" and "error" for more, "rmse" and "r2" for regressors.
    store : path, default=None
        Folder that keeps every finished split. The same call again, also after a kill,
        runs the missing ones only, and its result is the same as without interruption, to
        the last bit on the same machine and number of threads. It may hold any number of
        assessments, and several processes may use it at once. Splits that raised are
        tried again. Needs an integer ``random_state``.
    n_jobs : int, default=None
        Number of splits at once, as everywhere in joblib; a surrounding
        ``joblib.parallel_config`` decides where. With more than one, BLAS keeps to one
        thread in each.
    random_state : int, RandomState instance or None, default=None
        Seed. Every split has a seed of its own, made of it and of the split's index.
    method : {"shuffle", "kfold", "bootstrap"}, default="shuffle"
        Repeated random splits, repeated k-fold, or the .632+ bootstrap; for
        classifiers with the shares of the classes kept in each part. The bootstrap
        trains on as many rows drawn with replacement, tests on those not drawn, and
        corrects the score for both by the apparent one of a fit to all rows [1]_. It is
        defined for "ber", "error", "auc", "rmse", "r2", "accuracy", "balanced_accuracy" and
        "roc_auc". See Notes.
    sample_weight : array-like of shape (n_samples,), default=None
        Nonnegative weights of the samples, wherever they count: in the fit of every split,
        in the scores of its test part and in those of the leave-one-out outputs, by all
        scorers that take weights; the bootstrap draws rows with theirs. `fit` gets them as
        ``sample_weight``, that of a pipeline as ``step__sample_weight`` of its last step,
        and with ``sklearn.set_config(enable_metadata_routing=True)`` as requested by
        ``set_fit_request``; a scorer that has ``set_score_request(sample_weight=False)`` stays
        unweighted. Splits do not depend on them.
    progress : callable, default=None
        Called with the number of splits done, their total, and the `SplitResult` that
        came; with None for it at the start, when those in the store have been read.

    Returns
    -------
    result : Assessment
        Printed, a summary; ``table`` has a row a split, ``mean``, ``standard_error``,
        ``interval()`` and ``optimism`` the figures, ``failures`` the reasons of splits that
        raised.

    Raises
    ------
    StoreError
        If the store is something else, of another version, or cannot be written. What is
        stored stays.
    TimeoutError
        If a dask cluster has no worker for some time.
    AllSplitsRaisedError
        If all splits raised; a ValueError too.
    ValueError
        If an argument is out of range, a class has too few members for a split, or the
        estimator takes no ``sample_weight``.
    AssessmentInterrupted
        At Ctrl-C, a KeyboardInterrupt too: its ``result`` has the splits that were done.

    Warns
    -----
    UserWarning
        If the bootstrap has to give copies of rows to an estimator that takes no weights.

    See Also
    --------
    compare : Several estimators on the same splits.

    Notes
    -----
    The bootstrap gives a row that was drawn k times to the estimator once, with k times its
    weight: with copies, leaving a row out would leave its copies in, and what is chosen by
    leaving rows out, as by leave-one-out or cross-validation, would drift to what reproduces
    single rows, such as a nearest neighbour. These weights go where ``sample_weight`` goes: of a
    pipeline to the last step, while the steps before it are fitted to the distinct rows, as
    in any other split (with metadata routing, to whatever asks for them). An estimator that
    takes no weights gets the copies, with a warning.

    The out-of-bag error of .632+ is the mean over the rows of each one's mean loss in the
    resamples that left it out [1]_; for "ber" and "balanced_accuracy" such a mean over each
    class, averaged over the classes; for "rmse" and "r2" made of the mean squared error. Areas
    under the curve are no means over rows: theirs is the mean over the resamples. Other than
    in [1]_, resamples of classifiers are drawn within each class, so that none lacks one.

    On a cluster: ``with joblib.parallel_config("dask"): assess(...)`` after making a
    ``distributed.Client`` (``pip install "looms[dask]"``). Only the calling process writes
    to the store. Workers get the caller's configuration of scikit-learn.

    Splits of workers that die are run again, with dask and with processes of one machine
    ("loky"; also in place of "multiprocessing", whose pool never tells that a process
    died). A split that kills its workers again and again, as by its memory, at last with no
    other split at work, is recorded in ``failures``, and all others are run. With dask it
    has as many tries as ``distributed.scheduler.allowed-failures`` gives it, twice. It
    never runs in the calling process, unless all splits do: with ``n_jobs=1`` or threads.

    A dask cluster made in the calling process is asked to start workers again that it gave
    up (``distributed.deploy.lost-worker-timeout``). Without any worker for a minute, or for
    joblib's ``wait_for_workers_timeout`` if longer, a TimeoutError is raised. Workers of
    loky end soon after a calling process that was killed.

    A store knows an estimator by its class and parameters and a scorer by its function. Of
    code that is not of an installed package it knows what Python has loaded too: classes
    with their bases, functions, and the globals that these name. An edit of them runs the
    splits again, as another minor version of Python does. Versions of looms, NumPy, SciPy,
    scikit-learn and the packages that estimator and scorers come from must be those of the
    store. Not noticed is a change in compiled code, in what is imported within a function,
    in what is named only at run time, or in an installed package whose version stays.

    References
    ----------
    .. [1] Efron & Tibshirani (1997), Improvements on cross-validation: the .632+
       bootstrap method, JASA 92.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import looms
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), looms.LSSVMClassifierCV("linear"))
    >>> result = looms.assess(model, X[::3], y[::3], n_splits=5, random_state=0)
    >>> bool(result.mean["ber"] < 0.1)
    True
    >>> list(result.table.columns[:6])
    ['n_train', 'n_test', 'ber', 'auc', 'loo_ber', 'loo_auc']
    """
    X, y, weight, scorers, splits = _planned(
        estimator, X, y, n_splits, test_size, scoring, store, random_state, method, sample_weight
    )
    kept = None
    if store is not None:
        kept = _opened(Path(store), estimator, X, y, weight, scorers, splits[0])
    if method == "bootstrap" and not takes_weights_in_fit(estimator):
        warnings.warn(
            f"{type(estimator).__name__} cannot be given sample_weight in fit, so resamples hold "
            "copies of rows. What it chooses by leaving rows out, as by cross-validation, is "
            'misled by them, and so is the estimate; method="shuffle" has no copies.',
            stacklevel=2,
        )
    results: dict[int, SplitResult] = {}
    try:
        _run_into(results, kept, estimator, X, y, weight, scorers, splits, n_jobs, progress)
    except KeyboardInterrupt:
        raise _interrupted(results, store, estimator, y, weight, scorers, splits) from None
    result = _assessment(results, splits, scorers, estimator, y, weight)
    _check_success(result)
    return result


def stored(
    estimator: Any,
    X: Any,
    y: Any,
    n_splits: int = 100,
    test_size: float = 0.1,
    scoring: Any = None,
    *,
    store: str | os.PathLike[str],
    random_state: int,
    method: str = "shuffle",
    sample_weight: Any = None,
) -> Assessment | None:
    """What a store has of an assessment; nothing is run, and nothing written.

    Parameters
    ----------
    estimator, X, y, n_splits, test_size, scoring, store, random_state, method, sample_weight
        As `assess` was given them, or will be.

    Returns
    -------
    result : Assessment or None
        Of those of the first ``n_splits`` splits that are there, with the reasons of those
        that raised in ``failures``; None if there are none, or the bootstrap lacks its fit to
        all rows.

    Raises
    ------
    StoreError
        If the store is of another version.
    """
    X, y, weight, scorers, splits = _planned(
        estimator, X, y, n_splits, test_size, scoring, store, random_state, method, sample_weight
    )
    key = _key(Path(store), estimator, X, y, weight, scorers, _plan_of(splits[0], estimator))
    if not (Path(store) / key).is_dir():
        return None
    results = _opened(Path(store), estimator, X, y, weight, scorers, splits[0]).load(splits)
    return _so_far(results, splits, scorers, estimator, y, weight)


def _planned(
    estimator: Any,
    X: Any,
    y: Any,
    n_splits: int,
    test_size: float,
    scoring: Any,
    store: Any,
    random_state: Any,
    method: str,
    sample_weight: Any,
) -> tuple[Any, Any, Array | None, dict[str, Any], list[Split]]:
    """Checked data, weights, scorers and splits."""
    X, y = _checked(X, y)
    weight = checked_weights(sample_weight, estimator, len(y))
    seed = _checked_seed(random_state, store)
    scorers = scorers_of(scoring, estimator, y)
    if method == "bootstrap":
        check_defined(scorers, y)
    if weight is not None or method == "bootstrap":  # which weighs leave-one-out outputs
        scorers = with_weights(scorers)
    splits = plan(
        y,
        method=method,
        n_splits=n_splits,
        test_size=test_size,
        random_state=seed,
        stratified=bool(is_classifier(estimator)),
    )
    return X, y, weight, scorers, splits


def _assessment(
    results: dict[int, SplitResult],
    splits: list[Split],
    scorers: dict[str, Any],
    estimator: Any,
    y: Any,
    weight: Array | None,
) -> Assessment:
    pairs = [(split, results[split.index]) for split in splits if split.index != WHOLE]
    method, seed = splits[0].method, splits[0].random_state
    resamples = [
        (split.rows(y)[1], result.predictions, result.scores)
        for split, result in pairs
        if split.resamples and result.error is None
    ]
    return Assessment(
        tuple(result for _, result in pairs),
        *(results.get(WHOLE), tuple(scorers), method, seed, estimator_text(estimator)),
        kinds={name: kind_of(scorer) for name, scorer in scorers.items()},
        classification=bool(is_classifier(estimator)),
        out_of_bag=out_of_bag(scorers, y, weight, resamples) if resamples else None,
    )


def _interrupted(
    results: dict[int, SplitResult],
    store: Any,
    estimator: Any,
    y: Any,
    weight: Array | None,
    scorers: dict[str, Any],
    splits: list[Split],
) -> AssessmentInterrupted:
    """What to say of an assessment that ends early, with its figures where there are any."""
    done = [split for split in splits if split.index in results]
    message = f"{len(done)} of {len(splits)} splits are done"
    message += (
        " and were not stored: with a store (--store of looms assess) they would have been kept."
        if store is None
        else f" and stored in {store}: the same again runs the rest."
    )
    result = _so_far(results, splits, scorers, estimator, y, weight)
    if result is not None and len(result.failures) == len(result.splits):
        result = None
    return AssessmentInterrupted(message, result)


def _so_far(
    results: dict[int, SplitResult],
    splits: list[Split],
    scorers: dict[str, Any],
    estimator: Any,
    y: Any,
    weight: Array | None,
) -> Assessment | None:
    """An assessment of those splits that there are; None where that takes more."""
    done = [split for split in splits if split.index in results]
    whole = results.get(WHOLE)
    lacks_whole = splits[0].index == WHOLE and (whole is None or whole.error is not None)
    if lacks_whole or all(split.index == WHOLE for split in done):
        return None
    return _assessment(results, done, scorers, estimator, y, weight)


def _run_into(
    results: dict[int, SplitResult],
    kept: Store | None,
    estimator: Any,
    X: Any,
    y: Any,
    weight: Array | None,
    scorers: dict[str, Any],
    splits: list[Split],
    n_jobs: int | None,
    progress: Progress | None,
) -> None:
    """Put in results of all splits by index: those in the store, and the missing ones run now."""
    stored = {} if kept is None else kept.load(splits)
    results |= {index: result for index, result in stored.items() if result.error is None}
    by_index = {split.index: split for split in splits}
    if progress is not None:
        progress(len(results), len(splits), None)
    missing = [split for split in splits if split.index not in results]
    for result in run_splits(estimator, X, y, weight, scorers, missing, n_jobs):
        if kept is not None:
            kept.save(by_index[result.index], result)
        results[result.index] = result
        if progress is not None:
            progress(len(results), len(splits), result)


def _opened(
    folder: Path,
    estimator: Any,
    X: Any,
    y: Any,
    weight: Array | None,
    scorers: dict[str, Any],
    split: Split,
) -> Store:
    """The part of a store that belongs to these data, this estimator and such splits."""
    plan_of = _plan_of(split, estimator)
    key = _key(folder, estimator, X, y, weight, scorers, plan_of)
    about = {
        "estimator": estimator_text(estimator),
        "shape": list(getattr(X, "shape", (len(y),))),
        "scores": list(scorers),
        "weighted": weight is not None,
        **plan_of,
    }
    return Store(folder, key, about, package_versions(estimator, scorers))


def _plan_of(split: Split, estimator: Any) -> dict[str, Any]:
    """What splits of one store have in common."""
    in_common = {"method": split.method, "stratified": split.stratified}
    if split.method == "bootstrap":
        as_weights = takes_weights_in_fit(estimator)
        return in_common | {"copies": (route(estimator) or "weights") if as_weights else "rows"}
    rows = isinstance(split.test_size, Integral)
    return in_common | {"test_size": float(split.test_size), "test_rows": rows}


def _key(
    folder: Path,
    estimator: Any,
    X: Any,
    y: Any,
    weight: Array | None,
    scorers: dict[str, Any],
    plan_of: dict[str, Any],
) -> str:
    # Without weights the key is what it was before there were any: old stores stay good.
    weights = {} if weight is None else {"sample_weight": weight, "route": route(estimator)}
    try:
        return content_key(
            estimator=estimator, X=X, y=y, scorers=scorers, plan=plan_of, format=FORMAT, **weights
        )
    except TypeError as error:
        raise StoreError(folder, str(error).rstrip("."), "Assess without a store.") from error


def _checked(X: Any, y: Any) -> tuple[Any, Any]:
    """Samples that rows can be taken of, and as many targets."""
    if sparse.issparse(X):
        X = X.tocsr()
    elif not hasattr(X, "shape"):
        X = np.asarray(X)
    if not hasattr(y, "shape"):
        y = np.asarray(y)
    check_consistent_length(X, y)
    if _num_samples(X) < 2:
        raise ValueError("An assessment needs more than one sample.")
    return X, y


def _checked_seed(random_state: Any, store: Any) -> int:
    whole = isinstance(random_state, Integral) and not isinstance(random_state, bool)
    if whole and int(random_state) >= 0:
        return int(random_state)
    if whole:
        raise ValueError(f"random_state must not be negative, got {random_state!r}.")
    if store is not None:
        raise ValueError(
            "A store needs an integer random_state, or its splits could not be found again; got "
            f"{random_state!r}."
        )
    return int(check_random_state(random_state).randint(2**31 - 1))


def _check_success(result: Assessment) -> None:
    whole = result.whole
    if whole is not None and whole.error is not None:
        raise ValueError(f"The fit to all rows, which the bootstrap needs, raised {whole.error}")
    if len(result.failures) == len(result.splits):
        raise AllSplitsRaisedError(result)
