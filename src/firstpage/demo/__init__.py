"""The demo: the whole loop on the embedded collection, one file per step."""

from firstpage.lazy import lazy_namespace

__getattr__, __dir__, __all__ = lazy_namespace(__name__, __file__)
