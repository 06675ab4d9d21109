"""looms demo: the main job on real data that come with scikit-learn."""

from __future__ import annotations

from typing import Annotated

import typer
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from looms.cli._figures import loo_figures, show_candidates, show_figures
from looms.cli._options import command
from looms.cli._output import console
from looms.cli._prepare import prepare, target_of
from looms.cli._request import MachineRequest
from looms.cli.fit import train
from looms.cli.predict import Predictions


@command
def demo(
    random_state: Annotated[
        int, typer.Option(min=0, help="Seed of the split and the subsamples.")
    ] = 0,
) -> None:
    """Fit half of a real data set, and compare leave-one-out with the other half."""
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
    request = MachineRequest("classification", kernel=["linear", "rbf"], random_state=random_state)
    prepared = prepare(X_train, target_of(y_train, request.task))
    fitted = train(prepared, request)
    machine = fitted.model[-1]
    show_candidates(machine)
    predictions = Predictions.of(fitted, X_test)
    show_figures(
        {
            f"leave-one-out, {len(y_train)} rows": loo_figures(machine),
            f"the other half, {len(y_test)} rows": predictions.figures(y_test),
        }
    )
    out.print(
        "Leave-one-out chose the machine, so its figures flatter; only rows that the choice",
        "never saw give honest ones. Your own table: looms fit FILE --target COL, and for",
        "honest figures looms assess FILE --target COL",
        sep="\n",
    )
