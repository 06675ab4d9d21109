"""Assessment of an estimator by outer splits, each of which repeats the whole selection."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from looms._advice import setting
from looms._typing import AnyArray
from looms.assessment._bootstrap632 import out_of_bag
from looms.assessment._errors import AllSplitsRaisedError, AssessmentInterrupted
from looms.assessment._experiment import Experiment, checked_seed, estimator_key, estimator_text
from looms.assessment._parallel import run_splits
from looms.assessment._result import Assessment
from looms.assessment._scoring import kind_of
from looms.assessment._split_run import SplitResult
from looms.assessment._splits import WHOLE
from looms.estimators._warnings import level_of_user, warn_of_order

#: Told of every finished split: how many are done, of how many, and which; None once for those
#: that were in the store.
Progress = Callable[[int, int, SplitResult | None], object]


def assess(
    estimator: Any,
    X: Any,
    y: Any,
    n_splits: int | None = None,
    test_size: float = 0.1,
    scoring: Any = None,
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    *,
    method: str = "shuffle",
    sample_weight: Any = None,
    groups: Any = None,
    duplicates: str = "ignore",
    gap: int = 0,
    progress: Progress | None = None,
) -> Assessment:
    """Performance of an estimator on data that no part of its selection used.

    Every split fits the whole estimator to its training part, including model selection
    (preprocessing, kernel, hyper-parameters, threshold), and scores it on its test part. For
    models of looms, also as the last step of a pipeline, it computes the same scores from the
    leave-one-out outputs (held out by group or fold where the model does so). The difference
    is the optimism of the selection.

    Parameters
    ----------
    estimator : estimator of scikit-learn or looms
        Cloned for every split. Every ``random_state`` in it that is None is set from the
        split's own seed, so that a split gives the same result whenever and wherever it runs.
    X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
        All samples; a square kernel matrix for estimators that take one.
    y : array-like of shape (n_samples,)
        Targets.
    n_splits : int, default=None
        Number of splits; for "kfold" a multiple of the number of folds. A larger number adds
        splits to the existing ones and changes none of them. By default 100, for "kfold" as many
        of these as are whole repeats, and for "forward" 5, or as many windows as fit.
    test_size : float or int, default=0.1
        Share or number of rows in the test part, or as near as whole groups allow; 1/k for
        k-fold. The bootstrap ignores it.
    scoring : str, callable, list of these or dict, default=None
        Names of scores, callables ``(estimator, X, y)``, or a dict of these by name. Names are
        those of scikit-learn's scorers, for which greater is better, and those of ``evaluate``, of
        which losses and errors, such as "rmse" and "log_loss", are better when smaller; "roc_auc"
        of several classes is a mean over them, each against the rest. Callables tell their
        direction by an attribute ``smaller_is_better``, True or False; otherwise optimism is
        reported unsigned. The default is "rmse" and "r2" for regressors, "balanced_accuracy" and
        "roc_auc" for two classes, "mean_rank_error" and "accuracy" for ordered ones, and
        "balanced_accuracy" and "accuracy" for others or without a decision function and
        probabilities; with probabilities also "log_loss", but not for "bootstrap", nor for more
        than two classes with groups or "forward", where training parts may lack a class.
    store : path, default=None
        Folder that keeps every finished split. Repeating the call, even after the process was
        killed, runs only the splits that are missing or raised; the result is the same to the
        last bit on the same computer with the same number of threads. A store may hold any
        number of assessments, and several processes may use it at once. Needs an integer
        ``random_state``.
    n_jobs : int, default=None
        Number of splits to run in parallel, as everywhere in joblib; a surrounding
        ``joblib.parallel_config`` decides where. With more than one, each uses one BLAS thread.
    random_state : int, RandomState instance or None, default=0
        Seed. The seed of every split is derived from this one and the split's index.
    method : {"shuffle", "kfold", "bootstrap", "forward"}, default="shuffle"
        Repeated random splits, repeated k-fold, or the .632+ bootstrap; for classifiers, each
        part keeps the shares of the classes. "forward" is for rows in order of time: split 0
        tests the last window of ``test_size`` rows, split 1 the window before it, and so on,
        each trained on the rows before its window. The bootstrap trains on n rows drawn with
        replacement, tests on those not drawn, and corrects the score for both, using the
        apparent score of a fit to all rows [1]_. It is defined for "accuracy",
        "balanced_accuracy", "roc_auc", "rmse" and "r2". See Notes.
    sample_weight : array-like of shape (n_samples,), default=None
        Nonnegative weights of the samples. They count everywhere: in the fit of every split, in
        the scores of its test part and of the leave-one-out outputs (for scorers that take
        weights), and in the bootstrap, where a drawn row brings its weight. `fit` receives them
        as ``sample_weight``, a pipeline as ``step__sample_weight`` of its last step; with
        ``sklearn.set_config(enable_metadata_routing=True)``, as ``set_fit_request`` asks.
        A scorer with ``set_score_request(sample_weight=False)`` stays unweighted. The splits do
        not depend on the weights.
    groups : array-like of shape (n_samples,), default=None
        Label of each row, such as its patient. All rows of a group are on one side of every
        split, and the bootstrap draws whole groups. A "forward" split does not train on groups
        that occur in its window. `fit` receives the numbers of the groups of the training part, in
        the order of the sorted labels, as ``groups`` if it takes them, by the rules of
        ``sample_weight``; a search of scikit-learn passes them to its splitter. Other estimators
        are fitted without them. Their own
        cross-validation may then be optimistic, but not the scores reported here.
    duplicates : {"ignore", "group"}, default="ignore"
        What to do with rows that are equal in every feature of ``X``. "group" keeps them on
        one side of every split, and the bootstrap draws them as one. With "ignore", scores are
        optimistic for a model that memorizes its training rows, because their duplicates are in
        the test part. With ``groups``,
        groups that share equal rows are joined.
    gap : int, default=0
        Number of rows between the training part and the window of "forward" that are in neither,
        for targets that are only known some rows later.
    progress : callable, default=None
        Called with the number of splits done, their total, and the new `SplitResult`. The first
        call, after the splits in the store have been read, passes None instead.

    Returns
    -------
    result : Assessment
        Printing it shows a summary. ``table`` has a row per split; ``mean``,
        ``standard_error``, ``interval()`` and ``optimism`` have the estimates.

    Raises
    ------
    StoreError
        If the folder is not a store, was made by another version, or cannot be written. Stored
        splits are kept.
    concurrent.futures.BrokenExecutor, distributed.KilledWorker
        If a worker died. Notes of the error say how many splits are done.
    TimeoutError
        If a dask cluster has no worker for some time.
    AllSplitsRaisedError
        If all splits raised. It is a ValueError.
    ValueError
        If an argument is out of range, a class has too few members or groups for a split, there
        are too few rows for the windows, ``groups`` does not have one label per row, or the
        estimator takes no ``sample_weight``.
    AssessmentInterrupted
        On Ctrl-C. It is a KeyboardInterrupt, and its ``result`` has the finished splits.

    Warns
    -----
    DuplicatesWarning
        If more rows than chance explains are duplicates of others, and are not kept together.
    UserWarning
        If the bootstrap has to give duplicate rows to an estimator that takes no weights.

    See Also
    --------
    compare : Several estimators on the same splits.

    Notes
    -----
    The bootstrap passes a row that was drawn k times to the estimator once, with k times its
    weight. Otherwise a held-out row would be predicted from its duplicates, and tuning with
    leave-one-out or cross-validation would favor models that reproduce single rows, such as a
    nearest neighbor. These weights go where ``sample_weight`` goes. In a pipeline that is the last
    step, and the steps before it are fitted to the distinct rows; with metadata routing it is every
    step that requests them. An estimator that takes no weights gets the duplicates, with a warning.

    The out-of-bag error of .632+ averages, over the rows, each row's mean loss in the resamples
    without it [1]_. For "balanced_accuracy" this average is taken within each
    class and then over the classes; "rmse" and "r2" are computed from the mean squared error. An
    area under a curve is not a mean over rows, so it is averaged over the resamples. Unlike in
    [1]_, resamples of classifiers are drawn within each class, so that no class is missing.
    Standard errors come from the delta method of [1]_, and need 20 resamples.

    The scores of a test part belong to one model, which was trained on none of its rows. Scores are
    averaged over splits; outputs of different models are never ranked together. The same holds
    for leave-one-out outputs, which are biased away from the class of their row: "loo_roc_auc"
    compares two rows under one model trained on neither, as ``evaluate`` does. Accuracies of
    models with given hyper-parameters use means over such pairs, and "loo_average_precision" is
    missing.

    Groups are drawn so that the share of rows, in total and in each class, is as near to its
    goal as whole groups allow; a group with several classes counts for the one that the fewest
    groups have. Windows of "forward" keep no shares. A window that lacks a class has no area
    under the curve, and its split is in ``failures``. The standard error treats windows as
    exchangeable, and says nothing about a drift beyond them.

    On a cluster, make a ``distributed.Client`` (``pip install ".[dask]"``) and run
    ``with joblib.parallel_config("dask"): assess(...)``. Only the calling process writes
    to the store. Workers use the caller's configuration of scikit-learn.

    If a worker dies (by its memory, say), the error of joblib or dask is raised: the latter after
    ``distributed.scheduler.allowed-failures`` more tries. With a store the same call then runs the
    splits that are missing. "loky" replaces "multiprocessing", because that does not report that a
    process died. A dask cluster made in the calling process restarts
    workers that it gave up (``distributed.deploy.lost-worker-timeout``). A TimeoutError is raised
    after a minute without any worker, or joblib's ``wait_for_workers_timeout`` if that is longer.
    Workers of loky end five minutes after their last split if the calling process was killed.

    A store identifies an estimator by its class and parameters, a scorer by its function, and
    data by their values, as ``joblib.hash`` has it. Classes and functions of your own, outside
    installed packages, are also identified by the files that define them: editing these runs the
    splits again. The versions of looms, NumPy, SciPy, scikit-learn and the packages that estimator
    and scorers come from must be those of the store. Changes in other files that yours import, and
    in an installed package whose version stays the same, are not noticed: name another store.

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
    >>> model = make_pipeline(StandardScaler(), looms.KernelClassifier("linear"))
    >>> result = looms.assess(model, X[::3], y[::3], n_splits=5, random_state=0)
    >>> bool(result.mean["balanced_accuracy"] > 0.9)
    True
    >>> list(result.table.columns[:6])
    ['n_train', 'n_test', 'balanced_accuracy', 'roc_auc', 'log_loss', 'loo_balanced_accuracy']
    """
    warn_of_order(X=X, y=y, sample_weight=sample_weight, groups=groups)
    experiment = Experiment.of(
        *(estimator, X, y, n_splits),
        test_size=test_size,
        scoring=scoring,
        method=method,
        random_state=checked_seed(random_state, store),
        sample_weight=sample_weight,
        groups=groups,
        duplicates=duplicates,
        gap=gap,
    )
    experiment.warn_of_duplicates()
    return finished(experiment, store, n_jobs, progress)


def stored(
    estimator: Any,
    X: Any,
    y: Any,
    n_splits: int | None = None,
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
        ``groups``, ``duplicates``, ``gap``.

    Returns
    -------
    result : Assessment or None
        Result of those of the first ``n_splits`` splits that are stored; None if there are none,
        or if the bootstrap lacks its fit to all rows.

    Raises
    ------
    StoreError
        If the store was made by another version.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from looms import KernelClassifier, assess
    >>> from looms.assessment._assess import stored
    >>> X, y = load_iris(return_X_y=True)
    >>> with TemporaryDirectory() as store:
    ...     _ = assess(KernelClassifier(mu=1e-3), X, y, 2, store=store, random_state=0)
    ...     kept = stored(KernelClassifier(mu=1e-3), X, y, 5, store=store, random_state=0)
    >>> len(kept.splits)
    2
    """
    seed = checked_seed(random_state, store)
    experiment = Experiment.of(estimator, X, y, n_splits, random_state=seed, **options)
    part = experiment.store(Path(store), make=False)
    return None if part is None else _assessment(experiment, part.load(experiment.splits))


