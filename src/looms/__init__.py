"""Leave-one-out model selection of kernel machines."""
