"""From a table of mixed columns with gaps to a dense matrix of floats for a kernel.

`Columns` are what the rows of a fit decide about a table, and read the cells of any rows by it;
`TablePreprocessor` makes the matrix. Rather than skrub's ``TableVectorizer``, since on the credit
data (690 rows, 15 mixed columns, five times ten folds, one computer;
benchmarks/table_preprocessing.py) both had the same accuracy (logistic regression 0.864 ± 0.004
against 0.861 ± 0.003 over repeats, SVC 0.850 ± 0.001 against 0.852 ± 0.004), with a skops file of
6 kB against 12.8 MB (deflated 2 kB against 342 kB), loaded in 1 ms against 90 ms, and 16 packages
or 106 MB less to install.
"""

from looms.tables._columns import Columns
from looms.tables._preprocessor import TablePreprocessor

__all__ = ["Columns", "TablePreprocessor"]
