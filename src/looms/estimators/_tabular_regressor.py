"""Regressor of tables, with a transform of the target."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_array, check_random_state, get_tags

from looms._advice import setting
from looms._checks import check_known, ensure_list
from looms._typing import Array, Matrix
from looms.estimators._callbacks import CallbackWatcher
from looms.estimators._folds import unfitted
from looms.estimators._kernel_regressor import KernelRegressor
from looms.estimators._model import fitted_part
from looms.estimators._one_kernel import model_of_folds
from looms.estimators._regressor import Regressor
from looms.estimators._selection import cost_on
from looms.estimators._tabular import Tabular
from looms.estimators._targets import check_numbers
from looms.estimators._trees import BoostedTreesRegressor
from looms.estimators._warnings import kept_warnings, told_of_time, warn
from looms.fitted._fitted import Fitted
from looms.fitted._outcome import Numbers
from looms.fitted._rows import Rows
from looms.folds import group_numbers, is_number_of_folds, number_of_folds
from looms.kernels import Linear
from looms.kernels._names import as_kernel
from looms.kernels._samples import training_rows
from looms.selection._subsamples import rows_of_groups
from looms.selection._target_transforms import TARGET_TRANSFORMS, best_transform

#: Rows that transforms of the target are compared on, at most.
ROWS_OF_TRANSFORMS = 2000


class TabularRegressor(Regressor, Tabular):
    """Regressor of tables with exact held-out predictions: kernels, stacked or compared.

    It takes data frames with numbers, text, categories, booleans, dates and gaps, tunes each
    candidate by the exact held-out predictions of its training rows, and stacks them. `evaluate`
    gives nested scores: the whole fit, with the preparation of the columns and the selection of a
    transform, is repeated without the rows that are scored.

    Parameters
    ----------
    candidates : "auto", str or list, default="auto"
        Names of kernels, or one name, as of `KernelRegressor`; `KernelRegressor` with options of
        their own (of which the kernel, its values, the loss, landmarks and search count); any
        regressor of scikit-learn, also a pipeline, a search or a stack, with weights and groups as
        for `TabularClassifier`; and "auto", too.
    combine : {"stack", "best"}, default="stack"
        As for `TabularClassifier`, by squared errors.
    target : str or list of str, default="auto"
        Transform of the target that is fitted, for numbers that are skewed or counts: "none",
        "sqrt", "log" (positive targets), "log1p" (log(1 + y)). A list selects the transform
        whose held-out predictions with the first kernel of the candidates that is not linear have
        the smallest squared error on the scale of the target; where "none" has predictions below
        zero, another is taken if its error is within one standard error of the paired difference.
        "auto" compares those that the range of the targets admits: none; for positive targets also
        sqrt and log, for other nonnegative ones sqrt and log1p. Of more than 2000 rows, 2000 are
        drawn for the comparison, unless `cv` is made for all rows. Predictions are means, by Duan's
        smearing estimate [D83] with held-out residuals. Predictions and intervals are never
        negative if several transforms were compared, or one other than "none" was given: with
        "none", values below zero count as zero, also in scores. For one target that may be
        negative, though none of the fit is, give "none".
    cv, preprocess, columns, n_jobs, verbose, random_state
        As for `TabularClassifier`.

    Attributes
    ----------
    transform_ : str
        Name of the transform.
    transforms_ : dict of str to float
        Root mean square error of the held-out predictions by each transform that was compared, on
        at most 2000 rows; empty if there was one.
    loo_, held_out_ : HeldOut
        Targets and held-out predictions in units of the target; ``loo_`` of a stack with estimators
        of scikit-learn as for `TabularClassifier`.
    fitted_ : looms.fitted.Fitted
        The fitted model as one value. Its ``loo`` and ``held_out`` are on the scale of the
        transform.
    members_, kernel_, mu_, dual_coef_, intercept_, coef_, landmarks_, candidates_, cv_results_, \
best_index_, selection_, n_iter_
        As for `TabularClassifier`, of the transformed target.
    preprocessor_, candidate_weights_, choice_units_, units_, X_fit_, fit_weight_, \
