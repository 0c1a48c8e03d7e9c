"""Collections of documents, their ground truth, and the files they are stored in."""

from firstpage.core import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
