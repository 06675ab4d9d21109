"""Dask collections: sweeps over the blocks of their partitions, and lazy predictions.

Examples
--------
>>> import dask.array
>>> import numpy as np
>>> from looms.dask import DaskBlocks
>>> X = dask.array.from_array(np.arange(12.0).reshape(6, 2), chunks=(4, 2))
>>> (total,), _ = DaskBlocks(X).sweep(lambda X: ((X.sum(axis=0),), ()))
>>> total
array([30., 36.])
"""

from looms.dask._blocks import DaskBlocks
from looms.dask._predict import predict

__all__ = ["DaskBlocks", "predict"]
