"""Assessment of an estimator by outer splits, each of which repeats its selection."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.base import is_classifier

from looms.assessment._bootstrap632 import out_of_bag
from looms.assessment._errors import AllSplitsRaisedError, AssessmentInterrupted
from looms.assessment._experiment import Experiment, checked_seed, estimator_text
from looms.assessment._parallel import run_splits
from looms.assessment._result import Assessment
from looms.assessment._scoring import kind_of
from looms.assessment._split_run import SplitResult
from looms.assessment._splits import WHOLE
from looms.estimators._warnings import level_of_user

#: Told of every finished split: how many are done, of how many, and which; None once for those
#: that were in the store.
Progress = Callable[[int, int, SplitResult | None], object]


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
    groups: Any = None,
    copies: str = "apart",
    gap: int = 0,
    progress: Progress | None = None,
) -> Assessment:
    """Performance of an estimator on data that no part of its selection used.

    In every split the whole estimator is fitted to the training part, with its selection
    (preprocessing, kernel, hyper-parameters, threshold), and scored on the test part. For
    machines of looms, also as the last step of a pipeline, the same scores of their
    leave-one-out outputs, held out by group or fold where the machine does so, are computed: the
    difference is the optimism of the selection.

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
        Share or number of the rows that test, with groups as nearly as they allow; 1/k for
        k-fold. The bootstrap ignores it.
    scoring : str, callable, list of str or dict, default=None
        Names of scores, callables ``(estimator, X, y)``, or a dict of these by name.
        "ber" (balanced error rate), "error" (error rate), "rmse", "auc" and "r2" are
        added to those of scikit-learn; of the first three smaller is better, of scorers of
        scikit-learn larger. For other callables mark the direction with `smaller_is_better`, or
        an attribute of that name that is False; otherwise optimism is reported unsigned. The
        default is "ber" and "auc" for two classes, "ber" and "error" for more, or where there is
        neither a decision function nor probabilities, "rmse" and "r2" for regressors.
    store : path, default=None
        Folder that keeps every finished split. The same call again, also after a kill, runs
        the missing ones only, and those that raised; its result is the same to the last bit on
        the same machine and number of threads. It may hold any number of assessments, and
        several processes may use it at once. Needs an integer ``random_state``.
    n_jobs : int, default=None
        Number of splits at once, as everywhere in joblib; a surrounding
        ``joblib.parallel_config`` decides where. With more than one, BLAS keeps to one
        thread in each.
    random_state : int, RandomState instance or None, default=None
        Seed. Every split has its own seed, from this one and the split's index.
    method : {"shuffle", "kfold", "bootstrap", "forward"}, default="shuffle"
        Repeated random splits, repeated k-fold, or the .632+ bootstrap; for
        classifiers with the shares of the classes kept in each part. "forward" is for rows in
        order of time: split 0 tests the last window of ``test_size`` rows, split 1 the window
        before it, and so on, each after training on the rows before its window. The bootstrap
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
    groups : array-like of shape (n_samples,), default=None
        Label of each row, such as its patient. Rows of one group are on one side of every split,
        and resamples draw them as one; a "forward" split leaves out of its training part those
        of groups in its window. `fit` gets the labels of the training part as ``groups`` where
        it takes them, by the rules of ``sample_weight``, and a search of scikit-learn hands
        them to its splitter. Other estimators are fitted without: what they choose by
        leaving out rows is misled, what is reported of them is not.
    copies : {"apart", "together"}, default="apart"
        Rows that are equal in every feature of ``X``: "together" keeps them on one side of
        every split, and resamples draw them as one. With "apart" a model that remembers its
        training rows predicts their copies in the test part. Beside ``groups``, those that
        have equal rows are one.
    gap : int, default=0
        Rows between the training part and the window of "forward", which neither train nor test,
        as where the target of a row is known some rows later.
    progress : callable, default=None
        Called with the number of splits done, their total, and the new `SplitResult`; first
        with None, when those in the store have been read.

    Returns
    -------
    result : Assessment
        Its text is a summary; ``table`` has a row a split, ``mean``, ``standard_error``,
        ``interval()`` and ``optimism`` the figures.

    Raises
    ------
    StoreError
        If the folder is no store, is of another version, or cannot be written. Stored splits
        are kept.
    TimeoutError
        If a dask cluster has no worker for some time.
    AllSplitsRaisedError
        If all splits raised; a ValueError too.
    ValueError
        If an argument is out of range, a class has too few members or groups for a split, the
        rows are too few for the windows, ``groups`` is not one label a row, or the estimator
        takes no ``sample_weight``.
    AssessmentInterrupted
        At Ctrl-C, a KeyboardInterrupt too: its ``result`` has the splits that were done.

    Warns
    -----
    CopiesWarning
        If many rows are copies of others, other than by chance, and are not kept together.
    UserWarning
        If the bootstrap has to give copies of rows to an estimator that takes no weights.

    See Also
    --------
    compare : Several estimators on the same splits.

    Notes
    -----
    The bootstrap gives a row that was drawn k times to the estimator once, with k times its
    weight: left out alone, a copy would be predicted from its copies, and what leave-one-out or
    cross-validation chooses would drift to what reproduces single rows, such as a nearest
    neighbor. These weights go where ``sample_weight`` goes: of a pipeline to the last step, while
    the steps before it are fitted to the distinct rows (with metadata routing, to all that
    request them). An estimator that takes no weights gets the copies, with a warning.

    The out-of-bag error of .632+ is the mean over the rows of each one's mean loss in the
    resamples that left it out [1]_; for "ber" and "balanced_accuracy" such a mean over each
    class, averaged over the classes; for "rmse" and "r2" made of the mean squared error. Areas
    under the curve are no means over rows: theirs is the mean over the resamples. Other than
    in [1]_, resamples of classifiers are drawn within each class, so that none lacks one.
    Standard errors are of the delta method of [1]_, and need 20 resamples.

    Scores of a test part are of one machine, which saw none of its rows; those of several splits
    are averaged, and outputs of different machines never ranked together. Nor are leave-one-out
    ones, which lean away from the class of the row: "loo_auc" compares rows under one machine that
    has seen neither, as ``scores_`` does, and "loo_average_precision" is missing.

    Groups are drawn so that the shares of rows, in all and of each class, come as near as whole
    groups allow; a group of several classes counts as of the one that the fewest groups have.
    Windows of "forward" keep no shares, and one without some class has no area under the curve:
    that split is in ``failures``. The standard error takes windows for exchangeable, and says
    nothing of a drift beyond them.

    On a cluster: ``with joblib.parallel_config("dask"): assess(...)`` after making a
    ``distributed.Client`` (``pip install "looms[dask]"``). Only the calling process writes
    to the store. Workers get the caller's configuration of scikit-learn.

    Splits of workers that die are run again, with dask and with processes of one machine
    ("loky", also in place of "multiprocessing", which does not report that a process died). A
    split that kills its workers repeatedly, as by its memory, at last with no other split at
    work, is recorded in ``failures``; with dask it has as many tries as
    ``distributed.scheduler.allowed-failures`` gives it, twice. It never runs in the calling
    process, unless all do: with ``n_jobs=1`` or threads. A dask cluster made in the calling
    process restarts workers that it gave up (``distributed.deploy.lost-worker-timeout``). After a
    minute without any worker, or joblib's ``wait_for_workers_timeout`` if longer, a TimeoutError
    is raised. Workers of loky end soon after a calling process that was killed.

    A store identifies an estimator by its class and parameters and a scorer by its function,
    and code that is not of an installed package also by what Python has loaded: classes with
    their bases, functions, and the globals that these name. An edit of them runs the splits
    again, as another minor version of Python does. Versions of looms, NumPy, SciPy, scikit-learn
    and the packages that estimator and scorers come from must be those of the store. Not noticed
    is a change in compiled code, in what is imported within a function, in what is named only at
    run time, or in an installed package whose version stays.

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
    experiment = Experiment.of(
        *(estimator, X, y, n_splits, test_size, scoring),
        method=method,
        random_state=checked_seed(random_state, store),
        sample_weight=sample_weight,
        groups=groups,
        copies=copies,
        gap=gap,
    )
    experiment.warn_of_copies()
    return finished(experiment, store, n_jobs, progress)


