"""Files of fitted models, read without running code from them.

The format is skops: a zip file of arrays and of the names of types. Reading builds only the types
of one list: estimators and kernels of looms, the transformers of
`looms.tables.TablePreprocessor`, pipelines of them, arrays and containers. Other types are
rejected by name before any object is built. Then the objects are checked: shapes against each
other, indices against the arrays they point into, numbers against their range.
"""

from looms.model_files._files import ModelFileError, load, load_model, save_model

__all__ = [
    "ModelFileError",
    "load",
    "load_model",
    "save_model",
]
