"""Files to read, of every format."""

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet


@pytest.fixture
def write(tmp_path, write_frame):
    """Write content, a frame, or a table of pyarrow, in the format that the name tells."""

    def write(content, name="t.csv"):
        path = tmp_path / name
        if callable(content):
            content(path)
        elif isinstance(content, pa.Table):
            parquet.write_table(content, path)
        elif isinstance(content, pd.DataFrame):
            write_frame(content, path)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
