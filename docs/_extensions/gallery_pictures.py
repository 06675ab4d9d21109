"""Pictures of the gallery with two dots a pixel, sharp on telephones too."""

from typing import Any


def sharp(gallery_conf: dict[str, Any], script: str) -> None:
    """Resolution of the figures of the next script; Sphinx-Gallery has reset Matplotlib."""
    import matplotlib

    matplotlib.rcParams["figure.dpi"] = 200
