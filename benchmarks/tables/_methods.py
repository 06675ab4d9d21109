"""The methods of the suite, each at its defaults, as estimators of data frames.

looms takes the table; the SVM, xRFM, Nystroem and the linear models see the columns as looms
prepares them, but numbers have unit variance; the trees take categories and gaps as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, SVR

from looms import TabularClassifier, TabularRegressor
from looms.tables import TablePreprocessor

#: 110 points, searched on so many rows at most; libsvm stops after so many iterations where C is
#: too large for the data.
GRID = {"C": 2.0 ** np.arange(-5, 16, 2), "gamma": 2.0 ** np.arange(-15, 4, 2)}
ROWS_OF_GRID = 1000
MAX_ITERATIONS = 100_000
ALPHAS = np.logspace(-4, 4, 17)

Builder = Callable[[pd.DataFrame, bool, int, int], Any]


class GridSVC(ClassifierMixin, BaseEstimator):
    """SVC of the best accuracy in five folds, with probabilities by Platt's rule in five folds."""

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> GridSVC:
        svc = SVC(max_iter=MAX_ITERATIONS)
        search = GridSearchCV(svc, GRID, cv=5, refit=False)
        svc.set_params(**search.fit(*_for_grid(X, y, y, self.random_state)).best_params_)
        self.model_ = CalibratedClassifierCV(svc, cv=5, ensemble=False).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.model_.predict_proba(X)


class GridSVR(RegressorMixin, BaseEstimator):
    """SVR of the smallest squared error in five folds."""

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> GridSVR:
        svr = SVR(max_iter=MAX_ITERATIONS)
        folds = KFold(5, shuffle=True, random_state=self.random_state)
        options = {"cv": folds, "scoring": "neg_mean_squared_error", "refit": False}
        search = GridSearchCV(svr, GRID, **options)
        svr.set_params(**search.fit(*_for_grid(X, y, None, self.random_state)).best_params_)
        self.model_ = svr.fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model_.predict(X)


