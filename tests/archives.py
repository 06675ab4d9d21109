"""Zip files for tests of what reads them."""

import io
import zipfile


def zipped(**members):
    """Zip file with these contents; an underscore in a name is a point."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_", "."), content)
    return buffer.getvalue()
