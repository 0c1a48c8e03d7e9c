"""Collections of documents, their ground truth, and the files they are stored in.

::

    files ──formats──▶ Dataset (X, y, offsets, ids) ──▶ Truth (labels per query, ideal lists)
               ├─────▶ Qrels, Run (ids, values) ──joins──▶ a Dataset's labels, or lists of a run
               ├─────▶ PreferencePairs, Preferences (votes on documents, or on result lists)
               └─────▶ Shards (a folder of complete queries), which stay on disk

A Dataset is immutable and grouped by query: the rows of query i are `offsets[i]` to
`offsets[i + 1]`.  Ids are stored as bytes.  Text is parsed by kernels, a chunk of complete lines
at a time, into the final arrays.  An error of a file is one line with its place (`file:line`).

To change                                   open
------------------------------------------  -----------------------------------------------------
what a collection is, and what it checks    dataset.py, truth.py, ids.py
judgments and runs in memory, data frames   runs.py, frames.py
a file format, and how it is recognized     formats/, formats/registry.py
names of columns, in all formats            column_names.py
LETOR text                                  formats/letor.py, formats/letor_reader.py
tables: CSV, Parquet, Arrow, npz            formats/tables.py
joins by document, and their notes          joins.py, columns.py, concat.py, intersection.py
columns of categories                       categories.py
scaling and imputation of features          transforms.py
folds                                       folds.py
votes and preferences, learned utilities    preferences/
data larger than memory                     shards/
compressed files, JSON files with checksum  io/
descriptions, warnings on suspicious data   description.py, suspicious.py
synthetic collections                       synthetic.py
"""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