def _for_grid(
    X: np.ndarray, y: np.ndarray, strata: np.ndarray | None, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows that the grid is searched on."""
    if len(y) <= ROWS_OF_GRID:
        return X, y
    options = {"train_size": ROWS_OF_GRID, "stratify": strata, "random_state": seed}
    X, _, y, _ = train_test_split(X, y, **options)
    return X, y


class HoldOutXRFM(BaseEstimator):
    """xRFM with a fifth of the rows as the validation set that it asks for."""

    def __init__(self, classifier: bool, random_state: int = 0) -> None:
        self.classifier = classifier
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> HoldOutXRFM:
        import torch
        from xrfm import xRFM

        self.scale_ = (0.0, 1.0) if self.classifier else (float(y.mean()), float(y.std()))
        if not self.classifier:
            y = ((y - self.scale_[0]) / self.scale_[1]).astype(np.float32)
        parts = train_test_split(
            X.astype(np.float32),
            y,
            test_size=0.2,
            stratify=y if self.classifier else None,
            random_state=self.random_state,
        )
        X_train, X_valid, y_train, y_valid = (torch.from_numpy(part) for part in parts)
        if self.classifier:
            self.classes_ = np.unique(y)
        torch.manual_seed(self.random_state)
        self.model_ = xRFM(device="cpu", random_state=self.random_state, verbose=False)
        self.model_.fit(X_train, y_train, X_valid, y_valid)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        outputs = np.asarray(self.model_.predict(X.astype(np.float32))).ravel()
        return self.scale_[0] + self.scale_[1] * outputs

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model_.predict_proba(X.astype(np.float32)))


class UnitVariance(TransformerMixin, BaseEstimator):
    """The matrix that looms sees, but for numbers, which get unit variance."""

    def fit(self, X: pd.DataFrame, y: object = None) -> UnitVariance:
        self.table_ = TablePreprocessor()
        matrix = self.table_.fit_transform(X)
        numbers = self.table_.get_feature_names_out() == self.table_.columns_
        deviations = np.where(numbers, matrix.std(axis=0), 1.0)
        self.scale_ = np.where(deviations > 0, deviations, 1.0)
        return self

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        return self.table_.transform(X) / self.scale_


def _on_matrix(machine: Any) -> Pipeline:
    """A peer on the matrix that looms sees, but for numbers, which get unit variance."""
    return make_pipeline(UnitVariance(), machine)


def looms(
    X: pd.DataFrame,
    classifier: bool,
    seed: int,
    threads: int,
    *,
    candidates: str | list[str] = "auto",
    combine: str = "stack",
) -> Any:
    model = TabularClassifier if classifier else TabularRegressor
    return model(candidates, combine=combine, random_state=seed)


def svc_grid(X: pd.DataFrame, classifier: bool, seed: int, threads: int) -> Pipeline:
    if classifier:
        return _on_matrix(GridSVC(seed))
    machine = TransformedTargetRegressor(GridSVR(seed), transformer=StandardScaler())
    return _on_matrix(machine)


def linear(X: pd.DataFrame, classifier: bool, seed: int, threads: int) -> Pipeline:
    return _on_matrix(LogisticRegression(max_iter=1000) if classifier else RidgeCV(ALPHAS))


def nystroem_ridge(X: pd.DataFrame, classifier: bool, seed: int, threads: int) -> Pipeline:
    features = Nystroem(n_components=min(300, len(X)), random_state=seed)
    if not classifier:
        return _on_matrix(make_pipeline(features, RidgeCV(ALPHAS)))
    ridge = CalibratedClassifierCV(RidgeClassifierCV(ALPHAS), cv=5, ensemble=False)
    return _on_matrix(make_pipeline(features, ridge))


def hist_gradient_boosting(X: pd.DataFrame, classifier: bool, seed: int, threads: int) -> Any:
    machine = HistGradientBoostingClassifier if classifier else HistGradientBoostingRegressor
    return machine(random_state=seed)


def lightgbm(X: pd.DataFrame, classifier: bool, seed: int, threads: int) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    machine = LGBMClassifier if classifier else LGBMRegressor
    return machine(random_state=seed, n_jobs=threads, verbose=-1)


def catboost(X: pd.DataFrame, classifier: bool, seed: int, threads: int) -> Pipeline:
    from catboost import CatBoostClassifier, CatBoostRegressor

    columns = list(X.select_dtypes("category").columns)
    machine = (CatBoostClassifier if classifier else CatBoostRegressor)(
        cat_features=columns,
        random_seed=seed,
        thread_count=threads,
        verbose=0,
        allow_writing_files=False,
    )
    return make_pipeline(FunctionTransformer(_gaps_as_text), machine)


def xrfm(X: pd.DataFrame, classifier: bool, seed: int, threads: int) -> Pipeline:
    return _on_matrix(HoldOutXRFM(classifier, seed))


def _gaps_as_text(X: pd.DataFrame) -> pd.DataFrame:
    """A copy whose categories are text without gaps, which CatBoost wants."""
    X = X.copy()
    for name in X.select_dtypes("category").columns:
        X[name] = X[name].astype(object).fillna("gap").astype(str)
    return X


PEERS: dict[str, Builder] = {
    "linear": linear,
    "nystroem_ridge": nystroem_ridge,
    "hist_gradient_boosting": hist_gradient_boosting,
    "lightgbm": lightgbm,
    "catboost": catboost,
    "xrfm": xrfm,
    "svc_grid": svc_grid,
}
METHODS: dict[str, Builder] = {
    "looms": looms,
    "looms_best": partial(looms, combine="best"),
    "looms_rbf": partial(looms, candidates="rbf"),
    "looms_weighted": partial(looms, candidates="weighted_matern12"),
    **PEERS,
}


def is_available(method: str) -> bool:
    """Import the package of a method, so that no fit pays for that; False if it is missing."""
    try:
        if method in ("lightgbm", "catboost", "xrfm"):
            import_module(method)
    except ImportError:
        return False
    return True
