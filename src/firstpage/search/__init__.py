"""From texts to features: documents, an index, candidates, features of query and document."""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
