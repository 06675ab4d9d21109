"""The model at the end of a pipeline or a search, and predictions that these do not pass on."""

from __future__ import annotations

from typing import Any, NamedTuple

from sklearn.exceptions import NotFittedError
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline

from looms._typing import AnyArray, Array
from looms.estimators._model import Model


class Parts(NamedTuple):
    """Last estimator of a model, and the steps before it.

    Attributes
    ----------
    steps : name and transformer of each, including those of inner pipelines, not "passthrough".
    last : estimator that is neither a pipeline nor a search.
    """

    steps: list[tuple[str, Any]]
    last: Any

    @property
    def model(self) -> Model | None:
        """The last estimator, or the ``model_`` that it wraps; None without held-out outputs."""
        self.check_refitted()
        model = getattr(self.last, "model_", self.last)
        return model if isinstance(model, Model) else None

    def check_refitted(self) -> None:
        """NotFittedError for a search without ``best_estimator_``."""
        if isinstance(self.last, BaseSearchCV):
            raise NotFittedError(
                f"{type(self.last).__name__} has no best_estimator_: fit it, with refit=True."
            )


def parts_of(model: Any) -> Parts:
    """Steps and last estimator of a model: of a pipeline, or a search's ``best_estimator_``.

    The columns of a model of tables are prepared in a step before it.
    """
    if hasattr(model, "best_estimator_"):
        return parts_of(model.best_estimator_)
    if not (isinstance(model, Pipeline) and model.steps):
        before = getattr(model, "preprocessor_", None)
        return Parts([] if before is None else [("columns", before)], model)
    steps = [(name, step) for name, step in model.steps[:-1] if step not in ("passthrough", None)]
    inner, last = parts_of(model.steps[-1][1])
    return Parts([*steps, *((f"inner_{name}", step) for name, step in inner)], last)


def last_model(model: Any) -> Model:
    """The looms model at the end of a pipeline or search; not a copy.

    TypeError if there is none with leave-one-out outputs, and NotFittedError for a search without
    ``best_estimator_``.
    """
    parts = parts_of(model)
    if parts.model is None:
        raise TypeError(
            f"{_ending(model, parts.last)} is not a looms model with leave-one-out outputs: "
            "only kernel models are."
        )
    return parts.model


def predict_interval(model: Any, X: Any, confidence_level: float = 0.9, **options: Any) -> Array:
    """Prediction interval for each sample, from the regressor at the end of a pipeline.

    ``X`` passes through the steps before the regressor, as in ``predict``. The models are those of
    its ``evaluate``; call it first: ``model[-1].evaluate()``.

    Parameters
    ----------
    model : fitted estimator
        A pipeline that ends in a looms regressor, a search with such a ``best_estimator_``, or
        the regressor itself.
    X : array-like, sparse matrix or DataFrame
        New samples, as ``model.predict`` takes them.
    confidence_level : float, default=0.9
        Nominal share of new targets inside, between 0 and 1.
    **options
        Options of `looms.KernelRegressor.predict_interval`, such as ``method="minmax"``.

    Returns
    -------
    intervals : ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
        Lower and upper ends, in units of the training targets.

    Raises
    ------
    TypeError
        If the estimator at the end of the model has no ``predict_interval``.
    ValueError
        If there are too few training samples for the coverage, or it is not between 0 and 1.
    sklearn.exceptions.NotFittedError
        If the model, or a search in it, is not fitted, or its regressor was not evaluated.

    Notes
    -----
    See `looms.KernelRegressor.predict_interval` for guarantees and cost. The steps before the
    regressor were fitted to all training samples. If they use the targets, such as feature
    selection, the intervals are too small.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import looms
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), looms.KernelRegressor(mu=0.1))
    >>> model = model.fit(X[:300], y[:300])
    >>> scores = model[-1].evaluate()
    >>> lower, upper = looms.predict_interval(model, X[300:]).T
    >>> float(((lower <= y[300:]) & (y[300:] <= upper)).mean().round(2))
    0.95
    """
    return _predicted(model, "predict_interval", X, confidence_level, options)


def predict_set(model: Any, X: Any, confidence_level: float = 0.9, **options: Any) -> AnyArray:
    """Prediction set for each sample, from the classifier at the end of a pipeline.

    This is `looms.predict_interval` for classes. The same holds for the steps before the
    classifier, for steps that use the targets, and for errors.

    Parameters
    ----------
    model : fitted estimator
        A pipeline that ends in a looms classifier, a search with such a ``best_estimator_``, or
        the classifier itself.
    X : array-like, sparse matrix or DataFrame
        New samples, as ``model.predict`` takes them.
    confidence_level : float, default=0.9
        Nominal share of new samples whose class is in their set, between 0 and 1.
    **options
        Options of `looms.KernelClassifier.predict_set`, such as ``class_conditional=True``.

    Returns
    -------
    sets : ndarray of bool, of shape (n_samples, n_classes)
        Columns as in ``classes_``.

    Raises
    ------
    TypeError
        If the estimator at the end of the model has no ``predict_set``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import looms
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), looms.KernelClassifier(mu=0.01))
    >>> scores = model.fit(X[::2], y[::2])[-1].evaluate()
    >>> sets = looms.predict_set(model, X[1::2], confidence_level=0.95)
    >>> float(sets[range(75), y[1::2]].mean().round(2))
    0.97
    >>> sets[-3:]  # the last one may be of two kinds
    array([[False, False,  True],
           [False, False,  True],
           [False,  True,  True]])
    """
    return _predicted(model, "predict_set", X, confidence_level, options)


def _predicted(
    model: Any, method: str, X: Any, confidence_level: float, options: dict[str, Any]
) -> AnyArray:
    steps, last = parts = parts_of(model)
    parts.check_refitted()
    if not hasattr(last, method):
        raise TypeError(
            f"{_ending(model, last)} has no {method}: regressors of looms have intervals "
            "(predict_interval), and its classifiers sets of classes (predict_set)."
        )
    own = getattr(last, "preprocessor_", None)  # a model of tables prepares the columns itself
    for _, step in steps:
        X = X if step is own else step.transform(X)
    predicted: AnyArray = getattr(last, method)(X, confidence_level, **options)
    return predicted


def _ending(model: Any, last: Any) -> str:
    """A model by its type and that of its last estimator, for a sentence on the latter."""
    if isinstance(model, type):
        return f"{model.__name__} is a class, not an instance of it, and"
    ends = "" if last is model else f" ends in {type(last).__name__}, which"
    return f"{type(model).__name__}{ends}"
