"""What all readers refuse, and what the message names."""

import gzip

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse

from looms.datasets import TableError, read_table

NO_TEXT = pa.array([b"a", b"\xff"]).cast(pa.string(), safe=False)
PACKED = gzip.compress(b"a,y\n" + b"1,2\n" * 1000, mtime=0)
STORED = pa.BufferOutputStream()
parquet.write_table(pa.table({"a": [1.5], "y": [1]}), STORED)
STORED = STORED.getvalue().to_pybytes()
REFUSED = {
    "empty": ("", "the file is empty"),
    "white space": (" \n\n", "the file is empty"),
    "no rows": ("a,y\n", "no rows of data"),
    "short row": ("a,y\n1,2\n3\n", "data row 2: Expected 2 columns, got 1"),
    "long row": ("a,y\n1,2\n3,4,5\n", "data row 2: Expected 2 columns, got 3"),
    "open mark": ('a,y\n1,2\n3,"4\n5,6\n', "line 3: the quotation mark before '4.* is not closed"),
    "cut inside a number": ('a,y\n1,"10"\n2,"20', "line 3: .*'20' is not closed"),
    "open, and an inner mark": ('a,y\n1,"x\n2,y""\n3,z\n', "line 2: .* not closed"),
    "open, and closed rows later": ('y,a\n"3","4\n"5","6"\n', "line 2: .*before '4"),
    "text after a quotation": ('a,y\n1,"x" y\n', "line 2: .* is not closed at the end of"),
    "same name": ("a,b,a,y\n1,2,3,4\n", "more than one column is called 'a'"),
    "no name": (",a,y\n0,1,2\n", "column 1 has no name"),
    "a blank for a name": ("a, ,y\n1,2,3\n", "column 2 has no name"),
    "only the target": ("y\n1\n", "no column besides the target 'y'"),
    "gap in the target": ("a,y\n1,2\n3, NA\n4,\n", "missing in 2 of 3 rows, first in data row 2"),
    "no target": ("age,Y,town\n1,2,3\n", r"'y' .* Did you mean 'Y'\? .* 'age', 'Y', 'town'\.$"),
    "another separator": ("a;b;c\n1;2;3\n", "no column 'y'"),
    "no names": ("5.1,3.5,1\n4.9,3.0,2\n", "first line must hold the names"),
    "many columns": (
        f"{','.join(f'c{j}' for j in range(300))}\n{','.join('1' * 300)}\n",
        r"'c19' and 280 more\.$",
    ),
    "UTF-8": ("a,y\né,1\n".encode() + b"\xff,2\n", "line 3 is not text in utf-8, and other"),
    "UTF-16 without a mark": ("a,y\n1,2\n".encode("utf-16-le"), "line 1 is not text in cp1252"),
    "half of UTF-16": ("a,y\n1,2\n".encode("utf-16")[:-1], "line 2 is not text in utf-16"),
    **{f"t{cut}.csv.gz": (PACKED[:cut], "cannot be unpacked") for cut in (5, -9)},
    "text.csv.gz": ("a,y\n1,2\n", "cannot be unpacked"),
    **{f"{k}.parquet": (STORED[:k], "not a whole Parquet file") for k in (3, 60, -3)},
    "no text.parquet": (pa.table({"y": NO_TEXT}), "its columns are damaged"),
    "parts.parquet": (pa.table({"y": [{"b": 1}]}), "'y' holds values of the type struct"),
    "lists.parquet": (pa.table({"y": [[1], [2, 3]]}), "'y' holds values of the type list"),
    "twice.parquet": (pa.table([[1], [2]], ["y", "y"]), "more than one column is called 'y'"),
    "inf.parquet": (pa.table({"x": [1, 2], "y": [1, np.inf]}), "infinite in 1 of 2 rows, first in"),
    "t.docx": ("a,y\n1,2\n", "suffix '.docx' is of no known format"),
    "t.txt.gz": ("a,y\n1,2\n", "suffix '.txt' is of no known format"),
    "table": ("a,y\n1,2\n", "no suffix"),
    "t_train.labels": ("1\n", "labels without data"),
}
ODD = ["one", "", "1_000", "0x10", "\u0661"]
NO_MARK = "has a quotation mark that is out of place or not closed"
HEADER = "@relation r\n@attribute a numeric\n@attribute b {x,y}\n@data\n"
ARFF = [
    *((f"{c},x", f"line 5: '{c}' of 'a' is not a number") for c in ODD),
    ("1,x\n2", "line 6: there are 1 values for 2 attributes"),
    ("1,x,3", "line 5: there are 3 values for 2 attributes"),
    ("1,z", "line 5: 'z' of 'b' is not a declared value"),
    ("1,'x", f'line 5: "\'x" {NO_MARK}'),
    ("1, 'x' y'", f"line 5: .* {NO_MARK}"),
    ("1 , 'x' y", f"line 5: .* {NO_MARK}"),
    ("1,'\\q'", r"line 5: .* has the unknown escape '\\\\q'"),
    ("1e400,x", "'1e400' of 'a' is too large a number"),
    ("9" * 5000 + ",x", "of 'a' is too large a number"),
    ("1,'\\ud800'", "line 5: .* half of a character"),
    ("{0 1}", "line 5: this is a sparse row"),
    ("", "no rows of data"),
    ("@relation r", "no line @data"),
    ("@data1\n1", "line 1: '@data1' is no declaration"),
    ("@attribute a real\n@attribute a real\n@data\n1,2", "more than one column is called 'a'"),
    ("@a,b\n1,2", "line 1: '@a,b' is no declaration"),
    ("@attribute a\n@data\n1", "line 1: '@attribute a' is no declaration of a name and a type"),
    ("@attribute a relational\n@data\n1", "line 1: attribute 'a' has the type 'relational'"),
    ("@attribute a {x,'y}\n@data\nx", f"line 1: .* {NO_MARK}"),
    ("@attribute a date\n@data\n16/07/2006", "line 3: '16/07/2006' of 'a' is not a date like"),
    ("@attribute a date\n@data\n2006-07-16T10Z", "line 3: .* is not a date like"),
    ("@attribute a date dd.MM.yyyy\n@data\n31.02.2006", "is not a date like dd.MM.yyyy"),
]
SVMLIGHT = [
    ("1 1:0.5 2\n", "data row 1: '2' is not a pair index:value"),
    ("1 1:1\n1:0.5 2:1\n", "data row 2: '1:0.5' is not a number"),
    ("1 2:0.5 1:1\n", "data row 1: '1:1' does not have a greater index"),
    *((f"1 {i}:1\n", f"'{i}:1' is not a pair") for i in ("-2", "1_0")),
    *((f"1 1:{x}\n", f"data row 1: '1:{x}' is not a number") for x in ("1_000", "0x10")),
    ("1_0 1:1\n", "'1_0' is not a number"),
    ("1 1:1e400\n", "'1:1e400' is too large a number"),
    *((f"1 {i}:1\n", f"'{i}:1' .* index below 2147483647") for i in (2**31 - 1, 2**32 + 1)),
    (f"{2**53 + 1} 1:1\n", "'9007199254740993' has more digits than a float holds"),
    (f"1 1:{2**53 + 1}\n", "'1:9007199254740993' has more digits than a float holds"),
    ("# nothing\n", "no rows of data"),
    ("1\n-1\n", "no row has a feature"),
    ("1 1:1\nnan 1:2\n", "target is missing in 1 of 2 rows"),
    ("1 1:1\ninf 1:2\n", "target is infinite in 1 of 2 rows, first in row 2"),
]


