"""The demo: label, train, compare, learn a measure and aggregate on an embedded collection."""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
