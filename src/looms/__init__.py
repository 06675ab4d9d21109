"""Leave-one-out model selection of kernel machines."""

from looms.leave_one_out import LeaveOneOut

__all__ = ["LeaveOneOut"]