def stored(data, rows, columns, format="csc", **arrays):
    """Function that writes the parts of a matrix as SciPy does."""
    shape, arrays = (rows, columns), arrays or {"indices": [0], "indptr": [0, 1]}
    return lambda path: np.savez(path, format=format, shape=shape, data=data, **arrays)


def sparse_of(*cells):
    return lambda path: sparse.save_npz(path, sparse.csr_array([cells]))


NPZ = [
    (lambda path: np.savez(path, format=np.array([{}], dtype=object)), "not a sparse matrix"),
    (stored([1.0], 2, 2, "csr", indices=[7], indptr=[0, 1, 1]), "not a sparse matrix"),
    (stored([1.0], 2, 2, indices=[7], indptr=[0, 1, 1]), "not a sparse matrix"),
    (lambda path: path.write_bytes(b"PK\3\4"), "damaged or cut short"),
    (sparse_of(np.nan, 1.0), "missing or infinite"),
    (stored([1.0], 4 * 10**8, 1, "coo", row=[0], col=[0]), "more than 1,073,741,824 bytes"),
    (stored([1.0], 4 * 10**8, 1), "more than 1,073,741,824 bytes"),
    (stored([1.0], 1, 2**33, "csr", indices=[2**32 + 5], indptr=[0, 1]), r"shape is \(1, 858"),
    (sparse_of(1j, 1.0), "of the type complex128"),
    (stored(["1_0"], 1, 2, "csr"), "of the type <U3"),
    (sparse_of(2**53 + 1, 1), "9007199254740993 has more digits"),
]
CASES = [
    *((name if "." in name or name == "table" else "bad.csv", *c) for name, c in REFUSED.items()),
    *(("t.arff", c if c[:1] == "@" else f"{HEADER}{c}\n", problem) for c, problem in ARFF),
    *(("t.svm", *case) for case in SVMLIGHT),
    *(("t.npz", *case) for case in NPZ),
]


@pytest.mark.parametrize(
    ("name", "content", "problem"), CASES, ids=lambda value: "" if callable(value) else repr(value)
)
def test_refused(write, name, content, problem):
    path = write(content, name)
    with pytest.raises(TableError, match=problem) as caught:
        read_table(path, None if path.suffix in (".arff", ".svm", ".npz") else "y")
    assert str(caught.value) == f"{path}: {caught.value.problem}. {caught.value.advice}"
    assert caught.value.path == path
    assert caught.value.advice.endswith((".", ")."))


@pytest.mark.parametrize("name", ["t.svm", "t.npz"])
def test_a_target_without_a_name_cannot_be_chosen(write, name):
    with pytest.raises(TableError, match="target cannot be chosen"):
        read_table(write("1 1:1\n", name), "y")
    with pytest.raises(TableError, match="no column 'y'"):
        read_table(write("1 1:1\n", name), keep=["y"])