selection_weight_, fit_intercept_, certificate_, n_features_in_, feature_names_in_
        As for `TabularClassifier`.

    References
    ----------
    Duan (1983), Smearing estimate: a nonparametric retransformation method, JASA 78.

    Examples
    --------
    >>> import numpy as np
    >>> from looms import TabularRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(100, 1))
    >>> y = np.exp(3 * X[:, 0] + 0.4 * rng.normal(size=100))
    >>> model = TabularRegressor(["linear"]).fit(X, y)
    >>> model.transform_
    'log'
    >>> bool((model.predict(X) > 0).all())
    True
    """

    _model, _trees, _of_classes = KernelRegressor, BoostedTreesRegressor, "TabularClassifier"
    _as_given: ClassVar[dict[str, Any]] = {"preprocess": None, "target": "none"}

    transform_: str = fitted_part("outcome.transform", "Name of the transform of the target.")
    transforms_: dict[str, float] = fitted_part(
        "outcome.errors", "Root mean square errors by transforms that were compared."
    )

    def __init__(
        self,
        candidates: Any = "auto",
        *,
        combine: str = "stack",
        target: Any = "auto",
        cv: Any = None,
        preprocess: Any = "auto",
        columns: str = "prepared",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.candidates = candidates
        self.combine = combine
        self.target = target
        self.cv = cv
        self.preprocess = preprocess
        self.columns = columns
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Prepare the columns, select a transform of the target, tune and combine the candidates.

        Parameters
        ----------
        X : pandas.DataFrame, polars.DataFrame, ndarray or sparse matrix, (n_samples, n_columns)
            The rows: numbers, text, categories, booleans, dates; None and NaN are gaps. A
            pyarrow.Table is taken as a data frame. With ``preprocess=None`` also what
            `KernelRegressor` takes.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets. Several are not transformed. One column is one target, so that predictions have
            one dimension.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights; only their ratios count. A row of weight zero takes no part.
        groups : array-like of shape (n_samples,), default=None
            Label of the group of each row; rows of a group are held out together.

        Returns
        -------
        self : TabularRegressor
            The fitted model.

        Raises
        ------
        ValueError
            If a column cannot be understood, y has gaps, or a transform does not admit all targets.
        MemoryError
            If the kernel matrix, with arrays of its size beside it, takes more memory than is free.

        Warns
        -----
        ColumnsWarning
            If a column has a few words among numbers, dates of unclear order, or identifiers, or
            alone predicts the target, or moves with the windows of time that `cv` holds out.
        """
        self._fit(X, y, sample_weight, groups)
        return self

    def _fit_on(self, rows: Rows, watcher: CallbackWatcher, columns: Any) -> Fitted:
        """The fitted model of rows, with the transform of the target that predicts best."""
        values = rows.targets
        _warn_of_constant(rows.own(values))
        names, errors = self._admitted(rows.own(values)), dict[str, float]()
        name = names[0]
        with ExitStack() as stack:
            if len(names) > 1:
                drawn = self._drawn(rows)
                trained = training_rows(rows.X, rows.train, pairwise=False)
                first = _first_curved(self._candidates_for(trained))
                if drawn is not rows:  # so few that the whole kernel is quicker
                    first.set_params(n_landmarks=None)
                one = unfitted(self, candidates=[first], **self._as_given)
                operations, n_rows, n_arrays, remedies = cost_on(self, trained)
                operations += len(names) * cost_on(one, drawn.X)[0]
                stack.enter_context(told_of_time(operations, n_rows, n_arrays, remedies))
                with kept_warnings():
                    name, errors = _compared(names, one, drawn)
            targets = _transformed(name, rows)
            fitted = super()._fit_on(replace(rows, targets=targets), watcher, columns)
        numbers = None if np.array_equal(targets, values) else values
        rows = replace(fitted.rows, outcome=Numbers(name, errors), numbers=numbers)
        return replace(fitted, rows=rows, recipe=fitted.recipe.set_params(target=names))

    def _more_rows(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Matrix, Array, Array | None, Array]:
        y, transform = self._as_known(y), self.fitted_.outcome
        check_numbers(y, self._of_classes)
        values = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        assert isinstance(transform, Numbers)
        if not transform.function.takes(values):
            raise ValueError(
                f"The transform {transform.transform!r} of nonnegative targets does not admit all, "
                f"the smallest of which is {values.min():.3g}: fit anew to all rows."
            )
        targets = transform.function.forward(values)
        X, targets, _, weight = super()._more_rows(X, targets, sample_weight)
        return X, targets, values, weight

    def _admitted(self, y: Array) -> list[str]:
        """Transforms to compare; ValueError for one that does not admit all targets."""
        admitted = [name for name, g in TARGET_TRANSFORMS.items() if g.takes(y)]
        names = list(dict.fromkeys(ensure_list(self.target)))
        if names == ["auto"]:
            if y.ndim > 1:
                return ["none"]
            return [name for name in admitted if name != "log1p" or "log" not in admitted]
        for name in names:
            check_known(
                name, setting("transforms", text="transform of the target"), TARGET_TRANSFORMS
            )
            if name not in admitted or (y.ndim > 1 and name != "none"):
                why = f"does not admit all targets, the smallest of which is {y.min():.3g}"
                why = "is for one target" if y.ndim > 1 else why
                raise ValueError(
                    f"{setting('target', name)} {why}: leave it out, or use "
                    f"{setting('target', 'auto')}."
                )
        return names

    def _drawn(self, rows: Rows) -> Rows:
        """Rows that transforms are compared on: of many some, of every group in proportion."""
        train, pairwise = rows.train, get_tags(self).input_tags.pairwise
        if len(train) <= ROWS_OF_TRANSFORMS or not is_number_of_folds(self.cv):
            return rows
        numbers = group_numbers(rows.groups, len(rows.weight))
        rng = check_random_state(self.random_state)
        some = train[rows_of_groups(numbers[train], ROWS_OF_TRANSFORMS, rng)]
        if len(np.unique(numbers[some])) < max(3, number_of_folds(self.cv)):
            return rows
        groups = None if rows.groups is None else numbers[some]
        X, weight = training_rows(rows.X, some, pairwise), rows.weight[some]
        return Rows.of(X, rows.targets[some], weight, groups, rows.outcome)


