"""Reads the rows of a spreadsheet in a process of its own: run as a script, not imported.

python-calamine keeps every cell up to the last one of a sheet, and ends its process if they do not
fit in memory, which a file of 1 kB can cause. The file is on stdin; stdout has one line of JSON
for each sheet (its name) and each of its nonblank rows (a list), stderr an error. The argument is
the memory limit in bytes. Measured with python-calamine 0.9.1, also the reader of pandas: 30 bytes
a cell, so a file of 5 kB took 3 GB and 31 s, and another one ended the process at 36 GB.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from datetime import timedelta
from io import BytesIO
from typing import Any

#: Memory that the interpreter and its libraries take.
OWN = 2**28


def cell_of(value: Any) -> Any:
    """Cell as a JSON value: text, a number or a truth value; days for a time span."""
    if isinstance(value, timedelta):
        return value / timedelta(days=1)
    return value.isoformat() if hasattr(value, "isoformat") else value


def main() -> None:
    """Read stdin, write stdout."""
    import python_calamine as calamine

    with suppress(ImportError):  # Windows, which has no such limits
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = int(sys.argv[1]) + OWN
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        book = calamine.CalamineWorkbook.from_filelike(BytesIO(sys.stdin.buffer.read()))
        for name in book.sheet_names:
            sys.stdout.write(f"{json.dumps(name)}\n")
            sheet = book.get_sheet_by_name(name)
            for row in sheet.iter_rows() if sheet.height else ():
                cells = [cell_of(cell) for cell in row]
                if any(cell != "" for cell in cells):
                    sys.stdout.write(f"{json.dumps(cells)}\n")
    except calamine.PasswordError:
        sys.exit("it has a password")
    except (calamine.CalamineError, ValueError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
