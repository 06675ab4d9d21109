"""Fitted models as ONNX graphs, which run without Python and without looms.

`register_converters` teaches skl2onnx the models of looms, also as steps of pipelines. It needs
the extra ``onnx``.
"""

from looms.onnx._models import register_converters

__all__ = ["register_converters"]