def stored(
    estimator: Any,
    X: Any,
    y: Any,
    n_splits: int = 100,
    *,
    store: str | os.PathLike[str],
    random_state: int,
    **options: Any,
) -> Assessment | None:
    """Assessment from the splits in a store, without running or writing anything.

    Parameters
    ----------
    estimator, X, y, n_splits, store, random_state
        As for `looms.assess`.
    **options
        As for `looms.assess`: ``test_size``, ``scoring``, ``method``, ``sample_weight``,
        ``groups``, ``copies``, ``gap``.

    Returns
    -------
    result : Assessment or None
        Result of the stored ones of the first ``n_splits`` splits; None if there are none, or
        the bootstrap lacks its fit to all rows.

    Raises
    ------
    StoreError
        If the store is of another version.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from looms import LSSVMClassifier, assess
    >>> from looms.assessment import stored
    >>> X, y = load_iris(return_X_y=True)
    >>> with TemporaryDirectory() as store:
    ...     _ = assess(LSSVMClassifier(), X, y, 2, store=store, random_state=0)
    ...     kept = stored(LSSVMClassifier(), X, y, 5, store=store, random_state=0)
    >>> len(kept.splits)
    2
    """
    seed = checked_seed(random_state, store)
    experiment = Experiment.of(estimator, X, y, n_splits, random_state=seed, **options)
    kept = experiment.store(Path(store), make=False)
    return None if kept is None else _assessment(experiment, kept.load(experiment.splits))