def finished(
    experiment: Experiment,
    store: str | os.PathLike[str] | None,
    n_jobs: int | None,
    progress: Progress | None,
) -> Assessment:
    """Assessment, after running the splits that the store lacks."""
    part = None if store is None else experiment.store(Path(store), make=True)
    if experiment.repeats_rows:
        warnings.warn(
            f"{type(experiment.estimator).__name__} cannot be given sample_weight in fit, so "
            "resamples contain duplicate rows. Cross-validation inside the estimator is then "
            "optimistic, which biases its tuning and this estimate; "
            f"{setting('method', 'shuffle')} has no duplicates.",
            stacklevel=level_of_user(),
        )
    splits = {split.index: split for split in experiment.splits}
    results: dict[int, SplitResult] = {}
    tell = progress or (lambda *told: None)
    try:
        if part is not None:
            stored = part.load(experiment.splits)
            results |= {index: result for index, result in stored.items() if result.error is None}
        tell(len(results), len(splits), None)
        missing = [split for index, split in splits.items() if index not in results]
        for result in run_splits(experiment, missing, n_jobs):
            if part is not None:
                part.save(splits[result.index], result)
            results[result.index] = result
            tell(len(results), len(splits), result)
    except (KeyboardInterrupt, Exception) as error:
        done = f"{len(results)} of {len(splits)} splits are done"
        done += (
            f" and were not stored: {setting('store', ...)} would have kept them."
            if store is None
            else f" and stored in {store}: repeat it to run the rest."
        )
        if isinstance(error, KeyboardInterrupt):
            so_far = _assessment(experiment, results)
            has_scores = so_far is not None and len(so_far.failures) < len(so_far.splits)
            raise AssessmentInterrupted(done, so_far if has_scores else None) from None
        error.add_note(done)
        raise
    assessment = _assessment(experiment, results)
    if assessment is None:
        reason = results[WHOLE].error
        raise ValueError(f"The fit to all rows, which the bootstrap needs, raised {reason}")
    if len(assessment.failures) == len(assessment.splits):
        raise AllSplitsRaisedError(assessment)
    return assessment


