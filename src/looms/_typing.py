"""Names for array types."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
#: A dense float64 array, or a SciPy CSR matrix or array; these have no common type.
Matrix: TypeAlias = Any
#: An array of anything, such as labels.
AnyArray: TypeAlias = npt.NDArray[Any]
