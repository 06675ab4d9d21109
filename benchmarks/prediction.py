"""Speed and size of predictions, beside scikit-learn's SVC, boosted trees and ONNX.

Models of 2000 rows with 20 features (`synthetic` of `_large_problems.py`), each fitted in a process
of its own, on one thread. "rows_per_second" is of probabilities, or of classes if there are none,
for 20,000 new rows at once; "milliseconds" is of one row; "peak_gb" is of the process, the fit
included, and "megabytes" the size of the model: looms' own file, the ONNX graph, or a pickle.
"auto" is the stack of `TabularClassifier`; "onnx" its graph in onnxruntime.

    OMP_NUM_THREADS=1 python benchmarks/prediction.py
"""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _large_problems import split
from _report import in_fresh_process, seconds, write_table

ROWS, NEW_ROWS = 2000, 20_000
METHODS = (
    *("looms auto", "looms auto onnx", "looms rbf", "looms rbf onnx", "looms rbf, 256 landmarks"),
    *("SVC", "SVC with probabilities", "HistGradientBoosting", "LightGBM", "CatBoost"),
)


def model_of(method: str) -> Any:
    """Unfitted model."""
    if method.startswith("looms"):
        from looms import KernelClassifier, TabularClassifier

        if "auto" in method:
            return TabularClassifier()
        return KernelClassifier("rbf", n_landmarks=256 if "landmarks" in method else None)
    if method.startswith("SVC"):
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.svm import SVC

        svc = SVC(C=10.0)
        return svc if method == "SVC" else CalibratedClassifierCV(svc, ensemble=False)
    if method == "HistGradientBoosting":
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier()
    if method == "LightGBM":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(verbose=-1, n_jobs=1)
    from catboost import CatBoostClassifier

    return CatBoostClassifier(verbose=0, thread_count=1, allow_writing_files=False)


def graph_of(model: Any, n_features: int) -> bytes:
    from skl2onnx import to_onnx

    from looms.onnx import register_converters

    register_converters()
    graph = to_onnx(model, np.zeros((1, n_features)), options={"zipmap": False})
    return bytes(graph.SerializeToString())


def size_of(model: Any, method: str) -> int:
    """Bytes of a saved model."""
    if not method.startswith("looms"):
        return len(pickle.dumps(model))
    from looms.model_files import save_model

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        save_model(path, model)
        return path.stat().st_size


def row(method: str) -> tuple[float, float, float]:
    """Rows a second, milliseconds of one row, and megabytes of the model."""
    X, y, X_new, _ = split("synthetic", ROWS, NEW_ROWS)
    model = model_of(method).fit(X, y)
    if method.endswith("onnx"):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        graph = graph_of(model, X.shape[1])
        session, size = onnxruntime.InferenceSession(graph, options), len(graph)
        name = session.get_inputs()[0].name

        def predict(rows: np.ndarray) -> Any:
            return session.run(None, {name: rows})
    else:
        size = size_of(model, method)
        predict = getattr(model, "predict_proba", model.predict)
    one = X_new[:1]
    predict(one)
    many = seconds(lambda: predict(X_new))
    return NEW_ROWS / many, 1e3 * seconds(lambda: predict(one), 20), size / 1e6


def main() -> None:
    rows = []
    for method in METHODS:
        (rate, milliseconds, size), peak = in_fresh_process(row, method)
        rows.append((method.replace(",", ";"), round(rate), milliseconds, peak, size))
    header = ("method", "rows_per_second", "milliseconds", "peak_gb", "megabytes")
    write_table("prediction", header, rows, ("lightgbm", "catboost", "onnxruntime", "skl2onnx"))


if __name__ == "__main__":
    main()