def _assessment(experiment: Experiment, results: dict[int, SplitResult]) -> Assessment | None:
    """Result of the splits that have results, in the order of the plan.

    None if they do not suffice: there are none, or no fit to all rows for the bootstrap.
    """
    first, whole = experiment.splits[0], results.get(WHOLE)
    lacks_whole = first.index == WHOLE and (whole is None or whole.error is not None)
    if lacks_whole or not results.keys() - {WHOLE}:
        return None
    rows = {
        split.index: experiment.rows(split)
        for split in experiment.splits
        if split.index in results and split.index != WHOLE
    }
    y, weight, scorers = np.asarray(experiment.y), experiment.weight, experiment.scorers
    tested = np.unique(np.concatenate([test for _, test in rows.values()]))
    tested = tested if weight is None else tested[weight[tested] > 0]
    classification = bool(is_classifier(experiment.estimator))
    labels = np.unique(y[tested]) if classification else ()
    kinds = {name: kind_of(scorer) for name, scorer in scorers.items()}

    def most(units: AnyArray) -> dict[str, int]:
        """Largest number of independent units that each score is of."""
        units = units[tested]
        of_classes = [len(np.unique(units[y[tested] == label])) for label in labels]
        n = len(np.unique(units))
        return {name: kind.n_rows(n, of_classes) for name, kind in kinds.items()}

    drawn = [(*rows[index], results[index]) for index in rows if results[index].error is None]
    resampled = first.method == "bootstrap" and drawn
    return Assessment(
        tuple(results[index] for index in rows),
        whole,
        tuple(scorers),
        first.method,
        first.random_state,
        estimator_text(experiment.estimator),
        kinds=kinds,
        classification=classification,
        out_of_bag=out_of_bag(scorers, y, weight, drawn, experiment.units) if resampled else None,
        n_samples=len(y),
        n_units=most(experiment.units),
        n_rows=most(np.arange(len(y))),
        estimator_key=estimator_key(experiment.estimator),
        grouped=experiment.groups is not None and first.method != "forward",
    )
