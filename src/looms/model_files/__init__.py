"""Fitted models in files: written whole or not at all, read without running what is in them.

The format is skops: a zip file of arrays and of the names of types. Reading builds the types of
one list and no others: looms' own estimators and kernels, the transformers of
`looms.tables.table_preprocessor`, pipelines of them, arrays and containers. All else is refused by
name before anything is built. What was built is then checked: shapes against each other, indices
against what they point into, numbers against their range.
"""

from looms.model_files._files import ModelFileError, load_model, save_model

__all__ = [
    "ModelFileError",
    "load_model",
    "save_model",
]
