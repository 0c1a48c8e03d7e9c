"""Learning to rank for the results that people see: label, train, evaluate, compare, serve.

>>> import firstpage as fp
>>> data = fp.Synthetic(queries=20, docs=10, features=4, seed=0).dataset()
>>> ranker = fp.ListMLE(k=5).fit(data)
>>> fp.evaluate(ranker.predict(data), data, measures=["NDCG@5", "P@5"]).texts
('NDCG@5', 'P@5')

Importing the package loads nothing: a name is imported from its module when it is first used.
The names are listed in `__init__.pyi`.
"""

from firstpage.core.lazy import lazy_namespace

try:
    from firstpage._version import __version__
except ModuleNotFoundError:  # sources that were never built or installed
    __version__ = "0+unknown"
__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
