"""looms demo: the main job on real data that come with scikit-learn."""

from __future__ import annotations

from typing import Annotated

import typer

from looms.cli._errors import reported
from looms.cli._options import Task


def demo(
    random_state: Annotated[
        int, typer.Option("--random-state", min=0, help="Seed of the split and the subsamples.")
    ] = 0,
) -> None:
    """Fit half of a real data set, and compare leave-one-out with the other half."""
    with reported():
        from sklearn.datasets import load_breast_cancer
        from sklearn.model_selection import train_test_split

        from looms.cli._apply import scored
        from looms.cli._figures import loo_figures
        from looms.cli._render import console, show_candidates, show_figures
        from looms.cli._training import Request, train
        from looms.datasets._table import Table
        from looms.model_files._files import SavedModel

        out = console()
        out.print(
            "Breast cancer Wisconsin (diagnostic), 569 tumours, 30 features, from scikit-learn.",
            "Half of them train; the other half is not seen until the end.",
            sep="\n",
        )
        X, y = load_breast_cancer(as_frame=True, return_X_y=True)
        y = y.map({0: "malignant", 1: "benign"})
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=0.5, stratify=y, random_state=random_state
        )
        request = Request(("linear", "rbf"), ("press",), "lbfgs", None, None, None, random_state)
        fitted = train(Table(X_train, y_train, "demo"), "diagnosis", Task.CLASSIFICATION, request)
        machine = fitted.model[-1]
        show_candidates(machine, fitted.metadata)
        test = Table(X_test, y_test, "test")
        saved = SavedModel(fitted.model, fitted.metadata)
        show_figures(
            {
                f"leave-one-out, {len(y_train)} rows": loo_figures(
                    machine.loo_, "classification", machine.threshold_
                ),
                f"the other half, {len(y_test)} rows": scored(saved, test).figures,
            }
        )
        out.print(
            "Leave-one-out chose the machine, so its figures flatter; only rows that the choice",
            "never saw give honest ones. Your own table: looms fit FILE --target COL, and for",
            "honest figures looms assess FILE --target COL",
            sep="\n",
        )
