"""Options of the command line, and the parameters of Python that they stand for."""

from __future__ import annotations

#: Options of `looms fit` whose names differ from the parameters that they give.
PARAMETERS = {
    "positive": "pos_label",
    "target_transform": "target",
    "jobs": "n_jobs",
    "seed": "random_state",
}
#: Options of the models of tables; those of one kind of target are of one of the two.
OF_MODEL = (
    *("candidates", "combine", "threshold", "calibration", "class_weight", "positive"),
    *("target_transform", "cv", "jobs", "seed"),
)
#: Options of every candidate with a kernel, of its search and its landmarks.
OF_SEARCH = {"max_iter": "max_iter", "search": "method"}
OF_CANDIDATES = ("loss", "criterion", *OF_SEARCH, "prior", "n_landmarks")
#: Parts of the help, and the options in each.
PANELS = {
    "Data": (
        *("target", "drop", "drop_missing_targets", "groups", "time", "gap", "duplicates"),
        *("sample_weight", "task", "order", "data", "format", "sep", "decimal", "encoding"),
        *("sheet", "max_bytes"),
    ),
    "Model": (
        *("candidates", "combine", "threshold", "calibration", "class_weight", "positive"),
        *("target_transform", "prevalence"),
    ),
    "Validation": (
        *("cv", "no_evaluate", "test", "metric", "certify", "splits", "test_size", "method"),
        *("confidence_level", "class_conditional", "bootstrap", "resampling", "alpha", "store"),
    ),
    "Output": (*("output", "report", "json", "force", "quiet", "id", "keep", "digits", "plot"),),
    "Expert": (*OF_CANDIDATES, "memory", "jobs", "seed"),
}
PANEL_OF = {option: panel for panel, options in PANELS.items() for option in options}
#: Parameters that messages name, and their options.
OPTIONS = {
    **{option: option for option in PANEL_OF},
    **{parameter: option for option, parameter in PARAMETERS.items()},
    **{"kernel": "candidates", "n_splits": "splits", "scoring": "metric"},
}
#: Remedies that the command line has in other words, or not at all.
REMEDIES = {
    "assess": "looms assess",
    "cuts": "",
    "drop": " by --drop",
    "drop columns": " (looms fit --drop)",
    "duplicate groups": "give --duplicates group",
    "evaluate": "an evaluation (model.evaluate() in Python, looms fit without --no-evaluate)",
    "grid": "--search grid",
    "group rows": "together by --groups COLUMN",
    "jobs": "--jobs",
    "keep": "for --id or --keep",
    "landmarks": ", auto or none",
    "no order": "leave --order out",
    "no scales": "a sparse file, such as svmlight",
    "not nested": "--no-evaluate",
    "other kernels": "another kernel (--candidates)",
    "precomputed": "",
    "rules": "",
    "search method": "--search",
    "splitters": "",
    "time": "--time",
    "transforms": "--target-transform",
    "verbose": "",
    "windows": "windows of time by --time",
}
