"""Figures and reports of finished results."""

from looms.report._nonconformity import ErrorAgainstBoundDisplay

__all__ = ["ErrorAgainstBoundDisplay"]
