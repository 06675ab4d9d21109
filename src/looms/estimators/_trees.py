"""Boosted trees of scikit-learn, kept as arrays, which a model file may hold.

`HistGradientBoostingClassifier` and `HistGradientBoostingRegressor` grow the trees, of which only
the nodes stay. As they are, a node of a hostile file that leads beyond its array ends the process;
their files are 3 to 5 times as large, and take 20 to 75 times as long to load (40 to 150 ms). They
predict 100,000 rows 2.4 to 4 times as fast, 1000 rows 1.1 to 2.4 times, and one row more slowly.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from looms._typing import AnyArray, Array, Matrix
from looms.blocks import ArrayBlocks
from looms.lssvm._system import targets_as_columns

#: Outputs of single trees in memory at once: arrays of a megabyte, which stay in the cache.
_NUMBERS = 1 << 17
#: Rounds of boosting and their rate: half as many as in scikit-learn, at twice its rate. A stack
#: then has 0.999, 1.002 and 1.000 × the error at 500, 1000 and 2000 rows, in 0.8 × the time. From
#: 5000 rows on one for each hundred of them: trees of 8000 rows then have 0.989 × the log loss or
#: root mean square error, and with 50 rounds 1.008 ×.
_ROWS_PER_ROUND, _LEAST_ROUNDS, _MOST_ROUNDS, _RATE = 100, 50, 150, 0.2
#: Bins of a feature, at most.
_BINS = 255
#: Factor of the log odds. Those of boosted trees are too large, and a stack in which they are
#: halved has 0.997 × the error [benchmarks/tables/README.md].
HALF = 0.5


class BoostedTrees(BaseEstimator):  # type: ignore[misc]
    """Base class of boosted trees.

    Attributes
    ----------
    baseline_ : (t,) what the outputs of the trees are added to.
    roots_ : (n_trees, t) places of the roots among the nodes.
    feature_, threshold_ : (n_nodes,) rows whose feature is at most the threshold go left.
    children_ : (n_nodes, 2) places of the next nodes, left and right; of a leaf twice its own.
    value_ : (n_nodes,) outputs of leaves.
    depth_ : number of steps to the deepest leaf.
    n_features_in_ : number of features.
    """

    baseline_: Array
    n_features_in_: int
    roots_: AnyArray
    feature_: AnyArray
    threshold_: Array
    children_: AnyArray
    value_: Array
    depth_: int

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Name in tables of candidates, as of a kernel: there are no parameters."""
        return "boosted trees"

    def _grown(self, boosting: Any, X: Any, targets: list[AnyArray], sample_weight: Any) -> Self:
        """This model with the nodes of estimators of scikit-learn, one for each target."""
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        edges = [_edges(x) for x in X.T]
        codes = np.column_stack([np.searchsorted(e, x) for e, x in zip(edges, X.T, strict=True)])
        rounds = int(np.clip(len(X) // _ROWS_PER_ROUND, _LEAST_ROUNDS, _MOST_ROUNDS))
        options = {"random_state": 0, "max_iter": rounds, "learning_rate": _RATE}
        options["early_stopping"] = False
        boosted = [boosting(**options).fit(codes, y, sample_weight) for y in targets]
        each = zip(*(one._predictors for one in boosted), strict=True)
        grown = [[tree.nodes for trees in of_round for tree in trees] for of_round in each]
        sizes = np.array([[len(nodes) for nodes in of_round] for of_round in grown])
        starts = np.cumsum(sizes).reshape(sizes.shape) - sizes
        nodes = np.concatenate([nodes for of_round in grown for nodes in of_round])
        start, leaf = np.repeat(starts.ravel(), sizes.ravel()), nodes["is_leaf"].astype(bool)
        own = np.arange(len(nodes))
        self.baseline_ = np.concatenate([one._baseline_prediction.ravel() for one in boosted])
        self.roots_ = starts
        self.feature_ = np.where(leaf, 0, nodes["feature_idx"]).astype(np.int64)
        self.threshold_ = np.zeros(len(nodes))
        for k, edge in enumerate(edges):
            split = ~leaf & (self.feature_ == k)
            self.threshold_[split] = edge[nodes["num_threshold"][split].astype(int)]
        children = [np.where(leaf, own, start + nodes[side]) for side in ("left", "right")]
        self.children_ = np.column_stack(children).astype(np.int64)
        self.value_ = nodes["value"].astype(np.float64)
        self.depth_ = int(nodes["depth"].max())
        return self

    def _sums(self, X: Any) -> Array:
        """(n_samples, t) sums of the outputs of the trees."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        blocks = ArrayBlocks(X, size=max(1, _NUMBERS // self.roots_.size))
        _, (sums,) = blocks.sweep(lambda rows: ((), (self._sums_of(rows),)))
        return sums

    def _sums_of(self, X: Matrix) -> Array:
        values, children = X.ravel(), self.children_.ravel()
        row = X.shape[1] * np.arange(len(X))[:, None]
        at = np.tile(self.roots_.ravel(), (len(X), 1))
        for _ in range(self.depth_):
            x = values.take(row + self.feature_.take(at))
            at = children.take(2 * at + (x > self.threshold_.take(at)))
        outputs: Array = self.value_.take(at).reshape(len(X), *self.roots_.shape).sum(axis=1)
        return outputs + self.baseline_


def _edges(x: Array) -> Array:
    """Increasing values between which the bins of a feature lie, nearly those of scikit-learn.

    Its own depend on weights of rows, and take most of the time of a fit that has some.
    """
    values = np.unique(x)
    if len(values) > _BINS:
        return np.unique(np.quantile(x, np.linspace(0, 1, _BINS + 1)[1:-1]))
    return np.asarray((values[:-1] + values[1:]) / 2)


class BoostedTreesRegressor(RegressorMixin, BoostedTrees):  # type: ignore[misc]
    """Boosted regression trees of scikit-learn, in few rounds.

    They are what "auto" of `TabularRegressor` has beside kernels: those of
    `sklearn.ensemble.HistGradientBoostingRegressor`, grown in 50 rounds at twice its rate, and from
    5000 rows on in a round for each hundred, at most 150. A model file may hold them.

    Attributes
    ----------
    roots_, feature_, threshold_, children_, value_, baseline_, depth_
        Places of the roots, (n_trees, n_targets), among the nodes, with the feature, threshold,
        next nodes and output of each; what all outputs are added to; and the largest depth.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from looms import BoostedTreesRegressor
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> trees = BoostedTreesRegressor().fit(X, np.where(X[:, 0] > 0.5, 3.0, 1.0))
    >>> trees.predict([[0.2], [0.8]]).round(2)
    array([1., 3.])
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow the trees, of each target by itself.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers, without gaps.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights.

        Returns
        -------
        self : BoostedTreesRegressor
            The fitted trees.
        """
        from sklearn.ensemble import HistGradientBoostingRegressor as Boosting

        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        if y.shape[1:] == (1,):
            y = column_or_1d(y, warn=True)
        return self._grown(Boosting, X, list(targets_as_columns(y).T), sample_weight)

    def predict(self, X: Any) -> Array:
        """Predicted numbers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            In the units of the targets.
        """
        sums = self._sums(X)
        return sums if sums.shape[1] > 1 else sums[:, 0]


class BoostedTreesClassifier(ClassifierMixin, BoostedTrees):  # type: ignore[misc]
    """Boosted classification trees of scikit-learn, in few rounds, with half the log odds.

    They are what "auto" of `TabularClassifier` has beside kernels: those of
    `sklearn.ensemble.HistGradientBoostingClassifier`, grown in 50 rounds at twice its rate, and
    from 5000 rows on in a round for each hundred, at most 150. Their log odds are halved, since
    those of boosted trees are too large. A model file may hold them.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    roots_, feature_, threshold_, children_, value_, baseline_, depth_
        As for `BoostedTreesRegressor`; several classes have an output each.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from looms import BoostedTreesClassifier
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> trees = BoostedTreesClassifier().fit(X, np.where(X[:, 0] > 0.5, "right", "left"))
    >>> trees.predict([[0.2], [0.8]]).tolist()
    ['left', 'right']
    """

    classes_: AnyArray

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers, without gaps.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights.

        Returns
        -------
        self : BoostedTreesClassifier
            The fitted trees.
        """
        from sklearn.ensemble import HistGradientBoostingClassifier as Boosting

        X, y = validate_data(self, X, y, dtype=np.float64)
        self.classes_ = np.unique(y)
        return self._grown(Boosting, X, [y], sample_weight)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            With the sum one in each row.
        """
        sums = self._sums(X)
        if len(self.classes_) == 1:
            return np.ones_like(sums)
        if sums.shape[1] == 1:
            sums = np.hstack([np.zeros_like(sums), sums])
        return np.asarray(softmax(HALF * sums, axis=1))

    def predict(self, X: Any) -> AnyArray:
        """Most probable classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels.
        """
        check_is_fitted(self)
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])
