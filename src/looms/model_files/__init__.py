"""Files of fitted models, read without running code from them.

The format is skops: a zip file of arrays and of the names of types. Reading builds only what models
are made of: classes of looms, a few transformers and the splitters of scikit-learn, arrays and
containers. Other names are refused before any object is built. Then it is checked that arrays are
not read beyond their ends, and that the parts of a fit agree.
"""

from looms.model_files._files import ModelFileError, load, load_model, save_model

__all__ = [
    "ModelFileError",
    "load",
    "load_model",
    "save_model",
]