def _first_curved(candidates: list[Any]) -> Any:
    """The first candidate with a kernel that is not linear, as in folds; else any, or "rbf"."""
    kernels = [one for one in candidates if isinstance(one, KernelRegressor)]
    curved = [one for one in kernels if not isinstance(as_kernel(one.kernel), Linear)]
    first = next(iter([*curved, *kernels]), None)
    return KernelRegressor() if first is None else clone(model_of_folds(first))


def _compared(names: list[str], model: Any, rows: Rows) -> tuple[str, dict[str, float]]:
    """The transform to fit, and the held-out error of a model with each, in units of the target."""
    predicted, more = {}, {"sample_weight": rows.weight, "groups": rows.groups}
    for name in names:
        fitted = clone(model).fit(rows.X, _transformed(name, rows), **more).fitted_
        of_name = replace(fitted.rows, outcome=Numbers(name))
        predicted[name] = fitted.replace_parts(rows=of_name).repetitions()
    together, weight = fitted.units_of_fit.scored_together, rows.own(fitted.rows.score_weight)
    return best_transform(rows.own(rows.targets), predicted, weight, together)


def _warn_of_constant(y: Array) -> None:
    """UserWarning for targets that are all the same, as they may be without some fold."""
    if len(y) > 1 and (y == y[0]).all():
        warn(
            f"y has only one value, {', '.join(f'{value:g}' for value in np.ravel(y[0]))}: there "
            "is nothing to learn. Add rows with other values, or take another column.",
            UserWarning,
        )


def _transformed(name: str, rows: Rows) -> Array:
    """Targets on the scale of a transform; those of weight zero within the range of the others."""
    own = rows.own(rows.targets)
    inside = np.clip(rows.targets, own.min(axis=0), own.max(axis=0))
    return np.asarray(TARGET_TRANSFORMS[name].forward(inside))