def finished(
    experiment: Experiment,
    store: str | os.PathLike[str] | None,
    n_jobs: int | None,
    progress: Progress | None,
) -> Assessment:
    """Assessment, after running the splits that the store lacks."""
    splits = experiment.splits
    kept = None if store is None else experiment.store(Path(store), make=True)
    if experiment.repeats_rows:
        warnings.warn(
            f"{type(experiment.estimator).__name__} cannot be given sample_weight in fit, so "
            "resamples hold copies of rows. What it chooses by leaving rows out, as by "
            "cross-validation, is misled by them, and so is the estimate; "
            'method="shuffle" has no copies.',
            stacklevel=level_of_user(),
        )
    by_index = {split.index: split for split in splits}
    results: dict[int, SplitResult] = {}
    try:
        stored = {} if kept is None else kept.load(splits)
        results |= {index: result for index, result in stored.items() if result.error is None}
        if progress is not None:
            progress(len(results), len(splits), None)
        missing = [split for split in splits if split.index not in results]
        for result in run_splits(experiment, missing, n_jobs):
            if kept is not None:
                kept.save(by_index[result.index], result)
            results[result.index] = result
            if progress is not None:
                progress(len(results), len(splits), result)
    except KeyboardInterrupt:
        message = f"{len(results)} of {len(splits)} splits are done"
        message += (
            " and were not stored: with store=... they would have been kept."
            if store is None
            else f" and stored in {store}: the same again runs the rest."
        )
        so_far = _assessment(experiment, results)
        if so_far is not None and len(so_far.failures) == len(so_far.splits):
            so_far = None
        raise AssessmentInterrupted(message, so_far) from None
    assessment = _assessment(experiment, results)
    if assessment is None:
        error = results[WHOLE].error
        raise ValueError(f"The fit to all rows, which the bootstrap needs, raised {error}")
    if len(assessment.failures) == len(assessment.splits):
        raise AllSplitsRaisedError(assessment)
    return assessment


def _assessment(experiment: Experiment, results: dict[int, SplitResult]) -> Assessment | None:
    """Figures of the splits that have results, in the order of the plan.

    None if they do not suffice: there are none, or no fit to all rows for the bootstrap.
    """
    first, whole = experiment.splits[0], results.get(WHOLE)
    lacks_whole = first.index == WHOLE and (whole is None or whole.error is not None)
    if lacks_whole or not results.keys() - {WHOLE}:
        return None
    done = [split for split in experiment.splits if split.index in results]
    resamples = [
        (*experiment.rows(split), results[split.index])
        for split in done
        if split.resamples and results[split.index].error is None
    ]
    return Assessment(
        tuple(results[split.index] for split in done if split.index != WHOLE),
        whole,
        tuple(experiment.scorers),
        first.method,
        first.random_state,
        estimator_text(experiment.estimator),
        kinds={name: kind_of(scorer) for name, scorer in experiment.scorers.items()},
        classification=bool(is_classifier(experiment.estimator)),
        out_of_bag=out_of_bag(
            experiment.scorers, experiment.y, experiment.weight, resamples, experiment.units
        )
        if resamples
        else None,
        n_samples=len(experiment.y),
    )
