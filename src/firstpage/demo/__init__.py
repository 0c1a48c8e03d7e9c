"""The demo: label, train, compare, learn a measure and aggregate on an embedded collection.

::

    Python's documentation ──▶ index ──▶ candidates ──▶ labels ──▶ features ──▶ rankers
       report, search page ◀── aggregation ◀── learned measure ◀── comparison ◀──┘

Each step calls the public functions, writes its files to one folder, and prints the command that
does the same.  The sentences of the report follow from the figures.

To change                                   open
------------------------------------------  -----------------------------------------------------
the order of the steps                      loop.py
the collection and its questions            collection.py, questions.py
labeling by simulated people                labeling.py, project.py
rankers and their comparison                rankings.py
the learned measure                         measuring.py
what is printed and reported                output.py, report.py, sentences.py
"""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
